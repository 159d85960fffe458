"""SS2: AVG takes the totals of one synopsis and the counts of another.

They must be updated at the same times, so that both are about the same window, and both be long enough. The
thesis asks for two running synopses; any two kinds will do, as totals of DOUBLE are kept in others.

>>> from dataclasses import replace
>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.synopses.synopsis import Kind
>>> totals = Held("p1", Family("S", "total of x"), Grid(60), 10, Kind.RUNNING)
>>> counts = Held("p2", Family("S", "count of x"), Grid(60), 5, Kind.RUNNING)
>>> average = Wanted(Family("S", "average of x"), (300,), 60)
>>> may_divide(totals, counts, average), may_divide(totals, counts, replace(average, lengths=(600,)))
(True, False)
>>> may_divide(totals, replace(counts, grid=Grid(60, phase=30)), average)
False
"""

from __future__ import annotations

from windrow.sharing.synopsis_facts import Held, Wanted


def may_divide(totals: Held, counts: Held, wanted: Wanted) -> bool:
    """Whether the average over a window follows from the two."""
    both = totals, counts
    alike = len({(held.family.source, held.family.keys, held.predicate) for held in both}) == 1
    return alike and all(held.is_aligned(wanted) and held.is_long_enough(wanted) for held in both)
