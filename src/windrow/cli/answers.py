"""The newest answers of a query, in bounded memory: what a live view shows and a shell watches."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windrow.sinks import Delivery, Sink

#: so many instants are kept, and so many rows of each
INSTANTS, ROWS = 100, 100


@dataclass(frozen=True)
class Answers:
    """What a query answered at one instant: its first rows, and how many there are."""

    at: Any
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    #: how many instants came up to this one
    number: int


class AnswersByQuery(dict[str, "LastAnswers"]):
    def sink(self, query: str) -> LastAnswers:
        self[query] = LastAnswers()
        return self[query]

    def beside(self, query: str, sink: Sink) -> Sink:
        """The sink that a query names; what it has taken is kept here, too."""
        return _Beside(sink, self.sink(query))


class _Beside(Sink):
    """A sink whose last answers are kept once it has taken them."""

    def __init__(self, sink: Sink, kept: LastAnswers) -> None:
        self._sink, self._kept = sink, kept
        self.guarantee, self.is_slow = sink.guarantee, sink.is_slow

    def deliver(self, delivery: Delivery) -> None:
        self._sink.deliver(delivery)
        self._kept.deliver(delivery)

    def close(self) -> None:
        self._sink.close()


class LastAnswers(Sink):
    """Keeps the answers of the last instants. Delivering and asking may happen in different threads.

    >>> from windrow.sinks import Delivery
    >>> sink, table = LastAnswers(), pa.table({"at": [5, 7, 7], "k": ["a", "b", "c"]})
    >>> sink.deliver(Delivery("top", 1, table.schema, lambda: iter([table])))
    >>> sink.last.at, sink.last.columns, sink.last.rows, [each.at for each in sink.since(0)]
    (7, ('k',), (('b',), ('c',)), [5, 7])
    """

    guarantee = "the last answers only, while this process runs"

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: deque[Answers] = deque(maxlen=INSTANTS)
        self._number = 0

    @property
    def last(self) -> Answers | None:
        with self._lock:
            return self._kept[-1] if self._kept else None

    def since(self, number: int) -> list[Answers]:
        with self._lock:
            return [answers for answers in self._kept if answers.number > number]

    def deliver(self, delivery: Delivery) -> None:
        for piece in delivery.pieces():
            ats = piece.column(0)
            instants = pc.unique(ats)
            self._number += max(0, len(instants) - INSTANTS)
            for at in instants[-INSTANTS:]:
                self._keep(at.as_py(), piece.filter(pc.equal(ats, at)))

    def _keep(self, at: Any, found: pa.Table) -> None:
        shown = found.slice(0, ROWS).drop_columns(found.column_names[:1])
        rows = tuple(tuple(row.values()) for row in shown.to_pylist())
        with self._lock:
            before = self._kept[-1] if self._kept else None
            if before is not None and before.at == at:  # the rest of an instant that came in pieces
                both = (before.rows + rows)[:ROWS]
                self._kept[-1] = replace(before, rows=both, total=before.total + found.num_rows)
                return
            self._number += 1
            self._kept.append(Answers(at, tuple(shown.column_names), rows, found.num_rows, self._number))
