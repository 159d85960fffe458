"""A running query planned anew: between two epochs, by what was seen of its streams, with no gap in answers.

Joins and negations hold the rows of its windows, and the better plan is started from these
(`windrow.kernels.relational.state_transfer`). Where they do not, the query keeps the plan it has.

A user asks for it with REFRESH QUERY. By itself the engine looks once after a start, and then ever more
seldom; it changes a plan only if the other one is much cheaper, and says so.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from logging import getLogger
from typing import TYPE_CHECKING

from windrow.algebra.canonical import canonical_text
from windrow.errors import QueryError
from windrow.execution.bundle import Bundle
from windrow.kernels.relational.state_transfer import why_not_rebuilt
from windrow.optimizer.cost.model import total_cost
from windrow.physical.identity import RecordedPlan
from windrow.physical.units import GeneralUnit, UnionUnit

if TYPE_CHECKING:
    from windrow.engine.engine import Engine
    from windrow.engine.records import QueryRecord
    from windrow.physical import PhysicalPlan

#: the engine itself changes a plan only for one that costs less than this share of it
WORTH = 0.7
#: commits between two looks: at first, and at most
FIRST_PAUSE, LONGEST_PAUSE = 16, 1024
#: so many queries are looked at in one epoch
MOST_AT_ONCE = 4
_log = getLogger("windrow.engine")


class Replanning:
    """When the engine looks whether queries have the best plans, and which of them."""

    def __init__(self, engine: Engine) -> None:
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
            if record is not None and isinstance(record.bundle.unit, GeneralUnit) and not _shares(record):
                looked += 1
                if why_never(record) is None:
                    change_if_worth(self._engine, record)


def _shares(record: QueryRecord) -> bool:
    return bool(record.shares) or record.member is not None


def change_if_worth(engine: Engine, record: QueryRecord) -> bool:
    """Give a query another plan, if that is much cheaper and its state can become that of it."""
    name = record.query.name
    engine.observed = engine.observed.looking_at(engine.store, engine.last, record)
    better = engine.would_run(record.query)
    cost, least = (total_cost(plan.emit, better.statistics) for plan in (record.physical, better))
    if least >= cost * WORTH:
        return False
    after = _with_plan(engine, record, better)
    if _why_not(record, after) is not None:
        return False
    try:
        _rebuild(engine, record, after)
    except QueryError as error:
        _log.warning("%s", error)
        return False
    _log.info("query %s: its plan %s", name, after.physical.changed)
    return True


def replan(engine: Engine, name: str) -> bool:
    """Give a query the plan that is the cheapest now; whether that is another one. Then a commit has it."""
    record = engine.queries[name]
    engine.observed = engine.observed.looking_at(engine.store, engine.last, record)
    physical = engine.would_run(record.query)
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


def _with_plan(engine: Engine, record: QueryRecord, physical: PhysicalPlan) -> QueryRecord:
    """A query with another plan, which says since when it has it and why."""
    costs = [total_cost(plan.emit, physical.statistics) for plan in (physical, record.physical)]
    least, cost = (f"{each:.3g}" for each in costs)
    told = f"was changed with commit {engine.last.number + 1}: cost {least} instead of {cost}"
    physical = replace(physical, changed=told)
    bundle = Bundle.of(record.id, physical, record.bundle.fingerprint, aggregates=record.bundle.aggregates)
    recorded = RecordedPlan.of(physical, bundle.unit)
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
    if not isinstance(unit, GeneralUnit):
        return "it is answered from panes"
    if isinstance(unit, UnionUnit):
        return "it is a union of streams"
    return why_not_rebuilt(unit.program, unit.program)


def _why_not(before: QueryRecord, after: QueryRecord) -> str | None:
    """Why the state of a query cannot become that of another plan."""
    why = why_never(before)
    if why is not None:
        return why
    one, other = before.bundle.unit, after.bundle.unit
    assert isinstance(one, GeneralUnit)
    if not isinstance(other, GeneralUnit):
        return "it would be answered from panes"
    if one.placement != other.placement:
        return "its rows would have to move between shards"
    return why_not_rebuilt(one.program, other.program)


def _rebuild(engine: Engine, before: QueryRecord, after: QueryRecord) -> None:
    """Make the states of a query those of its new plan, and commit it."""
    draft, name = engine._draft(), before.query.name
    draft.queries[name] = after
    work = [replace(draft._work(after), deltas=(), replaced=before.bundle)]
    reports = engine.jobs.close(draft.tasks(work, [], engine._place()))
    faults = [fault for report in reports for fault in report.faults.values()]
    if faults:
        raise QueryError(
            f"query `{name}` keeps its plan: its state could not be made that of the better one",
            code="cannot-refresh",
            hint=str(faults[0]),
        )
    draft.close(work, [], reports)
    # rows that wait are still to be taken in
    draft.queries[name] = replace(
        draft.queries[name], absorbed=before.absorbed, is_fresh=before.is_fresh, held=before.held
    )
    engine._commit(draft)
