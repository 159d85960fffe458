"""Medians and spread. Machines are noisy: no figure without the least and the greatest beside it."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Summary:
    """The median of samples, the least and the greatest of them, and how many there are."""

    median: float
    least: float
    greatest: float
    count: int

    def text(self, digits: int = 2, unit: str = "") -> str:
        """The median, with the spread in brackets if there is more than one sample.

        >>> summary([1.5, 1.0, 4.0]).text(1, " s")
        '1.5 s (1.0–4.0)'
        >>> summary([2.0]).text(1, "×")
        '2.0×'
        """
        middle = f"{self.median:.{digits}f}{unit}"
        if self.count == 1:
            return middle
        return f"{middle} ({self.least:.{digits}f}–{self.greatest:.{digits}f})"


def summary(samples: Sequence[float]) -> Summary:
    """What a few samples come to.

    >>> summary([3.0, 1.0, 2.0, 10.0])
    Summary(median=2.5, least=1.0, greatest=10.0, count=4)
    """
    return Summary(statistics.median(samples), min(samples), max(samples), len(samples))


def ratio(of: Sequence[float], to: Sequence[float]) -> Summary:
    """How many times `to` goes into `of`: the ratio of the medians.

    The spread is that of the rounds, each compared with itself, since what disturbs a round disturbs both.

    >>> ratio([10.0, 12.0, 30.0], [1.0, 2.0, 3.0])
    Summary(median=6.0, least=6.0, greatest=10.0, count=3)
    """
    rounds = [one / other for one, other in zip(of, to, strict=False)]
    middle = statistics.median(of) / statistics.median(to)
    return Summary(middle, min([*rounds, middle]), max([*rounds, middle]), len(rounds))


def at_least(seconds: float, to: Sequence[float]) -> Summary:
    """The ratio that a run which was stopped after so many seconds would have exceeded."""
    return summary([seconds / statistics.median(to)])


def percentile(samples: Sequence[float], percent: float) -> float:
    """The least sample that at least so many percent of all do not exceed.

    >>> [percentile(range(1, 101), p) for p in (50, 99, 100)], percentile([7.0], 99)
    ([50, 99, 100], 7.0)
    """
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
