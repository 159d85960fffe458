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

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from windrow.algebra.explain.operators import quantity
from windrow.engine.query_start import Basis, begun
from windrow.engine.sharing.arrangement import arranged
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import RegisterQuery
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_script
from windrow.physical import plan_query
from windrow.physical.units import GeneralUnit
from windrow.sharing.planner import share
from windrow.sharing.rules import SharingPlan
from windrow.spark.sources import infer_columns
from windrow.windows.domain import Domain

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.engine.records import QueryRecord
    from windrow.optimizer.flows import Statistics
    from windrow.physical import PhysicalPlan


def explain_sharing(script: str, catalog: Catalog | None = None) -> SharingPlan:
    """What the standing queries of a script can share, as if all were there at once."""
    bound = compile_script(script, Catalog(inference=infer_columns) if catalog is None else catalog)
    return shared({each.query.name: each.query.plan for each in bound if isinstance(each, RegisterQuery)})


def shared(queries: Mapping[str, Emit]) -> SharingPlan:
    """The sharing plan of queries in the form in which they run."""
    return share({name: _runnable(emit) for name, emit in queries.items()})


def together(
    queries: Sequence[StandingQuery], statistics: Statistics | None = None
) -> dict[str, PhysicalPlan]:
    """The plan of each query of a script, as it runs if all come at once; none of a SELECT by itself."""
    if not queries[0].name:
        return {}
    return arranged(record for query in queries if (record := _beginning(query, statistics)) is not None)


def _beginning(query: StandingQuery, statistics: Statistics | None) -> QueryRecord | None:
    """A query as it would be when it begins; None if no kernel runs it."""
    try:
        return begun(query, 0, basis=Basis(statistics=statistics))
    except QueryError:
        return None


def with_sharing(
    runs: Sequence[str], record: QueryRecord, leader: QueryRecord | None, period: int | None
) -> list[str]:
    """How a running query is computed: whose answers it reads, and how often it is refreshed, too;
    `period` is the scheduler's choice."""
    read = "" if leader is None else f"reads the answers of query `{leader.query.name}` at its own instants"
    shared = [f"share   {read}, by CS8"] if read else []
    return [*runs, *shared, *_begins(record), *_refreshes(record, period)]


def _begins(record: QueryRecord) -> list[str]:
    """From when on a query is complete that came after the first rows."""
    begin, unit = record.complete_from, record.bundle.unit
    if begin is None:
        return []
    if isinstance(unit, GeneralUnit) and unit.memory is not None:
        return [
            f"begin   its answers are complete, and given, from {_moment(record, begin + unit.memory)} on"
        ]
    return [f"begin   it answers windows that begin at {_moment(record, begin)} or later"]


def _moment(record: QueryRecord, instant: int) -> str:
    """An instant of a query's windows, for people."""
    if record.query.plan.leaves[0].domain is not Domain.TIME:
        return str(instant)
    return str(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=instant)).removesuffix("+00:00")


def _refreshes(record: QueryRecord, period: int | None) -> list[str]:
    """How often a query is refreshed, if it is not answered for every window."""
    asked = record.query.every
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
