"""Paces: queries whose windows move when those of another one do, which asks more often.

A join over windows that move every minute has, every hour, the results of the same join over windows that
move every hour. So one that moves more often serves both, if the slower query looks at it at its own instants
only: the join's results are *sampled* there, and everything above sees what it would by itself. A query that
differs from the other in nothing but when it asks needs no sampling: it has all results in common with it and
reports some of them (CS8). That is so only where nothing can fail: an overflow in a window that the slower
query does not have must not stop it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from windrow.algebra.operators import Aggregate, TableJoin
from windrow.algebra.plan import Emit
from windrow.algebra.types import Kind
from windrow.rules.movable import can_fail
from windrow.rules.trees import expressions_of
from windrow.rules.trunks import can_meet_more, likeness, ranges_of, trunk_of
from windrow.sharing.rules import cs8
from windrow.windows.grid import SlideGrid

#: aggregates that may be too large for their type
_TOTALS = frozenset({"sum", "avg", "approx_sum"})
_WIDE = frozenset({Kind.BIGINT, Kind.DECIMAL, Kind.INTERVAL})


@dataclass(frozen=True)
class Pace:
    """When the windows of a query move, which is when those of another one do."""

    grid: SlideGrid
    #: whether the results of its trunk are looked at only when the query asks; else only its answers are
    sampled: bool = False


@dataclass(frozen=True)
class Beginner:
    """A query that begins: its plan, whether its windows may be longer, and what it can only have in common
    with queries that have it too."""

    id: str
    plan: Emit
    shortens: bool
    bounds: Hashable

    @property
    def grid(self) -> SlideGrid | None:
        """When its windows move, if they move together and the query may be at another's pace: it must look
        neither at their bounds, nor at tables, which change at instants of their own."""
        changes = any(isinstance(node, TableJoin) for node in self.plan.walk())
        return None if changes or self.plan.reads_window_bounds else cs8.grid_of(self.plan)

    @property
    def kinds(self) -> list[tuple[bool, Hashable]]:
        """With which queries it can go: those that ask the same, then those over the same join, to sample."""
        found: list[tuple[bool, Hashable]] = []
        if not _may_fail(self.plan):
            found.append((False, cs8.unslid(self.plan)))
        if can_meet_more(self.plan):
            often = cs8.moving_on(self.plan, SlideGrid(1))
            found.append((True, likeness(often, shortens=self.shortens)))
        return found


def paces(beginning: Sequence[Beginner]) -> dict[str, Pace]:
    """The queries that go at another one's pace, by their ids."""
    found: dict[str, Pace] = {}
    leaders: dict[Hashable, dict[tuple[SlideGrid, Hashable], None]] = {}
    moving = [(each, grid) for each in beginning if (grid := each.grid) is not None]
    for each, grid in sorted(moving, key=lambda one: one[1].period):
        kinds = [(sampled, (each.bounds, sampled, kind)) for sampled, kind in each.kinds]
        for sampled, kind in kinds:
            pace = next((pace for pace, cut in leaders.get(kind, ()) if _fits(each, grid, pace, cut)), None)
            if pace is not None:
                if pace != grid:
                    found[each.id] = Pace(pace, sampled)
                break
        if each.id not in found:
            for _, kind in kinds:
                leaders.setdefault(kind, {})[grid, _cut(each, grid)] = None
    return found


def _fits(each: Beginner, grid: SlideGrid, pace: SlideGrid, cut: Hashable) -> bool:
    """Whether windows may move at a pace: they then begin and end when those do that lead."""
    return grid.is_within(pace) and _cut(each, pace) == cut


def _cut(each: Beginner, grid: SlideGrid) -> Hashable:
    """Where the windows of a join begin, seen from their ends."""
    return tuple(length % grid.period for length in ranges_of(trunk_of(each.plan)) or ())


def _may_fail(plan: Emit) -> bool:
    """Whether some window, or a row in it, can make a query fail."""
    nodes = list(plan.walk())
    calls = [call for node in nodes if isinstance(node, Aggregate) for _, call in node.aggregates]
    totals = [call for call in calls if call.function.lower() in _TOTALS]
    wide = any(argument.type.kind in _WIDE for call in totals for argument in call.args)
    return wide or any(can_fail(each) for node in nodes for each in expressions_of(node))
