"""Arrangement: what queries share, decided for all of them together and recorded in the plan of each.

Up to the first rows nothing is kept yet, so it is found out anew whenever queries came or went, as if all of
them had come at once. From then on every query keeps what it has; one that comes later joins what fits.

Followers: of queries whose answers are among those of one of them, only that one is computed. Equal queries
read its answers whole, those that are the same but less often (CS8) what is about their own instants. A query
that does not answer every window (EVERY, MAX GAP) neither follows nor is followed; one that came late asks
for itself as long as there are windows that are complete for others and not for it.

>>> plan = explain_sharing('''
...     CREATE STREAM bids (item BIGINT, price DOUBLE, ts TIMESTAMP) WATTR ts ORDERED FROM 'files:///bids';
...     CREATE QUERY hour AS SELECT MAX(price) AS top FROM bids [RANGE 1 HOUR SLIDE 1 MINUTE];
...     CREATE QUERY day AS SELECT MAX(price) AS top FROM bids [RANGE 1 DAY SLIDE 1 HOUR];
... ''')
>>> for line in plan.lines("hour"):
...     print(line)
shares synopsis p1 with 1 query by SS1
shares synopsis p2 with 1 query by SS1
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from logging import getLogger
from typing import TYPE_CHECKING, Any

from windrow.algebra.explain.operators import quantity
from windrow.algebra.operators import Join
from windrow.engine.query_start import Basis, begun
from windrow.engine.records import QueryRecord, StreamRecord
from windrow.engine.sharing.common_subplans import admission, general_unit, in_group
from windrow.engine.sharing.shared_state import Common
from windrow.errors import QueryError
from windrow.kernels.relational import operator, signed_rows
from windrow.kernels.relational.aggregate.group_by import Grouped
from windrow.kernels.relational.program import Parts, SubplanView
from windrow.kernels.shared.shared_state import Follower, WindowRequest
from windrow.language.binder.bound_statements import RegisterQuery
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_script
from windrow.optimizer.common_subplans import subplan_of
from windrow.physical import PhysicalPlan, plan_query
from windrow.physical.planner import Shared, Sharing
from windrow.physical.units import GeneralUnit
from windrow.sharing.planner import share
from windrow.sharing.rules import SharingPlan
from windrow.spark.sources import infer_columns
from windrow.state.names import DRIVER
from windrow.windows.domain import INFINITY, Domain, Instant

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.engine.epoch import Between
    from windrow.execution.bundle import Bundle
    from windrow.execution.relational import Host
    from windrow.execution.reports import Closed
    from windrow.execution.shared import SharedWork
    from windrow.optimizer.flows import Statistics


@dataclass
class Led:
    """The queries that ask, and those who read what others ask for."""

    askers: list[WindowRequest] = field(default_factory=list)
    #: of each query that equal ones read, these
    readers: dict[str, list[str]] = field(default_factory=dict)

    def leader_of(self, query: str) -> str | None:
        """The query whose answers another one reads; None if it asks by itself."""
        for asker in self.askers:
            followers = (follower.query for follower in asker.followers)
            if query in self.readers.get(asker.query, ()) or query in followers:
                return asker.query
        return None


def led(records: Iterable[QueryRecord], common: Common, answered: Instant) -> Led:
    """Who asks. Windows that end after `answered` are still to come."""
    known = []
    for record in records:
        asker, same = common.asking(record.id)
        begin, newest = record.complete_from, record.query.every is not None
        is_past = begin is not None and answered - asker.range >= begin
        asker = replace(asker, complete_from=None if is_past else begin, newest=newest)
        known.append((record, asker, _alike(record, same)))
    found = Led()
    leaders: dict[Hashable, list[WindowRequest]] = {}
    for record, asker, kind in sorted(known, key=lambda each: _order(each[1])):
        alike = leaders.setdefault(kind, [])
        place = next((place for place, each in enumerate(alike) if _leads(each, asker)), None)
        if place is None:
            alike.append(asker)
            continue
        leader, begin = alike[place], asker.complete_from
        if (leader.slide, leader.complete_from) == (asker.slide, begin):
            found.readers.setdefault(leader.query, []).append(record.id)
        else:
            given_from = None if begin is None else begin + asker.range
            follower = Follower(asker.query, asker.slide, asker.origin, given_from)
            alike[place] = replace(leader, followers=(*leader.followers, follower))
    found.askers = [asker for alike in leaders.values() for asker in alike]
    return found


def failed_leaders(shared: Iterable[SharedWork], reports: Iterable[Closed]) -> set[str]:
    """The queries with followers that cannot be answered: what is wrong may be in windows of theirs alone."""
    failed = {name for report in reports for name in report.faults}
    return {asker.query for work in shared for asker in work.turn.askers if asker.followers} & failed


def _alike(record: QueryRecord, same: Hashable) -> Hashable:
    """The queries that may be one: of those that leave windows out, only equal ones that do it together."""
    if record.is_exact:
        return same
    if record.query.max_gap is not None:
        return "alone", record.id
    return "together", record.bundle.fingerprint, record.complete_from


def _order(asker: WindowRequest) -> tuple[int, bool, int]:
    """The most frequent first, then those that begin first."""
    return asker.slide, asker.complete_from is not None, asker.complete_from or 0


def _leads(leader: WindowRequest, other: WindowRequest) -> bool:
    aligned = other.slide % leader.slide == 0 and (other.origin - leader.origin) % leader.slide == 0
    if leader.complete_from is None or other.complete_from is None:
        return aligned and leader.complete_from is None
    return aligned and leader.complete_from <= other.complete_from


_log = getLogger("windrow.engine")


class Arranging:
    """What the queries of an engine share."""

    def __init__(self, engine: Between) -> None:
        self._engine = engine
        #: the queries that the last query groups were made of
        self._in_group: frozenset[tuple[str, bool]] = frozenset()
        #: the version of what is in common that was planned anew
        self._planned = -1
        #: queries that came late, for which a join was looked for
        self._looked: set[str] = set()
        #: what was recorded last depends on this
        self._noted: Hashable = None

    def joined(self, record: QueryRecord) -> QueryRecord | None:
        """A new query among the synopses; None if it keeps a state of its own."""
        engine = self._engine
        if not engine.shares:
            return None
        return joined(engine.common, record, engine.streams, engine.last.number + 1)

    def note(self, queries: dict[str, QueryRecord]) -> None:
        """Record in the plan of each query what it shares, if queries came, went or changed: with each epoch,
        and for whoever asks."""
        known = tuple((q.id, q.is_running, q.shares, q.member) for q in queries.values())
        now = self._engine.common.version, known
        if now == self._noted:
            return
        self._noted = now
        members = [each for each in queries.values() if each.is_running and each.member is not None]
        for name, record in queries.items():
            sharing = sharing_of(self._engine.common, record, members)
            if sharing != record.physical.sharing:
                queries[name] = record.among(sharing)

    def arrange(self) -> None:
        """An epoch begins."""
        if self._engine.shares:
            self._group_queries()
            self._plan_anew()

    def admit(self) -> None:
        """An epoch is about to begin: queries that came after the first rows see those that joins hold."""
        engine = self._engine
        late = [each for each in self._beginning() if each.complete_from is not None and each.member is None]
        for record in late if engine.shares else ():
            if record.id not in self._looked:
                self._looked.add(record.id)
                self._admit(record)

    def _admit(self, late: QueryRecord) -> None:
        """Let a query begin over a join that runs, if there is one that fits."""
        engine = self._engine
        hosts = [each for each in engine.queries.values() if each.is_running and not each.is_fresh]
        for host in sorted(hosts, key=_complete):
            if host.shares or _complete(host) > _complete(late):
                continue
            if (found := admission(late, host)) is not None:
                if host.member is None:
                    self._take_in(host)
                    host = engine.queries[host.query.name]
                mine, theirs, was = found
                self._begin_over(late.joining(mine), host.joining(theirs), was)
                return

    def _take_in(self, record: QueryRecord) -> None:
        """Rows that wait for a query under its own name are taken in, and nothing is answered."""
        engine, draft = self._engine, self._engine.draft()
        name = record.query.name
        work = [replace(draft.work_of(record), lifetimes=engine.archives.wants_lifetimes(name))]
        if work[0].deltas:
            draft.close(work, [], engine.rework(draft, work))
            engine.commit_draft(draft)

    def _begin_over(self, late: QueryRecord, host: QueryRecord, was: Host) -> None:
        """Give both the join in common, and commit it. If that fails, each goes on by itself."""
        engine, draft = self._engine, self._engine.draft()
        both = {record.query.name: record for record in (host, late)}
        draft.queries |= both
        work = [replace(draft.work_of(record), deltas=(), host=was) for record in both.values()]
        reports = engine.rework(draft, work)
        if any(report.faults for report in reports):
            _log.warning("query %s keeps a state of its own: %s", late.query.name, reports)
            return
        draft.close(work, [], reports)
        unit = general_unit(host.bundle)
        clock = work[0].clock.now + unit.program.builder.lag
        begin = max(clock, (host.complete_from or -signed_rows.FOREVER) + (unit.memory or 0))
        begin -= general_unit(late.bundle).memory or 0
        known: dict[str, Any] = {"absorbed": host.absorbed, "latest": host.latest, "is_fresh": False}
        draft.amend(host.id, **known)
        draft.amend(late.id, **known, complete_from=begin if abs(begin) < signed_rows.FOREVER // 2 else None)
        engine.commit_draft(draft)

    def _beginning(self) -> list[QueryRecord]:
        """The queries that have seen nothing yet."""
        engine = self._engine
        filed = [ref.metadata for ref in engine.last.chunks.get(DRIVER, ()) if "stream" in ref.metadata]

        def begins(record: QueryRecord) -> bool:
            new = {each["stream"] for each in filed if int(each["commit"]) > record.absorbed}
            return record.is_running and record.is_fresh and new.isdisjoint(record.streams)

        return [each for each in engine.queries.values() if not each.shares and begins(each)]

    def _group_queries(self) -> None:
        """Find out what queries that have seen nothing yet have in common."""
        engine, found = self._engine, self._beginning()
        beginning = frozenset((each.id, each.bundle.carries_ends) for each in found)
        if beginning == self._in_group:
            return
        members, self._in_group = in_group(found, engine.last.number + 1), beginning
        for record in found:
            member = members.get(record.id)
            if member != record.member:
                engine.queries[record.query.name] = record.joining(member)

    def _plan_anew(self) -> None:
        """Find out which synopses serve queries best of streams that had no rows yet."""
        engine = self._engine
        if engine.common.version == self._planned:
            return
        self._planned = engine.common.version
        shared_states = self._without_rows()
        if not shared_states:
            return
        common, mine = engine.common.copy(), {each.id: each for each in engine.queries.values()}
        found: dict[str, tuple[str, ...]] = {}
        for shared_state, stream in shared_states.items():
            bundles = {name: mine[name].bundle for name in common.members(shared_state)}
            found |= common.settle(shared_state, bundles, engine.streams[stream])
        # whoever looks meanwhile finds either what was, or all that is new
        engine.common, self._planned = common, common.version
        for name, shares in found.items():
            engine.queries[mine[name].query.name] = replace(mine[name], shares=shares)

    def _without_rows(self) -> dict[str, str]:
        """The shared states that have nothing yet, with their streams. Those of queries that may still be
        declared stay as they are."""
        engine = self._engine
        common = engine.common
        awaited = {common.kept[label].shared_state for label in engine.draft().shares_elsewhere}
        found = {}
        for shared_state in common.shared_states:
            record = engine.streams[common.shared_state(shared_state).stream.name]
            clock = record.known.progress_on(record.stream, record.stream.wattr)
            if shared_state not in awaited and record.greatest is None and clock == -INFINITY:
                found[shared_state] = record.stream.name
        return found


def _complete(record: QueryRecord) -> float:
    """From when on the answers of a query over rows are complete."""
    unit, begin = record.bundle.unit, record.complete_from
    memory = unit.memory if isinstance(unit, GeneralUnit) else None
    return -INFINITY if begin is None else begin + (memory or 0)


def joined(
    common: Common, record: QueryRecord, streams: Mapping[str, StreamRecord], commit: int
) -> QueryRecord | None:
    """A query among synopses; None if it keeps a state of its own."""
    if len(record.streams) > 1 or record.bundle.aggregates:
        return None
    (name,) = record.streams
    return common.join(record, streams[name], commit)


def sharing_of(common: Common, record: QueryRecord, members: Sequence[QueryRecord]) -> Sharing:
    """What a query has in common with others; `members` are those that run with common subplans."""
    if not record.is_running:
        return Sharing()
    if not record.shares:
        parts = tuple(shared_parts(record, members))
        return Sharing(parts=parts, alone="" if parts else common.alone.get(record.id, ""))
    queries = len(common.members(common.shared_state_of(record.shares)))
    counts = bool(common.asker(record.id).value_counters)
    return Sharing(common.plan.synopses_of(record.id), queries, counts)


def arranged(records: Iterable[QueryRecord]) -> dict[str, PhysicalPlan]:
    """The plans of queries that come all at once, before there are rows, by their names."""
    common, mine = Common(), {record.id: record for record in records}
    streams = {
        name: StreamRecord.new(each) for record in mine.values() for name, each in record.streams.items()
    }
    for record in list(mine.values()):
        mine[record.id] = joined(common, record, streams, 1) or record
    for shared_state in common.shared_states:
        bundles = {name: mine[name].bundle for name in common.members(shared_state)}
        stream = streams[common.shared_state(shared_state).stream.name]
        for name, shares in common.settle(shared_state, bundles, stream).items():
            mine[name] = replace(mine[name], shares=shares)
    places = in_group([record for record in mine.values() if not record.shares], 1)
    together = [record.joining(places.get(record.id)) for record in mine.values() if not record.shares]
    mine |= {record.id: record for record in together}
    members = [record for record in together if record.member is not None]
    sharing = {record.id: sharing_of(common, record, members) for record in mine.values()}
    return {record.query.name: record.among(sharing[record.id]).running for record in mine.values()}


def shared_parts(record: QueryRecord, running: Iterable[QueryRecord]) -> list[Shared]:
    """The parts of a query that running queries have too, and the states of a join that it aggregates with
    them; if there are none, its rows."""
    if record.member is None:
        return []
    others = [each for each in running if each.id != record.id]
    operators = dict(general_unit(record.bundle).program.operators())
    count = {name: sum(name in each.bundle.places for each in others) for name in record.member.names}
    places = dict(record.member.query_group.parts)
    parts = [
        Shared(_named(path, operators, places.keys()), count[name])
        for path, name in places.items()
        if count[name]
    ]
    filed = count[record.member.query_group.name]
    told = parts + _states(record, others) + _results(record, others)
    return told or ([Shared("rows", filed)] if filed else [])


def _named(path: str, operators: Mapping[str, operator.Operator], others: Set[str]) -> str:
    """What a part is called: by the first of its operators that keeps anything, if it has one that is in no
    other part."""
    place = path
    while isinstance(operators[place], operator.Stateless) and len(operators[place].inputs) == 1:
        place = f"{place}.0"
        if place in others:
            return operators[path].name
    return operators[place].name


def _results(record: QueryRecord, others: Iterable[QueryRecord]) -> list[Shared]:
    """With whom a query has all its results computed together, each for instants of its own."""
    mine = _asked(record.bundle)
    groups = [each.bundle.query_group for each in others if _asked(each.bundle) == mine]
    own = record.bundle.query_group
    apart = [each for each in groups if own is not None and each is not None and each.reports != own.reports]
    return [Shared("results", len(apart), ("CS8",))] if apart else []


@lru_cache(maxsize=4096)
def _asked(bundle: Bundle) -> str:
    """What is computed for a query."""
    query_group = bundle.query_group
    return repr((query_group and (query_group.name, query_group.view), general_unit(bundle).program.emit))


def _states(record: QueryRecord, others: Iterable[QueryRecord]) -> list[Shared]:
    """With whom a query has states of a join computed together: of the same groups (SS3), over windows of the
    same lengths (CS4) and over those that are all shorter or longer by one time (CS5)."""
    mine = _aggregated(record.bundle)
    if mine is None:
        return []
    (part, groups), view = mine
    known = (_aggregated(each.bundle) for each in others if part in each.bundle.places)
    alike = [each for each in known if each is not None and each[0] == (part, groups)]
    views = [each for _, each in alike if each.instants == view.instants]
    if not views:
        return []
    even = [each for each in views if len(each.sooner) < 2 and each != view]
    rules = ["SS3"]
    rules += ["CS4"] if view in views else []
    # what is looked at now and then is combined anew for each length
    rules += ["CS5"] if len(view.sooner) < 2 and even and not view.instants else []
    return [Shared("states of ⋈", len(views), tuple(rules))]


@lru_cache(maxsize=4096)
def _aggregated(bundle: Bundle) -> tuple[tuple[str, tuple[Expression, ...]], SubplanView] | None:
    """How a query aggregates a join by its states: the part that has it and the groups, and how it sees the
    join; None if it does not."""
    query_group = bundle.query_group
    if query_group is None:
        return None
    program = general_unit(bundle).program
    operators, join = dict(program.operators()), program.builder.built.get(id(subplan_of(program.emit)))
    place = next((path for path, each in operators.items() if each is join), "")
    part = Parts(dict(query_group.parts)).part_of(place)
    if part is None or not isinstance(subplan_of(program.emit), Join):
        return None
    above = place.rpartition(".")[0]
    while isinstance(dropping := operators.get(above), operator.Projected) and dropping.only_drops:
        above = above.rpartition(".")[0]
    reader = operators.get(above)
    if not isinstance(reader, Grouped) or not reader.reads_states:
        return None
    keys = tuple(key for _, key in reader.measures.plan.keys)
    return (dict(query_group.parts)[part], keys), query_group.view


def explain_sharing(script: str, catalog: Catalog | None = None) -> SharingPlan:
    """What the standing queries of a script can share, as if all were there at once."""
    bound = compile_script(script, Catalog(inference=infer_columns) if catalog is None else catalog)
    plans = {each.query.name: each.query.plan for each in bound if isinstance(each, RegisterQuery)}
    for name, emit in plans.items():
        with suppress(QueryError):  # in the form in which it runs, if it does
            plans[name] = plan_query(emit).emit
    return share(plans)


def together(
    queries: Sequence[StandingQuery], statistics: Statistics | None = None
) -> dict[str, PhysicalPlan]:
    """The plan of each query of a script, as it runs if all come at once; none of a SELECT by itself."""
    if not queries[0].name:
        return {}
    records = []
    for query in queries:
        with suppress(QueryError):  # no kernel runs it
            records.append(begun(query, 0, basis=Basis(statistics=statistics)))
    return arranged(records)


def with_sharing(
    runs: Sequence[str], record: QueryRecord, leader: QueryRecord | None, period: int | None
) -> list[str]:
    """How a running query is computed: whose answers it reads, and how often it is refreshed, too;
    `period` is the scheduler's choice."""
    lines, begin, asked = [*runs], record.complete_from, record.query.every
    unit, domain = record.bundle.unit, record.query.plan.leaves[0].domain
    if leader is not None:
        name = leader.query.name
        lines.append(f"share   reads the answers of query `{name}` at its own instants, by CS8")
    if begin is not None and isinstance(unit, GeneralUnit) and unit.memory is not None:
        at = _moment(begin + unit.memory, domain)
        lines.append(f"begin   its answers are complete, and given, from {at} on")
    elif begin is not None:
        lines.append(f"begin   it answers windows that begin at {_moment(begin, domain)} or later")
    if asked is not None:
        more = "" if period is None or period >= asked else f", {quantity(period, domain)} being cheaper"
        lines.append(f"refresh every {quantity(asked, domain)}{more}, about the newest window")
    return lines


def _moment(instant: int, domain: Domain) -> str:
    """An instant of a query's windows, for people."""
    if domain is not Domain.TIME:
        return str(instant)
    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)).removesuffix("+00:00")
