"""What a benchmark is to reach, and whether a run of it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from benchmarks.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.statistics import Summary

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Target:
    """A ratio that is to be at least, or at most, so much. `found` is None if this run did not measure it."""

    claim: str
    sense: Literal["≥", "≤"]
    limit: float
    found: Summary | None
    #: the ratio is more than what was found, by how much is not known
    is_bound: bool = False

    @property
    def is_reached(self) -> bool | None:
        """Whether the median is on the right side; None if nothing was measured.

        >>> from benchmarks.statistics import summary
        >>> [Target("t", "≥", 5.0, found).is_reached for found in (summary([6.0]), summary([4.0]), None)]
        [True, False, None]
        """
        if self.found is None:
            return None
        median = self.found.median
        return median >= self.limit if self.sense == "≥" else median <= self.limit

    @property
    def _is_noise(self) -> bool:
        """Whether rounds were on both sides."""
        return self.found is not None and self.found.least < self.limit < self.found.greatest

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The row of the table of targets."""
        found = self.found.text(2, "×") if self.found else NOT_MEASURED
        found = f"> {found}" if self.is_bound else found
        verdict = {True: "yes", False: "no", None: "–"}[self.is_reached]
        verdict += ", within noise" if self._is_noise else ""
        return self.claim, f"{self.sense} {self.limit:g}×", found, verdict


def target_table(targets: Sequence[Target]) -> Table:
    """All targets, with what was found."""
    columns = ("ratio", "to reach", "measured", "reached")
    return Table("What is to be reached", columns, tuple(target.cells for target in targets))
