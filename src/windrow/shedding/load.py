"""What overload looks like: what came, how long it took, what is left waiting.

One `Sample` is one epoch. A `Monitor` keeps what an epoch costs without rows and for each row (`Line`), how
many rows come in a second, and what lies between two epochs. From these follows the load of an epoch that
should take some seconds: the work on all rows that come in that time, against that time. It does not depend
on what is shed. Above 1 the epochs fall behind. How long the next epochs will take is known before they
begin (`outlook`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import exp

from windrow.shedding.controller import Outlook

#: how much of what was seen counts after another epoch
_MEMORY = 0.95
#: and if two in a row took far too long: then something has changed
_CHANGED = 0.6
#: so many epochs the belief before counts as
_BELIEF = 0.5
#: of the first epoch, what is taken to be for its rows
_BY_ROWS = 0.5
#: an epoch that takes so many times what was expected was held up by something else, and counts as expected;
#: unless the one before was as strange
_STRANGE = 1.6
#: after so many epochs it is known what to expect
_FEW = 1.5


@dataclass(frozen=True, slots=True)
class Line:
    """What an epoch costs: seconds = fixed + cost * rows, learnt from epoch to epoch, by least squares over
    the last epochs, drawn a little towards what was believed before.

    While the numbers of rows vary, and shedding makes them vary, both costs are found. While they do not,
    only their sum is seen: both beliefs then move together, as little as is needed. Kept are sums over the
    last epochs: of x, rows worked on, y, seconds, and products.

    >>> line = Line()
    >>> for rows in (100, 900, 300, 1500, 40, 700) * 3:
    ...     line = line.after(rows, 0.5 + 0.001 * rows)
    >>> round(line.fixed, 2), round(line.cost, 4)
    (0.5, 0.001)
    """

    fixed: float = 0.0
    cost: float = 0.0
    n: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    #: whether the last epoch took much longer than expected
    strange: bool = False

    def after(self, rows: float, seconds: float) -> Line:
        """With one more epoch."""
        if not self.n:
            cost = _BY_ROWS * seconds / rows if rows else 0.0
            return Line(seconds - cost * rows, cost, 1.0, rows, seconds, rows * rows, rows * seconds)
        expected = self.fixed + self.cost * rows
        # nobody knows what a row costs from few epochs, or from epochs with far fewer of them
        knows = self.n > _FEW and rows * rows <= 4 * self.xx / self.n
        is_strange = knows and seconds > _STRANGE * expected
        counted = expected if is_strange and not self.strange else seconds
        memory = _CHANGED if is_strange and self.strange else _MEMORY
        return replace(self._with(rows, counted, memory)._fitted(), strange=is_strange)

    def _with(self, rows: float, seconds: float, memory: float) -> Line:
        new = (1.0, rows, seconds, rows * rows, rows * seconds)
        old = (self.n, self.x, self.y, self.xx, self.xy)
        n, x, y, xx, xy = (memory * before + each for before, each in zip(old, new, strict=True))
        return Line(self.fixed, self.cost, n, x, y, xx, xy)

    def _fitted(self) -> Line:
        """Both costs anew; neither is below nothing."""
        scale = max(self.xx / self.n, 1.0)
        n, xx = self.n + _BELIEF, self.xx + _BELIEF * scale
        y, xy = self.y + _BELIEF * self.fixed, self.xy + _BELIEF * scale * self.cost
        whole = n * xx - self.x * self.x
        fixed, cost = (xx * y - self.x * xy) / whole, (n * xy - self.x * y) / whole
        if cost < 0:
            fixed, cost = y / n, 0.0
        elif fixed < 0:
            fixed, cost = 0.0, xy / xx
        return replace(self, fixed=fixed, cost=cost)

    def faded(self, share: float) -> Line:
        """As if rows had cost less all the time."""
        less = (1 - share) * self.cost
        return replace(self, cost=share * self.cost, y=self.y - less * self.x, xy=self.xy - less * self.xx)


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
class OperatorWork:
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
