"""How a standing query begins, or goes on: its record, whether a state is really its own, and whether it can
ever be answered.

A state belongs to a query by its text, by the code of the aggregates that users have defined for it, and by
its physical plan, which the manifest has recorded and which is run again as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Protocol

from windrow.algebra.aggregates.user import definitions
from windrow.algebra.canonical import plan_of
from windrow.algebra.explain.brackets import quantity
from windrow.algebra.explain.facts import repetition
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Scan, Window
from windrow.engine.records import QueryRecord, StreamRecord, query_text
from windrow.errors import QueryError, StateError
from windrow.execution.bundle import Bundle
from windrow.language.catalog import StandingQuery
from windrow.physical import plan_query
from windrow.physical.identity import RecordedPlan
from windrow.windows.domain import IMPLICIT, Domain
from windrow.windows.punctuation import NoPolicy

if TYPE_CHECKING:
    from windrow.algebra.aggregates.definition import Definition
    from windrow.algebra.catalog import Stream, Table
    from windrow.optimizer.cost.statistics import Statistics
    from windrow.physical import PhysicalPlan
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


NOTHING = Basis()


def begun(
    query: StandingQuery,
    commit: int,
    stored: QueryState | None = None,
    *,
    basis: Basis = NOTHING,
    by_group: bool | None = None,
) -> QueryRecord:
    """A query's record after a commit: a new one, planned by a basis; or the one whose state is stored, under
    its old id and by its old plan."""
    text = query_text(query)
    used = _user_aggregates(query)
    code = "\0".join(definition.fingerprint for definition in used)
    fingerprint = blake2b(f"{text}\0{code}".encode(), digest_size=16).hexdigest()
    if stored is not None and stored.fingerprint != fingerprint:
        raise _changed(query.name, stored.text, text)
    name = stored.options["id"] if stored else f"{query.name}@{commit + 1}"
    if stored is None:
        physical = basis.planner(query.plan, basis.statistics, by_group=by_group)
        return _recorded(
            query, physical, Bundle.of(name, physical, fingerprint, aggregates=used), text, commit
        )
    plan = RecordedPlan.from_json(stored.options["plan"])
    physical = plan.resumed(query.name, query.plan, basis.streams, basis.tables, by_group)
    bundle = Bundle.of(name, physical, fingerprint, aggregates=used)
    record = _recorded(query, physical, bundle, text, commit).resumed(stored)
    if record.is_running and not record.shares:
        plan.check(query.name, record.bundle.unit)
    return record


def recorded(
    name: str, stored: QueryState, streams: Mapping[str, Stream], tables: Mapping[str, Table]
) -> QueryRecord:
    """A query as a manifest has it, though nobody declares it: by its plan, for the state that is of it."""
    plan = RecordedPlan.from_json(stored.options["plan"])
    emit = plan_of(plan.text, streams, tables)
    query, found = StandingQuery(name, emit), []
    for by_group in (None, True):
        physical = plan.resumed(name, emit, streams, tables, by_group)
        used = _user_aggregates(query)
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


def _recorded(
    query: StandingQuery, physical: PhysicalPlan, bundle: Bundle, text: str, commit: int
) -> QueryRecord:
    recorded = RecordedPlan.of(physical, bundle.unit)
    return QueryRecord(query, physical, bundle, text, absorbed=commit, recorded=recorded)


def check_stream(record: StreamRecord) -> None:
    """Refuse a stream that never ends and never says how far it is: nothing could be answered."""
    if record.is_live and isinstance(record.stream.progress.policy, NoPolicy):
        raise QueryError(
            f"stream `{record.stream.name}` never ends and does not say how far it is: nothing could ever be"
            " answered",
            code="no-progress",
            hint="declare it ORDERED, with SLACK, or PUNCTUATED BY",
        )


def check_clock(name: str, plan: Emit, streams: Mapping[str, StreamRecord]) -> None:
    """Refuse a query whose clock would stand still for ever: it has a window on an attribute of a stream that
    never ends, and nothing says how far that attribute is."""
    _check_answers(name, plan)
    windows = [node for node in plan.walk() if isinstance(node, Window)]
    for window, scan in ((w, each) for w in windows for each in w.origins if isinstance(each, Scan)):
        attribute, stream = window.attribute_of(scan), scan.stream
        if attribute not in (stream.wattr, *IMPLICIT, *dict(stream.also)) and streams[stream.name].is_live:
            raise QueryError(
                f"query `{name}` could never be answered: it has a window on `{attribute}`, but stream"
                f" `{stream.name}` never ends and says how far it is by `{stream.wattr}` only",
                code="no-progress",
                hint=f"declare how it is ordered: CREATE STREAM {stream.name} (…) WATTR {stream.wattr} … ALSO"
                f" {attribute} ORDERED; or window it on `{stream.wattr}`",
            )


def _check_answers(name: str, plan: Emit) -> None:
    """Refuse a query that would tell the same answer a billion times a day, while nothing comes."""
    period = repetition(plan)
    if period is None or plan.leaves[0].domain is not Domain.TIME or period * _MOST_A_DAY >= _DAY:
        return
    raise QueryError(
        f"query `{name}` would answer {_DAY // period:,} times a day, whether rows come or not: rows stay in"
        f" its windows, and every SLIDE of {quantity(period, Domain.TIME)} tells the answer again",
        code="too-many-answers",
        hint="write a longer SLIDE, as in SLIDE 1 SECOND; or SELECT ISTREAM(…), to be told changes only",
    )


_DAY, _MOST_A_DAY = 86_400_000_000, 1_000_000_000


def _user_aggregates(query: StandingQuery) -> tuple[Definition, ...]:
    gammas = (node for node in query.plan.walk() if isinstance(node, Aggregate))
    return definitions(call.function for gamma in gammas for _, call in gamma.aggregates)


def _changed(name: str, before: str, now: str) -> StateError:
    return StateError(
        f"query `{name}` is not the one that this state belongs to; it was:\n{before}\nand is now:\n{now}",
        code="query-changed",
        hint=f"DROP QUERY {name} first, give the new one another name, or use a new state directory",
    )
