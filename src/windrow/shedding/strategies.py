"""Ways to shed, and what each of them promises. Windrow drops windows; the others are here to be compared
with.

WinDrop     drops windows, and rows that no kept window needs
RDrop       drops answers at random, after all aggregates
RowDrop     drops rows at random, before the aggregates
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """What holds of the answers under a way of shedding, whatever the input."""

    #: every row given is a row of the exact answer
    subset: bool
    #: no more windows in a row are missing than MAX GAP says
    bounded_gaps: bool
    #: rows are dropped before aggregates see them
    saves_aggregates: bool

    def text(self, gap: int | None = None) -> str:
        """The promise in words; `gap` is MAX GAP, where it is known.

        >>> print(WINDROP.text(4))
        each answer given is exact, at most 4 windows in a row are missing
        >>> print(ROW_DROP.text())
        answers may be wrong, any number of windows may be missing
        """
        answers = "each answer given is exact" if self.subset else "answers may be wrong"
        if not self.bounded_gaps:
            return f"{answers}, any number of windows may be missing"
        most = "MAX GAP windows" if gap is None else "1 window" if gap == 1 else f"{gap} windows"
        return f"{answers}, at most {most} in a row {'is' if gap == 1 else 'are'} missing"


WINDROP = Promise(subset=True, bounded_gaps=True, saves_aggregates=True)
RDROP = Promise(subset=True, bounded_gaps=False, saves_aggregates=False)
ROW_DROP = Promise(subset=False, bounded_gaps=False, saves_aggregates=True)
