"""Pane tables: rows become one state per pane and group; tables of states merge into one.

>>> from windrow.kernels.state import TableLayout
>>> layout = TableLayout(("k0",))
>>> one = pl.DataFrame({"pane": [0, 1], "k0": ["a", "a"], "rows.0": [2, 1]})
>>> two = pl.DataFrame({"pane": [1], "k0": ["a"], "rows.0": [5]})
>>> merge_panes([one, two], layout).sort("pane").rows()
[(0, 'a', 2), (1, 'a', 6)]

From states of panes to states of windows it takes O(1) combinations per pane and group. For that, panes are
cut into blocks as long as a window. A window then lies in at most two blocks: it is the rest of one, from its
first pane on, and the beginning of the next. All rests (suffixes) and all beginnings (prefixes) come from one
pass over the panes each, so the cost does not depend on how many panes a window has. Where the combination
has an exact inverse, a window is the difference of two running totals.

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

Of states of windows the rows of the query are made, block by block: some windows of some groups, from every
table of states. They are lowered, filtered by HAVING and projected, and leave as an Arrow table with `at`,
the end of the window, before the query's columns.

Windows may be left out that nobody asks for any more; what follows them is the same as ever. A long run of
them is left out before anything is done for it. A short one is computed with its neighbours, since many small
blocks cost more than a few windows too many, and leaves before it is turned into answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.kernels.aggregates.lowering import WINDOW, lower, of_counts, of_nothing
from windrow.kernels.aggregates.measures import GROUPS, Measure, Measures
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import picked, polars_type
from windrow.kernels.columnar.combiners import (
    Combiner,
    Lanes,
    choose,
    put,
    running,
    segmented,
    spread_out,
    subtract,
    take,
)
from windrow.kernels.columnar.numbering import Numbered, cut_lanes, number_all
from windrow.kernels.panes.query import Cut, SlidingQuery, run_stages
from windrow.kernels.state import PANE, Chunk, Delta, State, TableLayout, chunked, gathered, joined, split_at
from windrow.windows.domain import Ints

Range = tuple[int, int]
#: kinds of chunks: panes that get more rows, and panes that are over
OPEN, PANES = ".open", ".panes"


@dataclass
class Changing:
    """What kernels that move their panes from kind to kind have in common."""

    answers: PaneAnswers
    chunks: dict[str, tuple[Chunk, ...]]
    meta: dict[str, int]

    def __post_init__(self) -> None:
        self.cut = self.answers.query.cut
        self.layouts = self.answers.measures.layouts

    @property
    def state(self) -> State:
        """What is to be kept."""
        return State({name: chunks for name, chunks in self.chunks.items() if chunks}, self.meta)

    def of(self, table: str, *kinds: str) -> tuple[Chunk, ...]:
        """The chunks of some kinds, such as open panes."""
        return tuple(chunk for kind in kinds for chunk in self.chunks.get(table + kind, ()))

    def frames(self, table: str, *kinds: str) -> list[pl.DataFrame]:
        """What is in them."""
        return [chunk.frame for chunk in self.of(table, *kinds)]

    def merged(self, table: str, *kinds: str) -> pl.DataFrame:
        """The same, each pane and group once."""
        return merge_panes(self.frames(table, *kinds), self.layouts[table])

    def add(self, table: str, kind: str, frames: Iterable[pl.DataFrame]) -> None:
        """More of a kind."""
        self.chunks[table + kind] = (*self.of(table, kind), *chunked(frames))

    def take_before(self, table: str, kind: str, pane: int) -> list[pl.DataFrame]:
        """What is of a kind before a pane, and of that kind no more."""
        found, rest = split_at(self.of(table, kind), pane)
        self.chunks[table + kind] = tuple(rest)
        return found

    def close(self, table: str, pane: int) -> pl.DataFrame:
        """The open panes before one, which are over now."""
        layout = self.layouts[table]
        return layout.closed(merge_panes(self.take_before(table, OPEN, pane), layout))


def merge_panes(tables: Sequence[pl.DataFrame], layout: TableLayout) -> pl.DataFrame:
    """One row for each pane and group of all tables, each of which has that; of none, an empty frame.

    Only panes that occur in several tables are combined: most occur in one.
    """
    rows = gathered(tables)
    if rows is None:
        return pl.DataFrame()
    panes = pl.concat([table.select(PANE).unique() for table in tables if table.height])
    several = panes.group_by(PANE).len().filter(pl.col("len") > 1)[PANE]
    if several.is_empty():
        return rows
    shared = rows[PANE].is_in(several.implode())
    return pl.concat([rows.filter(~shared), layout.merge(rows.filter(shared), [PANE, *layout.keys])])


def merge_tables(
    found: Mapping[str, Sequence[pl.DataFrame]], layouts: Mapping[str, TableLayout]
) -> dict[str, pl.DataFrame]:
    """The same for several tables; those without rows are left out."""
    merged = {name: merge_panes(tables, layouts[name]) for name, tables in found.items()}
    return {name: frame for name, frame in merged.items() if frame.height}


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
        first, stop, rows = self.table.of_groups(groups)
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
    begins = np.arange(shape.count) * shape.step
    found: list[Lanes] = []
    for combiner, group in zip(combiners, lanes, strict=True):
        cells = combiner.identity((-(-shape.panes // shape.length) * shape.length, width))
        put(cells, (panes, ids), group)
        if combiner.invertible:
            totals = running(cells)
            found.append(subtract(take(totals, begins + shape.length), take(totals, begins)))
        else:
            found.append(_blocks(combiner, cells, shape.length, begins))
    w, column = np.nonzero(found[0][0] > 0)
    return w, column, [take(group, (w, column)) for group in found]


def _blocks(combiner: Combiner, cells: Lanes, length: int, begins: Ints) -> Lanes:
    """The rest of one block with the beginning of the next."""
    blocks = tuple(cell.reshape(-1, length, cell.shape[1]) for cell in cells)
    prefix = combiner.scan(blocks, axis=1)
    suffix = tuple(lane[:, ::-1] for lane in combiner.scan(tuple(b[:, ::-1] for b in blocks), axis=1))
    flat = [tuple(lane.reshape(cells[0].shape) for lane in lanes) for lanes in (suffix, prefix)]
    rest, beginning = take(flat[0], begins), take(flat[1], begins + length - 1)
    whole = (begins % length == 0)[:, np.newaxis]
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
            totals = running(group)
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
    first, since = spread_out(counts)
    return opens[first] + since, first


#: windows that are not answered are left out if so many cells, windows × groups, lie side by side
WORTH = 1 << 12


def neighbours(ranges: Iterable[Range], groups: int) -> list[Range]:
    """Ranges of windows in order, those with a short stretch between them as one: what a range costs however
    few windows it has is more than what empty windows do.

    >>> neighbours([(0, 2), (5, 8), (5000, 5001)], groups=1)
    [(0, 8), (5000, 5001)]
    >>> neighbours([(0, 2), (5, 8)], groups=WORTH)
    [(0, 2), (5, 8)]
    """
    found: list[Range] = []
    for first, stop in ranges:
        if found and (first - found[-1][1]) * groups < WORTH:
            found[-1] = found[-1][0], stop
        else:
            found.append((first, stop))
    return found


class WindowStates(Protocol):
    """Where the states of windows come from."""

    def block(self, groups: Range, windows: Range) -> pl.DataFrame:
        """(w, g, perhaps a value, partials) of a range of groups and of windows; empty ones are left out."""


@dataclass(frozen=True)
class Kernel(ABC):
    """A stateful operator as a pure function."""

    answers: PaneAnswers

    @abstractmethod
    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        """The next state, and the answers of the windows whose ends the clock passes."""

    def united(self, states: Sequence[State]) -> State:
        """One state of several of the same clock that have no group in common."""
        return State(joined(states))

    def without(self, drops: Callable[[int], bool]) -> Kernel:
        """The same kernel with the same state, which does not answer windows that end where `drops` says."""
        return replace(self, answers=PaneAnswers(self.answers.query, self.answers.measures, drops))


class PaneAnswers:
    """The answer rows of a query from the states of its windows.

    `drops` says which windows are left out, by where they end.
    """

    def __init__(
        self, query: SlidingQuery, measures: Measures, drops: Callable[[int], bool] | None = None
    ) -> None:
        self.query = query
        self.measures = measures
        self.drops = drops

    def is_left_out(self, w: int) -> bool:
        """Whether a window has no answer, whatever is in it."""
        return self.drops is not None and self.drops(int(self.query.cut.ends(w)))

    def of_panes(
        self, tables: Mapping[str, pl.DataFrame], ranges: Iterable[Range], clock: PaneClock
    ) -> Iterator[pa.Table]:
        """The answers of ranges of windows from all their panes."""
        groups, numbered = number_all(tables, self.measures.layouts, self.measures.keys)
        windows = {name: PaneWindows(table, self.query.cut) for name, table in numbered.items()}
        parts = neighbours(ranges, groups.height)
        return chain.from_iterable(self.blocks(groups, windows, part, clock) for part in parts)

    def blocks(
        self,
        groups: pl.DataFrame,
        states: Mapping[str, WindowStates],
        windows: Range,
        clock: PaneClock | None = None,
    ) -> Iterator[pa.Table]:
        """The answers of the windows from one up to the other, in tables of bounded size; by a clock that is
        each group's own, of each group only what it makes due."""
        if GROUPS not in states or windows[0] >= windows[1]:
            return
        spans = clock.windows(groups, self.query.cut) if clock is not None and clock.key else None
        gone = {w for w in range(*windows) if self.is_left_out(w)} if self.drops is not None else set()
        wanted = ((w, w + 1) for w in range(*windows) if w not in gone) if gone else [windows]
        for part in neighbours(wanted, groups.height):
            for group_range, window_range in units(groups.height, part, self.query.cut):
                blocks = {name: table.block(group_range, window_range) for name, table in states.items()}
                frames = {name: _asked(frame, spans, gone) for name, frame in blocks.items()}
                if frames[GROUPS].height:
                    yield self.table(groups, frames)

    def table(self, groups: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pa.Table:
        """One block of answers."""
        cut = self.query.cut
        ends = cut.ends(frames[GROUPS]["w"])
        start = pl.Series([cut.start], dtype=pl.Int64).new_from_index(0, len(ends))
        starts = start if cut.range is None else ends - cut.range
        hidden = [ends.alias("#at"), starts.alias("#window_start"), ends.alias("#window_end")]
        return self.rows(groups, frames, hidden).drop("#window_start", "#window_end").to_arrow()

    def rows(
        self, groups: pl.DataFrame, frames: Mapping[str, pl.DataFrame], hidden: Sequence[pl.Series]
    ) -> pl.DataFrame:
        """Answers with the hidden columns of their windows first; those that HAVING refuses are left out."""
        states = frames[GROUPS]
        keys = picked(groups.drop("g"), states["g"]) if self.measures.keys else pl.DataFrame()
        columns = [
            keys[name].cast(polars_type(key.type)).alias(column)
            for name, (column, key) in zip(self.measures.keys, self.query.aggregate.keys, strict=True)
        ]
        columns += [
            self._value(measure, states, frames.get(measure.table)) for measure in self.measures.measures
        ]
        _, _, above = self.query.stages
        rows = run_stages(above, pl.DataFrame([*columns, *hidden]))
        selected = [rows[field.name].cast(polars_type(field.type)) for field in self.query.emit.schema]
        return pl.DataFrame([*(rows[each.name] for each in hidden), *selected])

    def _value(self, measure: Measure, states: pl.DataFrame, counts: pl.DataFrame | None) -> pl.Series:
        dtype = polars_type(measure.kind)
        if measure.partial is not None:
            return lower(measure.aggregate, measure.partial, states).cast(dtype).alias(measure.name)
        value = pl.Series([None], dtype=dtype).new_from_index(0, states.height)
        known = pl.Series([False]).new_from_index(0, states.height)
        if counts is not None and counts.height:
            found = of_counts(measure.aggregate, counts).with_columns(pl.lit(True).alias("known"))
            joined = states.select(WINDOW).join(found, on=WINDOW, how="left", maintain_order="left")
            value, known = joined["value"].cast(dtype), joined["known"].fill_null(False)
        if not known.all():
            nothing = pl.Series([of_nothing(measure.aggregate)], dtype=dtype)
            value = value.zip_with(known, nothing.new_from_index(0, states.height))
        return value.alias(measure.name)


def _asked(states: pl.DataFrame, spans: pl.DataFrame | None, gone: set[int]) -> pl.DataFrame:
    """Those of windows that are answered."""
    if spans is not None and states.height:
        own = picked(spans, states["g"])
        states = states.filter((states["w"] >= own["first"]) & (states["w"] <= own["last"]))
    return states.filter(~states["w"].is_in(list(gone))) if gone else states
