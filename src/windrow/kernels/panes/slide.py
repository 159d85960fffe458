"""Slides: from states of panes to states of windows, with O(1) combinations per pane and group.

Panes are cut into blocks as long as a window. A window then lies in at most two blocks: it is the rest of
one, from its first pane on, and the beginning of the next. All rests (suffixes) and all beginnings (prefixes)
come from one pass over the panes each, so the cost does not depend on how many panes a window has. Where the
combination has an exact inverse, a window is the difference of two running totals.

    block        |  a   b   c  |  d   e   f  |
    window           [---------------)            suffix(b) with prefix(d)

Both forms below compute this; the one is a matrix of panes and groups, the other holds only what exists.

Card: dense blocks
    requirements  associative combine with neutral element; every group in one matrix column
    time          O(1) combinations per cell and window: panes × groups + windows × groups
    space         3 cells per pane and group; bounded by `CELLS` per unit
    source        van Herk 1992, Gil and Werman 1993 (block prefixes and suffixes); two stacks as in
                  Tangwongsan, Hirzel and Schneider 2015

Card: sparse runs
    requirements  associative combine with neutral element; rows sorted by group and pane
    time          O(1) combinations per row and per window that is not empty
    space         3 cells per row; windows are made in units of at most `CELLS`
    source        the same on compacted rows; which windows a row is first in: WID (Li et al. 2005), 5
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.columnar.combiners import Combiner, Lanes, choose, segmented, subtract, take
from windrow.kernels.columnar.numbering import Numbered, cut_lanes, rows_of_ids

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    from windrow.kernels.panes.cuts import Cut

    Ints = npt.NDArray[np.int64]
    Range = tuple[int, int]

#: how many cells (windows × groups, panes × groups) are computed at a time
CELLS = 1 << 20
#: the matrix form is chosen if at least one in this many cells has rows
SPARSE = 12


@dataclass(frozen=True)
class SlideShape:
    """`count` windows of `length` panes, each `step` panes after the last one; the first begins at pane 0."""

    length: int
    step: int
    count: int

    @property
    def panes(self) -> int:
        return (self.count - 1) * self.step + self.length


Windows = tuple["Ints", "Ints", list[Lanes]]


@dataclass(frozen=True)
class PaneWindows:
    """The windows of a table of panes, computed block by block."""

    table: Numbered
    cut: Cut

    def block(self, groups: Range, windows: Range) -> pl.DataFrame:
        """States of the windows from one up to the other, of a range of groups; no row for empty ones."""
        first, stop = self.table.ids_of(*groups)
        rows = rows_of_ids(self.table, first, stop)
        start = self.cut.first_pane(windows[0])
        panes = self.table.panes[rows] - start
        shape = SlideShape(self.cut.per_window, self.cut.per_slide, windows[1] - windows[0])
        inside = (panes >= 0) & (panes < shape.panes)
        ids, lanes = self.table.ids[rows][inside] - first, cut_lanes(self.table.encoded.lanes, rows)
        width = stop - first
        form = dense if len(ids) * SPARSE >= shape.panes * width else sparse
        w, found, states = form(
            ids, panes[inside], cut_lanes(lanes, inside), self.table.layout.combiners, shape, width
        )
        return self.table.framed(w + windows[0], found + first, states)


def units(groups: int, windows: Range, cut: Cut) -> Iterator[tuple[Range, Range]]:
    """(groups, windows) in blocks of bounded size; blocks of windows are at least one window long in time."""
    first, stop = windows
    overlap = 1 if cut.range is None else -(-cut.per_window // cut.per_slide)
    longest = min(stop - first, max(overlap, CELLS // max(groups, 1)))
    width = max(1, CELLS // max(1, (longest + overlap) * cut.per_slide))
    for group in range(0, groups, width):
        for window in range(first, stop, longest):
            yield (group, min(group + width, groups)), (window, min(window + longest, stop))


def dense(
    ids: Ints,
    panes: Ints,
    lanes: Sequence[Lanes],
    combiners: Sequence[Combiner],
    shape: SlideShape,
    width: int,
) -> Windows:
    """Windows by blocks of a matrix, one row per pane and one column per group.

    >>> from windrow.kernels.columnar.combiners import LEAST, TOTAL
    >>> states = [(np.array([1, 1, 1]),), (np.array([5, 3, 9]),)]
    >>> at = np.zeros(3, dtype=np.int64), np.array([0, 1, 3])
    >>> w, _, ((count,), (least,)) = dense(*at, states, [TOTAL, LEAST], SlideShape(2, 1, 4), 1)
    >>> w.tolist(), count.tolist(), least.tolist()
    ([0, 1, 2, 3], [2, 1, 1, 1], [3, 3, 9, 9])
    """
    found: list[Lanes] = []
    for combiner, group in zip(combiners, lanes, strict=True):
        cells = combiner.identity((-(-shape.panes // shape.length) * shape.length, width))
        for cell, lane in zip(cells, group, strict=True):
            cell[panes, ids] = lane
        found.append(_difference(cells, shape) if combiner.invertible else _blocks(combiner, cells, shape))
    w, column = np.nonzero(found[0][0] > 0)
    return w, column, [take(group, (w, column)) for group in found]


def _difference(cells: Lanes, shape: SlideShape) -> Lanes:
    begins = np.arange(shape.count) * shape.step
    totals = tuple(np.vstack([np.zeros_like(cell[:1]), np.cumsum(cell, axis=0)]) for cell in cells)
    return subtract(take(totals, begins + shape.length), take(totals, begins))


def _blocks(combiner: Combiner, cells: Lanes, shape: SlideShape) -> Lanes:
    begins = np.arange(shape.count) * shape.step
    blocks = tuple(cell.reshape(-1, shape.length, cell.shape[1]) for cell in cells)
    prefix = combiner.scan(blocks, axis=1)
    suffix = tuple(lane[:, ::-1] for lane in combiner.scan(tuple(b[:, ::-1] for b in blocks), axis=1))
    flat = [tuple(lane.reshape(cells[0].shape) for lane in lanes) for lanes in (suffix, prefix)]
    rest, beginning = take(flat[0], begins), take(flat[1], begins + shape.length - 1)
    whole = (begins % shape.length == 0)[:, np.newaxis]
    return choose(whole, rest, combiner.combine(rest, beginning))


def sparse(
    ids: Ints,
    panes: Ints,
    lanes: Sequence[Lanes],
    combiners: Sequence[Combiner],
    shape: SlideShape,
    width: int,
) -> Windows:
    """Windows by runs of the rows there are, sorted by id and pane; a run is what one id has in one block."""
    w, first = _cells(ids, panes, shape)
    place = ids * (shape.panes + 1) + panes
    ends = ids[first] * (shape.panes + 1) + w * shape.step + shape.length
    last = np.searchsorted(place, ends) - 1
    block = panes // shape.length
    runs = np.flatnonzero(np.diff(ids, prepend=-1) | np.diff(block, prepend=-1))
    ours = w * shape.step // shape.length
    found: list[Lanes] = []
    for combiner, group in zip(combiners, lanes, strict=True):
        if combiner.invertible:
            totals = tuple(np.concatenate([[0], np.cumsum(lane)]) for lane in group)
            found.append(subtract(take(totals, last + 1), take(totals, first)))
            continue
        nothing = combiner.identity((1,))
        rest = choose(block[first] == ours, take(segmented(combiner, group, runs, True), first), nothing)
        beginning = choose(block[last] > ours, take(segmented(combiner, group, runs), last), nothing)
        found.append(combiner.combine(rest, beginning))
    return w, ids[first], found


def _cells(ids: Ints, panes: Ints, shape: SlideShape) -> tuple[Ints, Ints]:
    """Every window that is not empty, and the row that comes first in it."""
    opens = np.maximum(-((shape.length - 1 - panes) // shape.step), 0)
    closes = np.minimum(panes // shape.step, shape.count - 1)
    again = np.flatnonzero(ids[1:] == ids[:-1])
    opens[again + 1] = np.maximum(opens[again + 1], closes[again] + 1)
    counts = np.maximum(closes - opens + 1, 0)
    first = np.repeat(np.arange(len(ids)), counts)
    since = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return opens[first] + since, first
