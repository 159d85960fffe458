"""What overload looks like: what came, how long it took, what is left waiting.

One `Sample` is one epoch. Its load is the time the epoch took against the time it should take: above 1 the
epochs fall behind. What the load would have been without shedding is the offered load; a `Monitor` smooths
it, quick when it rises and slow when it falls.

Shedding comes in lumps: in one epoch nearly all rows may go, in the next one none. That makes it easy to see
what a row costs, and what an epoch costs without any: seconds = fixed + cost * rows, by least squares over
the last epochs. As long as the rows of each epoch are about as many as before, nothing new is learnt about
the two but their sum. Where no rows are left to learn from, the memory of their cost fades, and with it the
reason to shed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

#: how much of what was known counts after another epoch, and the cost of rows after one without any
_MEMORY, _FADING = 0.9, 0.98
#: the numbers of rows must vary by this much, against their mean, to tell fixed costs from costs of rows
_VARIES = 0.2
#: with a smaller share of the rows kept, there is nothing to learn from an epoch
_ENOUGH = 0.02


@dataclass(frozen=True, slots=True)
class Work:
    """What one operator or query did in an epoch."""

    seconds: float = 0.0
    rows_in: int = 0
    rows_out: int = 0

    @property
    def cost(self) -> float:
        """Seconds per row."""
        return self.seconds / self.rows_in if self.rows_in else 0.0

    @property
    def selectivity(self) -> float:
        """Rows given per row taken."""
        return self.rows_out / self.rows_in if self.rows_in else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One epoch as it was measured. `limit` is how long one should take: the trigger, or a second without
    one.
    """

    rows: int
    seconds: float
    limit: float
    #: rows that wait in the source
    backlog: int = 0
    #: how much of the work was saved by shedding, of what there would have been
    saved: float = 0.0
    work: Mapping[str, Work] = field(default_factory=dict)

    @property
    def load(self) -> float:
        """The time it took against the time it should take."""
        return self.seconds / self.limit

    @property
    def kept(self) -> float:
        """The rows that were worked on."""
        return self.rows * (1 - self.saved)


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the last epochs, older ones counting less: of x, rows worked on, y, seconds, and products."""

    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float) -> Sums:
        """With one more epoch."""
        new = (1.0, x, y, x * x, x * y)
        old = (self.n, self.x, self.y, self.xx, self.xy)
        return Sums(*(_MEMORY * before + each for before, each in zip(old, new, strict=True)))

    @property
    def means(self) -> tuple[float, float]:
        """The means of x and y."""
        return self.x / self.n, self.y / self.n

    def slope(self, rows: int) -> float | None:
        """How y grows with x, if x varies enough to tell, against its mean and against all rows."""
        x, y = self.means
        spread = self.xx / self.n - x * x
        enough = _VARIES * max(x, 0.1 * rows)
        return (self.xy / self.n - x * y) / spread if spread > enough**2 else None


@dataclass(frozen=True, slots=True)
class Monitor:
    """The offered load, smoothed, and what it consists of.

    >>> monitor = Monitor()
    >>> for saved in (0.0, 0.9, 0.5, 1.0) * 20:
    ...     took = 0.2 + 0.001 * 1600 * (1 - saved)
    ...     monitor = monitor.after(Sample(rows=1600, seconds=took, limit=1.0, saved=saved))
    >>> round(monitor.offered, 2), round(monitor.fixed, 2), round(monitor.cost, 4)
    (1.8, 0.2, 0.001)
    """

    offered: float = 0.0
    #: seconds that an epoch takes without rows, and more for each row
    fixed: float = 0.0
    cost: float = 0.0
    #: the share of the work that rows make
    by_rows: float = 1.0
    sums: Sums = field(default_factory=Sums)
    #: a backlog is counted as load that is worked off within so many epochs
    drain: int = 10
    quick: float = 0.5
    slow: float = 0.2

    def after(self, sample: Sample) -> Monitor:
        """With one more epoch."""
        learnt = self._learnt(sample)
        rows = sample.rows + sample.backlog / self.drain
        offered = (learnt.fixed + learnt.cost * rows) / sample.limit
        gain = self.quick if offered > self.offered else self.slow
        return replace(learnt, offered=self.offered + gain * (offered - self.offered))

    def _learnt(self, sample: Sample) -> Monitor:
        sums = self.sums.add(sample.kept, sample.seconds)
        (rows, seconds), by_rows = sums.means, self.by_rows
        slope = sums.slope(sample.rows)
        if slope is not None and seconds > 0:
            cost = min(max(slope, 0.0), seconds / rows)
            by_rows = cost * rows / seconds
        elif sample.rows and sample.kept >= _ENOUGH * sample.rows:
            cost = by_rows * seconds / rows
        else:
            cost = _FADING * self.cost
        return replace(self, sums=sums, cost=cost, fixed=max(0.0, seconds - cost * rows), by_rows=by_rows)
