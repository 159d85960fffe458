"""Columns as users give and get them in Arrow tables: times as Arrow's times, decimals as decimals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.algebra.types import DataType, Kind

if TYPE_CHECKING:
    from windrow.algebra.schema import Schema

_DAY = 86_400_000_000
INSTANT = pa.timestamp("us", tz="UTC")

_PLAIN = {
    Kind.NULL: pa.null(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: INSTANT,
    Kind.INTERVAL: pa.duration("us"),
}


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column that users see."""
    match kind.kind:
        case Kind.DECIMAL:
            return pa.decimal128(kind.precision, kind.scale)
        case Kind.ARRAY:
            return pa.list_(arrow_type(kind.fields[0][1]))
        case Kind.STRUCT:
            return pa.struct([(name, arrow_type(inner)) for name, inner in kind.fields])
        case plain:
            return _PLAIN[plain]


def rows_schema(schema: Schema) -> pa.Schema:
    """The columns of a stream's rows."""
    return pa.schema([pa.field(each.name, arrow_type(each.type)) for each in schema])


def published(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A kernel's table, column by column, with the types users see."""
    return pa.Table.from_arrays(
        [_cast(column, field.type) for column, field in zip(table.columns, schema, strict=True)],
        schema=schema,
    )


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_date32(kind):
        days = pa.compute.divide(column.cast(pa.int64()), _DAY)
        return days.cast(pa.int32()).cast(kind)
    if pa.types.is_list(kind) or pa.types.is_struct(kind):
        return _nested(column, kind)
    return column.cast(kind)


def _nested(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Lists of structs as TOP_K gives them: names and types of the parts become ours."""
    return column.cast(kind)
