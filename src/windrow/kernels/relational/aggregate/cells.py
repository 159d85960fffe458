"""From pieces of rows to cells: in which spans between two events of its group each row is there.

A row covers a range of its group's spans. Each range is cut into few aligned blocks of 2^l spans, as a
segment tree would; the rows of a block are combined once, and each span combines the blocks it lies in.

Card: dyadic cells
    requirements  associative and commutative combination (row order is part of the state where it matters)
    time          O((rows + spans) · log spans) combinations: one grouping for blocks, one for spans
    space         at most 2·log(spans) entries per row
    source        segment trees (Bentley 1977); rows × spans where that is not more
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: rows × spans is done directly if it is no more than this many times the rows and spans
DIRECT = 4


def covered(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, span) for every span in the range [low, high) of each row.

    >>> [found.tolist() for found in covered(np.array([0, 2]), np.array([2, 3]))]
    [[0, 0, 1], [0, 1, 2]]
    """
    counts = np.maximum(high - low, 0)
    row = np.repeat(np.arange(len(low)), counts)
    since = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, low[row] + since


def blocks(low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, level, block) of aligned blocks that make up each range.

    >>> [found.tolist() for found in blocks(np.array([1]), np.array([8]))]
    [[0, 0, 0], [0, 1, 2], [1, 1, 1]]
    """
    rows, levels, found = [], [], []
    row, level = np.arange(len(low)), 0
    inside = low < high
    row, low, high = row[inside], low[inside], high[inside]
    while len(row):
        left, right = (low & 1) == 1, (high & 1) == 1
        for some, block in ((left, low), (right, high - 1)):
            rows.append(row[some])
            levels.append(np.full(int(some.sum()), level))
            found.append(block[some])
        low, high, level = (low + left) >> 1, (high - right) >> 1, level + 1
        inside = low < high
        row, low, high = row[inside], low[inside], high[inside]
    empty = np.zeros(0, dtype=np.int64)
    parts = [np.concatenate(part) if part else empty for part in (rows, levels, found)]
    return parts[0], parts[1], parts[2]
