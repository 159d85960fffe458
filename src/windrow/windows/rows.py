"""ROWS windows: the last n rows, of all or of each partition (WID 3.3, Q2 and Q4).

Rows are numbered from 1: by the attribute, ties by all columns, or, over `row_num`, as they arrived.
Extents are the positions (E-n, E] at E = m, 2m, ... of SLIDE m ROWS; m is 1 without a SLIDE. In time, row i
enters when row E1 (the first E at or after i) is there, and leaves with row E2 (the first E >= i+n):

    ROWS 3 SLIDE 2 ROWS    position   1  2  3  4  5  6
                           E=2       [1  2]
                           E=4          [2  3  4]
                           E=6                [4  5  6]     row 3 is valid from u_4 until u_6

u_i is the attribute of row i; in arrival order its running maximum, since time does not run backwards.
With SLIDE d, a duration, the extent at E is the last n rows with u < E.

Rows numbered from 1, by partition: the *rank* function of WID 3.3.

The order is that of the attribute, ties by all columns, so that it depends on no arrival; or, over
`row_num`, that of arrival. Without partitions the position in arrival order is `row_num` itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from windrow.errors import DataError, QueryError
from windrow.windows import domain
from windrow.windows.domain import INFINITY, Element, Instant, Interval, Report, sort_key
from windrow.windows.patterns import Label, Pattern
from windrow.windows.spec import SlideGrid, WindowId, WindowSpec, require_near, require_positive


@dataclass(frozen=True)
class Partition:
    """The rows of one key in window order: their places in the input, their positions, their instants u.

    u is the attribute value, in arrival order its running maximum.
    """

    key: tuple[Any, ...]
    places: Sequence[int]
    positions: Sequence[int]
    times: Sequence[int]

    def reached(self, position: int) -> int | None:
        """When the position was reached; None if it was not."""
        index = bisect_left(self.positions, position)
        return self.times[index] if index < len(self.times) else None


def number(rows: Sequence[Element], *, by_key: bool, by_arrival: bool = False) -> list[Partition]:
    """The rows numbered, one partition per key (or a single one).

    >>> late = [Element(7, 1), Element(3, 2), Element(9, 3)]
    >>> [(p.places, p.times) for p in number(late, by_key=False)]
    [([1, 0, 2], [3, 7, 9])]
    >>> [(p.places, p.times) for p in number(late, by_key=False, by_arrival=True)]
    [([0, 1, 2], [7, 7, 9])]
    """
    if by_arrival and len({row.row_num for row in rows if row.row_num > 0}) < len(rows):
        raise DataError(
            "windows in arrival order need the position of every row",
            code="row-num",
            hint="row_num counts the rows of the stream from 1",
        )
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row.key if by_key else (), []).append(place)
    found = []
    for key, places in groups.items():
        if by_arrival:
            places.sort(key=lambda place: rows[place].row_num)
        else:
            places.sort(key=lambda place: (rows[place].t, rows[place].order, rows[place].row_num))
        own = by_arrival and not by_key
        positions = [rows[place].row_num for place in places] if own else range(1, len(places) + 1)
        times = list(accumulate((rows[place].t for place in places), max))
        found.append(Partition(key, places, positions, times))
    return found


@dataclass(frozen=True)
class RowsWindow(WindowSpec):
    """The last `rows` rows.

    >>> window = RowsWindow(2)
    >>> window.intervals([Element(10), Element(20), Element(30)])
    [Interval(vs=10, ve=30), Interval(vs=20, ve=inf), Interval(vs=30, ve=inf)]
    """

    rows: int
    slide_rows: int | None = None
    slide_time: int | None = None
    origin: int = 0
    partition_by: tuple[str, ...] = ()
    arrival_order: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("ROWS", self.rows)
        require_positive("SLIDE", self.slide_rows)
        require_positive("SLIDE", self.slide_time)
        require_near("ORIGIN", self.origin)
        if self.slide_rows and self.slide_time:
            raise QueryError(
                "a window slides in rows or in time, not both", code="window-slide", hint="give one SLIDE"
            )

    @property
    def grid(self) -> SlideGrid | None:
        return SlideGrid(self.slide_time, self.origin) if self.slide_time else None

    @property
    def is_refreshable(self) -> bool:
        return self.slide_time is not None

    def moving(self) -> RowsWindow:
        return replace(self, slide_time=None, origin=0)

    @property
    def is_periodic(self) -> bool:
        return self.slide is not None

    @property
    def slide(self) -> int | None:
        return self.slide_rows or self.slide_time

    @property
    def reports_positions(self) -> bool:
        return self.slide_rows is not None

    @property
    def has_bounds(self) -> bool:
        return self.is_periodic

    @property
    def counts_arrivals(self) -> bool:
        return self.arrival_order or super().counts_arrivals

    @property
    def label(self) -> Label:
        per = " per partition" if self.partition_by else " window"
        return Label(
            Pattern.STR, f"count-based{per}: expiry depends on future arrivals", fifo=not self.partition_by
        )

    @property
    def _length(self) -> Hashable:
        return "ROWS", self.rows, self.partition_by

    @property
    def needs_earlier(self) -> bool:
        return not self._by_own_number or self.grid is not None

    def later_context(self, row: Element) -> tuple[Instant, Instant] | None:
        if self.grid is not None:
            return (-INFINITY if self.arrival_order else row.t), INFINITY
        return None if self.arrival_order else (-INFINITY, row.t + 1)

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        """In positions: also extents still waiting for rows. In time: up to the first one of all rows."""
        partitions = self.partitions(rows)
        if self.grid is not None:
            times = [u for part in partitions for u in (part.times[0], part.times[-1])]
            return self.grid.around(min(times), max(times)) if times else ()
        stops = [(part, part.positions[-1] + self.rows) for part in partitions]
        found = [(end, part.key) for part, stop in stops for end in self._ends(part.positions[0], stop)]
        return [self._id(*pair) for pair in sorted(found, key=lambda pair: (pair[0], sort_key(pair[1])))]

    def extent(self, w: Any, rows: Sequence[Element]) -> list[Element]:
        if self.grid is not None:
            before = self.grid.end(w)
            return [row for part in self.partitions(rows) for row in self._last_before(part, before, rows)]
        parts = (part for part in self.partitions(rows) if self._id(w[0], part.key) == w)
        return [row for part in parts for row in self._members(part, w[0], rows)]

    def wids(self, row: Element, rows: Sequence[Element]) -> Sequence[WindowId]:
        if self._by_own_number and self.grid is None:
            return [self._id(end, ()) for end in self._ends(row.row_num, row.row_num + self.rows)]
        place = domain.place_of(row, rows)
        part, index = next((p, p.places.index(place)) for p in self.partitions(rows) if place in p.places)
        if self.grid is not None:
            left = index + self.rows
            gone = part.times[left] if left < len(part.times) else domain.FOREVER + self.grid.period
            return self.grid.ending_in(part.times[index], gone)
        position = part.positions[index]
        return [self._id(end, part.key) for end in self._ends(position, position + self.rows)]

    def intervals(self, rows: Sequence[Element]) -> list[Interval | None]:
        found: list[Interval | None] = [None] * len(rows)
        for part in self.partitions(rows):
            for index, place in enumerate(part.places):
                enters, leaves = self._entry(part, index), self._exit(part, index)
                if enters is not None:
                    found[place] = domain.visible(rows[place], enters, leaves)
        return found

    def reports(self, rows: Sequence[Element]) -> list[Report]:
        """One report per E that was reached and partition: positions (start, end], at u_E.

        >>> [(r.at, r.start, r.end) for r in RowsWindow(3, 2).reports([Element(t) for t in (5, 6, 7, 9)])]
        [(6, -1, 2), (9, 1, 4)]
        """
        if not self.reports_positions:
            raise QueryError(
                "only SLIDE n ROWS reports by position",
                code="window-slide",
                hint="other windows have intervals",
            )
        found = []
        for part in self.partitions(rows):
            for end in self._ends(part.positions[0], part.positions[-1] + 1):
                members = tuple(self._members(part, end, rows))
                at = part.times[bisect_left(part.positions, end)]
                found.append(Report(at, end - self.rows, end, part.key, members))
        return sorted(found, key=lambda report: (report.at, report.end, sort_key(report.key)))

    def partitions(self, rows: Sequence[Element]) -> list[Partition]:
        """The rows numbered, by key."""
        return number(rows, by_key=bool(self.partition_by), by_arrival=self.arrival_order)

    @property
    def _by_own_number(self) -> bool:
        """The position of a row is its row_num, whatever other rows there are."""
        return self.arrival_order and not self.partition_by

    def _id(self, end: int, key: tuple[Any, ...]) -> tuple[Any, ...]:
        return (end, key) if self.partition_by else (end,)

    def _ends(self, first: int, stop: int) -> Sequence[int]:
        """The E with first <= E < stop."""
        return range(self._first_end(first), stop, self.slide_rows or 1)

    def _last_before(self, part: Partition, instant: int, rows: Sequence[Element]) -> list[Element]:
        stop = bisect_left(part.times, instant)
        return [rows[place] for place in part.places[max(0, stop - self.rows) : stop]]

    def _members(self, part: Partition, end: int, rows: Sequence[Element]) -> list[Element]:
        first, stop = (bisect_left(part.positions, p + 1) for p in (end - self.rows, end))
        return [rows[place] for place in part.places[first:stop]]

    def _entry(self, part: Partition, index: int) -> int | None:
        if self.grid is not None:
            return self.grid.first_after(part.times[index])
        return part.reached(self._first_end(part.positions[index]))

    def _exit(self, part: Partition, index: int) -> Instant:
        if self.grid is not None:
            left = index + self.rows
            return self.grid.first_after(part.times[left]) if left < len(part.times) else INFINITY
        reached = part.reached(self._first_end(part.positions[index] + self.rows))
        return INFINITY if reached is None else reached

    def _first_end(self, position: int) -> int:
        step = self.slide_rows or 1
        return -(-position // step) * step
