"""The way of a query, put together: text becomes a plan, a physical plan, and an explanation of it.

Every step is one call of the package that knows how:

    compile_query   windrow.language    text -> plan
    plan_query      windrow.physical    plan -> the physical plan that runs, and why it does
    explained       windrow.physical    physical plan -> facts for people
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.engine.sharing.script_plan import together
from windrow.engine.shedding_report import what_is_shed
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import ExplainQuery, RegisterQuery, RunOnce
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_query, compile_script, declare_stream, declare_table
from windrow.physical import plan_query
from windrow.physical.describe import explained, how_it_runs
from windrow.redaction import redacted
from windrow.sinks import check_sink
from windrow.spark.sources import infer_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from windrow.algebra.explain import Explanation
    from windrow.algebra.plan import Emit
    from windrow.language.binder.bound_statements import BoundStatement
    from windrow.optimizer.cost.statistics import Statistics
    from windrow.physical import PhysicalPlan

#: columns, or columns and options, as they stand in CREATE STREAM or CREATE TABLE
Declared = str | tuple[str, str]


def explain(
    query: str,
    streams: Mapping[str, Declared] | None = None,
    tables: Mapping[str, Declared] | None = None,
    *,
    sink: str | None = None,
    statistics: Statistics | None = None,
) -> Explanation:
    """How Windrow would run a query. Printed, it is text for people; its fields hold the same facts.

    >>> found = explain("SELECT DISTINCT a, ts FROM s [ROWS 9]", streams={"s": "a BIGINT, ts TIMESTAMP"})
    >>> for step in found.plan.walk():
    ...     print(f"{step.operator:<20}{step.pattern!s:<5}{step.method}")
    emit '+' and '-'    STR  changes
    δ DISTINCT          STR  counting δ
    π a, ts             STR  row by row
    window s [ROWS 9]   STR  numbered rows
    """
    emit = compile_query(query, declared(streams or {}, tables or {}))
    return explain_plan(emit, sink=sink, statistics=statistics)


def declared(streams: Mapping[str, Declared], tables: Mapping[str, Declared]) -> Catalog:
    """A catalog of these streams and tables."""
    catalog = Catalog(inference=infer_columns)
    for name, parts in streams.items():
        catalog.add(declare_stream(name, *_as_tuple(parts)))
    for name, parts in tables.items():
        catalog.add(declare_table(name, *_as_tuple(parts)))
    return catalog


def explain_script(text: str, catalog: Catalog, statistics: Statistics | None = None) -> list[Explanation]:
    """The explanation of every query of a script, in order; its declarations change the catalog."""
    queries = list(_queries(compile_script(text, catalog)))
    if not queries:
        raise QueryError(
            "there is no query to explain",
            code="no-query",
            hint="add a SELECT, or CREATE QUERY name AS SELECT …",
        )
    plans = together(queries, statistics)
    return [
        described(
            plans.get(query.name) or plan_query(query.plan, statistics),
            name=query.name or None,
            sink=query.sink,
            max_gap=query.max_gap,
        )
        for query in queries
    ]


def explain_plan(
    emit: Emit,
    *,
    name: str | None = None,
    sink: str | None = None,
    statistics: Statistics | None = None,
    observed: Sequence[str] = (),
    max_gap: int | None = None,
) -> Explanation:
    """The explanation of a query, as it would run."""
    return described(plan_query(emit, statistics), name=name, sink=sink, observed=observed, max_gap=max_gap)


def described(
    plan: PhysicalPlan,
    *,
    name: str | None = None,
    sink: str | None = None,
    observed: Sequence[str] = (),
    max_gap: int | None = None,
) -> Explanation:
    """The explanation of a physical plan, with what becomes of its answers."""
    return explained(
        plan,
        name=name,
        sink=redacted(sink) if sink else None,
        promised=check_sink(sink) if sink else None,
        runs=[*how_it_runs(plan), *what_is_shed(plan, max_gap)],
        observed=observed,
    )


def _queries(statements: list[BoundStatement]) -> Iterator[StandingQuery]:
    """The queries of a script; those without a name are numbered if there are others."""
    plans = [s for s in statements if isinstance(s, RegisterQuery | ExplainQuery | RunOnce)]
    for number, statement in enumerate(plans, start=1):
        if isinstance(statement, RegisterQuery):
            yield statement.query
        else:
            yield StandingQuery(f"#{number}" if len(plans) > 1 else "", statement.plan)


def _as_tuple(parts: Declared) -> tuple[str, ...]:
    return (parts,) if isinstance(parts, str) else parts
