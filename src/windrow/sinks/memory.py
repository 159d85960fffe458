"""`memory:`: the answers stay in this process, to be asked for."""

from __future__ import annotations

from threading import Lock
from typing import Self

import pyarrow as pa

from windrow.sinks.delivery import Delivery, Opening, Sink, SinkUrl


class MemorySink(Sink):
    """Keeps everything. Delivering and asking may happen in different threads.

    >>> from windrow.sinks.delivery import Delivery
    >>> sink, table = MemorySink(), pa.table({"at": [5], "k": ["a"]})
    >>> for commit in (1, 2, 2):
    ...     sink.deliver(Delivery("top", commit, table.schema, lambda: iter([table])))
    >>> sink.table().num_rows, sink.since(1).num_rows, sink.last
    (2, 1, 2)
    """

    guarantee = "exactly once while this process runs: kept in its memory, and lost with it"

    def __init__(self, schema: pa.Schema | None = None) -> None:
        self._lock = Lock()
        self._schema = schema
        self._tables: dict[int, pa.Table] = {}
        #: the newest commit that was delivered, 0 before the first
        self.last = 0

    @classmethod
    def check(cls, url: SinkUrl) -> None:
        url.nowhere()
        url.allow(())

    @classmethod
    def open(cls, url: SinkUrl, opening: Opening) -> Self:
        return cls()

    def deliver(self, delivery: Delivery) -> None:
        pieces = list(delivery.pieces())
        with self._lock:
            self._schema = delivery.schema
            if pieces:
                self._tables[delivery.commit] = pa.concat_tables(pieces)
            self.last = max(self.last, delivery.commit)

    def table(self) -> pa.Table:
        """Everything so far, in the order of the commits. Without columns, if nothing ever was delivered."""
        return self._concatenated(None)

    def since(self, commit: int) -> pa.Table:
        """What came after a commit: with `last` of an earlier look, what is new."""
        return self._concatenated(commit)

    def close(self) -> None:
        """Nothing is held open; the tables can still be asked for."""

    def _concatenated(self, after: int | None) -> pa.Table:
        with self._lock:
            schema, tables = self._schema, dict(self._tables)
        wanted = [tables[commit] for commit in sorted(tables) if after is None or commit > after]
        if wanted:
            return pa.concat_tables(wanted)
        return schema.empty_table() if schema is not None else pa.table({})
