"""In which order a query reads its sub-windows.

An order picks the next version out of those that are wanted. A version's time to update is the number of
updates until it is overwritten, so a higher version has more of it.

>>> youngest_first((3, 4, 5), 3), oldest_first((3, 4, 5), 3), by_slot((3, 4, 5), 3)
(5, 3, 3)
>>> by_slot((5, 6, 7), 5)
5
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

#: (versions wanted, ascending; number of slots) → the one to read next
ReadOrder: TypeAlias = Callable[[Sequence[int], int], int]


def youngest_first(wanted: Sequence[int], subwindows: int) -> int:
    """Highest time to update first: what expires next is read last, or never (Algorithm 8)."""
    return max(wanted)


def oldest_first(wanted: Sequence[int], subwindows: int) -> int:
    """Lowest time to update first: what expires next is read before it does, so a snapshot survives."""
    return min(wanted)


def by_slot(wanted: Sequence[int], subwindows: int) -> int:
    """As the slots lie on the ring, whatever their age (Algorithm 7)."""
    return min(wanted, key=lambda version: version % subwindows)
