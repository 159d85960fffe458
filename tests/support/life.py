"""A life of an engine without Spark: a connection whose epochs are pushed by the test."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tests.support.history import rows_of, table_of
from tests.support.oracle import named

from windrow.engine.declarations import register
from windrow.engine.engine import Arrival, WatermarkAdvance
from windrow.engine.tables import TableUpdate
from windrow.execution.local import HereJobs
from windrow.kernels.columnar.columns import rows_schema
from windrow.language.binder.bound_statements import RegisterQuery
from windrow.language.catalog import StandingQuery
from windrow.language.compile import compile_query
from windrow.session import Windrow
from windrow.sinks import Callback, MemorySink
from windrow.state.manifest import SourceState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Life(Windrow):
    """`push` is a micro-batch, `end` the end of the stream, `close` the end of the life in order, `vanish`
    what a crash leaves of a process. The next life begins over the same state."""

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

    # ------------------------------------------------------------ epochs

    def push(self, *rows: tuple[Any, ...], stream: str = "s", number: int | None = None) -> None:
        self.take((stream, rows), number=number)

    def take(self, *batches: tuple[str, Sequence[Any]], number: int | None = None) -> None:
        """Rows of several streams in one epoch; with a number, they are that batch of a script."""
        read = None if number is None else SourceState("script", {"batch": number})
        schemas = {name: rows_schema(self._engine.streams[name].stream.schema) for name, _ in batches}
        self._engine.epoch([Arrival(name, table_of(rows, schemas[name]), read) for name, rows in batches])

    def promise(self, progress: int, where: Mapping[str, Any] | None = None) -> None:
        self._engine.epoch(promises=[WatermarkAdvance("s", progress, where)])

    def pass_time(self, micros: int) -> None:
        self.time += micros
        self._engine.epoch()

    def end(self, *streams: str) -> None:
        self._engine.epoch(seals=list(streams or self._engine.streams))

    def follow(self, script: Sequence[Any], note: Callable[[int, Any], None] = lambda *_: None) -> None:
        """Batches of streams, and whole contents of tables, from where the state is in the script; `note` is
        told when a content began."""
        batches = [each.read.offsets.get("batch", -1) for each in self._engine.streams.values()]
        contents = [int(each.read.fingerprint or -1) for each in self._engine.tables.values()]
        for number in range(max(batches + contents) + 1, len(script)):
            name, what = named(script[number])
            if name in self._engine.tables:
                read = SourceState(fingerprint=str(number))
                self._engine.change([TableUpdate(name, content=what, read=read)])
                note(number, self.tables[name].changed)
            else:
                self.take((name, what), number=number)

    # ------------------------------------------------------------ queries

    def add(
        self,
        name: str,
        text: str,
        sink: str | None = None,
        function: Callable[[Any, int], None] | None = None,
        **how: Any,
    ) -> None:
        """A query that the next commit will know."""
        query = StandingQuery(name, compile_query(text, self._catalog), sink, **how)
        self._catalog.add(query)
        given = Callback(name, function) if function else self._sink_of(query)
        try:
            register(self._engine, RegisterQuery(query), given)
        except BaseException:
            self._catalog.drop("QUERY", name)
            raise

    def answers(self, query: str) -> Counter[Any]:
        """What the query has told in this life."""
        return Counter(row for rows in self.told(query).values() for row in rows)

    def told(self, query: str) -> dict[int, list[tuple[Any, ...]]]:
        """The same, by commit."""
        sink = self._engine.queries[query].sink
        assert isinstance(sink, MemorySink)
        return {commit: rows_of(table) for commit, table in sink._tables.items()}

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(rows_of(self.queries[query].results()))

    # ------------------------------------------------------------ the end

    def vanish(self) -> None:
        """No delivery, no commit; the system takes the locks back."""
        for kept in self._engine.archives.kept.values():
            kept.archive._log._lock.release()
        self._engine.log._lock.release()  # type: ignore[union-attr]
        self._engine = None  # type: ignore[assignment]
        self._closed = True
