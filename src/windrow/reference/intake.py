"""What a stream accepts: lateness is judged against the punctuation committed before each micro-batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from windrow.algebra.catalog import Late, Stream
from windrow.algebra.values import canonical, canonical_rows
from windrow.errors import DataError
from windrow.reference.expressions import compile_expression
from windrow.reference.world import Arrival, Values
from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Instant, check_instant
from windrow.windows.progress import Batch, is_late

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windrow.algebra.expressions import Expression


@dataclass
class StreamIntake:
    """One stream's accepted rows, late rows and progress."""

    stream: Stream
    rows: list[Arrival] = field(default_factory=list)
    late: list[Values] = field(default_factory=list)
    sealed: bool = False

    def __post_init__(self) -> None:
        self.progress = self.stream.progress.policy.start()
        self.per = self.stream.progress.per
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
        self._refuse_marks_out_of_reach(values)
        self._accept(data, now, clock_of)
        self._observe(values, moments, only_marks, now)

    def _refuse_missing_moments(self, data: Sequence[tuple[Values, int | None]]) -> None:
        missing = next((place for place, (_, moment) in enumerate(data, start=1) if moment is None), None)
        if missing is not None:
            raise DataError(
                f"stream `{self.stream.name}`: row {missing} of the batch has no `{self.stream.wattr}`",
                code="null-wattr",
                hint="the windowing attribute cannot be NULL; filter such rows out before",
            )

    def _refuse_marks_out_of_reach(self, values: Sequence[Values]) -> None:
        for row in values if self.stream.progress.mark else ():
            mark = self._evaluated(self.stream.progress.mark, row)
            check_instant(mark, f"punctuation of stream `{self.stream.name}`")

    def _accept(
        self, data: Sequence[tuple[Values, int | None]], now: int, clock_of: Callable[[Any], Instant]
    ) -> None:
        for row, moment in data:
            source = self._source(row)
            late = moment is not None and is_late(self.progress, moment, source)
            if late and self.stream.late is not Late.KEEP:
                self.late.append(row)
            else:
                kept_at = clock_of(source) if late else -INFINITY
                self.rows.append(Arrival(row, len(self.rows) + 1, now, kept_at))

    def _observe(
        self, values: Sequence[Values], moments: Sequence[int | None], only_marks: Sequence[bool], now: int
    ) -> None:
        rule = self.stream.progress
        batch = Batch(
            wattr=moments,
            sources=[self._source(row) for row in values] if self.per else None,
            marks=[self._evaluated(rule.mark, row) for row in values] if rule.mark else None,
            only_mark=only_marks,
        )
        self.progress = rule.policy.observe(self.progress, batch, now)
        self._last_arrival = max(self._last_arrival, now)

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
        return [row[self.stream.schema.index(self.stream.wattr)] for row in values]

    def _source(self, row: Values) -> Any:
        return row[self.stream.schema.index(self.per)] if self.per else None

    def _evaluated(self, expression: Expression | None, row: Values) -> Any:
        return compile_expression(expression, self.stream.schema.names)(row, None) if expression else None
