"""What a window needs of a stream at an instant, and which rows it holds then.

The intervals of `windrow.windows` say when a row is in a window. About one instant they come down to a filter
of rows by their windowing attribute; windows that count rows, or follow them, look at all of them together.

>>> from windrow.windows.ranges import RangeWindow
>>> needs_of(RangeWindow(60), 1000), needs_of(RangeWindow(60, 50), 1020)
(Needs(begin=941, end=1000, rows=None), Needs(begin=940, end=999, rows=None))
>>> needs_of(RowsWindow(5), 1000)
Needs(begin=-inf, end=1000, rows=5)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.errors import QueryError
from windrow.kernels.columnar.columns import row_order
from windrow.kernels.columnar.expressions import compile_expression
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from windrow.algebra.catalog import Stream
    from windrow.windows.spec import WindowSpec


@dataclass(frozen=True)
class Needs:
    """Rows with begin <= attribute <= end, or of these the last `rows`."""

    begin: Instant
    end: Instant
    rows: int | None = None


def needs_of(spec: WindowSpec, at: int) -> Needs:
    """The rows a window can hold at an instant."""
    if isinstance(spec, SlideByTupleWindow):
        raise QueryError(
            "a window that slides by the values of its rows is not asked about at one instant",
            code="unsupported",
            hint="register the query with CREATE QUERY",
        )
    begin, end = spec.held(at)
    if isinstance(spec, RowsWindow) and not spec.partition_by and spec.slide_rows is None:
        return Needs(begin, end, spec.rows)
    return Needs(begin, end)


def members(spec: WindowSpec, stream: Stream, rows: pl.DataFrame, at: int, alias: str = "") -> pl.DataFrame:
    """Those of the rows that are in the window at an instant; it must have been given all it needs."""
    needs, moment = needs_of(spec, at), pl.col(moment_of(stream)).cast(pl.Int64)
    inside = rows.filter(moment <= int(needs.end))
    if needs.begin != -INFINITY:
        inside = inside.filter(moment >= int(needs.begin))
    match spec:
        case RowsWindow():
            return _counted(spec, stream, inside)
        case SessionWindow():
            return _in_sessions(spec, stream, inside, at)
        case LifetimeWindow():
            return _alive(spec, inside, moment, at, alias)
    return inside


def moment_of(stream: Stream) -> str:
    """The column of kept rows that is the windowing attribute."""
    return stream.wattr if stream.wattr in stream.schema else f"#{stream.wattr}"


def _counted(spec: RowsWindow, stream: Stream, rows: pl.DataFrame) -> pl.DataFrame:
    """The last n rows of each partition; with SLIDE m ROWS, up to a multiple of m."""
    keys = [row_order(rows[moment_of(stream)].cast(pl.Int64)).alias("#0")]
    keys += [_ordered(rows[name]).alias(f"#o{place}") for place, name in enumerate(stream.schema.names)]
    by = [pl.col(key.name) for key in keys]
    order = pl.DataFrame(keys).select(pl.arg_sort_by(by)).to_series()
    ranked = rows.select(pl.all().gather(order)).with_columns(pl.lit(1, pl.Int64).alias("#one"))
    over = list(spec.partition_by) or ["#one"]
    ranked = ranked.with_columns(
        pl.col("#one").cum_sum().over(over).alias("#position"),
        pl.len().over(over).cast(pl.Int64).alias("#of"),
    )
    step = spec.slide_rows or 1
    last = pl.col("#of") // step * step
    held = (pl.col("#position") <= last) & (pl.col("#position") > last - spec.rows)
    return ranked.filter(held).select(rows.columns)


def _ordered(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested():
        return column.map_elements(repr, pl.String, skip_nulls=True)
    return row_order(column)


def _in_sessions(spec: SessionWindow, stream: Stream, rows: pl.DataFrame, at: int) -> pl.DataFrame:
    """The rows of sessions that have not ended."""
    t, keys = moment_of(stream), list(spec.partition_by) or ["#one"]
    ranked = rows.with_columns(pl.lit(1, pl.Int64).alias("#one"), pl.col(t).cast(pl.Int64).alias("#t")).sort(
        "#t"
    )
    gap = (pl.col("#t") - pl.col("#t").shift(1).over(keys)).fill_null(0) >= spec.reach
    ranked = ranked.with_columns(gap.cast(pl.Int64).alias("#new"))
    ranked = ranked.with_columns(pl.col("#new").cum_sum().over(keys).alias("#session"))
    last = pl.col("#t").max().over([*keys, "#session"])
    return ranked.filter(last + spec.reach > at).select(rows.columns)


def _alive(spec: LifetimeWindow, rows: pl.DataFrame, moment: pl.Expr, at: int, alias: str) -> pl.DataFrame:
    named = rows.rename(lambda name: f"{alias}.{name}")
    lives: Any = compile_expression(spec.expression)(named).cast(pl.Int64).fill_null(0)
    limit = (1 << 62) // spec.scale
    ticks = pl.lit(lives.clip(0, limit) * spec.scale)
    return rows.filter(moment + ticks > at)
