"""Combiners: associative operations on whole arrays of states, with their neutral elements.

A state is spread over lanes, one array per number it consists of; `combine` works on all elements of the
lanes at once. A combiner with an inverse lets a window follow from two running totals; the others are
combined only, so that a NaN, an infinity or a huge value leaves nothing behind when it leaves the window.

Scans of many runs at once: the prefixes (or suffixes) of each run by any associative combination.

All short runs take a step together, so there are as many steps as the longest of them has rows, and every row
is combined once. A long run is scanned by itself where its combination is one of numpy's, and otherwise all
long ones by doubling: after l passes, every row holds what the last 2^l rows come to.

Card: segmented scan
    requirements  associative combine; rows of a run are adjacent
    time          one combination per row; in long runs of states that are not single numbers, log(run);
                  array operations: at most `LONG`, plus one per long run or log(run)
    space         one cell per row
    source        Blelloch 1990 (segmented scans), run-parallel instead of tree-parallel; Hillis and Steele
                  1986 (doubling)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from windrow.windows.domain import Flags, Ints, Numbers

Lanes = tuple["Numbers", ...]


class Combiner(Protocol):
    """What slides need to know of an aggregate's state."""

    @property
    def invertible(self) -> bool:
        """Is a difference of totals exact?"""

    @property
    def chooses(self) -> bool:
        """Is what is combined always one of its states, so that rows which count twice do no harm?"""

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        """States of no rows."""

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        """The states of the rows of `a` and of `b`, element by element."""

    def scan(self, lanes: Lanes, axis: int) -> Lanes:
        """All prefixes along an axis, each with its own element."""

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        """The same combination as expressions of a grouping, one for each lane by its name."""

    def collected(self, columns: Sequence[pl.Series]) -> Lanes:
        """What a grouping made of these expressions, as lanes."""


class Collected:
    """A combiner whose expressions do all the work."""

    def collected(self, columns: Sequence[pl.Series]) -> Lanes:
        return tuple(column.to_numpy() for column in columns)


@dataclass(frozen=True)
class Pointwise(Collected):
    """One lane, combined by a ufunc."""

    ufunc: np.ufunc
    neutral: int | float
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
        column = pl.col(names[0])
        if self.ufunc is np.add:
            return [column.sum()]
        return [column.min() if self.ufunc is np.minimum else column.max()]


@dataclass(frozen=True)
class Moments(Collected):
    """(n, mean, Σ(x−mean)²), combined as Chan, Golub and LeVeque do; NaN in the last stands for good."""

    invertible: bool = False
    chooses: bool = False

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        return np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape)

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        (m, mean, spread), (n, other, scatter) = a, b
        with np.errstate(invalid="ignore", over="ignore"):
            delta, share = other - mean, n / np.maximum(m + n, 1)
            middle = mean + delta * share
            both = spread + scatter + delta * delta * share * m
        return (
            m + n,
            np.where(n == 0, mean, np.where(m == 0, other, middle)),
            np.where(n == 0, spread, np.where(m == 0, scatter, both)),
        )

    def scan(self, lanes: Lanes, axis: int) -> Lanes:
        return scanned(self, lanes, axis)

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        """Two passes: the mean of all, then the distances from it."""
        n, mean, spread = map(pl.col, names)
        count = n.sum()
        middle = pl.when(count > 0).then((pl.when(n > 0).then(n * mean)).sum() / count).otherwise(0.0)
        apart = pl.when(n > 0).then(n * (mean - middle).pow(2)).sum()
        return [count.alias(names[0]), middle.alias(names[1]), (spread.sum() + apart).alias(names[2])]


TOTAL = Pointwise(np.add, 0, invertible=True)
FLOAT_TOTAL = Pointwise(np.add, 0.0, np.float64)
LEAST = Pointwise(np.minimum, np.iinfo(np.int64).max, chooses=True)
GREATEST = Pointwise(np.maximum, np.iinfo(np.int64).min, chooses=True)
MOMENTS = Moments()


def scanned(combiner: Combiner, lanes: Lanes, axis: int) -> Lanes:
    """All prefixes along an axis, one combination after the other."""
    result = tuple(np.moveaxis(lane.copy(), axis, 0) for lane in lanes)
    for place in range(1, len(result[0])):
        before = tuple(lane[place - 1] for lane in result)
        after = combiner.combine(before, tuple(lane[place] for lane in result))
        for lane, value in zip(result, after, strict=True):
            lane[place] = value
    return tuple(np.moveaxis(lane, 0, axis) for lane in result)


def subtract(a: Lanes, b: Lanes) -> Lanes:
    """The inverse of an invertible combiner, all of which are sums."""
    return tuple(x - y for x, y in zip(a, b, strict=True))


def take(lanes: Lanes, places: Any) -> Lanes:
    """The elements at some places."""
    return tuple(lane[places] for lane in lanes)


def choose(condition: Flags, a: Lanes, b: Lanes) -> Lanes:
    """Those of `a` where the condition holds, else those of `b`."""
    return tuple(np.where(condition, x, y) for x, y in zip(a, b, strict=True))


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
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        run = slice(start, start + length)
        parts = tuple(lane[run][::-1] if backwards else lane[run] for lane in result)
        for lane, found in zip(result, combiner.scan(parts, axis=0), strict=True):
            lane[run] = found[::-1] if backwards else found


def _doubled(combiner: Combiner, result: Lanes, starts: Ints, lengths: Ints, backwards: bool) -> None:
    """Each row with the one before it, then with the one two before it, then four, all runs at once."""
    place = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    first = np.repeat(starts, lengths)
    here = first + (np.repeat(lengths, lengths) - 1 - place if backwards else place)
    distance, step = 1, -1 if backwards else 1
    while len(here := here[place >= distance]):
        place = place[place >= distance]
        _combined(combiner, result, here, here - step * distance, backwards)
        distance *= 2


def _combined(combiner: Combiner, result: Lanes, here: Ints, other: Ints, backwards: bool) -> None:
    before, own = take(result, other), take(result, here)
    pair = (own, before) if backwards else (before, own)
    for lane, value in zip(result, combiner.combine(*pair), strict=True):
        lane[here] = value
