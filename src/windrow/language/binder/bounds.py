"""`window_start` and `window_end`: facts of the extent an answer is about.

They are instants where the windows slide in time, and numbers where the attribute is a number or the
window counts rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.algebra.checks import window_bounds_are_defined
from windrow.algebra.expressions import WindowBound
from windrow.algebra.types import BIGINT, TIMESTAMP
from windrow.windows.domain import Domain

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.plan import Plan, Window


@dataclass(frozen=True)
class Leaves:
    """The windows of a SELECT, before anything is made of them."""

    leaves: tuple[Window, ...]


def bounds_over(plan: Plan | Leaves) -> Callable[[str], WindowBound]:
    """What makes the bounds of the windows below."""

    def make(which: str) -> WindowBound:
        leaves = plan.leaves
        counted = any(leaf.spec.reports_positions for leaf in leaves)
        timed = not counted and all(leaf.domain is Domain.TIME for leaf in leaves)
        bound = WindowBound(which, TIMESTAMP if timed else BIGINT)
        window_bounds_are_defined(plan, [bound])
        return bound

    return make
