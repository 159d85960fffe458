"""Scans of many runs at once: the prefixes (or suffixes) of each run by any associative combination.

All short runs take a step together, so there are as many steps as the longest of them has rows, and every row
is combined once. A long run is scanned by itself where its combination is one of numpy's, and otherwise all
long ones by doubling: after l passes, every row holds what the last 2^l rows come to.

Card: segmented scan
    requirements  associative combine; rows of a run are adjacent
    time          one combination per row; in long runs of states that are not single numbers, log(run);
                  array operations: at most `LONG`, plus one per long run or log(run)
    space         one cell per row
    source        Blelloch 1990 (segmented scans), run-parallel instead of tree-parallel; Hillis and Steele
                  1986 (doubling)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from windrow.kernels.columnar.combiners import Combiner, Lanes, Moments, Pointwise, take

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

#: runs of more rows than this are long
LONG = 64


def segmented(combiner: Combiner, lanes: Lanes, starts: npt.NDArray[Any], backwards: bool = False) -> Lanes:
    """The prefixes of each run (or, `backwards`, its suffixes); runs begin at `starts`.

    >>> from windrow.kernels.columnar.combiners import LEAST
    >>> values, starts = (np.array([5, 3, 9, 7, 8]),), np.array([0, 3])
    >>> segmented(LEAST, values, starts)[0].tolist(), segmented(LEAST, values, starts, True)[0].tolist()
    ([5, 3, 3, 7, 7], [3, 3, 9, 7, 8])
    """
    result = tuple(lane.copy() for lane in lanes)
    lengths = np.diff(np.append(starts, len(result[0])))
    long = lengths > LONG if isinstance(combiner, Pointwise | Moments) else np.zeros(len(lengths), dtype=bool)
    if long.any():
        scan = _one_by_one if isinstance(combiner, Pointwise) else _doubled
        scan(combiner, result, starts[long], lengths[long], backwards)
        starts, lengths = starts[~long], lengths[~long]
    _together(combiner, result, starts, lengths, backwards)
    return result


def run_ends(starts: npt.NDArray[Any], length: int) -> npt.NDArray[Any]:
    """The last row of each run."""
    return np.append(starts[1:], length) - 1


def _together(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Row by row, all runs at once."""
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    heads, step = (starts + lengths - 1, -1) if backwards else (starts, 1)
    longest = int(lengths[0]) if len(lengths) else 0
    active = np.searchsorted(-lengths, -np.arange(1, longest), side="left")
    for distance, count in enumerate(active, start=1):
        here = heads[:count] + step * distance
        _combined(combiner, result, here, here - step, backwards)


def _one_by_one(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Run by run, each in one call."""
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        run = slice(start, start + length)
        parts = tuple(lane[run][::-1] if backwards else lane[run] for lane in result)
        for lane, found in zip(result, combiner.scan(parts, axis=0), strict=True):
            lane[run] = found[::-1] if backwards else found


def _doubled(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Each row with the one before it, then with the one two before it, then four, all runs at once."""
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = np.repeat(starts, lengths)
    here = first + (np.repeat(lengths, lengths) - 1 - place if backwards else place)
    distance, step = 1, -1 if backwards else 1
    while len(here := here[place >= distance]):
        place = place[place >= distance]
        _combined(combiner, result, here, here - step * distance, backwards)
        distance *= 2


def _combined(combiner: Combiner, result: Lanes, here: Ints, other: Ints, backwards: bool) -> None:
    before, own = take(result, other), take(result, here)
    pair = (own, before) if backwards else (before, own)
    for lane, value in zip(result, combiner.combine(*pair), strict=True):
        lane[here] = value
