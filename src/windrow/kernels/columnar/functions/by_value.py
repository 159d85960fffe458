"""Any function on columns: its meaning on values, applied once per distinct combination of arguments.

This is the general form, for functions that no operation on whole columns equals in every case: regular
expressions, text as Java writes it, case mapping beyond ASCII. A column with few different values costs
little, however long it is. -0.0 and 0.0 count as different here, since some functions tell them apart.

>>> from windrow.algebra.types import STRING
>>> seen = []
>>> shout = by_value(lambda text: seen.append(text) or text.upper(), [STRING], STRING)
>>> shout(pl.Series(["a", "b", "a"])).result.to_list(), seen
(['A', 'B', 'A'], ['a', 'b'])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.types import DataType, Kind
from windrow.errors import DataError
from windrow.kernels.columnar.columns import column_of, values_of
from windrow.kernels.columnar.functions import dates
from windrow.kernels.columnar.functions.base import Operation, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Places = npt.NDArray[np.int64]

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


def _distinct(keys: pl.DataFrame) -> tuple[Places, Places]:
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
        dates.check(answers)
    flags = np.zeros(len(answers), dtype=bool)
    flags[failed] = True
    return Outcome(column_of("", result, answers), flags if failed else None)
