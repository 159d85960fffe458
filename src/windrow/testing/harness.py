"""Harness: a query, pushed rows, promised progress, and the changes that come out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from windrow.algebra.plan import Emit, Plan, Scan, TableScan
from windrow.algebra.values import Change, instant
from windrow.engine.explain import Declared, declared
from windrow.errors import DataError, QueryError, nearest
from windrow.kernels.executor import GeneralExecutor, KernelExecutor
from windrow.language.compile import compile_query
from windrow.reference.executor import ReferenceExecutor


class UnionExecutor:
    """The branches of a query, each on an executor of its own: the definition of UNION ALL at the top."""

    def __init__(self, emit: Emit, executor: Callable[[Emit], Executor]) -> None:
        self.emit = emit
        self.parts = [(_inputs(branch), executor(branch)) for branch in emit.branches]

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        for part in self._of(stream, "stream"):
            part.push(stream, rows)

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None:
        for part in self._of(name, "stream"):
            part.punctuate(name, progress, where)

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None:
        for part in self._of(table, "table"):
            part.update(table, at, insert, delete)

    def advance(self, micros: int) -> None:
        for _, part in self.parts:
            part.advance(micros)

    def finish(self) -> None:
        for _, part in self.parts:
            part.finish()

    def take(self) -> list[Change]:
        found = [change for _, part in self.parts for change in part.take()]
        return sorted(found, key=lambda change: change.place)

    def relation(self, at: int) -> Counter[tuple[Any, ...]]:
        found: Counter[tuple[Any, ...]] = Counter()
        for _, part in self.parts:
            found += part.relation(at)
        return found

    def late(self, stream: str) -> list[tuple[Any, ...]]:
        """A row is late for a stream, so it is for every branch that reads it."""
        return self._of(stream, "stream")[0].late(stream)

    def _of(self, name: str, what: str) -> list[Executor]:
        found = [part for names, part in self.parts if name in names]
        if not found:
            known = sorted({each for names, _ in self.parts for each in names})
            raise DataError(f"no {what} `{name}` in this query", hint=nearest(name, known))
        return found


def _inputs(emit: Emit) -> set[str]:
    streams = {node.stream.name for node in emit.walk() if isinstance(node, Scan)}
    return streams | {node.table.name for node in emit.walk() if isinstance(node, TableScan)}


def _on_engine(emit: Emit, *, spark: bool = False) -> Executor:
    from windrow.testing.spark_executor import SparkExecutor  # importing Spark takes a while

    return SparkExecutor(emit, spark=spark)


def _on_reference(emit: Emit) -> Executor:
    return UnionExecutor(emit, ReferenceExecutor) if emit.is_union else ReferenceExecutor(emit)


def _on_kernels(emit: Emit) -> Executor:
    """Aggregates over windows that slide in time have kernels of their own; all else runs on general ones."""
    if emit.is_union:
        return UnionExecutor(emit, _on_kernels)
    try:
        return KernelExecutor(emit)
    except QueryError as error:
        if error.code != "unsupported":
            raise
        return GeneralExecutor(emit)


#: what a script can run on: the oracle, which is slow and obvious, kernels, the engine without a JVM, or
#: with Spark
EXECUTORS: dict[str, Callable[[Emit], Executor]] = {
    "reference": _on_reference,
    "kernels": _on_kernels,
    "engine": _on_engine,
    "spark": partial(_on_engine, spark=True),
}


class Executor(Protocol):
    """What a standing query runs on; its methods are those of `Harness`, about ticks."""

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None: ...

    def punctuate(self, name: str, progress: int, where: Mapping[str, Any] | None = None) -> None: ...

    def update(
        self, table: str, at: int, insert: Sequence[Sequence[Any]], delete: Sequence[Sequence[Any]]
    ) -> None: ...

    def advance(self, micros: int) -> None: ...

    def finish(self) -> None: ...

    def take(self) -> list[Change]: ...

    def relation(self, at: int) -> Counter[tuple[Any, ...]]: ...

    def late(self, stream: str) -> list[tuple[Any, ...]]: ...


class Harness:
    """One standing query under test. One `push` is one micro-batch.

    TIMESTAMP and DATE values may be pushed as datetimes or as integer microseconds; rows and instants
    that come out have them as integer microseconds, in UTC. Instants of a windowing attribute with a
    RESOLUTION are its values. The same script gives the same changes on every
    executor that runs the query.

    >>> h = Harness("SELECT ISTREAM(a) FROM s [RANGE 5 SECONDS]", streams={"s": "a BIGINT, ts TIMESTAMP"})
    >>> h.push("s", [(1, 0), (2, 1_500_000)])
    >>> h.punctuate("s", 1_000_000)
    >>> h.take()
    [Change(op='+', row=(1,), at=0)]
    >>> h.finish()
    >>> h.take()
    [Change(op='+', row=(2,), at=1500000)]
    """

    def __init__(
        self,
        query: str | Plan,
        streams: Mapping[str, Declared] | None = None,
        tables: Mapping[str, Declared] | None = None,
        executor: str = "reference",
    ) -> None:
        if executor not in EXECUTORS:
            raise QueryError(
                f"no executor `{executor}`", code="unknown-executor", hint=nearest(executor, EXECUTORS)
            )
        if not isinstance(query, Plan):
            query = compile_query(query, declared(streams or {}, tables or {}))
        self.plan = query if isinstance(query, Emit) else Emit(query)
        self._executor = EXECUTORS[executor](self.plan)

    def push(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """A micro-batch of arrivals."""
        self._executor.push(stream, rows)

    def punctuate(self, name: str, progress: int | datetime, where: Mapping[str, Any] | None = None) -> None:
        """No more rows of a stream with its windowing attribute below `progress` (and with these values)."""
        self._executor.punctuate(name, instant(progress, self.plan.leaves[0].domain), where)

    def update(
        self,
        table: str,
        at: int | datetime,
        insert: Sequence[Sequence[Any]] = (),
        delete: Sequence[Sequence[Any]] = (),
    ) -> None:
        """A table changes at an instant."""
        self._executor.update(table, instant(at, self.plan.leaves[0].domain), insert, delete)

    def advance(self, micros: int) -> None:
        """Wall-clock time passes; only idle timeouts and `arrival_ts` notice."""
        self._executor.advance(micros)

    def finish(self) -> None:
        """The end of all inputs."""
        self._executor.finish()

    def take(self) -> list[Change]:
        """The changes that became final since the last take, by (at, op, row)."""
        domain, found = self.plan.leaves[0].domain, self._executor.take()
        return found if domain.resolution is None else [replace(c, at=domain.at(c.at)) for c in found]

    def relation(self, at: int | datetime) -> Counter[tuple[Any, ...]]:
        """The answer relation at an instant, as a multiset; an error if it is not final yet."""
        return self._executor.relation(instant(at, self.plan.leaves[0].domain))

    def late(self, stream: str) -> list[tuple[Any, ...]]:
        """The late rows that were not kept."""
        return self._executor.late(stream)
