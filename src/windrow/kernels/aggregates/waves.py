"""Waves on whole columns: which units are marked, and what is kept of a row for a wave.

What a wave is, and why its error is bounded, stands in `windrow.algebra.aggregates.approx_count`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.aggregates.approx_count import refuse_negative
from windrow.kernels.aggregates.partials import Partial, Rows
from windrow.kernels.columnar.combiners import TOTAL, Combiner

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


def marks(last: Ints, gone: Ints, most: int) -> tuple[Ints, Ints]:
    """The greatest mark up to `gone`, and the least mark after it (or `last` + 1 if there is none).

    Of the multiples of each power of two up to `last`, the greatest `most` are marked, and unit 1. Up to
    `gone` it is a multiple of 2^l for the least l whose marks reach back that far; after it, one of those or
    the first mark of 2^(l−1).

    >>> [found.tolist() for found in marks(np.array([20, 20, 20, 4]), np.array([3, 17, 20, 0]), 4)]
    [[1, 17, 20, 0], [8, 18, 21, 1]]
    """
    level = np.zeros(len(last), dtype=np.int64)
    low, high = np.empty_like(last), np.full(len(last), np.iinfo(np.int64).max)
    open_ = np.arange(len(last))
    while len(open_):
        bits = level[open_]
        first = ((last[open_] >> bits) - most + 1) << bits
        reached = first <= gone[open_]
        done = open_[reached]
        low[done] = (gone[done] >> level[done]) << level[done]
        high[done] = np.minimum(high[done], low[done] + (np.int64(1) << level[done]))
        open_ = open_[~reached]
        high[open_] = first[~reached]
        level[open_] += 1
    return np.where(gone > 0, np.maximum(low, 1), 0), np.where(
        (gone == 0) & (last > 0), 1, np.minimum(high, last + 1)
    )


@dataclass(frozen=True)
class Wave(Partial):
    """A count or sum that is estimated: of each row whether it counts, and its units."""

    most: int
    counts: bool

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        """Of the two columns of single rows; rows are kept, not combined."""
        return TOTAL, TOTAL

    def lift(self, rows: Rows) -> list[pl.Series]:
        counted = rows.counted
        units = counted.cast(pl.Int64)
        if not self.counts:
            values = rows.args[0].cast(pl.Int64).fill_null(0)
            units = units * values
            if len(units) and int(units.min()) < 0:  # type: ignore[arg-type]
                raise refuse_negative(int(units.min()))  # type: ignore[arg-type]
        return [counted.cast(pl.Int64).alias(self._name(0)), units.alias(self._name(1))]
