"""What an epoch costs: seconds = fixed + cost * rows, learnt from epoch to epoch.

Least squares over the last epochs, drawn a little towards what was believed before. While the numbers of rows
vary, and shedding makes them vary, both costs are found. While they do not, only their sum is seen: both
beliefs then move together, as little as is needed, and neither is mistaken for the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """The two costs, and sums over the last epochs: of x, rows worked on, y, seconds, and products.

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
        is_strange = self._knows(rows) and seconds > _STRANGE * expected
        counted = expected if is_strange and not self.strange else seconds
        memory = _CHANGED if is_strange and self.strange else _MEMORY
        return replace(self._with(rows, counted, memory)._fitted(), strange=is_strange)

    def _knows(self, rows: float) -> bool:
        """Nobody knows what a row costs from few epochs, or from epochs with far fewer of them."""
        return self.n > _FEW and rows * rows <= 4 * self.xx / self.n

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
