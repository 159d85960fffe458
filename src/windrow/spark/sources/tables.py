"""Tables in memory, of pandas, Polars or Arrow, in the few Arrow types that Spark takes; and the rows of a
table, from whatever holds them: tuples, dictionaries, frames and tables of all kinds.

>>> from windrow.language.compile import declare_table
>>> items = declare_table("items", "item BIGINT, name STRING")
>>> given_rows(items, [(1, "vase"), {"name": "lamp", "item": 2}])
[(1, 'vase'), (2, 'lamp')]
>>> given_rows(items, [{"itm": 3, "name": "rug"}])
Traceback (most recent call last):
windrow.errors.DataError: table `items` has no column `itm` (did you mean `item`?)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type

from windrow.algebra.catalog import Table
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError, SourceError, first_line, nearest
from windrow.kernels.columnar.columns import frame_from_arrow, rows_of
from windrow.spark.failures import job_failed
from windrow.spark.sources.fit import check_types, fitting, spark_schema, to_spark

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def as_table(data: Any) -> pa.Table:
    """The data as an Arrow table in plain types."""
    package = type(data).__module__.partition(".")[0]
    try:
        if isinstance(data, pa.Table):
            table = data
        elif isinstance(data, pa.RecordBatch):
            table = pa.Table.from_batches([data])
        elif package == "pandas":
            table = pa.Table.from_pandas(data, preserve_index=False)
        elif package == "polars" and hasattr(data, "collect"):
            table = pa.table(data.collect())
        elif hasattr(data, "__arrow_c_stream__"):
            table = pa.table(data)
        else:
            raise SourceError(
                f"a stream cannot be read from a {type(data).__name__}",
                code="bad-source",
                hint="give a Spark, pandas or Polars DataFrame, or an Arrow table",
            )
    except pa.ArrowException as error:
        raise SourceError(
            f"the data is no table: {first_line(error)}", hint="give every column one type"
        ) from None
    columns = list(map(_plain_column, table.schema, table.columns))
    return pa.table(columns, names=table.column_names)


def _plain_column(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _plain_type(field.type)
    try:
        return column if kind == field.type else column.cast(kind)
    except pa.ArrowException as error:
        raise SourceError(
            f"column `{field.name}` is {field.type}, which is not {kind}: {first_line(error)}",
            code="column-type",
            hint=f"convert it to {kind} first",
        ) from None


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that Spark takes for it; a timestamp without a zone is taken as UTC."""
    if is_a.is_dictionary(kind) or is_a.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if is_a.is_timestamp(kind):
        return _TIMESTAMP
    if is_a.is_duration(kind):
        return pa.duration("us")
    if is_a.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if is_a.is_list(kind) or is_a.is_large_list(kind) or is_a.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if is_a.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    return _PLAIN.get(kind, kind)


def digest(table: pa.Table) -> str:
    """A short text that tells the contents of two tables apart, and is the same for the same contents.

    Under a NULL any bits may lie; so a column counts as its values and, apart from them, where they are.
    """
    hashed = blake2b(digest_size=16)
    for name, column in zip(table.column_names, table.columns, strict=True):
        for part in (column.is_valid(), column.drop_null()):
            piece, written = pa.table({name: part}).combine_chunks(), pa.BufferOutputStream()
            with pa.ipc.new_stream(written, piece.schema) as writer:
                writer.write_table(piece)
            hashed.update(written.getvalue())
    return hashed.hexdigest()


Values = tuple[Any, ...]


def given_rows(table: Table, data: Any) -> list[Values]:
    """Rows that somebody gives: a list of tuples or dictionaries, or anything that is a table itself."""
    if data is None:
        return []
    if isinstance(data, DataFrame) and data.isStreaming:
        raise SourceError(
            f"{table.title} cannot be read from a streaming frame: it has no content at any moment",
            code="bad-source",
            hint="declare a stream, or give a frame that is not streaming",
        )
    if isinstance(data, DataFrame):
        with job_failed(f"reading {table.title}"):
            return arrow_rows(table, fitting(data, table, "the frame").of(data).toArrow())
    if isinstance(data, list | tuple):
        rows = [_in_order(table, row) if isinstance(row, Mapping) else row for row in data]
        return canonical_rows(table.schema, rows, table.title)
    return arrow_rows(table, as_table(data))


def arrow_rows(table: Table, data: pa.Table) -> list[Values]:
    """The rows of an Arrow table, whose columns are found by name."""
    names = check_types(spark_schema(data.schema), table, "the data")
    kinds = [to_arrow_type(to_spark(field.type), timezone="UTC") for field in table.schema]
    columns = []
    for field, kind in zip(table.schema, kinds, strict=True):
        try:
            columns.append(data[names[field.name]].cast(kind))
        except pa.ArrowInvalid as error:  # as of a text that is no such number
            what = f"{table.title}.{field.name} is {kind}: {error}"
            raise DataError(what, code="malformed-row", hint="mend the value") from None
    fitted = pa.table(columns, names=list(table.schema.names))
    rows = rows_of(frame_from_arrow(fitted, table.schema), table.schema)
    maps = any(field.type.is_map for field in table.schema)
    return canonical_rows(table.schema, rows, table.title) if maps else rows


def rows_to_change(table: Table, data: Any) -> list[Values]:
    """Rows to insert or delete: a column that the table does not have is refused, not left out."""
    is_arrow = isinstance(data, pa.Table | pa.RecordBatch)
    _check_columns(table, data.schema.names if is_arrow else getattr(data, "columns", ()))
    return given_rows(table, data)


def _in_order(table: Table, row: Mapping[str, Any]) -> Iterable[Any]:
    _check_columns(table, row)
    given = {name.lower(): value for name, value in row.items()}
    absent = next((name for name in table.schema.names if name.lower() not in given), None)
    if absent is not None:
        raise DataError(
            f"{table.title}: a row has no `{absent}`",
            code="missing-column",
            hint=f"give every column; `{absent}` may be None",
        )
    return tuple(given[name.lower()] for name in table.schema.names)


def _check_columns(table: Table, names: Iterable[Any]) -> None:
    """Refuse a column that the table does not have."""
    known = {name.lower() for name in table.schema.names}
    strange = next((name for name in map(str, names) if name.lower() not in known), None)
    if strange is not None:
        hint = nearest(strange, table.schema.names) or "its columns are " + ", ".join(table.schema.names)
        raise DataError(f"{table.title} has no column `{strange}`", code="unknown-column", hint=hint)
