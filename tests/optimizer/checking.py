"""Does a rewritten query tell the same story? The oracle is asked, over many random histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.effort import count_inside, examples
from tests.support.plans import FIRST, LAST, worlds

from windrow.algebra.plan import Emit, Plan
from windrow.algebra.values import Change
from windrow.errors import DataError
from windrow.reference.rows import World
from windrow.reference.streams import QueryEvaluation
from windrow.windows.domain import INFINITY, Instant

HISTORIES = worlds(most=6)
clocks = st.just(INFINITY) | st.just(INFINITY) | st.integers(FIRST, LAST + 10)


def answers(emit: Plan, world: World, clock: Instant = INFINITY) -> list[Change] | None:
    """The changes; None if a row made an expression fail."""
    assert isinstance(emit, Emit)
    try:
        return QueryEvaluation(emit, world, clock).changes()
    except DataError:
        return None


def assert_same(before: Emit, after: Plan, world: World, clock: Instant = INFINITY) -> None:
    """A rewriting may make an error disappear; it must not make one appear."""
    expected = answers(before, world, clock)
    if expected is not None:
        assert answers(after, world, clock) == expected
        assert after.schema == before.schema


@st.composite
def late_worlds(draw: st.DrawFn) -> World:
    """Histories in which some rows came late and were kept: the clock had passed them already."""
    world = draw(HISTORIES)
    streams = {
        name: tuple(
            replace(row, clock=row.values[-1] + draw(st.integers(1, 8))) if draw(st.booleans()) else row
            for row in rows
        )
        for name, rows in world.streams.items()
    }
    return World(streams, world.tables)


def check(
    rewritings: Callable[[Emit], Iterable[Plan]],
    plans: st.SearchStrategy[Emit],
    tried: int = 25,
    share: float = 0.08,
    worlds: st.SearchStrategy[World] = HISTORIES,
) -> None:
    """Every rewriting of every plan gives the same changes, and enough plans have one."""
    fired = []

    @settings(max_examples=examples(tried, deep=True), suppress_health_check=list(HealthCheck))
    @given(plans, worlds, clocks)
    def run(plan: Emit, world: World, clock: Instant) -> None:
        found = [other for other in rewritings(plan) if other != plan]
        fired.append(bool(found))
        for other in found:
            assert_same(plan, other, world, clock)

    try:
        run()
    finally:
        count_inside(len(fired))
    assert sum(fired) >= share * len(fired), f"fired in {sum(fired)} of {len(fired)} plans"
