"""CS7: a query that is combined from basic synopses of others is computed together with these.

Answers over shorter windows are saved on the way: if the thesis' Q4 and Q5 have windows of 10 intervals and
Q6, which combines them, one of 8, the greatest values over 8 are kept when they are passed.

>>> from windrow.sharing.grids import Grid
>>> from windrow.sharing.synopsis_facts import Family
>>> from windrow.sharing.synopses.synopsis import Kind
>>> q4, q5 = (Held(f"p{n}", Family("S", "greatest of length"), Grid(1), 10, Kind.BASIC) for n in (4, 5))
>>> together([q4, q5], (10,), (8,))
True
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.sharing.synopsis_facts import Held


def together(relevant: Sequence[Held], one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a candidate query and the new one, with windows of these lengths, are computed together."""
    return bool(relevant) and all(held.kind.is_basic for held in relevant)
