"""What a global join order costs: attribute comparisons per unit of time.

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


@dataclass(frozen=True, slots=True)
class WindowStats:
    """One input of the join: `rate` tuples arrive per unit of time and stay for `length` units.

    `distinct` is the number of distinct values of the join attribute in the window. The symbols of
    Table 5.1 are lambda, T and v.

    >>> WindowStats("bids", rate=10, length=100, distinct=500).tuples
    1000
    >>> WindowStats("bids", rate=10, length=0, distinct=500)
    Traceback (most recent call last):
    ValueError: window bids: length must be a finite number above 0, not 0
    """

    name: str
    rate: float
    length: float
    distinct: float

    def __post_init__(self) -> None:
        for field, value in (("rate", self.rate), ("length", self.length)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"window {self.name}: {field} must be a finite number above 0, not {value}")
        if not (math.isfinite(self.distinct) and self.distinct >= 1):
            raise ValueError(
                f"window {self.name}: distinct must be a finite number of at least 1, not {self.distinct}"
            )

    @property
    def tuples(self) -> float:
        """How many tuples the window holds: lambda T."""
        return self.rate * self.length


JoinOrder = tuple[WindowStats, ...]


@dataclass(frozen=True, slots=True)
class Intermediate:
    """A partial result: how many tuples are expected, with how many distinct join values."""

    tuples: float
    distinct: float

    def join(self, window: WindowStats) -> "Intermediate":
        """One window more. By containment, the side with fewer values finds all of them on the other side.

        So each pair of tuples matches with probability 1 / max(v, v'), and min(v, v') values survive.

        >>> Intermediate(1000, 500).join(WindowStats("b", rate=1, length=100, distinct=50))
        Intermediate(tuples=200.0, distinct=50)
        """
        matches = self.tuples * window.tuples / max(self.distinct, window.distinct)
        return Intermediate(matches, min(self.distinct, window.distinct))


@dataclass(frozen=True, slots=True)
class Probe:
    """One loop of evaluating the arrivals of one stream: one summand of the thesis' X_i.

    `partials` results per new tuple reach the loop, and each scans all of `window`: `comparisons` per unit
    of time, over all new tuples.
    """

    window: WindowStats
    partials: float
    comparisons: float


def join_size(windows: Sequence[WindowStats]) -> float:
    """phi: the expected number of tuples in the join of all `windows`, whatever their order.

    >>> a, b = WindowStats("a", 10, 100, 500), WindowStats("b", 1, 100, 50)
    >>> join_size([a, b]), join_size([a, b, WindowStats("c", 1, 200, 40)])
    (200.0, 800.0)
    """
    if not windows:
        raise ValueError("the size of a join of no windows is not defined")
    result = Intermediate(windows[0].tuples, windows[0].distinct)
    for window in windows[1:]:
        result = result.join(window)
    return result.tuples


def probing_order(order: Sequence[WindowStats], arriving: WindowStats) -> JoinOrder:
    """The windows that a new tuple of `arriving` scans, outermost loop first (Table 5.2).

    >>> a, b, c = (WindowStats(name, 1, 100, 10) for name in "abc")
    >>> [window.name for window in probing_order([a, b, c], arriving=b)]
    ['a', 'c']
    """
    if arriving not in order:
        raise ValueError(f"window {arriving.name} is not in the join order")
    return tuple(window for window in order if window != arriving)


def probes(order: Sequence[WindowStats], arriving: WindowStats) -> tuple[Probe, ...]:
    """The loops that evaluate the arrivals of one stream, outermost first; their comparisons sum to X_i.

    The first window is scanned once per arrival, the second once per match in the first, and so on. What
    the innermost loop finds is the answer: it is scanned no further and costs nothing more.

    >>> a, b, c = (WindowStats(name, rate=2, length=10, distinct=5) for name in "abc")
    >>> [(loop.window.name, loop.partials, loop.comparisons) for loop in probes([a, b, c], arriving=c)]
    [('a', 1.0, 40.0), ('b', 4.0, 160.0)]
    """
    loops = []
    partial = Intermediate(1.0, arriving.distinct)
    for window in probing_order(order, arriving):
        loops.append(Probe(window, partial.tuples, arriving.rate * partial.tuples * window.tuples))
        partial = partial.join(window)
    return tuple(loops)


def arrival_cost(order: Sequence[WindowStats], arriving: WindowStats) -> float:
    """X_i: comparisons per unit of time spent on the arrivals of one stream.

    >>> a, b = WindowStats("a", rate=10, length=100, distinct=5), WindowStats("b", 1, 30, 5)
    >>> arrival_cost([a, b], arriving=a), arrival_cost([a, b], arriving=b)
    (300.0, 1000.0)
    """
    return math.fsum(loop.comparisons for loop in probes(order, arriving))


def order_cost(order: Sequence[WindowStats]) -> float:
    """The cost of a global join order per unit of time: the sum of X_i over its streams.

    A small window scanned first is cheap, and so is one with many values, where little matches:

    >>> few, many = WindowStats("few", 1, 100, 5), WindowStats("many", 1, 100, 50)
    >>> other = WindowStats("other", 1, 100, 5)
    >>> order_cost([many, few, other]), order_cost([few, other, many])
    (900.0, 4500.0)
    """
    names = [window.name for window in order]
    if len(set(names)) < len(names):
        raise ValueError(f"each window occurs once in a join order, not {', '.join(names)}")
    return math.fsum(arrival_cost(order, arriving) for arriving in order)
