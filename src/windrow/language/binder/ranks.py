"""ROW_NUMBER() OVER (PARTITION BY … ORDER BY …) and its like in a select list, and QUALIFY.

The rows are numbered above FROM … WHERE, or above the groups and HAVING; QUALIFY filters by the numbers,
below DISTINCT. Equal calls are one. What is the same for all rows of an answer, as the bounds of its window,
parts nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import Column
from windrow.algebra.rank import Rank
from windrow.algebra.types import BIGINT
from windrow.language.binder.places import at

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.syntax import Node, Over

_Call = tuple[str, tuple["Expression", ...], tuple[tuple["Expression", bool], ...]]


class Ranks:
    """The numbers that one SELECT asks for."""

    def __init__(self) -> None:
        self.names: dict[_Call, str] = {}
        self.nodes: list[Over] = []

    def column(self, node: Over, bind: Callable[[Node], Expression]) -> Expression:
        """The column that a call stands for."""
        partition = tuple(value for part in node.partition if (value := bind(part)).columns)
        order = tuple((bind(key), descending) for key, descending in node.order)
        name = f"{node.function.lower()} {len(self.names) + 1}"
        self.nodes.append(node)
        return Column(self.names.setdefault((node.function, partition, order), name), BIGINT)

    def over(self, plan: Plan) -> Plan:
        """The plan with all that was asked for."""
        for (kind, partition, order), name in self.names.items():
            with at(self.nodes[0]):
                plan = Rank(plan, name, kind, partition, order)
        return plan
