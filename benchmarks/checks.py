"""Whether contestants answer the same. Only then are their times compared.

Answers have the columns `at`, when the window ends, `k`, `m`, `t` and `n`. Sums of doubles depend on the
order in which they are added, so doubles may differ in their last digits.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.errors import WindrowError

if TYPE_CHECKING:
    import polars as pl

#: answers with more rows than this are compared by figures per instant instead of row by row
MOST_ROWS = 2_000_000
_TOLERANCE = 1e-9


@dataclass
class Agreement:
    """Remembers the first answer to each question, and holds the others against it."""

    _first: dict[Hashable, tuple[str, pl.DataFrame]] = field(default_factory=dict)

    def check(self, question: Hashable, contestant: str, answers: pl.LazyFrame) -> int:
        """Raise an error unless these are the answers given before; gives how many there are."""
        count, found = condensed(answers)
        name, expected = self._first.setdefault(question, (contestant, found))
        problem = difference(expected, found)
        if problem is not None:
            raise WindrowError(
                f"{contestant} and {name} answer differently: {problem}",
                code="answers-differ",
                hint="times are compared only for equal answers",
            )
        return count


def condensed(answers: pl.LazyFrame, most: int = MOST_ROWS) -> tuple[int, pl.DataFrame]:
    """How many rows there are; and they themselves, in order, or figures of each instant if they are many."""
    import polars as pl

    rows = answers.select(
        pl.col("at").cast(pl.Datetime("us")).cast(pl.Int64),
        pl.col("k").cast(pl.Int64),
        pl.col("m").cast(pl.Float64),
        pl.col("t").cast(pl.Float64),
        pl.col("n").cast(pl.Int64),
    )
    count = int(rows.select(pl.len()).collect().item())
    if count <= most:
        return count, rows.sort("at", "k", "m", "t").collect()
    figures = rows.group_by("at").agg(
        pl.len().cast(pl.Int64).alias("rows"),
        pl.col("k").sum(),
        pl.col("n").sum(),
        (pl.col("k") * pl.col("n")).sum().alias("kn"),
        (pl.col("k") * pl.col("m")).sum().alias("km"),
        (pl.col("k") * pl.col("t")).sum().alias("kt"),
    )
    return count, figures.sort("at").collect()


def difference(expected: pl.DataFrame, found: pl.DataFrame) -> str | None:
    """What tells two ordered answers apart first, or None if nothing does."""
    import polars as pl

    if expected.columns != found.columns or expected.height != found.height:
        return f"{expected.height} rows ({_spread(expected)}) and {found.height} rows ({_spread(found)})"
    differs = pl.any_horizontal(*(_apart(pl.col(name), other) for name, other in _pairs(expected, found)))
    wrong = expected.with_row_index("row").filter(differs)
    if wrong.height == 0:
        return None
    row = int(wrong["row"][0])
    return f"{wrong.height} rows, the first {_shown(expected, row)} and {_shown(found, row)}"


def _pairs(expected: pl.DataFrame, found: pl.DataFrame) -> list[tuple[str, pl.Series]]:
    return [(name, found[name]) for name in expected.columns]


def _apart(one: pl.Expr, other: pl.Series) -> pl.Expr:
    import polars as pl

    value = pl.lit(other)
    if not other.dtype.is_float():
        return one.ne_missing(value)
    apart = (one - value).abs()
    # polars has NaN equal to NaN and above all else, so a NaN would be within any tolerance that is NaN
    near = apart.is_not_nan() & (apart <= _TOLERANCE * (one.abs() + value.abs()) + _TOLERANCE)
    return ~near.fill_null(False) & one.ne_missing(value)


def _shown(frame: pl.DataFrame, row: int) -> dict[str, Any]:
    return dict(frame.row(row, named=True))


def _spread(frame: pl.DataFrame) -> str:
    if "at" not in frame.columns or frame.height == 0:
        return "none"
    return f"at {frame['at'].min()!r}–{frame['at'].max()!r}"
