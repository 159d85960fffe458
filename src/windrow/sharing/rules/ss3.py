"""SS3: joins of windows share a generalised join synopsis.

With parameters b, s and g it may be used by aggregates over joins of windows of n·s each, 1 ≤ n ≤ b, and over
(n1·s, n2·s)-joins, b − g ≤ n1, n2 ≤ b. The thesis' figure 8.4 has b = 8 and g = 2:

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.synopses.synopsis import Kind
>>> count = Family(("S", "T"), "count of rows")
>>> synopsis = Held("p1", count, Grid(1), 8, Kind.BASIC_JOIN, g=2)
>>> holds(synopsis, Wanted(count, (7, 8), 1)), holds(synopsis, Wanted(count, (7,), 1))
(True, False)
"""

from __future__ import annotations

from windrow.sharing.synopsis_facts import Held, Wanted


def holds(held: Held, wanted: Wanted) -> bool:
    """Whether the synopsis is of the same join and data, on intervals that fit."""
    same = held.family == wanted.family and held.predicate == wanted.predicate
    return same and held.kind.is_join and len(wanted.lengths) == 2 and held.is_aligned(wanted)
