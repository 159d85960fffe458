"""CS4: queries on one (generalised) interval or running join synopsis go together if their windows are alike.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> counts = Held("p1", Family(("S", "T"), "count of rows"), Grid(1), 8, Kind.RUNNING_JOIN, g=2)
>>> together(counts, (7, 8), (7, 8)), together(counts, (7, 8), (8, 8))
(True, False)
"""

from __future__ import annotations

from windrow.sharing.synopses.synopsis import Kind
from windrow.sharing.synopsis_facts import Held


def together(held: Held, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two users of the synopsis, with windows of these lengths, are computed together."""
    return held.kind in (Kind.RUNNING_JOIN, Kind.INTERVAL_JOIN) and one == other
