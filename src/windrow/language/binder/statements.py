"""Statements, one after the other: each sees the catalog as those before it left it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.errors import QueryError, nearest
from windrow.language.archives import CreateArchive
from windrow.language.binder.archives import bind_archive
from windrow.language.binder.bound import (
    AnalyzeQuery,
    BoundStatement,
    DeclareArchive,
    DeclareStream,
    DeclareTable,
    Dropped,
    ExplainQuery,
    RefreshQuery,
    RegisterQuery,
    RunOnce,
    ShowAll,
)
from windrow.language.binder.declarations import bind_stream, bind_table
from windrow.language.binder.places import at
from windrow.language.binder.queries import bind_query
from windrow.language.catalog import StandingQuery
from windrow.language.once import bind_once
from windrow.language.syntax import (
    Analyze,
    CreateQuery,
    CreateStream,
    CreateTable,
    Drop,
    Explain,
    Refresh,
    SelectOnce,
    Show,
    Statement,
)

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.language.catalog import Catalog

_SHOWN = {"STREAMS": "STREAM", "TABLES": "TABLE", "QUERIES": "QUERY", "ARCHIVES": "ARCHIVE"}


def bind_statement(statement: Statement, catalog: Catalog) -> BoundStatement:
    """What a statement means; declarations change the catalog."""
    with at(statement):
        match statement:
            case CreateStream():
                stream = bind_stream(statement)
                catalog.add(stream)
                return DeclareStream(stream)
            case CreateTable():
                table = bind_table(statement)
                catalog.add(table)
                return DeclareTable(table)
            case CreateQuery():
                query = _standing(statement, catalog)
                catalog.add(query)
                return RegisterQuery(query)
            case CreateArchive():
                archive = bind_archive(statement, catalog)
                catalog.add(archive)
                return DeclareArchive(archive)
            case Drop():
                return Dropped(statement.kind, catalog.drop(statement.kind, statement.name).name)
            case Show():
                return ShowAll(_SHOWN.get(statement.kind, statement.kind))
            case Explain():
                asked = _asked(SelectOnce(statement.span, statement.query), catalog)
                return ExplainQuery(asked.plan, asked.once)
            case Analyze():
                return AnalyzeQuery(_registered(statement, catalog))
            case Refresh():
                return RefreshQuery(_registered(statement, catalog))
            case SelectOnce():
                return _asked(statement, catalog)
    raise TypeError(f"no statement {type(statement).__name__}")


def _asked(statement: SelectOnce, catalog: Catalog) -> RunOnce:
    """A SELECT by itself; where it would not be a standing query, its plan is that of the one answer."""
    once, refusal = None, None
    try:
        once = bind_once(statement, catalog)
    except QueryError as error:
        refusal = error
    try:
        return RunOnce(bind_query(statement.query, catalog), once, refusal)
    except QueryError:
        if once is None:
            raise
        return RunOnce(once.plan, once)


def _registered(statement: Analyze | Refresh, catalog: Catalog) -> StandingQuery:
    found = {name.lower(): query for name, query in catalog.queries.items()}.get(statement.name.lower())
    if found is None:
        raise QueryError(
            f"no query `{statement.name}`",
            code="unknown-source",
            hint=nearest(statement.name, catalog.queries)
            or "EXPLAIN ANALYZE and REFRESH are about a query that runs: CREATE QUERY name AS … first",
        )
    return found


def _standing(statement: CreateQuery, catalog: Catalog) -> StandingQuery:
    plan = bind_query(statement.query, catalog)
    if statement.max_gap is not None:
        _may_shed(plan, statement.max_gap)
    every = _every(statement, plan)
    at_most = _at_most(statement, plan, every)
    return StandingQuery(
        statement.name, plan, statement.sink, statement.priority, statement.max_gap, every, at_most
    )


def _may_shed(plan: Emit, max_gap: int) -> None:
    """MAX GAP lets whole windows be dropped, so there must be windows, each with an answer of its own."""
    if max_gap < 1:
        raise QueryError(
            f"MAX GAP {max_gap} allows nothing",
            code="bad-max-gap",
            hint="MAX GAP counts windows from 1 on; leave it out to lose none",
        )
    if not plan.reports_extents or any(not leaf.spec.is_logical for leaf in plan.leaves):
        raise QueryError(
            "MAX GAP lets whole windows be dropped, but this query has no answer per window of time",
            code="bad-max-gap",
            hint="give its windows RANGE and SLIDE, or leave MAX GAP out",
        )


def _every(statement: CreateQuery, plan: Emit) -> int | None:
    if statement.every is None:
        return None
    period: int = statement.every.ticks(plan.leaves[0].domain)
    if period < 1:
        raise QueryError(f"EVERY {statement.every} is no period", code="bad-every", hint="1 or more")
    return period


def _at_most(statement: CreateQuery, plan: Emit, every: int | None) -> int | None:
    if statement.at_most is None or every is None:
        return None
    bound: int = statement.at_most.ticks(plan.leaves[0].domain)
    if bound < every:
        raise QueryError(
            f"AT MOST {statement.at_most} is less than EVERY {statement.every}",
            code="bad-every",
            hint="an answer is as old as the period before the next one comes; give AT MOST more than that",
        )
    return bound
