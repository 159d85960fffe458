"""CS6: a query that is combined from synopses of others goes with these, if all windows are equally long.

That is so for synopses of any kind but the basic ones. The others are computed first, and what they find is
saved: the thesis' Q3, the sum over TCP and UDP, after Q1 and Q2, each of which has one of them.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.synopses.synopsis import Kind
>>> q1, q2 = (Held(f"p{n}", Family("S", "total of length"), Grid(1), 10, Kind.RUNNING) for n in (1, 2))
>>> together([q1, q2], (10,), (10,)), together([q1, q2], (10,), (8,))
(True, False)
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.synopsis_facts import Held


def together(relevant: Sequence[Held], one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a candidate query and the new one, with windows of these lengths, are computed together."""
    return bool(relevant) and all(not held.kind.is_basic for held in relevant) and one == other
