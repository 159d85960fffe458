"""How much to shed: as much as brings the next epoch to the target, at once; and less only slowly.

What must go follows from the load that is offered, not from the load under shedding: shedding more does not
make the wish for shedding smaller, so there is nothing to swing. Waiting is expensive on the way up: sources
hand over all that waits, so an epoch with three times too many rows is followed by one that is three times as
long. Therefore the step up is as great as it has to be. What remains is noise, against which small wishes are
ignored (`band`), nothing is raised as long as epochs keep up with their rows, and p falls in steps, and only
after it could have fallen for a while (`patience`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Settings:
    """How shedding is steered."""

    #: the load above which shedding begins, and the load to reach
    limit: float = 1.0
    target: float = 0.9
    #: smaller changes are not made
    band: float = 0.05
    #: the greatest step down in one epoch
    fall: float = 0.34
    #: epochs in a row in which less would do, before less is shed
    patience: int = 2


@dataclass(frozen=True, slots=True)
class Controller:
    """The share of all that can be given up which is given up.

    >>> steered = Controller()
    >>> for _ in range(10):
    ...     steered = steered.after(load=1.6, most=0.8)
    >>> round(steered.share, 3)
    0.547
    """

    share: float = 0.0
    calm: int = 0
    settings: Settings = Settings()

    def wanted(self, load: float, most: float) -> float:
        """What would bring the load to the target, if `most` of it can go: nothing as long as it is below."""
        rules = self.settings
        if load <= (rules.target if self.share else rules.limit):
            return 0.0
        return min(1.0, (1 - rules.target / load) / most) if most > 0 else 1.0

    def after(self, load: float, most: float, *, behind: bool = True) -> Controller:
        """One step. `most` is the share of the work that can be saved; `behind`: epochs do not keep up."""
        rules, now = self.settings, self.share
        wanted = self.wanted(load, most)
        is_end = wanted in (0.0, 1.0)
        if abs(wanted - now) <= (1e-9 if is_end else rules.band):
            return replace(self, calm=0)
        if wanted > now:
            return replace(self, share=wanted if behind else now, calm=0)
        if self.calm + 1 < rules.patience:
            return replace(self, calm=self.calm + 1)
        return replace(self, share=max(wanted, now - rules.fall), calm=self.calm + 1)
