"""State of outer joins: no more rows than the join and the negations that they are made of."""

from __future__ import annotations

from random import Random

import pytest

from windrow.engine.explain import declared
from windrow.kernels.executor import GeneralExecutor
from windrow.language.compile import compile_query

STREAMS = dict.fromkeys("lr", ("k BIGINT, v BIGINT, n BIGINT", "WATTR n"))
JOINED = "SELECT l.k, l.v, r.v FROM l {window} {kind} JOIN r {window} ON l.k = r.k"
ALONE = (
    "SELECT {a}.k, {a}.v FROM {a} {window} WHERE NOT EXISTS (SELECT 1 FROM {b} {window} WHERE {b}.k = {a}.k)"
)


def most_rows(query: str) -> int:
    """The most rows that are kept after any step, while some windows pass."""
    executor, chance, most = GeneralExecutor(compile_query(query, declared(STREAMS, {}))), Random(3), 0
    for now in range(0, 400, 20):
        for stream in STREAMS:
            rows = [(chance.randint(0, 60), chance.randint(0, 5), now + n // 2) for n in range(40)]
            executor.push(stream, rows)
        for stream in STREAMS:
            executor.punctuate(stream, now + 20)
        executor.take()
        states = executor.states.values()
        kept = [chunk.table.num_rows for state in states for name in state.chunks for chunk in state.of(name)]
        most = max(most, sum(kept))
    return most


@pytest.mark.thorough
@pytest.mark.parametrize("window", ["[RANGE 100]", "[RANGE 100 SLIDE 20]", "[ROWS 200]"])
def test_an_outer_join_keeps_no_more_than_its_join_and_negations(window: str) -> None:
    join = most_rows(JOINED.format(window=window, kind=""))
    alone, other = (most_rows(ALONE.format(window=window, a=a, b=b)) for a, b in ("lr", "rl"))
    assert 0 < alone < join
    assert join < most_rows(JOINED.format(window=window, kind="LEFT")) <= join + alone
    assert join < most_rows(JOINED.format(window=window, kind="FULL")) <= join + alone + other
