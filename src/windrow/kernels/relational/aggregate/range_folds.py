"""Folds over many ranges of one array at once, for operations that may count an element twice.

Card: sparse table
    requirements  associative, commutative, idempotent operation (minimum, maximum)
    time          O(n · log longest range) array operations, then one per range
    space         one level at a time
    source        Bender and Farach-Colton 2000 (range minimum by overlapping powers of two)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


def fold_ranges(fold: np.ufunc, values: Ints, low: Ints, high: Ints) -> Ints:
    """The fold of values[low:high] for each range; 0 for empty ones.

    >>> values, low, high = np.array([5, 2, 7, 1]), np.array([0, 1, 2, 3]), np.array([1, 3, 2, 4])
    >>> fold_ranges(np.minimum, values, low, high).tolist()
    [5, 2, 0, 1]
    """
    length = np.maximum(high - low, 0)
    level_of = np.frexp(np.maximum(length, 1).astype(np.float64))[1] - 1
    found = np.zeros(len(low), dtype=np.int64)
    table, level = values, 0
    while len(length) and level <= int(level_of.max()):
        mine = np.flatnonzero((level_of == level) & (length > 0))
        found[mine] = fold(table[low[mine]], table[high[mine] - (1 << level)])
        width = 1 << level
        table = fold(table[:-width], table[width:]) if len(table) > width else table
        level += 1
    return found
