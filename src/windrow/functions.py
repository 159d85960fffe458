"""Expressions built in code: columns, operators, and every function and aggregate of the language by name.

As an argument a string is window SQL, a column's name most of the time; beside an operator it is a value, and
so are all other Python values. Names that Python has already end with an underscore: `max_`, `min_`, `sum_`.

>>> from windrow.functions import col, max_, upper
>>> (col("price") * 2 > 10) & (col("item") != "pen")
Column((((price * 2) > 10) AND (item <> 'pen')))
>>> max_("price"), upper("b.item").alias("item")
(Column(MAX(price)), Column(UPPER(b.item) AS item))
"""

from __future__ import annotations

import datetime as dt
import keyword
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NoReturn

from windrow.algebra import aggregates
from windrow.algebra.functions import catalogue
from windrow.errors import QueryError, nearest
from windrow.language.printer import quoted


def _operator(word: str, *, is_behind: bool = False) -> Callable[[Column, Any], Column]:
    """The method of an operator; `is_behind` if the column is its second operand."""

    def combined(column: Column, other: Any) -> Column:
        first, second = (operand(other), column.text) if is_behind else (column.text, operand(other))
        return Column(f"({first} {word} {second})")

    return combined


@dataclass(frozen=True, eq=False, repr=False)
class Column:
    """An expression of window SQL, with the name it is given in a SELECT, if it has one of its own."""

    text: str
    name: str | None = None

    def __repr__(self) -> str:
        return f"Column({self.item})"

    @property
    def item(self) -> str:
        """The expression as it stands in a SELECT."""
        return self.text if self.name is None else f"{self.text} AS {quoted(self.name)}"

    def alias(self, name: str) -> Column:
        """The same expression under another name."""
        return Column(self.text, name)

    def cast(self, to: str) -> Column:
        """As another type: `col("price").cast("DECIMAL(10, 2)")`."""
        return Column(f"CAST({self.text} AS {to})")

    def filter(self, condition: Column | str) -> Column:
        """An aggregate over the rows for which a condition holds."""
        return Column(f"{self.text} FILTER (WHERE {sql(condition)})")

    def isin(self, *values: Any) -> Column:
        """Whether it is one of some values."""
        return self._test(f"IN ({', '.join(literal(value) for value in values)})")

    def between(self, low: Any, high: Any) -> Column:
        """Whether it lies between two values, both included."""
        return self._test(f"BETWEEN {operand(low)} AND {operand(high)}")

    def like(self, pattern: str) -> Column:
        """Whether a text matches a pattern with `%` and `_`."""
        return self._test(f"LIKE {literal(pattern)}")

    def is_null(self) -> Column:
        """Whether it is NULL."""
        return self._test("IS NULL")

    def is_not_null(self) -> Column:
        """Whether it is not NULL."""
        return self._test("IS NOT NULL")

    def desc(self) -> Column:
        """The greatest first, in an order."""
        return Column(f"{self.text} DESC")

    def __getitem__(self, key: Any) -> Column:
        """An element of an array or a map."""
        return Column(f"{self.text}[{literal(key)}]")

    __iter__ = None  # its elements are not known before there are rows

    __add__, __radd__ = _operator("+"), _operator("+", is_behind=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", is_behind=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", is_behind=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", is_behind=True)
    __mod__ = _operator("%")
    __lt__, __le__, __gt__, __ge__ = map(_operator, ("<", "<=", ">", ">="))
    __and__, __or__ = _operator("AND"), _operator("OR")

    def _test(self, test: str) -> Column:
        return Column(f"({self.text} {test})")

    def __neg__(self) -> Column:
        return Column(f"(- {self.text})")

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._test("IS NULL" if other is None else f"= {operand(other)}")

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._test("IS NOT NULL" if other is None else f"<> {operand(other)}")

    def __invert__(self) -> Column:
        return Column(f"(NOT {self.text})")

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> NoReturn:
        raise QueryError(
            f"the value of `{self.text}` is not known before there are rows",
            code="bad-value",
            hint="join conditions by & and |, negate them by ~, and put comparisons in parentheses",
        )


def col(name: str) -> Column:
    """A column by its name, `alias.name` where there are several sources; any other name is quoted.

    >>> col("price"), col("b.item"), col("bid price")
    (Column(price), Column(b.item), Column(`bid price`))
    """
    parts = name.split(".") if all(name.split(".")) else [name]
    return Column(".".join(map(quoted, parts)))


def expr(text: str) -> Column:
    """An expression as it is written in SQL."""
    return Column(f"({text})")


def lit(value: Any) -> Column:
    """A value as it is, also a string."""
    return Column(literal(value))


def count(expression: Column | str = "*") -> Column:
    """How many rows; with an expression, those in which it is not NULL."""
    return Column(f"COUNT({sql(expression)})")


def count_distinct(expression: Column | str) -> Column:
    """How many different values."""
    return Column(f"COUNT(DISTINCT {sql(expression)})")


def sql(part: Column | str) -> str:
    """An expression as text: a string is SQL already."""
    return part.text if isinstance(part, Column) else part


def operand(value: Any) -> str:
    """One side of an operator: a column, or a value. Strings are values here, as they are in PySpark."""
    return value.text if isinstance(value, Column) else literal(value)


def literal(value: Any) -> str:
    """A Python value as SQL.

    >>> [literal(value) for value in (None, True, 3, 2.5, "it's", Decimal("1.50"), dt.date(2026, 3, 2))]
    ['NULL', 'TRUE', '3', '2.5D', "'it\\\\'s'", '1.50', "DATE '2026-03-02'"]
    """
    match value:
        case Column():
            return value.text
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case float() if value != value or value in (float("inf"), float("-inf")):
            return f"CAST('{value}' AS DOUBLE)"
        case float():
            return f"{value!r}D"
        case int() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case dt.timedelta():
            return f"INTERVAL '{value // dt.timedelta(microseconds=1)}' MICROSECOND"
    raise QueryError(
        f"{value!r} has no form in SQL",
        code="bad-value",
        hint="numbers, strings, booleans, dates, datetimes, None, or col(…)",
    )


def _names() -> set[str]:
    words = {function.name for function in catalogue() if function.name.isidentifier()}
    return {name.lower() for name in (*words, *aggregates.names())}


def python_name(name: str) -> str:
    """What a function is called here: with an underscore where Python has the word itself.

    >>> [python_name(name) for name in ("MAX", "avg", "if")]
    ['max_', 'avg', 'if_']
    """
    low = name.lower()
    return f"{low}_" if low in _BUILTIN or keyword.iskeyword(low) else low


_BUILTIN = frozenset({"abs", "any", "filter", "hash", "hex", "max", "min", "pow", "range", "round", "sum"})


def __getattr__(name: str) -> Callable[..., Column]:
    if name.startswith("__"):
        raise AttributeError(name)
    word = name.rstrip("_").lower()
    if word not in _names() and not aggregates.is_aggregate(word):
        known = nearest(name, [python_name(each) for each in _names()])
        hint = f" ({known})" if known else ""
        raise AttributeError(f"module `windrow.functions` has no function `{name}`{hint}")

    def function(*arguments: Any) -> Column:
        given = [value if isinstance(value, str) else literal(value) for value in arguments]
        return Column(f"{word.upper()}({', '.join(given)})")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{word.upper()} of the language; a string is SQL, other values are literals."
    return function


def __dir__() -> Iterable[str]:
    return sorted({"Column", "col", "count", "count_distinct", "expr", "lit", *map(python_name, _names())})
