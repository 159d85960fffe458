"""CS3: SUM, COUNT and AVG over windows of one length are computed together.

AVG then divides what the others have found already. It needs that SS2 holds, and that both synopses are
probed by the queries.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.synopses.synopsis import Kind
>>> totals = Held("p1", Family("S", "total of x"), Grid(60), 10, Kind.RUNNING)
>>> counts = Held("p2", Family("S", "count of x"), Grid(60), 10, Kind.RUNNING)
>>> average = Wanted(Family("S", "average of x"), (300,), 60)
>>> together(totals, counts, average, (300,)), together(totals, counts, average, (600,))
(True, False)
"""

from __future__ import annotations

from windrow.sharing.rules import ss2
from windrow.sharing.synopsis_facts import Held, Wanted


def together(totals: Held, counts: Held, average: Wanted, lengths: tuple[int, ...]) -> bool:
    """Whether an average is computed together with a sum or a count over windows of these lengths."""
    return ss2.may_divide(totals, counts, average) and average.lengths == lengths
