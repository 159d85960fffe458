"""What tasks file for archives: rows with the instant at which they begin and, if they have one, their end.

It lies in outbox files, beside the answers for sinks. The rows of a query that emits a stream are not filed
a second time: its archive reads the answers themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.relational.signed_rows import VE, VS, N
from windrow.state.names import RESERVED
from windrow.windows.domain import ARRIVAL_TS, ROW_NUM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.algebra.catalog import Stream

#: the columns that are not the user's: the first begins every row, the second ends those of relations
AT, UNTIL = "#at", "#until"
_PREFIX = f"{RESERVED}archived rows of "


def stream_source(stream: str) -> str:
    """A stream as what an archive is of; no query has such an id."""
    return f"{RESERVED}{stream}"


def archived_section(source: str) -> str:
    """What rows of a stream (`stream_source`), or of the query with an id, are filed under for archives."""
    return f"{_PREFIX}{source}"


def is_archived(section: str) -> bool:
    """Whether a section is for archives."""
    return section.startswith(_PREFIX)


def stream_rows(stream: Stream, accepted: pl.DataFrame) -> pl.DataFrame:
    """The accepted rows of a stream, each from its windowing attribute on."""
    moment = f"#{stream.wattr}" if stream.wattr in (ROW_NUM, ARRIVAL_TS) else stream.wattr
    return accepted.select(pl.col(moment).cast(pl.Int64).alias(AT), *stream.schema.names)


def lived_rows(pieces: pl.DataFrame, names: Sequence[str], first: int | None) -> pl.DataFrame:
    """The rows of an answer with the instants they are in it; none that begins before `first`.

    >>> pieces = pl.DataFrame({"k": [7, 8], VS: [3, 4], VE: [9, 5], N: [2, 1]})
    >>> lived_rows(pieces, ["k"], None).rows()
    [(3, 7, 9), (3, 7, 9), (4, 8, 5)]
    """
    kept = pieces if first is None else pieces.filter(pl.col(VS) >= first)
    rows = kept.select(pl.col(VS).alias(AT), *names, pl.col(VE).alias(UNTIL), N)
    return rows.select(pl.exclude(N).repeat_by(N).explode()) if (rows[N] != 1).any() else rows.drop(N)
