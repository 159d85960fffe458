"""The policies of the thesis' experiments, beside the two that the engine has."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.archive.snapshot import LATEST, IsolationPolicy, youngest_first


def by_slot(wanted: Sequence[int], subwindows: int) -> int:
    """As the slots lie on the ring, whatever their age (Algorithm 7).

    >>> by_slot((3, 4, 5), 3), by_slot((5, 6, 7), 5)
    (3, 5)
    """
    return min(wanted, key=lambda version: version % subwindows)


#: one after the other: answers are about the latest window there is, as updates have to wait
SERIAL = IsolationPolicy("Serial", LATEST, youngest_first, updates_wait=True)
#: answers are about the window at the commit, read in a fixed order (Algorithm 7)
FIXED_ORDER = IsolationPolicy("LWS", LATEST, by_slot)
#: the same, read by time to update (Algorithm 8)
TIME_TO_UPDATE = IsolationPolicy("TTU", LATEST, youngest_first)
