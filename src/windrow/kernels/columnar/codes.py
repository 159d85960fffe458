"""Codes: values of any type as 64-bit integers in the same order, so that min and max are those of integers.

Whole numbers are their own codes, doubles by a turn of their bits; everything else (text, decimals, whole
rows) is numbered by sorting what is at hand, since only the order among these rows matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked

if TYPE_CHECKING:
    import numpy.typing as npt

_SIGN = np.int64(np.iinfo(np.int64).max)


@dataclass(frozen=True)
class Codes:
    """The numbers of rows, and `payload(numbers, known)`: the columns behind them, NULL where not known."""

    numbers: npt.NDArray[np.int64]
    payload: Callable[[npt.NDArray[np.int64], npt.NDArray[np.bool_]], list[pl.Series]]


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

    def payload(codes: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> list[pl.Series]:
        places = _masked(pl.Series(np.where(known, codes, 0)), known).cast(pl.UInt32)
        return [column.gather(places) for column in ranked.get_columns()]

    return Codes(numbers, payload)


def _direct(column: pl.Series, numbers: npt.NDArray[Any], back: Callable[[Any], Any]) -> Codes:
    def payload(codes: npt.NDArray[np.int64], known: npt.NDArray[np.bool_]) -> list[pl.Series]:
        values = pl.Series(column.name, back(np.where(known, codes, 0)))
        return [_masked(values.cast(column.dtype), known)]

    return Codes(numbers.astype(np.int64), payload)


def _masked(values: pl.Series, known: npt.NDArray[np.bool_]) -> pl.Series:
    return values if known.all() else values.zip_with(pl.Series(known), values.clear(len(values)))


def looked_up(rows: pl.DataFrame, table: pl.DataFrame, value: str) -> pl.Series:
    """The column `value` of the table's row that has the same keys, NULL and NaN included.

    Doubles are looked up by their codes: a join of sorted columns does not find NaN.

    >>> table = pl.DataFrame({"k": [float("nan")], "g": [7]})
    >>> looked_up(table.select("k"), table, "g").to_list()
    [7]
    """
    left, right = _matchable(rows), _matchable(table.select(rows.columns)).with_columns(table[value])
    return left.join(right, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")[value]


def _matchable(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.DataFrame(
        [
            _masked(pl.Series(column.name, by_value(column).numbers), column.is_not_null().to_numpy())
            if column.dtype.is_float()
            else column
            for column in frame
        ]
    )


def row_order(column: pl.Series) -> pl.Series:
    """A column as the order of rows sees it: doubles as codes, where -0.0 comes before the 0.0 it equals."""
    return _coded(column, _turned)


def value_order(column: pl.Series) -> pl.Series:
    """A column as ORDER BY sees it: -0.0 is 0.0, so that the next column decides.

    >>> value_order(pl.Series([0.0, None, -0.0])).to_list()
    [0, None, 0]
    """
    return _coded(column, sortable_bits)


def _coded(column: pl.Series, code: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.int64]]) -> pl.Series:
    if not column.dtype.is_float():
        return column
    codes = code(column.cast(pl.Float64).fill_null(0.0).to_numpy())
    return _masked(pl.Series(column.name, codes), column.is_not_null().to_numpy())


def sortable_bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Doubles as integers in the same order, -0.0 as 0.0, every NaN as one and above all.

    >>> codes = sortable_bits(np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf, np.nan]))
    >>> np.diff(codes).clip(0, 1).tolist(), from_bits(codes).tolist()
    ([1, 1, 0, 1, 1, 1], [-inf, -1.0, 0.0, 0.0, 2.0, inf, nan])
    """
    return _turned(values + 0.0)


def _turned(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
    return np.asarray(bits ^ ((bits >> 63) & _SIGN))


def from_bits(codes: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The way back."""
    return np.asarray(codes ^ ((codes >> 63) & _SIGN)).view(np.float64)
