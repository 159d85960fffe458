"""APPROX_COUNT_DISTINCT(x [, error]): how many different values, by HyperLogLog.

Of each value's 64-bit hash, the low bits choose one of m = 2^p registers, and the number of zeros at the end
of the rest, plus one, is its rank. A register keeps the greatest rank it has seen, so neither the order of
the values nor their number changes it. The estimate is Ertl's ("New cardinality estimation algorithms for
HyperLogLog sketches", 2017, algorithm 6): one formula from empty to full, without tables of corrections. The
standard error is 1.04/√m; m is the least power of two that keeps it within `error`.

>>> count = ApproxCountDistinct(0.02)
>>> count.lower(count.fold(count.lift((number % 1000,)) for number in range(5000)))
1009
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from windrow.algebra.aggregates.base import AggregateFunction, Gray, Size, Types, error_of, refuse_nested
from windrow.algebra.aggregates.order import hash64
from windrow.algebra.types import BIGINT, DataType

#: the rank of each register that is not empty, by register
Registers = tuple[tuple[int, int], ...]
#: the standard error with one register, as it is for many
SPREAD = 1.04
LEAST_ERROR = 0.0021
#: 1 / (2 ln 2)
ALPHA = 0.5 / math.log(2)


class ApproxCountDistinct(AggregateFunction):
    """The state is (register, rank) of the registers that are not empty, sorted."""

    name = "APPROX_COUNT_DISTINCT"
    options = (("error", 0.02),)
    duplicate_insensitive = True
    size = Size.SKETCH
    gray = Gray.ALGEBRAIC
    #: the number of the register, a count of rows, and the rank
    cell_bytes = 4 + 8 + 1

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        self.error = error_of(self.name, self.params[0], LEAST_ERROR)
        self.params = (self.error,)
        self.precision = max(4, math.ceil(2 * math.log2(SPREAD / self.error)))
        self.registers = self.most_cells = 1 << self.precision
        self.error_bound = f"relative standard error {100 * SPREAD / math.sqrt(self.registers):.2g} %"

    def identity(self) -> Registers:
        return ()

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> Registers:
        if args[0] is None:
            return ()
        return (place(hash64(args[0], self.types[0] if self.types else None), self.precision),)

    def combine(self, a: Registers, b: Registers) -> Registers:
        return self.fold((a, b)) if a and b else a or b

    def fold(self, states: Iterable[Registers]) -> Registers:
        ranks: dict[int, int] = {}
        for state in states:
            for register, rank in state:
                ranks[register] = max(rank, ranks.get(register, 0))
        return tuple(sorted(ranks.items()))

    def lower(self, state: Registers) -> int:
        histogram = [0] * (66 - self.precision)
        for _, rank in state:
            histogram[rank] += 1
        histogram[0] = self.registers - len(state)
        return round(estimate(histogram))

    def _result_type(self, types: Types) -> DataType:
        refuse_nested(self.name, types[0])
        return BIGINT


def place(hashed: int, precision: int) -> tuple[int, int]:
    """The register of a hash, and its rank there.

    >>> place(0b1000_0101, 4)
    (5, 4)
    """
    rest = (hashed >> precision) | (1 << (64 - precision))
    return hashed & ((1 << precision) - 1), (rest & -rest).bit_length()


def estimate(histogram: Sequence[int]) -> float:
    """The number of values, from how many registers have rank 0, 1, … 65 − p.

    Only additions, products and roots, each rounded as IEEE says, so that it is the same everywhere.

    >>> estimate([16] + [0] * 61)
    0.0
    """
    registers = sum(histogram)
    total = registers * _tau(1 - histogram[-1] / registers)
    for count in reversed(histogram[1:-1]):
        total = (total + count) * 0.5
    total += registers * _sigma(histogram[0] / registers)
    return ALPHA * registers * registers / total if total < math.inf else 0.0


def _sigma(share: float) -> float:
    """x + Σ x^(2^k)·2^(k−1): what empty registers tell."""
    if share == 1:
        return math.inf
    power, weight, total = share, 1.0, share
    while True:
        power *= power
        before, total = total, total + power * weight
        weight += weight
        if before == total:
            return total


def _tau(share: float) -> float:
    """What full registers tell: (1 − x − Σ (1 − x^(2^−k))²·2^−k) / 3."""
    if share in (0, 1):
        return 0.0
    weight, total = 1.0, 1 - share
    while True:
        share = math.sqrt(share)
        before = total
        weight *= 0.5
        total -= (1 - share) * (1 - share) * weight
        if before == total:
            return total / 3
