"""How a plan runs: what EXPLAIN says of it, and the form of the plan that the engine takes.

>>> from windrow.engine.explaining import declared
>>> from windrow.language.compile import compile_query
>>> bids = {"bids": ("item BIGINT, price DOUBLE, ts TIMESTAMP", "SLACK 5 SECONDS")}
>>> text = "SELECT item, MAX(price) AS top FROM bids [RANGE 1 HOUR SLIDE 1 MINUTE] GROUP BY item"
>>> for line in how_it_runs(compile_query(text, declared(bids, {}))):
...     print(line)
ingest  aggregated by Spark, one state per finest pane and group, shared by all queries of this grouping
close   persisted two stacks: an epoch reads what it answers, whatever RANGE/SLIDE is (60 panes per window)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.catalog import TableKind
from windrow.errors import QueryError
from windrow.kernels.differences import Differences
from windrow.kernels.general.implementations import lines_of
from windrow.kernels.running import RunningTotals
from windrow.kernels.stacks import TwoStacks
from windrow.rules.optimise import normalise
from windrow.spark.native import why_from_rows
from windrow.spark.tasks.units import GeneralUnit, UnionUnit, unit_of

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.level import Level


def runnable(emit: Emit) -> Emit:
    """The plan that is run: rewritten by the rules. That windows are cut into panes is up to the kernels."""
    better = normalise(emit).plan
    try:
        unit_of(better)
    except QueryError:
        unit_of(emit)
        return emit
    return better


def how_it_runs(emit: Emit) -> list[str]:
    """What happens to rows when they come, and to windows when they close."""
    try:
        unit = unit_of(runnable(emit))
    except QueryError as error:
        return [f"not on Spark yet: {error.message}"]
    if isinstance(unit, GeneralUnit):
        return _general(unit)
    program = unit.program
    reason = why_from_rows(program)
    if reason is None:
        how = (
            "aggregated by Spark, one state per finest pane and group, shared by all queries of this grouping"
        )
    else:
        how = f"from rows, in Python workers: {reason}"
    closes = [f"close   {_kernel(level)}" for level in program.levels]
    return [f"ingest  {how}", *closes]


def _general(unit: GeneralUnit) -> list[str]:
    routed = ", ".join(f"{name} by {', '.join(columns)}" for name, columns in unit.placement.items())
    where = f"rows are routed: {routed}" if routed else "all rows meet in one shard"
    tables = [f"table   {_table(unit, name)}" for name in unit.tables]
    close = "close   operators over pieces of rows, each step by what is new"
    lines = [f"ingest  {where}", *tables, close]
    if not isinstance(unit, UnionUnit):
        return [*lines, *lines_of(unit.program)]
    for number, branch in enumerate(unit.branches, start=1):
        lines += [f"branch {number}: {line}" for line in lines_of(branch.program)]
    return lines


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


def _kernel(level: Level) -> str:
    cut = level.query.cut
    if isinstance(level.kernel, RunningTotals):
        return "running totals: one state per group"
    panes = f"({cut.per_window} panes per window)"
    if isinstance(level.kernel, TwoStacks):
        return f"persisted two stacks: an epoch reads what it answers, whatever RANGE/SLIDE is {panes}"
    if isinstance(level.kernel, Differences):
        return (
            f"running counts of values: panes are added as they close and subtracted as they leave {panes};"
            " where values are seen to recur hardly ever, panes are a buffer of them"
        )
    return f"live panes: an epoch combines those of the windows it answers {panes}"
