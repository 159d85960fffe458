"""A union of streams under test: every branch runs by itself, and what they emit is put together."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from windrow.algebra.plan import Scan, TableScan
from windrow.errors import DataError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from windrow.algebra.changes import Change
    from windrow.algebra.plan import Emit
    from windrow.testing.harness import Executor


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
