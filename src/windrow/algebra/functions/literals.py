"""Constants as Spark SQL text, typed so that no parser has to guess.

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
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from windrow.algebra.functions.calendar import DAY, civil, date_text, interval_text, timestamp_text
from windrow.algebra.types import DataType, Kind, decimal

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _integer(value: int, kind: DataType) -> str:
    return f"{value}{_SUFFIX[kind.kind]}"


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


def _array(value: tuple[Any, ...], kind: DataType) -> str:
    inner = kind.fields[0][1]
    return "array(" + ", ".join(literal_text(each, inner) for each in value) + ")"


def _struct(value: tuple[Any, ...], kind: DataType) -> str:
    parts = zip(kind.fields, value, strict=True)
    return (
        "named_struct(" + ", ".join(f"{text_literal(n)}, {literal_text(v, t)}" for (n, t), v in parts) + ")"
    )


_WRITERS: dict[Kind, Callable[[Any, DataType], str]] = {
    Kind.BOOLEAN: lambda value, _: "TRUE" if value else "FALSE",
    Kind.TINYINT: _integer,
    Kind.SMALLINT: _integer,
    Kind.INT: _integer,
    Kind.BIGINT: _integer,
    Kind.FLOAT: _real,
    Kind.DOUBLE: _real,
    Kind.DECIMAL: _decimal,
    Kind.STRING: lambda value, _: text_literal(value),
    Kind.BINARY: lambda value, _: f"X'{value.hex().upper()}'",
    Kind.DATE: _date,
    Kind.TIMESTAMP: _timestamp,
    Kind.INTERVAL: lambda value, _: interval_text(value),
    Kind.ARRAY: _array,
    Kind.STRUCT: _struct,
}
assert _WRITERS.keys() | {Kind.NULL} == set(Kind)
