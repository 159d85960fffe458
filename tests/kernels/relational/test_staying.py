"""Results that outlive INTERNAL windows, or are restored, under every operator: as the oracle says."""

from __future__ import annotations

from itertools import count
from random import Random
from typing import Any

import pytest
from hypothesis import given, note, settings, strategies as st
from tests.kernels.agreement import assert_same
from tests.kernels.relational.internal_plans import Restored, Staying
from tests.kernels.relational.scripts import assert_agree
from tests.kernels.relational.test_random_plans import reload_state, some

from windrow.algebra.plan import Emit
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.expiry_layouts import Options, Strategy
from windrow.testing import Harness

pytestmark = pytest.mark.deep

STREAMS = {"s": "a BIGINT, v BIGINT, ts BIGINT", "r": "b BIGINT, w BIGINT, ts BIGINT"}
TABLES = {"t": ("k BIGINT, n BIGINT", "RELATION"), "u": ("k BIGINT, n BIGINT", "NRR")}
QUERIES = {
    "LIMIT": "SELECT RSTREAM(a, v) FROM s [RANGE 6 SLIDE 3 INTERNAL] ORDER BY v DESC LIMIT 2",
    "LIMIT without a slide": "SELECT RSTREAM(a) FROM s [RANGE 6 INTERNAL], r [RANGE 4] WHERE a = b LIMIT 2",
    "a table": "SELECT a, n FROM s [RANGE 5 INTERNAL], t WHERE a = k",
    "a table and a slide": "SELECT a, n FROM s [RANGE 4 SLIDE 3 INTERNAL], t WHERE a = k",
    "two streams below": "SELECT x.a, x.v FROM (SELECT a, v, ts FROM s UNION ALL SELECT b, w, ts FROM r)"
    " [RANGE 5 INTERNAL] x, s [ROWS 2] y WHERE x.a = y.a",
    "γ over external windows": "SELECT a, SUM(v) FROM s [RANGE 7 INTERNAL], r [RANGE 4]"
    " WHERE a = b GROUP BY a",
    "γ over extents": "SELECT RSTREAM(a, MAX(v)) FROM s [RANGE 6 SLIDE 3 INTERNAL], r [RANGE 3 SLIDE 3]"
    " WHERE a = b GROUP BY a",
    "EXISTS": "SELECT a, v FROM s [RANGE 8 INTERNAL] WHERE EXISTS (SELECT 1 FROM r [RANGE 3] WHERE a = b)",
    "EXISTS in counted rows": "SELECT a FROM s [RANGE 8 INTERNAL] WHERE EXISTS"
    " (SELECT 1 FROM r [ROWS 2] WHERE a = b)",
    "counted rows": "SELECT a, w FROM s [RANGE 5 INTERNAL], r [ROWS 2] WHERE a = b",
    "EXISTS outside": "SELECT s.a FROM s [RANGE 6 INTERNAL], (SELECT b FROM r [RANGE 5] WHERE EXISTS"
    " (SELECT 1 FROM s [RANGE 2] z WHERE z.a = b)) x WHERE s.a = x.b",
    "NOT EXISTS outside": "SELECT s.a FROM s [RANGE 6 INTERNAL], (SELECT b FROM r [RANGE 5] WHERE NOT EXISTS"
    " (SELECT 1 FROM s [ROWS 1] z WHERE z.a = b)) x WHERE s.a = x.b",
    "an NRR": "SELECT a, n FROM (SELECT a FROM s [RANGE 6 INTERNAL], r [NOW] WHERE a = b), u WHERE a = k",
    "restored, counted": "SELECT ISTREAM_RESTORE(a, v) FROM s [ROWS 2 SLIDE 5]",
    "restored, of counted rows": "SELECT RSTREAM_RESTORE(a, w) FROM s [ROWS 2 SLIDE 5], r [ROWS 3 SLIDE 5]"
    " WHERE a = b",
    "restored, counted and not": "SELECT RSTREAM_RESTORE(a, w) FROM s [ROWS 2 SLIDE 5 PARTITION BY a],"
    " r [RANGE 7 SLIDE 5] WHERE a = b",
    "restored, counted values": "SELECT RSTREAM_RESTORE(n) FROM (SELECT a, COUNT(*) AS n"
    " FROM s [ROWS 3 SLIDE 5] GROUP BY a)",
    "restored values": "SELECT ISTREAM_RESTORE(n) FROM (SELECT a, COUNT(*) AS n FROM s [RANGE 3 SLIDE 5]"
    " GROUP BY a)",
    "restored and alive": "SELECT RSTREAM_RESTORE(n) FROM (SELECT a, COUNT(*) AS n FROM s [RANGE 7 SLIDE 5]"
    " GROUP BY a)",
}


def drawn(kind: type[Any], seed: int) -> tuple[Any, Emit]:
    """The first drawer from this seed on that draws a query such as it is for, and the query."""
    for number in count(seed):
        drawer = kind(number)
        try:
            plan: Emit = drawer.query()
        except QueryError:
            continue
        if plan.is_internal or plan.word.restores:
            note(f"{kind.__name__}({number})")
            return drawer, plan
    raise AssertionError("seeds do not end")


def chosen(random: Random) -> Options:
    return Options(random.choice(list(Strategy)))


@some(10)
@given(st.integers(0, 1 << 48))
def test_any_plan_over_internal_windows(seed: int) -> None:
    drawer, plan = drawn(Staying, seed)
    options = chosen(drawer.random)
    between = reload_state if seed % 2 else None
    assert_agree(plan, drawer.script(own=False), lambda emit: GeneralExecutor(emit, options), between)


@some(20)
@given(st.integers(0, 1 << 48))
def test_any_plan_that_restores(seed: int) -> None:
    drawer, plan = drawn(Restored, seed)
    options = chosen(drawer.random)
    assert_agree(plan, drawer.script(own=False), lambda emit: GeneralExecutor(emit, options))


@pytest.mark.part(9)
@pytest.mark.parametrize("shape", QUERIES)
@settings(max_examples=2)
@given(st.integers(0, 1 << 48))
def test_results_stay_as_long_as_the_oracle_keeps_them(shape: str, seed: int) -> None:
    random = Random(seed)
    both = [Harness(QUERIES[shape], STREAMS, TABLES, executor=name) for name in ("kernels", "reference")]
    present: dict[str, list[tuple[int, int]]] = {"t": [], "u": []}
    reads = {table for table in TABLES if f", {table} " in QUERIES[shape]}
    used = 0
    for around in range(0, 12, 4):
        for table in sorted(reads):
            gone = present[table][:1] if random.random() < 0.4 else []
            new = [(random.randint(0, 1), (used := used + 1)) for _ in range(random.randint(0, 2))]
            present[table] = present[table][len(gone) :] + new
            for h in both:
                h.update(table, around, new, gone)
        for stream in STREAMS:
            rows = [
                (random.randint(0, 1), random.randint(1, 2), around + random.randint(0, 3)) for _ in range(3)
            ]
            for h in both if f"{stream} [" in QUERIES[shape] or f"FROM {stream}" in QUERIES[shape] else ():
                h.push(stream, rows)
                h.punctuate(stream, around + 2)
        assert_same(both[0].take(), both[1].take())
    for h in both:
        h.finish()
    assert_same(both[0].take(), both[1].take())
