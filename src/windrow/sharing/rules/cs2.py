"""CS2: all queries on one basic interval synopsis are computed together.

It is read from the youngest interval to the oldest, and answers over shorter windows are found on the way.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> maxima = Held("p1", Family("S", "greatest of x"), Grid(1), 30, Kind.BASIC)
>>> together(maxima, (10,), (30,))
True
"""

from __future__ import annotations

from windrow.sharing.synopses.synopsis import Kind
from windrow.sharing.synopsis_facts import Held


def together(held: Held, one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two users of the synopsis, with windows of these lengths, are computed together."""
    return held.kind is Kind.BASIC
