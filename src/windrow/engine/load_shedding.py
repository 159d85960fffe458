"""Shedding in the engine: what is decided for the epochs to come, and what was left out so far.

Everything is decided at the end of an epoch and committed with it; the next epoch drops by what is committed,
so one that is repeated after a crash drops the same. What has been decided about a window stands: a new
decision is about windows of which no row has come yet.

Fixed costs of an epoch stay whatever is dropped, and an epoch that takes long because of them is no overload:
it may take a few times as long as they do. Work on rows goes down with the rows that are dropped, which
takes the agreement of all who read a stream; work on answers goes down with the answers of each query for
itself. If even the longest gaps would hardly help, nothing is dropped: windows are not given up for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from windrow.engine.gaps import Gap, gaps, joined
from windrow.shedding import agreement, controller, rules
from windrow.shedding.agreement import SheddingGroup, SheddingGroups, share, unread
from windrow.shedding.controller import Admission, Bill, Controller, QueryLoad
from windrow.shedding.load import Monitor, Sample
from windrow.shedding.phases import Cycles, Phases
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.engine.epoch import Draft
    from windrow.engine.records import QueryRecord, StreamRecord
    from windrow.kernels.clock import PaneClock


#: epochs after a start in which nothing is dropped, as everything is done for the first time; unless they
#: get longer and longer
WARM_UP = 3
#: how quickly it is learnt what queries cost
_LEARN = 0.3
#: losses that differ by less are the same
_DIGITS = 4
#: savings below this share of the work are not worth a window
WORTH = 0.05


@dataclass(frozen=True, slots=True)
class Effort:
    """What an epoch took: seconds for rows and windows, seconds to hand answers over, rows that came, rows
    shed, and rows that are left waiting in the sources, as far as those tell."""

    rows: int = 0
    shed: int = 0
    on_rows: float = 0.0
    on_answers: float = 0.0
    backlog: int = 0
    #: seconds in which these rows came: since the epoch before began
    since: float = 0.0
    #: seconds that every epoch takes beyond these: to find out what is new, to plan, to commit
    around: float = 0.0
    #: the seconds of tasks for each query, where they are computed one by one
    by_query: Mapping[str, float] = field(default_factory=dict)
    #: and the seconds of each level of a query, from the lowest
    by_level: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return self.on_rows + self.on_answers


@dataclass(frozen=True, slots=True)
class Overload:
    """The load as it is known, and what follows from it."""

    monitor: Monitor = field(default_factory=Monitor)
    controller: Controller = field(default_factory=Controller)
    admission: Admission = field(default_factory=Admission)
    #: what each query loses
    losses: Mapping[str, float] | None = None
    #: seconds in an epoch by query, and by its levels, smoothed
    spent: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def after(
        self, effort: Effort, limit: float, sharing: SheddingGroups, blocked: Collection[str]
    ) -> Overload:
        """One more epoch, which should take `limit` seconds, or some times what it takes without rows.

        `blocked` are streams that others read too.
        """
        saved = effort.shed / effort.rows if effort.rows else 0.0
        since = effort.since or limit
        sample = Sample(effort.rows, effort.seconds, since, effort.backlog, saved, effort.around)
        monitor = self.monitor.after(sample)
        falls_behind = effort.since > 0 and monitor.took > 2 * effort.since
        spent, levels = self._spent(effort), self._levels(effort)
        if monitor.epochs <= WARM_UP and not falls_behind:
            return replace(self, monitor=monitor, spent=spent, levels=levels)
        allowed = monitor.allowed(limit)
        on_rows = monitor.cost * monitor.waiting(limit)
        total = max(monitor.fixed + on_rows, 1e-9)
        answers = min(effort.on_answers, monitor.fixed)
        parts = _parts(spent, sharing)
        bills = [_bill(group, (on_rows, answers), parts, levels, blocked) for group in sharing.groups]
        most = sum(bill.most * bill.total for bill in bills) / total
        if most < WORTH:
            return Overload(monitor, losses={}, spent=spent, levels=levels)
        # the shares of the work on rows, and of the rest, that can be saved at most
        early, late = (sum(each) for each in zip(*(bill.savable for bill in bills), strict=True))
        shares = early / on_rows if on_rows else 0.0, late / monitor.fixed if monitor.fixed else 0.0
        outlook = monitor.outlook(limit, *shares)
        controller = self.controller.after(outlook, allowed, since, behind=monitor.behind)
        losses: dict[str, float] = {}
        for bill in bills:
            wanted = bill.losses(bill.most * controller.share)
            losses |= {name: round(p, _DIGITS) for name, p in wanted.items()}
        queries, offered = [], monitor.load(allowed)
        for group, bill in zip(sharing.groups, bills, strict=True):
            load = offered * bill.total / total
            whole = sum(parts[each.name] for each in group.members)
            for each in group.members:
                mine = load * parts[each.name] / whole
                queries.append(QueryLoad(each.name, mine, bill.most, each.priority))
        others = max(0.0, offered - sum(query.load for query in queries))
        admission = self.admission.after(others, queries)
        return Overload(monitor, controller, admission, losses, spent, levels)

    def _spent(self, effort: Effort) -> dict[str, float]:
        """With what this epoch's tasks spent; of a query that had nothing to do, what is known stands."""
        found = dict(self.spent)
        for name, seconds in effort.by_query.items():
            if name not in self.admission.suspended:
                known = found.get(name, seconds)
                found[name] = known + _LEARN * (seconds - known)
        return found

    def _levels(self, effort: Effort) -> dict[str, tuple[float, ...]]:
        """The same of each level; a level that had nothing to do took no time."""
        found = dict(self.levels)
        for name, seconds in effort.by_level.items():
            known = found.get(name, seconds)
            known = known if len(known) == len(seconds) else seconds
            found[name] = tuple(k + _LEARN * (s - k) for k, s in zip(known, seconds, strict=True))
        return found

    def to_json(self) -> dict[str, Any]:
        suspended, losses = list(self.admission.suspended), dict(self.losses or {})
        return {"share": self.controller.share, "suspended": suspended, "losses": losses}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        controller = Controller(stored.get("share", 0.0))
        admission = Admission(tuple(stored["suspended"]))
        return cls(controller=controller, admission=admission, losses=stored["losses"])


def _parts(spent: Mapping[str, float], sharing: SheddingGroups) -> dict[str, float]:
    """What part of all work each query is, by what was spent on it; like parts where nothing is known of one.

    Queries that lose nothing are part of the work too.
    """
    names = [*sharing.agreed, *(name for name, _ in sharing.refused)]
    known = {name: spent.get(name, 0.0) for name in names}
    if not all(known.values()):
        return dict.fromkeys(names, 1 / len(names))
    whole = sum(known.values())
    return {name: seconds / whole for name, seconds in known.items()}


def _bill(
    group: SheddingGroup,
    costs: tuple[float, float],
    parts: Mapping[str, float],
    levels: Mapping[str, tuple[float, ...]],
    blocked: Collection[str],
) -> Bill:
    """What a group can save, of the seconds for rows and for answers.

    Rows that are dropped at the input save all that is done with them. Where a query saves more by what it
    drops in the middle of its plan, that is work of its own, which goes with its own windows.
    """
    rows, answers = costs
    part = sum(parts[member.name] for member in group.members)
    streams = {stream for member in group.members for stream in member.sheddable}
    early = 0.0 if streams & set(blocked) else min(1.0, rules.early_share(group.drop, 1.0))
    members, in_the_middle = [], 0.0
    for member in group.members:
        mine, more = parts[member.name], 0.0
        if len(member.arcs) > 1:
            saved, _ = member.saved(levels.get(member.name, ()))
            more = rows * mine * max(0.0, saved - early)
        in_the_middle += more
        cost = answers * mine + more
        members.append(controller.Member(member.name, group.drop.most, member.priority, cost))
    return Bill(tuple(members), rows * part - in_the_middle, early)


#: rows of so many cycles ahead are looked at; rows beyond are kept
AHEAD = 256
#: so many gaps of a query are remembered
MOST_GAPS = 100


@dataclass(frozen=True)
class Shedding:
    """What is dropped, by queries' ids. `forced` is a share of windows that all who agreed lose, whatever the
    load."""

    seed: int = 0
    phases: Mapping[str, Phases] = field(default_factory=dict)
    gaps: Mapping[str, tuple[Gap, ...]] = field(default_factory=dict)
    #: of each query, up to where its gaps are known
    told: Mapping[str, int] = field(default_factory=dict)
    overload: Overload = field(default_factory=Overload)
    forced: float | None = None
    sharing: SheddingGroups = field(default_factory=SheddingGroups)
    #: what `sharing` was made from
    made_from: tuple[Any, ...] = ()

    @classmethod
    def of(cls, decisions: Mapping[str, Any], state: str) -> Shedding:
        """As the last commit has it; chance differs from one state directory to the other."""
        seed = int.from_bytes(blake2b(state.encode(), digest_size=4).digest())
        stored = decisions.get("shedding")
        if stored is None:
            return cls(seed)
        return cls(
            stored["seed"],
            {name: Phases.from_json(each) for name, each in stored["phases"].items()},
            {name: tuple(Gap.from_json(gap) for gap in each) for name, each in stored["gaps"].items()},
            stored["told"],
            Overload.from_json(stored["overload"]),
            stored["forced"],
        )

    @property
    def decisions(self) -> dict[str, Any]:
        """For the manifest; nothing as long as nobody agreed."""
        if not self.phases and not self.gaps and self.forced is None:
            return {}
        stored = {
            "seed": self.seed,
            "phases": {name: each.to_json() for name, each in self.phases.items()},
            "gaps": {name: [gap.to_json() for gap in each] for name, each in self.gaps.items()},
            "told": dict(self.told),
            "overload": self.overload.to_json(),
            "forced": self.forced,
        }
        return {"shedding": stored}

    # ------------------------------------------------------------ in an epoch

    def rows(self, stream: StreamRecord, draft: Draft) -> tuple[tuple[int, int], ...]:
        """The rows of the next batch that nobody needs, as intervals [begin, end) of WATTR."""
        running = draft.running
        ids = [record.id for record in running if stream.stream.name in record.streams]
        if not stream.stream.sheddable or stream.greatest is None or any(i not in self.phases for i in ids):
            return ()
        sharing = self._shared(running).sharing
        if not ids or any(i not in sharing.agreed for i in ids):
            return ()
        begin, end = _expected(stream, max(sharing.group_of(i).cycles.span for i in ids))
        found = agreement.droppable(stream.stream.name, ids, sharing.agreed, self.phases, begin, end)
        return tuple((each.begin, each.end) for each in found)

    def own_rows(self, stream: StreamRecord, draft: Draft) -> dict[str, tuple[tuple[int, int], ...]]:
        """For each query, the rows of the next batch that it does not need, although others may."""
        running = draft.running
        sharing, name = self._shared(running).sharing, stream.stream.name
        found: dict[str, tuple[tuple[int, int], ...]] = {}
        for record in running:
            phases = self.phases.get(record.id, Phases())
            if stream.greatest is None or name not in record.streams or phases.is_idle:
                continue
            query = sharing.agreed.get(record.id)
            if query is not None:
                span = _expected(stream, sharing.group_of(record.id).cycles.span)
                own = islice(agreement.needless(query, name, phases, *span), agreement.MOST_INTERVALS)
                found[record.id] = tuple((each.begin, each.end) for each in own)
        return found

    def drops(self, query: str) -> Callable[[int], bool] | None:
        """Whether the windows of a query that end at an instant are dropped; None if none ever is."""
        phases = self.phases.get(query)
        return phases.drops if phases is not None and not phases.is_idle else None

    def unread(
        self, record: QueryRecord, draft: Draft, clock: PaneClock
    ) -> tuple[agreement.Unread | None, ...]:
        """For each level of a query but the last, the windows whose answers nobody needs."""
        phases, unit = self.phases.get(record.id, Phases()), record.bundle.unit
        if phases.is_idle or unit.stages == 1:
            return ()
        begin, end = clock.least[0], clock.greatest[1]
        if abs(begin) == INFINITY or abs(end) == INFINITY:
            return ()
        query = self._shared(draft.running).sharing.agreed.get(record.id)
        if query is None or len(query.arcs) != unit.stages:
            return ()
        return unread(query, phases, int(begin) - 1, int(end))

    # ------------------------------------------------------------ between epochs

    def after(self, draft: Draft, effort: Effort | None = None, limit: float | None = None) -> Shedding:
        """What holds from the next epoch on. `limit` is how long an epoch should take; None: it may take its
        time."""
        running = draft.running
        if not self.phases and all(record.query.max_gap is None for record in running):
            return self
        known = self._shared(running)
        if effort is not None and limit is not None and effort.rows and known.sharing.groups:
            # streams read by somebody who loses nothing
            whole = [record for record in running if record.id not in known.sharing.agreed]
            blocked = {name for record in whole for name in record.streams}
            load = known.overload.after(effort, limit, known.sharing, blocked)
            known = replace(known, overload=load)
        return known._recorded(draft, running)._decided(draft, running)

    def _shared(self, queries: Sequence[QueryRecord]) -> Shedding:
        """With all queries sorted out; the same as before if they are the same."""
        given = tuple((record.id, record.query.max_gap, record.query.priority) for record in queries)
        if given == self.made_from:
            return self
        queried = [(record.id, record.query) for record in queries]
        asked = [agreement.SheddableQuery(id, q.plan, q.max_gap, q.priority) for id, q in queried]
        return replace(self, sharing=share(asked), made_from=given)

    def _decided(self, draft: Draft, running: Sequence[QueryRecord]) -> Shedding:
        """The next phase of each query."""
        away = draft.undeclared_ids
        phases = {name: each for name, each in self.phases.items() if name in away}
        begins = {group.name: self._begin(draft, group) for group in self.sharing.groups}
        for record in running:
            known = self.phases.get(record.id, Phases())
            if record.id in self.sharing.agreed:
                free, cycles = begins[self.sharing.group_of(record.id).name]
            elif known.last is not None:
                free, cycles = _seen(draft, record.streams, _width(record)), known.last.cycles
            else:
                continue
            if free is not None:
                p, suspended = self._loss(record.id, cycles)
                known = known.then(free, cycles, p, self.seed, suspended=suspended)
            clock = record.clock(draft.streams, draft.tables)
            phases[record.id] = known.since(int(clock)) if abs(clock) != INFINITY else known
        used = {name: each for name, each in phases.items() if each.items or name in self.sharing.agreed}
        return replace(self, phases=used)

    def _begin(self, draft: Draft, group: SheddingGroup) -> tuple[int | None, Cycles]:
        """When the next phase of a group's queries may begin, and its cycles: the same for all of them."""
        streams = {stream for member in group.members for stream in member.streams}
        free = _seen(draft, streams, max(member.drop.window for member in group.members))
        if free is None or self.forced is not None:
            return free, group.cycles
        losses = [self._wanted(member.name) for member in group.members]
        least = _moved(draft, streams) * 2 // agreement.MOST_INTERVALS
        batch = controller.shortest(group.drop, max(losses), least)
        known = [self.phases.get(member.name, Phases()) for member in group.members]
        ended = max(member.grid.end(member.grid.last_ending(free)) for member in group.members)
        return controller.next_cycles(known, replace(group.cycles, batch=batch), ended, max(losses))

    def _loss(self, query: str, cycles: Cycles) -> tuple[float, bool]:
        if query not in self.sharing.agreed:
            return 0.0, False
        if self.forced is not None:
            return min(self.forced, cycles.most), False
        if query in self.overload.admission.suspended:
            return 0.0, True
        return controller.steady(self._wanted(query), cycles.batch), False

    def _wanted(self, query: str) -> float:
        """What a query should lose, by the load."""
        return (self.overload.losses or {}).get(query, 0.0)

    def _recorded(self, draft: Draft, running: Sequence[QueryRecord]) -> Shedding:
        """With the gaps among the windows that are final now."""
        found, told = dict(self.gaps), dict(self.told)
        for record in running:
            phases, until = self.phases.get(record.id, Phases()), _final(draft, record)
            if not phases.items or until is None:
                continue
            grid = agreement.final_grid(record.query.plan)
            since = max(told.get(record.id, phases.items[0].start), phases.items[0].start)
            if since < until:
                new = gaps(phases, grid, since, until)
                known = joined(found.get(record.id, ()), new, grid.period)
                found[record.id], told[record.id] = tuple(known[-MOST_GAPS:]), until
        alive = draft.ids
        left = {name: each for name, each in found.items() if name in alive and each}
        return replace(self, gaps=left, told={name: each for name, each in told.items() if name in alive})

    # ------------------------------------------------------------ for people

    def agreed(self, record: QueryRecord) -> agreement.Agreed | None:
        """The terms on which a query loses windows, as if it were alone; None if it loses none."""
        return self._shared([record]).sharing.agreed.get(record.id)

    def why_not(self, record: QueryRecord) -> str | None:
        """Why a query loses no windows; None if it may lose some."""
        reasons = {name: reason.reason for name, reason in self._shared([record]).sharing.refused}
        return reasons.get(record.id)

    def status(self, record: QueryRecord) -> str:
        """What a query is called: suspended, where it is that."""
        last = self.phases.get(record.id, Phases()).last
        is_away = record.is_running and last is not None and last.suspended
        return "suspended" if is_away else record.status

    def lost(self, query: str) -> float:
        """The share of its windows that a query loses from now on."""
        last = self.phases.get(query, Phases()).last
        return 0.0 if last is None else 1.0 if last.suspended else last.p


def _expected(stream: StreamRecord, cycle: int) -> tuple[int, int]:
    """Where the rows of the next batch will be."""
    assert stream.greatest is not None
    progress = stream.known.progress.progress
    begin = int(progress) if abs(progress) != INFINITY else stream.greatest
    return begin, max(begin, stream.greatest) + AHEAD * cycle


def _width(record: QueryRecord) -> int:
    try:
        return max(way.width for way in agreement.reaches(record.query.plan))
    except rules.CannotShed:
        return 0


def _seen(draft: Draft, names: Iterable[str], width: int) -> int | None:
    """Windows of this width that end later have no row yet: none has come so far, nor any promise."""
    found: list[int] = []
    for name in names:
        record = draft.streams[name]
        found += [record.greatest] if record.greatest is not None else []
        progress = record.known.progress
        reached = [progress.progress, *(progress.progress_of(source) for source in progress.sources)]
        found += [int(each) for each in reached if abs(each) != INFINITY]
    return max(found) + width if found else None


def _moved(draft: Draft, streams: Iterable[str]) -> int:
    """How far the rows of the epoch reached beyond those before."""
    found = [0]
    for name in streams:
        before, now = draft.before.get(name), draft.streams[name].greatest
        if before is not None and before.greatest is not None and now is not None:
            found.append(now - before.greatest)
    return max(found)


def _final(draft: Draft, record: QueryRecord) -> int | None:
    """The last instant up to which windows are final; at the end of input, the last one with a row."""
    clock = record.clock(draft.streams, draft.tables)
    if abs(clock) != INFINITY:
        return int(clock)
    return _seen(draft, record.streams, _width(record)) if clock == INFINITY else None
