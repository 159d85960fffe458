"""Isolation: reading a window that slides meanwhile.

A window of n sub-windows is a ring of n slots. Update j puts fresh rows into slot j mod n, over the oldest; a
query reads slots one after the other. An update in the midst of a query makes the difference between answers
about one instant, about the latest instant, and about no instant that ever was. The ideas are those of
chapter 7 of Golab's thesis, "Sliding Window Query Processing over Data Streams" (2006); its schedulers and
the serialisation graphs that prove them are played through by the benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

#: (versions wanted, ascending; number of slots) → the one to read next
ReadOrder: TypeAlias = Callable[[Sequence[int], int], int]


class IsolationLevel(Enum):
    """What an answer is about: the window as it was at some instant, or at the commit of the read."""

    WINDOW = auto()
    LATEST = auto()


WINDOW, LATEST = IsolationLevel


def youngest_first(wanted: Sequence[int], subwindows: int) -> int:
    """Highest time to update first: what expires next is read last, or never (Algorithm 8).

    A version's time to update is the number of updates until it is overwritten; a higher version has more.

    >>> youngest_first((3, 4, 5), 3), oldest_first((3, 4, 5), 3)
    (5, 3)
    """
    return max(wanted)


def oldest_first(wanted: Sequence[int], subwindows: int) -> int:
    """Lowest time to update first: what expires next is read before it does, so a snapshot survives."""
    return min(wanted)


@dataclass(frozen=True, slots=True)
class IsolationPolicy:
    """How queries and updates get along.

    `updates_wait`: a query that has begun keeps updates and other queries out. Otherwise updates happen at
    once, whoever reads. `undo`: expired sub-windows are kept for those who have read them, who take back
    their rows instead of beginning anew.
    """

    name: str
    level: IsolationLevel
    order: ReadOrder
    updates_wait: bool = False
    undo: bool = False

    def __post_init__(self) -> None:
        if self.undo and self.level is not LATEST:
            raise ValueError("a query that keeps to one window has nothing to undo")


#: answers are about the window that a query has found
SNAPSHOT = IsolationPolicy("WS", WINDOW, oldest_first)
#: answers are about the window at the commit, with expired sub-windows kept: nobody begins anew
UNDOING = IsolationPolicy("TTU-undo", LATEST, youngest_first, undo=True)
