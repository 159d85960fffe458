"""APPROX_FREQUENCY(x, value [, error]): how often a value occurs, by a count-min sketch.

There are 5 lines of w counters. A value has one counter in each line, chosen by its hash, and adds to all of
them; the least of the five is its frequency and what other values have added to it. So an estimate is never
too low. One line is too high by more than e·n/w with probability at most 1/e, n being the number of values;
w is the least power of two that keeps e/w within `error`, so that an estimate exceeds the frequency by more
than `error`·n with probability at most 1/e⁵, 0.7 %. (Cormode and Muthukrishnan 2005.)

All frequencies of one argument and error are read from one sketch. Counters can be added and subtracted in
any order.

>>> of_a = ApproxFrequency("a", 0.01)
>>> of_a.lower(of_a.fold(map(of_a.lift, [("a",), ("b",), (None,), ("a",)])))
2
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any, Self

from windrow.algebra.aggregates import base, multiset
from windrow.algebra.aggregates.order import chained, hash64
from windrow.algebra.types import BIGINT, DataType, Kind
from windrow.errors import QueryError

LINES = 5
LEAST_ERROR = 1e-6


class ApproxFrequency(multiset.Counting):
    """The state is (number of the counter, count), sorted."""

    name = "APPROX_FREQUENCY"
    parameters = ("value",)
    options = (("error", 0.001),)
    size = base.Size.SKETCH
    differential = base.Differential.FULL
    gray = base.Gray.ALGEBRAIC

    def __init__(self, *params: Any) -> None:
        super().__init__(*params)
        self.value, error = self.params
        if self.value is None:
            raise QueryError(f"no {self.name} of NULL", code="bad-aggregate", hint="NULL is not counted")
        self.error = base.error_of(self.name, error, LEAST_ERROR)
        self.params = (self.value, self.error)
        self.width = width_of(self.error)
        self.most_cells = LINES * self.width
        self.error_bound = (
            f"never too low; too high by at most {100 * math.e / self.width:.2g} % of the number of values,"
            " in 99.3 % of cases"
        )

    @property
    def counters(self) -> tuple[int, ...]:
        """Those of the value that is asked for."""
        return counters(hash64(self.value, self.types[0] if self.types else None), self.width)

    def bind(self, types: base.Types) -> Self:
        bound = super().bind(types)
        bound.value = typed(self.value, types[0])
        return bound

    def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> multiset.Multiset:
        if args[0] is None:
            return ()
        found = counters(hash64(args[0], self.types[0] if self.types else None), self.width)
        return tuple((counter, 1) for counter in found)

    def of_counts(self, counts: multiset.Counts) -> int:
        return min(counts.get(counter, 0) for counter in self.counters)

    def _result_type(self, types: base.Types) -> DataType:
        base.refuse_nested(self.name, types[0])
        typed(self.value, types[0])
        return BIGINT


def width_of(error: float) -> int:
    """The least power of two that keeps e/w within `error`.

    >>> width_of(0.001)
    4096
    """
    return 1 << math.ceil(math.log2(math.e / error))


def counters(hashed: int, width: int) -> tuple[int, ...]:
    """The counter of a hash in each line, numbered through all lines."""
    return tuple(line * width + (chained(hashed, line + 1) & (width - 1)) for line in range(LINES))


def typed(value: Any, kind: DataType) -> Any:
    """A constant as a value of the type it is compared with; QueryError if no such value can equal it.

    >>> from windrow.algebra.types import DOUBLE, INT
    >>> typed(3, DOUBLE), typed(Decimal("3.0"), INT)
    (3.0, 3)
    """
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    found: Any = None
    if kind.kind is Kind.DECIMAL:
        exact = Decimal(repr(value) if isinstance(value, float) else value) if is_number else None
        found = exact if exact is not None and exact == round(exact, kind.scale) else None
    elif kind.is_fractional:
        found = float(value) if is_number else None
    elif kind.kind is Kind.BOOLEAN:
        found = value if isinstance(value, bool) else None
    elif kind.kind in (Kind.STRING, Kind.BINARY):
        found = value if isinstance(value, str if kind.kind is Kind.STRING else bytes) else None
    elif is_number and value == int(value):
        found = int(value)
    if found is None:
        raise QueryError(
            f"no {kind} equals {value!r}",
            code="bad-argument-type",
            hint="ask for a value of the argument's type",
        )
    return found
