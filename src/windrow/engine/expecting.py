"""What the cost model expects of each operator of a plan, by its place, for EXPLAIN."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.explain import Size
from windrow.algebra.operators import Aggregate
from windrow.rules.cost import estimate
from windrow.rules.pane_cells import pane_cells
from windrow.windows.panes import Panes
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit, Plan
    from windrow.rules.statistics import Statistics

Path = tuple[int, ...]


def sizes_of(plan: Emit, statistics: Statistics) -> dict[Path, Size]:
    """Rows of answers and state; of a γ over extents also the state of a pane and group."""
    found = estimate(plan, statistics)
    sizes = {path: Size(each.rows, each.state_rows) for path, each in found.items()}
    waiting: list[tuple[Path, Plan]] = [((), plan)]
    while waiting:
        path, node = waiting.pop()
        waiting += [((*path, place), child) for place, child in enumerate(node.children)]
        spec = node.leaves[0].spec if isinstance(node, Aggregate) else None
        if isinstance(node, Aggregate) and isinstance(spec, RangeWindow) and spec.slide is not None:
            parts = max(1.0, found[path].rows) * Panes.of(spec).per_window
            cells = pane_cells(node, found[(*path, 0)].rows / parts, statistics)
            sizes[path] = replace(sizes[path], cells=cells)
    return sizes
