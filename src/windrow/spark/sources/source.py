"""What an opened source is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Source:
    """The rows of a stream as a Spark frame, and what the engine has to know of where they come from.

    `frame` has exactly the declared columns, in order and of the declared types, and after them the columns
    of `order_key`. A bounded source is a batch frame, driven by the engine itself and flushed at its end.
    """

    frame: DataFrame
    is_bounded: bool
    #: the same text after a restart if, and only if, it is the same source; never a password in it
    fingerprint: str
    #: columns that give each row its place in arrival order within a micro-batch; () if there is none
    order_key: tuple[str, ...] = ()
    #: read through Spark's file source: files already read must still be there, unchanged
    is_files: bool = False
