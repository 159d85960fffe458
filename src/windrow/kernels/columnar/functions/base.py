"""What an implementation on columns is, and the columns where it fails.

A function that can fail says in which rows it did. Whether that is an error (ANSI) or NULL (the `try_`
forms) is the caller's choice, and what the error says is asked of the function's meaning on values
(`explained`), so that it is told alike everywhere. A column form may not know the types of a call: it then
answers None, and `windrow.kernels.columnar.functions.by_value` has the function for all types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from windrow.algebra.expressions import Call
from windrow.errors import DataError
from windrow.kernels.columnar.columns import values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from windrow.algebra.types import DataType

    Flags = npt.NDArray[np.bool_]

Evaluator = Callable[[pl.DataFrame], pl.Series]


class Outcome(NamedTuple):
    """The values, and the rows in which there are none since the function failed."""

    result: pl.Series
    failed: Flags | None = None

    @property
    def fails(self) -> bool:
        return self.failed is not None and bool(self.failed.any())

    def or_null(self) -> pl.Series:
        """The values, NULL in rows that failed."""
        if self.failed is None or not self.fails:
            return self.result
        return self.result.zip_with(pl.Series(~self.failed), self.result.clear(len(self.result)))


Operation = Callable[..., Outcome]
#: columns without NULLs in, one of them out
Strict = Callable[[Call], Operation | None]
#: columns with their NULLs
Whole = Callable[[Call], Callable[..., pl.Series]]
Lazy = Callable[[Call, tuple["Compiled", ...]], Evaluator]


@dataclass(frozen=True)
class Compiled:
    """An argument: how it is computed, and whether that can fail."""

    evaluate: Evaluator
    can_fail: bool

    def within(self, frame: pl.DataFrame, rows: pl.Series) -> pl.Series:
        """Its values where `rows` holds, NULL elsewhere; only those rows are computed if some could fail."""
        if not self.can_fail or rows.all():
            return self.evaluate(frame)
        return spread(self.evaluate(frame.filter(rows)), rows)


def spread(values: pl.Series, rows: pl.Series) -> pl.Series:
    """Values of the rows that are marked, in their places; NULL in the others.

    >>> spread(pl.Series([7, 8]), pl.Series([True, False, True])).to_list()
    [7, None, 8]
    """
    marks = pl.DataFrame({"rows": rows})
    places = marks.select(pl.when("rows").then(pl.col("rows").cast(pl.UInt32).cum_sum() - 1)).to_series()
    return values.gather(places)


def nulls(dtype: pl.DataType, length: int) -> pl.Series:
    """A column of nothing but NULL."""
    return pl.Series([None], dtype=dtype).new_from_index(0, length)


def total(function: Callable[..., pl.Series]) -> Operation:
    """An operation that never fails."""
    return lambda *columns: Outcome(function(*columns))


def plain(function: Callable[..., pl.Series]) -> Strict:
    """A form that never fails and does not depend on types."""
    return lambda _: total(function)


def forgiving(implementation: Strict) -> Strict:
    """The `try_` form: NULL where the function fails. Errors of its arguments remain errors."""

    def build(call: Call) -> Operation | None:
        operation = implementation(call)
        return None if operation is None else lambda *columns: Outcome(operation(*columns).or_null())

    return build


def explained(
    meaning: Callable[..., Any], kinds: Sequence[DataType], columns: Sequence[pl.Series], failed: Flags
) -> DataError:
    """The error of the first row that failed, as the function on values tells it."""
    place = int(np.argmax(failed))
    values = [
        values_of(column[place : place + 1], kind)[0] for column, kind in zip(columns, kinds, strict=True)
    ]
    try:
        result = meaning(*values)
    except DataError as error:
        return error
    raise AssertionError(f"columns fail for {values}, where rows have {result!r}")


def series(values: Any, dtype: pl.DataType) -> pl.Series:
    """A numpy array as a column of the type."""
    return pl.Series(values).cast(dtype)


def longs(column: pl.Series) -> npt.NDArray[np.int64]:
    """Whole numbers, times or spans as 64-bit integers."""
    return column.to_numpy().astype(np.int64)
