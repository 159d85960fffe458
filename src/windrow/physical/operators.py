"""The operators of a physical plan, read off the unit that runs it: they report of themselves.

A node of the logical form has the operator that it became, with its durable name, its place among the
operators, what it keeps, and why so. A node whose work another operator does has no place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.aggregates import Size
from windrow.algebra.aggregates.registry import function_of
from windrow.algebra.operators import Aggregate, AggregateCall, Filter, Project, Union
from windrow.algebra.plan import Emit, Plan, Scan, Subquery, Window
from windrow.kernels.panes.live_panes import RunningTotals
from windrow.kernels.panes.subtract_on_evict import Differences
from windrow.kernels.panes.two_stacks import TwoStacks
from windrow.kernels.relational.implementations import kind_of, placed, report
from windrow.kernels.relational.operator import Stateless
from windrow.kernels.relational.windows.leaf import NestedRows, Scanned
from windrow.physical.units import GeneralUnit, UnionUnit, Unit

if TYPE_CHECKING:
    from windrow.kernels.panes.program import Level, PaneProgram
    from windrow.kernels.relational.program import RelationalProgram

    Path = tuple[int, ...]

#: the durable name of the state that queries of one stream and grouping share
SHARED = "shared-intervals.1"
_SIZES = {
    Size.BOUNDED: "of constant size for",
    Size.SKETCH: "sketches for",
    Size.LISTS: "lists of the most frequent values for",
    Size.HOLISTIC: "counts of values for",
}


@dataclass(frozen=True)
class PhysicalOperator:
    """A node of the logical form, and the operator that it became."""

    node: Plan
    method: str
    reason: str = ""
    #: what it keeps from one step to the next; empty: nothing
    state: str = ""
    #: its durable name; None: its work is done by another operator
    kind: str | None = None
    place: str | None = None
    #: it looks at each row by itself
    passes_on: bool = False
    inputs: tuple[PhysicalOperator, ...] = ()

    def walk(self) -> Iterator[PhysicalOperator]:
        """This operator and all below it, parents first; nested queries included."""
        yield self
        for part in self.inputs:
            yield from part.walk()


def operators_of(unit: Unit, *, is_shared: bool = False) -> PhysicalOperator:
    """The operators of a unit, from the root down; `is_shared`: its state is that of others, too."""
    if isinstance(unit, UnionUnit):
        return _united(unit)
    if isinstance(unit, GeneralUnit):
        found = _general(unit.program)
        return _tree(unit.program.emit, (), found)
    return _paned(unit.program, len(unit.program.levels) - 1, is_shared)


def _united(unit: UnionUnit) -> PhysicalOperator:
    """Branches beside each other; their operators have the numbers of their branches before their places."""
    emit = unit.program.emit
    branches = tuple(_numbered(operators_of(branch), number) for number, branch in enumerate(unit.branches))
    why = "answers of one branch never meet those of another"
    below = PhysicalOperator(emit.input, "merge", why, passes_on=True, inputs=branches)
    return PhysicalOperator(emit, "merge", why, passes_on=True, inputs=(below,))


def _numbered(operator: PhysicalOperator, branch: int) -> PhysicalOperator:
    place = None if operator.place is None else f"{branch}:{operator.place}"
    return replace(operator, place=place, inputs=tuple(_numbered(each, branch) for each in operator.inputs))


def _tree(node: Plan, path: Path, found: dict[Path, PhysicalOperator]) -> PhysicalOperator:
    below = tuple(_tree(child, (*path, place), found) for place, child in enumerate(node.children))
    mine = found[path]
    return PhysicalOperator(
        node, mine.method, mine.reason, mine.state, mine.kind, mine.place, mine.passes_on, below
    )


def _general(program: RelationalProgram) -> dict[Path, PhysicalOperator]:
    found: dict[Path, PhysicalOperator] = {}
    for path, node, place, operator in placed(program):
        if place is None or operator is None:
            found[path] = PhysicalOperator(
                node, "taken in", "the operator above does its work", passes_on=True
            )
            continue
        told = report(program, node, operator)
        plain = isinstance(operator, Stateless | Scanned | NestedRows) or isinstance(node, Emit)
        found[path] = PhysicalOperator(
            node, told.name, told.reason, told.state, told.kind, place, plain and not told.state
        )
    return found


def _paned(program: PaneProgram, number: int, is_shared: bool) -> PhysicalOperator:
    """One level: everything but its γ looks at single rows, or is arithmetic of panes."""
    level = program.levels[number]

    def built(node: Plan) -> PhysicalOperator:
        if isinstance(node, Subquery):
            return PhysicalOperator(
                node,
                "nested query",
                "its answers are rows",
                passes_on=True,
                inputs=(_paned(program, number - 1, is_shared),),
            )
        below = tuple(map(built, node.children))
        if isinstance(node, Aggregate) and is_shared:
            why = f"{_sizes(node)}; matrices of intervals and groups, made once for all queries of them"
            kept = "a state per interval and group, of the stream and this grouping"
            return PhysicalOperator(node, "shared state", why, kept, SHARED, inputs=below)
        if isinstance(node, Aggregate):
            kept = "a state per group" if level.query.cut.range is None else "a state per pane and group"
            kind = kind_of(level.kernel)
            told = f"{_sizes(node)}; {_kernel(level)}"
            return PhysicalOperator(node, _METHODS[kind], told, kept, kind, str(number), inputs=below)
        if isinstance(node, Window):
            why = "a row is added to the state of its pane, and forgotten"
            return PhysicalOperator(node, "panes of each row", why, inputs=below)
        assert isinstance(node, Emit | Filter | Project | Union | Scan)
        return PhysicalOperator(node, "row by row", passes_on=True, inputs=below)

    return built(level.query.emit)


_METHODS = {
    "running-totals.1": "running totals",
    "two-stacks.1": "persisted two stacks",
    "running-counts.1": "running counts of values",
    "live-panes.1": "live panes",
}


def _kernel(level: Level) -> str:
    cut = level.query.cut
    if isinstance(level.kernel, RunningTotals):
        return "one state per group"
    panes = f"{cut.per_window} panes per window" if cut.per_window > 1 else "1 pane per window"
    if isinstance(level.kernel, TwoStacks):
        return f"an epoch reads what it answers, whatever RANGE/SLIDE is ({panes})"
    if isinstance(level.kernel, Differences):
        return (
            f"panes are added as they close and subtracted as they leave ({panes});"
            " where values are seen to recur hardly ever, panes are a buffer of them"
        )
    return f"an epoch combines those of the windows it answers ({panes})"


def _sizes(node: Aggregate) -> str:
    sizes: dict[Size, list[AggregateCall]] = {size: [] for size in _SIZES}
    for _, call in node.aggregates:
        sizes[function_of(call).size].append(call)
    parts = [f"{_SIZES[size]} {_listed(calls)}" for size, calls in sizes.items() if calls]
    return "; ".join(parts) or "one mark per pane and group"


def _listed(calls: list[AggregateCall]) -> str:
    names = (("DISTINCT " if call.distinct else "") + call.function.upper() for call in calls)
    return ", ".join(dict.fromkeys(names))
