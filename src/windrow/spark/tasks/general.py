"""General units in the two jobs: rows are filed by shard as they come, and answered when the clock moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.columns import to_frame
from windrow.kernels.general.program import News
from windrow.kernels.shards import split
from windrow.spark.tasks.delta_file import QUERY
from windrow.spark.tasks.reports import fault_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from windrow.kernels.general.clocks import Clock
    from windrow.kernels.intake import Known
    from windrow.kernels.state import State
    from windrow.spark.tasks.bundle import Bundle
    from windrow.spark.tasks.place import Spool
    from windrow.spark.tasks.reports import Fault
    from windrow.spark.tasks.units import GeneralUnit
    from windrow.state.reading import Chunk

AT, OP = "#at", "#op"


class RowsGathering:
    """The accepted rows of one stream for a query, growing with each piece of the batch."""

    def __init__(self, query: Bundle, unit: GeneralUnit, stream: str, known: Mapping[str, Known]) -> None:
        self.query, self.unit, self.stream, self.known = query, unit, stream, known
        self.latest: int | None = None
        self.fault: Fault | None = None
        self._waiting: list[pl.DataFrame] = []

    def take(self, accepted: pl.DataFrame) -> None:
        """Some accepted rows."""
        if self.fault is not None or not accepted.height:
            return
        try:
            kept = self.unit.timing.kept(self.stream, self.known, {}, accepted)
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


def advance(
    unit: GeneralUnit,
    query: str,
    shard: int,
    files: Iterable[Chunk],
    states: Mapping[str, State],
    clock: Clock,
) -> tuple[Mapping[str, State], pa.Table]:
    """The next states of a shard, and the answers that became final in it."""
    rows: dict[str, list[pl.DataFrame]] = {}
    for file in files:
        for name in unit.streams:
            if (QUERY, query, name, shard) in file.keys:
                rows.setdefault(name, []).append(to_frame(file.read((QUERY, query, name, shard))))
    news = News(clock, {name: pl.concat(frames) for name, frames in rows.items()}, {})
    after, answers, _ = unit.program.advance(states, news)
    emit = unit.program.emit
    columns = [AT, *([OP] if emit.emits_deletions else []), *emit.schema.names]
    return after, answers.select(columns).to_arrow()
