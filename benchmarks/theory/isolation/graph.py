"""The serialisation graph: an edge from T to U if T comes first in a conflict of the two.

Two operations conflict if they are about the same slot, of different transactions, and one of them writes. A
read that names its version comes after the update that wrote it and before the next of the slot, wherever it
stands.
Aborted attempts are not in the graph, nor are transactions that never commit.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.theory.isolation.operations import Abort, Read, Unread, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.theory.isolation.history import Answer, History

#: queries have names, updates have numbers
Transaction: TypeAlias = str | int


@dataclass(frozen=True)
class SerialisationGraph:
    """The edges, and what follows from them."""

    history: History
    edges: frozenset[tuple[Transaction, Transaction]]

    @classmethod
    def of(cls, history: History) -> SerialisationGraph:
        """The graph of a history."""
        return cls(history, frozenset(conflicts(history)))

    @property
    def has_cycle(self) -> bool:
        """Whether no order of the transactions, one after the other, would have done the same."""
        order = TopologicalSorter[Transaction]()
        for first, second in self.edges:
            order.add(second, first)
        try:
            order.prepare()
        except CycleError:
            return True
        return False

    @property
    def keeps_windows_whole(self) -> bool:
        """Theorem 7.1: updates that come before a query have lower numbers than those that come after it."""
        return all(
            max(self._before(each), default=-1) < min(self._after(each), default=float("inf"))
            for each in self.history.answers
        )

    @property
    def shows_all_updates(self) -> bool:
        """Theorem 7.2: an update that happens while a query runs comes before the query."""
        writes = {each.update: at for at, each in _writes(self.history)}
        return not any(
            writes[update] < answer.end for answer in self.history.answers for update in self._after(answer)
        )

    def _before(self, answer: Answer) -> list[int]:
        return self._around[0].get(answer.query, [])

    def _after(self, answer: Answer) -> list[int]:
        return self._around[1].get(answer.query, [])

    @cached_property
    def _around(self) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        """The updates that come before each query, and those that come after it."""
        before: dict[str, list[int]] = {}
        after: dict[str, list[int]] = {}
        for one, other in self.edges:
            if isinstance(one, int) and isinstance(other, str):
                before.setdefault(other, []).append(one)
            elif isinstance(one, str) and isinstance(other, int):
                after.setdefault(one, []).append(other)
        return before, after


def conflicts(history: History) -> Iterator[tuple[Transaction, Transaction]]:
    """The pairs of committed transactions that conflict, the earlier operation's first."""
    slots: dict[int, list[Read | Write]] = {}
    for each in _effective(history):
        slots.setdefault(each.slot, []).append(each)
    for done in slots.values():
        in_place = [each for each in done if isinstance(each, Write) or each.version is None]
        for at, one in enumerate(in_place):
            for other in in_place[at + 1 :]:
                writes = isinstance(one, Write) or isinstance(other, Write)
                if writes and _who(one) != _who(other):
                    yield _who(one), _who(other)
        written = sorted(each.update for each in done if isinstance(each, Write))
        for each in done:
            if isinstance(each, Read) and each.version is not None:
                yield from _around_version(each.query, each.version, written)


def _around_version(
    query: str, version: int, written: list[int]
) -> Iterator[tuple[Transaction, Transaction]]:
    """The last update up to a version, and the first after it: all others of the slot are beyond these."""
    place = bisect_right(written, version)
    if place:
        yield written[place - 1], query
    if place < len(written):
        yield query, written[place]


def _effective(history: History) -> Iterator[Read | Write]:
    """Without the reads that were taken back, aborted, or that never commit."""
    lost: set[int] = set()
    reads: dict[str, dict[tuple[int, int | None], int]] = {}
    for at, each in enumerate(history.operations):
        match each:
            case Read(query, slot, version):
                reads.setdefault(query, {})[slot, version] = at
            case Unread(query, slot, version):
                lost.add(reads[query].pop((slot, version)))
            case Abort(query):
                lost.update(reads.pop(query, {}).values())
    for at, each in enumerate(history.operations):
        if isinstance(each, Read | Write) and at not in lost and _who(each) in history.commits:
            yield each


def _writes(history: History) -> Iterator[tuple[int, Write]]:
    return ((at, each) for at, each in enumerate(history.operations) if isinstance(each, Write))


def _who(each: Read | Write) -> Transaction:
    return each.update if isinstance(each, Write) else each.query
