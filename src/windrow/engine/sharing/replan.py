"""A running query planned anew: between two epochs, by what was seen of its streams, with no gap in answers.

Joins and negations hold the rows of its windows, and the better plan is started from these
(`windrow.kernels.relational.state_transfer`). Where they do not, the query keeps the plan it has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.canonical import canonical_text
from windrow.errors import QueryError
from windrow.execution.bundle import Bundle
from windrow.kernels.relational.state_transfer import why_not_rebuilt
from windrow.physical.identity import RecordedPlan
from windrow.physical.units import GeneralUnit, UnionUnit

if TYPE_CHECKING:
    from windrow.engine.engine import Engine
    from windrow.engine.records import QueryRecord


def replan(engine: Engine, name: str) -> bool:
    """Give a query the plan that is the cheapest now; whether that is another one. Then a commit has it."""
    record = engine.queries[name]
    engine.observed = engine.observed.looking_at(engine.store, engine.last, record)
    physical = engine.would_run(record.query)
    if canonical_text(physical.emit) == canonical_text(record.physical.emit):
        return False
    bundle = Bundle.of(record.id, physical, record.bundle.fingerprint, aggregates=record.bundle.aggregates)
    changed = replace(
        record, physical=physical, bundle=bundle, recorded=RecordedPlan.of(physical, bundle.unit)
    )
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


def _why_not(before: QueryRecord, after: QueryRecord) -> str | None:
    """Why the state of a query cannot become that of another plan."""
    if not before.is_running:
        return "it does not run"
    if before.shares or before.member is not None:
        return "it shares what it keeps with other queries"
    if before.bundle.carries_ends:
        return "an archive keeps its results"
    one, other = before.bundle.unit, after.bundle.unit
    if not isinstance(one, GeneralUnit) or not isinstance(other, GeneralUnit):
        return "it is answered from panes"
    if isinstance(one, UnionUnit) or isinstance(other, UnionUnit):
        return "it is a union of streams"
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
