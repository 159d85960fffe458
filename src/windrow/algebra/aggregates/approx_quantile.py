"""APPROX_QUANTILE(x, q [, error]): a value within a relative error of the one at position ⌊q·(n−1)⌋.

Values are counted in buckets. Each power of two is cut into S equal buckets, S = ⌈(1/error − 1)/2⌉, so that
the harmonic mean of a bucket's ends is within `error` of every value in it; negative values mirror positive
ones; zero, the infinities and NaN have buckets of their own. Which bucket a value is in depends on nothing
else, so counts can be added, and subtracted, in any order (as in DDSketch, Masson, Rim and Lee 2019, with an
exact bucket function in place of a logarithm). NaN is the greatest value, as in Spark's percentile.

>>> middle = ApproxQuantile(0.5, 0.01)
>>> middle.lower(middle.fold(middle.lift((number,)) for number in range(10_001)))
5037.746991869919
"""

from __future__ import annotations

import math
from typing import Any

from windrow.algebra.aggregates import base, multiset, numbers
from windrow.algebra.types import DOUBLE, DataType

LEAST_ERROR = 1e-6
#: the octaves of doubles: the exponents `frexp` gives are −1073 … 1024
LOWEST, OCTAVES = -1073, 2098


class ApproxQuantile(multiset.Counting):
    """The state is (bucket, count), sorted."""

    name = "APPROX_QUANTILE"
    parameters = ("fraction",)
    options = (("error", 0.01),)
    size = base.Size.SKETCH
    differential = base.Differential.FULL
    gray = base.Gray.ALGEBRAIC

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        fraction, error = self.params
        self.fraction = base.fraction_of(self.name, fraction)
        self.error = base.error_of(self.name, error, LEAST_ERROR)
        self.params = (self.fraction, self.error)
        self.steps = math.ceil((1 / self.error - 1) / 2)
        self.most_cells = 2 * greatest(self.steps) + 2
        self.error_bound = (
            f"relative error at most {100 * self.error:.4g} % of the value of that rank, always"
        )

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> multiset.Multiset:
        return () if args[0] is None else ((bucket(float(args[0]), self.steps), 1),)

    def of_counts(self, counts: multiset.Counts) -> float | None:
        if not counts:
            return None
        rank = math.floor(self.fraction * (sum(counts.values()) - 1))
        for place in sorted(counts):
            rank -= counts[place]
            if rank < 0:
                return representative(place, self.steps)
        raise AssertionError("a rank beyond the last value")

    def _result_type(self, types: base.Types) -> DataType:
        numbers.numeric(self.name, types)
        return DOUBLE


def greatest(steps: int) -> int:
    """The bucket of +∞; NaN is in the next one."""
    return OCTAVES * steps + 1


def bucket(value: float, steps: int) -> int:
    """The number of a value's bucket, in the order of values.

    >>> [bucket(value, 50) - bucket(1.0, 50) for value in (1.0, 1.019, 1.021, 2.0)]
    [0, 0, 1, 50]
    >>> bucket(0.0, 50), bucket(-1.0, 50) == -bucket(1.0, 50)
    (0, True)
    """
    if value == 0:
        return 0
    if not math.isfinite(value):
        return greatest(steps) * (-1 if value < 0 else 1) if value == value else greatest(steps) + 1
    half, exponent = math.frexp(abs(value))
    number = (exponent - LOWEST) * steps + math.floor((2 * half - 1) * steps) + 1
    return number if value > 0 else -number


def representative(number: int, steps: int) -> float:
    """The harmonic mean of a bucket's ends: as far, relatively, from the one as from the other.

    >>> representative(bucket(100.0, 50), 50)
    100.47592356687898
    """
    if number == 0:
        return 0.0
    size = abs(number)
    if size >= greatest(steps):
        return math.nan if size > greatest(steps) else math.copysign(math.inf, number)
    octave, step = divmod(size - 1, steps)
    low, both = steps + step, 2 * (steps + step) + 1
    mean = 2 * low * (low + 1) / (steps * both)
    return math.copysign(math.ldexp(mean, octave + LOWEST - 1), number)
