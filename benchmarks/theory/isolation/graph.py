"""The serialisation graph: an edge from T to U if T comes first in a conflict of the two.

Two operations conflict if they are about the same slot, of different transactions, and one of them writes.
Aborted attempts are not in the graph, nor are transactions that never commit.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.theory.isolation.operations import Abort, Operation, Read, Unread, Write

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
            answer.begin < writes[update] < answer.end
            for answer in self.history.answers
            for update in self._after(answer)
        )

    def _before(self, answer: Answer) -> list[int]:
        return [one for one, other in self.edges if other == answer.query and isinstance(one, int)]

    def _after(self, answer: Answer) -> list[int]:
        return [other for one, other in self.edges if one == answer.query and isinstance(other, int)]


def conflicts(history: History) -> Iterator[tuple[Transaction, Transaction]]:
    """The pairs of committed transactions that conflict, the earlier operation's first."""
    done = [each for each in _effective(history) if isinstance(each, Read | Write)]
    for at, one in enumerate(done):
        for other in done[at + 1 :]:
            writes = isinstance(one, Write) or isinstance(other, Write)
            if one.slot == other.slot and writes and _who(one) != _who(other):
                yield _who(one), _who(other)


def _effective(history: History) -> Iterator[Operation]:
    """Without the reads that were taken back, aborted, or that never commit."""
    lost: set[int] = set()
    reads: dict[str, dict[int, int]] = {}
    for at, each in enumerate(history.operations):
        match each:
            case Read(query, slot):
                reads.setdefault(query, {})[slot] = at
            case Unread(query, slot):
                lost.add(reads[query].pop(slot))
            case Abort(query):
                lost.update(reads.pop(query, {}).values())
    for at, each in enumerate(history.operations):
        if isinstance(each, Read | Write) and at not in lost and _who(each) in history.commits:
            yield each


def _writes(history: History) -> Iterator[tuple[int, Write]]:
    return ((at, each) for at, each in enumerate(history.operations) if isinstance(each, Write))


def _who(each: Read | Write) -> Transaction:
    return each.update if isinstance(each, Write) else each.query
