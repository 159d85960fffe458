"""The oracle against itself: the interval algebra, the snapshots and the streams tell one story."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from tests.support.plans import HORIZON, plans, worlds

from windrow.algebra.plan import Emit, StreamWord
from windrow.reference.interval_rows import IntervalRows
from windrow.reference.rows import World
from windrow.reference.streams import QueryEvaluation, lag_of

pytestmark = pytest.mark.deep


@given(plans(), worlds())
def test_the_interval_algebra_is_the_relational_operator_on_every_snapshot(plan: Emit, world: World) -> None:
    evaluation = QueryEvaluation(plan, world)
    pieces = IntervalRows(evaluation.leaves, world, lag=lag_of(plan)).of(plan.input)
    for instant in HORIZON:
        valid = Counter(piece.fact.values for piece in pieces if instant in piece)
        assert valid == evaluation.relation(instant)


@given(plans(word=StreamWord.AUTO), worlds())
def test_insertions_and_deletions_reconstruct_the_relation(plan: Emit, world: World) -> None:
    born = QueryEvaluation(replace(plan, word=StreamWord.ISTREAM), world).changes()
    gone = QueryEvaluation(replace(plan, word=StreamWord.DSTREAM), world).changes()
    relation: Counter[tuple[object, ...]] = Counter()
    evaluation = QueryEvaluation(replace(plan, word=StreamWord.ISTREAM), world)
    last = max((change.at for change in born + gone), default=HORIZON[0])
    for instant in (at for at in HORIZON if at <= last):
        relation.update(change.row for change in born if change.at == instant)
        relation.subtract(change.row for change in gone if change.at == instant)
        if not plan.is_periodic or any(change.at == instant for change in born + gone):
            assert +relation == evaluation.relation(instant)


@given(plans(arrival=False), worlds(), st.randoms(use_true_random=False))
def test_arrival_order_does_not_matter(plan: Emit, world: World, random: object) -> None:
    shuffled = {}
    for name, arrivals in world.streams.items():
        values = [row.values for row in arrivals]
        random.shuffle(values)  # type: ignore[attr-defined]
        shuffled[name] = tuple(replace(row, values=v) for row, v in zip(arrivals, values, strict=True))
    again = World(shuffled, world.tables)
    assert QueryEvaluation(plan, again).changes() == QueryEvaluation(plan, world).changes()


@given(plans(), worlds(), st.integers(HORIZON[0], HORIZON[-1]))
def test_what_is_final_does_not_depend_on_later_rows(plan: Emit, world: World, clock: int) -> None:
    """Rows and table changes at or after the clock have not come yet; what is final is final all the same."""
    streams = {
        name: tuple(row for row in arrivals if row.values[-1] < clock)
        for name, arrivals in world.streams.items()
    }
    tables = {name: tuple(c for c in changes if c.at < clock) for name, changes in world.tables.items()}
    renumbered = {
        n: tuple(replace(r, row_num=i) for i, r in enumerate(a, start=1)) for n, a in streams.items()
    }
    known = {
        name: renumbered[name]
        + tuple(replace(r, row_num=len(renumbered[name]) + i) for i, r in enumerate(late, 1))
        for name, arrivals in world.streams.items()
        for late in [[row for row in arrivals if row.values[-1] >= clock]]
    }
    now = QueryEvaluation(plan, World(renumbered, tables), clock).changes()
    later = QueryEvaluation(plan, World(known, world.tables), clock).changes()
    assert now == later
