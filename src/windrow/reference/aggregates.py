"""Aggregates by their definitions, over the list of a group's argument values in row order.

This is the oracle for `windrow.algebra.aggregates` and shares no code with it: it sorts, counts and adds
whole lists, with rational numbers where floating point would round, and knows no states.

>>> from windrow.algebra.types import INT
>>> evaluate("avg", (), False, [(1,), (None,), (4,)], (INT,))
2.5
>>> evaluate("count", (), True, [(1,), (None,), (1,)], (INT,))
1
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from windrow.algebra.types import DataType, Kind
from windrow.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

Rows = list[tuple[Any, ...]]

_ALIASES = {
    "MEAN": "AVG",
    "PERCENTILE": "QUANTILE",
    "STDDEV": "STDDEV_SAMP",
    "VARIANCE": "VAR_SAMP",
}


def evaluate(
    name: str, params: tuple[Any, ...], distinct: bool, values: Rows, types: tuple[DataType, ...]
) -> Any:
    """The value of an aggregate over rows of argument values, in row order."""
    name = _ALIASES.get(name.upper(), name.upper())
    if name in ("FIRST", "LAST"):
        return values[0 if name == "FIRST" else -1][0] if values else None
    rows = [row for row in values if None not in row]
    if distinct:
        rows = list({_key(row): row for row in rows}.values())
    if name == "COUNT":
        return len(rows)
    column = [row[0] for row in rows]
    if name == "TOP_K":
        return tuple(_ranking(column)[: params[0]])
    return _DEFINITIONS[name](column, types[0], *params) if column else None


def _sum(column: list[Any], kind: DataType) -> Any:
    if _is_binary(kind):
        return _add(column)
    return _fit(_exactly(column), kind, kind.precision + 10, kind.scale)


def _avg(column: list[Any], kind: DataType) -> Any:
    if _is_binary(kind):
        return _nan(_add(column) / len(column))
    mean = _exactly(column) / len(column)
    return _double(mean) if kind.is_integer else _fit(mean, kind, kind.precision + 4, kind.scale + 4)


def _spread(column: list[Any], lost: int) -> float | None:
    """The mean square distance from the mean, by the definition, in rational numbers."""
    if len(column) <= lost:
        return None
    if not all(map(math.isfinite, column)):
        return math.nan
    mean = _exactly(column) / len(column)
    return _double(
        sum(((Fraction(value) - mean) ** 2 for value in column), Fraction()) / (len(column) - lost)
    )


def _root(value: float | None) -> float | None:
    """A NaN stays the one object that equals itself in rows."""
    return value if value is None or value != value else math.sqrt(value)


def _quantile(column: list[Any], kind: DataType, fraction: Any) -> float:
    column = sorted(column, key=_key)
    position = float(fraction) * (len(column) - 1)
    low, high = (float(column[round_to(position)]) for round_to in (math.floor, math.ceil))
    weight = position - math.floor(position)
    return low if low == high or not weight else _nan(low + weight * (high - low))


def _ranking(column: list[Any]) -> list[tuple[Any, int]]:
    """Each value with its frequency, the most frequent first, then the least."""
    values = {_key(value): value for value in column}
    counts = Counter(map(_key, column))
    return [(values[key], counts[key]) for key in sorted(values, key=lambda key: (-counts[key], key))]


_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "SUM": _sum,
    "AVG": _avg,
    "MIN": lambda column, kind: min(column, key=_key),
    "MAX": lambda column, kind: max(column, key=_key),
    "ANY_VALUE": lambda column, kind: min(column, key=_key),
    "VAR_POP": lambda column, kind: _spread(column, 0),
    "VAR_SAMP": lambda column, kind: _spread(column, 1),
    "STDDEV_POP": lambda column, kind: _root(_spread(column, 0)),
    "STDDEV_SAMP": lambda column, kind: _root(_spread(column, 1)),
    "MEDIAN": lambda column, kind: _quantile(column, kind, 0.5),
    "QUANTILE": _quantile,
    "MODE": lambda column, kind: _ranking(column)[0][0],
}


def _key(value: Any) -> tuple[Any, ...]:
    """Sorts and groups as Spark does: NULL first, NaN last and equal to itself."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(map(_key, value)))
    return (1, value) if value == value else (2,)


def _is_binary(kind: DataType) -> bool:
    return kind.kind in (Kind.FLOAT, Kind.DOUBLE)


def _exactly(column: list[Any]) -> Fraction:
    return sum(map(Fraction, column), Fraction())


def _add(column: list[float]) -> float:
    """The sum of doubles: rounded once if all are finite, else by the rules for infinities."""
    try:
        return math.fsum(column) if all(map(math.isfinite, column)) else _nan(sum(column))
    except OverflowError:
        return sum(column)


def _nan(value: float) -> float:
    return value if value == value else math.nan


def _double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _fit(value: Fraction, kind: DataType, precision: int, scale: int) -> Any:
    """The exact `value`, rounded half up, as an integer or a DECIMAL; DataError if it has too many digits."""
    scale = min(38, scale) if kind.kind is Kind.DECIMAL else 0
    limit = 10 ** min(38, precision) if kind.kind is Kind.DECIMAL else 1 << 63
    units = math.floor(abs(value) * 10**scale + Fraction(1, 2)) * (-1 if value < 0 else 1)
    if not -limit <= units < limit or (kind.kind is Kind.DECIMAL and units == -limit):
        raise DataError(f"{kind} overflows", code="arithmetic-overflow")
    if kind.kind is not Kind.DECIMAL:
        return units
    return Decimal((int(units < 0), tuple(map(int, str(abs(units)))), -scale))
