"""Value counters: counts of values, cells of sketches and lists of frequent values, kept once for several
queries.

They belong to a shared state as its pane grids do, one for each argument and condition, but are tables and no
matrices: how many values a group has is not known, and most are in few intervals.

    pane | k0 … (the grouping) | v0 … (the value) | rows.0 …

Of an interval that is over, a value counter of FREQUENT keeps the list of its most frequent values. Its
intervals are the sub-windows of the queries, so only queries with the same ones share it, whatever their
RANGE is.

Card: shared counts
    requirements  cells whose states can be combined
    time          the distinct values of each window, where sums are kept;
                  else once per epoch the cells of the intervals that windows need, numbered, then for each
                  query as for windows of its own (`windrow.kernels.panes.pane_tables.sparse`)
    space         one state per live interval, group and value, for all queries together; of FREQUENT at most
                  k + 1 counts per interval and group
    source        frequency counts as synopses: Golab 2006, 8.3.1, and Algorithm 6; panes of holistic
                  aggregates: Li et al. 2005

Queries of one length have one sum of a value counter, which goes with the clock: an interval that closes is
added, one that leaves is subtracted. As with a state of its own (`windrow.kernels.panes.subtract_on_evict`),
no sum is kept where values are seen to recur hardly ever, and many windows at once are answered from the
intervals.

Card: shared sums
    requirements  cells that are counts which can be subtracted
    time          per length: cells of the intervals that close and that leave, and the distinct values
    space         for each length one state per group and value
    source        No Pane, No Gain (Li et al. 2005), 3.2.2; Golab's thesis, Algorithm 6 (global counters)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.aggregates import partials, value_tables
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.numbering import cut_lanes, number, with_groups
from windrow.kernels.panes import pane_tables, subtract_on_evict
from windrow.kernels.shared.shared_state import Moved, PaneGrid, RowValues, SharedEpoch, WindowRequest, lowest
from windrow.kernels.state import PANE, Chunk, State, TableLayout, chunked, gathered
from windrow.windows.domain import INFINITY, Ints

#: up to which interval a sum goes
END = "end."


@dataclass
class Sums:
    """The sums of a value counter while an epoch moves them, made of its intervals that are over."""

    value_counter: ValueCounter
    moved: Moved
    before: State
    chunks: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)
    meta: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.layout = self.value_counter.layout(len(self.moved.keys))

    def move(self, length: int, ends: Collection[int], clock: PaneClock) -> dict[int, pl.DataFrame] | None:
        """The sums over windows of so many intervals, by their ends; None if these are to be taken from the
        intervals. Then the sum goes on to where the clock is."""
        if not self.value_counter.cells.subtracts or clock.now == -INFINITY:
            return None
        name, known = f"{self.value_counter.name}/{length}", self.before.meta
        self.meta |= {key: known[key] for key in (what + name for what in _SEEN) if key in known}
        now = None if clock.now == INFINITY else self.value_counter.index(int(clock.now))
        rests = subtract_on_evict.is_buffered(known, name) and (
            now is None or known[subtract_on_evict.LOOK + name] > now
        )
        total = next((each.frame for each in self.before.of(name + subtract_on_evict.TOTAL)), pl.DataFrame())
        end = known.get(END + name)
        if end is not None and min(ends, default=end) < end:
            end = None
        found: dict[int, pl.DataFrame] = {}
        if not rests and len(ends) <= subtract_on_evict.FEW:
            for each in sorted(ends):
                total, end = self._at(total, end, each, length), each
                found[each] = total
        if now is not None and not rests:
            total = self._at(total, end, now, length)
            self._look(name, total.height, now, length)
            if not subtract_on_evict.is_buffered(self.meta, name):
                self.chunks[name + subtract_on_evict.TOTAL] = chunked([total])
                self.meta[END + name] = now
        return None if rests or len(ends) > subtract_on_evict.FEW else found

    def _at(self, total: pl.DataFrame, end: int | None, to: int, length: int) -> pl.DataFrame:
        """A sum moved on; afresh where nothing of it stays."""
        if end is None or to - length >= end:
            return subtract_on_evict.summed(self.moved.frames(to - length, to), self.layout)
        more = self.moved.frames(end, to)
        more += [
            subtract_on_evict.negative(each, self.layout)
            for each in self.moved.frames(end - length, to - length)
        ]
        if not more:
            return total
        frames = [total, *more] if total.height else more
        return subtract_on_evict.summed(frames, self.layout).filter(pl.col("rows.0") != 0)

    def _look(self, name: str, distinct: int, now: int, length: int) -> None:
        """How many values a window has against the cells of its intervals, once in a window's time. The first
        windows of a stream have few intervals, and tell little."""
        if self.meta.get(subtract_on_evict.LOOK + name, now) > now or length < 2:
            return
        closed = (chunk for chunk in self.moved.closed if chunk.last >= now - length)
        panes = [chunk.table.column(PANE).to_numpy() for chunk in closed]
        mine = [each[(each >= now - length) & (each < now)] for each in panes]
        known = np.concatenate([np.zeros(0, dtype=np.int64), *mine])
        if len(known) and 2 * int(known.max() - known.min()) >= length:
            self.meta |= {
                subtract_on_evict.LOOK + name: now + length,
                subtract_on_evict.DISTINCT + name: distinct,
                subtract_on_evict.CELLS + name: len(known),
            }


#: what is remembered of a sum that is not kept
_SEEN = (subtract_on_evict.LOOK, subtract_on_evict.DISTINCT, subtract_on_evict.CELLS)


def seen_of(meta: Mapping[str, int], value_counter: str, length: int, table: str) -> dict[str, int]:
    """What was seen of the values of a value counter over windows of a length, under the name of a query's
    table."""
    name = f"{value_counter}/{length}"
    return {what + table: meta[what + name] for what in _SEEN if what + name in meta}


@dataclass(frozen=True)
class ValueCounter(PaneGrid):
    """A pane grid without entries: cells by interval and group, of the rows for which `where` holds."""

    label: str
    cells: value_tables.Cells
    args: tuple[Expression, ...]
    where: Expression
    #: the lengths of windows that are asked for
    spans: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Its grid, and itself."""
        return f"{super().name} {self.label}"

    def layout(self, keys: int) -> TableLayout:
        return value_tables.layout_of(self.cells, [f"k{place}" for place in range(keys)], len(self.args))

    def fitted(self, frame: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
        """Tables of all times are alike."""
        return frame

    def parts(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """Several, so that few intervals are opened to find those that leave."""
        return [part for _, part in frame.group_by(pl.col(PANE) // -(-self.length // 8), maintain_order=True)]

    def lift(self, known: Sequence[pl.Series], rows: RowValues) -> pl.DataFrame:
        """Rows as cells by interval and group, which are `known`."""
        args = tuple(map(rows.of, self.args))
        lifted = partials.LiftedRows(args, rows.where(self.where), pl.DataFrame(), sub_windows=known[0])
        return value_tables.merged_cells(self.cells, self.layout(len(known) - 1), known, lifted)


class NumberedValues:
    """The cells of a value counter in an epoch, numbered once for all queries that ask."""

    def __init__(
        self, value_counter: ValueCounter, table: pl.DataFrame, groups: pl.DataFrame, keys: Sequence[str]
    ) -> None:
        self.value_counter = value_counter
        self.table = number(table, value_counter.layout(len(keys)), groups, keys)

    def values(self, groups: tuple[int, int]) -> int:
        """How many values some groups have, each with its group."""
        first, stop, _ = self.table.of_groups(groups)
        return stop - first

    def windows(self, asker: WindowRequest, ends: Ints, groups: tuple[int, int]) -> pl.DataFrame:
        """The cells of the windows with these ends: the place of the end (`w`), group, value, states."""
        table, width = self.table, self.value_counter.width
        first, stop, rows = table.of_groups(groups)
        ids, panes = table.ids[rows] - first, table.panes[rows]
        lanes = cut_lanes(table.encoded.lanes, rows)
        found = [table.framed(ends[:0], ids[:0], cut_lanes(lanes, slice(0, 0)))]
        for run in _runs(ends, max(asker.range, asker.slide)):
            count = int(run[-1] - run[0]) // asker.slide + 1
            shape = pane_tables.SlideShape(asker.range // width, asker.slide // width, count)
            places = panes - (self.value_counter.index(int(run[0])) - shape.length)
            inside = (places >= 0) & (places < shape.panes)
            mine = ids[inside], places[inside], cut_lanes(lanes, inside)
            w, id_, states = pane_tables.sparse(*mine, table.layout.combiners, shape, stop - first)
            at = run[0] + w * asker.slide
            asked = np.isin(at, run)
            place = np.searchsorted(ends, at[asked])
            found.append(table.framed(place, id_[asked] + first, cut_lanes(states, asked)))
        return pl.concat(found)


class Summed:
    """The same where windows are known by their sums, each under its end."""

    def __init__(
        self,
        value_counter: ValueCounter,
        sums: Mapping[int, pl.DataFrame],
        groups: pl.DataFrame,
        keys: Sequence[str],
    ) -> None:
        self.value_counter = value_counter
        layout = value_counter.layout(len(keys))
        self._values = [name for name in layout.keys if name not in keys]
        self._sums = {end: with_groups(each, groups, keys) for end, each in sums.items() if each.height}

    def values(self, groups: tuple[int, int]) -> int:
        """How many values some groups have at most, each with its group."""
        return max((each.height for each in self._sums.values()), default=0)

    def windows(self, asker: WindowRequest, ends: Ints, groups: tuple[int, int]) -> pl.DataFrame | None:
        """The cells of the windows with these ends, as above; None if there are none."""
        found = []
        for place, end in enumerate(self.value_counter.panes_of(ends).tolist()):
            if end in self._sums:
                mine = self._sums[end].filter((pl.col("g") >= groups[0]) & (pl.col("g") < groups[1]))
                w = pl.lit(place, pl.Int64).alias("w")
                found.append(mine.select(w, "g", *self._values, pl.exclude("g", PANE, *self._values)))
        return pl.concat(found) if found else None


def _runs(ends: Ints, apart: int) -> Iterator[Ints]:
    """Ends in runs, with no more than so much between two of one run.

    >>> [run.tolist() for run in _runs(np.array([2, 4, 6, 90, 92]), 10)]
    [[2, 4, 6], [90, 92]]
    """
    yield from (run for run in np.split(ends, np.flatnonzero(np.diff(ends) > apart) + 1) if len(run))


#: a value counter, and the RANGE of the windows that it is asked for
Key = tuple[str, int]


@dataclass
class CountedValues:
    """What an epoch makes of the value counters: what is kept, and cells of windows, by sums or from
    intervals."""

    chunks: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)
    meta: dict[str, int] = field(default_factory=dict)
    sums: dict[Key, tuple[ValueCounter, dict[int, pl.DataFrame]]] = field(default_factory=dict)
    intervals: dict[str, tuple[ValueCounter, pl.DataFrame]] = field(default_factory=dict)
    from_intervals: set[Key] = field(default_factory=set)

    @property
    def tables(self) -> list[pl.DataFrame]:
        """All tables, for the groups that are in them."""
        sums = [each for _, frames in self.sums.values() for each in frames.values() if each.height]
        return [*sums, *(table for _, table in self.intervals.values())]

    def numbered(self, groups: pl.DataFrame, keys: Sequence[str]) -> dict[Key, Summed | NumberedValues]:
        """Where queries find their cells, with the groups by their numbers."""
        whole = {label: NumberedValues(*found, groups, keys) for label, found in self.intervals.items()}
        found: dict[Key, Summed | NumberedValues] = {
            (label, length): whole[label] for label, length in self.from_intervals if label in whole
        }
        return found | {key: Summed(*each, groups, keys) for key, each in self.sums.items()}


def counted_in(
    turn: SharedEpoch,
    state: State,
    delta: Mapping[str, pl.DataFrame],
    due: Sequence[WindowRequest],
    windows: Mapping[str, Ints],
) -> CountedValues:
    """All value counters of a shared state moved on."""
    found, keys = CountedValues(), tuple(turn.shared_state.key_types)
    for value_counter in turn.shared_state.value_counters:
        label = value_counter.label
        moved = Moved.of(value_counter, keys, state, delta.get(value_counter.name), turn.clock)
        asking = [asker for asker in due if label in dict(asker.value_counters).values()]
        sums = Sums(value_counter, moved, state)
        for span in value_counter.spans:
            length = span * value_counter.width
            same = [asker for asker in asking if asker.range == length and asker.query in windows]
            ends = {end for each in same for end in value_counter.panes_of(windows[each.query]).tolist()}
            frames = sums.move(span, ends, turn.clock)
            if same and frames is not None:
                found.sums[label, length] = value_counter, frames
            elif same:
                found.from_intervals.add((label, length))
        found.chunks |= moved.kept(turn.clock) | sums.chunks
        found.meta |= sums.meta
        if label in (each for each, _ in found.from_intervals):
            table = gathered(moved.frames(lowest(asking, value_counter, turn.clock)))
            found.intervals |= {label: (value_counter, table)} if table is not None else {}
    return found
