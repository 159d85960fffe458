"""Waves of groups, step by step: rows get numbers, values follow from few of them, most are forgotten.

Card: waves
    requirements  APPROX_COUNT, APPROX_SUM; rows leave in the order they come
    time          O((new rows + kept rows) · log) array operations, no loop over groups
    space         per group c = ⌈1/ε⌉ + 1 rows for each power of two up to the sum
    source        Gibbons and Tirthapura 2002 (deterministic waves); Golab's thesis, 2.3.4 (exponential
                  histograms)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.errors import DataError
from windrow.kernels.aggregates.waves import Wave, marks
from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: of a row kept for a wave: of which wave, the numbers of its units (from, to], when it leaves
WAVE, FROM, TO = "#wave", "#from", "#to"
#: numbers are brought down by this much before they are as large again; a multiple of every power that counts
FAR = 1 << 60


@dataclass(frozen=True)
class Numbered:
    """The rows of one wave in order of group and time, with the numbers of their units."""

    rows: pl.DataFrame
    group: Ints
    vs: Ints
    ve: Ints
    before: Ints
    to: Ints

    def estimates(self, low: Ints, high: Ints, most: int) -> Ints:
        """The sum of the rows from place `low` to before `high`, for each of these ranges; 0 of none."""
        found = np.zeros(len(low), dtype=np.int64)
        some = np.flatnonzero(low < high)
        low, high = low[some], high[some]
        last, gone = self.to[high - 1], self.before[low]
        least, next_mark = marks(last, gone, most)
        place = _first_reaching(self.to, low, high, next_mark)
        start = np.where(next_mark > last, last, self.before[np.minimum(place, high - 1)])
        found[some] = last - (least + ((start - least) >> 1))
        return found

    def kept(self, wave: Wave, number: int, stays: npt.NDArray[np.bool_], keys: list[str]) -> pl.DataFrame:
        """What is left to know of the rows that stay: those with a mark, and the last one."""
        ends = np.append(self.group[1:] != self.group[:-1], True) if len(self.group) else stays
        places = np.flatnonzero(ends)
        sizes = np.diff(places, prepend=-1)
        final = np.repeat(self.to[places], sizes)
        _, next_mark = marks(final, self.before, wave.most)
        useful = np.flatnonzero(stays & (ends | (next_mark <= self.to)))
        oldest = pl.DataFrame({"g": self.group[useful], "n": self.before[useful]})
        far = oldest.select(pl.col("n").min().over("g"))["n"].to_numpy() // FAR
        far = np.maximum(far - 1, 0) * FAR
        return picked(self.rows.select(*keys, VE), useful).with_columns(
            pl.lit(number, pl.Int32).alias(WAVE),
            pl.Series(FROM, self.before[useful] - far),
            pl.Series(TO, self.to[useful] - far),
        )


def numbered(
    old: pl.DataFrame, new: pl.DataFrame, units: str, codes: Callable[[pl.DataFrame], Ints]
) -> Numbered:
    """Rows kept before and new rows of a wave; `codes` tells groups apart."""
    names = [name for name in new.columns if name not in (VS, units)]
    rows = pl.concat([old.select(names), new.select(names)])
    group = codes(rows)
    vs = np.concatenate([np.full(old.height, -FOREVER), new[VS].to_numpy()])
    ve = np.concatenate([old[VE].to_numpy(), new[VE].to_numpy()])
    # of old rows the last number they had, of new ones how many they add
    value = np.concatenate([old[TO].to_numpy(), new[units].to_numpy()])
    before = np.concatenate([old[FROM].to_numpy(), np.zeros(new.height, dtype=np.int64)])
    order = np.lexsort((value, vs, group))
    group, vs, ve, value, before = group[order], vs[order], ve[order], value[order], before[order]
    was = vs == -FOREVER
    fresh = np.append(True, (group[1:] != group[:-1]) | (vs[1:] >= ve[:-1])) if len(group) else was
    follows = np.append(False, was[:-1]) & ~fresh & ~was
    base = np.where(follows, np.append(0, value[:-1]), 0) if len(group) else value
    to = np.where(was, value, _running(np.where(was, 0, value) + base, fresh | was | follows))
    return Numbered(picked(rows, order), group, vs, ve, np.where(was, before, to - value), to)


def _running(values: Ints, starts: npt.NDArray[np.bool_]) -> Ints:
    """Sums that begin anew where `starts` says; sums too large to number are refused."""
    if not len(values):
        return values
    heads = np.flatnonzero(starts)
    if float(np.add.reduceat(values.astype(np.float64), heads).max()) >= 2.0**62:
        raise DataError(
            "the units of APPROX_SUM exceed 64 bits", code="arithmetic-overflow", hint="divide its argument"
        )
    with np.errstate(over="ignore"):
        total = np.cumsum(values)
        return np.asarray(total - np.repeat((total - values)[heads], np.diff(np.append(heads, len(values)))))


def _first_reaching(values: Ints, low: Ints, high: Ints, wanted: Ints) -> Ints:
    """The first place from `low` to before `high` whose value is at least `wanted`; `high` if none is."""
    low, high = low.copy(), high.copy()
    while (low < high).any():
        middle = (low + high) >> 1
        short = (low < high) & (values[np.minimum(middle, len(values) - 1)] < wanted)
        high = np.where(short | (low >= high), high, middle)
        low = np.where(short, middle + 1, low)
    return low
