"""General units in the two jobs: rows are filed by shard as they come, and answered when the clock moves.

Queries of a query group have their rows filed once for all of them, and run what they have in common once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pyarrow as pa

from windrow.algebra.types import DataType
from windrow.execution import bundle, delta_file, shared
from windrow.kernels.columnar.hashing import split
from windrow.kernels.intake import Known
from windrow.kernels.relational import emission, state_transfer
from windrow.kernels.relational.program import News, Parts, RelationalProgram, SubplanStep
from windrow.kernels.state import State
from windrow.physical.units import GeneralUnit
from windrow.state import chunk, manifest
from windrow.state.shard import Shard
from windrow.windows import Instant, SlideGrid

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
class Host:
    """A query as it was before it had its join in common, and the place of the join in it."""

    query: bundle.Bundle
    join: str


@dataclass(frozen=True)
class QueryWork:
    """A query to move: its clock, the delta files it has not taken in yet, and the last window to report."""

    query: bundle.Bundle
    #: of the kind that the query's unit goes by
    clock: Any
    deltas: tuple[manifest.ChunkRef, ...] = ()
    latest: int | None = None
    #: windows that begin earlier are not answered: rows from before the query was there would be missing
    complete_from: int | None = None
    #: when each of its tables changed last
    changed: Mapping[str, int] = field(default_factory=dict)
    #: whether the windows that end at an instant are left out; None: none is
    drops: Callable[[int], bool] | None = None
    #: of each level of a nested query but the last, whether the windows that end at an instant are left out
    unread: tuple[Callable[[int], bool] | None, ...] = ()
    #: the instants that are reported, of a query over rows that leaves most out; none: all of them
    reports: tuple[SlideGrid, ...] = ()
    #: whether archives are to have the rows of the answer, with the instants they are in it
    lifetimes: bool = False
    #: what it takes along from a shared state that it leaves
    seed: shared.Seed | None = None
    #: the query whose join it has in common from now on, or that query itself; nothing else is done
    host: Host | None = None
    #: the same query by another plan, whose states are made those of this one; nothing else is done
    replaced: bundle.Bundle | None = None


@dataclass
class Moving:
    """Queries of a query group on their way through a step in one shard; or one query by itself."""

    shard: int
    shards: int
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
    unit: GeneralUnit, work: QueryWork, files: Sequence[chunk.OpenChunk], before: Shard, moving: Moving
) -> tuple[Mapping[str, State], pa.Table, pl.DataFrame]:
    """The next states of a query in a shard, the answers that became final in it, and the pieces they are
    made of."""
    if moving.news is None:
        moving.news = _news(unit, work, files, moving)
    query_group = work.query.query_group
    parts = _parts(query_group, moving.done, work.reports)
    news = replace(moving.news, parts=parts)
    try:
        after, answers, pieces = unit.program.advance(states_of(work.query, before), news)
    finally:
        for name in moving.done:
            moving.by.setdefault(name, work.query.name)
    emit = unit.program.emit
    columns = [AT, *([OP] if emit.emits_deletions else []), *emit.schema.names]
    own: dict[str, State] = {}
    for path, state in after.items():
        if query_group is not None and path == emission.WAITING:
            moving.own[f"{query_group.name}{OF}{path}"] = state
        elif parts.part_of(path) is None:
            own[f"{work.query.name}{OF}{path}"] = state
    return own, answers.select(columns).to_arrow(), pieces


def replanned(old: bundle.Bundle, new: bundle.Bundle, before: Shard, now: int) -> Mapping[str, State]:
    """The states of a query by its new plan, made of those by its old one."""
    one, other = old.unit.program, new.unit.program
    assert isinstance(one, RelationalProgram)
    assert isinstance(other, RelationalProgram)
    found = state_transfer.rebuilt(one, states_of(old, before), other, now)
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
        states = state_transfer.begun_over(states, program, (host.join, mine), view, now)
    kept = {path: query.kept_as(path) for path in states}
    return {f"{name}{OF}{place}": states[path] for path, (name, place) in kept.items()}


def _parts(
    query_group: bundle.QueryGroup | None, done: dict[str, SubplanStep], reports: tuple[SlideGrid, ...]
) -> Parts:
    if query_group is None:
        return Parts({}, done, reports=reports)
    lowest = max((path for path, _ in query_group.parts), key=len, default="")
    return Parts(dict(query_group.parts), done, {lowest: query_group.view}, query_group.reports)


def _news(unit: GeneralUnit, work: QueryWork, files: Sequence[chunk.OpenChunk], moving: Moving) -> News:
    own = delta_file.QUERY, work.query.files
    rows = {name: delta_file.sections(files, (*own, name, moving.shard)) for name in unit.streams}
    changes = {name: _changes(unit, name, moving, files) for name in unit.tables}
    return News(
        work.clock,
        {name: pl.concat(frames) for name, frames in rows.items() if frames},
        {name: frame for name, frame in changes.items() if frame is not None},
        changed=work.changed,
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
    unit: GeneralUnit, table: str, moving: Moving, files: Iterable[chunk.OpenChunk]
) -> pl.DataFrame | None:
    """The changes of a table that rows of this shard can meet."""
    found = delta_file.sections(files, (delta_file.TABLE, table))
    if not found or (not unit.placement and moving.shard):
        return None
    frame, column = pl.concat(found), unit.table_places[table]
    if column is None:
        return frame
    kinds = {column: unit.tables[table].schema.column(column).type}
    return dict(split(frame, kinds, moving.shards)).get(moving.shard)
