"""Scans of many short runs at once: the prefixes (or suffixes) of each run by any associative combination.

All runs take a step together, so there are as many steps as the longest run has rows, and every row is
combined once.

Card: segmented scan
    requirements  associative combine; rows of a run are adjacent
    time          one combination per row, as many array operations as the longest run has rows
    space         one cell per row
    source        Blelloch 1990 (segmented scans), run-parallel instead of tree-parallel
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.kernels.combiners import Combiner, Lanes, take

if TYPE_CHECKING:
    import numpy.typing as npt


def segmented(combiner: Combiner, lanes: Lanes, starts: npt.NDArray[Any], backwards: bool = False) -> Lanes:
    """The prefixes of each run (or, `backwards`, its suffixes); runs begin at `starts`.

    >>> from windrow.kernels.combiners import LEAST
    >>> values, starts = (np.array([5, 3, 9, 7, 8]),), np.array([0, 3])
    >>> segmented(LEAST, values, starts)[0].tolist(), segmented(LEAST, values, starts, True)[0].tolist()
    ([5, 3, 3, 7, 7], [3, 3, 9, 7, 8])
    """
    result = tuple(lane.copy() for lane in lanes)
    lengths = np.diff(np.append(starts, len(result[0])))
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    heads, step = (starts + lengths - 1, -1) if backwards else (starts, 1)
    longest = int(lengths[0]) if len(lengths) else 0
    active = np.searchsorted(-lengths, -np.arange(1, longest), side="left")
    for distance, count in enumerate(active, start=1):
        here = heads[:count] + step * distance
        before, own = take(result, here - step), take(result, here)
        pair = (own, before) if backwards else (before, own)
        for lane, value in zip(result, combiner.combine(*pair), strict=True):
            lane[here] = value
    return result


def run_ends(starts: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The last row of each run."""
    return np.append(starts[1:], length) - 1
