"""Who loses how much: all who agreed, those of low PRIORITY first and most.

One step of PRIORITY halves what a query loses, as long as the others can lose enough:

    p_i = min(most_i, level * 2 ** (lowest priority - priority_i))

The level is the least that saves what must be saved. Rows are saved by the query that loses least, since all
must drop the window that a row is in; the work after the split is saved by each query for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

_STEPS = 60


@dataclass(frozen=True, slots=True)
class Member:
    """A query of a group: the greatest share of its windows that may be dropped, and what it costs after the
    split.
    """

    name: str
    most: float
    priority: int = 0
    cost: float = 1.0


@dataclass(frozen=True, slots=True)
class Bill:
    """What a group costs: `rows` for work on rows before the split, of which `early` * p goes if p is dropped
    by all.
    """

    members: tuple[Member, ...]
    rows: float = 1.0
    early: float = 1.0

    @property
    def total(self) -> float:
        """All of the work."""
        return self.rows + fsum(member.cost for member in self.members)

    def saved(self, losses: Sequence[float]) -> float:
        """The share of the work that goes with these losses."""
        if not self.total:
            return 0.0
        after = fsum(member.cost * p for member, p in zip(self.members, losses, strict=True))
        return (self.rows * self.early * min(losses, default=0.0) + after) / self.total

    @property
    def savable(self) -> tuple[float, float]:
        """The work before the split, and after it, that can be saved at all."""
        early = self.rows * self.early * min((member.most for member in self.members), default=0.0)
        return early, fsum(member.cost * member.most for member in self.members)

    @property
    def most(self) -> float:
        """The share of the work that can be saved at all."""
        return self.saved([member.most for member in self.members])

    def losses(self, wanted: float) -> dict[str, float]:
        """What each query loses, so that this share of the work is saved; all they can, if that is not
        enough.

        >>> low, high = Member("low", most=0.9), Member("high", most=0.9, priority=1)
        >>> {name: round(p, 3) for name, p in Bill((low, high), rows=2.0).losses(0.25).items()}
        {'low': 0.4, 'high': 0.2}
        """
        if wanted <= 0 or not self.members:
            return {member.name: 0.0 for member in self.members}
        low, high = 0.0, self._highest
        for _ in range(_STEPS):
            level = (low + high) / 2
            low, high = (low, level) if self.saved(self._at(level)) >= wanted else (level, high)
        return {member.name: p for member, p in zip(self.members, self._at(high), strict=True)}

    def _at(self, level: float) -> list[float]:
        lowest = min(member.priority for member in self.members)
        return [min(member.most, level * 2.0 ** (lowest - member.priority)) for member in self.members]

    @property
    def _highest(self) -> float:
        """The level at which everybody loses all they can."""
        lowest = min(member.priority for member in self.members)
        return max(member.most * 2.0 ** (member.priority - lowest) for member in self.members)
