"""How a standing query begins, or goes on: its record, and whether a state is really its own.

A state belongs to a query by its text and by the code of the aggregates that users have defined for it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from windrow.algebra.aggregates.user import definitions
from windrow.algebra.operators import Aggregate
from windrow.engine.records import QueryRecord, query_text
from windrow.engine.running import runnable
from windrow.errors import StateError
from windrow.spark.tasks.bundle import Bundle

if TYPE_CHECKING:
    from windrow.algebra.aggregates.definition import Definition
    from windrow.language.catalog import StandingQuery
    from windrow.state.entries import QueryState


def begun(
    query: StandingQuery, commit: int, stored: QueryState | None = None, *, by_group: bool | None = None
) -> QueryRecord:
    """A query's record after a commit: a new one, or the one whose state is stored, under its old id."""
    plan, text = runnable(query.plan), query_text(query)
    used = _user_aggregates(query)
    code = "\0".join(definition.fingerprint for definition in used)
    fingerprint = blake2b(f"{text}\0{code}".encode(), digest_size=16).hexdigest()
    if stored is not None and stored.fingerprint != fingerprint:
        raise _changed(query.name, stored.text, text)
    name = stored.options["id"] if stored else f"{query.name}@{commit + 1}"
    bundle = Bundle.of(name, plan, fingerprint, by_group=by_group, aggregates=used)
    record = QueryRecord(query, bundle, text, absorbed=commit)
    return record.resumed(stored, plan) if stored is not None else record


def _user_aggregates(query: StandingQuery) -> tuple[Definition, ...]:
    gammas = (node for node in query.plan.walk() if isinstance(node, Aggregate))
    return definitions(call.function for gamma in gammas for _, call in gamma.aggregates)


def _changed(name: str, before: str, now: str) -> StateError:
    return StateError(
        f"query `{name}` is not the one that this state belongs to; it was:\n{before}\nand is now:\n{now}",
        code="query-changed",
        hint=f"DROP QUERY {name} first, give the new one another name, or use a new state directory",
    )
