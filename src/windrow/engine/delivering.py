"""Giving every sink what is committed and it does not have yet.

Where a sink fails, its rows go on waiting in the outbox, and those of others go out. What was delivered is
told to the next commit, which names it no more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.engine.outgoing import Outgoing
from windrow.engine.published import published_schema, rows_schema
from windrow.errors import SinkError
from windrow.spark.tasks.reports import late_section
from windrow.state.crash import crash_point

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.engine.records import QueryRecord, StreamRecord
    from windrow.spark.sinks import Sink
    from windrow.state.entries import OutboxEntry
    from windrow.state.store import Store


@dataclass
class Delivering:
    """What has been delivered since the last commit, and the sinks of late rows."""

    #: told of each sink that fails, and with None of each that works
    tell: Callable[[str, SinkError | None], None]
    late_sinks: dict[str, Sink] = field(default_factory=dict)
    #: which sections of which outbox files the sinks have, since the last commit
    done: dict[str, set[str]] = field(default_factory=dict)
    #: seconds that the last delivery of an epoch took
    seconds: float = 0.0
    #: the columns of each query's answers
    _schemas: dict[str, pa.Schema] = field(default_factory=dict)

    def deliver(
        self,
        store: Store,
        outbox: Sequence[OutboxEntry],
        queries: Iterable[QueryRecord],
        streams: Mapping[str, StreamRecord],
    ) -> None:
        """All that waits, to all who wait."""
        outgoing = Outgoing(store, outbox, self.done)
        for record in queries:
            if record.sink is not None and outgoing.pending(record.id):
                self._give(record.query.name, record.id, record.sink, self._schema(record), outgoing)
        for name, sink in self.late_sinks.items():
            self._give(name, late_section(name), sink, rows_schema(streams[name].stream.schema), outgoing)

    def timed(self, delivery: Callable[[], None]) -> None:
        """The delivery of an epoch, whose time is part of what the epoch costs."""
        began = time.perf_counter()
        delivery()
        self.seconds = time.perf_counter() - began

    def mark(self, entries: Sequence[OutboxEntry], section: str) -> None:
        """The next commit need not name them for this section any more."""
        for entry in entries:
            self.done.setdefault(entry.ref.name, set()).add(section)

    def forget(self, query: str) -> None:
        """A query is gone."""
        self._schemas.pop(query, None)

    def _schema(self, record: QueryRecord) -> pa.Schema:
        if record.id not in self._schemas:
            self._schemas[record.id] = published_schema(record.query.plan)
        return self._schemas[record.id]

    def _give(self, name: str, section: str, sink: Sink, schema: pa.Schema, outgoing: Outgoing) -> None:
        for commit, waiting in outgoing.pending(section):
            try:
                sink.deliver(outgoing.delivery(name, section, commit, waiting, schema))
            except SinkError as error:
                self.tell(name, error)
                return
            self.tell(name, None)
            crash_point("sink-delivered")
            self.mark(waiting, section)
