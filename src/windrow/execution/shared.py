"""Shared states in the two jobs of an epoch: rows become states of pane grids, and all their queries are
answered.

In delta files a pane grid lies under the shared state's name, as the tables of a query do under the query's;
where Spark has aggregated, its states are columns of the feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from windrow.algebra import TRUE, DataType
from windrow.execution.delta_file import FEED, QUERY, Gathering, sections
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.aggregates.value_tables import SUB_WINDOW
from windrow.kernels.columnar.columns import masked
from windrow.kernels.panes.pane_tables import merge_panes
from windrow.kernels.panes.program import PaneProgram
from windrow.kernels.shared import shared_state as shared
from windrow.kernels.state import PANE, ROWS, State, gathered
from windrow.physical.native_sql import native_shared_state
from windrow.state.chunk import OpenChunk
from windrow.state.manifest import ChunkRef
from windrow.windows.domain import Ints


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
        found: list[pl.DataFrame] = []
        for frame, begins, width in _kept(state, *self.value_counters[table]):
            columns = [pl.Series(PANE, cut.panes_of(begins))]
            if layout.close is not None:
                number = pl.Series(SUB_WINDOW, (begins - cut.origin) // width)
                columns.append(masked(number, frame[SUB_WINDOW].is_not_null().to_numpy()))
            found.append(frame.with_columns(columns).filter(pl.Series(cut.holds(begins))))
        rows = gathered(found)
        return pl.DataFrame() if rows is None else layout.merge(rows, [PANE, *layout.keys])

    def _groups(self, state: State, program: PaneProgram) -> pl.DataFrame:
        """The states of its groups as panes of the query."""
        level = program.bottom
        layout, cut, own = (
            level.answers.measures.layouts[GROUPS],
            level.query.cut,
            pane_grid_of(level.answers.measures),
        )
        found: list[pl.DataFrame] = []
        for width, phase in self.grids:
            for frame, begins, _ in _kept(state, shared.PaneGrid(width, phase, 0, ()).name, width, phase):
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


def _kept(state: State, name: str, width: int, phase: int) -> Iterator[tuple[pl.DataFrame, Ints, int]]:
    """What a pane grid has, with the beginnings of the intervals and their width."""
    for chunk in (*state.of(name + shared.CLOSED), *state.of(name + shared.OPEN)):
        frame = chunk.frame
        yield frame, phase + frame[PANE].to_numpy() * width, width


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


class SharedStateGathering(Gathering):
    """The states of a shared state."""

    def __init__(self, shared_state: shared.SharedState) -> None:
        super().__init__(shared_state.name, [shared_state.name])
        self._shared_state = shared_state
        keys = len(shared_state.keys)
        self._layouts = {pane_grid.name: pane_grid.layout(keys) for pane_grid in shared_state.tables}

    def _tables(self, accepted: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        return shared.lifted(self._shared_state, accepted)

    def _merged(self, table: str, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return merge_panes(frames, self._layouts[table])

    def _routes(self, table: str) -> Mapping[str, DataType]:
        return self._shared_state.key_types


def pane_grids_of(
    files: Sequence[OpenChunk], shared_state: shared.SharedState, shard: int
) -> dict[str, pl.DataFrame]:
    """What some delta files hold for a shared state in a shard: one table for each pane grid that has
    rows."""
    native, keys = native_shared_state(shared_state), tuple(shared_state.key_types)
    feeds = sections(files, (FEED, native.feed, shard)) if native is not None else []
    found: dict[str, pl.DataFrame] = {}
    for pane_grid in shared_state.tables:
        layout = pane_grid.layout(len(keys))
        own = sections(files, (QUERY, shared_state.name, pane_grid.name, shard))
        tables = [pane_grid.fitted(frame, keys) for frame in own]
        if native is not None and pane_grid.entries:
            tables += [layout.merge(native.panes(feed, pane_grid), [PANE, *keys]) for feed in feeds]
        merged = merge_panes(tables, layout)
        if merged.height:
            found[pane_grid.name] = merged
    return found
