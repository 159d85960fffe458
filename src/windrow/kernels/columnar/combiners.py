"""Combiners: associative operations on whole arrays of states, with their neutral elements.

A state is spread over lanes, one array per number it consists of; `combine` works on all elements of the
lanes at once. A combiner with an inverse lets a window follow from two running totals; the others are
combined only, so that a NaN, an infinity or a huge value leaves nothing behind when it leaves the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import numpy.typing as npt

Lanes = tuple["npt.NDArray[Any]", ...]


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


def choose(condition: npt.NDArray[np.bool_], a: Lanes, b: Lanes) -> Lanes:
    """Those of `a` where the condition holds, else those of `b`."""
    return tuple(np.where(condition, x, y) for x, y in zip(a, b, strict=True))
