"""How well the queries of a history are kept apart from the updates.

    SERIALISABLE        some order of whole transactions would have given the same
    WINDOW              every answer is about a window as it was at some instant (window-serialisable)
    LATEST              every answer is about the window as it was at its commit (latest-window-serialisable)
    COMMIT_ORDER        conflicts are decided in the order of the commits (commit-order preserving)

LATEST implies WINDOW. Serialisable is neither: an answer that shows an update but not the one before it is
about no instant at all, though `update 6, query, update 5` is an order. Where updates commit at once and all
queries read whole windows, LATEST and COMMIT_ORDER are the same; a query of a shorter window can miss an
update without a conflict, so then COMMIT_ORDER says less.

>>> levels(History.parse("rQ1[0] w3[0] c3 rQ1[1] rQ1[2] cQ1", subwindows=3)) == {SERIALISABLE, WINDOW}
True
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from benchmarks.theory.isolation.graph import SerialisationGraph, conflicts
from benchmarks.theory.isolation.history import History
from windrow.archive.snapshot import LATEST, WINDOW, IsolationLevel


class Serialisability(Enum):
    """Levels of whole histories, which no query can ask for."""

    SERIALISABLE = auto()
    COMMIT_ORDER = auto()


SERIALISABLE, COMMIT_ORDER = Serialisability


def levels(history: History) -> frozenset[IsolationLevel | Serialisability]:
    """All levels that a history is on."""
    tests: dict[IsolationLevel | Serialisability, Callable[[History], bool]] = {
        SERIALISABLE: is_serialisable,
        WINDOW: is_window_serialisable,
        LATEST: is_latest_window_serialisable,
        COMMIT_ORDER: is_commit_order_preserving,
    }
    return frozenset(level for level, test in tests.items() if test(history))


def is_serialisable(history: History) -> bool:
    """Whether the serialisation graph has no cycle."""
    return not SerialisationGraph.of(history).has_cycle


def is_window_serialisable(history: History) -> bool:
    """Definition 7.1: every committed query has read a state of the window that there was."""
    return all(answer.is_whole for answer in history.answers)


def is_latest_window_serialisable(history: History) -> bool:
    """Definition 7.2: every committed query has read the state of the window at its commit."""
    return all(answer.is_latest for answer in history.answers)


def is_commit_order_preserving(history: History) -> bool:
    """Whether of two that conflict the first in the conflict is the first to commit."""
    commits = history.commits
    return all(commits[first] < commits[second] for first, second in conflicts(history))
