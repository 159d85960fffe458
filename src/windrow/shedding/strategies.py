"""Ways to shed, and what each of them promises. Windrow drops windows; the others are here to be compared
with.

WinDrop     drops windows, and rows that no kept window needs
RDrop       drops answers at random, after all aggregates
RowDrop     drops rows at random, before the aggregates
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from windrow.shedding.chance import chance

T = TypeVar("T")


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


def at_random(rows: Iterable[T], p: float, seed: int) -> Iterator[T]:
    """RDrop of answers, or RowDrop of rows: each is dropped with probability p, by its place.

    >>> len(list(at_random(range(1000), 0.3, seed=1)))
    718
    """
    return (row for place, row in enumerate(rows) if chance(seed, place) >= p)


def whole_windows(
    answers: Iterable[T], end_of: Callable[[T], int], drops: Callable[[int], bool]
) -> Iterator[T]:
    """WinDrop of answers: those of kept windows."""
    return (answer for answer in answers if not drops(end_of(answer)))
