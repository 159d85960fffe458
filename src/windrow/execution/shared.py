"""Ledgers in the two jobs of an epoch: rows become states of sheets, and all their queries are answered.

In delta files a sheet lies under the ledger's name, as the tables of a query do under the query's; where
Spark has aggregated, its states are columns of the feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from windrow.algebra.expressions import TRUE
from windrow.execution.delta_file import FEED, QUERY, Spool
from windrow.execution.reports import Fault, fault_of
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.aggregates.value_tables import SUB_WINDOW
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.hashing import split
from windrow.kernels.panes.pane_tables import merge_panes
from windrow.kernels.shared.shared_state import CLOSED, OPEN, Entry, Ledger, Lifting, SharedEpoch, Sheet
from windrow.kernels.state import PANE, ROWS, State, gathered
from windrow.physical.native_sql import native_ledger

if TYPE_CHECKING:
    from windrow.kernels.panes.program import Level, PaneProgram
    from windrow.state.chunk import OpenChunk
    from windrow.state.manifest import ChunkRef

#: states waiting in memory are merged when there are this many
_MANY_ROWS = 1 << 20


@dataclass(frozen=True)
class SharedWork:
    """A ledger to move, and the delta files it has not taken in yet."""

    turn: SharedEpoch
    deltas: tuple[ChunkRef, ...] = ()

    @property
    def name(self) -> str:
        return self.turn.ledger.name


@dataclass(frozen=True)
class Seed:
    """What a query takes along that leaves a ledger: where its states are there, by sheet and entry.

    What was combined from several entries is so in pieces, to be added or subtracted.
    """

    ledger: str
    #: (width, phase) of each sheet
    grids: tuple[tuple[int, int], ...]
    #: whether to add it, and the columns of the entries, for each column of the query's table
    pieces: tuple[tuple[bool, Mapping[str, str]], ...]
    #: for each of its tables of cells the tally, by name, width and phase
    tallies: Mapping[str, tuple[str, int, int]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "ledger": self.ledger,
            "grids": [list(grid) for grid in self.grids],
            "pieces": [[is_added, {**columns}] for is_added, columns in self.pieces],
            "tallies": {table: [*tally] for table, tally in self.tallies.items()},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Seed:
        """What `to_json` wrote."""
        grids = tuple((width, phase) for width, phase in stored["grids"])
        pieces = tuple((is_added, columns) for is_added, columns in stored["pieces"])
        tallies = {table: (str(name), *grid) for table, (name, *grid) in stored.get("tallies", {}).items()}
        return cls(stored["ledger"], grids, pieces, tallies)

    def tables(self, state: State, program: PaneProgram) -> dict[str, pl.DataFrame]:
        """The states of a ledger as tables of panes of the query."""
        found = {GROUPS: self._groups(state, program)}
        found |= {table: self._cells(table, state, program) for table in self.tallies}
        return {name: frame for name, frame in found.items() if frame.height}

    def _cells(self, table: str, state: State, program: PaneProgram) -> pl.DataFrame:
        """The cells of a tally as those of a table of the query. Its sub-windows have other numbers there."""
        level = program.bottom
        layout, cut = level.answers.measures.layouts[table], level.query.cut
        name, width, phase = self.tallies[table]
        found: list[pl.DataFrame] = []
        for chunk in (*state.of(name + CLOSED), *state.of(name + OPEN)):
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
        layout, cut, own = level.answers.measures.layouts[GROUPS], level.query.cut, own_sheet(level)
        found: list[pl.DataFrame] = []
        for width, phase in self.grids:
            sheet = Sheet(width, phase, 0, ())
            for chunk in (*state.of(sheet.name + CLOSED), *state.of(sheet.name + OPEN)):
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


def own_sheet(level: Level) -> Sheet:
    """What a query with a state of its own keeps of a pane, as a sheet would have it."""
    return sheet_of(level.answers.measures)


def sheet_of(measures: Measures) -> Sheet:
    """The states of some aggregates, as a sheet would have them."""
    schema = measures.plan.input.schema
    order = tuple(schema.column(name) for name in schema.names)
    entries = [Entry(ROWS, (), TRUE)]
    for partial in measures.layouts[GROUPS].partials[1:]:
        args, where = measures.argument_of(partial)
        entries.append(Entry(partial, args, where, order))
    return Sheet(1, 0, 0, tuple(entries))


def operator_of(ledger: str) -> str:
    """What a ledger's state is called in the files of a shard."""
    return "\0".join((ledger, "0"))


class LedgerGathering:
    """The states of a ledger, growing with each piece of a batch."""

    def __init__(self, ledger: Ledger) -> None:
        self.name = ledger.name
        self.fault: Fault | None = None
        self._ledger, self._lifting = ledger, Lifting(ledger)
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
            for shard, rows in split(self._merged(name), self._ledger.key_types, shards):
                spool.writer.add((QUERY, self.name, name, shard), rows.to_arrow())

    def _merged(self, name: str) -> pl.DataFrame:
        sheet = next(sheet for sheet in self._ledger.tables if sheet.name == name)
        return merge_panes(self._waiting[name], sheet.layout(len(self._ledger.keys)))


def sheets_of(files: Iterable[OpenChunk], ledger: Ledger, shard: int) -> dict[str, pl.DataFrame]:
    """What some delta files hold for a ledger in a shard: one table for each sheet that has rows."""
    found: dict[str, list[pl.DataFrame]] = {}
    native, keys = native_ledger(ledger), tuple(ledger.key_types)
    for file in files:
        there = set(file.keys)
        feed = None
        if native is not None and (FEED, native.feed, shard) in there:
            feed = to_frame(file.read((FEED, native.feed, shard)))
        for sheet in ledger.tables:
            tables = found.setdefault(sheet.name, [])
            if (QUERY, ledger.name, sheet.name, shard) in there:
                own = to_frame(file.read((QUERY, ledger.name, sheet.name, shard)))
                tables.append(sheet.fitted(own, keys))
            if feed is not None and native is not None and sheet.entries:
                layout = sheet.layout(len(keys))
                tables.append(layout.merge(native.panes(feed, sheet), [PANE, *keys]))
    merged = {
        sheet.name: merge_panes(found.get(sheet.name, []), sheet.layout(len(keys))) for sheet in ledger.tables
    }
    return {name: frame for name, frame in merged.items() if frame.height}
