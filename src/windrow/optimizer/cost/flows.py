"""What is estimated of each node of a plan, and the small formulae that all operators share."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1, log1p, prod
from typing import TYPE_CHECKING

from windrow.algebra.patterns import Pattern
from windrow.optimizer.cost.selectivity import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.algebra.plan import Plan
    from windrow.optimizer.cost.selectivity import Values

#: a place in a plan: the number of the child, from the root down
Path = tuple[int, ...]

#: what keeping a row costs over its life: coming, and going by age, by calendar, or by being looked for
_UPKEEP = {Pattern.MON: 1, Pattern.WKS: 2, Pattern.WK: 3, Pattern.STR: 4}


@dataclass(frozen=True)
class Estimate:
    """Of one node: rows it gives per unit of time, rows of its answer, rows it keeps, its own cost."""

    rate: float
    rows: float
    state_rows: float
    cost: float


@dataclass(frozen=True)
class Flow:
    """An estimate, with the distinct values that each column can have, however few rows there are."""

    estimate: Estimate
    values: Values

    @property
    def rate(self) -> float:
        return self.estimate.rate

    @property
    def rows(self) -> float:
        return self.estimate.rows

    @property
    def part(self) -> Part:
        return Part(self.rows, self.values)


def distinct_of(rows: float, values: float) -> float:
    """How many of that many values are expected among that many rows.

    >>> round(distinct_of(rows=1, values=10), 6), round(distinct_of(rows=1000, values=10), 6)
    (1.0, 10.0)
    """
    return -values * expm1(rows * log1p(-1 / values)) if values > 1 else min(rows, 1.0)


def combinations(columns: Iterable[str], values: Values) -> float:
    """How many combinations of values these columns can have."""
    return prod((values[column] for column in columns), start=1.0)


def arrivals(plan: Plan, flow: Flow) -> float:
    """Rows that a node has to process of this input: negative ones too, where its pattern is STR."""
    return flow.rate * (2 if plan.label.pattern is Pattern.STR else 1)


def upkeep(plan: Plan, rate: float) -> float:
    """What it costs to keep rows of this plan, `rate` of them per unit of time, until they expire."""
    return rate * _UPKEEP[plan.label.pattern]
