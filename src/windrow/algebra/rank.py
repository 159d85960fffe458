"""ROW_NUMBER, RANK and DENSE_RANK: each row with its place among those of its partition, at every instant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windrow.algebra import checks, patterns
from windrow.algebra.plan import Plan
from windrow.algebra.schema import Field, Schema
from windrow.algebra.types import BIGINT

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression
    from windrow.algebra.patterns import Label

KINDS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


@dataclass(frozen=True)
class Rank(Plan):
    """The rows, with their number behind them under a name that no column has.

    Numbers count from 1 in the given order (expression, descending), NULL first, and last if descending. Rows
    that are equal in it share a RANK and a DENSE_RANK; ROW_NUMBER tells them apart by the remaining columns.
    """

    input: Plan
    name: str
    kind: str
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool], ...]

    def __post_init__(self) -> None:
        assert self.kind in KINDS
        checks.reads_only(self.input.schema, *self.partition, *(expression for expression, _ in self.order))
        checks.no_internal_windows(self.input, self.kind)

    @cached_property
    def schema(self) -> Schema:
        return Schema((*self.input.schema, Field(self.name, BIGINT)))

    @cached_property
    def label(self) -> Label:
        return patterns.strict("a row that comes or goes moves the numbers of others")

    @property
    def withdraws_results(self) -> bool:
        return True
