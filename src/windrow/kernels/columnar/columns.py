"""Columns: how values of our types lie in Arrow, and the way from and to plain Python values.

Inside kernels TIMESTAMP, DATE and INTERVAL are 64-bit integers (microseconds), as everywhere in Windrow.
Arrow and polars share memory, so a frame is a view of a table, not a copy. Names that begin with `#` are
the kernels' own columns; they travel with rows through filters and projections and no expression reads them.
Users give and get times as Arrow's times.

Codes are values of any type as 64-bit integers in the same order, so that min and max are those of integers:
whole numbers are their own codes, doubles by a turn of their bits; everything else (text, decimals, whole
rows) is numbered by sorting what is at hand, since only the order among these rows matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.algebra import DataType, Kind, Schema
from windrow.kernels.columnar.buffers import within_buffers
from windrow.windows.domain import Doubles, Flags, Ints, Numbers

INSTANT = pa.timestamp("us", tz="UTC")
#: what a column of ticks says of itself: the value of one of them
RESOLUTION = b"windrow.resolution"
_DAY = 86_400_000_000

#: in tables that users see, and in kernels
_PLAIN: dict[Kind, tuple[pa.DataType, type[pl.DataType]]] = {
    Kind.NULL: (pa.null(), pl.Null),
    Kind.BOOLEAN: (pa.bool_(), pl.Boolean),
    Kind.TINYINT: (pa.int8(), pl.Int8),
    Kind.SMALLINT: (pa.int16(), pl.Int16),
    Kind.INT: (pa.int32(), pl.Int32),
    Kind.BIGINT: (pa.int64(), pl.Int64),
    Kind.FLOAT: (pa.float32(), pl.Float32),
    Kind.DOUBLE: (pa.float64(), pl.Float64),
    Kind.STRING: (pa.string(), pl.String),
    Kind.BINARY: (pa.binary(), pl.Binary),
    Kind.DATE: (pa.date32(), pl.Int64),
    Kind.TIMESTAMP: (INSTANT, pl.Int64),
    Kind.INTERVAL: (pa.duration("us"), pl.Int64),
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
            return _PLAIN[plain][0]


def rows_schema(schema: Schema) -> pa.Schema:
    """The columns of a stream's rows."""
    return pa.schema([pa.field(each.name, arrow_type(each.type)) for each in schema])


def published(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A kernel's table, column by column, with the types users see."""
    table = within_buffers(table)
    return pa.Table.from_arrays(
        [_shown(column, field) for column, field in zip(table.columns, schema, strict=True)], schema=schema
    )


def _shown(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    step = (field.metadata or {}).get(RESOLUTION)
    if step is not None:
        return valued(column, Decimal(step.decode()), field.type)
    if pa.types.is_date32(field.type):
        days = pa.compute.divide(column.cast(pa.int64()), _DAY)
        return days.cast(pa.int32()).cast(field.type)
    return column.cast(field.type)


def valued(ticks: pa.ChunkedArray, step: Decimal, kind: pa.DataType) -> pa.ChunkedArray:
    """Ticks as the values that are so many steps; of a DOUBLE the nearest ones, by one exact division."""
    if pa.types.is_float64(kind):
        n, d = step.as_integer_ratio()
        return pa.compute.divide(pa.compute.multiply(ticks, n).cast(kind), float(d))
    one = pa.scalar(step, pa.decimal128(18, kind.scale))
    return pa.compute.multiply(ticks.cast(pa.decimal128(19, 0)), one).cast(kind)


def polars_type(kind: DataType) -> pl.DataType:
    """The polars type of a column.

    >>> from windrow.algebra.types import TIMESTAMP, decimal
    >>> polars_type(TIMESTAMP), polars_type(decimal(10, 2))
    (Int64, Decimal(precision=10, scale=2))
    """
    match kind.kind:
        case Kind.DECIMAL:
            return pl.Decimal(kind.precision, kind.scale)
        case Kind.ARRAY:
            return pl.List(polars_type(kind.fields[0][1]))
        case Kind.STRUCT:
            return pl.Struct({name: polars_type(inner) for name, inner in kind.fields})
        case plain:
            return _PLAIN[plain][1]()


def column_of(name: str, kind: DataType, values: Iterable[Any]) -> pl.Series:
    """Plain values, as `windrow.algebra.values` has them, as a column."""
    found = [_named(value, kind) for value in values] if kind.fields else list(values)
    return pl.Series(name, found, dtype=polars_type(kind))


def _named(value: Any, kind: DataType) -> Any:
    """Structs within a value with the names of their fields, as polars takes them."""
    if value is None or not kind.fields or isinstance(value, dict):
        return value
    if kind.kind is Kind.ARRAY:
        return [_named(each, kind.element) for each in value]
    return {name: _named(each, inner) for (name, inner), each in zip(kind.fields, value, strict=True)}


def constant(value: Any, kind: DataType, length: int) -> pl.Series:
    """A column of one value."""
    return column_of("", kind, [value]).new_from_index(0, length)


def frame_of(schema: Schema, rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    """Canonical rows as a frame.

    >>> from windrow.algebra.expressions import Field, Schema
    >>> from windrow.algebra.types import BIGINT, DOUBLE
    >>> frame_of(Schema((Field("k", BIGINT), Field("v", DOUBLE))), [(1, 0.5), (None, 2.0)]).rows()
    [(1, 0.5), (None, 2.0)]
    """
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    return pl.DataFrame(
        [column_of(field.name, field.type, values) for field, values in zip(schema, columns, strict=True)]
    )


def frame_from_arrow(table: pa.Table, schema: Schema) -> pl.DataFrame:
    """An Arrow table of a stream as a frame with the columns of its schema; times become integers."""
    columns = []
    for field in schema:
        column = table.column(field.name)
        if pa.types.is_date32(column.type):
            column = column.cast(pa.int32()).cast(pa.int64())
            columns.append(pl.Series(field.name, column) * _DAY)
            continue
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
        elif pa.types.is_duration(column.type):
            column = column.cast(pa.duration("us")).cast(pa.int64())
        columns.append(pl.Series(field.name, column).cast(polars_type(field.type)))
    return pl.DataFrame(columns)


def to_frame(table: pa.Table) -> pl.DataFrame:
    """A kernel's own table as a frame."""
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def rows_of(frame: pl.DataFrame, schema: Schema) -> list[tuple[Any, ...]]:
    """The columns of the schema as rows of plain values: every NaN is `math.nan`, arrays are tuples."""
    columns = [values_of(frame[field.name], field.type) for field in schema]
    return list(zip(*columns, strict=True)) if columns else [()] * frame.height


def values_of(column: pl.Series, kind: DataType) -> list[Any]:
    """A column as plain values."""
    values = column.to_list()
    if kind.is_fractional or kind.fields:
        return [plain(value) for value in values]
    return values


def plain(value: Any) -> Any:
    """One value in its canonical Python form.

    >>> plain([{"value": float("nan"), "count": 2}])
    ((nan, 2),)
    """
    if isinstance(value, float):
        return math.nan if value != value else value
    if isinstance(value, list):
        return tuple(map(plain, value))
    if isinstance(value, dict):
        return tuple(map(plain, value.values()))
    return value


def without_negative_zero(column: pl.Series) -> pl.Series:
    """The column as grouping sees it: -0.0 is 0.0. (polars groups NaN with NaN and NULL with NULL itself.)

    >>> without_negative_zero(pl.Series([-0.0, None, 2.0])).to_list()
    [0.0, None, 2.0]
    """
    if not column.dtype.is_float():
        return column
    zero = pl.lit(0.0, column.dtype)
    # adding 0.0 would do, if polars did not take that for doing nothing
    return column.to_frame("x").select(pl.when(pl.col("x") == 0).then(zero).otherwise("x")).to_series()


def picked(frame: pl.DataFrame, places: Any) -> pl.DataFrame:
    """The rows at some places."""
    return frame.select(pl.all().gather(pl.Series(places, dtype=pl.Int64)))


def hidden(frame: pl.DataFrame) -> list[str]:
    """The kernels' own columns of a frame."""
    return [name for name in frame.columns if name.startswith("#")]


_SIGN = np.int64(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Codes:
    """The numbers of rows, and `payload(numbers, known)`: the columns behind them, NULL where not known."""

    numbers: Ints
    payload: Callable[[Ints, Flags], list[pl.Series]]


def by_value(column: pl.Series) -> Codes:
    """The order of one column's values."""
    if column.dtype.is_float():
        return _direct(column, sortable_bits(column.cast(pl.Float64).fill_null(0.0).to_numpy()), from_bits)
    if column.dtype.is_integer() or column.dtype == pl.Boolean:
        return _direct(column, column.cast(pl.Int64).fill_null(0).to_numpy(), lambda numbers: numbers)
    return by_order(pl.DataFrame([column]), [column.name])


def by_order(frame: pl.DataFrame, keys: Sequence[str]) -> Codes:
    """The order of rows by some of their columns: NULL first, NaN last.

    >>> frame = pl.DataFrame({"v": ["x", "y"], "t": [9, 4]})
    >>> codes = by_order(frame, ["t"])
    >>> codes.numbers.tolist(), codes.payload(np.array([0]), np.array([True]))[0].to_list()
    ([1, 0], ['y'])
    """
    order = frame.select(pl.arg_sort_by([pl.col(key) for key in keys])).to_series()
    numbers = np.empty(frame.height, dtype=np.int64)
    numbers[order.to_numpy()] = np.arange(frame.height)
    ranked = picked(frame, order.cast(pl.Int64))

    def payload(codes: Ints, known: Flags) -> list[pl.Series]:
        places = masked(pl.Series(np.where(known, codes, 0)), known).cast(pl.UInt32)
        return [column.gather(places) for column in ranked.get_columns()]

    return Codes(numbers, payload)


def _direct(column: pl.Series, numbers: Numbers, back: Callable[[Any], Any]) -> Codes:
    def payload(codes: Ints, known: Flags) -> list[pl.Series]:
        values = pl.Series(column.name, back(np.where(known, codes, 0)))
        return [masked(values.cast(column.dtype), known)]

    return Codes(numbers.astype(np.int64), payload)


def masked(values: pl.Series, known: Flags) -> pl.Series:
    """The values where they are known, NULL elsewhere."""
    return values if known.all() else values.zip_with(pl.Series(known), values.clear(len(values)))


def looked_up(rows: pl.DataFrame, table: pl.DataFrame, value: str) -> pl.Series:
    """The column `value` of the table's row that has the same keys, NULL and NaN included.

    Doubles are looked up by their codes: a join of sorted columns does not find NaN.

    >>> table = pl.DataFrame({"k": [float("nan")], "g": [7]})
    >>> looked_up(table.select("k"), table, "g").to_list()
    [7]
    """
    left = pl.DataFrame([value_order(column) for column in rows])
    right = pl.DataFrame([*(value_order(table[name]) for name in rows.columns), table[value]])
    return left.join(right, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")[value]


def row_order(column: pl.Series) -> pl.Series:
    """A column as the order of rows sees it: doubles as codes, where -0.0 comes before the 0.0 it equals."""
    return _coded(column, _turned)


def value_order(column: pl.Series) -> pl.Series:
    """A column as ORDER BY sees it: -0.0 is 0.0, so that the next column decides.

    >>> value_order(pl.Series([0.0, None, -0.0])).to_list()
    [0, None, 0]
    """
    return _coded(column, sortable_bits)


def _coded(column: pl.Series, code: Callable[[Doubles], Ints]) -> pl.Series:
    if not column.dtype.is_float():
        return column
    codes = code(column.cast(pl.Float64).fill_null(0.0).to_numpy())
    return masked(pl.Series(column.name, codes), column.is_not_null().to_numpy())


def sortable_bits(values: Doubles) -> Ints:
    """Doubles as integers in the same order, -0.0 as 0.0, every NaN as one and above all.

    >>> codes = sortable_bits(np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan]))
    >>> np.diff(codes).clip(0, 1).tolist(), from_bits(codes).tolist()
    ([1, 1, 0, 1, 1, 1], [-inf, -1.0, 0.0, 0.0, 2.0, inf, nan])
    """
    return _turned(values + 0.0)


def _turned(values: Doubles) -> Ints:
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & _SIGN))


def from_bits(codes: Ints) -> Doubles:
    """The way back."""
    return np.asarray(codes ^ ((codes >> 63) & _SIGN)).view(np.float64)
