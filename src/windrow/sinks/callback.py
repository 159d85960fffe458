"""A Python function as a sink."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from windrow.errors import SinkError
from windrow.sinks.delivery import KEPT, Delivery, Sink


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
        self._query = query
        self._function = function

    def deliver(self, delivery: Delivery) -> None:
        pieces = list(delivery.pieces())
        if not pieces:
            return
        table = pa.concat_tables(pieces)
        try:
            self._function(table, delivery.commit)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also SystemExit: user code does not end the engine
            raise self._failed(delivery.commit, error) from error

    def close(self) -> None:
        """Nothing is held open."""

    def _failed(self, commit: int, error: BaseException) -> SinkError:
        name = getattr(self._function, "__qualname__", None) or repr(self._function)
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return SinkError(
            f"the function `{name}`, the sink of query `{self._query}`, failed at commit {commit}: {what}",
            code="callback-failed",
            hint=f"mend the function; {KEPT}",
        )
