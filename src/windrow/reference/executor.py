"""Runs one query on the oracle: takes micro-batches, keeps the clock, and hands out what became final.

Everything is evaluated from scratch each time. What was handed out before must be found again: an answer
that would have to be revised is a defect, and is reported as one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from windrow.algebra.finality import is_final_by_group
from windrow.algebra.operators import TableJoin
from windrow.algebra.plan import Emit, Scan, Window
from windrow.errors import DataError, StateError, nearest
from windrow.reference.intake import StreamIntake
from windrow.reference.streams import Evaluation
from windrow.reference.tables import TableIntake
from windrow.reference.world import Values, World
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from windrow.algebra.changes import Change


class ReferenceExecutor:
    """One standing query over pushed rows."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self.windows = [node for node in emit.walk() if isinstance(node, Window)]
        streams = {stream.name: stream for window in self.windows for stream in window.streams}
        tables = [node.table.table for node in emit.walk() if isinstance(node, TableJoin)]
        self.streams = {name: StreamIntake(stream) for name, stream in streams.items()}
        self.tables = {table.name: TableIntake(table) for table in tables}
        self.handed_out: Counter[Change] = Counter()
        self.now = 0

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """One micro-batch of arrivals."""
        clock = self.clock
        kept_from = clock + 1 if all(leaf.spec.grid for leaf in self.emit.leaves) else clock
        self._stream(stream).push(rows, self.now, kept_from)

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream (or changes of a table) below `progress`."""
        if name in self.tables:
            self.tables[name].punctuate(progress)
        else:
            self._stream(name).punctuate(progress, where)

    def update(self, table: str, at: int, insert: Sequence[Values], delete: Sequence[Values]) -> None:
        """A table changes at an instant, which must not lie in what is already answered."""
        if table not in self.tables:
            raise DataError(f"no table `{table}` in this query", hint=nearest(table, self.tables))
        if at < self.clock:
            raise DataError(
                f"table `{table}` cannot change at {at}: answers up to {self.clock} are given",
                code="late-update",
                hint="update tables before their streams move on, or hold the clock with punctuate()",
            )
        self.tables[table].update(at, insert, delete)

    def advance(self, micros: int) -> None:
        """Let wall-clock time pass: idle sources may be left out."""
        self.now += micros
        for intake in self.streams.values():
            intake.tick(self.now)

    def finish(self) -> None:
        """The end of all inputs."""
        for intake in self.streams.values():
            intake.sealed = True

    def late(self, stream: str) -> list[Values]:
        """The rows that came too late and were not kept."""
        return list(self._stream(stream).late)

    @property
    def clock(self) -> Instant:
        """The least P of all inputs."""
        return self._clock(None, None)

    def take(self) -> list[Change]:
        """What became final since the last time, in order of delivery."""
        final = [change for world, clock in self._worlds() for change in self._changes(world, clock)]
        count = Counter(final)
        if self.handed_out - count:
            gone = next(iter(self.handed_out - count))
            raise StateError(f"{gone} was handed out as final, but is no longer part of the answer")
        new = count - self.handed_out
        self.handed_out = count
        return sorted(new.elements(), key=lambda change: change.place)

    def relation(self, at: int) -> Counter[Values]:
        """The answer relation at an instant."""
        evaluation = Evaluation(self.emit, self._world(), self.clock)
        if not evaluation.is_final(at):
            raise DataError(
                f"the answer at {at} is not final yet: the clock is at {self.clock}",
                code="not-final",
                hint="push, punctuate() or finish() first",
            )
        return evaluation.relation(at)

    def _stream(self, name: str) -> StreamIntake:
        if name not in self.streams:
            raise DataError(f"no stream `{name}` in this query", hint=nearest(name, self.streams))
        return self.streams[name]

    def _world(self) -> World:
        return World(
            {name: tuple(intake.rows) for name, intake in self.streams.items()},
            {name: tuple(intake.changes) for name, intake in self.tables.items()},
        )

    def _changes(self, world: World, clock: Instant) -> list[Change]:
        return [] if clock == -INFINITY else Evaluation(self.emit, world, clock).changes()

    def _worlds(self) -> Iterator[tuple[World, Instant]]:
        """The world and its clock; or, where groups are final by themselves, the part of each group."""
        intake = next((i for i in self.streams.values() if i.per), None)
        if intake is None or not is_final_by_group(self.emit, intake.stream, intake.per or ""):
            yield self._world(), self.clock
            return
        column = intake.stream.schema.index(intake.per or "")
        for value in dict.fromkeys(row.values[column] for row in intake.rows):
            yield self._world().restricted(intake.stream.name, column, value), self._clock(intake, value)

    def _clock(self, own: StreamIntake | None, source: Any) -> Instant:
        """The least P of all inputs; of `own`, only what this source promises counts."""
        known: list[Instant] = [table.progress for table in self.tables.values()]
        for window in self.windows:
            for scan in (origin for origin in window.origins if isinstance(origin, Scan)):
                intake, attribute = self.streams[scan.stream.name], window.attribute_of(scan)
                by_source = intake is own and attribute == scan.stream.wattr and not intake.sealed
                known.append(
                    intake.progress.progress_of(source) if by_source else intake.progress_on(attribute)
                )
        return min(known)
