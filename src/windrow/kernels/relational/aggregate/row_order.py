"""Cells of rows that go in the order in which they came: a span's rows are neighbours then.

Rows are put into that order, so that the rows of a span lie between two places, neither of which goes back
from one span to the next within a group. Cuts are made so that every span reaches to a cut or across one: it
is the rest of what lies before the cut, and the beginning of what lies after it.

    rows     a   b   c | d   e   f | g        cuts after c and f
    span         [-----------)                rest(b) with beginning(e)

Card: spans in order
    requirements  associative combine; no row outlives one of its group that began later
    time          O(1) combinations per row and per span
    space         three cells per row, one per span
    source        two stacks (folklore; Tangwongsan, Hirzel and Schneider 2015), all flips known beforehand
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.columnar.combiners import Moments, Pointwise, choose, take
from windrow.kernels.columnar.scans import segmented
from windrow.kernels.layouts import PANE, Layout

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


def combines(layout: Layout) -> bool:
    """Whether states are numbers throughout, so that combining them is a matter of arrays."""
    return all(isinstance(combiner, Pointwise | Moments) for combiner in layout.combiners)


def order_of(low: Ints, high: Ints) -> Ints | None:
    """The rows that cover any span, as they come and go; None if these are two different orders.

    >>> order_of(np.array([3, 0, 1]), np.array([5, 2, 2])).tolist()
    [1, 2, 0]
    >>> order_of(np.array([0, 1]), np.array([5, 2])) is None
    True
    """
    some = np.flatnonzero(low < high)
    order = some[np.lexsort((high[some], low[some]))]
    ends = high[order]
    return order if bool((ends[1:] >= ends[:-1]).all()) else None


def spans(states: pl.DataFrame, layout: Layout, low: Ints, high: Ints) -> pl.DataFrame:
    """The states of all spans that have rows, by number; those of the rows are in the order of `order_of`."""
    cells = np.arange(int(high[-1]))
    first, stop = np.searchsorted(high, cells, side="right"), np.searchsorted(low, cells, side="right")
    cells = cells[first < stop]
    first, stop = first[cells], stop[cells]
    cuts = _cuts(first, stop)
    edge = cuts[np.searchsorted(cuts, first, side="right")]
    starts = np.append(0, cuts[cuts < len(low)])
    encoded = layout.encode(states)
    found = []
    for combiner, lanes in zip(layout.combiners, encoded.lanes, strict=True):
        rest = take(segmented(combiner, lanes, starts, True), first)
        beginning = take(segmented(combiner, lanes, starts), stop - 1)
        found.append(choose(stop > edge, combiner.combine(rest, beginning), rest))
    return pl.DataFrame([pl.Series(PANE, cells), *encoded.decode(found)])


def _cuts(first: Ints, stop: Ints) -> Ints:
    """Places such that each range [first, stop) ends at one or has one inside, but never two.

    >>> _cuts(np.array([0, 0, 1, 3, 4]), np.array([2, 3, 3, 5, 5])).tolist()
    [2, 5]
    """
    following = np.searchsorted(first, stop).tolist()
    found, place = [], 0
    while place < len(following):
        found.append(place)
        place = following[place]
    return stop[found]
