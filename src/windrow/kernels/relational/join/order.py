"""Choosing the global order of a multi-way window join without costing all n! orders.

Golab, Sliding Window Query Processing over Data Streams, section 5.3.2.

The initial heuristic joins the most selective windows first, so that few partial results reach the inner
loops. It tends to leave the large window of a fast stream for the innermost loop, where every partial result
scans all of it. The augmented heuristic therefore also costs the orders in which fast streams are lifted into
the top third, and takes the cheapest.

Three points the section leaves open are decided here.

- After the most selective pair, the next window is the one that keeps the intermediate result smallest.
- In the first pair the window with more distinct values goes first: the arrivals of all other streams scan
  it first, and the more values it has the fewer of its tuples match.
- A stream is fast if its rate is above the mean rate. Fast streams keep their order among themselves, as do
  slow ones. The very top counts as a place: the section first says "at or near the top", then advises
  against the top itself. Costing those few orders more cannot make the choice worse.

What a global join order costs: attribute comparisons per unit of time.

Golab, Sliding Window Query Processing over Data Streams, section 5.3.1 (the evaluation it models: 5.2.1).

An equi-join of n time-based windows on one common attribute is evaluated eagerly, as nested loops: each new
tuple scans the other windows in the global order with its own window left out (Table 5.2). The new tuple is
the only one in the outermost loop; a window further in is scanned once per partial result that reaches it.
Inserting and expiring tuples is left out, being the same in every order.

Sizes are expectations under two assumptions: values are uniform, and the values of each window are a prefix
of one common list (containment of value sets).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class WindowStats:
    """One input of the join: `rate` tuples arrive per unit of time and stay for `length` units.

    `distinct` is the number of distinct values of the join attribute in the window, at least 1. The symbols
    of Table 5.1 are lambda, T and v.

    >>> WindowStats("bids", rate=10, length=100, distinct=500).tuples
    1000
    """

    name: str
    rate: float
    length: float
    distinct: float

    @property
    def tuples(self) -> float:
        """How many tuples the window holds: lambda T."""
        return self.rate * self.length


JoinOrder = tuple[WindowStats, ...]


def _joined(tuples: float, distinct: float, window: WindowStats) -> tuple[float, float]:
    """The tuples and distinct values of a partial result joined with one window more.

    By containment, the side with fewer values finds all of them on the other side. So each pair of tuples
    matches with probability 1 / max(v, v'), and min(v, v') values survive.
    """
    return tuples * window.tuples / max(distinct, window.distinct), min(distinct, window.distinct)


def join_size(windows: Sequence[WindowStats]) -> float:
    """phi: the expected number of tuples in the join of all `windows`, whatever their order.

    >>> a, b = WindowStats("a", 10, 100, 500), WindowStats("b", 1, 100, 50)
    >>> join_size([a, b]), join_size([a, b, WindowStats("c", 1, 200, 40)])
    (200.0, 800.0)
    """
    first, *others = windows
    tuples, distinct = first.tuples, first.distinct
    for window in others:
        tuples, distinct = _joined(tuples, distinct, window)
    return tuples


def arrival_cost(order: Sequence[WindowStats], arriving: WindowStats) -> float:
    """X_i: comparisons per unit of time spent on the arrivals of one stream.

    The first other window is scanned once per arrival, the next once per match in the first, and so on. What
    the innermost loop finds is the answer: it is scanned no further and costs nothing more.

    >>> a, b = WindowStats("a", rate=10, length=100, distinct=5), WindowStats("b", 1, 30, 5)
    >>> arrival_cost([a, b], arriving=a), arrival_cost([a, b], arriving=b)
    (300.0, 1000.0)
    """
    partials, distinct, loops = 1.0, arriving.distinct, []
    for window in order:
        if window != arriving:
            loops.append(arriving.rate * partials * window.tuples)
            partials, distinct = _joined(partials, distinct, window)
    return math.fsum(loops)


def order_cost(order: Sequence[WindowStats]) -> float:
    """The cost of a global join order per unit of time: the sum of X_i over its streams.

    A small window scanned first is cheap, and so is one with many values, where little matches:

    >>> few, many = WindowStats("few", 1, 100, 5), WindowStats("many", 1, 100, 50)
    >>> other = WindowStats("other", 1, 100, 5)
    >>> order_cost([many, few, other]), order_cost([few, other, many])
    (900.0, 4500.0)
    """
    return math.fsum(arrival_cost(order, arriving) for arriving in order)


def selectivity_order(windows: Sequence[WindowStats]) -> JoinOrder:
    """The initial heuristic: the most selective join first, then always the smallest next result.

    Windows that differ in size only are thus ordered from small to large. Ties go to the window with more
    distinct values, then to the smaller one, then to the one given first.

    >>> sizes = {"a": 90, "b": 10, "c": 50}
    >>> windows = [WindowStats(name, 1, size, distinct=9) for name, size in sizes.items()]
    >>> [window.name for window in selectivity_order(windows)]
    ['b', 'c', 'a']
    """
    ranked = sorted(windows, key=lambda window: (-window.distinct, window.tuples))
    order: JoinOrder = min(combinations(ranked, 2), key=join_size)
    while len(order) < len(windows):
        rest = [window for window in ranked if window not in order]
        order = min(((*order, window) for window in rest), key=join_size)
    return order


def fast_windows(windows: Sequence[WindowStats]) -> tuple[WindowStats, ...]:
    """The windows over streams that are faster than the mean; none if all are equally fast.

    >>> rates = {"a": 11, "b": 10, "c": 1, "d": 1}
    >>> windows = [WindowStats(name, rate, 100, 9) for name, rate in rates.items()]
    >>> [window.name for window in fast_windows(windows)]
    ['a', 'b']
    """
    total = math.fsum(window.rate for window in windows)
    return tuple(window for window in windows if window.rate * len(windows) > total)


def candidate_orders(windows: Sequence[WindowStats]) -> tuple[JoinOrder, ...]:
    """The selectivity order, then its variants with fast streams lifted into the top third.

    With f fast streams among n they are at most n^f, and fewer because lifted streams do not overtake
    one another.

    >>> windows = [WindowStats("a", 1, 100, 90), WindowStats("b", 1, 100, 6), WindowStats("c", 1, 100, 3)]
    >>> candidates = candidate_orders([*windows, WindowStats("F", 10, 100, 40)])
    >>> ["".join(window.name for window in order) for order in candidates]
    ['abcF', 'Fabc', 'aFbc']
    """
    base = selectivity_order(windows)
    fast = fast_windows(base)
    slow = tuple(window for window in base if window not in fast)
    own_depths = [sum(other in slow for other in base[: base.index(window)]) for window in fast]
    top_third = math.ceil(len(base) / 3)
    return tuple(_merge(slow, fast, depths) for depths in _liftings(own_depths, top_third))


def augmented_order(windows: Sequence[WindowStats]) -> JoinOrder:
    """The augmented heuristic: the cheapest of the candidate orders.

    >>> windows = [WindowStats("a", 1, 100, 90), WindowStats("b", 1, 100, 6), WindowStats("c", 1, 100, 3)]
    >>> "".join(window.name for window in augmented_order([*windows, WindowStats("F", 10, 100, 40)]))
    'aFbc'
    """
    return min(candidate_orders(windows), key=order_cost)


def _liftings(own_depths: Sequence[int], top_third: int) -> list[tuple[int, ...]]:
    """How many slow streams each fast one may stay behind: as many as before, or few enough for the top.

    Depths never decrease, which keeps the fast streams in order and every lifting a different order.

    >>> _liftings([2, 2], top_third=2)
    [(2, 2), (0, 2), (0, 0), (0, 1), (1, 2), (1, 1)]
    """
    liftings: list[tuple[int, ...]] = [()]
    for own in own_depths:
        places = (own, *range(min(own, top_third)))
        liftings = [
            (*depths, place) for depths in liftings for place in places if not depths or place >= depths[-1]
        ]
    return liftings


def _merge(slow: JoinOrder, fast: JoinOrder, depths: Sequence[int]) -> JoinOrder:
    """One order out of two, each fast stream behind as many slow ones as its depth says."""
    # Slow stream k stands behind k slow ones, and a fast one of the same depth goes before it.
    placed = [(depth, 0, window) for depth, window in zip(depths, fast, strict=True)]
    placed += [(depth, 1, window) for depth, window in enumerate(slow)]
    return tuple(window for _, _, window in sorted(placed, key=lambda place: place[:2]))
