"""What a task tells the driver: names of files, counts and maxima, never rows.

A report travels as one row of bytes. Rows for the next stage of the same job travel the same way, each to the
shard it is for.
"""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import pyarrow as pa

from windrow.algebra.shipments import packed, unpacked
from windrow.errors import WindrowError
from windrow.kernels.intake import Observed
from windrow.state import manifest, names


@contextmanager
def timed(spent: dict[str, float], *queries: str) -> Iterator[None]:
    """Add what the block takes to what queries have spent; those that are answered together share alike.

    >>> spent = {}
    >>> for _ in range(2):
    ...     with timed(spent, "q"):
    ...         pass
    >>> list(spent), spent["q"] > 0
    (['q'], True)
    """
    began = perf_counter()
    try:
        yield
    finally:
        each = (perf_counter() - began) / max(1, len(queries))
        for query in queries:
            spent[query] = spent.get(query, 0.0) + each


#: the columns of what tasks give, as Spark spells them
SCHEMA = "target int, kind string, payload binary"
_ARROW = pa.schema([("target", pa.int32()), ("kind", pa.string()), ("payload", pa.binary())])
DONE, ROUTED = "done", "routed"


@dataclass(frozen=True)
class Fault:
    """Why a query cannot go on. `error` is of a kind users know; `trace` is set where it is a defect."""

    error: WindrowError
    trace: str | None = None


@dataclass(frozen=True)
class Ingested:
    """A piece of a stream's batch is on the disk."""

    stream: str
    observed: Observed | None = None
    chunk: manifest.ChunkRef | None = None
    #: late and malformed rows on their way to a sink
    outbox: manifest.ChunkRef | None = None
    #: how many pane states Spark has aggregated
    panes: int = 0
    #: of each query, the last window in which a new row is first seen
    latest: Mapping[str, int] = field(default_factory=dict)
    faults: Mapping[str, Fault] = field(default_factory=dict)
    #: accepted rows that no query needed
    shed: int = 0
    #: a sub-window of rows that are kept for queries to come
    kept: manifest.ChunkRef | None = None
    #: why the batch as a whole cannot be taken
    refusal: WindrowError | None = None
    #: how long each query took, where they are computed one by one
    seconds: Mapping[str, float] = field(default_factory=dict)
    #: whether these were states of several groupings at once
    together: bool = False
    #: rows that were none, and are left out
    malformed: int = 0


@dataclass
class Closed:
    """A shard has moved to the new clock: a level of nested queries, or all of those that are not nested."""

    shard: int
    stage: int
    files: tuple[manifest.ChunkRef, ...] = ()
    outbox: manifest.ChunkRef | None = None
    #: how many rows each query has answered, and how many it gave to the next level
    rows: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    faults: dict[str, Fault] = field(default_factory=dict)
    #: how many cells the matrices of each shared state have
    cells: dict[str, int] = field(default_factory=dict)
    #: how long each query took; those that are answered together share alike
    seconds: dict[str, float] = field(default_factory=dict)


def message(kind: str, content: Any, target: int = 0) -> pa.RecordBatch:
    """One row that carries anything."""
    return pa.RecordBatch.from_pylist(
        [{"target": target, "kind": kind, "payload": packed(content)}], schema=_ARROW
    )


class IngestTask(ABC):
    """Takes batches of Arrow rows, in a worker or here, and tells what came of them."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        undisturbed()
        yield message(DONE, self.run(batches))

    @abstractmethod
    def run(self, batches: Iterable[pa.RecordBatch]) -> Ingested:
        """Take the rows; what is wrong with them as a whole is told, not raised."""


def contents(rows: pa.Table | pa.RecordBatch, kind: str) -> Iterable[Any]:
    """What rows of one kind carry."""
    found = zip(rows.column("kind").to_pylist(), rows.column("payload").to_pylist(), strict=True)
    return [unpacked(payload) for each, payload in found if each == kind]


def late_section(stream: str) -> str:
    """What late rows of a stream are filed under in outbox files; no query can be called that."""
    return f"{names.RESERVED}late rows of {stream}"


def undisturbed() -> None:
    """Ctrl-C at a terminal reaches workers too; the driver decides when to stop, not they."""
    if threading.current_thread() is threading.main_thread() and "pyspark.worker" in sys.modules:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def fault_of(error: Exception, query: str) -> Fault:
    """An error in one query, as a report carries it."""
    if isinstance(error, WindrowError):
        return Fault(error)
    text = f"query `{query}` failed unexpectedly: {type(error).__name__}: {error}"
    known = WindrowError(text, code="defect", hint="this is a defect of Windrow; the log has the details")
    return Fault(known, "".join(traceback.format_exception(error)))
