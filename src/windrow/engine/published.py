"""Answers as users get them: `at` first, `op` where answers come and go, times as Arrow's times.

>>> from windrow.engine.explaining import declared
>>> from windrow.language.compile import compile_query
>>> bids = {"bids": "item BIGINT, ts TIMESTAMP"}
>>> text = "SELECT item, COUNT(*) AS n FROM bids [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY item"
>>> published_schema(compile_query(text, declared(bids, {}))).names
['at', 'item', 'n']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.algebra.types import DataType, Kind
from windrow.windows.domain import Domain

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
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


def published_schema(emit: Emit) -> pa.Schema:
    """The columns of a query's answers."""
    at = INSTANT if emit.leaves[0].domain is Domain.TIME else pa.int64()
    op = [pa.field("op", pa.string())] if emit.emits_deletions else []
    return pa.schema([pa.field("at", at), *op, *_fields(emit.schema, "at")])


def rows_schema(schema: Schema) -> pa.Schema:
    """The columns of a stream's rows."""
    return pa.schema(_fields(schema))


def _fields(schema: Schema, *taken: str) -> list[pa.Field]:
    """A column that is called like one of ours gets an underscore."""
    return [pa.field(f.name + "_" * (f.name in taken), arrow_type(f.type)) for f in schema]


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
