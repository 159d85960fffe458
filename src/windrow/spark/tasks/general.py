"""General units in the two jobs: rows are filed by shard as they come, and answered when the clock moves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.columns import to_frame
from windrow.kernels.general.program import News
from windrow.kernels.shards import split
from windrow.spark.tasks.delta_file import QUERY, TABLE
from windrow.spark.tasks.reports import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from windrow.kernels.general.clocks import Clock
    from windrow.kernels.intake import Known
    from windrow.kernels.state import State
    from windrow.spark.tasks.bundle import Bundle
    from windrow.spark.tasks.place import Spool
    from windrow.spark.tasks.reports import Fault
    from windrow.spark.tasks.units import GeneralUnit
    from windrow.state.chunk import Key
    from windrow.state.reading import Chunk
    from windrow.windows.domain import Instant

AT, OP = "#at", "#op"


class RowsGathering:
    """The accepted rows of one stream for a query, growing with each piece of the batch."""

    def __init__(
        self,
        query: Bundle,
        unit: GeneralUnit,
        stream: str,
        known: Mapping[str, Known],
        held: Mapping[str, Instant],
    ) -> None:
        self.query, self.unit, self.stream, self.known = query, unit, stream, known
        self.name, self.held = query.name, {name: held[name] for name in unit.tables}
        self.latest: int | None = None
        self.fault: Fault | None = None
        self._waiting: list[pl.DataFrame] = []

    def take(self, accepted: pl.DataFrame) -> None:
        """Some accepted rows."""
        if self.fault is not None or not accepted.height:
            return
        try:
            kept = self.unit.timing.kept(self.stream, self.known, self.held, accepted)
            self._waiting.append(accepted.with_columns(kept))
        except Exception as error:  # noqa: BLE001  whatever is wrong with one query must not stop the others
            self.fault = fault_of(error, self.query.name)

    def put(self, spool: Spool, shards: int) -> None:
        """Write the rows, each to the shard where all it can meet is."""
        if self.fault is not None or not self._waiting:
            return
        schema = self.unit.streams[self.stream].schema
        routed = self.unit.placement.get(self.stream, ())
        kinds = {name: schema.column(name).type for name in routed}
        for shard, rows in split(pl.concat(self._waiting), kinds, shards):
            spool.writer.add((QUERY, self.query.name, self.stream, shard), rows.to_arrow())


@dataclass(frozen=True)
class Turn:
    """One shard's part in moving a query on."""

    query: str
    shard: int
    shards: int
    clock: Clock
    #: when each table changed last
    changed: Mapping[str, int] = field(default_factory=dict)


def advance(
    unit: GeneralUnit, turn: Turn, files: Sequence[Chunk], states: Mapping[str, State]
) -> tuple[Mapping[str, State], pa.Table, pl.DataFrame]:
    """The next states of a shard, the answers that became final in it, and the pieces they are made of."""
    rows = {name: _sections(files, (QUERY, turn.query, name, turn.shard)) for name in unit.streams}
    changes = {name: _changes(unit, name, turn, files) for name in unit.tables}
    news = News(
        turn.clock,
        {name: pl.concat(frames) for name, frames in rows.items() if frames},
        {name: frame for name, frame in changes.items() if frame is not None},
        changed=turn.changed,
    )
    after, answers, pieces = unit.program.advance(states, news)
    emit = unit.program.emit
    columns = [AT, *([OP] if emit.emits_deletions else []), *emit.schema.names]
    return after, answers.select(columns).to_arrow(), pieces


def _sections(files: Iterable[Chunk], key: Key) -> list[pl.DataFrame]:
    return [to_frame(file.read(key)) for file in files if key in file.keys]


def _changes(unit: GeneralUnit, table: str, turn: Turn, files: Iterable[Chunk]) -> pl.DataFrame | None:
    """The changes of a table that rows of this shard can meet."""
    found = _sections(files, (TABLE, table))
    if not found or (not unit.placement and turn.shard):
        return None
    frame, column = pl.concat(found), unit.table_places[table]
    if column is None:
        return frame
    kinds = {column: unit.tables[table].schema.column(column).type}
    return dict(split(frame, kinds, turn.shards)).get(turn.shard)
