"""Slide-by-tuple windows: rows move the window, its length is in the attribute (WID 3.3, 6; Q3 and Q5).

One extent (w-r, w] per distinct attribute value w of every n-th row, counted in arrival order (`SATTR
row_num`) or in the order of the attribute (`SATTR rank(a)`). The print of *wids* lost a sign: a row is
in the extents with t <= w < t + RANGE.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from windrow.errors import QueryError
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.element import Element, Interval, visible
from windrow.windows.spec import WindowId, WindowSpec, require_positive


@dataclass(frozen=True)
class SlideByTupleWindow(WindowSpec):
    """The rows of the last `range` ticks, as of every `every`-th row.

    >>> rows = [Element(1, 1), Element(4, 2), Element(9, 3)]
    >>> window = SlideByTupleWindow(range=5)
    >>> window.windows(rows), window.wids(rows[0], rows)
    ([1, 4, 9], [1, 4])
    >>> window.intervals(rows)[0]
    Interval(vs=1, ve=9)
    """

    range: int
    every: int = 1
    #: as `wattr`: None is the stream's own
    rattr: str | None = None
    by_rank: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("RANGE", self.range)
        require_positive("SLIDE", self.every)
        if self.wattr is not None and self.rattr is not None and self.wattr != self.rattr:
            raise QueryError(
                f"the window is over `{self.rattr}` and over `{self.wattr}`",
                code="window-attribute",
                hint="RATTR stands in place of WATTR: give one",
            )
        object.__setattr__(self, "wattr", self.wattr or self.rattr)
        object.__setattr__(self, "rattr", self.wattr)

    @property
    def is_periodic(self) -> bool:
        return True

    @property
    def slide(self) -> int | None:
        return self.every

    @property
    def counts_arrivals(self) -> bool:
        """Every row is every row, in whatever order."""
        return (self.every > 1 and not self.by_rank) or super().counts_arrivals

    @property
    def _length(self) -> Hashable:
        return "ROWS OF", self.range, self.by_rank

    @property
    def needs_earlier(self) -> bool:
        return True

    def later_context(self, row: Element) -> tuple[Instant, Instant] | None:
        """Later rows add ids inside [t, t+r); by rank, any row below t+r shifts the count (WID 6.1.3)."""
        return (-INFINITY if self.by_rank else row.t), row.t + self.range

    def windows(self, rows: Sequence[Element]) -> list[int]:
        if self.by_rank:
            return sorted(set(sorted(row.t for row in rows)[self.every - 1 :: self.every]))
        return sorted({row.t for row in rows if row.row_num % self.every == 0})

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        return [row for row in rows if w - self.range < row.t <= w]

    def wids(self, row: Element, rows: Sequence[Element]) -> Sequence[WindowId]:
        ids = self.windows(rows)
        return ids[bisect_left(ids, row.t) : bisect_left(ids, row.t + self.range)]

    def intervals(self, rows: Sequence[Element]) -> list[Interval | None]:
        ids: list[Instant] = [*self.windows(rows), INFINITY]
        return [self._interval(row, ids) for row in rows]

    def _interval(self, row: Element, ids: Sequence[Instant]) -> Interval | None:
        enters, leaves = (ids[bisect_left(ids, t)] for t in (row.t, row.t + self.range))
        return None if enters == INFINITY else visible(row, int(enters), leaves)
