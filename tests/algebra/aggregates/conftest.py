"""Every registered aggregate with every type of argument it takes: a new one is tested once registered."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from windrow.algebra import types as t
from windrow.algebra.aggregates import AggregateFunction, lookup, make, names, sortable
from windrow.algebra.aggregates.approx_count import Waved
from windrow.errors import DataError, QueryError

if TYPE_CHECKING:
    from collections.abc import Callable

#: a constant for each named parameter
CONSTANTS: dict[str, Any] = {
    "fraction": 0.6,
    "k": 2,
    "error": 0.3,
    "capacity": 3,
    "separator": "|",
    "comparison": ">=",
}

_BIG = (1 << 63) - 1

#: Doubles are dyadic, so that their sums are exact.
VALUES: dict[t.DataType, st.SearchStrategy[Any]] = {
    t.BIGINT: st.integers(-3, 3) | st.sampled_from([_BIG, -_BIG - 1, _BIG // 2]),
    t.DOUBLE: st.integers(-64, 64).map(lambda n: n / 8)
    | st.sampled_from([math.nan, math.inf, -math.inf, -0.0]),
    t.decimal(10, 2): st.integers(-500, 500).map(lambda n: Decimal(n).scaleb(-2)),
    t.decimal(38, 6): st.sampled_from(
        [Decimal(s + "9" * 32 + ".999999") for s in ("", "-")] + [Decimal("0.000001")]
    ),
    t.STRING: st.sampled_from(["", "1", "a", "b", "é", "\uffff", "\U0001f600"]),
    t.BOOLEAN: st.booleans(),
    t.INTERVAL: st.integers(-5, 5),
}


@dataclass(frozen=True)
class Case:
    """One aggregate, bound to argument types, and how it was asked for."""

    name: str
    distinct: bool
    types: tuple[t.DataType, ...]

    @property
    def params(self) -> tuple[Any, ...]:
        kind = lookup(self.name)
        wanted = {(t.STRING,): "1", (t.BOOLEAN,): True}.get(self.types, 1)
        constants = CONSTANTS | {"value": wanted}
        return tuple(constants[name] for name in (*kind.parameters, *(option for option, _ in kind.options)))

    @cached_property
    def aggregate(self) -> AggregateFunction:
        return make(self.name, self.params, distinct=self.distinct, types=self.types)

    @cached_property
    def rows(self) -> st.SearchStrategy[list[tuple[Any, ...]]]:
        """Rows of (instant, arguments…), with ties and NULLs."""
        arguments = [st.none() | VALUES[kind] for kind in self.types]
        return st.lists(st.tuples(st.integers(0, 3), *arguments), max_size=7)

    def lift(self, row: tuple[Any, ...]) -> Any:
        return self.aggregate.lift(row[1:], sortable(row))

    @cached_property
    def states(self) -> st.SearchStrategy[Any]:
        return self.rows.map(lambda rows: self.aggregate.fold(map(self.lift, rows)))

    def value(self, state: Any) -> Any:
        """What the state lowers to, or the code of the error: a sum may overflow."""
        try:
            return self.aggregate.lower(state)
        except DataError as error:
            return error.code

    def close(self, a: Any, b: Any, scale: float = 1.0) -> bool:
        """Are two states or values equal, up to the rounding of doubles of that size?"""
        return _close(a, b, scale)

    def __str__(self) -> str:
        return f"{self.name}({'DISTINCT ' * self.distinct}{', '.join(map(str, self.types))})"


def _cases() -> list[Case]:
    found = [Case("COUNT", False, ()), Case("COUNT", True, (t.BIGINT, t.STRING))]
    own_names = [name for name in names() if lookup(name).name == name]
    own_names = [name for name in own_names if not issubclass(lookup(name), Waved)]
    for name, distinct, kind in product(own_names, (False, True), VALUES):
        case = Case(name, distinct, (kind,) * max(1, lookup(name).arity[0]))
        wanted = not distinct or (kind in (t.BIGINT, t.DOUBLE) and not lookup(name).duplicate_insensitive)
        with suppress(QueryError):
            found += [case] if wanted and case.aggregate.result else []
    return found


CASES = _cases()

#: which cases a test gets that asks for an argument of this name
CHOICES: dict[str, Callable[[Case], bool]] = {
    "case": lambda case: True,
    "commutative_case": lambda case: case.aggregate.commutative,
    "invertible_case": lambda case: case.aggregate.invertible,
    "insensitive_case": lambda case: case.aggregate.duplicate_insensitive,
    "sensitive_case": lambda case: not case.aggregate.duplicate_insensitive,
    "unlimited_case": lambda case: t.BOOLEAN not in case.types,
    "double_case": lambda case: case.types == (t.DOUBLE,),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in metafunc.fixturenames:
        if name in CHOICES:
            metafunc.parametrize(name, [case for case in CASES if CHOICES[name](case)], ids=str)


@pytest.fixture
def cases() -> list[Case]:
    return CASES


def _close(a: Any, b: Any, scale: float) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_close(x, y, scale) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9 * scale) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)
