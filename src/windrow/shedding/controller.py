"""How much to shed: what the epochs to come say, approached in small steps unless answers would be too late.

`usual` is how long an epoch may take for good. `bound` is some seconds more: no epoch should take longer than
that. As long as none is foreseen that does, and it is not beyond doubt that rows come too fast, nothing is
shed. A pause leaves a hump behind that goes away by itself.

If an epoch beyond the bound is foreseen, p is set at once to the least that avoids it; and if rows come too
fast beyond doubt, to what makes the very next epoch a usual one. There is no time then: sources hand over
all that waits, so an epoch with three times too many rows is followed by one that is three times as long.

Otherwise p goes in steps, by the time that has passed, up or down: to where epochs are a little shorter than
usual, as long as rows come too fast, and to nothing if they do not. What must go follows from the load that
is offered, not from the load under shedding: shedding more does not make the wish for shedding smaller, so
there is nothing to swing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from windrow.shedding.outlook import Outlook


@dataclass(frozen=True, slots=True)
class Settings:
    """How shedding is steered."""

    #: how long epochs should take under shedding, of the usual
    target: float = 0.9
    #: an epoch may take so many seconds longer than usual, or half as long as usual
    grace: float = 5.0
    #: the work that comes may really be less by this share
    doubt: float = 0.2
    #: smaller changes are not made
    band: float = 0.05
    #: seconds from nothing to all, and from all to nothing
    rise: float = 10.0
    fall: float = 6.0
    #: epochs in a row in which less would do, before less is shed
    patience: int = 2


@dataclass(frozen=True, slots=True)
class Controller:
    """The share of all that can be given up which is given up.

    >>> from windrow.shedding.outlook import Outlook
    >>> steered = Controller()
    >>> for _ in range(10):
    ...     steered = steered.after(Outlook(0.1, 1.6, 1.6, interval=1.0, on_rows=0.8), usual=1.0, passed=1.0)
    >>> round(steered.share, 3)
    0.6
    """

    share: float = 0.0
    calm: int = 0
    settings: Settings = Settings()

    def bound(self, usual: float) -> float:
        """Longer than that no epoch should take."""
        return usual + max(usual / 2, self.settings.grace)

    def is_overload(self, outlook: Outlook, usual: float) -> bool:
        """Whether rows come too fast for good, beyond doubt; halfway to the bound is enough for that."""
        halfway = (usual + self.bound(usual)) / 2
        return outlook.eased(self.settings.doubt).settled(0.0) > halfway

    def after(self, outlook: Outlook, usual: float, passed: float, *, behind: bool = True) -> Controller:
        """One step, `passed` seconds after the last one; `behind`: epochs do not keep up with their rows."""
        rules, now, bound = self.settings, self.share, self.bound(usual)
        least = outlook.least(lambda share: outlook.longest(share) <= bound)
        is_overload = self.is_overload(outlook, usual)
        if least > now and behind:
            share = max(least, self._short_again(outlook, usual)) if is_overload else least
            return replace(self, share=share, calm=0)
        goal = max(least, self._goal(outlook, usual)) if is_overload else least
        if abs(goal - now) <= (rules.band if 0 < goal < 1 else 0.0):
            return replace(self, calm=0)
        if goal > now:
            return replace(self, share=min(goal, now + passed / rules.rise) if behind else now, calm=0)
        if self.calm + 1 < rules.patience:
            return replace(self, calm=self.calm + 1)
        return replace(self, share=max(goal, now - passed / rules.fall), calm=self.calm + 1)

    def _short_again(self, outlook: Outlook, usual: float) -> float:
        """The share with which the very next epoch takes no longer than usual."""
        return outlook.least(lambda share: outlook.next(share) <= usual)

    def _goal(self, outlook: Outlook, usual: float) -> float:
        """The share with which epochs come to the target, and are there soon."""
        target = self.settings.target * usual
        return outlook.least(
            lambda share: outlook.epochs(share)[-1] <= target and outlook.settled(share) <= target
        )
