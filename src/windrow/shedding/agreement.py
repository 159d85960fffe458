"""Which queries have agreed to lose windows, and can; which rows are then needless.

A query agrees by MAX GAP, a stream by SHEDDABLE. What they agree to must have a meaning: the query gives one
answer per window of time, so that without some windows the rest is still right.

Queries that read the same streams drop the same slots, so that rows become needless for all of them at
once. A slot is as long as the lcm of the slides and holds whole windows of every query: (O + k*L, O +
(k+1)*L]. For this the windows of all of them must have the same phase at O. Where that is not so, or where
not even one such slot may be missing, each query has slots of its own: its windows are dropped after the
split, and rows seldom.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

from windrow.algebra import Emit, Scan, Stream, StreamWord, Subquery, Window
from windrow.shedding.phases import Cycles, Phases
from windrow.shedding.rules import CannotShed, WinDrop, early_share, fan_out
from windrow.windows.calendar import CalendarWindow
from windrow.windows.domain import FOREVER
from windrow.windows.spec import COUNTED, SlideGrid

# ------------------------------------------------------------ reach
#
# Which rows a final window depends on. The extent [E-r, E) of the outermost window holds answers of the level
# below; each of those has an extent of its own, and so on down to the stream. Answers of a periodic level
# about the extent that ends at E1 are rows of the instant E1-1:
#
#     outer            [--------------)E          RANGE 3, SLIDE 3
#     inner ends           |     |    |           RANGE 3, SLIDE 2
#     rows        [...................)           at most 3 + 3 - 1 ticks
#
# `first` and `end` follow the ends of the inner windows as they lie, so they may be narrower than the paper's
# worst case, which is `width`. Both grow with E, so a run of windows depends on one interval of rows.


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


_CALENDAR = "one of its windows goes by a calendar, whose lengths differ"


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
    spec = window.spec
    if isinstance(spec, CalendarWindow):
        raise CannotShed("calendar", _CALENDAR)
    if spec.depth is not None:
        return spec.depth
    if spec.is_logical:
        raise CannotShed(
            "unbounded-window", "a row stays in one of its windows for ever, or for as long as it says"
        )
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


# ------------------------------------------------------------ agreement


@dataclass(frozen=True, slots=True)
class SheddableQuery:
    """A standing query, as far as shedding is concerned."""

    name: str
    plan: Emit
    max_gap: int | None = None
    priority: int = 0

    @property
    def streams(self) -> Mapping[str, Stream]:
        """The streams it reads, nested queries included."""
        scans = [node for node in self.plan.walk() if isinstance(node, Scan)]
        return {scan.stream.name: scan.stream for scan in scans}


@dataclass(frozen=True, slots=True)
class Agreed:
    """A query that may lose windows. `reach` says which rows each of them depends on."""

    name: str
    grid: SlideGrid
    reach: tuple[Reach, ...]
    max_gap: int
    priority: int = 0
    #: of the streams it reads, those whose rows may be dropped
    sheddable: frozenset[str] = frozenset()

    @property
    def streams(self) -> frozenset[str]:
        """The streams it reads."""
        return frozenset(way.stream for way in self.reach)

    @property
    def drop(self) -> WinDrop:
        """The WinDrop of this query alone: pipeline rule, worst case over its scans."""
        return WinDrop(max(way.width for way in self.reach), self.grid.period, self.max_gap)

    @property
    def arcs(self) -> tuple[WinDrop, ...]:
        """The WinDrop at each place of the query: before its lowest level, before the one over that, and so
        on. A query over several streams, or one of them twice, has the first only.

        The further up, the shorter is what a window depends on, so that a gap leaves something needless there
        that leaves no needless row at the input (the paper's section 3.5).
        """
        if len(self.reach) != 1:
            return (self.drop,)
        (way,) = self.reach
        widths = [replace(way, inner=way.inner[:depth]).width for depth in range(len(way.inner), -1, -1)]
        return tuple(WinDrop(width, self.grid.period, self.max_gap) for width in widths)

    def seen_from(self, level: int) -> Agreed:
        """The query as it depends on the answers of one of its levels, from the lowest, instead of rows."""
        (way,) = self.reach
        return replace(self, reach=(replace(way, inner=way.inner[: len(way.inner) - 1 - level]),))

    def saved(self, seconds: Sequence[float], since: int = 0) -> tuple[float, int]:
        """The share of the work that goes where a gap saves most, and the place, from `since` on: 0 is the
        input. `seconds` are those of each level, as they were measured; as long as they were not, nothing
        is known to go.

        >>> from windrow.shedding.agreement import ReachLevel
        >>> from windrow.windows.spec import SlideGrid
        >>> grids = SlideGrid(10), SlideGrid(100)
        >>> inner = ReachLevel(100, grids[0], (grids[0],))
        >>> query = Agreed("q", grids[1], (Reach("s", 100, (inner,)),), max_gap=1)
        >>> [drop.early_ticks for drop in query.arcs], query.saved([1.0, 3.0])
        ([1, 100], (0.75, 1))
        """
        whole, found = sum(seconds), (0.0, since)
        for place, drop in enumerate(self.arcs) if whole and len(seconds) == len(self.arcs) else ():
            share = min(1.0, early_share(drop, 1.0)) * sum(seconds[place:]) / whole
            found = max(found, (share, place)) if place >= since else found
        return found

    def first(self, stream: str, end: int) -> int | None:
        """The first row of a stream that the window ending at `end` depends on."""
        return min((way.first(end) for way in self.reach if way.stream == stream), default=None)

    def end(self, stream: str, end: int) -> int | None:
        """One past the last row of a stream that the window ending at `end` depends on."""
        return max((way.end(end) for way in self.reach if way.stream == stream), default=None)


def agree(query: SheddableQuery) -> Agreed:
    """The terms on which a query sheds; `CannotShed` with the reason if it does not."""
    if query.max_gap is None or query.max_gap < 1:
        raise CannotShed("no-max-gap", "it has no MAX GAP: no window of it may be missing")
    sheddable = frozenset(name for name, stream in query.streams.items() if stream.sheddable)
    if not sheddable:
        raise CannotShed("not-sheddable", "no stream it reads is SHEDDABLE")
    return Agreed(
        query.name, final_grid(query.plan), reaches(query.plan), query.max_gap, query.priority, sheddable
    )


def final_grid(emit: Emit) -> SlideGrid:
    """The instants at which a query answers, one window each."""
    if any(not leaf.spec.is_logical for leaf in emit.leaves):
        raise CannotShed("count-based", COUNTED)
    per_window = emit.is_periodic and emit.meaning is StreamWord.RSTREAM and not emit.is_internal
    if not per_window:
        raise CannotShed("not-per-window", "it does not give one answer per window")
    grids = [leaf.spec.grid for leaf in emit.leaves if isinstance(leaf.spec.grid, SlideGrid)]
    if len(grids) < len(emit.leaves):
        raise CannotShed("calendar", _CALENDAR)
    if any(grid.period != grids[0].period for grid in grids):
        raise CannotShed(
            "different-slides", "its windows slide differently, so its answers are of different kinds"
        )
    if any((grid.origin - grids[0].origin) % grid.period for grid in grids):
        raise CannotShed("different-origins", "its windows have different ORIGINs")
    return grids[0]


# ------------------------------------------------------------ droppable
#
# The rows that nobody needs: every window that depends on them, in every query, is dropped. A query does not
# need what lies between the window kept before a gap and the one kept after it:
#
#     kept window before      ----------)E
#     dropped windows            ----------)
#                                    ----------)
#     kept window after                         ----------)E'
#     needless rows                     [-------)
#
# That is a handful of intervals of WATTR, [begin, end), whatever the number of rows.


#: so many intervals of rows are told to a scan; rows after them are kept
MOST_INTERVALS = 32


@dataclass(frozen=True, slots=True, order=True)
class DropRange:
    """The rows with begin <= WATTR < end."""

    begin: int
    end: int

    def __contains__(self, instant: int) -> bool:
        return self.begin <= instant < self.end


@dataclass(frozen=True)
class Unread:
    """The windows of a level whose answers no window over it needs, by where they end: such an answer is a
    row of the instant before."""

    intervals: tuple[DropRange, ...]

    def __call__(self, end: int) -> bool:
        return any(end - 1 in each for each in self.intervals)


def unread(query: Agreed, phases: Phases, begin: int, end: int) -> tuple[Unread | None, ...]:
    """For each level of a query but the last, which of its windows are not needed that end in (begin, end];
    None where a gap never leaves any."""
    stream = query.reach[0].stream
    return tuple(
        Unread(tuple(needless(query.seen_from(level), stream, phases, begin, end)))
        if drop.early_ticks
        else None
        for level, drop in enumerate(query.arcs[1:])
    )


def needless(query: Agreed, stream: str, phases: Phases, begin: int, end: int) -> Iterator[DropRange]:
    """The rows in [begin, end) of a stream that a query does not need, although its windows cover them."""
    width = max(way.width for way in query.reach)
    for run in phases.runs(begin, min(end + width + query.grid.period, FOREVER)):
        # the rows between the last window kept before the run, and the first one kept after it
        low = query.end(stream, _last(query.grid, run.after))
        high = query.first(stream, query.grid.first_after(run.until))
        assert low is not None
        assert high is not None
        if max(low, begin) < min(high, end):
            yield DropRange(max(low, begin), min(high, end))


def droppable(
    stream: str,
    readers: Iterable[str],
    agreed: Mapping[str, Agreed],
    phases: Mapping[str, Phases],
    begin: int,
    end: int,
) -> list[DropRange]:
    """The rows in [begin, end) of a stream that no reader needs; none if a reader has not agreed to lose any.

    A stream nobody reads keeps its rows: nobody has agreed.
    """
    kept: list[DropRange] | None = None
    for name in readers:
        query = agreed.get(name)
        if query is None or stream not in query.sheddable or name not in phases:
            return []
        own = needless(query, stream, phases[name], begin, end)
        kept = list(islice(own, MOST_INTERVALS)) if kept is None else overlap(kept, own)
        if not kept:
            return []
    return (kept or [])[:MOST_INTERVALS]


def overlap(left: Sequence[DropRange], right: Iterable[DropRange]) -> list[DropRange]:
    """What is in both of two lists of intervals, each in order and without overlaps.

    >>> overlap([DropRange(0, 5), DropRange(8, 12)], [DropRange(3, 9), DropRange(11, 20)])
    [DropRange(begin=3, end=5), DropRange(begin=8, end=9), DropRange(begin=11, end=12)]
    """
    found: list[DropRange] = []
    place = 0
    for other in right:
        while place < len(left) and left[place].end <= other.begin:
            place += 1
        at = place
        while at < len(left) and left[at].begin < other.end:
            found.append(DropRange(max(left[at].begin, other.begin), min(left[at].end, other.end)))
            at += 1
        if place == len(left):
            break
    return found


# ------------------------------------------------------------ groups of queries


@dataclass(frozen=True)
class SheddingGroup:
    """Queries that drop the same slots."""

    members: tuple[Agreed, ...]

    @cached_property
    def drop(self) -> WinDrop:
        """The WinDrop before all of them: fan-out rule."""
        return fan_out(*(member.drop for member in self.members))

    @cached_property
    def cycles(self) -> Cycles:
        """Their common slots; `CannotShed` if there are none."""
        return Cycles(common_origin(self.members), self.drop.slide, self.drop.batch)

    @property
    def name(self) -> str:
        """The names of its queries."""
        return ", ".join(member.name for member in self.members)


@dataclass(frozen=True)
class SheddingGroups:
    """All queries sorted out: the groups that shed, the queries that do not, and why things are apart."""

    groups: tuple[SheddingGroup, ...] = ()
    #: for each query that loses nothing, the reason
    refused: tuple[tuple[str, CannotShed], ...] = ()
    #: for each set of queries that could not be one group, the reason
    apart: tuple[tuple[str, CannotShed], ...] = ()

    @cached_property
    def agreed(self) -> dict[str, Agreed]:
        """The queries that may lose windows, by name."""
        return {member.name: member for group in self.groups for member in group.members}

    def group_of(self, name: str) -> SheddingGroup:
        """The group a query is in."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, SheddingGroup]:
        return {member.name: group for group in self.groups for member in group.members}


def share(queries: Iterable[SheddableQuery]) -> SheddingGroups:
    """The groups of these queries: those connected through sheddable streams are one, where they can be."""
    agreed: list[Agreed] = []
    refused: list[tuple[str, CannotShed]] = []
    for query in queries:
        try:
            agreed.append(agree(query))
        except CannotShed as reason:
            refused.append((query.name, reason))
    groups: list[SheddingGroup] = []
    apart: list[tuple[str, CannotShed]] = []
    for members in _connected(agreed):
        group = SheddingGroup(members)
        try:
            check(group)
            groups.append(group)
        except CannotShed as reason:
            apart.append((group.name, reason))
            groups += [SheddingGroup((member,)) for member in members]
    return SheddingGroups(tuple(groups), tuple(refused), tuple(apart))


def check(group: SheddingGroup) -> None:
    """Raise `CannotShed` unless the queries of a group have common slots, one of which may be missing."""
    common_origin(group.members)
    if group.drop.batch < 1:
        raise CannotShed(
            "small-max-gap", "a common slot holds more windows than MAX GAP allows to be missing"
        )


def common_origin(members: Sequence[Agreed]) -> int:
    """An instant at which a window of each query ends."""
    for candidate in members:
        origin = candidate.grid.origin
        if all((member.grid.origin - origin) % member.grid.period == 0 for member in members):
            return origin
    raise CannotShed("different-origins", "the windows of these queries have different ORIGINs")


def _connected(queries: Sequence[Agreed]) -> list[tuple[Agreed, ...]]:
    """Sets of queries that have to do with each other through streams whose rows may be dropped."""
    found: list[list[Agreed]] = []
    for query in queries:
        related = [s for s in found if any(query.sheddable & other.sheddable for other in s)]
        found = [s for s in found if s not in related]
        found.append([*(other for s in related for other in s), query])
    order = {query.name: place for place, query in enumerate(queries)}
    return [tuple(sorted(each, key=lambda query: order[query.name])) for each in found]
