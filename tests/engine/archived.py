"""What archives have to hold by definition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.history import COLUMNS, OPTIONS, Row

from windrow.testing import Harness

if TYPE_CHECKING:
    import pyarrow as pa

SLACK = 3


def values_of(table: pa.Table, *without: str) -> Counter[Any]:
    """Rows as values, in no order, without some columns."""
    kept = [name for name in table.column_names if name not in without]
    return Counter(tuple(row[name] for name in kept) for row in table.to_pylist())


@dataclass
class Definition:
    """What a stream and its queries are, from scratch: rows by the definition, answers by the oracle."""

    queries: dict[str, str]
    progress: float = float("-inf")
    greatest: int | None = None
    has_ended: bool = False
    accepted: list[Row] = field(default_factory=list)
    #: op, instant, values
    changes: dict[str, list[tuple[str, int, tuple[Any, ...]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        streams = {"s": (COLUMNS, OPTIONS)}
        self._oracles = {name: Harness(text, streams=streams) for name, text in self.queries.items()}
        self.changes = {name: [] for name in self.queries}

    def push(self, rows: list[Row]) -> None:
        self.accepted += [row for row in rows if row[2] >= self.progress]
        seen = [row[2] for row in rows] + ([] if self.greatest is None else [self.greatest])
        self.greatest = max(seen, default=None)
        if self.greatest is not None:
            self.progress = max(self.progress, self.greatest - SLACK)
        for oracle in self._oracles.values():
            oracle.push("s", rows)
        self._take()

    def promise(self, progress: int) -> None:
        self.progress = max(self.progress, progress)
        for oracle in self._oracles.values():
            oracle.punctuate("s", progress)
        self._take()

    def end(self) -> None:
        self.has_ended = True
        for oracle in self._oracles.values():
            oracle.finish()
        self._take()

    def _take(self) -> None:
        for name, oracle in self._oracles.items():
            self.changes[name] += [(change.op, change.at, change.row) for change in oracle.take()]

    @property
    def instant(self) -> int | None:
        """What archives are about: the last instant of which all is known, or the last there is."""
        before_the_end = int(self.progress) - 1 if self.progress > float("-inf") else None
        if self.has_ended and self.greatest is not None:
            return max(self.greatest, before_the_end or self.greatest)
        return before_the_end

    def rows(self, keep: int) -> Counter[Any]:
        """The rows of the stream that have not expired."""
        at = self.instant
        return Counter(row for row in self.accepted if at is None or row[2] + keep > at)

    def emitted(self, query: str, keep: int) -> Counter[Any]:
        """What the query has emitted, with the instants, as far as it has not expired."""
        at = self.instant
        return Counter((i, *row) for _, i, row in self.changes[query] if at is None or i + keep > at)

    def answer(self, query: str) -> Counter[Any]:
        """The answer as it is at the instant."""
        found: Counter[Any] = Counter()
        for op, i, row in self.changes[query]:
            if self.instant is not None and i <= self.instant:
                found[row] += 1 if op == "+" else -1
        return +found
