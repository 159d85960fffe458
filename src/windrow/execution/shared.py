"""Shared states in the two jobs of an epoch: rows become states of pane grids, and all their queries are
answered.

In delta files a pane grid lies under the shared state's name, as the tables of a query do under the query's;
where Spark has aggregated, its states are columns of the feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from windrow.algebra.expressions import TRUE
from windrow.execution.delta_file import FEED, QUERY, Spool
from windrow.execution.reports import Fault, fault_of
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.aggregates.value_tables import SUB_WINDOW
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.hashing import split
from windrow.kernels.panes.pane_tables import merge_panes
from windrow.kernels.panes.program import Level, PaneProgram
from windrow.kernels.shared import shared_state as shared
from windrow.kernels.state import PANE, ROWS, State, gathered
from windrow.physical.native_sql import native_shared_state
from windrow.state.chunk import OpenChunk
from windrow.state.manifest import ChunkRef

#: states waiting in memory are merged when there are this many
_MANY_ROWS = 1 << 20


@dataclass(frozen=True)
class SharedWork:
    """A shared state to move, and the delta files it has not taken in yet."""

    turn: shared.SharedEpoch
    deltas: tuple[ChunkRef, ...] = ()

    @property
    def name(self) -> str:
        return self.turn.shared_state.name


@dataclass(frozen=True)
class Seed:
    """What a query takes along that leaves a shared state: where its states are there, by pane grid and
    entry.

    What was combined from several entries is so in pieces, to be added or subtracted.
    """

    shared_state: str
    #: (width, phase) of each pane grid
    grids: tuple[tuple[int, int], ...]
    #: whether to add it, and the columns of the entries, for each column of the query's table
    pieces: tuple[tuple[bool, Mapping[str, str]], ...]
    #: for each of its tables of cells the value counter, by name, width and phase
    value_counters: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "shared_state": self.shared_state,
            "grids": [list(grid) for grid in self.grids],
            "pieces": [[is_added, {**columns}] for is_added, columns in self.pieces],
            "value_counters": {
                table: [*value_counter] for table, value_counter in self.value_counters.items()
            },
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Seed:
        """What `to_json` wrote."""
        grids = tuple((width, phase) for width, phase in stored["grids"])
        pieces = tuple((is_added, columns) for is_added, columns in stored["pieces"])
        value_counters = {
            table: (str(name), *grid) for table, (name, *grid) in stored.get("value_counters", {}).items()
        }
        return cls(stored["shared_state"], grids, pieces, value_counters)

    def tables(self, state: State, program: PaneProgram) -> dict[str, pl.DataFrame]:
        """The states of a shared state as tables of panes of the query."""
        found = {GROUPS: self._groups(state, program)}
        found |= {table: self._cells(table, state, program) for table in self.value_counters}
        return {name: frame for name, frame in found.items() if frame.height}

    def _cells(self, table: str, state: State, program: PaneProgram) -> pl.DataFrame:
        """The cells of a value counter as those of a table of the query. Its sub-windows have other numbers
        there."""
        level = program.bottom
        layout, cut = level.answers.measures.layouts[table], level.query.cut
        name, width, phase = self.value_counters[table]
        found: list[pl.DataFrame] = []
        for chunk in (*state.of(name + shared.CLOSED), *state.of(name + shared.OPEN)):
            frame = chunk.frame
            begins = phase + frame[PANE].to_numpy() * width
            columns = [pl.Series(PANE, cut.panes_of(begins))]
            if layout.close is not None:
                number = pl.Series((begins - cut.origin) // width)
                columns.append(number.zip_with(frame[SUB_WINDOW].is_not_null(), number.clear(frame.height)))
                columns[-1] = columns[-1].alias(SUB_WINDOW)
            found.append(frame.with_columns(columns).filter(pl.Series(cut.holds(begins))))
        rows = gathered(found)
        return pl.DataFrame() if rows is None else layout.merge(rows, [PANE, *layout.keys])

    def _groups(self, state: State, program: PaneProgram) -> pl.DataFrame:
        """The states of its groups as panes of the query."""
        level = program.bottom
        layout, cut, own = level.answers.measures.layouts[GROUPS], level.query.cut, own_pane_grid(level)
        found: list[pl.DataFrame] = []
        for width, phase in self.grids:
            pane_grid = shared.PaneGrid(width, phase, 0, ())
            for chunk in (*state.of(pane_grid.name + shared.CLOSED), *state.of(pane_grid.name + shared.OPEN)):
                frame = chunk.frame
                begins = phase + frame[PANE].to_numpy() * width
                for is_added, columns in self.pieces:
                    parts = [pl.Series(PANE, cut.panes_of(begins)), *(frame[key] for key in layout.keys)]
                    known = {name: frame[part] for name, part in columns.items() if part in frame.columns}
                    parts += [(p if is_added else -p).alias(name) for name, p in known.items()]
                    inside = pl.DataFrame(parts).filter(pl.Series(cut.holds(begins)))
                    found.append(own.fitted(inside, layout.keys))
        rows = gathered(found)
        if rows is None:
            return pl.DataFrame()
        return layout.merge(rows, [PANE, *layout.keys]).filter(pl.col("rows.0") > 0)


def own_pane_grid(level: Level) -> shared.PaneGrid:
    """What a query with a state of its own keeps of a pane, as a pane grid would have it."""
    return pane_grid_of(level.answers.measures)


def pane_grid_of(measures: Measures) -> shared.PaneGrid:
    """The states of some aggregates, as a pane grid would have them."""
    schema = measures.plan.input.schema
    order = tuple(schema.column(name) for name in schema.names)
    entries = [shared.Entry(ROWS, (), TRUE)]
    for partial in measures.layouts[GROUPS].partials[1:]:
        args, where = measures.argument_of(partial)
        entries.append(shared.Entry(partial, args, where, order))
    return shared.PaneGrid(1, 0, 0, tuple(entries))


def operator_of(shared_state: str) -> str:
    """What a shared state's state is called in the files of a shard."""
    return "\0".join((shared_state, "0"))


class SharedStateGathering:
    """The states of a shared state, growing with each piece of a batch."""

    def __init__(self, shared_state: shared.SharedState) -> None:
        self.name = shared_state.name
        self.fault: Fault | None = None
        self._shared_state, self._lifting = shared_state, shared.Lifting(shared_state)
        self._waiting: dict[str, list[pl.DataFrame]] = {}

    def take(self, accepted: pl.DataFrame) -> None:
        """Some accepted rows. After an error nothing is computed any more."""
        if self.fault is not None or not accepted.height:
            return
        try:
            for name, frame in self._lifting.tables(accepted).items():
                waiting = self._waiting.setdefault(name, [])
                waiting.append(frame)
                if len(waiting) > 1 and sum(each.height for each in waiting) > _MANY_ROWS:
                    self._waiting[name] = [self._merged(name)]
        except Exception as error:  # noqa: BLE001  whatever is wrong here must not stop other queries
            self.fault = fault_of(error, self.name)

    def put(self, spool: Spool, shards: int) -> None:
        """Write what was gathered."""
        for name in self._waiting if self.fault is None else ():
            for shard, rows in split(self._merged(name), self._shared_state.key_types, shards):
                spool.writer.add((QUERY, self.name, name, shard), rows.to_arrow())

    def _merged(self, name: str) -> pl.DataFrame:
        pane_grid = next(pane_grid for pane_grid in self._shared_state.tables if pane_grid.name == name)
        return merge_panes(self._waiting[name], pane_grid.layout(len(self._shared_state.keys)))


def pane_grids_of(
    files: Iterable[OpenChunk], shared_state: shared.SharedState, shard: int
) -> dict[str, pl.DataFrame]:
    """What some delta files hold for a shared state in a shard: one table for each pane grid that has
    rows."""
    found: dict[str, list[pl.DataFrame]] = {}
    native, keys = native_shared_state(shared_state), tuple(shared_state.key_types)
    for file in files:
        there = set(file.keys)
        feed = None
        if native is not None and (FEED, native.feed, shard) in there:
            feed = to_frame(file.read((FEED, native.feed, shard)))
        for pane_grid in shared_state.tables:
            tables = found.setdefault(pane_grid.name, [])
            if (QUERY, shared_state.name, pane_grid.name, shard) in there:
                own = to_frame(file.read((QUERY, shared_state.name, pane_grid.name, shard)))
                tables.append(pane_grid.fitted(own, keys))
            if feed is not None and native is not None and pane_grid.entries:
                layout = pane_grid.layout(len(keys))
                tables.append(layout.merge(native.panes(feed, pane_grid), [PANE, *keys]))
    merged = {
        pane_grid.name: merge_panes(found.get(pane_grid.name, []), pane_grid.layout(len(keys)))
        for pane_grid in shared_state.tables
    }
    return {name: frame for name, frame in merged.items() if frame.height}
