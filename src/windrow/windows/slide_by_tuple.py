"""Slide-by-tuple windows: rows move the window, its length is in the attribute (WID 3.3, 6; Q3 and Q5).

One extent (w-r, w] per distinct attribute value w of every n-th row, counted in arrival order (`SATTR
row_num`) or in the order of the attribute (`SATTR rank(a)`), of each partition by itself. The print of *wids*
lost a sign: a row is in the extents with t <= w < t + RANGE.

[LANDMARK SLIDE n ROWS] is the same without an end: extents of all rows so far, as of every n-th in order.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import QueryError
from windrow.windows import spec
from windrow.windows.domain import INFINITY, Element, Instant, Interval, sort_key, visible
from windrow.windows.patterns import NEVER_LEAVES, Label, Pattern


@dataclass(frozen=True)
class SlideByTupleWindow(spec.WindowSpec):
    """The rows of the last `range` ticks, as of every `every`-th row.

    >>> rows = [Element(1, 1), Element(4, 2), Element(9, 3)]
    >>> window = SlideByTupleWindow(range=5)
    >>> window.windows(rows), window.wids(rows[0], rows)
    ([1, 4, 9], [1, 4])
    >>> window.intervals(rows)[0]
    Interval(vs=1, ve=9)
    """

    #: None: LANDMARK, rows never leave
    range: int | None
    every: int = 1
    #: as `wattr`: None is the stream's own
    rattr: str | None = None
    by_rank: bool = False
    partition_by: tuple[str, ...] = ()
    #: LANDMARK FROM and UNTIL
    start: int | None = None
    until: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        spec.require_positive("RANGE", self.range)
        spec.require_positive("SLIDE", self.every)
        for part, point in (("FROM", self.start), ("UNTIL", self.until)):
            spec.require_near(part, point)
        spec.require_order(self.start, self.until)
        if self.wattr is not None and self.rattr is not None and self.wattr != self.rattr:
            raise QueryError(
                f"the window is over `{self.rattr}` and over `{self.wattr}`",
                code="window-attribute",
                hint="RATTR stands in place of WATTR: give one",
            )
        object.__setattr__(self, "wattr", self.wattr or self.rattr)
        object.__setattr__(self, "rattr", self.wattr)

    is_periodic = True

    @property
    def slide(self) -> int | None:
        return self.every

    @property
    def counts_arrivals(self) -> bool:
        """Every row is every row, in whatever order."""
        return (self.every > 1 and not self.by_rank) or super().counts_arrivals

    def holds(self, instant: int) -> bool:
        """Whether rows of an instant are in the window at all."""
        return spec.is_between(self.start, instant, self.until)

    @property
    def typical_length(self) -> float | None:
        return self.range

    @property
    def label(self) -> Label:
        if self.range is None:
            return NEVER_LEAVES
        whose = "each partition slides by its rows" if self.partition_by else "the window slides by rows"
        return Label(Pattern.STR, f"{whose}: expiry depends on future arrivals", fifo=not self.partition_by)

    @property
    def _length(self) -> Hashable:
        return "ROWS OF", self.range, self.by_rank, self.partition_by, self.start, self.until

    needs_earlier = True

    def later_context(self, row: Element) -> tuple[Instant, Instant] | None:
        """Later rows add ids inside [t, t+r); by rank, any row below t+r shifts the count (WID 6.1.3)."""
        return (-INFINITY if self.by_rank else row.t), self._stays(row)

    def windows(self, rows: Sequence[Element]) -> list[Any]:
        """The values that move the window; with PARTITION BY each with its key."""
        found = {(w, key) for key, part in self._parts(rows).items() for w in self._moves(part)}
        order = sorted(found, key=lambda each: (each[0], sort_key(each[1])))
        return order if self.partition_by else [w for w, _ in order]

    def extent(self, w: Any, rows: Sequence[Element]) -> list[Element]:
        at, key = w if self.partition_by else (w, None)
        mine = [row for row in rows if self.holds(row.t) and (key is None or row.key == key)]
        return [row for row in mine if row.t <= at < self._stays(row)]

    def intervals(self, rows: Sequence[Element]) -> list[Interval | None]:
        parts = self._parts(rows)
        ids = {key: [*self._moves(part), INFINITY] for key, part in parts.items()}
        return [
            self._interval(row, ids[row.key if self.partition_by else ()]) if self.holds(row.t) else None
            for row in rows
        ]

    def _parts(self, rows: Sequence[Element]) -> dict[tuple[Any, ...], list[Element]]:
        parts: dict[tuple[Any, ...], list[Element]] = {}
        for row in rows:
            if self.holds(row.t):
                parts.setdefault(row.key if self.partition_by else (), []).append(row)
        return parts

    def _moves(self, rows: Sequence[Element]) -> list[int]:
        """The values that move a partition."""
        if self.by_rank:
            return sorted(set(sorted(row.t for row in rows)[self.every - 1 :: self.every]))
        if not self.partition_by:
            return sorted({row.t for row in rows if row.row_num % self.every == 0})
        arrived = sorted(rows, key=lambda row: row.row_num)
        return sorted({row.t for row in arrived[self.every - 1 :: self.every]})

    def _stays(self, row: Element) -> Instant:
        return INFINITY if self.range is None else row.t + self.range

    def _interval(self, row: Element, ids: Sequence[Instant]) -> Interval | None:
        enters, leaves = (ids[bisect_left(ids, t)] for t in (row.t, self._stays(row)))
        return None if enters == INFINITY else visible(row, int(enters), leaves)
