"""Rows as JSON: how each type is written where there is no type but JSON's.

BOOLEAN, integers         true, 42 (all digits of 64 bits: not every reader keeps more than 53)
FLOAT, DOUBLE             1.5, the shortest text that is the number; "NaN", "Infinity", "-Infinity"
DECIMAL                   "12.50", with all digits of its scale
STRING                    as it is
BINARY                    Base64
TIMESTAMP                 "2024-05-01T12:00:00.000000Z", always UTC, always six digits
DATE                      "2024-05-01"
INTERVAL                  microseconds
ARRAY, STRUCT             [...], {...}
NULL                      null
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from windrow.errors import SinkError

if TYPE_CHECKING:
    from decimal import Decimal


def is_text(kind: pa.DataType) -> bool:
    """Whether it is a type of strings.

    >>> import pyarrow as pa
    >>> is_text(pa.string()), is_text(pa.large_string()), is_text(pa.binary())
    (True, True, False)
    """
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    variable = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(variable or types.is_fixed_size_binary(kind))


def is_list(kind: pa.DataType) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_number(kind: pa.DataType) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


#: line separators that JSON does not escape by itself
_SEPARATORS = {ord(each): f"\\u{ord(each):04x}" for each in "\x85\u2028\u2029"}

Form: TypeAlias = Callable[[Any], Any]


def json_line(value: Any, *, ascii_only: bool = False) -> str:
    r"""One JSON text without line breaks, those of Unicode neither: some readers cut lines there.

    >>> json_line("a\u2028b")
    '"a\\u2028b"'
    """
    text = json.dumps(value, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":"))
    return text if text.isascii() else text.translate(_SEPARATORS)


def json_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows, each a mapping from column to what JSON writes.

    >>> table = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC")), "x": [float("inf")], "b": [b"hi"]})
    >>> [json_line(row) for row in json_rows(table)]
    ['{"at":"1970-01-01T00:00:00.000000Z","x":"Infinity","b":"aGk="}']
    """
    names = table.column_names
    for values in zip(*map(json_column, table.columns), strict=True):
        yield dict(zip(names, values, strict=True))


def json_column(column: pa.ChunkedArray) -> list[Any]:
    form, raw = form_of(column.type), _raw(column.type)
    values = (column if raw == column.type else column.cast(raw)).to_pylist()
    return values if form is None else [_or_null(form, value) for value in values]


def form_of(kind: pa.DataType) -> Form | None:
    """How a value that is not NULL is written; None if it is written as Python has it."""
    for test, form in _FORMS:
        if test(kind):
            return form(kind)
    raise SinkError(
        f"a column of type {kind} cannot be written as text", code="no-such-type", hint="CAST it to STRING"
    )


def _or_null(form: Form, value: Any) -> Any:
    return None if value is None else form(value)


def _raw(kind: pa.DataType) -> pa.DataType:
    """The type with plain integers for times: those Python's datetime cannot hold are values too."""
    if types.is_timestamp(kind) or types.is_duration(kind):
        return pa.int64()
    if is_list(kind):
        return pa.list_(_raw(kind.value_type))
    if types.is_struct(kind):
        return pa.struct([pa.field(field.name, _raw(field.type)) for field in kind])
    return kind


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def _short_number(value: float) -> float | str:
    """0.1 of 32 bits is 0.10000000149 in 64; what is meant is 0.1."""
    return _number(float(str(np.float32(value))))


def _instant(unit: Any) -> Form:
    return lambda value: f"{np.datetime64(value, unit).astype('datetime64[us]')}Z"


def _fixed(value: Decimal) -> str:
    return format(value, "f")


def _array(kind: pa.DataType) -> Form | None:
    form = form_of(kind.value_type)
    return None if form is None else lambda values: [_or_null(form, value) for value in values]


def _object(kind: pa.DataType) -> Form | None:
    forms = {field.name: form for field in kind if (form := form_of(field.type)) is not None}
    if not forms:
        return None
    return lambda row: {
        name: _or_null(forms[name], value) if name in forms else value for name, value in row.items()
    }


def _as_it_is(kind: pa.DataType) -> bool:
    plain = types.is_null(kind) or types.is_boolean(kind) or types.is_integer(kind)
    return plain or is_text(kind) or (types.is_duration(kind) and kind.unit == "us")


_FORMS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Form | None]], ...] = (
    (_as_it_is, lambda kind: None),
    (types.is_float64, lambda kind: _number),
    (types.is_float32, lambda kind: _short_number),
    (types.is_timestamp, lambda kind: _instant(kind.unit)),
    (types.is_decimal, lambda kind: _fixed),
    (types.is_date32, lambda kind: str),
    (is_bytes, lambda kind: lambda value: b64encode(value).decode("ascii")),
    (is_list, _array),
    (types.is_struct, _object),
)
