"""The way of a query, put together: text becomes a plan, a physical plan, and an explanation of it, which
only tells what `windrow.physical` has decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap

from windrow.algebra import Aggregate, Emit, Scan, Subquery, TableKind, TableScan, Window
from windrow.algebra.explain import ExplainStep, Explanation, gather
from windrow.algebra.explain.operators import Spelling, operator_text, quantity
from windrow.engine.sharing.arrangement import together
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import ExplainQuery, RegisterQuery, RunOnce
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_query, compile_script, declare_stream, declare_table
from windrow.optimizer import costs, flows
from windrow.physical import PhysicalPlan, native_sql, plan_query, planner, units
from windrow.redaction import redacted
from windrow.shedding import agreement, rules
from windrow.sinks import check_sink
from windrow.spark.sources import infer_columns
from windrow.windows import Panes, RangeWindow

#: columns, or columns and options, as they stand in CREATE STREAM or CREATE TABLE
Declared = str | tuple[str, str]


def explain(
    query: str,
    streams: Mapping[str, Declared] | None = None,
    tables: Mapping[str, Declared] | None = None,
    *,
    sink: str | None = None,
    statistics: flows.Statistics | None = None,
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
    catalog = Catalog(inference=infer_columns)
    for declare, entries in ((declare_stream, streams), (declare_table, tables)):
        for name, parts in entries.items():
            catalog.add(declare(name, *((parts,) if isinstance(parts, str) else parts)))
    return catalog


def explain_script(
    text: str, catalog: Catalog, statistics: flows.Statistics | None = None
) -> list[Explanation]:
    """The explanation of every query of a script, in order; its declarations change the catalog."""
    statements = compile_script(text, catalog)
    asking = [each for each in statements if isinstance(each, RegisterQuery | ExplainQuery | RunOnce)]
    queries = []
    for number, each in enumerate(asking, start=1):  # those without a name are numbered if there are others
        name = f"#{number}" if len(asking) > 1 else ""
        queries.append(each.query if isinstance(each, RegisterQuery) else StandingQuery(name, each.plan))
    if not queries:
        raise QueryError(
            "there is no query to explain",
            code="no-query",
            hint="add a SELECT, or CREATE QUERY name AS SELECT …",
        )
    plans, found = together(queries, statistics), []
    for query in queries:
        plan = plans.get(query.name) or plan_query(query.plan, statistics)
        found.append(described(plan, name=query.name or None, sink=query.sink, max_gap=query.max_gap))
    return found


def explain_plan(
    emit: Emit,
    *,
    name: str | None = None,
    sink: str | None = None,
    statistics: flows.Statistics | None = None,
    max_gap: int | None = None,
) -> Explanation:
    """The explanation of a query, as it would run."""
    return described(plan_query(emit, statistics), name=name, sink=sink, max_gap=max_gap)


def described(
    plan: PhysicalPlan,
    *,
    name: str | None = None,
    sink: str | None = None,
    observed: Sequence[str] = (),
    max_gap: int | None = None,
) -> Explanation:
    """The explanation of a physical plan, with what becomes of its answers."""
    return gather(
        plan.asked,
        steps_of(plan),
        name=name,
        sink=redacted(sink) if sink else None,
        promised=check_sink(sink) if sink else None,
        fired=plan.fired,
        considered=plan.considered,
        runs=[*how_it_runs(plan), *what_is_shed(plan, max_gap)],
        observed=observed,
    )


_WIDTH, _LABEL = 110, "shed    "
#: what else could be done, to be compared with
_OTHERS = (
    f"Not used: RDrop, which drops answers at random: {rules.RDROP.text()};"
    f" RowDrop, which drops rows at random: {rules.ROW_DROP.text()}"
)


def what_is_shed(plan: PhysicalPlan, max_gap: int | None) -> list[str]:
    """The line about overload; none for a query without MAX GAP, which loses nothing.

    >>> bids = {"bids": ("price DOUBLE, ts TIMESTAMP", "SLACK 5 SECONDS SHEDDABLE")}
    >>> text = "SELECT MAX(price) AS top FROM bids [RANGE 1 MINUTE SLIDE 10 SECONDS]"
    >>> plan = plan_query(compile_query(text, declared(bids, {})))
    >>> line, *others = what_is_shed(plan, max_gap=11)
    >>> print(line)  # doctest: +ELLIPSIS
    shed    WinDrop(window 1 MINUTE, slide 10 SECONDS, B 11): each answer given is exact, at most ... in a
    """
    if max_gap is None:
        return []
    return wrap(_told(plan, max_gap), _WIDTH, initial_indent=_LABEL, subsequent_indent=" " * len(_LABEL))


def _told(plan: PhysicalPlan, max_gap: int) -> str:
    emit = plan.asked
    try:
        agreed = agreement.agree(agreement.SheddableQuery("", emit, max_gap))
        drop = agreed.drop
    except rules.CannotShed as refusal:
        return f"no window is left out: {refusal.reason}"
    domain = emit.leaves[0].domain
    window, slide = quantity(drop.window, domain), quantity(drop.slide, domain)
    rows = f"{quantity(drop.early_ticks, domain)} of rows" if drop.early_ticks else "no row"
    inner = [
        f", and {quantity(each.early_ticks, domain)} of the answers of level {level}"
        for level, each in enumerate(agreed.arcs[1:], start=1)
        if each.early_ticks and len(agreed.arcs) == plan.unit.stages
    ]
    return (
        f"WinDrop(window {window}, slide {slide}, B {drop.batch}): {rules.WINDROP.text(drop.batch)};"
        f" a gap of {drop.batch} makes {rows} needless{''.join(inner)}."
        f" {f'{planner.DROPS[plan.drops]} ' if drop.early_ticks and plan.drops else ''}{_OTHERS}"
    )


def what_it_saves(agreed: agreement.Agreed | None, seconds: Sequence[float]) -> list[str]:
    """Where a gap saves most of the work on a query's levels, as it was measured; for EXPLAIN ANALYZE."""
    share, place = (0.0, 0) if agreed is None else agreed.saved(seconds)
    if agreed is None or not share:
        return []
    where = "rows" if place == 0 else f"answers of level {place}"
    return [f"gaps of {agreed.max_gap} save most by {where} that nobody needs: {share:.0%} of this work"]


def steps_of(plan: PhysicalPlan) -> ExplainStep:
    """The operators as EXPLAIN draws them; how much they keep is said where statistics are known."""
    sizes = costs.estimate(plan.emit, plan.statistics) if plan.statistics.rates else {}
    return _step(plan.root, (), Spelling.of(plan.emit), sizes, plan.statistics)


def how_it_runs(plan: PhysicalPlan) -> list[str]:
    """What happens to rows when they come, and when answers are computed."""
    unit, shared = plan.unit, [f"share   {line}" for line in plan.sharing.lines]
    if not isinstance(unit, units.GeneralUnit):
        close = plan.sharing.close if plan.sharing.synopses else "panes, as windows end"
        return [f"ingest  {_ingested(native_sql.why_from_rows(unit.program))}", f"close   {close}", *shared]
    routed = ", ".join(f"{name} by {', '.join(columns)}" for name, columns in unit.placement.items())
    where = f"rows are routed: {routed}" if routed else "all rows meet in one shard"
    tables = [f"table   {_table(unit, name)}" for name in unit.tables]
    if not isinstance(unit, units.UnionUnit):
        return [f"ingest  {where}", *tables, f"close   {_when(unit)}", *shared]
    closes = [f"close   branch {n}: {_when(each)}" for n, each in enumerate(unit.branches, start=1)]
    return [f"ingest  {where}", *tables, *closes]


def _when(unit: units.GeneralUnit) -> str:
    why = unit.program.why_not_lazy
    return "lazily, when a report is due" if why is None else f"step by step, by what is new: {why}"


def _ingested(why: str | None) -> str:
    if why is not None:
        return f"from rows, in Python workers: {why}"
    return "aggregated by Spark, one state per finest pane and group, shared by all queries of this grouping"


def _table(unit: units.GeneralUnit, name: str) -> str:
    table, column = unit.tables[name], unit.table_places[name]
    if column is not None:
        kept = f"each shard keeps the rows whose {column} is routed to it"
    else:
        kept = "every shard keeps all of it" if unit.placement else "kept in that shard"
    reach = "is for later rows" if table.kind is TableKind.NRR else "reaches back to windows"
    return f"{name} {table.kind.value}: {kept}; a change {reach}"


def _step(
    part: planner.PhysicalOperator,
    path: flows.Path,
    spelling: Spelling,
    sizes: Mapping[flows.Path, flows.Estimate],
    statistics: flows.Statistics,
) -> ExplainStep:
    node = part.node
    inner = Spelling.of(node.query) if isinstance(node, Subquery) else spelling
    inner = Spelling.of(node) if isinstance(node, Emit) and not node.is_union else inner
    # a window right over a stream is one line: the stream has nothing to say of its own
    below = () if isinstance(node, Window) and isinstance(node.input, Scan) else part.inputs
    label = None if isinstance(node, TableScan) else node.label
    inputs = [_step(each, (*path, place), inner, sizes, statistics) for place, each in enumerate(below)]
    return ExplainStep(
        operator=operator_text(node, spelling),
        pattern=label.pattern if label else None,
        expiry=label.reason if label else "",
        method=part.method,
        reason=part.reason,
        state=part.state,
        state_rows=_state_rows(part, path, sizes, statistics),
        kind=part.kind,
        place=part.place,
        passes_on=part.passes_on,
        inputs=tuple(inputs),
    )


def _state_rows(
    part: planner.PhysicalOperator,
    path: flows.Path,
    sizes: Mapping[flows.Path, flows.Estimate],
    statistics: flows.Statistics,
) -> float | None:
    """How many rows an operator is expected to keep; None where nothing is known, or nothing kept."""
    node, size = part.node, sizes.get(path)
    if size is None or not part.state:
        return None
    spec = node.leaves[0].spec if isinstance(node, Aggregate) else None
    if isinstance(node, Aggregate) and isinstance(spec, RangeWindow) and spec.slide is not None:
        parts = max(1.0, size.rows) * Panes.of(spec).per_window
        return parts * flows.pane_cells(node, sizes[(*path, 0)].rows / parts, statistics)
    if isinstance(node, Emit):
        return size.rows
    return None if isinstance(node, Window) and not size.state_rows else size.state_rows
