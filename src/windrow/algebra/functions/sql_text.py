"""Expressions back to Spark SQL: canonical, typed, with no more parentheses than needed.

The text is made of the tree alone. No user text passes through: names come from the caller's `names`,
constants are written afresh, and functions are spelled by the registry.

>>> from windrow.algebra.expressions import ColumnRef, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> a, two = ColumnRef("a", INT), Literal(2, INT)
>>> to_sql(call(">", [call("*", [call("+", [a, two]), two]), a]), str.upper)
'(A + 2) * 2 > A'

Constants as Spark SQL text, typed so that no parser has to guess.

>>> from windrow.algebra.types import STRING, TIMESTAMP
>>> literal_text(1_700_000_000_500_000, TIMESTAMP)
"TIMESTAMP '2023-11-14 22:13:20.5'"
>>> literal_text("it's", STRING)
"'it\\\\'s'"
>>> literal_text(Decimal("1.5"), decimal(10, 2))
'CAST(1.5BD AS DECIMAL(10,2))'
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.functions.calendar import DAY, civil, date_text, interval_text, timestamp_text
from windrow.algebra.functions.registry import ATOM, lookup
from windrow.algebra.types import BINARY, BOOLEAN, DATE, INTEGER_BITS, STRING, DataType, Kind, decimal

_SUFFIX = {Kind.TINYINT: "Y", Kind.SMALLINT: "S", Kind.INT: "", Kind.BIGINT: "L"}
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def type_text(kind: DataType) -> str:
    """A type as it stands in CAST."""
    return "INTERVAL DAY TO SECOND" if kind.kind is Kind.INTERVAL else str(kind)


def literal_text(value: Any, kind: DataType) -> str:
    """A constant of that type, as an expression of Spark SQL."""
    if kind.kind is Kind.NULL:
        return "NULL"
    if value is None:
        return f"CAST(NULL AS {type_text(kind)})"
    return _WRITERS[kind.kind](value, kind)


def text_literal(value: str) -> str:
    """Text in quotes; what could end it or not be printed is escaped."""
    return "'" + "".join(_ESCAPES.get(c, c if c.isprintable() else _coded(c)) for c in value) + "'"


def _coded(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _real(value: float, kind: DataType) -> str:
    if not math.isfinite(value):
        word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{word}' AS {kind})"
    return f"{value!r}{'F' if kind.kind is Kind.FLOAT else 'D'}"


def _decimal(value: Decimal, kind: DataType) -> str:
    text = f"{value:f}BD"
    digits = f"{abs(value):f}".replace(".", "").lstrip("0")
    scale = max(0, -int(value.as_tuple().exponent))
    natural = decimal(max(len(digits), scale, 1), scale)
    return text if natural == kind else f"CAST({text} AS {kind})"


def _timestamp(value: int, _: DataType) -> str:
    return f"TIMESTAMP '{timestamp_text(value)}'" if is_ordinary(value) else f"timestamp_micros({value}L)"


def _date(value: int, _: DataType) -> str:
    return f"DATE '{date_text(value)}'" if is_ordinary(value) else f"date_from_unix_date({value // DAY})"


def is_ordinary(micros: int) -> bool:
    """Whether its year has four digits."""
    return 0 < civil(micros // DAY)[0] <= 9999


def _struct(value: tuple[Any, ...], kind: DataType) -> str:
    parts = zip(kind.fields, value, strict=True)
    return (
        "named_struct(" + ", ".join(f"{text_literal(n)}, {literal_text(v, t)}" for (n, t), v in parts) + ")"
    )


_WRITERS: dict[Kind, Callable[[Any, DataType], str]] = {
    Kind.BOOLEAN: lambda value, _: "TRUE" if value else "FALSE",
    **dict.fromkeys(INTEGER_BITS, lambda value, kind: f"{value}{_SUFFIX[kind.kind]}"),
    Kind.FLOAT: _real,
    Kind.DOUBLE: _real,
    Kind.DECIMAL: _decimal,
    Kind.STRING: lambda value, _: text_literal(value),
    Kind.BINARY: lambda value, _: f"X'{value.hex().upper()}'",
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: lambda value, _: interval_text(value),
    Kind.ARRAY: lambda value, kind: (
        "array(" + ", ".join(literal_text(each, kind.fields[0][1]) for each in value) + ")"
    ),
    Kind.STRUCT: _struct,
}
assert _WRITERS.keys() | {Kind.NULL} == set(Kind)


_HOLE = re.compile(r"\{(\d*)(\*?)\}")
_OPTIONAL = re.compile(r"\[([^\]]*\{(\d)\}[^\]]*)\]")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEGATIVE = 90
#: operators whose chains need no parentheses: a AND b AND c
_ASSOCIATIVE = frozenset({"and", "or", "||"})
#: of more operands than these, a chain of AND or OR is a balanced tree; its text is flat
LONG_CHAIN = 32


def to_sql(expression: Expression, names: Callable[[str], str]) -> str:
    """The expression as text that Spark reads back as the same tree; `names` spells the columns."""
    match expression:
        case Literal(value, kind):
            return literal_text(value, kind)
        case ColumnRef(name) | WindowBound(name):
            return names(name)
        case Cast(arg, kind, safe):
            return f"{'TRY_CAST' if safe else 'CAST'}({to_sql(arg, names)} AS {type_text(kind)})"
        case Call("get_field", (whole, Literal(field))):
            return f"{_operand('get_field', ATOM - 1, 0, whole, names)}.{quoted(field)}"
        case Call("element", (whole, place)):
            return f"{_operand('element', ATOM - 1, 0, whole, names)}[{to_sql(place, names)}]"
        case Call("case", args):
            return _case([to_sql(arg, names) for arg in args])
        case Call("-", (left, right)) if left.type == DATE:
            # Spark's difference of days is an interval of whole days; ours has one interval type.
            return f"CAST({to_sql(left, names)} - {to_sql(right, names)} AS INTERVAL DAY TO SECOND)"
        case Call("and" | "or" as name) if len(operands := _chained(name, expression)) > LONG_CHAIN:
            outer = lookup(name).precedence
            return f" {name.upper()} ".join(_operand(name, outer, 1, part, names) for part in operands)
        case Call():
            return _call(expression, names)
    raise AssertionError(f"cannot print {type(expression).__name__}")


def quoted(name: str) -> str:
    """A name as it can stand in SQL."""
    return name if _PLAIN_NAME.fullmatch(name) else backquoted(name)


def backquoted(name: str) -> str:
    """A name as statements have it, and as Spark reads it literally, whatever it consists of.

    >>> backquoted("a`b.c")
    '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"


def _chained(name: str, expression: Expression) -> list[Expression]:
    """What a function joins, through all calls of it inside one another."""
    found, waiting = list[Expression](), [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == name:
            waiting += reversed(part.args)
        else:
            found.append(part)
    return found


def _call(expression: Call, names: Callable[[str], str]) -> str:
    function = lookup(expression.function)
    texts = [
        _operand(function.name, function.precedence, index, arg, names)
        for index, arg in enumerate(expression.args)
    ]

    def fill(hole: re.Match[str]) -> str:
        first = int(hole[1] or 0)
        return ", ".join(texts[first:]) if hole[2] else texts[first]

    def keep(part: re.Match[str]) -> str:
        return part[1] if int(part[2]) < len(texts) else ""

    return _HOLE.sub(fill, _OPTIONAL.sub(keep, function.template))


def _operand(name: str, outer: int, index: int, arg: Expression, names: Callable[[str], str]) -> str:
    text = to_sql(arg, names)
    inner = precedence(arg)
    chained = inner == outer and index == 0 and _chains(name, arg)
    listed = outer == ATOM or (name == "in" and index > 0)
    return text if listed or inner > outer or chained else f"({text})"


def _chains(name: str, arg: Expression) -> bool:
    """Whether it may stand on the left unbracketed: Spark's operators associate to the left."""
    return isinstance(arg, Call) and ((arg.function == name and name in _ASSOCIATIVE) or name in "+-*/%")


def precedence(expression: Expression) -> int:
    """How tightly the outermost operator of its text binds."""
    match expression:
        case Literal(bool()):
            return ATOM
        case Literal(value) if isinstance(value, str | bytes | tuple) or value is None:
            return ATOM
        case Literal(value, kind) if kind.is_numeric and str(value).startswith("-"):
            return _NEGATIVE
        case Call("-", (left, _)) if left.type == DATE:
            return ATOM
        case Call(name):
            return lookup(name).precedence
    return ATOM


def _case(texts: list[str]) -> str:
    pairs = zip(texts[::2], texts[1::2], strict=False)
    branches = "".join(f" WHEN {condition} THEN {value}" for condition, value in pairs)
    last = f" ELSE {texts[-1]}" if len(texts) % 2 else ""
    return f"CASE{branches}{last} END"


def constant_sql(value: Any) -> str:
    """A constant of an aggregate; of an instant or interval its number of microseconds.

    >>> print(constant_sql("it's"), constant_sql(0.5), constant_sql(True))
    'it\\'s' 0.5 TRUE
    """
    kinds: dict[type, DataType] = {str: STRING, bytes: BINARY, bool: BOOLEAN}
    kind = kinds.get(type(value))
    return str(value) if kind is None else literal_text(value, kind)
