"""Combiners: associative operations on whole arrays of states, with their neutral elements.

A state is spread over lanes, one array per number it consists of; `combine` works on all elements of the
lanes at once. A combiner with an inverse lets a window follow from two running totals; the others are
combined only, so that a NaN, an infinity or a huge value leaves nothing behind when it leaves the window.

Many runs are scanned at once: the prefixes (or suffixes) of each by any associative combination. All short
runs take a step together, so there are as many steps as the longest of them has rows, and every row is
combined once. A long run is scanned by itself where its combination is one of numpy's, and otherwise all long
ones by doubling: after l passes, every row holds what the last 2^l rows come to.

Card: segmented scan
    requirements  associative combine; rows of a run are adjacent
    time          one combination per row; in long runs of states that are not single numbers, log(run);
                  array operations: at most `LONG`, plus one per long run or log(run)
    space         one cell per row
    source        Blelloch 1990 (segmented scans), run-parallel instead of tree-parallel; Hillis and Steele
                  1986 (doubling)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from windrow.windows.domain import Flags, Ints, Numbers

Lanes = tuple[Numbers, ...]


class Combiner(ABC):
    """What slides need to know of an aggregate's state."""

    #: whether a difference of totals is exact
    invertible: bool = False
    #: whether what is combined is always one of its states, so that rows which count twice do no harm
    chooses: bool = False

    @abstractmethod
    def identity(self, shape: tuple[int, ...]) -> Lanes:
        """States of no rows."""

    @abstractmethod
    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        """The states of the rows of `a` and of `b`, element by element."""

    @abstractmethod
    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        """The same combination as expressions of a grouping, one for each lane by its name."""

    def collected(self, columns: Sequence[pl.Series]) -> Lanes:
        """What a grouping made of these expressions, as lanes."""
        return tuple(column.to_numpy() for column in columns)

    def scan(self, lanes: Lanes, axis: int) -> Lanes:
        """All prefixes along an axis, each with its own element: one combination after the other."""
        result = tuple(np.moveaxis(lane.copy(), axis, 0) for lane in lanes)
        for place in range(1, len(result[0])):
            after = self.combine(take(result, place - 1), take(result, place))
            put(result, place, after)
        return tuple(np.moveaxis(lane, 0, axis) for lane in result)


@dataclass(frozen=True)
class Pointwise(Combiner):
    """One lane, combined by a ufunc, or in a grouping by the method of that name."""

    ufunc: np.ufunc
    neutral: int | float
    method: str
    dtype: Any = np.int64
    invertible: bool = False
    chooses: bool = False

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        return (np.full(shape, self.neutral, dtype=self.dtype),)

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        with np.errstate(invalid="ignore", over="ignore"):
            return (self.ufunc(a[0], b[0]),)

    def scan(self, lanes: Lanes, axis: int) -> Lanes:
        with np.errstate(invalid="ignore", over="ignore"):
            return (self.ufunc.accumulate(lanes[0], axis=axis),)

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        found: pl.Expr = getattr(pl.col(names[0]), self.method)()
        return [found]


@dataclass(frozen=True)
class Moments(Combiner):
    """A count, the means of one or several values, and the sums of products of their distances from these,
    combined as Chan, Golub and LeVeque do; NaN in a sum stands for good."""

    values: int
    #: the values that are multiplied in each of the sums, by their places
    products: tuple[tuple[int, int], ...]

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        more = self.values + len(self.products)
        return np.zeros(shape, dtype=np.int64), *(np.zeros(shape) for _ in range(more))

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        (m, *left), (n, *right) = a, b
        means, sums = slice(self.values), slice(self.values, None)
        with np.errstate(invalid="ignore", over="ignore"):
            share = n / np.maximum(m + n, 1)
            apart = [y - x for x, y in zip(left[means], right[means], strict=True)]
            both = [x + distance * share for x, distance in zip(left[means], apart, strict=True)]
            for x, y, (i, j) in zip(left[sums], right[sums], self.products, strict=True):
                both.append(x + y + apart[i] * apart[j] * share * m)
        mixed = zip(left, right, both, strict=True)
        return m + n, *(np.where(n == 0, x, np.where(m == 0, y, each)) for x, y, each in mixed)

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        """Two passes: the means of all, then the distances from them."""
        n, *states = map(pl.col, names)
        count, means = n.sum(), states[: self.values]
        middles = [self._middle(n, mean, count) for mean in means]
        apart = [mean - middle for mean, middle in zip(means, middles, strict=True)]
        squared = [apart[i].pow(2) if i == j else apart[i] * apart[j] for i, j in self.products]
        spreads = zip(states[self.values :], squared, strict=True)
        sums = [spread.sum() + pl.when(n > 0).then(n * product).sum() for spread, product in spreads]
        return [each.alias(name) for each, name in zip([count, *middles, *sums], names, strict=True)]

    def _middle(self, n: pl.Expr, mean: pl.Expr, count: pl.Expr) -> pl.Expr:
        """The mean of means. Of equal ones it is exactly that where values are compared with one another:
        what does not vary has no covariance."""
        known = pl.when(n > 0).then(mean)
        average = pl.when(n > 0).then(n * mean).sum() / count
        if self.values > 1:
            average = pl.when(known.min() == known.max()).then(known.min()).otherwise(average)
        return pl.when(count > 0).then(average).otherwise(0.0)


TOTAL = Pointwise(np.add, 0, "sum", invertible=True)
FLOAT_TOTAL = Pointwise(np.add, 0.0, "sum", np.float64)
LEAST = Pointwise(np.minimum, np.iinfo(np.int64).max, "min", chooses=True)
GREATEST = Pointwise(np.maximum, np.iinfo(np.int64).min, "max", chooses=True)
MOMENTS = Moments(1, ((0, 0),))
PAIR_MOMENTS = Moments(2, ((0, 0), (1, 1), (0, 1)))
#: by the aggregates that combine whole numbers bit by bit
BITWISE = {
    "BIT_AND": Pointwise(np.bitwise_and, -1, "bitwise_and"),
    "BIT_OR": Pointwise(np.bitwise_or, 0, "bitwise_or"),
    "BIT_XOR": Pointwise(np.bitwise_xor, 0, "bitwise_xor"),
}


def subtract(a: Lanes, b: Lanes) -> Lanes:
    """The inverse of an invertible combiner, all of which are sums."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def take(lanes: Lanes, places: Any) -> Lanes:
    """The elements at some places."""
    return tuple(lane[places] for lane in lanes)


def put(lanes: Lanes, places: Any, states: Lanes) -> None:
    """Other elements at some places."""
    for lane, values in zip(lanes, states, strict=True):
        lane[places] = values


def running(lanes: Lanes) -> Lanes:
    """Running totals, beginning with nothing."""
    return tuple(np.concatenate([np.zeros_like(lane[:1]), np.cumsum(lane, axis=0)]) for lane in lanes)


def choose(condition: Flags, a: Lanes, b: Lanes) -> Lanes:
    """Those of `a` where the condition holds, else those of `b`."""
    return tuple(np.where(condition, x, y) for x, y in zip(a, b, strict=True))


def spread_out(counts: Ints) -> tuple[Ints, Ints]:
    """Of so many rows each: which one a row is of, and its place among those.

    >>> [found.tolist() for found in spread_out(np.array([2, 0, 3]))]
    [[0, 0, 2, 2, 2], [0, 1, 0, 1, 2]]
    """
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)


#: runs of more rows than this are long
LONG = 64


def segmented(combiner: Combiner, lanes: Lanes, starts: Numbers, backwards: bool = False) -> Lanes:
    """The prefixes of each run (or, `backwards`, its suffixes); runs begin at `starts`.

    >>> from windrow.kernels.columnar.combiners import LEAST
    >>> values, starts = (np.array([5, 3, 9, 7, 8]),), np.array([0, 3])
    >>> segmented(LEAST, values, starts)[0].tolist(), segmented(LEAST, values, starts, True)[0].tolist()
    ([5, 3, 3, 7, 7], [3, 3, 9, 7, 8])
    """
    result = tuple(lane.copy() for lane in lanes)
    lengths = np.diff(np.append(starts, len(result[0])))
    long = lengths > LONG if isinstance(combiner, Pointwise | Moments) else np.zeros(len(lengths), dtype=bool)
    if long.any():
        scan = _one_by_one if isinstance(combiner, Pointwise) else _doubled
        scan(combiner, result, starts[long], lengths[long], backwards)
        starts, lengths = starts[~long], lengths[~long]
    _together(combiner, result, starts, lengths, backwards)
    return result


def run_ends(starts: Numbers, length: int) -> Numbers:
    """The last row of each run."""
    return np.append(starts[1:], length) - 1


def _together(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Row by row, all runs at once."""
    longest_first = np.argsort(-lengths, kind="stable")
    starts, lengths = starts[longest_first], lengths[longest_first]
    heads, step = (starts + lengths - 1, -1) if backwards else (starts, 1)
    longest = int(lengths[0]) if len(lengths) else 0
    active = np.searchsorted(-lengths, -np.arange(1, longest), side="left")
    for distance, count in enumerate(active, start=1):
        here = heads[:count] + step * distance
        _combined(combiner, result, here, here - step, backwards)


def _one_by_one(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Run by run, each in one call."""
    order = slice(None, None, -1 if backwards else 1)
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        run = slice(start, start + length)
        parts = take(take(result, run), order)
        put(result, run, take(combiner.scan(parts, axis=0), order))


def _doubled(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Each row with the one before it, then with the one two before it, then four, all runs at once."""
    run, place = spread_out(lengths)
    here = starts[run] + (lengths[run] - 1 - place if backwards else place)
    distance, step = 1, -1 if backwards else 1
    while len(here := here[place >= distance]):
        place = place[place >= distance]
        _combined(combiner, result, here, here - step * distance, backwards)
        distance *= 2


def _combined(combiner: Combiner, result: Lanes, here: Ints, other: Ints, backwards: bool) -> None:
    before, own = take(result, other), take(result, here)
    pair = (own, before) if backwards else (before, own)
    put(result, here, combiner.combine(*pair))
