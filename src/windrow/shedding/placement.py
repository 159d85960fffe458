"""Where to drop: at the earliest point at which it saves something (the paper's section 3.5).

The further upstream a WinDrop is, the longer its windows are, and the fewer rows a dropped batch makes
needless. Before the leftmost aggregate it saves nothing more once the batch is shorter than a window, B <
floor(window / slide): there it then stays. Where queries part, the common slot may be longer than MAX GAP
allows; then each query drops after the split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from windrow.shedding.model import early_share
from windrow.shedding.rules import WinDrop, pipeline
from windrow.shedding.sharing import Group


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a pipeline: its cost per row and rows out per row in. An aggregate has a window."""

    cost: float
    selectivity: float = 1.0
    window: WinDrop | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A place for a WinDrop: before the stage of this number; after all of them there is none to save."""

    before: int
    drop: WinDrop
    #: work per input row that is saved, its own cost taken off
    saves: float


def points(stages: Sequence[Stage], batch: int, p: float, overhead: float = 0.0) -> list[Point]:
    """All places in a pipeline up to its last aggregate, the earliest first, with what they save."""
    rates = [1.0]
    for stage in stages:
        rates.append(rates[-1] * stage.selectivity)
    last = max(place for place, stage in enumerate(stages) if stage.window is not None)
    each = [
        rates[place] * stages[place].cost * _saved(stages, place, batch, p) for place in range(len(stages))
    ]
    return [
        Point(place, _drop(stages, place, batch), sum(each[place:]) - rates[place] * overhead)
        for place in range(last + 1)
    ]


def best_point(stages: Sequence[Stage], batch: int, p: float, overhead: float = 0.0) -> Point:
    """The place that saves most; of equal ones the one nearest to the aggregate, which marks fewer rows.

    >>> stages = [Stage(5.0), Stage(1.0, 0.1, WinDrop(10, 10)), Stage(5.0)]
    >>> best_point(stages, batch=1, p=0.5).before
    0
    >>> sliding = [Stage(5.0), Stage(1.0, 0.1, WinDrop(100, 10)), Stage(5.0)]
    >>> best_point(sliding, batch=5, p=0.5).before
    1
    """
    return max(points(stages, batch, p, overhead), key=lambda point: (point.saves, point.before))


def _drop(stages: Sequence[Stage], place: int, batch: int) -> WinDrop:
    windows = [stage.window for stage in stages[place:] if stage.window is not None]
    found = pipeline(*windows)
    return WinDrop(found.window, found.slide, batch)


def _saved(stages: Sequence[Stage], place: int, batch: int, p: float) -> float:
    """The share of a stage's rows that is needless: p after the last aggregate, early drops before it."""
    if any(stage.window is not None for stage in stages[place:]):
        return early_share(_drop(stages, place, batch), p)
    return p


class Where(Enum):
    """What a group of queries can leave out."""

    ROWS = "rows are dropped as they arrive"
    WINDOWS = "windows are dropped, but every row is needed by one that is kept"


def place(group: Group) -> Where:
    """Whether dropped batches of a group make rows needless.

    >>> from windrow.shedding.agreement import Agreed
    >>> from windrow.shedding.reach import Reach
    >>> from windrow.windows.grid import SlideGrid
    >>> [place(Group((Agreed("q", SlideGrid(10), (Reach("s", 60),), gap),))).name for gap in (5, 6)]
    ['WINDOWS', 'ROWS']
    """
    return Where.ROWS if group.drop.drops_early else Where.WINDOWS
