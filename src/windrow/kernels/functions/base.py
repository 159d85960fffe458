"""What an implementation on columns is, and the columns where it fails.

A function that can fail says in which rows it did; whether that is an error (ANSI) or NULL (the `try_`
forms) is the caller's choice. An implementation may not know the types of a call: it then answers None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.algebra.expressions import Call
from windrow.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Evaluator = Callable[[pl.DataFrame], pl.Series]


@dataclass(frozen=True)
class Failure:
    """Rows in which a function has no value, and how that is told."""

    rows: npt.NDArray[np.bool_]
    message: str
    code: str
    hint: str | None = None

    def error(self) -> DataError:
        return DataError(self.message, code=self.code, hint=self.hint)


Outcome = tuple[pl.Series, tuple[Failure, ...]]
Operation = Callable[..., Outcome]
Strict = Callable[[Call], Operation | None]
Whole = Callable[[Call], Callable[..., pl.Series] | None]
Lazy = Callable[[Call, tuple["Compiled", ...]], Evaluator | None]


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


def total(function: Callable[..., pl.Series]) -> Operation:
    """An operation that never fails."""
    return lambda *columns: (function(*columns), ())


def forgiving(implementation: Strict) -> Strict:
    """The `try_` form: NULL where the function fails. Errors of its arguments remain errors."""

    def build(call: Call) -> Operation | None:
        operation = implementation(call)
        if operation is None:
            return None

        def attempt(*columns: pl.Series) -> Outcome:
            return settled(*operation(*columns), safe=True), ()

        return attempt

    return build


def settled(result: pl.Series, failures: tuple[Failure, ...], *, safe: bool) -> pl.Series:
    """The result: an error for the first failure, or, if `safe`, NULL for each."""
    for failure in failures:
        if failure.rows.any():
            if not safe:
                raise failure.error()
            bad = pl.Series(failure.rows)
            result = result.zip_with(~bad, result.clear(len(result)))
    return result


def series(values: Any, dtype: pl.DataType) -> pl.Series:
    """A numpy array as a column of the type."""
    return pl.Series(values).cast(dtype)
