"""Which share of rows passes a condition, and how the inputs of a join thin each other out.

Values are uniform, columns independent, and of two columns compared the one with fewer values finds all
of them in the other (thesis, 5.3.1). Columns set equal to one another form a class; a part joined to
others meets them through the classes they share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.algebra.expressions import Call, Cast, Column, Expression, Literal, conjuncts
from windrow.optimizer.cost.statistics import Statistics

Values = Mapping[str, float]

_SHARES = {"<>": 0.9, "<": 1 / 3, "<=": 1 / 3, ">": 1 / 3, ">=": 1 / 3, "is_null": 0.1, "is_not_null": 0.9}
_UNKNOWN = 0.5


def selectivity(condition: Expression, values: Values, statistics: Statistics) -> float:
    """The share of rows for which a condition holds; `values` are the distinct values of columns.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import INT
    >>> a = Column("a", INT)
    >>> one = call("=", [a, Literal(1, INT)])
    >>> selectivity(one, {"a": 10}, Statistics())
    0.1
    >>> selectivity(one, {"a": 10}, Statistics(selectivities={one: 0.7}))
    0.7
    """
    if condition in statistics.selectivities:
        return statistics.selectivities[condition]
    match condition:
        case Literal(value):
            return 1.0 if value is True else 0.0
        case Call("and", args):
            left, right = (selectivity(arg, values, statistics) for arg in args)
            return left * right
        case Call("or", args):
            left, right = (selectivity(arg, values, statistics) for arg in args)
            return left + right - left * right
        case Call("not", (arg,)):
            return 1.0 - selectivity(arg, values, statistics)
        case Call("=" | "<=>" | "in", (value, *others)):
            return min(1.0, sum(1 / max(_count(value, values), _count(other, values)) for other in others))
        case Call(name):
            return _SHARES.get(name, _UNKNOWN)
    return _UNKNOWN


def _count(expression: Expression, values: Values) -> float:
    column = _column(expression)
    return values.get(column, 1.0) if column else 1.0


def _column(expression: Expression) -> str | None:
    inner = expression.arg if isinstance(expression, Cast) else expression
    return inner.name if isinstance(inner, Column) else None


def equal_columns(predicate: Expression) -> list[frozenset[str]]:
    """The classes of columns that a condition sets equal to one another.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import INT
    >>> a, b, c = (Column(name, INT) for name in "abc")
    >>> [sorted(same) for same in equal_columns(call("and", [call("=", [a, b]), call("=", [b, c])]))]
    [['a', 'b', 'c']]
    """
    classes: list[frozenset[str]] = []
    for part in conjuncts(predicate):
        pair = _pair(part)
        if pair:
            touched = [known for known in classes if known & pair]
            classes = [known for known in classes if not known & pair]
            classes.append(pair.union(*touched))
    return classes


def _pair(part: Expression) -> frozenset[str] | None:
    if not (isinstance(part, Call) and part.function == "="):
        return None
    names = [_column(arg) for arg in part.args]
    return frozenset(name for name in names if name) if None not in names and len(set(names)) == 2 else None


@dataclass(frozen=True)
class Part:
    """One input of a join: how many rows it holds, and the distinct values of its columns."""

    rows: float
    values: Values


def growing(parts: Sequence[Part], predicate: Expression, statistics: Statistics) -> list[float]:
    """For each part after the first, by which factor joining it changes the number of partial results.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import INT
    >>> a, b = Column("a", INT), Column("b", INT)
    >>> growing([Part(1, {"a": 5}), Part(20, {"b": 10})], call("=", [a, b]), Statistics())
    [2.0]
    """
    classes = equal_columns(predicate)
    others = [part for part in conjuncts(predicate) if _pair(part) is None]
    seen = dict(parts[0].values)
    found = []
    for part in parts[1:]:
        factor = part.rows
        for same in classes:
            mine = [part.values[name] for name in same if name in part.values]
            theirs = [seen[name] for name in same if name in seen]
            factor /= max(min(mine), min(theirs)) if mine and theirs else 1.0
        together = {**seen, **part.values}
        for test in others:
            if test.columns <= together.keys() and not test.columns <= seen.keys():
                factor *= selectivity(test, together, statistics)
        found.append(factor)
        seen = together
    return found
