"""Results depend neither on the cut into micro-batches nor on when they are taken, and nothing is revised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.support.plans import FIRST, LAST, plans, worlds

from windrow.algebra.plan import Emit
from windrow.algebra.values import Change
from windrow.reference.executor import ReferenceExecutor
from windrow.reference.rows import World

pytestmark = pytest.mark.deep


def begun(plan: Emit, world: World) -> ReferenceExecutor:
    executor = ReferenceExecutor(plan)
    for name in executor.tables:
        for change in world.tables[name]:
            executor.update(name, int(change.at), change.insert, change.delete)
    return executor


def promise(rest: list[tuple[Any, ...]]) -> int:
    """The greatest promise that holds for the rows that are still to come."""
    return min((row[-1] for row in rest), default=LAST + 1)


@given(plans(), worlds(), st.data())
def test_the_cut_does_not_matter(plan: Emit, world: World, data: st.DataObject) -> None:
    pieces, whole = begun(plan, world), begun(plan, world)
    taken: list[Change] = []
    for name in pieces.streams:
        rows = [arrival.values for arrival in world.streams[name]]
        whole.push(name, rows)
        while rows:
            size = data.draw(st.integers(1, len(rows)))
            pieces.push(name, rows[:size])
            rows = rows[size:]
            if data.draw(st.booleans()):
                pieces.punctuate(name, promise(rows))
                taken += pieces.take()
        for executor in (pieces, whole):
            executor.punctuate(name, LAST + 1)
    for executor in (pieces, whole):
        executor.finish()
    taken += pieces.take()
    assert sorted(taken, key=lambda change: change.place) == whole.take()


@given(plans(tables=False), worlds(), st.data())
def test_promises_about_single_groups_revise_nothing(plan: Emit, world: World, data: st.DataObject) -> None:
    """`take` itself reports an answer that had to be revised; the total is what one take at the end gives."""
    pieces, whole = begun(plan, world), begun(plan, world)
    taken: list[Change] = []
    for name in pieces.streams:
        rows = [arrival.values for arrival in world.streams[name]]
        whole.push(name, rows)
        while rows:
            size = data.draw(st.integers(1, len(rows)))
            pieces.push(name, rows[:size])
            rows = rows[size:]
            key = data.draw(st.sampled_from([None, 0, 1, 2]))
            pieces.punctuate(name, promise([row for row in rows if row[0] == key]), where={"k": key})
            taken += pieces.take()
    for executor in (pieces, whole):
        for name in executor.streams:
            executor.punctuate(name, LAST + 1)
        executor.finish()
    taken += pieces.take()
    assert sorted(taken, key=lambda change: change.place) == whole.take()


@given(plans(tables=False, arrival=False), worlds(), st.integers(0, 6), st.data())
def test_given_the_same_late_rows_policies_only_decide_when(
    plan: Emit, world: World, slack: int, data: st.DataObject
) -> None:
    """Rows pushed in order of time are never late, whatever is promised on the way."""
    pieces, whole = begun(plan, world), begun(plan, world)
    taken: list[Change] = []
    for name in pieces.streams:
        rows = sorted((arrival.values for arrival in world.streams[name]), key=lambda row: row[-1])
        whole.push(name, rows)
        for row in rows:
            pieces.push(name, [row])
            pieces.punctuate(name, max(FIRST, row[-1] - slack))
            taken += pieces.take() if data.draw(st.booleans()) else []
    for executor in (pieces, whole):
        for name in executor.streams:
            executor.punctuate(name, LAST + 1)
        executor.finish()
    taken += pieces.take()
    assert sorted(taken, key=lambda change: change.place) == whole.take()
