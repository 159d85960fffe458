"""The persisted kernel: two stacks per group, so that an epoch reads only what it answers.

Panes are cut into blocks as long as a window. Of the block before the current one the *back* holds each
group's suffix from the next window's first pane on; of the current block the *front* holds each group's
running prefix. A window is the back with the front. When a pane of the old block leaves the window, its
`steps` row says what the group's suffix is from then on. When the current block is full, the stacks flip:
its panes, written as they closed and not read since, become the new back and its steps.

    panes        |  a   b   c  |  d   e   f  |
    window           [---------------)            back: suffix(b); front: d
    steps         (a: suffix b) (b: suffix c) (c: nothing)

Flipping costs as much as reading the block, and some more for every call. Where an epoch answers many windows
after the block is full, it does not flip: these windows are made of the panes themselves, all at once, and
the panes that later windows need are left behind as a block that is full. The next epoch then flips it, or
leaps again. So the state is the same whichever way epochs go, and each goes the way that costs it less.

Card: persisted two stacks
    requirements  associative combine with neutral element; one clock for all groups
    time          per epoch: rows of the panes that close and that leave, plus the answers; a flip reads one
                  block, once in a block, hence O(1) amortised per row, whatever RANGE/SLIDE; a leap reads the
                  panes of its windows once, which are at most `LEAP` + 1 times those that close
    space         three states per pane and group of a block, two per group
    source        two stacks (folklore; Tangwongsan, Hirzel and Schneider 2015), the pop side precomputed as
                  rows in order of expiry, so that it is read as a file is

Of a table that is sorted by id and pane, the rows are first the versions of the back (a row stands from the
windows that begin after its pane), then those of the front, from pane `base` on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.kernels.aggregates.measures import GROUPS
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar import columns, combiners, numbering
from windrow.kernels.panes import live_panes, pane_tables, query
from windrow.kernels.state import PANE, Delta, State, TableLayout, chunked, gathered, joined, split_at
from windrow.windows.domain import INFINITY, Ints


class StackWindows:
    """Windows of one table, each the back with the front."""

    def __init__(self, table: numbering.Numbered, cut: query.Cut, base: int) -> None:
        self.table, self.cut, self.base = table, cut, base
        front = table.panes >= base
        same = np.diff(table.ids, prepend=-1) == 0
        runs = np.flatnonzero(~(same & front & np.append(False, front[:-1])))
        self.lanes = table.scanned(runs)

    def block(self, groups: pane_tables.Range, windows: pane_tables.Range) -> pl.DataFrame:
        table = self.table
        first, stop, rows = table.of_groups(groups)
        ids, panes = table.ids[rows] - first, table.panes[rows]
        if not len(ids):
            return table.framed(ids, ids, numbering.cut_lanes(self.lanes, rows))
        w = np.repeat(np.arange(*windows), stop - first)
        column = np.tile(np.arange(stop - first), windows[1] - windows[0])
        ends = self.cut.end_pane(0) + w * self.cut.per_slide
        low = int(panes.min())
        stride = max(self.base + self.cut.per_window, int(panes.max())) - low + 2
        keys = ids * stride + (panes - low)

        def last_before(pane: Ints) -> Ints:
            """For each id, its last row before a pane; -1 if there is none."""
            found = np.searchsorted(keys, column * stride + np.clip(pane - low, 0, stride - 1)) - 1
            return np.where((found >= 0) & (ids[found] == column), found, -1)

        front = last_before(ends)
        back = last_before(np.minimum(ends - self.cut.per_window, self.base))
        has_front = (front >= 0) & (panes[front] >= self.base)
        found: list[combiners.Lanes] = []
        for combiner, group in zip(
            table.layout.combiners, numbering.cut_lanes(self.lanes, rows), strict=True
        ):
            nothing = combiner.identity((1,))
            suffix = combiners.choose(back >= 0, combiners.take(group, back), nothing)
            prefix = combiners.choose(has_front, combiners.take(group, front), nothing)
            found.append(combiner.combine(suffix, prefix))
        alive = np.flatnonzero(found[0][0] > 0)
        return table.framed(w[alive], column[alive] + first, numbering.cut_lanes(found, alive))

    def back(self, groups: pl.DataFrame, pane: int) -> pl.DataFrame:
        """The version of the back that stands after all steps, without what has left."""
        behind, ids = self.table.panes < self.base, self.table.ids
        goes_on = np.append((ids[1:] == ids[:-1]) & behind[1:] & behind[:-1], False)
        last = np.flatnonzero(behind & ~goes_on)
        last = last[self.lanes[0][0][last] > 0]
        return self.table.stored(
            groups, np.full(len(last), pane), ids[last], numbering.cut_lanes(self.lanes, last)
        )

    def front(self, groups: pl.DataFrame) -> pl.DataFrame:
        """The running front of each group."""
        ends = combiners.run_ends(self.table.runs, len(self.table.ids))
        last = ends[self.table.panes[ends] >= self.base]
        lanes = numbering.cut_lanes(self.lanes, last)
        return self.table.stored(groups, self.table.panes[last], self.table.ids[last], lanes)


@dataclass(frozen=True)
class Amended:
    """Windows of one table; `late` are rows that came after their panes were closed, combined last."""

    windows: pane_tables.WindowStates | None
    late: pane_tables.PaneWindows

    def block(self, groups: pane_tables.Range, windows: pane_tables.Range) -> pl.DataFrame:
        late = self.late.block(groups, windows)
        if self.windows is None:
            return late
        both = [self.windows.block(groups, windows), late]
        values = [name for name in late.columns if name.startswith("v")]
        states = pl.concat([part for part in both if part.height] or both[:1])
        return self.late.table.layout.merge(states, ["w", "g", *values])


class Suffixes:
    """The suffixes of each group in a block of panes."""

    def __init__(self, table: numbering.Numbered) -> None:
        self.table, self.lanes = table, table.scanned(table.runs, backwards=True)

    def whole(self, groups: pl.DataFrame, pane: int) -> pl.DataFrame:
        """The whole block of each group, standing from the first window on."""
        first = self.table.runs
        lanes = numbering.cut_lanes(self.lanes, first)
        return self.table.stored(groups, np.full(len(first), pane), self.table.ids[first], lanes)

    def steps(self, groups: pl.DataFrame) -> pl.DataFrame:
        """For each pane of each group, what is left of the block without it; in order of the panes."""
        after = np.arange(1, len(self.table.ids) + 1)
        more = np.append(self.table.ids[1:] == self.table.ids[:-1], False)
        after = np.where(more, after, 0)
        lanes = [
            combiners.choose(more, combiners.take(group, after), combiner.identity((1,)))
            for combiner, group in zip(self.table.layout.combiners, self.lanes, strict=True)
        ]
        return self.table.stored(groups, self.table.panes, self.table.ids, lanes).sort(PANE)


#: steps are stored in chunks of this many rows, so that an epoch opens few that it does not need
STEP_ROWS = 1 << 15
#: an epoch leaps if the panes it has to close after a full block are at least one in this many of a window
LEAP = 4
FRONT, BACK, STEPS, LATE = ".front", ".back", ".steps", ".late"


@dataclass(frozen=True)
class TwoStacks(pane_tables.Kernel):
    """Sliding windows from persisted stacks."""

    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        if clock.key is not None:
            raise ValueError("stacks have one clock for all groups")
        cut, before, now = self.answers.query.cut, clock.before, clock.now
        epoch = _Epoch(self.answers, dict(state.chunks), dict(state.meta))
        epoch.take(delta)
        known = epoch.of(GROUPS, pane_tables.OPEN, pane_tables.PANES, STEPS, LATE)
        if not known or now == -INFINITY:
            return epoch.state, iter(())
        first = None if before == -INFINITY else int(cut.due(before)) + 1
        last = cut.last_window(max(chunk.last for chunk in known))
        epoch.answer(first, last if now == INFINITY else min(last, int(cut.due(now))))
        state = State() if now == INFINITY else epoch.state
        return state, chain.from_iterable(epoch.output)

    def united(self, states: Sequence[State]) -> State:
        """All that is closed becomes the back of one block, which ends where the furthest state is closed:
        each suffix of the old back goes on with its group's front, then come those of the front's panes."""
        ends = [state.meta["closed"] for state in states if "closed" in state.meta]
        if not ends:
            return State(joined(states))
        end = max(ends)
        epochs = [_Epoch(self.answers, dict(state.chunks), dict(state.meta)) for state in states]
        for epoch in epochs:
            epoch.stack_up(end)
        return State(joined(epoch.state for epoch in epochs), {"base": end, "closed": end})


@dataclass
class _Epoch(pane_tables.Changing):
    """A state while an epoch changes it: panes before `closed` are stacked, the front begins at `base`."""

    output: list[Iterator[pa.Table]] = field(default_factory=list)

    def take(self, delta: Delta) -> None:
        """What came: panes that are still open, and late rows of closed ones."""
        closed = self.meta.get("closed")
        for name, table in delta.tables.items():
            frame = columns.to_frame(table)
            if closed is not None:
                self.add(name, LATE, [frame.filter(pl.col(PANE) < closed)])
                frame = frame.filter(pl.col(PANE) >= closed)
            self.add(name, pane_tables.OPEN, [frame])

    def stack_up(self, end: int) -> None:
        """All closed panes go to the back of a block that ends at `end`; what waits before it is late."""
        panes = {name: self.merged(name, pane_tables.PANES) for name in self.layouts}
        groups, numbered = numbering.number_all(panes, self.layouts, self.answers.measures.keys)
        for name, layout in self.layouts.items():
            self.add(name, LATE, self.take_before(name, pane_tables.OPEN, end))
            steps = self.frames(name, STEPS)
            new = [Suffixes(numbered[name]).steps(groups)] if name in numbered else []
            lowest = [frame[PANE].min() for frame in (*steps, *new) if frame.height]
            low = min([end, *lowest]) - self.cut.per_window - 1  # type: ignore[type-var,operator]
            first = pl.lit(low, pl.Int64).alias(PANE)
            back = [frame.with_columns(first) for frame in self.frames(name, BACK)]
            front = panes[name]
            if front.height:
                front = layout.merge(front.with_columns(first), [PANE, *layout.keys])
            moved = _followed([*back, *steps], front, layout)
            self.chunks |= {name + kind: () for kind in (pane_tables.PANES, FRONT, BACK, STEPS)}
            if moved.height:
                self.add(name, BACK, [moved.filter(pl.col(PANE) == low)])
                new.insert(0, moved.filter(pl.col(PANE) > low))
            found = gathered(new)
            if found is not None:
                self.add(name, STEPS, found.sort(PANE).iter_slices(STEP_ROWS))

    def answer(self, first: int | None, last: int) -> None:
        """Answer the windows from `first` to `last`, flipping the stacks as often as needed."""
        next_w = self._begin(first)
        while next_w <= last:
            limit = self.meta["base"] + self.cut.per_window
            until = min(last, limit // self.cut.per_slide - 1)
            if next_w <= until or self.meta["closed"] < limit:
                self._close(next_w, until, self.cut.end_pane(last) if until == last else limit)
            next_w = max(next_w, until + 1)
            if next_w <= last:
                if (self.cut.end_pane(last) - limit) * LEAP >= self.cut.per_window:
                    self._leap(next_w, last)
                    next_w = last + 1
                else:
                    self._flip()
                    next_w = max(next_w, self._begin(next_w))
        if next_w != _NEVER:
            self._drop_before(self.cut.first_pane(next_w), LATE)

    def _begin(self, first: int | None) -> int:
        """The next window with rows. Empty stacks begin anew at the first pane there is."""
        if first is not None and self.of(GROUPS, pane_tables.PANES, BACK):
            return first
        for name in self.layouts:
            self.chunks |= {name + pane_tables.OPEN: self.of(name, pane_tables.OPEN, LATE), name + LATE: ()}
        if first is not None:
            self._drop_before(self.cut.first_pane(first), pane_tables.OPEN)
        start = min((chunk.first for chunk in self.of(GROUPS, pane_tables.OPEN)), default=None)
        if start is None:
            return _NEVER
        self.meta |= {"base": start, "closed": start}
        begin = self.cut.first_window(start)
        return begin if first is None else max(begin, first)

    def _close(self, first: int, last: int, pane: int) -> None:
        """Close the panes before `pane`, and answer the windows from `first` to `last` from the stacks."""
        frames: dict[str, pl.DataFrame] = {}
        gone = self.cut.first_pane(last) if first <= last else self.meta["base"] - self.cut.per_window
        for name in self.layouts:
            merged = self.close(name, pane)
            self.add(name, pane_tables.PANES, [merged])
            parts = (*self.frames(name, BACK, FRONT), *self.take_before(name, STEPS, gone), merged)
            frames[name] = pl.concat([part for part in parts if part.height] or [merged])
        groups, numbered, late = self._numbered(frames)
        base = self.meta["base"]
        stacks = {name: StackWindows(table, self.cut, base) for name, table in numbered.items()}
        for name, each in stacks.items():
            self.chunks[name + BACK] = chunked([each.back(groups, base - self.cut.per_window - 1)])
            self.chunks[name + FRONT] = chunked([each.front(groups)])
        self._put(groups, stacks, late, (first, last + 1))
        self.meta["closed"] = max(self.meta["closed"], pane)

    def _numbered(
        self, frames: dict[str, pl.DataFrame]
    ) -> tuple[pl.DataFrame, dict[str, numbering.Numbered], dict[str, numbering.Numbered]]:
        """All groups, and the tables and what came late of them as arrays."""
        keys = self.answers.measures.keys
        late = {name: self.merged(name, LATE) for name in self.layouts}
        groups = numbering.number_groups([*frames.values(), *late.values()], keys)
        numbered, amended = (
            numbering.number_each(tables, self.layouts, groups, keys) for tables in (frames, late)
        )
        return groups, numbered, amended

    def _put(
        self,
        groups: pl.DataFrame,
        states: Mapping[str, pane_tables.WindowStates],
        late: Mapping[str, numbering.Numbered],
        windows: pane_tables.Range,
    ) -> None:
        """The answers of some windows, with what came late for them."""
        amended = {
            name: Amended(states.get(name), pane_tables.PaneWindows(late[name], self.cut)) for name in late
        }
        self.output.append(self.answers.blocks(groups, {**states, **amended}, windows))

    def _leap(self, first: int, last: int) -> None:
        """Answer windows from their panes; those that the next ones need are a full block then."""
        end = self.cut.end_pane(last)
        needed = end - self.cut.per_window
        some = self.of(GROUPS, pane_tables.PANES, pane_tables.OPEN, LATE)
        ranges = live_panes.due_windows(some, self.cut, self.cut.ends(first - 1), self.cut.ends(last))
        tables: dict[str, pl.DataFrame] = {}
        for name, layout in self.layouts.items():
            closed, known = self.close(name, end), self.of(name, pane_tables.PANES)
            tables[name] = pane_tables.merge_panes([*(chunk.frame for chunk in known), closed], layout)
            live = [chunk for chunk in (*known, *chunked([closed])) if chunk.last >= needed]
            _, kept = split_at(live, needed)
            self.chunks |= {name + kind: () for kind in (FRONT, BACK, STEPS)}
            self.chunks[name + pane_tables.PANES] = tuple(kept)
        self.meta |= {"base": needed, "closed": end}
        groups, numbered, late = self._numbered(tables)
        states = {name: pane_tables.PaneWindows(table, self.cut) for name, table in numbered.items()}
        for part in pane_tables.neighbours(ranges, groups.height):
            self._put(groups, states, late, part)

    def _flip(self) -> None:
        """The block that is full becomes the back, with the steps by which it will leave."""
        tables = {name: self.merged(name, pane_tables.PANES) for name in self.layouts}
        low = self.meta["base"] - 1
        self.meta["base"] += self.cut.per_window
        for name in self.layouts:
            self.chunks |= {name + kind: () for kind in (pane_tables.PANES, FRONT, BACK, STEPS)}
        groups, numbered = numbering.number_all(tables, self.layouts, self.answers.measures.keys)
        for name, table in numbered.items():
            suffixes = Suffixes(table)
            self.chunks[name + BACK] = chunked([suffixes.whole(groups, low)])
            self.chunks[name + STEPS] = chunked(suffixes.steps(groups).iter_slices(STEP_ROWS))

    def _drop_before(self, pane: int, kind: str) -> None:
        for name in self.layouts:
            self.take_before(name, kind, pane)


def _followed(versions: list[pl.DataFrame], front: pl.DataFrame, layout: TableLayout) -> pl.DataFrame:
    """Versions of a back, each with its group's front after it; the front itself where there is no back."""
    if not front.height:
        return pl.concat(versions) if versions else front
    keys = list(layout.keys)
    old = pl.concat(versions) if versions else front.clear()
    places = pl.concat([old.select(PANE, *keys), front.select(PANE, *keys)]).unique()
    how: Any = {"on": keys, "how": "inner", "nulls_equal": True} if keys else {"how": "cross"}
    both = pl.concat([old, places.join(front.drop(PANE), **how).select(old.columns)])
    return layout.merge(both, [PANE, *keys]).select(old.columns)


_NEVER = 1 << 62
