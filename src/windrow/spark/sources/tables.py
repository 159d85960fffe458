"""Tables in memory, of pandas, Polars or Arrow, in the few Arrow types that Spark takes."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pyarrow as pa
import pyarrow.types as is_a

from windrow.errors import SourceError

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


def as_table(data: object) -> pa.Table:
    """The data as an Arrow table in plain types."""
    try:
        table = _to_arrow(data)
    except pa.ArrowException as error:
        raise SourceError(
            f"the data is no table: {_first_line(error)}", hint="give every column one type"
        ) from None
    return _plain(table)


def _to_arrow(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    package = type(data).__module__.partition(".")[0]
    if package == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if package == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise SourceError(
        f"a stream cannot be read from a {type(data).__name__}",
        code="bad-source",
        hint="give a Spark, pandas or Polars DataFrame, or an Arrow table",
    )


def without_rows(data: Any) -> Any:
    """A lazy frame without its rows, which would be computed for nothing; any other data as it is."""
    is_lazy = type(data).__module__.startswith("polars.") and hasattr(data, "collect")
    return data.limit(0) if is_lazy else data


def _plain(table: pa.Table) -> pa.Table:
    columns = [
        _plain_column(field, column) for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _plain_column(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = _plain_type(field.type)
    try:
        return column if kind == field.type else column.cast(kind)
    except pa.ArrowException as error:
        raise SourceError(
            f"column `{field.name}` is {field.type}, which is not {kind}: {_first_line(error)}",
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
    hashing = _HashingFile()
    for name, column in zip(table.column_names, table.columns, strict=True):
        for part in (column.is_valid(), column.drop_null()):
            piece = pa.table({name: part}).combine_chunks()
            with pa.ipc.new_stream(hashing, piece.schema) as writer:
                writer.write_table(piece)
    return hashing.hash.hexdigest()


class _HashingFile:
    """A file that keeps nothing but a hash of what is written to it."""

    closed = False

    def __init__(self) -> None:
        self.hash = blake2b(digest_size=16)

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """There is nothing to close."""


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
