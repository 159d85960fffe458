"""When monitoring queries are refreshed: those that say EVERY, and perhaps AT MOST.

Such a query is not answered for every window, but as often as it asks, each time about the newest window. A
scheduler counts the intervals that are added to the synopses of a stream and a grouping, or to the state of a
query that shares nothing: that one is held back until its turn, and moves on in one step, as if one large
batch had come. What refreshes cost is measured: where going with others makes it cheaper, some are refreshed
more often than they ask for (hybrid scheduling: thesis, 8.4.4).

Where an epoch has a time limit and there is more to do than it allows, those that have waited longest against
their period go first, so that periods get longer for all alike, but AT MOST goes before everything. Nothing
is lost by that: what a query has not told it can still tell of the next window.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import astuple, dataclass, field, replace
from math import gcd
from typing import Any

from windrow.algebra.operators import Except, Exists, Union
from windrow.algebra.plan import Plan, Subquery, Window
from windrow.engine.records import QueryRecord
from windrow.errors import QueryError
from windrow.kernels.clock import Clock, PaneClock
from windrow.kernels.panes.query import Cut
from windrow.kernels.relational.signed_rows import FOREVER
from windrow.kernels.shared.shared_state import SharedState, WindowRequest
from windrow.physical.units import GeneralUnit, SlidingUnit, Unit
from windrow.sharing import schedule as cycles
from windrow.sharing.schedule import Measured, ScheduledQuery, Scheduler, Task
from windrow.windows.domain import INFINITY, Element, Instant
from windrow.windows.spec import Grid, OwnInterval, SlideGrid, WindowSpec


@dataclass(frozen=True)
class RefreshTiming:
    """How often a query is refreshed, in ticks: as it asks, as it is on the average, and how late it is."""

    asked: int
    had: float | None
    late: float


@dataclass(frozen=True)
class RefreshGroup:
    """Monitoring queries that are answered together, as their clock moves; an interval is `update` ticks."""

    name: str
    update: int
    clock: PaneClock
    queries: Mapping[str, ScheduledQuery]
    #: those that have a new window to tell of
    ready: Collection[str]
    #: queries of one kind have new windows at the same instants
    kinds: Mapping[str, Hashable] = field(default_factory=dict)
    #: what is answered in any case: in the long run, and now
    fixed: Sequence[Task] = ()
    certain: Sequence[ScheduledQuery] = ()


@dataclass(frozen=True)
class RefreshHistory:
    """What is known of a query's refreshes, in ticks: how long ago the last and the first one were, how many
    there were and how many of them were due and late, how late in all and at the worst."""

    since: int = 0
    elapsed: int = 0
    refreshes: int = 0
    due: int = 0
    late: int = 0
    total: int = 0
    greatest: int = 0

    @property
    def had(self) -> float | None:
        """The time between two refreshes, on the average."""
        return (self.elapsed - self.since) / (self.refreshes - 1) if self.refreshes > 1 else None


@dataclass
class _Schedule:
    """The refreshes of one group. Each query is a task of its own: those that are due go together anyway."""

    scheduler: Scheduler
    update: int
    queries: Mapping[str, ScheduledQuery]
    fixed: Sequence[Task]
    #: how many measurements there will have been when tasks are made anew
    renewed: int
    #: the updates since each query's first refresh, when `now` was 0
    seen: dict[str, int] = field(default_factory=dict)
    #: tasks with the same number are done together where possible
    joint: dict[str, int] = field(default_factory=dict)

    def memory(self, query: str, *, waiting: bool = False) -> RefreshHistory:
        """What is known of a query; if `waiting`, with the refresh that it waits for now."""
        scheduler, update = self.scheduler, self.update
        known = scheduler.lateness(query) if waiting else scheduler.refreshed(query)
        ticks = scheduler.since(query) * update, (scheduler.now + self.seen[query]) * update
        counts = known.refreshes, known.due, known.late
        return RefreshHistory(*ticks, *counts, known.total * update, known.greatest * update)

    def due(self, ready: Collection[str]) -> list[Task]:
        """What is due, and what goes with it though it would have time: it is done together from then on."""
        found = self.scheduler.due(ready)
        known, joined = {task.name for task in found}, {self.joint[task.name] for task in found}
        others = [t for t in self.scheduler.tasks if self.joint[t.name] in joined and t.name not in known]
        able = [task for task in others if task.queries[0].name in ready]
        return [*found, *(task for task in able if self.scheduler.since(task.queries[0].name) > 0)]

    def arrange(self, found: Sequence[Task]) -> None:
        """A task for each query, with the period of those that it goes with."""
        tasks = [Task(each.group, (query,), each.period) for each in found for query in each.queries]
        numbers = [number for number, each in enumerate(found) for _ in each.queries]
        self.joint = {task.name: number for task, number in zip(tasks, numbers, strict=True)}
        self.scheduler.arrange(tasks)

    def done(self, task: Task) -> None:
        self.scheduler.done([task])
        for query in task.queries:
            if self.scheduler.refreshed(query.name).refreshes == 1:
                self.seen[query.name] = -self.scheduler.now

    def remember(self, query: str, memory: RefreshHistory) -> None:
        """Go on with what is known of a query."""
        update = self.update
        counts = memory.refreshes, memory.due, memory.late
        late = cycles.Lateness(*counts, memory.total // update, memory.greatest // update)
        self.scheduler.remember(query, memory.since // update, late)
        self.seen[query] = memory.elapsed // update - self.scheduler.now


class Refreshes:
    """The refreshes of all monitoring queries of an engine."""

    def __init__(self) -> None:
        self._schedules: dict[str, _Schedule] = {}
        self._measured: dict[str, Measured] = {}
        #: of queries whose group is not there, or not yet
        self._remembered: dict[str, RefreshHistory] = {}

    @classmethod
    def of(cls, decisions: Mapping[str, Any]) -> Refreshes:
        """As the last commit has it."""
        found = cls()
        stored = decisions.get("refreshes", {})
        found._remembered = {query: RefreshHistory(*numbers) for query, numbers in stored.items()}
        return found

    def copy(self) -> Refreshes:
        """The same, to go back to if an epoch fails."""
        if self._schedules:
            return deepcopy(self)
        found = copy(self)  # what was measured is only for groups that have schedules
        found._schedules, found._measured = {}, dict(self._measured)
        return found

    def decisions(self, known: Collection[str]) -> dict[str, Any]:
        """For the manifest: what is known of these queries."""
        self._remembered = {query: each for query, each in self._remembered.items() if query in known}
        found = dict(self._remembered)
        for schedule in self._schedules.values():
            found |= {query: schedule.memory(query) for query in schedule.queries if query in known}
        numbers = {query: list(astuple(known)) for query, known in found.items()}
        return {"refreshes": numbers} if numbers else {}

    def due(self, groups: Iterable[RefreshGroup], seconds: float | None) -> set[str]:
        """Who is refreshed now, all groups together taking so many seconds; None: there is no hurry."""
        here = {group.name: group for group in groups}
        for gone in [name for name in self._schedules if name not in here]:
            self._forget(self._schedules.pop(gone))
            self._measured.pop(gone, None)
        waiting: list[tuple[tuple[Any, ...], str, Task]] = []
        for name, group in here.items():
            schedule = self._moved(group)
            waiting += [(_urgency(t, schedule.scheduler), name, t) for t in schedule.due(group.ready)]
        spending = {name: _Spending(group, self._measures(name)) for name, group in here.items()}
        chosen: set[str] = set()
        for _, name, task in sorted(waiting, key=lambda each: each[0]):
            spent = sum(each.seconds for each in spending.values())
            if chosen and seconds is not None and spent + spending[name].more(task) > seconds:
                break
            spending[name].add(task)
            self._schedules[name].done(task)
            chosen |= {query.name for query in task.queries}
        return chosen

    def measured(self, group: str, longest: int, answers: int, seconds: float) -> None:
        """So many queries of a group, with windows of at most so many ticks, took so much time."""
        if group in self._schedules and answers:
            self._measures(group).add(longest // self._schedules[group].update, answers, seconds)

    def timing(self, record: QueryRecord) -> RefreshTiming | None:
        """How a monitoring query does; None for all others."""
        if record.query.every is None:
            return None
        known = waiting = self._remembered.get(record.id, RefreshHistory())
        for schedule in self._schedules.values():
            if record.id in schedule.queries:
                known, waiting = (schedule.memory(record.id, waiting=each) for each in (False, True))
        late = waiting.total / waiting.refreshes if waiting.refreshes else 0.0
        return RefreshTiming(record.query.every, known.had, late)

    def period(self, query: str) -> int | None:
        """After how many ticks a query is refreshed, if there is time; None if it is not known yet."""
        for schedule in self._schedules.values():
            for task in schedule.scheduler.tasks:
                if query in {each.name for each in task.queries}:
                    return task.period * schedule.update
        return None

    def _measures(self, group: str) -> Measured:
        return self._measured.setdefault(group, Measured())

    def _moved(self, group: RefreshGroup) -> _Schedule:
        """The schedule of a group, after what its clock has done."""
        schedule, clock = self._arranged(group), group.clock
        if abs(clock.before) == INFINITY or abs(clock.now) == INFINITY:
            schedule.scheduler.updated()
            schedule.scheduler.everything_is_due()
        else:
            schedule.scheduler.updated(int(clock.now) // group.update - int(clock.before) // group.update)
        return schedule

    def _arranged(self, group: RefreshGroup) -> _Schedule:
        known, measured = self._schedules.get(group.name), self._measures(group.name)
        if known is not None and known.update != group.update:
            self._forget(known)
            known = None
        if known is None:
            known = _Schedule(Scheduler(), group.update, {}, (), 0)
        if known.queries != group.queries or known.fixed != group.fixed or measured.count >= known.renewed:
            self._forget(known, [query for query in known.queries if query not in group.queries])
            known.queries, known.fixed, known.renewed = group.queries, group.fixed, max(1, 2 * measured.count)
            # which queries are best refreshed together, and how often
            queries, fixed = {group.name: list(group.queries.values())}, {group.name: group.fixed}
            kind = group.kinds.get
            known.arrange(cycles.hybrid(queries, measured.costs, fixed=fixed, kind=lambda q: kind(q.name)))
        self._schedules[group.name] = known
        for query in group.queries:
            if query in self._remembered:
                known.remember(query, self._remembered.pop(query))
            known.seen.setdefault(query, -known.scheduler.now)
        return known

    def _forget(self, schedule: _Schedule, queries: Iterable[str] | None = None) -> None:
        """Queries leave a schedule, for another one perhaps."""
        for query in list(schedule.queries) if queries is None else queries:
            self._remembered[query] = schedule.memory(query)
            schedule.seen.pop(query)


class _Spending:
    """What a group is going to cost in this epoch."""

    def __init__(self, group: RefreshGroup, measured: Measured) -> None:
        self.costs = measured.costs
        self.longest, self.answers = max((q.length for q in group.certain), default=0), len(group.certain)

    @property
    def seconds(self) -> float:
        if not self.answers:
            return 0.0
        costs = self.costs
        return costs.start + costs.read * max(0, self.longest - 1) + costs.answer * self.answers

    def more(self, task: Task) -> float:
        """What a task would cost besides."""
        both = copy(self)
        both.add(task)
        return both.seconds - self.seconds

    def add(self, task: Task) -> None:
        self.longest, self.answers = max(self.longest, task.length), self.answers + len(task.queries)


def _urgency(task: Task, scheduler: Scheduler) -> tuple[Any, ...]:
    """Who waits too long, then who has waited longest against its period; of those that have waited alike the
    one of higher priority, then the one that was late more than others so far."""
    (query,) = task.queries
    late = scheduler.left(task) / task.period
    before = scheduler.refreshed(query.name).average / query.period
    return not scheduler.is_overdue(task), late, -task.priority, -before, task.name


@dataclass(frozen=True)
class Without:
    """Leaves out all windows but one, or all; and those that something else leaves out."""

    end: int | None
    other: Callable[[int], bool] | None = None

    def __call__(self, end: int) -> bool:
        return end != self.end or (self.other is not None and self.other(end))


def only(end: int | None) -> SlideGrid:
    """One instant of all, or one that never comes."""
    return SlideGrid(FOREVER, FOREVER // 2 if end is None else end)


def both(
    one: Callable[[int], bool] | None, other: Callable[[int], bool] | None
) -> Callable[[int], bool] | None:
    """What leaves out what either does."""
    return replace(one, other=other) if isinstance(one, Without) else other


def group_of(
    shared_state: SharedState, records: Sequence[tuple[QueryRecord, WindowRequest]], clock: PaneClock
) -> RefreshGroup | None:
    """The monitoring queries of a shared state; None if there are none."""
    monitoring = [(record, asker) for record, asker in records if record.query.every is not None]
    if not monitoring:
        return None
    update = gcd(*(pane_grid.width for pane_grid in shared_state.pane_grids))
    exact = [(record, asker) for record, asker in records if record.query.every is None]
    certain = {record.id: _query(record, asker.cut, update) for record, asker in exact}
    return RefreshGroup(
        shared_state.name,
        update,
        clock,
        {record.id: _query(record, asker.cut, update) for record, asker in monitoring},
        {record.id for record, asker in monitoring if asker.is_due(clock)},
        {record.id: (asker.slide, asker.origin % asker.slide) for record, asker in monitoring},
        tuple(cycles.by_period({shared_state.name: list(certain.values())})),
        tuple(certain[record.id] for record, asker in exact if asker.is_due(clock)),
    )


def group_by_itself(record: QueryRecord, clock: PaneClock | Clock, held: PaneClock | Clock) -> RefreshGroup:
    """A monitoring query that shares nothing; `held` is its clock since it was last refreshed."""
    unit = record.bundle.unit
    if isinstance(unit, SlidingUnit):
        assert isinstance(clock, PaneClock)
        assert isinstance(held, PaneClock)
        cut = unit.program.query.cut
        update = cut.slide if cut.range is None else gcd(cut.range, cut.slide)
        ready = {record.id} if held.is_due(cut) else set()
        return RefreshGroup(record.id, update, clock, {record.id: _query(record, cut, update)}, ready)
    grids = _grids(unit)
    update, slide = gcd(*(grid.period for grid in grids)), min(grid.period for grid in grids)
    before, now = _instant(held.before), _instant(held.now)
    is_over = abs(before) == abs(now) == INFINITY
    due = now != before and (is_over or _newest(grids, now) > _newest(grids, before))
    moved = PaneClock(_instant(clock.before), _instant(clock.now))
    asked = _asked(record, unit.memory or slide, slide, update)
    return RefreshGroup(record.id, update, moved, {record.id: asked}, {record.id} if due else set())


def newest(record: QueryRecord, now: float, greatest: Mapping[str, int | None]) -> int | None:
    """Where the newest window ends that is over; after the end of the streams, whose `greatest` moments are
    known, the last one of any rows."""
    unit, now = record.bundle.unit, _instant(now)
    if not isinstance(unit, SlidingUnit):
        if now == INFINITY:
            return _last_of(unit.program.emit.input, greatest)
        return None if now == -INFINITY else int(_newest(_grids(unit), now))
    levels = unit.program.levels
    if now != INFINITY:
        cut = levels[-1].query.cut
        due = cut.due(now)
        return None if abs(due) == INFINITY else cut.origin + (int(due) + 1) * cut.slide
    (at,) = (greatest[name] for name in record.streams)
    for cut in (level.query.cut for level in levels):
        if at is not None:  # of windows that have no beginning, the first that it is in
            length = cut.slide if cut.range is None else cut.range
            at = cut.origin + (at + length - cut.origin) // cut.slide * cut.slide
    return at


def _instant(moment: float) -> Instant:
    """A moment of any clock."""
    return moment if abs(moment) < FOREVER else INFINITY if moment > 0 else -INFINITY


def _grids(unit: GeneralUnit) -> list[Grid]:
    return [leaf.spec.grid for leaf in unit.program.emit.leaves if leaf.spec.grid is not None]


def _newest(grids: Iterable[Grid], now: Instant) -> Instant:
    """The last instant of any grid that has come."""
    return now if abs(now) == INFINITY else max(grid.end(grid.last_ending(int(now))) for grid in grids)


def _last_of(node: Plan, greatest: Mapping[str, int | None]) -> int | None:
    """The end of the last window in which there can be results, after the last rows of all streams."""
    if isinstance(node, Window):
        moments = []
        for each in node.origins:
            if isinstance(each, Subquery):
                end = _last_of(each.query.input, greatest)
                moments += [end - 1] if end is not None else []
            elif (moment := greatest[each.stream.name]) is not None:
                moments.append(moment)
        return _last_within(node.spec, max(moments)) if moments else None
    ends = [_last_of(child, greatest) for child in node.children]
    if isinstance(node, Except) or (isinstance(node, Exists) and node.negated):
        return ends[0]
    known = [end for end in ends if end is not None]
    if isinstance(node, Union):
        return max(known, default=None)
    return min(known) if known and len(known) == len(ends) else None


def _last_within(spec: WindowSpec, moment: int) -> int | None:
    """The end of the last window that a row is in; of those from which it never goes, the first."""
    assert spec.grid is not None
    if not isinstance(spec, OwnInterval):
        return spec.grid.first_after(moment)
    span = spec.span(Element(moment))
    if span is None:
        return None
    begin, end = span
    return begin if end == INFINITY else spec.grid.end(spec.grid.last_ending(int(end) - 1))


def check_every(record: QueryRecord) -> None:
    """EVERY is about windows that end, one after the other, for all groups at once."""
    if record.query.every is None or record.shares:
        return
    if (reason := _why_no_newest(record.bundle.unit)) is not None:
        raise QueryError(
            f"query `{record.query.name}` cannot be refreshed EVERY so often: {reason}",
            code="bad-every",
            hint="leave EVERY out: the query is then answered whenever there is something new",
        )


def _why_no_newest(unit: Unit) -> str | None:
    """Why a query has no newest window for all groups at once; None if it has."""
    if isinstance(unit, SlidingUnit):
        is_final_by_group = unit.program.by_group
        is_by_time = unit.program.query.attribute == unit.program.stream.wattr
    else:
        emit = unit.program.emit
        if not emit.is_by_extent or emit.is_internal:
            return "its answers are not about one window of time each"
        is_final_by_group = any(unit.program.builder.sources.values())
        is_by_time = unit.by_wattr == unit.streams.keys()
    if is_final_by_group:
        return "its groups become final one by one, each at its own time"
    return None if is_by_time else "its windows are not over the stream's own time"


def _query(record: QueryRecord, cut: Cut, update: int) -> ScheduledQuery:
    return _asked(record, cut.range or cut.slide, cut.slide, update)


def _asked(record: QueryRecord, length: int, slide: int, update: int) -> ScheduledQuery:
    """What a query asks for, in updates; it has windows of a length, and a new one with every slide."""
    asked = record.query
    most = None if asked.at_most is None else max(1, asked.at_most // update)
    period = max(1, max(slide, asked.every or 0) // update)
    return ScheduledQuery(record.id, max(1, length // update), period, asked.priority, most)
