"""FIFO: rows leave in the order they came (pattern WKS). Cut by insertion, the oldest piece goes whole.

The instants are those of insertion: the windowing attribute, or the pane. With equal lifetimes a window is a
queue, so nothing has to be looked for at expiry: a bound on the insertion says which chunks go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.state.layouts.base import Layout

if TYPE_CHECKING:
    from windrow.state.chunk import Key


@dataclass(frozen=True)
class Fifo(Layout):
    """Sections (operator, bucket), a bucket for every `width` instants of insertion.

    >>> Fifo("sum", width=60).key_of(119), Fifo("sum", width=60).bucket_of(-1)
    (('sum', 1), -1)

    A window of 300 over the clock 1000 needs the insertions from 701 on, and lets go of what lies below:

    >>> from windrow.state.layouts.base import expire
    >>> from windrow.state.refs import ChunkRef, Facts
    >>> facts = {t: Facts(1, 64, t, t + 59) for t in range(600, 1000, 60)}
    >>> chunks = [ChunkRef(f"chunks/{t}", 64, "", 1, {"sum": facts[t]}) for t in facts]
    >>> [ref.name for ref in expire(chunks, {"sum": 701})][0]
    'chunks/660'
    """

    width: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError("a bucket is at least one instant wide")

    def bucket_of(self, instant: int) -> int:
        """The bucket of a row inserted at an instant. Works on arrays too."""
        return instant // self.width

    def key_of(self, instant: int) -> Key:
        """The section of a row inserted at an instant."""
        return (self.operator, self.bucket_of(instant))
