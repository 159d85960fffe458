"""The normal form of an aggregate over a scan: everything as expressions over the stream's own columns.

Projections are put into the expressions above them, filters become one condition, aliases go. Queries that
ask the same in other words have equal parts here, and so can share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Column, Expression, conjunction
from windrow.algebra.operators import Filter, Project

if TYPE_CHECKING:
    from windrow.kernels.panes.query import SlidingQuery


@dataclass(frozen=True)
class Normal:
    """`enters` decides which rows enter the window, `where` which of them count; `names` is what a column of
    the aggregate's input is."""

    enters: Expression
    where: Expression
    keys: tuple[Expression, ...]
    names: Mapping[str, Expression]

    def of(self, expression: Expression) -> Expression:
        """An expression over the aggregate's input, as one over the stream."""
        return _substituted(expression, self.names)


def normal_form(query: SlidingQuery) -> Normal:
    """The normal form of the bottom level of a query."""
    scan = query.scan
    names: dict[str, Expression] = {
        f"{scan.alias}.{field.name}": Column(field.name, field.type) for field in scan.stream.schema
    }
    below, names = _through(query.below, names)
    between, names = _through(query.between, names)
    keys = tuple(_substituted(key, names) for _, key in query.aggregate.keys)
    return Normal(conjunction(below), conjunction((*below, *between)), keys, names)


def _through(
    nodes: tuple[Filter | Project, ...], names: dict[str, Expression]
) -> tuple[tuple[Expression, ...], dict[str, Expression]]:
    conditions: list[Expression] = []
    for node in nodes:
        if isinstance(node, Filter):
            conditions.append(_substituted(node.predicate, names))
        else:
            names = {name: _substituted(output, names) for name, output in node.outputs}
    return tuple(conditions), names


def _substituted(expression: Expression, names: Mapping[str, Expression]) -> Expression:
    def change(node: Expression) -> Expression:
        return names.get(node.name, node) if isinstance(node, Column) else node

    return expression.rewrite(change)
