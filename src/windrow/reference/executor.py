"""Runs one query on the oracle: takes micro-batches, keeps the clock, and hands out what became final.

Everything is evaluated from scratch each time. What was handed out before must be found again: an answer
that would have to be revised is a defect, and is reported as one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from windrow.algebra.changes import not_final
from windrow.algebra.finality import group_place
from windrow.algebra.operators import TableJoin
from windrow.algebra.plan import Emit, Scan, Window
from windrow.errors import DataError, StateError, nearest
from windrow.reference.intake import StreamIntake
from windrow.reference.streams import Evaluation
from windrow.reference.tables import TableIntake
from windrow.reference.world import Values, World
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        #: how far the clock had come before the input ended
        self.reached: Instant = -INFINITY
        self.now = 0

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """One micro-batch of arrivals."""
        intake = self._stream(stream)
        own = intake if self._group_place(intake) is not None else None
        intake.push(rows, self.now, lambda source: self._clock(own, source))

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream (or changes of a table) below `progress`."""
        if name in self.tables:
            self.tables[name].punctuate(progress, self._furthest_clock())
        else:
            self._stream(name).punctuate(progress, where, self.now)

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        """A table changes at an instant, which must not lie in what is already answered."""
        if table not in self.tables:
            raise DataError(f"no table `{table}` in this query", hint=nearest(table, self.tables))
        clock = self._furthest_clock()
        if at < clock:
            raise DataError(
                f"table `{table}` cannot change at {at}: answers up to {clock} are given",
                code="late-update",
                hint="update tables before their streams move on, or hold the clock with punctuate()",
            )
        self.tables[table].update(at, insert, delete)

    def advance(self, micros: int) -> None:
        """Let wall-clock time pass: idle sources may be left out."""
        if micros < 0:
            raise DataError(f"time does not go back by {-micros} microseconds", code="bad-value")
        self.now += micros
        for intake in self.streams.values():
            intake.tick(self.now)

    def finish(self) -> None:
        """The end of all inputs."""
        self.reached = max(self.reached, self._furthest_clock() if self.clock != INFINITY else -INFINITY)
        for intake in self.streams.values():
            intake.sealed = True
        for table in self.tables.values():
            table.progress = INFINITY

    def late(self, stream: str) -> list[Values]:
        """The rows that came too late and were not kept."""
        return list(self._stream(stream).late)

    @property
    def clock(self) -> Instant:
        """The least P of all inputs."""
        return self._clock(None, None)

    def take(self) -> list[Change]:
        """What became final since the last time, in order of delivery."""
        count = Counter(self._final_changes())
        if self.handed_out - count:
            gone = next(iter(self.handed_out - count))
            raise StateError(f"{gone} was handed out as final, but is no longer part of the answer")
        new = count - self.handed_out
        self.handed_out = count
        return sorted(new.elements(), key=lambda change: change.place)

    def _final_changes(self) -> list[Change]:
        """What is final by the clock; or, where groups are final by themselves, by the clock of its group."""
        evaluation = self._evaluation(self._furthest_clock())
        grouped = ((intake, self._group_place(intake)) for intake in self.streams.values())
        intake, place = next(((i, p) for i, p in grouped if p is not None), (None, None))
        if place is None:
            return evaluation.changes()
        return [
            change
            for change in evaluation.changes()
            if evaluation.is_final(change.at, self._clock(intake, change.row[place]))
        ]

    def relation(self, at: int) -> Counter[Values]:
        """The answer relation at an instant."""
        evaluation = self._evaluation(self.clock)
        if not evaluation.is_final(at):
            raise not_final(at, self.clock)
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

    def _evaluation(self, clock: Instant) -> Evaluation:
        return Evaluation(self.emit, self._world(), clock, self.reached)

    def _group_place(self, intake: StreamIntake) -> int | None:
        """Where in the answer the column is by whose values it becomes final, if it does so by group."""
        return group_place(self.emit, intake.stream, intake.per) if intake.per else None

    def _furthest_clock(self) -> Instant:
        """How far any answer is given."""
        clocks = [self.clock]
        for intake in self.streams.values():
            if self._group_place(intake) is not None:
                clocks += [self._clock(intake, source) for source in intake.progress.sources]
        return max(clocks)

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
