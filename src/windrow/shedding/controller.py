"""How much to shed: as much as brings the load to the target, approached without swinging.

The share of work that must go follows from the offered load alone, not from the load under shedding: shedding
more does not make the wish for shedding smaller, so there is nothing to swing. What remains is noise, and the
delay until windows that are decided now make rows needless. Therefore small wishes are ignored (`band`),
steps are bounded, and p falls only after it could have fallen for a while (`patience`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Settings:
    """How shedding is steered."""

    #: the load to reach
    target: float = 0.8
    #: smaller changes are not made
    band: float = 0.05
    #: the greatest steps up and down, in one epoch
    rise: float = 0.25
    fall: float = 0.1
    #: epochs in a row in which less would do, before less is shed
    patience: int = 3


@dataclass(frozen=True, slots=True)
class Controller:
    """The share of the work that is to be saved.

    >>> steered = Controller()
    >>> for _ in range(10):
    ...     steered = steered.after(offered=1.6, most=0.9)
    >>> round(steered.saving, 2)
    0.5
    """

    saving: float = 0.0
    calm: int = 0
    settings: Settings = Settings()

    def wanted(self, offered: float, most: float) -> float:
        """What would bring the load to the target: nothing as long as it is below it."""
        if offered <= self.settings.target:
            return 0.0
        return min(most, 1 - self.settings.target / offered)

    def after(self, offered: float, most: float) -> Controller:
        """One step, with the smoothed offered load; `most` is all that can be saved."""
        rules = self.settings
        now = min(self.saving, most)
        wanted = self.wanted(offered, most)
        is_end = wanted in (0.0, most)
        if abs(wanted - now) <= (1e-9 if is_end else rules.band):
            return replace(self, saving=now, calm=0)
        if wanted > now:
            return replace(self, saving=min(wanted, now + rules.rise), calm=0)
        if self.calm + 1 < rules.patience:
            return replace(self, saving=now, calm=self.calm + 1)
        return replace(self, saving=max(wanted, now - rules.fall), calm=self.calm + 1)
