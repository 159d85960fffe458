"""How a standing query begins, goes on, or gets another plan; and whether it can ever be answered.

A state belongs to a query by its text, by the code of the aggregates that users have defined for it, and by
its physical plan, which the manifest has recorded and which is run again as it was. Between two epochs it may
be planned anew, by what was seen of its streams, with no gap in answers: where joins and negations hold the
rows of its windows, the better plan is started from these. A user asks for it with REFRESH QUERY. By itself
the engine looks once after a start, and then ever more seldom; it changes a plan only if the other one is
much cheaper, and says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from logging import getLogger
from typing import TYPE_CHECKING, Protocol

from windrow.algebra import Aggregate, Emit, Scan, Window
from windrow.algebra.aggregates.user import definitions
from windrow.algebra.canonical import canonical_text, plan_of
from windrow.algebra.explain import facts, operators
from windrow.engine.records import QueryRecord, StreamRecord, query_text
from windrow.errors import QueryError, StateError
from windrow.execution.bundle import Bundle
from windrow.kernels.relational.state_transfer import why_not_rebuilt
from windrow.language.catalog import StandingQuery
from windrow.optimizer.costs import total_cost
from windrow.physical import PhysicalPlan, identity, plan_query, units
from windrow.windows.domain import IMPLICIT, Domain
from windrow.windows.progress import NoPolicy

if TYPE_CHECKING:
    from windrow.algebra.aggregates.definition import Definition
    from windrow.algebra.catalog import Stream, Table
    from windrow.engine.epoch import Between
    from windrow.optimizer.flows import Statistics
    from windrow.state.manifest import QueryState


class PlanFunction(Protocol):
    """Plans a query; it is `windrow.physical.plan_query`, unless plans are compared."""

    def __call__(
        self, plan: Emit, statistics: Statistics | None = None, *, by_group: bool | None = None
    ) -> PhysicalPlan:
        """How a query runs."""


@dataclass(frozen=True)
class Basis:
    """What a query is planned by: the streams and tables there are, and what is known of them."""

    streams: Mapping[str, Stream] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    statistics: Statistics | None = None
    planner: PlanFunction = plan_query
    #: promises about single groups may come from outside, about any stream
    by_group: bool | None = None


NOTHING = Basis()


def begun(
    query: StandingQuery,
    commit: int,
    stored: QueryState | None = None,
    basis: Basis = NOTHING,
) -> QueryRecord:
    """A query's record after a commit: a new one, planned by a basis; or the one whose state is stored, under
    its old id and by its old plan."""
    text = query_text(query)
    used = _user_aggregates(query)
    code = "\0".join(definition.fingerprint for definition in used)
    fingerprint = blake2b(f"{text}\0{code}".encode(), digest_size=16).hexdigest()
    if stored is not None and stored.fingerprint != fingerprint:
        raise StateError(
            f"query `{query.name}` is not the one that this state belongs to; it was:\n{stored.text}\n"
            f"and is now:\n{text}",
            code="query-changed",
            hint=f"DROP QUERY {query.name} first, give the new one another name, or use a new state"
            " directory",
        )
    if stored is None:
        name = f"{query.name}@{commit + 1}"
        physical = basis.planner(query.plan, basis.statistics, by_group=basis.by_group)
    else:
        name, plan = stored.options["id"], identity.RecordedPlan.from_json(stored.options["plan"])
        physical = plan.resumed(query.name, query.plan, basis.streams, basis.tables, basis.by_group)
    bundle = Bundle.of(name, physical, fingerprint, aggregates=used)
    written = identity.RecordedPlan.of(physical, bundle.unit)
    record = QueryRecord(query, physical, bundle, text, absorbed=commit, recorded=written)
    if stored is not None:
        record = record.resumed(stored)
        if record.is_running and not record.shares:
            plan.check(query.name, record.bundle.unit)
    return record


def recorded(
    name: str, stored: QueryState, streams: Mapping[str, Stream], tables: Mapping[str, Table]
) -> QueryRecord:
    """A query as a manifest has it, though nobody declares it: by its plan, for the state that is of it."""
    plan = identity.RecordedPlan.from_json(stored.options["plan"])
    emit = plan_of(plan.text, streams, tables)
    query, found = StandingQuery(name, emit), []
    used = _user_aggregates(query)
    for by_group in (None, True):
        physical = plan.resumed(name, emit, streams, tables, by_group)
        bundle = Bundle.of(stored.options["id"], physical, stored.fingerprint, aggregates=used)
        found.append(QueryRecord(query, physical, bundle, stored.text, 0, recorded=plan).resumed(stored))
        if found[-1].shares:
            break
        with suppress(StateError):
            plan.check(name, found[-1].bundle.unit)
            return found[-1]
    if not found[0].shares:
        plan.check(name, found[0].bundle.unit)
    return found[0]


def check_stream(record: StreamRecord) -> None:
    """Refuse a stream that never ends and has no watermark: nothing could be answered."""
    if record.is_live and isinstance(record.stream.progress.policy, NoPolicy):
        raise QueryError(
            f"stream `{record.stream.name}` never ends and has no watermark: nothing could ever be answered",
            code="no-progress",
            hint="declare it ORDERED, with SLACK, or PUNCTUATED BY",
        )


def check_clock(name: str, plan: Emit, streams: Mapping[str, StreamRecord]) -> None:
    """Refuse a query whose clock would stand still for ever: it has a window on an attribute of a stream that
    never ends, and nothing says how far that attribute is. Refused is also one that would tell the same
    answer a billion times a day, while nothing comes."""
    period = facts.repetition(plan)
    if period is not None and plan.leaves[0].domain is Domain.TIME and period * _MOST_A_DAY < _DAY:
        raise QueryError(
            f"query `{name}` would answer {_DAY // period:,} times a day, whether rows come or not: rows stay"
            f" in its windows, and every SLIDE of {operators.quantity(period, Domain.TIME)} tells the"
            " answer again",
            code="too-many-answers",
            hint="write a longer SLIDE, as in SLIDE 1 SECOND; or SELECT ISTREAM(…), to be told changes only",
        )
    windows = [node for node in plan.walk() if isinstance(node, Window)]
    for window, scan in ((w, each) for w in windows for each in w.origins if isinstance(each, Scan)):
        attribute, stream = window.attribute_of(scan), scan.stream
        if attribute not in (stream.wattr, *IMPLICIT, *dict(stream.also)) and streams[stream.name].is_live:
            raise QueryError(
                f"query `{name}` could never be answered: it has a window on `{attribute}`, but stream"
                f" `{stream.name}` never ends and has a watermark by `{stream.wattr}` only",
                code="no-progress",
                hint=f"declare how it is ordered: CREATE STREAM {stream.name} (…) WATTR {stream.wattr} … ALSO"
                f" {attribute} ORDERED; or window it on `{stream.wattr}`",
            )


_DAY, _MOST_A_DAY = 86_400_000_000, 1_000_000_000


def _user_aggregates(query: StandingQuery) -> tuple[Definition, ...]:
    gammas = (node for node in query.plan.walk() if isinstance(node, Aggregate))
    return definitions(call.function for gamma in gammas for _, call in gamma.aggregates)


#: the engine itself changes a plan only for one that costs less than this share of it
WORTH = 0.7
#: commits between two looks: at first, and at most
FIRST_PAUSE, LONGEST_PAUSE = 16, 1024
#: so many queries are looked at in one epoch
MOST_AT_ONCE = 4
_log = getLogger("windrow.engine")


class Replanning:
    """When the engine looks whether queries have the best plans, and which of them."""

    def __init__(self, engine: Between) -> None:
        self._engine = engine
        #: queries that are still to be looked at; those that come back with a start are
        self._waiting: deque[str] = deque()
        self._pause = FIRST_PAUSE
        self._due = engine.last.number + FIRST_PAUSE

    def resumed(self, query: str) -> None:
        """A query goes on with the plan that it had."""
        self._waiting.append(query)

    def look(self) -> None:
        """An epoch begins: a few of the queries that wait are looked at, so that no epoch waits long."""
        number, queries = self._engine.last.number, self._engine.queries
        if number >= self._due and not self._waiting:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
            self._due = number + self._pause
            self._waiting.extend(queries)
        looked = 0
        while self._waiting and looked < MOST_AT_ONCE:
            record = queries.get(self._waiting.popleft())
            if (
                record is not None
                and isinstance(record.bundle.unit, units.GeneralUnit)
                and not _shares(record)
            ):
                looked += 1
                if why_never(record) is None:
                    change_if_worth(self._engine, record)


def _shares(record: QueryRecord) -> bool:
    return bool(record.shares) or record.member is not None


def change_if_worth(engine: Between, record: QueryRecord) -> None:
    """Give a query another plan, if that is much cheaper and its state can become that of it."""
    better = _best_plan(engine, record)
    cost, least = (total_cost(plan.emit, better.statistics) for plan in (record.physical, better))
    if least >= cost * WORTH:
        return
    after = _with_plan(engine, record, better)
    if _why_not(record, after) is None:
        try:
            _rebuild(engine, record, after)
            _log.info("query %s: its plan %s", record.query.name, after.physical.changed)
        except QueryError as error:
            _log.warning("%s", error)


def _best_plan(engine: Between, record: QueryRecord) -> PhysicalPlan:
    engine.observed = engine.observed.looking_at(engine.store, engine.last, record)
    return engine.would_run(record.query)


def replan(engine: Between, name: str) -> bool:
    """Give a query the plan that is the cheapest now; whether that is another one. Then a commit has it."""
    record = engine.queries[name]
    physical = _best_plan(engine, record)
    if canonical_text(physical.emit) == canonical_text(record.physical.emit):
        return False
    changed = _with_plan(engine, record, physical)
    why = _why_not(record, changed)
    if why is not None:
        raise QueryError(
            f"query `{name}` keeps its plan: {why}",
            code="cannot-refresh",
            hint=f"DROP QUERY {name} and create it again, which begins with the rows that come then; EXPLAIN"
            " shows the plan that it would have",
        )
    _rebuild(engine, record, changed)
    return True


def _with_plan(engine: Between, record: QueryRecord, physical: PhysicalPlan) -> QueryRecord:
    """A query with another plan, which says since when it has it and why."""
    costs = [total_cost(plan.emit, physical.statistics) for plan in (physical, record.physical)]
    least, cost = (f"{each:.3g}" for each in costs)
    told = f"was changed with commit {engine.last.number + 1}: cost {least} instead of {cost}"
    physical = replace(physical, changed=told)
    bundle = Bundle.of(record.id, physical, record.bundle.fingerprint, aggregates=record.bundle.aggregates)
    recorded = identity.RecordedPlan.of(physical, bundle.unit)
    return replace(record, physical=physical, bundle=bundle, recorded=recorded)


def why_never(record: QueryRecord) -> str | None:
    """Why the state of a query cannot become that of any other plan; None if it may."""
    if not record.is_running:
        return "it does not run"
    if _shares(record):
        return "it shares what it keeps with other queries"
    if record.bundle.carries_ends:
        return "an archive keeps its results"
    unit = record.bundle.unit
    if not isinstance(unit, units.GeneralUnit):
        return "it is answered from panes"
    if isinstance(unit, units.UnionUnit):
        return "it is a union of streams"
    return why_not_rebuilt(unit.program, unit.program)


def _why_not(before: QueryRecord, after: QueryRecord) -> str | None:
    """Why the state of a query cannot become that of another plan."""
    why = why_never(before)
    if why is not None:
        return why
    one, other = before.bundle.unit, after.bundle.unit
    assert isinstance(one, units.GeneralUnit)
    if not isinstance(other, units.GeneralUnit):
        return "it would be answered from panes"
    if one.placement != other.placement:
        return "its rows would have to move between shards"
    return why_not_rebuilt(one.program, other.program)


def _rebuild(engine: Between, before: QueryRecord, after: QueryRecord) -> None:
    """Make the states of a query those of its new plan, and commit it."""
    draft, name = engine.draft(), before.query.name
    draft.queries[name] = after
    work = [replace(draft.work_of(after), deltas=(), replaced=before.bundle)]
    reports = engine.rework(draft, work)
    faults = [fault for report in reports for fault in report.faults.values()]
    if faults:
        raise QueryError(
            f"query `{name}` keeps its plan: its state could not be made that of the better one",
            code="cannot-refresh",
            hint=str(faults[0]),
        )
    draft.close(work, [], reports)
    # rows that wait are still to be taken in
    draft.amend(before.id, absorbed=before.absorbed, is_fresh=before.is_fresh, held=before.held)
    engine.commit_draft(draft)
