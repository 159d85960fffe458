"""What an implementation on columns is, and the columns where it fails.

A function that can fail says in which rows it did. Whether that is an error (ANSI) or NULL (the `try_`
forms) is the caller's choice, and what the error says is asked of the function's meaning on values
(`explained`), so that it is told alike everywhere. A column form may not know the types of a call: it then
answers None, and the function is computed `by_value`: its meaning on values, applied once per distinct
combination of arguments.

This is the general form, for functions that no operation on whole columns equals in every case: regular
expressions, text as Java writes it, case mapping beyond ASCII. A column with few different values costs
little, however long it is. -0.0 and 0.0 count as different here, since some functions tell them apart.

>>> from windrow.algebra.types import STRING
>>> seen = []
>>> shout = by_value(lambda text: seen.append(text) or text.upper(), [STRING], STRING)
>>> shout(pl.Series(["a", "b", "a"])).result.to_list(), seen
(['A', 'B', 'A'], ['a', 'b'])

DATEs are within 64 bits of microseconds, which end some 290,000 years from 1970; Spark's go on for millions.
A computed date beyond is an error here, in every form of the function, `try_` or not: it is no fault of the
data, and NULL would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from windrow.algebra import Call, DataType, Kind
from windrow.algebra.functions.calendar import DAY, MOST_DAYS, date_text
from windrow.algebra.functions.values import STRICT as VALUES
from windrow.errors import DataError
from windrow.kernels.columnar.columns import column_of, masked, values_of
from windrow.windows.domain import Flags, Ints, Numbers


def from_days(days: Numbers) -> pl.Series:
    """Days counted from 1970 as a column of DATEs.

    >>> from_days(np.array([1])).to_list()
    [86400000000]
    """
    out = (days > MOST_DAYS) | (days < -MOST_DAYS)
    if out.any():
        raise _beyond(int(days[np.argmax(out)]) * DAY)
    return pl.Series(days.astype(np.int64) * DAY)


def check_dates(dates: Iterable[int | None]) -> None:
    """Refuse DATEs that do not fit a column."""
    for date in dates:
        if date is not None and abs(date) > MOST_DAYS * DAY:
            raise _beyond(date)


def _beyond(date: int) -> DataError:
    return DataError(f"the date {date_text(date)} is out of range", code="arithmetic-overflow")


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
        return self.result if self.failed is None else masked(self.result, ~self.failed)


Operation = Callable[..., Outcome]
#: columns without NULLs in, one of them out
Strict = Callable[[Call], Operation | None]
#: columns with their NULLs
Whole = Callable[[Call], Callable[..., pl.Series]]
Lazy = Callable[[Call, tuple["Compiled", ...]], Evaluator]


def lazy(function: Callable[[Call, tuple[Compiled, ...], pl.DataFrame], pl.Series]) -> Lazy:
    """A form that computes of each argument what it needs."""
    return lambda call, args: lambda frame: function(call, args, frame)


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


def as_on_integers(call: Call) -> Operation:
    """A function whose meaning on integers is arithmetic that is the same on arrays of them."""
    meaning: Any = VALUES[call.function](call)
    return total(lambda *columns: pl.Series(meaning(*map(longs, columns))))


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


def longs(column: pl.Series) -> Ints:
    """Whole numbers, times or spans as 64-bit integers."""
    return column.to_numpy().astype(np.int64)


#: with a greater part of different values than this, looking for equal ones costs more than it saves
_MOSTLY = 0.9
_BITS: dict[pl.DataType, type[np.signedinteger[Any]]] = {pl.Float32(): np.int32, pl.Float64(): np.int64}


def by_value(meaning: Callable[..., Any], kinds: Sequence[DataType], result: DataType) -> Operation:
    """The function of values as one of columns of the given types, without NULLs."""

    def operation(*columns: pl.Series) -> Outcome:
        if any(kind.fields for kind in kinds):
            return _answers(meaning, kinds, columns, result)
        keys = pl.DataFrame([_exact(column).alias(f"k{place}") for place, column in enumerate(columns)])
        different: Any = keys.hash_rows().approx_n_unique()
        if different > _MOSTLY * keys.height:
            return _answers(meaning, kinds, columns, result)
        firsts, numbers = _distinct(keys)
        answers = _answers(meaning, kinds, [column.gather(firsts) for column in columns], result)
        failed = None if answers.failed is None else answers.failed[numbers]
        return Outcome(answers.result.gather(numbers), failed)

    return operation


def _distinct(keys: pl.DataFrame) -> tuple[Ints, Ints]:
    """Where each combination of values first stands, and for every row the number of its combination."""
    groups = (
        keys.with_row_index("rows").group_by(keys.columns, maintain_order=True).agg(pl.col("rows"))["rows"]
    )
    numbers = np.empty(keys.height, dtype=np.int64)
    numbers[groups.explode().to_numpy()] = np.repeat(np.arange(len(groups)), groups.list.len().to_numpy())
    return groups.list.first().to_numpy().astype(np.int64), numbers


def _exact(column: pl.Series) -> pl.Series:
    """Floats by their bits: grouping takes -0.0 for 0.0."""
    bits = _BITS.get(column.dtype)
    return column if bits is None else pl.Series(column.to_numpy().view(bits))


def _answers(
    meaning: Callable[..., Any], kinds: Sequence[DataType], columns: Sequence[pl.Series], result: DataType
) -> Outcome:
    arguments = [values_of(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    answers: list[Any] = []
    failed: list[int] = []
    for values in zip(*arguments, strict=True):
        try:
            answers.append(meaning(*values))
        except DataError:
            failed.append(len(answers))
            answers.append(None)
    if result.kind is Kind.DATE:
        check_dates(answers)
    flags = np.zeros(len(answers), dtype=bool)
    flags[failed] = True
    return Outcome(column_of("", result, answers), flags if failed else None)
