"""The arithmetic of sketches on whole columns: buckets, what they stand for, counters, estimates from ranks.

The same operations in the same order as in `windrow.algebra.aggregates`, each rounded as IEEE says, so that
the numbers are the same to the last bit.

>>> from windrow.algebra.aggregates.approx_quantile import bucket, representative
>>> values = np.array([0.0, 1.5, -200.0, np.inf, np.nan])
>>> buckets(values, 50).tolist() == [bucket(value, 50) for value in values]
True
>>> representatives(buckets(values, 50), 50).tolist()
[0.0, 1.509933774834437, -200.95184713375795, inf, nan]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windrow.algebra.aggregates.approx_count_distinct import ALPHA
from windrow.algebra.aggregates.approx_frequency import LINES
from windrow.algebra.aggregates.approx_quantile import LOWEST, greatest
from windrow.kernels.columnar.hashing import mixed

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.columnar.hashing import Words

    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]


def buckets(values: Floats, steps: int) -> Ints:
    """The numbers of the buckets that values are in."""
    finite = np.isfinite(values)
    half, exponent = np.frexp(np.where(finite, np.abs(values), 1.0))
    numbers = (exponent.astype(np.int64) - LOWEST) * steps
    numbers += np.floor((2 * half - 1) * steps).astype(np.int64) + 1
    numbers = np.where(finite, numbers, greatest(steps))
    numbers = np.where(values == 0, 0, np.where(values < 0, -numbers, numbers))
    return np.where(np.isnan(values), greatest(steps) + 1, numbers)


def representatives(numbers: Ints, steps: int) -> Floats:
    """The values that buckets stand for."""
    size = np.abs(numbers)
    octave, step = np.divmod(np.clip(size, 1, greatest(steps) - 1) - 1, steps)
    low = steps + step
    mean = 2 * low * (low + 1) / (steps * (2 * low + 1))
    found = np.ldexp(mean, (octave + LOWEST - 1).astype(np.int32))
    found = np.where(size == greatest(steps), np.inf, np.where(size == 0, 0.0, found))
    return np.where(size > greatest(steps), np.nan, np.where(numbers < 0, -found, found))


def counters(words: Words, width: int) -> Ints:
    """The counters of hashes, one column for each line."""
    lines = np.arange(LINES, dtype=np.uint64)
    places = mixed(words[:, None] ^ (lines + np.uint64(1))[None, :]) & np.uint64(width - 1)
    return places.astype(np.int64) + (lines * np.uint64(width)).astype(np.int64)[None, :]


def estimates(histograms: Ints) -> Ints:
    """The number of different values, for each row of how many registers have rank 0, 1, …"""
    registers = histograms.sum(axis=1)
    total = registers * _tau(1 - histograms[:, -1] / registers)
    for rank in range(histograms.shape[1] - 2, 0, -1):
        total = (total + histograms[:, rank]) * 0.5
    total += registers * _sigma(histograms[:, 0] / registers)
    with np.errstate(divide="ignore"):
        return np.asarray(np.rint(ALPHA * registers * registers / total), dtype=np.int64)


def _sigma(share: Floats) -> Floats:
    power, weight, total = share.copy(), 1.0, share.copy()
    empty = share == 1
    power[empty] = 0.0
    while True:
        power *= power
        before = total
        total = total + power * weight
        weight += weight
        if (before == total).all():
            return np.where(empty, np.inf, total)


def _tau(share: Floats) -> Floats:
    nothing = (share == 0) | (share == 1)
    share = np.where(nothing, 1.0, share)
    weight, total = 1.0, 1 - share
    while True:
        share = np.sqrt(share)
        before = total
        weight *= 0.5
        total = total - (1 - share) * (1 - share) * weight
        if (before == total).all():
            return np.where(nothing, 0.0, total / 3)
