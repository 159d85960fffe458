"""In which order new rows of an n-way join look through the other inputs.

There is one global order; the arrivals of an input follow it, their own input left out (thesis, Table 5.2),
except that an input which an equality links to what is there goes before one that is not linked. Rates, sizes
and numbers of values are observed as rows come, and looked at again after as many arrivals as half the rows
kept, so that this costs a fraction of the join. The order changes only for one that is clearly cheaper by
the model of `windrow.kernels.relational.join.cost`: two orders that cost about the same do not take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from windrow.kernels.relational.join.cost import WindowStats, order_cost
from windrow.kernels.relational.join.order import augmented_order
from windrow.kernels.relational.signed_rows import FOREVER

Order = tuple[int, ...]

#: a join of two has one order only
FEWEST_INPUTS = 3
#: nothing is concluded from fewer arrivals
FEWEST_ROWS = 32
#: an order is changed for one that costs less than this share of it
CLEARLY_CHEAPER = 0.8
SINCE = "since"


def order_of(meta: Mapping[str, int], size: int) -> Order:
    """The global order that a state remembers; as written before anything was observed.

    >>> order_of({"order.0": 2, "order.1": 0, "order.2": 1}, 3), order_of({}, 2)
    ((2, 0, 1), (0, 1))
    """
    return tuple(meta.get(f"order.{place}", place) for place in range(size))


def cheaper(
    order: Order, arrived: Sequence[int], rows: Sequence[int], values: Sequence[int], span: int
) -> Order:
    """A clearly cheaper order, if there is one: by arrivals in a span of time, rows kept, and their values.

    >>> cheaper((0, 1, 2), arrived=[10, 10, 10], rows=[1000, 10, 10], values=[5, 5, 5], span=10)
    (1, 2, 0)
    >>> cheaper((1, 2, 0), arrived=[10, 10, 10], rows=[1000, 11, 10], values=[5, 5, 5], span=10)
    (1, 2, 0)
    """
    rates = [max(1, number) / span for number in arrived]
    windows = [
        WindowStats(str(place), rate, max(1, size) / rate, max(1, different))
        for place, (rate, size, different) in enumerate(zip(rates, rows, values, strict=True))
    ]
    best = augmented_order(windows)
    if best.cost < CLEARLY_CHEAPER * order_cost([windows[place] for place in order]):
        return tuple(int(window.name) for window in best.order)
    return order


def observed(
    meta: Mapping[str, int],
    arrived: Sequence[int],
    rows: Sequence[int],
    values: Callable[[], Sequence[int]],
    now: int,
) -> dict[str, int]:
    """What to remember after a step; `values` counts the different keys of each input, when that is asked."""
    size = len(arrived)
    order, since = order_of(meta, size), meta.get(SINCE, now)
    total = [meta.get(f"arrived.{place}", 0) + number for place, number in enumerate(arrived)]
    enough = sum(total) >= max(FEWEST_ROWS, sum(rows) // 2)
    if enough and abs(since) < FOREVER and since < now < FOREVER:
        order = cheaper(order, total, rows, values(), now - since)
        total, since = [0] * size, now
    elif abs(since) >= FOREVER:
        since = now
    found = {f"order.{place}": input_ for place, input_ in enumerate(order)}
    found |= {f"arrived.{place}": number for place, number in enumerate(total)}
    return {**found, SINCE: since}
