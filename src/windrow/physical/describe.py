"""EXPLAIN: a physical plan laid out for people. Nothing is decided or predicted here.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Distinct
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.physical import plan_query
>>> from windrow.windows.rows import RowsWindow
>>> stream = Stream("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts")
>>> plan = plan_query(Emit(Distinct(Window(Scan(stream, "s"), RowsWindow(9)))))
>>> for step in steps_of(plan).walk():
...     print(f"{step.operator:<20}{step.pattern!s:<5}{step.state}")
emit '+' and '-'    STR  answers with their ends, in a calendar of 10 buckets
δ DISTINCT          STR  the count of each value, known ends in a calendar of 10 buckets
window s [ROWS 9]   STR  the rows of the window by number
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.catalog import TableKind
from windrow.algebra.explain import ExplainStep, Explanation, gather
from windrow.algebra.explain.operators import Spelling, operator_text
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Scan, Subquery, TableScan, Window
from windrow.optimizer.cost.flows import pane_cells
from windrow.optimizer.cost.model import estimate
from windrow.physical.native_sql import why_from_rows
from windrow.physical.units import GeneralUnit, UnionUnit
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windrow.optimizer.cost.model import Estimate, Path
    from windrow.optimizer.cost.statistics import Statistics
    from windrow.physical.operators import PhysicalOperator
    from windrow.physical.planner import PhysicalPlan


def explained(
    plan: PhysicalPlan,
    *,
    name: str | None = None,
    sink: str | None = None,
    promised: str | None = None,
    runs: Sequence[str] | None = None,
    observed: Sequence[str] = (),
) -> Explanation:
    """The explanation of a physical plan; `runs` are more lines of how it runs, or others."""
    return gather(
        plan.asked,
        steps_of(plan),
        name=name,
        sink=sink,
        promised=promised,
        fired=plan.fired,
        considered=plan.considered,
        runs=how_it_runs(plan) if runs is None else runs,
        observed=observed,
    )


def steps_of(plan: PhysicalPlan) -> ExplainStep:
    """The operators as EXPLAIN draws them; how much they keep is said where statistics are known."""
    sizes = estimate(plan.emit, plan.statistics) if plan.statistics.rates else {}
    return _step(plan.root, (), Spelling.of(plan.emit), sizes, plan.statistics)


def how_it_runs(plan: PhysicalPlan) -> list[str]:
    """What happens to rows when they come, and when answers are computed."""
    unit, shared = plan.unit, [f"share   {line}" for line in plan.sharing.lines]
    if not isinstance(unit, GeneralUnit):
        close = plan.sharing.close if plan.sharing.synopses else "panes, as windows end"
        return [f"ingest  {_ingested(why_from_rows(unit.program))}", f"close   {close}", *shared]
    routed = ", ".join(f"{name} by {', '.join(columns)}" for name, columns in unit.placement.items())
    where = f"rows are routed: {routed}" if routed else "all rows meet in one shard"
    tables = [f"table   {_table(unit, name)}" for name in unit.tables]
    if not isinstance(unit, UnionUnit):
        return [f"ingest  {where}", *tables, f"close   {_when(unit)}", *shared]
    closes = [f"close   branch {n}: {_when(each)}" for n, each in enumerate(unit.branches, start=1)]
    return [f"ingest  {where}", *tables, *closes]


def _when(unit: GeneralUnit) -> str:
    why = unit.program.why_not_lazy
    return "lazily, when a report is due" if why is None else f"step by step, by what is new: {why}"


def _ingested(why: str | None) -> str:
    if why is not None:
        return f"from rows, in Python workers: {why}"
    return "aggregated by Spark, one state per finest pane and group, shared by all queries of this grouping"


def _table(unit: GeneralUnit, name: str) -> str:
    table, column = unit.tables[name], unit.table_places[name]
    if column is not None:
        kept = f"each shard keeps the rows whose {column} is routed to it"
    else:
        kept = "every shard keeps all of it" if unit.placement else "kept in that shard"
    reach = (
        "a change is for later rows" if table.kind is TableKind.NRR else "a change reaches back to windows"
    )
    return f"{name} {table.kind.value}: {kept}; {reach}"


def _step(
    part: PhysicalOperator,
    path: Path,
    spelling: Spelling,
    sizes: Mapping[Path, Estimate],
    statistics: Statistics,
) -> ExplainStep:
    node = part.node
    inner = Spelling.of(node.query) if isinstance(node, Subquery) else spelling
    inner = Spelling.of(node) if isinstance(node, Emit) and not node.is_union else inner
    # a window right over a stream is one line: the stream has nothing to say of its own
    below = () if isinstance(node, Window) and isinstance(node.input, Scan) else part.inputs
    label = None if isinstance(node, TableScan) else node.label
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
        inputs=tuple(
            _step(each, (*path, place), inner, sizes, statistics) for place, each in enumerate(below)
        ),
    )


def _state_rows(
    part: PhysicalOperator, path: Path, sizes: Mapping[Path, Estimate], statistics: Statistics
) -> float | None:
    """How many rows an operator is expected to keep; None where nothing is known, or nothing kept."""
    node, size = part.node, sizes.get(path)
    if size is None or not part.state:
        return None
    spec = node.leaves[0].spec if isinstance(node, Aggregate) else None
    if isinstance(node, Aggregate) and isinstance(spec, RangeWindow) and spec.slide is not None:
        parts = max(1.0, size.rows) * Panes.of(spec).per_window
        return parts * pane_cells(node, sizes[(*path, 0)].rows / parts, statistics)
    if isinstance(node, Emit):
        return size.rows
    return None if isinstance(node, Window) and not size.state_rows else size.state_rows
