"""General units in the two jobs: rows are filed by shard as they come, and answered when the clock moves.

Queries of a query group have their rows filed once for all of them, and run what they have in common once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl
import pyarrow as pa

from windrow.algebra.types import DataType
from windrow.execution import bundle, delta_file
from windrow.kernels.clock import Clock
from windrow.kernels.columnar.hashing import split
from windrow.kernels.intake import Known
from windrow.kernels.relational.emission import WAITING
from windrow.kernels.relational.program import News, Parts, RelationalProgram, SubplanStep
from windrow.kernels.relational.state_transfer import begun_over, rebuilt
from windrow.kernels.state import State
from windrow.physical.units import GeneralUnit
from windrow.state.chunk import OpenChunk
from windrow.state.shard import Shard
from windrow.windows.domain import Instant
from windrow.windows.spec import SlideGrid

AT, OP = "#at", "#op"
#: between the name of a query and that of its operator; no name has it
OF = "\0"


class RowsGathering(delta_file.Gathering):
    """The accepted rows of one stream for a query or a query group."""

    def __init__(
        self,
        queries: Sequence[bundle.Bundle],
        unit: GeneralUnit,
        stream: str,
        known: Mapping[str, Known],
        held: Mapping[str, Instant],
    ) -> None:
        super().__init__(queries[0].files, [query.name for query in queries])
        self.unit, self.stream, self.known = unit, stream, known
        self.held = {name: held[name] for name in unit.tables}

    def _tables(self, accepted: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
        kept = self.unit.timing.kept(self.stream, self.known, self.held, accepted)
        return {self.stream: accepted.with_columns(kept)}

    def _merged(self, table: str, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        return pl.concat(frames)

    def _routes(self, table: str) -> Mapping[str, DataType]:
        """By which each row is where all it can meet is."""
        schema = self.unit.streams[table].schema
        return {name: schema.column(name).type for name in self.unit.placement.get(table, ())}


@dataclass(frozen=True)
class ShardEpoch:
    """One shard's part in moving a query on."""

    query: bundle.Bundle
    shard: int
    shards: int
    clock: Clock
    #: when each table changed last
    changed: Mapping[str, int] = field(default_factory=dict)
    #: the instants that are reported; none: all of them
    reports: tuple[SlideGrid, ...] = ()


@dataclass(frozen=True)
class Host:
    """A query as it was before it had its join in common, and the place of the join in it."""

    query: bundle.Bundle
    join: str


@dataclass
class Moving:
    """Queries of a query group on their way through a step in one shard; or one query by itself."""

    news: News | None = None
    #: the parts that have run in this step, by their names
    done: dict[str, SubplanStep] = field(default_factory=dict)
    #: the query that ran each of them
    by: dict[str, str] = field(default_factory=dict)
    #: what is kept under the query group's name
    own: dict[str, State] = field(default_factory=dict)

    @property
    def states(self) -> dict[str, State]:
        """The next states of all that the queries have in common, by the operators' names."""
        found = dict(self.own)
        for name, part in self.done.items():
            found |= {f"{name}{OF}{path}": state for path, state in part.states.items()}
        return found


def advance(
    unit: GeneralUnit, turn: ShardEpoch, files: Sequence[OpenChunk], before: Shard, moving: Moving
) -> tuple[Mapping[str, State], pa.Table, pl.DataFrame]:
    """The next states of a query in a shard, the answers that became final in it, and the pieces they are
    made of."""
    if moving.news is None:
        moving.news = _news(unit, turn, files)
    query_group = turn.query.query_group
    parts = _parts(query_group, moving.done, turn.reports)
    news = replace(moving.news, parts=parts)
    try:
        after, answers, pieces = unit.program.advance(states_of(turn.query, before), news)
    finally:
        for name in moving.done:
            moving.by.setdefault(name, turn.query.name)
    emit = unit.program.emit
    columns = [AT, *([OP] if emit.emits_deletions else []), *emit.schema.names]
    own: dict[str, State] = {}
    for path, state in after.items():
        if query_group is not None and path == WAITING:
            moving.own[f"{query_group.name}{OF}{path}"] = state
        elif parts.part_of(path) is None:
            own[f"{turn.query.name}{OF}{path}"] = state
    return own, answers.select(columns).to_arrow(), pieces


def replanned(old: bundle.Bundle, new: bundle.Bundle, before: Shard, now: int) -> Mapping[str, State]:
    """The states of a query by its new plan, made of those by its old one."""
    one, other = old.unit.program, new.unit.program
    assert isinstance(one, RelationalProgram)
    assert isinstance(other, RelationalProgram)
    found = rebuilt(one, states_of(old, before), other, now)
    return {f"{new.name}{OF}{path}": state for path, state in found.items()}


def admitted(host: Host, query: bundle.Bundle, before: Shard, now: int) -> Mapping[str, State]:
    """The states of a query that begins over a join of another one, which runs; or of that other query, now
    that it has the join in common."""
    program, query_group = query.unit.program, query.query_group
    states: Mapping[str, State] = states_of(host.query, before)
    assert isinstance(program, RelationalProgram)
    assert query_group is not None
    if query.name != host.query.name:
        (mine, _), view = query_group.parts[-1], query_group.view
        states = begun_over(states, program, (host.join, mine), view, now)
    kept = {path: query.kept_as(path) for path in states}
    return {f"{name}{OF}{place}": states[path] for path, (name, place) in kept.items()}


def _parts(
    query_group: bundle.QueryGroup | None, done: dict[str, SubplanStep], reports: tuple[SlideGrid, ...]
) -> Parts:
    if query_group is None:
        return Parts({}, done, reports=reports)
    lowest = max((path for path, _ in query_group.parts), key=len, default="")
    return Parts(dict(query_group.parts), done, {lowest: query_group.view}, query_group.reports)


def _news(unit: GeneralUnit, turn: ShardEpoch, files: Sequence[OpenChunk]) -> News:
    own = delta_file.QUERY, turn.query.files
    rows = {name: delta_file.sections(files, (*own, name, turn.shard)) for name in unit.streams}
    changes = {name: _changes(unit, name, turn, files) for name in unit.tables}
    return News(
        turn.clock,
        {name: pl.concat(frames) for name, frames in rows.items() if frames},
        {name: frame for name, frame in changes.items() if frame is not None},
        changed=turn.changed,
    )


def states_of(query: bundle.Bundle, before: Shard) -> dict[str, State]:
    """The states of a query's operators by their places, those that it has in common with others too."""
    places = query.places
    found: dict[str, State] = {}
    for operator in before.operators:
        name, _, path = operator.partition(OF)
        if name in places:
            found[f"{places[name]}{path}"] = before.state(operator)
    return found


def _changes(
    unit: GeneralUnit, table: str, turn: ShardEpoch, files: Iterable[OpenChunk]
) -> pl.DataFrame | None:
    """The changes of a table that rows of this shard can meet."""
    found = delta_file.sections(files, (delta_file.TABLE, table))
    if not found or (not unit.placement and turn.shard):
        return None
    frame, column = pl.concat(found), unit.table_places[table]
    if column is None:
        return frame
    kinds = {column: unit.tables[table].schema.column(column).type}
    return dict(split(frame, kinds, turn.shards)).get(turn.shard)
