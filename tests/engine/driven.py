"""A connection whose engine needs no Spark: epochs are pushed by the test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.engine.world import COLUMNS, OPTIONS, rows_of, table_of

from windrow.engine.engine import Arrival, WatermarkAdvance
from windrow.execution.local import HereJobs
from windrow.session import Windrow
from windrow.state.manifest import SourceState

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping

STREAM = f"CREATE STREAM s ({COLUMNS}) {OPTIONS}"


class Driven(Windrow):
    """`push` is a micro-batch, `end` the end of the stream, `vanish` what a crash leaves of a process."""

    def __init__(self, state: Any, shards: int | None = None) -> None:
        context = SimpleNamespace(environment={}, master="local", defaultParallelism=2)
        no_spark: Any = SimpleNamespace(sparkContext=context)
        super().__init__(no_spark, state, shards=shards)
        self._engine.jobs = HereJobs()
        self.time = 0
        self._engine.now = lambda: self.time

    @property
    def engine(self) -> Any:
        return self._engine

    def push(self, *rows: tuple[Any, ...], stream: str = "s", number: int | None = None) -> None:
        read = None if number is None else SourceState("script", {"batch": number})
        self._engine.epoch([Arrival(stream, table_of(rows), read)])

    def promise(self, progress: int, where: Mapping[str, Any] | None = None) -> None:
        self._engine.epoch(promises=[WatermarkAdvance("s", progress, where)])

    def pass_time(self, micros: int) -> None:
        self.time += micros
        self._engine.epoch()

    def end(self) -> None:
        self._engine.epoch(seals=["s"])

    def vanish(self) -> None:
        """No delivery, no commit; the system takes the lock back."""
        self._engine.log._lock.release()  # type: ignore[union-attr]
        self._engine = None  # type: ignore[assignment]
        self._closed = True

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(rows_of(self.queries[query].results()))


def as_rows(answers: Counter[Any]) -> list[tuple[Any, ...]]:
    """What the oracle says, as a list to compare with."""
    return sorted(answers.elements())
