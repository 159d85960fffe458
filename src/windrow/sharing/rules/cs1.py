"""CS1: queries on one running or interval synopsis are computed together if their windows are equally long.

Other lengths subtract other totals, or combine other intervals, so nothing is saved. The thesis' COUNT
DISTINCT and TOP k share the frequencies of a window, and each makes its own of them.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> frequencies = Held("p1", Family("S", "frequencies of x"), Grid(1), 8, Kind.INTERVAL)
>>> together(frequencies, (7,), (7,)), together(frequencies, (7,), (5,))
(True, False)
"""

from __future__ import annotations

from windrow.sharing.synopses.synopsis import Kind
from windrow.sharing.synopsis_facts import Held


def together(held: Held, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two users of the synopsis, with windows of these lengths, are computed together."""
    return held.kind in (Kind.RUNNING, Kind.INTERVAL) and one == other
