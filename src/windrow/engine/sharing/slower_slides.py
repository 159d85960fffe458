"""Paces: queries whose windows move when those of another one do, which asks more often.

A join over windows that move every minute has, every hour, the results of the same join over windows that
move every hour. So one that moves more often serves both, if the slower query looks at it at its own instants
only: the join's results are *sampled* there, and everything above sees what it would by itself. A query that
differs from another in nothing but when it asks needs no sampling of its own: it has all results in common
with it and reports some of them (CS8). That is so only where nothing can fail: an overflow in a window that
the slower query does not have must not stop it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from windrow.algebra.operators import Aggregate, Limit, TableJoin
from windrow.algebra.plan import Emit
from windrow.algebra.types import Kind
from windrow.optimizer.common_subplans import can_meet_more, likeness, ranges_of, trunk_of
from windrow.optimizer.movability import can_ever_fail
from windrow.optimizer.trees import expressions_of
from windrow.sharing.rules import cs8
from windrow.windows.grid import SlideGrid

_EXACT = frozenset({Kind.DECIMAL, Kind.INTERVAL})
#: aggregates that may be too large for their type, if it is one of these
_TOTALS = {"sum": _EXACT | {Kind.BIGINT}, "approx_sum": _EXACT | {Kind.BIGINT}, "avg": _EXACT}


@dataclass(frozen=True)
class Pace:
    """When the windows of a query move, which is when those of another one do."""

    grid: SlideGrid
    #: the instants at which it, or a query that it is like, looks at the results of its trunk; None: always
    sampled: SlideGrid | None = None

    def leader(self, own: SlideGrid | None) -> SlideGrid:
        """When the query asks that one at this pace follows, which asks at instants of its `own`."""
        return self.grid if self.sampled in (None, own) else self.sampled


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
        """With which queries it can go: those that ask the same, then those over the same join, to sample.
        A LIMIT does not know rows that are still to come, which others see already."""
        found: list[tuple[bool, Hashable]] = []
        if not _may_fail(self.plan):
            found.append((False, (self.bounds, cs8.unslid(self.plan))))
        if can_meet_more(self.plan) and not any(isinstance(node, Limit) for node in self.plan.walk()):
            often = cs8.moving_on(self.plan, SlideGrid(1))
            found.append((True, (self.bounds, likeness(often, shortens=self.shortens))))
        return found


def paces(beginning: Sequence[Beginner], never: Collection[tuple[str, SlideGrid]] = ()) -> dict[str, Pace]:
    """The queries that go at another one's pace, by their ids; `never` are those that must not."""
    found: dict[str, Pace] = {}
    # who leads, and at which pace: of queries that are alike, and of those over one join
    leaders: dict[tuple[bool, Hashable], dict[tuple[SlideGrid, Hashable], Pace]] = {}
    moving = [(each, grid) for each in beginning if (grid := each.grid) is not None]
    for each, grid in sorted(moving, key=lambda one: one[1].period):
        kinds = each.kinds
        possible = (pace for kind in kinds for pace in _followed(each, grid, kind, leaders))
        pace = next((pace for pace in possible if (each.id, pace.grid) not in never), None)
        if pace is not None:
            found[each.id] = pace
        mine = found.get(each.id, Pace(grid))
        for is_join, kind in kinds:
            # a query leads over its join if its windows move as it asks, and those like it if it samples, too
            if mine == Pace(grid) or (not is_join and mine.sampled == grid):
                at = leaders.setdefault((is_join, kind), {})
                at.setdefault((grid, _cut(each, mine.grid)), mine)
    return found


def _followed(
    each: Beginner,
    grid: SlideGrid,
    kind: tuple[bool, Hashable],
    leaders: Mapping[tuple[bool, Hashable], Mapping[tuple[SlideGrid, Hashable], Pace]],
) -> Iterator[Pace]:
    """The paces at which a query may go: its windows then begin and end when those of the leader do."""
    is_join, _ = kind
    for (other, cut), pace in leaders.get(kind, {}).items():
        if other != grid and grid.is_within(other) and _cut(each, pace.grid) == cut:
            yield Pace(pace.grid, grid) if is_join else pace


def _cut(each: Beginner, grid: SlideGrid) -> Hashable:
    """Where the windows of a join begin, seen from their ends."""
    return tuple(length % grid.period for length in ranges_of(trunk_of(each.plan)) or ())


def _may_fail(plan: Emit) -> bool:
    """Whether some window, or a row in it, can make a query fail."""
    nodes = list(plan.walk())
    calls = [call for node in nodes if isinstance(node, Aggregate) for _, call in node.aggregates]
    totals = [(_TOTALS.get(call.function.lower(), frozenset()), call) for call in calls]
    too_large = any(argument.type.kind in kinds for kinds, call in totals for argument in call.args)
    return too_large or any(can_ever_fail(each) for node in nodes for each in expressions_of(node))
