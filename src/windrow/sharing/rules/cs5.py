"""CS5: all queries on one (generalised) basic interval join synopsis are computed together.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> counts = Held("p1", Family(("S", "T"), "count of rows"), Grid(1), 8, Kind.BASIC_JOIN, g=2)
>>> together(counts, (7, 8), (3, 3))
True
"""

from __future__ import annotations

from windrow.sharing.synopses.synopsis import Kind
from windrow.sharing.synopsis_facts import Held


def together(held: Held, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two users of the synopsis, with windows of these lengths, are computed together."""
    return held.kind is Kind.BASIC_JOIN
