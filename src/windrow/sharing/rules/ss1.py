"""SS1: windows of all lengths share a synopsis of the data they need.

A synopsis with parameters s and b may be used by queries that compute the same aggregate, or others that need
the same data per interval, over windows of n·s, 1 ≤ n ≤ b. The thesis' two queries of section 8.1, a median
over 10 minutes every 2 and one over 14 minutes every 3:

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.synopses.synopsis import Kind
>>> median = Family("S", "frequencies of length")
>>> synopsis = Held("p1", median, Grid(60), 14, Kind.BASIC)
>>> q1, q2 = Wanted(median, (600,), 120), Wanted(median, (840,), 180)
>>> holds(synopsis, q1), holds(synopsis, q2), holds(synopsis, Wanted(median, (630,), 30))
(True, True, False)
"""

from __future__ import annotations

from windrow.sharing.synopsis_facts import Held, Wanted


def holds(held: Held, wanted: Wanted) -> bool:
    """Whether the synopsis has the data, for windows of some length."""
    same = held.family == wanted.family and held.predicate == wanted.predicate
    return same and len(wanted.lengths) == 1 and held.is_aligned(wanted)
