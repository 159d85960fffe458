"""Sinks in this process: `memory:`, whose answers stay to be asked for, and a Python function."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Self

import pyarrow as pa

from windrow.errors import SinkError
from windrow.sinks.delivery import KEPT, Delivery, Opening, Sink, SinkUrl, named


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

    def __init__(self) -> None:
        self._lock = Lock()
        self._schema = pa.schema([])
        self._tables: dict[int, pa.Table] = {}
        #: the newest commit that was delivered, 0 before the first
        self.last = 0

    @classmethod
    def of(cls, url: SinkUrl) -> Callable[[Opening], Self]:
        url.nowhere()
        url.allow(())
        return lambda opening: cls()

    def deliver(self, delivery: Delivery) -> None:
        pieces = list(delivery.pieces())
        with self._lock:
            self._schema = delivery.schema
            if pieces:
                self._tables[delivery.commit] = pa.concat_tables(pieces)
            self.last = max(self.last, delivery.commit)

    def table(self) -> pa.Table:
        """Everything so far, in the order of the commits. Without columns, if nothing ever was delivered."""
        return self.since(0)

    def since(self, commit: int) -> pa.Table:
        """What came after a commit: with `last` of an earlier look, what is new."""
        with self._lock:
            schema, tables = self._schema, dict(self._tables)
        wanted = [tables[number] for number in sorted(tables) if number > commit]
        return pa.concat_tables(wanted) if wanted else schema.empty_table()


class Callback(Sink):
    """Calls `function(table, commit)` once per commit that has rows, with all of them.

    >>> from windrow.sinks.delivery import Delivery
    >>> sink = Callback("top", lambda table, commit: print(commit, table.num_rows))
    >>> table = pa.table({"at": [5]})
    >>> sink.deliver(Delivery("top", 42, table.schema, lambda: iter([table, table])))
    42 2
    """

    guarantee = (
        "at least once: after a restart the function may be called again with the same commit and rows"
    )

    def __init__(self, query: str, function: Callable[[pa.Table, int], Any]) -> None:
        self._query, self._function = query, function

    def deliver(self, delivery: Delivery) -> None:
        pieces = list(delivery.pieces())
        if not pieces:
            return
        try:
            self._function(pa.concat_tables(pieces), delivery.commit)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit: user code does not end the engine
            name = getattr(self._function, "__qualname__", None) or repr(self._function)
            raise SinkError(
                f"the function `{name}`, the sink of query `{self._query}`, failed at commit"
                f" {delivery.commit}: {named(error)}",
                code="callback-failed",
                hint=f"mend the function; {KEPT}",
            ) from error
