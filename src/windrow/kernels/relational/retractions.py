"""How the results of a negation leave: when they expire, or earlier because a match came.

Results that leave on time need no message: they carry their expiry, and whoever keeps them has them in a
calendar. One that leaves early is taken away by a negative row, for which the calendar is searched. If most
leave early, it is better to tell every expiry by a negative row, and to keep results in a hash (thesis,
3.5.2). So the share of early ones is observed, and the form changes when it is clearly on the other side.

Which share that is depends on what each form costs an operator. NOT EXISTS finds every expiry with the row it
passes on, so negative rows cost it a copy of its results (209 000 rows/s instead of 271 000, 250 000 rows on
either side): they pay only where next to nothing leaves on time. EXCEPT ALL learns of expiries by its counts,
and must keep what it has promised in the calendar form (87 000 rows/s instead of 192 000): that pays only
where next to nothing leaves early.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from windrow.kernels.relational.options import Negation

EARLY, ON_TIME, TOLD = "early", "on_time", "told"
#: nothing is concluded from fewer results
FEWEST = 32
#: older results count less: both numbers are halved when there are more
MOST = 1 << 12


@dataclass(frozen=True)
class Withdrawals:
    """Which form is used, as far as it can be chosen: only if every row below carries its expiry."""

    possible: bool
    forced: Negation | None = None
    first: Negation = Negation.CALENDAR
    #: above this share of early results every expiry is told, below that one no longer
    tell: float = 0.5
    tell_no_more: float = 0.3

    def form(self, meta: Mapping[str, int]) -> Negation:
        """The form in this step.

        >>> [Withdrawals(known).form({TOLD: 0}).value for known in (True, False)]
        ['calendar', 'negative rows']
        """
        if not self.possible:
            return Negation.NEGATIVE
        told = meta.get(TOLD, int(self.first is Negation.NEGATIVE))
        return self.forced or (Negation.NEGATIVE if told else Negation.CALENDAR)

    def after(self, meta: Mapping[str, int], early: int, on_time: int) -> dict[str, int]:
        """What is remembered of a step in which so many results left early, and so many on time.

        A result counts as on time until it leaves early, so that there may be fewer than before.

        >>> Withdrawals(True).after({}, early=30, on_time=10)
        {'early': 30, 'on_time': 10, 'told': 1}
        >>> Withdrawals(True).after({"early": 30, "on_time": 10, "told": 1}, early=0, on_time=40)["told"]
        1
        """
        if not self.possible:
            return {}
        early, on_time = meta.get(EARLY, 0) + early, max(0, meta.get(ON_TIME, 0) + on_time)
        told = self.form(meta) is Negation.NEGATIVE
        total = early + on_time
        if total >= FEWEST:
            told = early > (self.tell_no_more if told else self.tell) * total
        if total > MOST:
            early, on_time = early // 2, on_time // 2
        return {EARLY: early, ON_TIME: on_time, TOLD: int(told)}

    @property
    def text(self) -> str:
        """What people read."""
        if not self.possible:
            return "results leave by negative rows, since rows below do"
        if self.forced:
            return f"results leave by {_WORDS[self.forced]}, as asked for"
        return f"results leave by {_WORDS[self.first]} at first, then as the share of early ones says"


_WORDS = {
    Negation.CALENDAR: "calendar, early ones by negative rows",
    Negation.NEGATIVE: "negative rows",
}
