"""Aggregates by their definitions, over the list of a group's argument values in row order.

This is the oracle for `windrow.algebra.aggregates` and shares no code with it: it sorts, counts and adds
whole lists, with rational numbers where floating point would round, and knows no states. Only what a sketch
is defined by is the same: the hash of a value, and the estimate from ranks. User-defined aggregates are
folded.

>>> from windrow.algebra.types import INT
>>> evaluate("avg", (), False, [(1,), (None,), (4,)], (INT,))
2.5
>>> evaluate("count", (), True, [(1,), (None,), (1,)], (INT,))
1
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

from windrow.algebra.aggregates import (
    Definition,
    approx_count_distinct,
    approx_frequency,
    lookup,
    order,
    user,
)
from windrow.algebra.types import DataType, Kind
from windrow.errors import DataError

Rows = list[tuple[Any, ...]]


def evaluate(
    name: str,
    params: tuple[Any, ...],
    distinct: bool,
    values: Rows,
    types: tuple[DataType, ...],
    cut: Sequence[int | None] = (),
) -> Any:
    """The value of an aggregate over rows of argument values, in row order; `cut` tells their sub-windows."""
    own = user.definitions([name])
    if own:
        return _user_defined(own[0], distinct, values)
    name = lookup(name).name
    if name in ("FIRST", "LAST"):
        return values[0 if name == "FIRST" else -1][0] if values else None
    if name == "FREQUENT":
        return _frequent(values, cut, *params)
    if name == "APPROX_TOP_K":
        return _approx_top_k(values, cut, *params)
    if name in ("MAX_BY", "MIN_BY"):
        return _by_partner([row for row in values if row[1] is not None], greatest=name == "MAX_BY")
    rows = [row for row in values if None not in row]
    if distinct:
        different = {_key(row): row for row in rows}
        rows = [different[key] for key in sorted(different)]
    if name == "COUNT":
        return len(rows)
    if name in _OF_PAIRS:
        return _of_pairs(name, rows)
    column = [row[0] for row in rows]
    if name in _OF_NOTHING:
        return _OF_NOTHING[name](column, types[0], *params)
    return _DEFINITIONS[name](column, types[0], *params) if column else None


def _sum(column: list[Any], kind: DataType) -> Any:
    if kind.is_fractional:
        return _add(column)
    return _fit(_exactly(column), kind, kind.precision + 10, kind.scale)


def _avg(column: list[Any], kind: DataType) -> Any:
    if kind.is_fractional:
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


def _at_fraction(column: list[Any], kind: DataType, fraction: Any) -> Any:
    """The first value, in order, up to which at least this fraction of all lies."""
    column = sorted(column, key=_key)
    wanted = Fraction(str(fraction)) * len(column)
    return next(value for place, value in enumerate(column, 1) if place >= wanted)


def _ranking(column: list[Any]) -> list[tuple[Any, int]]:
    """Each value with its frequency, the most frequent first, then the least."""
    values = {_key(value): value for value in column}
    counts = Counter(map(_key, column))
    return [(values[key], counts[key]) for key in sorted(values, key=lambda key: (-counts[key], key))]


def _frequent(values: Rows, cut: Sequence[int | None], k: int) -> tuple[tuple[Any, int], ...]:
    """Algorithm 6 by its definition: the top k of each sub-window added up, and what exceeds the limit of all
    that is on no list."""
    lists = [_ranking(column)[:k] for column in _by_sub_window(values, cut)]
    limit = sum(each[-1][1] for each in lists if len(each) == k)
    listed = [value for each in lists for value, count in each for _ in range(count)]
    return tuple((value, count) for value, count in _ranking(listed) if count > limit)


def _by_partner(rows: Rows, greatest: bool) -> Any:
    """The first of each pair by the second, then by itself."""
    ranked = sorted(rows, key=lambda row: (_key(row[1]), _key(row[0])))
    return ranked[-1 if greatest else 0][0] if ranked else None


_OF_PAIRS = ("COVAR_POP", "COVAR_SAMP", "CORR", "REGR_SLOPE", "REGR_INTERCEPT")


def _of_pairs(name: str, rows: Rows) -> float | None:
    """By the definitions, in rational numbers; REGR_SLOPE and its like are called with (y, x)."""
    count = len(rows)
    if count <= (name == "COVAR_SAMP"):
        return None
    if not all(math.isfinite(value) for row in rows for value in row):
        return math.nan
    first, second = ([Fraction(row[place]) for row in rows] for place in (0, 1))
    mean, other = sum(first, Fraction()) / count, sum(second, Fraction()) / count
    together = sum(((a - mean) * (b - other) for a, b in zip(first, second, strict=True)), Fraction())
    spread, scatter = sum((a - mean) ** 2 for a in first), sum((b - other) ** 2 for b in second)
    if name.startswith("COVAR"):
        return _double(together / (count - (name == "COVAR_SAMP")))
    if not scatter or (name == "CORR" and not spread):
        return None
    if name == "CORR":
        return _double(together) / (math.sqrt(spread) * math.sqrt(scatter))
    slope = together / scatter
    return _double(slope if name == "REGR_SLOPE" else mean - slope * other)


def _heavy_hitters(
    column: list[Any], kind: DataType, fraction: Any, comparison: str = ">"
) -> tuple[tuple[Any, int], ...]:
    limit = Fraction(str(fraction)) * len(column)
    reaches = operator.ge if comparison == ">=" else operator.gt
    return tuple((value, count) for value, count in _ranking(column) if reaches(count, limit))


def _user_defined(own: Definition, distinct: bool, rows: Rows) -> Any:
    """Folded in row order; with DISTINCT over different rows without NULL, in the order of their values."""
    if distinct:
        different = {_key(row): row for row in rows if None not in row}
        rows = [different[key] for key in sorted(different)]
    return own.folded(rows)


def _approx_count_distinct(column: list[Any], kind: DataType, error: Any = 0.02) -> int:
    """HyperLogLog by its definition: per register the greatest rank of any hash."""
    bits = next(p for p in range(4, 19) if 1.04 / math.sqrt(1 << p) <= error or p == 18)
    ranks = [0] * (1 << bits)
    for value in column:
        hashed = f"{order.hash64(value, kind):064b}"
        rest, register = hashed[:-bits], int(hashed[-bits:], 2)
        ranks[register] = max(ranks[register], len(rest) - len(rest.rstrip("0")) + 1)
    counts = Counter(ranks)
    return round(approx_count_distinct.estimate([counts[rank] for rank in range(66 - bits)]))


def _approx_quantile(column: list[Any], kind: DataType, fraction: Any, error: Any = 0.01) -> float:
    """The value at the position, moved to the middle of its bucket: ends are 2^e·(1 + i/S)."""
    steps = math.ceil((1 / error - 1) / 2)
    value = float(sorted(column, key=_key)[math.floor(float(fraction) * (len(column) - 1))])
    if value == 0 or not math.isfinite(value):
        return _nan(value + 0.0)
    exponent = math.frexp(value)[1] - 1
    step = math.floor((math.ldexp(abs(value), -exponent) - 1) * steps)
    low, high = 1 + Fraction(step, steps), 1 + Fraction(step + 1, steps)
    return math.copysign(math.ldexp(float(2 * low * high / (low + high)), exponent), value)


def _approx_top_k(
    values: Rows, cut: Sequence[int | None], k: int, capacity: int = 10_000
) -> tuple[tuple[Any, int], ...]:
    """The most frequent values of each sub-window added up."""
    lists = [_ranking(column)[:capacity] for column in _by_sub_window(values, cut)]
    return tuple(_ranking([value for each in lists for value, count in each for _ in range(count)])[:k])


def _by_sub_window(values: Rows, cut: Sequence[int | None]) -> Iterable[list[Any]]:
    """The values of each sub-window."""
    columns: dict[int | None, list[Any]] = {}
    for (value,), number in zip(values, cut or [0] * len(values), strict=True):
        if value is not None:
            columns.setdefault(number, []).append(value)
    return columns.values()


def _approx_frequency(column: list[Any], kind: DataType, value: Any, error: Any = 0.001) -> int:
    """A count-min sketch by its definition: per line how many values share the counter of this one."""
    width = next(1 << bits for bits in range(64) if math.e / (1 << bits) <= error)

    def counter(each: Any, line: int) -> int:
        return order.chained(order.hash64(each, kind), line) % width

    wanted = approx_frequency.typed(value, kind)
    lines = range(1, 6)
    return min(sum(counter(each, n) == counter(wanted, n) for each in column) for n in lines)


#: what has a value over no rows
_OF_NOTHING: dict[str, Callable[..., Any]] = {
    "TOP_K": lambda column, kind, k: tuple(_ranking(column)[:k]),
    "HEAVY_HITTERS": _heavy_hitters,
    "HISTOGRAM": lambda column, kind: tuple(sorted(_ranking(column), key=lambda pair: _key(pair[0]))),
    "ARRAY_AGG": lambda column, kind: tuple(column),
    "APPROX_COUNT_DISTINCT": _approx_count_distinct,
    "APPROX_FREQUENCY": _approx_frequency,
}

_DEFINITIONS: dict[str, Callable[..., Any]] = {
    "APPROX_QUANTILE": _approx_quantile,
    "SUM": _sum,
    "BOOL_AND": lambda column, kind: all(column),
    "BOOL_OR": lambda column, kind: any(column),
    "BIT_AND": lambda column, kind: reduce(operator.and_, column),
    "BIT_OR": lambda column, kind: reduce(operator.or_, column),
    "BIT_XOR": lambda column, kind: reduce(operator.xor, column),
    "STRING_AGG": lambda column, kind, separator: separator.join(column),
    "LISTAGG": lambda column, kind, separator=",": separator.join(column),
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
    "PERCENTILE_DISC": _at_fraction,
    "MODE": lambda column, kind: _ranking(column)[0][0],
}


def _key(value: Any) -> tuple[Any, ...]:
    """Sorts and groups as Spark does: NULL first, NaN last and equal to itself."""
    if value is None:
        return (0,)
    if isinstance(value, tuple):
        return (1, tuple(map(_key, value)))
    return (1, value) if value == value else (2,)


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
