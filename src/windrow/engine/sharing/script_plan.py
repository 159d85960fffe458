"""What the queries of a script would share: their sharing plan, from text.

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

from collections.abc import Mapping
from typing import TYPE_CHECKING

from windrow.algebra.explain.brackets import quantity
from windrow.engine.query_start import begun
from windrow.engine.sharing.common_subplans import teamed
from windrow.engine.sharing.report import shared_parts
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import RegisterQuery
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_script
from windrow.physical import plan_query
from windrow.sharing import SharingPlan, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from windrow.algebra.plan import Emit
    from windrow.engine.engine import Engine
    from windrow.engine.records import QueryRecord
    from windrow.language.catalog import StandingQuery


def explain_sharing(script: str, catalog: Catalog | None = None) -> SharingPlan:
    """What the standing queries of a script can share, as if all were there at once."""
    bound = compile_script(script, Catalog() if catalog is None else catalog)
    return shared({each.query.name: each.query.plan for each in bound if isinstance(each, RegisterQuery)})


def shared(queries: Mapping[str, Emit]) -> SharingPlan:
    """The sharing plan of queries in the form in which they run."""
    return share({name: _runnable(emit) for name, emit in queries.items()})


def what_is_common(queries: Sequence[StandingQuery]) -> dict[str, list[str]]:
    """For each of several queries, what it can share with the others; nothing for one by itself."""
    if len(queries) < 2:
        return {}
    plan = shared({query.name: query.plan for query in queries})
    found = {
        query.name: [
            f"share   can {line.replace('shares', 'share', 1)}"
            for line in plan.lines(query.name)
            if line.startswith("shares synopsis") and len(query.plan.leaves) == 1
        ]
        for query in queries
    }
    records = [record for query in queries if (record := _beginning(query)) is not None]
    members = teamed(records, 0)
    together = [each.joining(members.get(each.id)) for each in records]
    for record in together:
        parts = [f"share   {part.of_part}" for part in shared_parts(record, together)]
        found[record.query.name] += parts
    return found


def _beginning(query: StandingQuery) -> QueryRecord | None:
    """A query as it would be when it begins; None if no kernel runs it."""
    try:
        return begun(query, 0)
    except QueryError:
        return None


def with_sharing(runs: Sequence[str], engine: Engine, record: QueryRecord) -> list[str]:
    """How a running query is computed: whose answers it reads, and how often it is refreshed, too."""
    leader = engine.leader_of(record)
    read = "" if leader is None else f"reads the answers of query `{leader.query.name}` at its own instants"
    return [*runs, *([f"share   {read}, by CS8"] if read else []), *_refreshes(engine, record)]


def _refreshes(engine: Engine, record: QueryRecord) -> list[str]:
    """How often a query is refreshed, if it is not answered for every window."""
    asked, period = record.query.every, engine.refreshes.period(record.id)
    if asked is None:
        return []
    domain = record.query.plan.leaves[0].domain
    more = "" if period is None or period >= asked else f", {quantity(period, domain)} being cheaper"
    return [f"refresh every {quantity(asked, domain)}{more}, about the newest window"]


def _runnable(emit: Emit) -> Emit:
    try:
        return plan_query(emit).emit
    except QueryError:
        return emit
