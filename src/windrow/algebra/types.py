"""The data types of columns and expressions: Spark SQL's atomic types, and how they mix.

A value of a type is a plain Python value: `bool`, `int`, `float`, `decimal.Decimal`, `str`, `bytes`.
TIMESTAMP and DATE are integer microseconds since the epoch in UTC (a DATE is its midnight), so that
instants, windowing attributes and columns are one kind of number everywhere. An INTERVAL is a number
of microseconds. Every NaN is the one object `math.nan`, so that NaN equals NaN wherever rows are
compared or grouped.

>>> parse_type("decimal(10, 2)")
DECIMAL(10,2)
>>> common_type(INT, parse_type("decimal(10,2)"))
DECIMAL(12,2)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from windrow.errors import QueryError, nearest


class Kind(Enum):
    """What family of values a type holds."""

    NULL = "VOID"
    BOOLEAN = "BOOLEAN"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    STRING = "STRING"
    BINARY = "BINARY"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    ARRAY = "ARRAY"
    STRUCT = "STRUCT"


#: what the element of an ARRAY is called that is a MAP
_ENTRY = "entry"


@dataclass(frozen=True)
class DataType:
    """A type; `precision` and `scale` belong to DECIMAL, `fields` to ARRAY (one) and STRUCT (named).

    A MAP is an ARRAY of its entries, in the order of their keys, no two of which are equal.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, DataType], ...] = ()

    def __repr__(self) -> str:
        match self.kind:
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision},{self.scale})"
            case Kind.ARRAY if self.is_map:
                return f"MAP<{self.key}, {self.value}>"
            case Kind.ARRAY:
                return f"ARRAY<{self.fields[0][1]}>"
            case Kind.STRUCT:
                return "STRUCT<" + ", ".join(f"{_named(name)}: {inner}" for name, inner in self.fields) + ">"
            case _:
                return str(self.kind.value)

    __str__ = __repr__

    @property
    def is_map(self) -> bool:
        return self.kind is Kind.ARRAY and self.fields[0][0] == _ENTRY

    @property
    def element(self) -> DataType:
        """Of an ARRAY, the type of its elements; of a MAP, that of its entries."""
        return self.fields[0][1]

    @property
    def key(self) -> DataType:
        """The type of a MAP's keys."""
        return self.element.fields[0][1]

    @property
    def value(self) -> DataType:
        """The type of a MAP's values."""
        return self.element.fields[1][1]

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGER_BITS

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.kind in (Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)

    @property
    def is_fractional(self) -> bool:
        """Binary floating point: sums of it agree to a tolerance, not exactly."""
        return self.kind in (Kind.FLOAT, Kind.DOUBLE)

    @property
    def is_time(self) -> bool:
        return self.kind in (Kind.DATE, Kind.TIMESTAMP)

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest value of an integer type."""
        bits = INTEGER_BITS[self.kind]
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


INTEGER_BITS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
MAX_PRECISION = 38

NULL = DataType(Kind.NULL)
BOOLEAN = DataType(Kind.BOOLEAN)
TINYINT = DataType(Kind.TINYINT)
SMALLINT = DataType(Kind.SMALLINT)
INT = DataType(Kind.INT)
BIGINT = DataType(Kind.BIGINT)
FLOAT = DataType(Kind.FLOAT)
DOUBLE = DataType(Kind.DOUBLE)
STRING = DataType(Kind.STRING)
BINARY = DataType(Kind.BINARY)
DATE = DataType(Kind.DATE)
TIMESTAMP = DataType(Kind.TIMESTAMP)
INTERVAL = DataType(Kind.INTERVAL)

_SPELLINGS = {
    NULL: "VOID",
    BOOLEAN: "BOOLEAN, BOOL",
    TINYINT: "TINYINT, BYTE",
    SMALLINT: "SMALLINT, SHORT, INT2",
    INT: "INT, INTEGER, INT4",
    BIGINT: "BIGINT, LONG, INT8",
    FLOAT: "FLOAT, REAL, FLOAT4",
    DOUBLE: "DOUBLE, FLOAT8, DOUBLE PRECISION",
    STRING: "STRING, VARCHAR, TEXT, CHAR, CHARACTER, CHARACTER VARYING, CHAR VARYING, JSON, JSONB",
    BINARY: "BINARY, BINARY VARYING, VARBINARY, BYTES, BYTEA",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_LTZ, TIMESTAMP_NTZ, DATETIME",
    INTERVAL: "INTERVAL",
}
_NAMES = {name: kind for kind, names in _SPELLINGS.items() for name in names.split(", ")}
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?")
#: types with a size, which counts for nothing: times here are instants in microseconds, whatever precision
#: and zone they are declared with
_FORMS = {
    re.compile(r"(?:VARCHAR|CHAR|CHARACTER|CHARACTER VARYING|CHAR VARYING)\s*\(\s*\d+\s*\)"): STRING,
    re.compile(r"(?:BINARY|VARBINARY|BINARY VARYING|BYTES)\s*\(\s*\d+\s*\)"): BINARY,
    re.compile(
        r"TIMESTAMP(?:_LTZ|_NTZ)?\s*(?:\(\s*[0-6]\s*\))?(?:\s+(?:WITH|WITH LOCAL|WITHOUT) TIME ZONE)?"
    ): TIMESTAMP,
    re.compile(r"INTERVAL DAY\s*(?:\(\s*\d\s*\))? TO SECOND\s*(?:\(\s*\d\s*\))?"): INTERVAL,
}


def _named(name: str) -> str:
    """The name of a field as it is written."""
    return name if re.fullmatch(r"[^\W\d]\w*", name) else "`" + name.replace("`", "``") + "`"


def decimal(precision: int, scale: int) -> DataType:
    """A DECIMAL type, checked."""
    if not (1 <= precision <= MAX_PRECISION and 0 <= scale <= precision):
        raise QueryError(
            f"DECIMAL({precision},{scale}) does not exist",
            code="bad-type",
            hint=f"precision is 1 to {MAX_PRECISION}, scale 0 to the precision",
        )
    return DataType(Kind.DECIMAL, precision, scale)


def array(element: DataType) -> DataType:
    """ARRAY<element>."""
    return DataType(Kind.ARRAY, fields=(("element", element),))


def map_of(key: DataType, value: DataType) -> DataType:
    """MAP<key, value>."""
    return DataType(Kind.ARRAY, fields=((_ENTRY, struct(key=key, value=value)),))


def struct(**fields: DataType) -> DataType:
    """STRUCT<name: type, …>."""
    return DataType(Kind.STRUCT, fields=tuple(fields.items()))


def parse_type(text: str) -> DataType:
    """The type a name such as `bigint`, `DECIMAL(10,2)` or `ARRAY<STRUCT<a: INT, b: STRING>>` stands for.

    >>> parse_type("map<string, array<int>>"), parse_type("ROW(a INT, `b c` STRING)")
    (MAP<STRING, ARRAY<INT>>, STRUCT<a: INT, `b c`: STRING>)
    >>> parse_type("varchar[]"), parse_type("INT ARRAY"), parse_type("INTERVAL DAY(3) TO SECOND(6)")
    (ARRAY<STRING>, ARRAY<INT>, INTERVAL)
    """
    if listed := _LISTED.fullmatch(text.strip()):
        return array(parse_type(listed[1]))
    if nested := _NESTED.fullmatch(text.strip()):
        return _nested_type(nested[1].upper(), nested[2][1:-1], text.strip())
    name = " ".join(text.upper().split())
    if name in _NAMES:
        return _NAMES[name]
    if match := _DECIMAL.fullmatch(name):
        return decimal(int(match[1] or 10), int(match[2] or 0))
    for form, kind in _FORMS.items():
        if form.fullmatch(name):
            return kind
    raise QueryError(f"no type `{text.strip()}`", code="bad-type", hint=nearest(name, [*_NAMES, "DECIMAL"]))


#: an array as Flink and PostgreSQL write it
_LISTED = re.compile(r"(.*\S)\s*(?:\[\s*\]|\bARRAY)", re.IGNORECASE | re.DOTALL)
_NESTED = re.compile(r"(ARRAY|MAP|STRUCT|ROW)\s*(<.*>|\(.*\))", re.IGNORECASE | re.DOTALL)
_FIELD = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_]\w*))(?:\s*:\s*|\s+)(\S.*?)\s*", re.DOTALL)


def _nested_type(word: str, inside: str, text: str) -> DataType:
    parts = _parts(inside)
    if word == "ARRAY" and len(parts) == 1:
        return array(parse_type(parts[0]))
    if word == "MAP" and len(parts) == 2:
        return map_of(parse_type(parts[0]), parse_type(parts[1]))
    fields = [_FIELD.fullmatch(part) for part in parts] if word in ("STRUCT", "ROW") else []
    known = {(field[1] or field[2]): parse_type(field[3]) for field in fields if field is not None}
    if len(known) != len(parts):
        raise QueryError(
            f"no type `{text}`",
            code="bad-type",
            hint="write ARRAY<INT>, MAP<STRING, INT> or STRUCT<a: INT, b: STRING>",
        )
    return struct(**known)


def _parts(inside: str) -> list[str]:
    """What commas outside of brackets separate."""
    found, depth = [""], 0
    for char in inside:
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            found.append("")
        else:
            found[-1] += char
    return found


_WIDENING = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)
_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 20}


def as_decimal(kind: DataType) -> DataType:
    """The DECIMAL that holds every value of an integer type."""
    return kind if kind.kind is Kind.DECIMAL else DataType(Kind.DECIMAL, _DIGITS[kind.kind], 0)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The least type both fit in, as Spark widens operands; None if there is none."""
    if left == right or right.kind is Kind.NULL:
        return left
    if left.kind is Kind.NULL:
        return right
    if {left.kind, right.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if not (left.is_numeric and right.is_numeric):
        return None
    kinds = {left.kind, right.kind}
    if Kind.DECIMAL in kinds and not kinds & {Kind.FLOAT, Kind.DOUBLE}:
        return _wider_decimal(as_decimal(left), as_decimal(right))
    if Kind.FLOAT in kinds:
        return DOUBLE  # a FLOAT cannot hold the digits of an integer or a decimal
    return max(left, right, key=lambda kind: _WIDENING.index(kind.kind))


def _wider_decimal(left: DataType, right: DataType) -> DataType:
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return DataType(
        Kind.DECIMAL, min(whole + scale, MAX_PRECISION), min(scale, MAX_PRECISION - min(whole, MAX_PRECISION))
    )
