"""Reporting instants: the slides of all windows together, along the attribute and as rows move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.relational.aggregate.cells import covered
from windrow.kernels.relational.signed_rows import FOREVER

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.relational.operator import Step
    from windrow.windows.grid import SlideGrid

    Ints = npt.NDArray[np.int64]


def last_report(grids: Sequence[SlideGrid], step: Step) -> int:
    """At the end of input: the first reporting instant at or after the last endpoint, and no earlier than the
    clock had come before."""
    if step.last_end == -FOREVER:
        return -FOREVER
    last = min((grid.first_after(step.last_end - 1) for grid in grids), default=step.last_end)
    return max(last, step.clock.reached)


def moved_by_rows(step: Step) -> Ints:
    """The instants of the step at which rows moved a window, in order."""
    return np.unique(np.concatenate([*step.slides, np.zeros(0, dtype=np.int64)]))


def first_report(grids: Sequence[SlideGrid], step: Step, at: Ints) -> Ints:
    """The first reporting instant at or after each of some instants; infinity if the step knows none."""
    found = np.full(len(at), FOREVER)
    for grid in grids:
        found = np.minimum(found, grid.origin + -(-(at - grid.origin) // grid.period) * grid.period)
    slides = np.append(moved_by_rows(step), FOREVER)
    return np.asarray(np.minimum(found, slides[np.searchsorted(slides, at)]))


def reports_within(grids: Sequence[SlideGrid], step: Step, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, at) for each reporting instant in [low, high) of each row."""
    found = []
    for place, grid in enumerate(grids):
        row, number = covered(-(-(low - grid.origin) // grid.period), -(-(high - grid.origin) // grid.period))
        at = grid.origin + number * grid.period
        fresh = ~_on_grids(at, grids[:place])
        found.append((row[fresh], at[fresh]))
    slides = moved_by_rows(step)
    slides = slides[~_on_grids(slides, grids)]
    row, number = covered(np.searchsorted(slides, low), np.searchsorted(slides, high))
    found.append((row, slides[number]))
    return np.concatenate([row for row, _ in found]), np.concatenate([at for _, at in found])


def _on_grids(at: Ints, grids: Sequence[SlideGrid]) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(at), dtype=bool)
    for grid in grids:
        found |= (at - grid.origin) % grid.period == 0
    return found
