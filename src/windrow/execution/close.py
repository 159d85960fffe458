"""The close job's tasks: each shard takes in what is new, answers what is due and forgets what expired.

A nested query has a level in each stage of the job: the answers of one stage travel to the shards of the
next, as states of its panes. Stage `n` of shard `s` has a state of its own, numbered n·shards + s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from windrow.execution import delta_file, ingest, reports as task_reports
from windrow.execution.relational import OF, Moving, QueryWork, admitted, advance, replanned
from windrow.execution.shared import SharedWork, operator_of, pane_grids_of
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar import columns, hashing
from windrow.kernels.panes import pane_tables, program
from windrow.kernels.shared import kernel as shared_kernel
from windrow.kernels.shared.shared_state import instants
from windrow.kernels.state import Delta, State
from windrow.physical.units import GeneralUnit, SlidingUnit
from windrow.state import manifest, names
from windrow.state.shard import Shard, change_shard
from windrow.windows.domain import INFINITY


@dataclass(frozen=True)
class Routed:
    """Pane states for a level of a query, from one shard of the stage below to one of this stage."""

    query: str
    tables: Mapping[str, pa.Table]
    latest: int | None


@dataclass(frozen=True)
class CloseTask:
    """One stage of the close job."""

    stage: int
    place: delta_file.WriteTarget
    work: tuple[QueryWork, ...]
    #: the state files of each shard of this stage
    files: Mapping[int, tuple[manifest.ChunkRef, ...]]
    #: the queries and shared states there are; state of any other is let go of
    alive: frozenset[str] = frozenset()
    #: shared states to move, each for all its queries
    shared: tuple[SharedWork, ...] = ()
    #: which shard a task is of; the task itself knows only when it runs
    shard: Callable[[], int] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task_reports.undisturbed()
        rows = list(batches)
        if self.shard is None:
            run = _Run(self, int(rows[0].column(0)[0].as_py()), [])
        else:
            run = _Run(self, self.shard(), rows)
        yield from run.passed_on
        yield task_reports.message(task_reports.DONE, run.run(), run.shard)
        yield from run.routed


class _Run:
    """One shard of one stage: its state `before`, and what the stage below has `received` for it."""

    def __init__(self, task: CloseTask, shard: int, received: list[pa.RecordBatch]) -> None:
        self.task, self.shard, self.place = task, shard, task.place
        self.number = task.stage * task.place.shards + shard
        self.before = Shard(task.place.store, task.files.get(self.number, ()))
        self.outbox = delta_file.Spool(task.place, self.number, names.OUTBOX)
        self.report = task_reports.Closed(self.number, task.stage)
        self.routed: list[pa.RecordBatch] = []
        self.passed_on: list[pa.RecordBatch] = []
        self.incoming: dict[str, list[Routed]] = {}
        #: query groups, by the names under which their rows are filed
        self.moving: dict[str, Moving] = {}
        for batch in received:
            found: Routed
            for found in task_reports.contents(batch, task_reports.ROUTED):
                self.incoming.setdefault(found.query, []).append(found)
            for place, kind in enumerate(batch.column("kind").to_pylist()):
                if kind != task_reports.ROUTED:
                    self.passed_on.append(batch.slice(place, 1))

    def run(self) -> task_reports.Closed:
        """Move every query that has a level here."""
        task, before = self.task, self.before
        files: list[manifest.ChunkRef] = []
        with self.outbox, change_shard(before, self.place.new_name(self.number), files) as change:

            def keep(states: Mapping[str, State]) -> None:
                for operator, state in states.items():
                    change.put(operator, state)

            for work in task.work:
                if work.query.unit.stages > task.stage:
                    with task_reports.timed(self.report.seconds, work.query.name):
                        begins_anew = work.replaced is not None or work.host is not None
                        for operator in before.operators if begins_anew else ():
                            if operator.partition(OF)[0] == work.query.name:
                                change.drop(operator)
                        keep(self._moved(work))
            for moving in self.moving.values():
                keep(moving.states)
            self._share_alike()
            for common in task.shared if task.stage == 0 else ():
                with task_reports.timed(self.report.seconds, *(asker.query for asker in common.turn.askers)):
                    keep(self._shared(common))
            for operator in before.operators:
                if operator.partition(OF)[0] not in task.alive:
                    change.drop(operator)
        self.report.files, self.report.outbox = tuple(files), self.outbox.ref
        return self.report

    def _moved(self, work: QueryWork) -> Mapping[str, State]:
        """The next states of a query's operators; a fault, and none, if it cannot go on."""
        unit = work.query.unit
        try:
            if work.host is not None:
                return admitted(work.host, work.query, self.before, work.clock.now)
            if work.replaced is not None:
                return replanned(work.replaced, work.query, self.before, work.clock.now)
            return self._slid(work, unit) if isinstance(unit, SlidingUnit) else self._advanced(work, unit)
        except Exception as error:  # noqa: BLE001  whatever is wrong with one query must not stop the others
            self.report.faults[work.query.name] = task_reports.fault_of(error, work.query.name)
            return {}

    def _shared(self, work: SharedWork) -> Mapping[str, State]:
        """The next state of a shared state, all its queries being answered; a fault of each if that fails."""
        operator, shared_state = operator_of(work.name), work.turn.shared_state
        try:
            delta = pane_grids_of(
                delta_file.open_files(self.place.store, work.deltas), shared_state, self.shard
            )
            found = shared_kernel.advance(work.turn, self.before.state(operator), delta)
            followers = {asker.query: asker.followers for asker in work.turn.askers}
            for pack in found.packs:
                self.outbox.writer.add_pack(pack.table, pack.queries)
                at, first = instants(pack.table), 0
                for query, rows in pack.queries:
                    self.report.rows[query] += rows
                    for follower in followers[query]:
                        self.report.rows[follower.query] += int(
                            follower.wants(at[first : first + rows]).sum()
                        )
                    first += rows
            for query, error in found.faults.items():
                self.report.faults[query] = task_reports.fault_of(error, query)
            self.report.cells[work.name] = found.cells
            return {operator: found.state}
        except Exception as error:  # noqa: BLE001  whatever is wrong here must not stop other queries
            self.report.faults[work.name] = task_reports.fault_of(error, work.name)
            return {}

    def _slid(self, work: QueryWork, unit: SlidingUnit) -> Mapping[str, State]:
        levels, stage = unit.program.levels, self.task.stage
        operator = f"{work.query.name}{OF}{stage}"
        clock = work.clock if stage == 0 else work.clock.plain
        delta = self._delta(work, unit, levels[stage])
        kernel = levels[stage].kernel
        if work.drops is not None and len(levels) == stage + 1:
            kernel = kernel.without(work.drops)
        elif stage < len(work.unread) and (unread := work.unread[stage]) is not None:
            kernel = kernel.without(unread)
        moved, answers = kernel.advance(self.before.state(operator), delta, clock)
        if len(levels) > stage + 1:
            self._route(work.query.name, levels[stage + 1], answers, work.clock)
        else:
            self._give(work, (_complete(table, work, unit) for table in answers))
        return {operator: moved}

    def _advanced(self, work: QueryWork, unit: GeneralUnit) -> Mapping[str, State]:
        moving = self.moving.setdefault(work.query.files, Moving(self.shard, self.place.shards))
        files = delta_file.open_files(self.place.store, work.deltas)
        after, answers, pieces = advance(unit, work, files, self.before, moving)
        first: int | None = None
        if work.complete_from is not None and unit.memory is not None:
            first = work.complete_from + unit.memory
            answers = answers.filter(pc.greater_equal(answers.column(0), first))
        self._give(work, [answers])
        if work.lifetimes:
            lived = ingest.lived_rows(pieces, unit.program.emit.schema.names, first)
            if lived.height:
                self.outbox.writer.add(ingest.archived_section(work.query.name), lived.to_arrow())
        return after

    def _share_alike(self) -> None:
        """What a part took is the expense of all queries that have it."""
        users: dict[str, list[str]] = {}
        for work in self.task.work:
            for _, name in work.query.query_group.parts if work.query.query_group is not None else ():
                users.setdefault(name, []).append(work.query.name)
        for moving in self.moving.values():
            for name, part in moving.done.items():
                self.report.seconds[moving.by[name]] -= part.seconds
                for query in users[name]:
                    self.report.seconds[query] += part.seconds / len(users[name])

    def _delta(self, work: QueryWork, unit: SlidingUnit, level: program.Level) -> Delta:
        if self.task.stage == 0:
            files = delta_file.open_files(self.place.store, work.deltas)
            tables = delta_file.tables_of(files, work.query.name, unit.program, self.shard)
            if work.seed is not None:
                layouts = level.answers.measures.layouts
                brought = work.seed.tables(self.before.state(f"{work.seed.shared_state}{OF}0"), unit.program)
                both = {name: [each[name] for each in (brought, tables) if name in each] for name in layouts}
                tables = pane_tables.merge_tables(both, layouts)
            return Delta({name: frame.to_arrow() for name, frame in tables.items()}, work.latest)
        return _from_below(level, self.incoming.get(work.query.name, []), work.clock)

    def _give(self, work: QueryWork, answers: Iterable[pa.Table]) -> None:
        """Answers go to the outbox."""
        for answered in answers:
            table = answered if work.drops is None else _kept(answered, work.drops)
            if table.num_rows:
                self.outbox.writer.add(work.query.name, table)
                self.report.rows[work.query.name] += table.num_rows

    def _route(self, query: str, level: program.Level, answers: Iterator[pa.Table], clock: PaneClock) -> None:
        """The answers as pane states of the next level, each to the shard its group is in."""
        pieces: dict[int, dict[str, list[pl.DataFrame]]] = {}
        latest: int | None = None
        for table in answers:
            self.report.passed[query] += table.num_rows
            rows = level.nested(table)
            last = level.latest(rows, clock.plain)
            latest = max((w for w in (latest, last) if w is not None), default=None)
            for name, frame in level.tables(rows).items():
                for shard, part in hashing.split(frame, delta_file.key_types(level), self.place.shards):
                    pieces.setdefault(shard, {}).setdefault(name, []).append(part)
        # every shard learns which window is the last, those without rows too
        for shard in range(self.place.shards) if latest is not None else ():
            merged = pane_tables.merge_tables(pieces.get(shard, {}), level.answers.measures.layouts)
            tables = {name: frame.to_arrow() for name, frame in merged.items()}
            found = Routed(query, tables, latest)
            self.routed.append(task_reports.message(task_reports.ROUTED, found, shard))


def _complete(table: pa.Table, work: QueryWork, unit: SlidingUnit) -> pa.Table:
    """Without the windows that began before the query was there."""
    cut = unit.program.query.cut
    if work.complete_from is None or cut.range is None:
        return table
    frame = columns.to_frame(table)
    return frame.filter(pl.col("#at") - cut.range >= work.complete_from).to_arrow()


def _kept(table: pa.Table, drops: Callable[[int], bool]) -> pa.Table:
    """Without the windows that are left out."""
    ends = table.column(0)
    gone = [end for end in pc.unique(ends).to_pylist() if drops(end)]
    return table.filter(pc.invert(pc.is_in(ends, pa.array(gone, ends.type)))) if gone else table


def _from_below(level: program.Level, routed: list[Routed], clock: PaneClock) -> Delta:
    found: dict[str, list[pl.DataFrame]] = {}
    for piece in routed:
        for name, table in piece.tables.items():
            found.setdefault(name, []).append(columns.to_frame(table))
    merged = pane_tables.merge_tables(found, level.answers.measures.layouts)
    known = [piece.latest for piece in routed if piece.latest is not None]
    reached = level.query.cut.due(clock.before)
    known += [int(reached)] if not known and abs(reached) != INFINITY else []
    return Delta({name: frame.to_arrow() for name, frame in merged.items()}, max(known, default=None))
