"""What every window is: the functions *windows*, *extent* and *wids* of WID section 3, and intervals.

`windows(T)` names the extents rows of T may belong to, `extent(w, T)` gives the rows of one, `wids(t, T)`
the extents of one row; the last two are relational inverses over windows(T). `intervals(T)` says the
same as validity: a row is valid at instant i iff it is in the extent that is current at i.

The id of an extent is
- the integer w of E = origin + (w+1)*slide, where the window slides in time;
- the instant i itself where it moves continuously; `windows` then lists only the instants at which
  the content changes, while `wids` gives all instants of a row's interval;
- the attribute value that ends it, where rows move it (slide-by-tuple);
- (E,) or (E, key) with the last position E, where rows are counted, or the end E, for sessions.

Slide instants: when windows that slide in time are reported.

Equally spaced ones are E = origin + (w+1)*period for every integer w (WID 3.3). ORIGIN is a phase, not a
beginning: the grid reaches to both infinities.

     w:      -2      -1       0       1
     E:  ----|-------|-------|-------|----
                  origin
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np

from windrow.errors import DataError, QueryError
from windrow.windows.domain import (
    FARTHEST,
    FOREVER,
    INFINITY,
    ROW_NUM,
    Element,
    Instant,
    Interval,
    Ints,
    visible,
)
from windrow.windows.patterns import Label

#: more rows than this are not made at once
MOST = 1 << 27


class Grid(ABC):
    """Instants in order; each ends the extent of an id w."""

    #: the longest time from one to the next
    period: int

    @abstractmethod
    def end(self, w: int) -> int:
        """Where the extent `w` ends."""

    @abstractmethod
    def last_ending(self, instant: int) -> int:
        """The greatest w whose extent ends at or before the instant."""

    @abstractmethod
    def ending_in(self, after: int, until: int) -> Sequence[int]:
        """The ids w with after < E <= until."""

    def instants(self, after: int, until: int) -> Sequence[int]:
        """The slide instants E with after < E <= until."""
        return [self.end(w) for w in self.ending_in(after, until)]

    @abstractmethod
    def nexts(self, instants: Any) -> Any:
        """The first slide instant later than each."""

    @abstractmethod
    def lasts(self, instants: Ints) -> Ints:
        """The last slide instant at or before each."""

    @abstractmethod
    def within(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        """(row, E) for each slide instant in [low, high) of each row."""

    def first_after(self, instant: int) -> int:
        """The first slide instant later than `instant`."""
        return self.end(self.last_ending(instant) + 1)


@dataclass(frozen=True)
class SlideGrid(Grid):
    """Equally spaced instants.

    >>> grid = SlideGrid(60, origin=0)
    >>> grid.first_after(59), grid.first_after(60), list(grid.instants(0, 180))
    (60, 120, [60, 120, 180])
    """

    period: int
    origin: int = 0

    def is_within(self, other: SlideGrid) -> bool:
        """Whether all its instants are instants of the other.

        >>> SlideGrid(60).is_within(SlideGrid(20)), SlideGrid(60, 5).is_within(SlideGrid(20))
        (True, False)
        """
        return self.period % other.period == 0 and (self.origin - other.origin) % other.period == 0

    def end(self, w: int) -> int:
        return self.origin + (w + 1) * self.period

    def last_ending(self, instant: int) -> int:
        return (instant - self.origin) // self.period - 1

    def ending_in(self, after: int, until: int) -> range:
        return range(self.last_ending(after) + 1, self.last_ending(until) + 1)

    def around(self, first: int, last: int) -> range:
        """The ids from the first extent that can hold `first` to the first that can hold `last`."""
        return range(self.last_ending(first) + 1, self.last_ending(last) + 2)

    def instants(self, after: int, until: int) -> Sequence[int]:
        return range(self.first_after(after), until + 1, self.period)

    def nexts(self, instants: Any) -> Any:
        """The first slide instant later than each, or than one.

        >>> SlideGrid(60).nexts(np.array([-1, 0, 59])).tolist()
        [0, 60, 60]
        """
        return self.origin + ((instants - self.origin) // self.period + 1) * self.period

    def lasts(self, instants: Ints) -> Ints:
        return np.asarray(self.origin + (instants - self.origin) // self.period * self.period)

    def within(self, low: Ints, high: Ints) -> tuple[Ints, Ints]:
        first, stop = (-(-(bound - self.origin) // self.period) for bound in (low, high))
        row, number = covered(first, stop)
        return row, self.origin + number * self.period


def refuse_too_many(answers: float) -> None:
    """An error where memory would be full of answers that say the same."""
    if answers > MOST:
        raise DataError(
            f"{answers:,.0f} answers are too many at once: one for each SLIDE of a gap without rows",
            code="too-many-answers",
            hint="write a longer SLIDE; or SELECT ISTREAM(…), to be told changes only",
        )


def covered(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, number) for every number in the range [low, high) of each row.

    >>> [found.tolist() for found in covered(np.array([0, 2]), np.array([2, 3]))]
    [[0, 0, 1], [0, 1, 2]]
    """
    counts = np.maximum(high - low, 0)
    refuse_too_many(counts.sum(dtype=np.float64))
    row = np.repeat(np.arange(len(low)), counts)
    since = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, low[row] + since


# ------------------------------------------------------------ windows


WindowId: TypeAlias = int | tuple[Any, ...]

#: why whole windows of counted rows are never left out
COUNTED = (
    "one of its windows is moved by rows, not by time: which window a row is in follows from its number,"
    " which it has only when all rows before it are there and in order, so that to leave windows out would"
    " save nothing"
)


@dataclass(frozen=True)
class WindowSpec(ABC):
    """A window, checked. `wattr` None is the stream's own windowing attribute."""

    wattr: str | None = field(default=None, kw_only=True)
    internal: bool = field(default=False, kw_only=True)

    #: a row's own attribute value decides when it is valid, whatever other rows there are
    is_logical: ClassVar[bool] = False
    #: why INTERNAL would mean nothing here
    never_internal: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        if self.internal and self.never_internal:
            raise QueryError(
                f"INTERNAL means nothing here: {self.never_internal}",
                code="window-internal",
                hint="leave INTERNAL out",
            )

    @property
    def grid(self) -> Grid | None:
        """The slide instants, if the window slides in time."""
        return None

    @property
    def is_periodic(self) -> bool:
        """There is a SLIDE: answers are reported per extent."""
        return self.grid is not None

    @property
    def slide(self) -> int | None:
        """The SLIDE, in ticks or in rows."""
        return self.grid.period if self.grid else None

    @property
    def reports_positions(self) -> bool:
        """Extents are reported by position, not at instants of a grid."""
        return False

    @property
    def is_refreshable(self) -> bool:
        """SLIDE can be taken for a mere refresh period of the window [t, t+r)."""
        return False

    def moving(self) -> WindowSpec:
        """The window without its refresh period: it moves at every instant."""
        raise TypeError(f"{type(self).__name__} has no refresh period")

    @property
    def has_bounds(self) -> bool:
        """What is reported has a window_start and a window_end."""
        return False

    @property
    def depth(self) -> int | None:
        """The most ticks from the first row of an extent to its report; None if there is no bound."""
        return None

    @property
    def reach_back(self) -> Instant:
        """How old a row can be that still matters: it is in an extent until the next one is reported."""
        return INFINITY if self.depth is None else self.depth + (self.grid.period if self.grid else 0)

    @property
    def typical_length(self) -> float | None:
        """For how many ticks back the window holds rows, on average; None if that is not known."""
        return self.depth

    @property
    def coverage(self) -> float:
        """The share of rows that are ever in the window: less than all where SLIDE leaves gaps."""
        return 1.0

    @property
    @abstractmethod
    def label(self) -> Label:
        """The update pattern of the edge above the window, and why."""

    @property
    def counts_arrivals(self) -> bool:
        """The window needs `row_num`, which only rows that arrive have."""
        return self.wattr == ROW_NUM

    @property
    def period(self) -> tuple[Hashable, int | None, int]:
        """(length, SLIDE, ORIGIN): windows of equal periods have the same extents."""
        return self._length, self.slide, self.grid.origin if isinstance(self.grid, SlideGrid) else 0

    @property
    def _length(self) -> Hashable:
        return type(self).__name__

    @abstractmethod
    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        """The ids of the extents that these rows may belong to, in order."""

    @abstractmethod
    def extent(self, w: Any, rows: Sequence[Element]) -> list[Element]:
        """Those of the rows that belong to the extent `w`."""

    def wids(self, row: Element, rows: Sequence[Element]) -> Sequence[WindowId]:
        """The ids of the extents that `row`, one of `rows`, belongs to."""
        return [w for w in self.windows(rows) if row in self.extent(w, rows)]

    @abstractmethod
    def intervals(self, rows: Sequence[Element]) -> list[Interval | None]:
        """For each row, when it is valid."""

    @property
    def needs_earlier(self) -> bool:
        """Whether `wids` of a row depends on rows that arrived before it (backward-context, WID 4)."""
        return False

    def later_context(self, row: Element) -> tuple[Instant, Instant] | None:
        """The values [lo, hi) with which a later arrival can change `wids` of the row; None if none can."""
        return None

    def first_after(self, instant: int) -> int:
        """The first slide instant later than `instant`."""
        return self._sliding().first_after(instant)

    def slide_instants(self, lo: int, hi: int) -> Sequence[int]:
        """The slide instants E with lo < E <= hi."""
        return self._sliding().instants(lo, hi)

    def bounds(self, end: int) -> tuple[Instant, int]:
        """(window_start, window_end) of the extent that is reported at the slide instant `end`."""
        self._sliding()
        return self._bounds(end)

    def bounds_of(self, ends: Ints) -> tuple[Ints | None, Ints]:
        """`bounds` of many slide instants; None where extents have no beginning."""
        start, end = self._bounds(ends)
        return (None if isinstance(start, float) else np.full(len(ends), start)), end

    def _bounds(self, end: Any) -> tuple[Any, Any]:
        """[start, end) of the extent that is current from `end` on, of one instant or of many."""
        return -INFINITY, end

    def held(self, at: int) -> tuple[Instant, Instant]:
        """The first and the last instant of rows that the window can hold at an instant."""
        start, end = self._bounds(self.grid.end(self.grid.last_ending(at)) if self.grid else at + 1)
        return start, end - 1

    def _sliding(self) -> Grid:
        if self.grid is None:
            raise QueryError(
                "this window does not slide in time, so it has no slide instants",
                code="window-slide",
                hint="give it a SLIDE",
            )
        return self.grid


class OwnInterval(WindowSpec):
    """A window in which a row's own values say when it is valid, whatever other rows there are."""

    is_logical = True

    @abstractmethod
    def spans(self, t: Any, lifetimes: Any = None) -> tuple[Any, Any]:
        """`span` of rows of many instants, with their LIFETIMEs where the window goes by these."""

    def span(self, row: Element) -> tuple[int, Instant] | None:
        """(vs, ve) of the row; possibly empty; None if it never counts."""
        return self.spans(row.t)

    def _entered(self, t: Any) -> Any:
        """When rows of some instants are first reported."""
        return t if self.grid is None else self.grid.nexts(t)

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        if self.grid is None:
            return changes([self.span(row) for row in rows])
        return sorted({w for row in rows for w in self.wids(row)})

    def extent(self, w: int, rows: Sequence[Element]) -> list[Element]:
        first, last = self.held(self.grid.end(w) if self.grid else w)
        return [row for row in rows if first <= row.t <= last]

    def wids(self, row: Element, rows: Sequence[Element] = ()) -> Sequence[WindowId]:
        span = self.span(row)
        if span is None or span[0] >= span[1]:
            return ()
        vs, ve = span
        stop = FOREVER + (self.grid.period if self.grid else 0) if ve == INFINITY else int(ve)
        return range(vs, stop) if self.grid is None else self.grid.ending_in(vs - 1, stop - 1)

    def interval(self, row: Element) -> Interval | None:
        """When this row is valid."""
        span = self.span(row)
        return visible(row, *span) if span else None

    def intervals(self, rows: Sequence[Element]) -> list[Interval | None]:
        return [self.interval(row) for row in rows]


def require_positive(part: str, value: int | None, most: int = FARTHEST) -> None:
    """A size is at least one tick or row, and not so large that sums with instants are out of reach."""
    if value is None:
        return
    if value <= 0:
        raise QueryError(
            f"{part} must be positive, not {value}",
            code="window-size",
            hint="a window of one instant is [NOW]; one that never ends is [UNBOUNDED]",
        )
    require_near(part, value, most)


def require_near(part: str, value: int | None, most: int = FARTHEST) -> None:
    """Sizes and points of windows lie where instants may."""
    if value is not None and abs(value) > most:
        raise QueryError(
            f"{part} {value} is out of reach: instants lie between -2^60 and 2^60",
            code="window-overflow",
            hint=f"at most {most}; a window that never ends is [UNBOUNDED]",
        )


def require_order(start: int | None, until: int | None) -> None:
    """A landmark window begins before it ends."""
    if start is not None and until is not None and start > until:
        raise QueryError(
            f"the window begins at {start}, after it ends at {until}",
            code="window-bounds",
            hint="FROM must not be later than UNTIL; both belong to the window",
        )


def is_between(start: int | None, instant: int, until: int | None) -> bool:
    """Whether a window FROM `start` UNTIL `until` holds rows of an instant."""
    return (start is None or start <= instant) and (until is None or instant <= until)


def changes(spans: Sequence[tuple[int, Instant] | None]) -> list[int]:
    """The instants at which a relation of rows with these intervals changes, in order.

    >>> changes([(1, 4), None, (2, INFINITY), (3, 3)])
    [1, 2, 4]
    """
    ends = {end for span in spans if span and span[0] < span[1] for end in span}
    return sorted(int(end) for end in ends if end != INFINITY)
