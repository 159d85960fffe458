"""Which part of a time axis a period belongs to.

Time is cut into periods, one per update, numbered through. An axis (of insertions, or of expiries) has so
many parts, and `span` is how many periods a row can live. Three ways to deal out the periods:

>>> def dealt(deal): return "".join(str(deal(period, 2, 8)) for period in range(16))
>>> dealt(round_robin), dealt(chronological)
('0101010101010101', '0000111100001111')
>>> dealt(shuffled(seed=1))
'0101100101101001'

By turns, parts stay of similar size, as each gets its share of every time of day. In one piece after the
other, the part that is being filled differs from the one that is running dry. If the rate of rows itself goes
up and down in step with the turns, shuffling the turns breaks the step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeAlias

#: (period, number of parts, periods a row can live) → the part
Allocation: TypeAlias = Callable[[int, int, int], int]


def round_robin(period: int, parts: int, span: int) -> int:
    """By turns: no part is touched in two updates that follow each other."""
    return period % parts


def chronological(period: int, parts: int, span: int) -> int:
    """Neighbouring periods together."""
    return period * parts // span % parts


def shuffled(seed: int = 0) -> Allocation:
    """By turns whose order is drawn anew each time all parts had theirs."""

    def deal(period: int, parts: int, span: int) -> int:
        turn, place = divmod(period, parts)
        order = list(range(parts))
        random.Random(f"{seed}/{turn}").shuffle(order)
        return order[place]

    return deal


#: by the names under which archives remember them
ALLOCATIONS: dict[str, Allocation] = {
    "round-robin": round_robin,
    "chronological": chronological,
    "shuffled": shuffled(),
}
