"""Which columns a Delta table can have, and whether an existing table has those of a query."""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import types

from windrow.errors import SinkError
from windrow.sinks.kinds import is_bytes, is_list, is_text

#: without the column mapping feature, which many readers lack, names must do without these
_FORBIDDEN = re.compile(r"[ ,;{}()\n\t=]")
_UTC = ("UTC", "Etc/UTC", "+00:00", None)


def check_columns(schema: pa.Schema, table: object) -> None:
    """Refuse what no Delta table can hold.

    >>> check_columns(pa.schema([("at", pa.int64()), ("count(*)", pa.int64())]), "/data/top")
    Traceback (most recent call last):
        ...
    windrow.errors.SinkError: the Delta table /data/top cannot have a column `count(*)` (rename it with AS)
    """
    for field in schema:
        if _FORBIDDEN.search(field.name):
            raise SinkError(
                f"the Delta table {table} cannot have a column `{field.name}`",
                code="no-such-name",
                hint="rename it with AS",
            )
        if stored_type(field.type) is None:
            raise SinkError(
                f"the Delta table {table} cannot have the column `{field.name}`: "
                f"Delta has no type for {field.type}",
                code="no-such-type",
                hint="CAST it to a type that Delta has, such as STRING or BIGINT",
            )


def check_same_columns(wanted: pa.Schema, found: pa.Schema, table: object) -> None:
    """Refuse a table that has other columns, or other types. The order does not matter: names decide."""
    theirs = {field.name: stored_type(field.type) or field.type for field in found}
    ours = {field.name: stored_type(field.type) for field in wanted}
    differences = [
        *(f"it has no `{name}`" for name in ours if name not in theirs),
        *(f"it has `{name}`, the query has not" for name in theirs if name not in ours),
        *(
            f"its `{name}` is {theirs[name]}, the query's is {kind}"
            for name, kind in ours.items()
            if name in theirs and theirs[name] != kind
        ),
    ]
    if differences:
        raise SinkError(
            f"the Delta table {table} has other columns than the query: " + "; ".join(differences),
            code="other-columns",
            hint="write into a new table, or let the query select what the table has",
        )


def stored_type(kind: pa.DataType) -> pa.DataType | None:
    """The type as a table gives it back; None if Delta has none.

    >>> stored_type(pa.large_string()), stored_type(pa.duration("us"))
    (DataType(string), None)
    """
    if is_text(kind):
        return pa.string()
    if is_bytes(kind):
        return pa.binary()
    if is_list(kind):
        inner = stored_type(kind.value_type)
        return None if inner is None else pa.list_(inner)
    if types.is_struct(kind):
        return _stored_struct(kind)
    return kind if _is_atomic(kind) else None


def _stored_struct(kind: pa.DataType) -> pa.DataType | None:
    fields = [(field.name, stored_type(field.type)) for field in kind]
    if not fields or any(inner is None or _FORBIDDEN.search(name) for name, inner in fields):
        return None
    return pa.struct(fields)


def _is_atomic(kind: pa.DataType) -> bool:
    if types.is_timestamp(kind):
        return bool(kind.unit == "us" and kind.tz in _UTC)
    if types.is_decimal(kind):
        return bool(types.is_decimal128(kind) and 0 <= kind.scale <= kind.precision)
    number = types.is_signed_integer(kind) or types.is_float32(kind) or types.is_float64(kind)
    return bool(number or types.is_boolean(kind) or types.is_date32(kind))
