"""How many rows of state a pane has for each group: one, and the cells of holistic aggregates and sketches.

Cells are counted by what was observed, or assumed, of the distinct values of the arguments: no more than the
rows of a pane and group can have, and of a sketch no more than it has cells.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from windrow.algebra.aggregates import Size
from windrow.algebra.aggregates.calls import function_of
from windrow.algebra.plan import Scan
from windrow.optimizer.cost.flows import distinct_of

if TYPE_CHECKING:
    from windrow.algebra.operators import Aggregate
    from windrow.optimizer.cost.statistics import Statistics


def pane_cells(node: Aggregate, rows: float, statistics: Statistics) -> float:
    """The rows of state of a pane and group in which `rows` rows are expected."""
    streams = {scan.alias: scan.stream.name for scan in node.walk() if isinstance(scan, Scan)}

    def distinct(column: str) -> float:
        alias, _, name = column.partition(".")
        return statistics.values(f"{streams.get(alias, alias)}.{name}")

    cells = 1.0
    for _, call in node.aggregates:
        function = function_of(call)
        if function.size is not Size.BOUNDED:
            columns = {name for arg in call.args for name in arg.columns}
            found = distinct_of(rows, prod(map(distinct, columns), start=1.0))
            cells += min(found, function.most_cells or found)
    return cells
