"""The promise, on the oracle: what is answered under shedding is exact, only whole windows are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.shedding.asked import Nested, Size, candidate, nested, rows, shapes, sizes

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.algebra.plan import Emit
from windrow.engine.gaps import gaps
from windrow.reference.executor import ReferenceExecutor
from windrow.shedding.agreement import SheddableQuery, SheddingGroups, droppable, share
from windrow.shedding.phases import Phases

pytestmark = pytest.mark.deep

Rows = dict[str, list[tuple[Any, ...]]]


def answers(plan: Emit, history: Rows) -> Counter[Any]:
    oracle = ReferenceExecutor(plan)
    for stream in oracle.streams:
        oracle.push(stream, history[stream])
    oracle.finish()
    return Counter(oracle.take())


def left_over(
    queries: list[SheddableQuery], sharing: SheddingGroups, phases: dict[str, Phases], history: Rows
) -> Rows:
    """The rows that are not dropped."""
    kept = {}
    for stream, arrived in history.items():
        readers = [query.name for query in queries if stream in query.streams]
        shed = droppable(stream, readers, sharing.agreed, phases, -20, 200)
        kept[stream] = [row for row in arrived if not any(row[-1] in interval for interval in shed)]
    return kept


def check(queries: list[SheddableQuery], ps: list[float], seed: int, history: Rows) -> tuple[int, int]:
    """How many rows there were, and how many were left; all promises are asserted."""
    sharing = share(queries)
    phases = {}
    for number, query in enumerate(queries):
        if query.name in sharing.agreed:
            cycles = sharing.group_of(query.name).cycles
            phases[query.name] = Phases().then(-30, cycles, ps[number], seed)
    kept = left_over(queries, sharing, phases, history)
    for query in queries:
        exact, under_load = answers(query.plan, history), answers(query.plan, kept)
        own = phases.get(query.name, Phases())
        delivered = Counter(change for change in under_load.elements() if not own.drops(change.at))
        assert delivered == Counter(change for change in exact.elements() if not own.drops(change.at))
        assert delivered <= exact
        if query.name not in sharing.agreed:
            assert delivered == exact
        else:
            missing = gaps(own, sharing.agreed[query.name].grid, -30, 400)
            assert all(gap.windows <= query.max_gap for gap in missing)
    return sum(map(len, history.values())), sum(map(len, kept.values()))


probability = st.floats(0, 1) | st.just(1.0)


@given(st.lists(nested(depth=3), min_size=1, max_size=3), st.data())
@settings(max_examples=40, deadline=None)
def test_nested_queries_that_share_shedding_answer_subsets(asked: list[Nested], data: st.DataObject):
    gap = st.integers(1, 12) | st.none()
    queries = [candidate(f"q{n}", query.sql, data.draw(gap)) for n, query in enumerate(asked)]
    ps = [data.draw(probability) for _ in queries]
    check(queries, ps, data.draw(st.integers(0, 99)), {"s": data.draw(rows)})


@given(shapes(), st.integers(1, 12), probability, st.integers(0, 99), rows, rows)
@settings(max_examples=60, deadline=None)
def test_joins_unions_differences(text: str, gap: int, p: float, seed: int, s: Any, r: Any):
    check([candidate("q", text, gap)], [p], seed, {"s": s, "r": r})


@pytest.fixture
def spread() -> Iterator[None]:
    """The difference between the highest and the lowest value: an aggregate of the user's own."""
    wr.aggregate(
        name="spread",
        returns="BIGINT",
        takes="BIGINT",
        init=lambda: (),
        step=lambda state, value: (*state, value),
        final=lambda state: max(state) - min(state),
    )
    yield
    user.forget("spread")


@pytest.mark.usefixtures("spread")
def test_nested_aggregates_of_the_user():
    """The paper's first example: how often in an hour prices differ by too much within five minutes."""
    text = """SELECT COUNT(*) AS n
              FROM (SELECT k, spread(v) AS d FROM s [RANGE 5 SLIDE 5] GROUP BY k) [RANGE 20 SLIDE 10] AS x
              WHERE d > 1"""
    chance = Random(3)
    history = [(chance.randint(0, 2), chance.randint(0, 4), t) for t in range(180)]
    before, after = check([candidate("q", text, 9)], [1.0], 1, {"s": history})
    assert after < before


@given(sizes(gaps=False), nested(depth=2), st.integers(0, 99), rows)
@settings(max_examples=30, deadline=None)
def test_one_who_did_not_agree(size: Size, other: Nested, seed: int, arrived: Any):
    queries = [
        candidate("q", f"SELECT COUNT(*) AS n FROM s {size.bracket}", 20),
        candidate("o", other.sql, None),
    ]
    before, after = check(queries, [1.0, 1.0], seed, {"s": arrived})
    assert before == after


def test_the_rows_are_really_fewer():
    """Tumbling windows, four of five dropped: so are four of five rows."""
    history = [(0, 1, t) for t in range(100)]
    query = candidate("q", "SELECT COUNT(*) AS n FROM s [RANGE 4 SLIDE 4]", 4)
    assert check([query], [1.0], 1, {"s": history}) == (100, 20)


def test_as_much_is_delivered_as_was_promised():
    """Of 30 000 windows, p = 0.4 of them are missing, within what chance allows."""
    query = candidate("q", "SELECT COUNT(*) AS n FROM s [RANGE 6 SLIDE 2]", 4)
    sharing = share([query])
    phases = Phases().then(0, sharing.groups[0].cycles, 0.4, seed=11)
    missing = sum(gap.windows for gap in gaps(phases, sharing.agreed["q"].grid, 0, 60_000))
    assert abs(missing / 30_000 - 0.4) < 0.02
