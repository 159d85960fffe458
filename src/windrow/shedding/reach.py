"""Which rows a final window depends on.

The extent [E-r, E) of the outermost window holds answers of the level below; each of those has an extent of
its own, and so on down to the stream. Answers of a periodic level about the extent that ends at E1 are rows
of the instant E1-1:

    outer            [--------------)E          RANGE 3, SLIDE 3
    inner ends           |     |    |           RANGE 3, SLIDE 2
    rows        [...................)           at most 3 + 3 - 1 ticks

`first` and `end` follow the ends of the inner windows as they lie, so they may be narrower than the paper's
worst case, which is `width`. Both grow with E, so a run of windows depends on one interval of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.algebra.plan import Emit, Scan, StreamWord, Subquery, Window
from windrow.shedding.rules import CannotShed
from windrow.windows.calendar import CalendarWindow
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.grid import SlideGrid
from windrow.windows.ranges import LaggedWindow, NowWindow, RangeWindow
from windrow.windows.spec import COUNTED


@dataclass(frozen=True, slots=True)
class ReachLevel:
    """One window on the way from an answer to a stream.

    `reports` are the slide instants at which its query answers; empty if it answers at any instant.
    `looks_back` says that an answer is a change since the report before.
    """

    range: int
    grid: SlideGrid | None
    reports: tuple[SlideGrid, ...]
    looks_back: bool = False

    @property
    def width(self) -> int:
        """The most ticks of rows that one answer depends on, however the grids lie."""
        if not self.reports:
            return self.range + 1 + (self.grid.period if self.grid else 0)
        off_grid = self.grid is None or any(grid != self.grid for grid in self.reports)
        late = self.grid.period - 1 if self.grid is not None and off_grid else 0
        return self.range + late + (min(grid.period for grid in self.reports) if self.looks_back else 0)

    def before(self, first: int) -> int:
        """The first row needed for the answers that are rows of the instant `first` and later."""
        if not self.reports:
            return self._begin(first - 1) if self.grid else first - self.range
        report = min(grid.first_after(first) for grid in self.reports)
        if self.looks_back:
            report = max(_last(grid, report - 1) for grid in self.reports)
        return self._begin(report)

    def after(self, end: int) -> int:
        """The end of the rows needed for the answers that are rows of instants before `end`."""
        if not self.reports:
            return _last(self.grid, end - 1) if self.grid else end
        report = max(_last(grid, end) for grid in self.reports)
        return _last(self.grid, report) if self.grid else report

    def _begin(self, instant: int) -> int:
        """Where the extent begins that is current at an instant."""
        return (_last(self.grid, instant) if self.grid else instant) - self.range


@dataclass(frozen=True, slots=True)
class Reach:
    """The way from a query's windows to one scan of a stream; inner levels follow outer ones.

    >>> minutes, hours = SlideGrid(60), SlideGrid(3600)
    >>> reach = Reach("s", 7200, (ReachLevel(300, minutes, (minutes,)),))
    >>> reach.first(7200), reach.end(7200), reach.width
    (-240, 7200, 7499)
    """

    stream: str
    range: int
    inner: tuple[ReachLevel, ...] = ()

    def first(self, end: int) -> int:
        """The first row that the window ending at `end` depends on."""
        begin = end - self.range
        for level in self.inner:
            begin = level.before(begin)
        return begin

    def end(self, end: int) -> int:
        """One past the last row that the window ending at `end` depends on."""
        for level in self.inner:
            end = level.after(end)
        return end

    @property
    def width(self) -> int:
        """The paper's window: the sum of all ranges less one tick for each inner one."""
        return self.range + sum(level.width - 1 for level in self.inner)


def reaches(emit: Emit) -> tuple[Reach, ...]:
    """The ways from a query to each scan below it; `CannotShed` if one has no bound."""
    return tuple(
        Reach(stream, _range(leaf), levels) for leaf in emit.leaves for stream, levels in _origins(leaf)
    )


def _origins(window: Window) -> Iterator[tuple[str, tuple[ReachLevel, ...]]]:
    for origin in window.origins:
        if isinstance(origin, Scan):
            _on_wattr(window, origin)
            yield origin.stream.name, ()
        elif isinstance(origin, Subquery):
            yield from _below(origin.query)


def _below(emit: Emit) -> Iterator[tuple[str, tuple[ReachLevel, ...]]]:
    if emit.is_internal or emit.word.restores:
        raise CannotShed("not-per-window", "a nested query keeps results longer than its windows")
    grids = tuple(leaf.spec.grid for leaf in emit.leaves if isinstance(leaf.spec.grid, SlideGrid))
    reports = grids if len(grids) == len(emit.leaves) else ()
    looks_back = emit.meaning is not StreamWord.RSTREAM
    for leaf in emit.leaves:
        grid = leaf.spec.grid if isinstance(leaf.spec.grid, SlideGrid) else None
        level = ReachLevel(_range(leaf), grid, reports, looks_back)
        for stream, deeper in _origins(leaf):
            yield stream, (level, *deeper)


def _range(window: Window) -> int:
    match window.spec:
        case RangeWindow(range=size):
            return size
        case LaggedWindow(range=size, lag=lag):
            return size + lag
        case CalendarWindow():
            raise CannotShed("calendar", "one of its windows goes by a calendar, whose lengths differ")
        case CumulateWindow(size=size):
            return size
        case NowWindow():
            return 1
        case spec if spec.is_logical:
            raise CannotShed(
                "unbounded-window", "a row stays in one of its windows for ever, or for as long as it says"
            )
        case _:
            raise CannotShed("count-based", COUNTED)


def _on_wattr(window: Window, scan: Scan) -> None:
    attribute = window.attribute_of(scan)
    if window.domain.resolution is not None:
        raise CannotShed("resolution", f"`{attribute}` is a DOUBLE or a DECIMAL, counted by its RESOLUTION")
    if attribute != scan.stream.wattr or attribute not in scan.stream.schema:
        raise CannotShed(
            "other-attribute",
            f"one of its windows is on `{attribute}`, which is no column, or not the WATTR,"
            f" of stream `{scan.stream.name}`",
        )


def _last(grid: SlideGrid, instant: int) -> int:
    """The last slide instant at or before an instant."""
    return grid.end(grid.last_ending(instant))
