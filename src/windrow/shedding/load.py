"""What overload looks like: what came, how long it took, what is left waiting.

One `Sample` is one epoch. A `Monitor` keeps three things: what an epoch costs without rows and for each row
(`Line`), how many rows come in a second, and what lies between two epochs. From these follows the load
of an epoch that should take some seconds: the work on all rows that come in that time, against that time. It
does not depend on what is shed. Above 1 the epochs fall behind.

Rows come while an epoch runs, and sources without a limit hand over all of them at once: after a long epoch
many rows wait. How long the next epochs will take is known before they begin (`outlook`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp

from windrow.shedding.line import Line
from windrow.shedding.outlook import Outlook

#: the cost of rows after another epoch in which none was worked on, and after so many of them: it gets
#: another try
_FADING, _STARVING = 0.98, 8
#: with a smaller share of the rows kept, there is nothing to learn about their cost
_ENOUGH = 0.02
#: rows per second are those of the last seconds, of about so many
_LATELY = 1.0
#: how quickly the time around epochs is learnt
_QUICK = 0.3
#: a backlog that the source tells of is worked off within so many epochs
_DRAIN = 10
#: an epoch may take so many times its fixed costs, however short it should be
TIMES_FIXED = 4.0


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
    """One epoch as it was measured."""

    rows: int
    seconds: float
    #: seconds in which these rows came: since the epoch before began
    since: float
    #: rows that wait in the source
    backlog: int = 0
    #: the share of the rows that was shed
    saved: float = 0.0
    #: seconds that an epoch takes besides
    around: float = 0.0

    @property
    def kept(self) -> float:
        """The rows that were worked on."""
        return self.rows * (1 - self.saved)


@dataclass(frozen=True, slots=True)
class Monitor:
    """What is known of costs and rates after some epochs.

    >>> monitor = Monitor()
    >>> for saved in (0.0, 0.9, 0.5, 1.0) * 20:
    ...     took = 0.2 + 0.001 * 1600 * (1 - saved)
    ...     monitor = monitor.after(Sample(rows=1600, seconds=took, since=1.0, saved=saved))
    >>> round(monitor.load(limit=1.0), 1), round(monitor.fixed, 1), round(monitor.rate)
    (1.8, 0.2, 1600)
    """

    line: Line = field(default_factory=Line)
    #: rows per second
    rate: float = 0.0
    #: the last epoch, with what lies around it; and rows that wait
    took: float = 0.0
    backlog: int = 0
    #: seconds between the end of one epoch and the beginning of the next, if rows wait
    around: float = 0.0
    #: epochs seen
    epochs: int = 0
    #: whether the last epoch took longer than its rows took to come
    behind: bool = False
    #: epochs in a row in which no rows were worked on
    starved: int = 0

    @property
    def fixed(self) -> float:
        """Seconds that an epoch takes without rows."""
        return self.line.fixed + self.around

    @property
    def cost(self) -> float:
        """Seconds more for each row."""
        return self.line.cost

    def after(self, sample: Sample) -> Monitor:
        """With one more epoch."""
        line = self.line.after(sample.kept, sample.seconds)
        starved = self.starved + 1 if sample.kept < _ENOUGH * sample.rows else 0
        if starved > _STARVING:
            line = line.faded(_FADING)
        around = self.around + (_QUICK if self.epochs else 1.0) * (sample.around - self.around)
        took = sample.seconds + sample.around
        return Monitor(
            line,
            self._rate(sample),
            took,
            sample.backlog,
            around,
            self.epochs + 1,
            took > sample.since or sample.backlog > 0,
            starved,
        )

    def _rate(self, sample: Sample) -> float:
        came = max(0, sample.rows + sample.backlog - self.backlog)
        new = came / sample.since if sample.since else self.rate
        gain = 1 - exp(-sample.since / _LATELY) if self.epochs else 1.0
        return self.rate + gain * (new - self.rate)

    def allowed(self, limit: float) -> float:
        """How long an epoch may take: no shedding makes it shorter than its fixed costs."""
        return max(limit, TIMES_FIXED * self.fixed)

    def load(self, limit: float) -> float:
        """The work on the rows that come while an epoch runs, if it takes as long as it may, against that."""
        return (self.fixed + self.cost * self.rate * limit) / limit

    def waiting(self, interval: float) -> float:
        """The rows of the next epoch: those that came in the last one, and a part of those that wait."""
        return self.rate * max(interval, self.took) + self.backlog / _DRAIN

    def outlook(self, interval: float, on_rows: float, on_rest: float) -> Outlook:
        """The epochs to come, if these shares of the work can be saved."""
        return Outlook(
            self.fixed,
            self.cost * self.rate,
            self.cost * self.waiting(interval),
            interval,
            on_rows,
            on_rest,
            self.cost * self.backlog * (1 - 1 / _DRAIN),
        )
