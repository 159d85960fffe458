"""Runs one query on the oracle: takes micro-batches, keeps the clock, and hands out what became final.

Everything is evaluated from scratch each time. What was handed out before must be found again: an answer
that would have to be revised is a defect, and is reported as one.

What a stream accepts: lateness is judged against the punctuation committed before each micro-batch.

What a table accepts: changes at instants. A table nobody punctuates is taken to be complete.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from windrow.algebra import Emit, Scan, Window, catalog, expressions, finality, operators as ops
from windrow.algebra.values import Change, canonical, canonical_rows, not_final
from windrow.errors import DataError, StateError, nearest
from windrow.reference.expressions import compile_expression
from windrow.reference.rows import AcceptedRow, TableChange, Values, World
from windrow.reference.streams import QueryEvaluation
from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Instant, check_instant
from windrow.windows.progress import Batch, is_late


@dataclass
class StreamIntake:
    """One stream's accepted rows, late rows and progress."""

    stream: catalog.Stream
    rows: list[AcceptedRow] = field(default_factory=list)
    late: list[Values] = field(default_factory=list)
    sealed: bool = False

    def __post_init__(self) -> None:
        self.progress = self.stream.progress.policy.start()
        self.per = self.stream.progress.per
        self.also = {name: policy.start() for name, policy in self.stream.also}
        self._last_arrival: Instant = -INFINITY

    def push(self, batch: Sequence[Sequence[Any]], now: int, clock_of: Callable[[Any], Instant]) -> None:
        """Take a micro-batch, or none of it. `clock_of` tells how far answers about a source are given."""
        if self.sealed:
            raise DataError(
                f"stream `{self.stream.name}` is sealed: its end was announced",
                code="sealed",
                hint="push before finish()",
            )
        values = canonical_rows(self.stream.schema, batch, f"stream `{self.stream.name}`")
        only_marks = [self._evaluated(self.stream.progress.when, row) is True for row in values]
        moments = self._moments(values, only_marks, now)
        data = [(row, t) for row, t, only in zip(values, moments, only_marks, strict=True) if not only]
        self._refuse_missing_moments(data)
        for _, moment in data:
            check_instant(moment, f"`{self.stream.wattr}` of stream `{self.stream.name}`")
        for row in values if self.stream.progress.mark else ():
            mark = self._evaluated(self.stream.progress.mark, row)
            check_instant(mark, f"punctuation of stream `{self.stream.name}`")
        self._accept(data, now, clock_of)
        rule = self.stream.progress
        seen = Batch(
            wattr=moments,
            sources=[self._source(row) for row in values] if self.per else None,
            marks=[self._evaluated(rule.mark, row) for row in values] if rule.mark else None,
            only_mark=only_marks,
        )
        self.progress = rule.policy.observe(self.progress, seen, now)
        self._last_arrival = max(self._last_arrival, now)

    def _refuse_missing_moments(self, data: Sequence[tuple[Values, int | None]]) -> None:
        missing = next((place for place, (_, moment) in enumerate(data, start=1) if moment is None), None)
        if missing is not None:
            raise DataError(
                f"stream `{self.stream.name}`: row {missing} of the batch has no `{self.stream.wattr}`",
                code="null-wattr",
                hint="the windowing attribute cannot be NULL; filter such rows out before",
            )

    def _accept(
        self, data: Sequence[tuple[Values, int | None]], now: int, clock_of: Callable[[Any], Instant]
    ) -> None:
        first = len(self.rows)
        for row, moment in data:
            source = self._source(row)
            late = moment is not None and is_late(self.progress, moment, source)
            if late and self.stream.late is not catalog.Late.KEEP:
                self.late.append(row)
            else:
                kept_at = clock_of(source) if late else -INFINITY
                late_on = tuple(
                    name
                    for name, p in self.also.items()
                    if (t := self._of(row, name)) is not None and is_late(p, t)
                )
                self.late += [row] * bool(late_on)
                self.rows.append(AcceptedRow(row, len(self.rows) + 1, now, kept_at, late_on))
        for name, policy in self.stream.also:
            came = [self._of(arrival.values, name) for arrival in self.rows[first:]]
            for value in came:
                check_instant(value, f"`{name}` of stream `{self.stream.name}`")
            self.also[name] = policy.observe(self.also[name], Batch(came), now)

    def tick(self, now: int) -> None:
        """Wall-clock time passed without rows: idle sources may be left out."""
        self.progress = self.stream.progress.policy.observe(self.progress, Batch(wattr=()), now)

    def progress_on(self, attribute: str) -> Instant:
        """P for a window on an attribute: the stream's own, the greatest row number or arrival time so far,
        or nothing known until the end."""
        if self.sealed:
            return INFINITY
        if attribute == self.stream.wattr:
            return self.progress.progress
        if attribute in self.also:
            return self.also[attribute].progress
        if attribute == ROW_NUM and self.rows:
            return len(self.rows)
        return self._last_arrival if attribute == ARRIVAL_TS else -INFINITY

    def punctuate(self, progress: Instant, where: Mapping[str, Any] | None, now: int) -> None:
        """A promise from outside: no more rows (with this value in this column) below `progress`."""
        check_instant(progress, f"punctuation of stream `{self.stream.name}`")
        if where is None:
            self.progress = self.progress.with_progress(progress)
            return
        column, value = self._promised(where)
        field = self.stream.schema.column(column)
        self.per = column
        self.progress = self.progress.with_progress_of(canonical(value, field.type, column), progress)
        self.tick(now)

    def _promised(self, where: Mapping[str, Any]) -> tuple[str, Any]:
        if len(where) != 1 or self.per not in (None, *where):
            raise DataError(
                f"punctuation of stream `{self.stream.name}` can be on the values of one column only",
                code="bad-punctuation",
                hint=f"use `{self.per or next(iter(where), '…')}` throughout",
            )
        return next(iter(where.items()))

    def _moments(
        self, values: Sequence[Values], only_marks: Sequence[bool], now: int
    ) -> Sequence[int | None]:
        """The windowing attribute of each row of a batch."""
        if self.stream.wattr == ARRIVAL_TS:
            return [now] * len(values)
        if self.stream.wattr == ROW_NUM:
            return [*accumulate((not only for only in only_marks), initial=len(self.rows))][1:]
        return [self._tick(self._of(row, self.stream.wattr)) for row in values]

    def _tick(self, value: Any) -> int | None:
        found = None if value is None else self.stream.domain.tick(value)
        if found is None and value is not None:
            raise DataError(f"{value} is no multiple of the RESOLUTION", code="malformed-row")
        return found

    def _of(self, row: Values, name: str) -> Any:
        return row[self.stream.schema.index(name)]

    def _source(self, row: Values) -> Any:
        return row[self.stream.schema.index(self.per)] if self.per else None

    def _evaluated(self, expression: expressions.Expression | None, row: Values) -> Any:
        return compile_expression(expression, self.stream.schema.names)(row, None) if expression else None


@dataclass
class TableHistory:
    """One table's history."""

    table: catalog.Table
    changes: list[TableChange] = field(default_factory=list)
    progress: Instant = INFINITY

    def __post_init__(self) -> None:
        self._rows: Counter[Values] = Counter()
        self._keys_used: set[Values] = set()

    def punctuate(self, progress: Instant, clock: Instant) -> None:
        """From now on the table holds the clock back to what it promises."""
        if self.progress == INFINITY and progress < clock:
            raise DataError(
                f"table `{self.table.name}` cannot hold the clock at {progress}: it is at {clock} already",
                code="late-punctuation",
                hint="punctuate a table before its streams move on",
            )
        self.progress = progress if self.progress == INFINITY else max(self.progress, progress)

    def update(self, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]) -> None:
        """Rows leave, then rows come; without any, nothing changes."""
        check_instant(at, f"a change of table `{self.table.name}`")
        last = self.changes[-1].at if self.changes else -INFINITY
        promised = self.progress if self.progress != INFINITY else last
        if at < max(last, promised):
            raise DataError(
                f"table `{self.table.name}` cannot change at {at}: it is known up to {max(last, promised)}",
                code="late-update",
                hint="changes of a table come in order, and not below what it was punctuated with",
            )
        where = f"table `{self.table.name}`"
        gone = tuple(canonical_rows(self.table.schema, delete, where))
        new = tuple(canonical_rows(self.table.schema, insert, where))
        self._delete(gone)
        self._insert(new)
        if gone or new:
            self.changes.append(TableChange(at, new, gone))

    def _delete(self, rows: Sequence[Values]) -> None:
        missing = Counter(rows) - self._rows
        if missing:
            raise DataError(
                f"table `{self.table.name}` has no row {next(iter(missing))!r} to delete", code="no-such-row"
            )
        self._rows -= Counter(rows)

    def _insert(self, rows: Sequence[Values]) -> None:
        places = [self.table.schema.index(name) for name in self.table.key]
        present = {tuple(row[place] for place in places) for row in self._rows} if places else set()
        for row in rows:
            key = tuple(row[place] for place in places)
            reused = self.table.kind is catalog.TableKind.NRR and key in self._keys_used
            if places and (key in present or reused):
                raise DataError(
                    f"table `{self.table.name}` has, or had, a row with key {key!r}",
                    code="key-reused",
                    hint="keys of an NRR table are not used again: old results would seem to mean it",
                )
            present.add(key)
            self._keys_used.add(key)
        self._rows += Counter(rows)


class ReferenceExecutor:
    """One standing query over pushed rows."""

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self.windows = [node for node in emit.walk() if isinstance(node, Window)]
        streams = {stream.name: stream for window in self.windows for stream in window.streams}
        tables = [node.table.table for node in emit.walk() if isinstance(node, ops.TableJoin)]
        self.streams = {name: StreamIntake(stream) for name, stream in streams.items()}
        self.tables = {table.name: TableHistory(table) for table in tables}
        self.handed_out: Counter[Change] = Counter()
        #: how far the clock had come before the input ended
        self.reached: Instant = -INFINITY
        self.now = 0
        self._evaluated: QueryEvaluation | None = None

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
        """The late rows that were not kept."""
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

    def _evaluation(self, clock: Instant) -> QueryEvaluation:
        """What was asked last is often asked again: the relation at one instant after the other."""
        world = World(
            {name: tuple(intake.rows) for name, intake in self.streams.items()},
            {name: tuple(history.changes) for name, history in self.tables.items()},
        )
        asked, last = (world, clock, self.reached), self._evaluated
        if last is None or asked != (last.world, last.clock, last.reached):
            self._evaluated = last = QueryEvaluation(self.emit, *asked)
        return last

    def _group_place(self, intake: StreamIntake) -> int | None:
        """Where in the answer the column is by whose values it becomes final, if it does so by group."""
        return finality.group_place(self.emit, intake.stream, intake.per) if intake.per else None

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
