"""What each physical choice keeps and does: bounds of state, when rows are looked at, what is observed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from windrow.algebra.catalog import ProgressRule, Stream
from windrow.algebra.expressions import Field, Schema
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Distinct, Except, Exists, Join, Project
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.algebra.types import BIGINT
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational import expiry_layouts as layouts
from windrow.kernels.relational.expiry_layouts import (
    Calendar,
    Counted,
    Ends,
    Evaluation,
    Fifo,
    Hashed,
    Negation,
    Options,
    Sorted,
    Tables,
    frame_of,
)
from windrow.kernels.relational.join.multiway import cheaper, observed, order_of
from windrow.kernels.relational.negation import TOLD
from windrow.kernels.relational.signed_rows import FOREVER, VE, N, consolidated
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.progress import Ordered
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

SCHEMA = Schema((Field("k", BIGINT), Field("v", BIGINT), Field("ts", BIGINT)))
STREAMS = {n: Stream(n, SCHEMA, "ts", ProgressRule(Ordered())) for n in ("a", "b", "c")}


def window(name: str, spec: WindowSpec) -> Window:
    return Window(Scan(STREAMS[name], name), spec)


def join(*specs: WindowSpec, word: StreamWord = StreamWord.AUTO) -> Emit:
    parts = [window(name, spec) for name, spec in zip(STREAMS, specs, strict=False)]
    first = parts[0].schema.column("a.k")
    tests = [call("=", [first, p.schema.column(f"{n}.k")]) for n, p in zip("bc", parts[1:], strict=False)]
    return Emit(Join(tuple(parts), tests[0] if len(tests) == 1 else call("and", tests)), word)


def kept(executor: GeneralExecutor, name: str) -> int:
    return sum(
        rows for place, rows in executor.program.state_rows(executor.states).items() if place.endswith(name)
    )


def numbers(executor: GeneralExecutor, name: str) -> list[int]:
    """A number that operators remember."""
    return [v for state in executor.states.values() for key, v in state.meta.items() if key.endswith(name)]


def push(executor: GeneralExecutor, name: str, rows: Iterable[tuple[int, int, int]]) -> None:
    executor.push(name, list(rows))


# Layouts.

frames = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40), st.booleans()), max_size=30)


def cut_small(patch: pytest.MonkeyPatch) -> None:
    """Let few rows be many chunks."""
    patch.setattr(layouts, "TINY_CHUNK", 1)
    patch.setattr(layouts, "SMALL_CHUNK", 4)
    patch.setattr(layouts, "MOST_CHUNKS", 6)


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_small(monkeypatch)


@pytest.mark.usefixtures("small_chunks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(frames, max_size=12), st.integers(1, 60))
def test_layouts_hold_the_same_rows(batches: list[list[tuple[int, int, bool]]], buckets: int) -> None:
    columns = {"k": pl.Int64(), VE: pl.Int64(), N: pl.Int64()}
    kinds = (Fifo(), Calendar(buckets), Hashed(), Sorted(buckets))
    held: list[Any] = [() for _ in kinds]
    for now, batch in enumerate(batches):
        ends = [FOREVER if endless else now + end for _, end, endless in batch]
        frame = pl.DataFrame({"k": [k for k, _, _ in batch], VE: ends, N: [1] * len(batch)}, schema=columns)
        held = [layout.add(chunks, frame) for layout, chunks in zip(kinds, held, strict=True)]
        due, left = [], []
        for layout, chunks in zip(kinds, held, strict=True):
            expired, rest = layout.due(chunks, now * 3, columns)
            due.append(sorted(consolidated(expired).rows()))
            left.append(sorted(consolidated(frame_of(rest, columns)).rows()))
        assert all(rows == due[0] for rows in due)
        assert all(rows == left[0] for rows in left)
        after = zip(kinds, held, strict=True)
        held = [layout.due(chunks, now * 3, columns)[1] for layout, chunks in after]


@pytest.mark.usefixtures("small_chunks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(1, 9), max_size=5), min_size=1, max_size=40))
def test_layouts_forget_only_what_is_over_and_not_too_late(batches: list[list[int]]) -> None:
    columns = {VE: pl.Int64(), N: pl.Int64()}
    for layout in (Fifo(), Calendar(3), Sorted(3)):
        chunks: Any = ()
        alive: list[int] = []
        for now, lives in enumerate(batches):
            ends = [now + (9 if isinstance(layout, Fifo) else life) for life in lives]
            frame = pl.DataFrame({VE: ends, N: [1] * len(ends)}, schema=columns)
            chunks = layout.add(layout.forget(chunks, now), frame)
            alive = [end for end in alive if end >= now] + ends
            held = frame_of(chunks, columns)[VE].to_list()
            assert sorted(end for end in held if end >= now) == sorted(alive)
            assert all(chunk.last >= now for chunk in chunks)
            assert len(chunks) <= max(layouts.MOST_CHUNKS, 4 * 3) + 1


@pytest.mark.usefixtures("small_chunks")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40), st.lists(st.integers(0, 1000), min_size=1, max_size=200))
def test_a_calendar_has_as_many_buckets_as_asked_for(buckets: int, ends: list[int]) -> None:
    frame = pl.DataFrame({VE: ends, N: [1] * len(ends)}, schema={VE: pl.Int64(), N: pl.Int64()})
    chunks = Calendar(buckets).add((), frame)
    assert len(chunks) <= buckets
    spans = sorted((chunk.first, chunk.last) for chunk in chunks)
    assert all(before[1] < after[0] for before, after in pairwise(spans))


# δ*.


@settings(max_examples=15)
@given(st.integers(0, 1 << 32), st.sampled_from(["WKS", "WK"]))
def test_delta_star_keeps_at_most_twice_its_output(seed: int, label: str) -> None:
    random = Random(seed)
    scan = Scan(STREAMS["a"], "a")
    spec = RangeWindow(12) if label == "WKS" else LifetimeWindow(scan.schema.column("a.v"))
    plan = Distinct(Project(Window(scan, spec), (("k", scan.schema.column("a.k")),)))
    star, told = (GeneralExecutor(Emit(plan), Options(ends=ends)) for ends in (Ends.CARRIED, None))
    for batch in range(12):
        rows = [(random.randint(0, 20), random.randint(1, 15), batch * 5 + i) for i in range(5)]
        push(star, "a", rows)
        push(told, "a", rows)
        output = star.relation(int(star.clock) - 1).total()
        assert 0 < kept(star, "δ*") <= output
        assert kept(told, "δ, told") <= output
        assert sum(told.program.state_rows(told.states).values()) - len(rows) <= output
        assert star.take() == told.take()


# Joins.


def test_rows_of_a_periodic_join_wait_for_the_report() -> None:
    executor = GeneralExecutor(join(RangeWindow(20, 10), RangeWindow(20, 10)))
    push(executor, "a", [(1, 0, 1)])
    push(executor, "b", [(1, 0, 2)])
    for at in range(3, 10):
        push(executor, "a", [(1, 0, at)])
        push(executor, "b", [(1, 0, at)])
    assert kept(executor, "⋈") == 0
    assert kept(executor, "waiting") > 10
    assert not executor.take()
    push(executor, "a", [(1, 0, 10)])
    push(executor, "b", [(1, 0, 10)])
    assert len(executor.take()) == 8 * 8


def test_eager_evaluation_has_the_results_before_they_are_due() -> None:
    executor = GeneralExecutor(
        join(RangeWindow(20, 10), RangeWindow(20, 10)), Options(evaluation=Evaluation.EAGER)
    )
    for at in range(1, 9):
        push(executor, "a", [(1, 0, at)])
        push(executor, "b", [(1, 0, at)])
    assert kept(executor, "results held") == 8 * 8
    push(executor, "a", [(1, 0, 10)])
    push(executor, "b", [(1, 0, 10)])
    assert len(executor.take()) == 8 * 8


@pytest.mark.parametrize("restores", [True, False])
def test_lazy_evaluation_restores_what_came_and_went(restores: bool) -> None:
    word = StreamWord.ISTREAM_RESTORE if restores else StreamWord.ISTREAM
    executor = GeneralExecutor(join(RangeWindow(3, 10), RangeWindow(3, 10), word=word))
    for at in range(31):
        push(executor, "a", [(at, 0, at)])
        push(executor, "b", [(at, 0, at)])
    assert executor.program.why_not_lazy is None
    found = {change.row[0] for change in executor.take()}
    assert found == (set(range(30)) if restores else {t for t in range(30) if t % 10 >= 7})


def joined_rows(every: int | None) -> list[int]:
    executor = GeneralExecutor(join(RangeWindow(10), RangeWindow(10)), Options(expire_every=every))
    sizes = []
    for batch in range(12):
        for name in ("a", "b"):
            push(executor, name, [(0, 0, batch * 4 + i) for i in range(4)])
        sizes.append(kept(executor, "⋈"))
    return sizes


def test_expired_rows_leave_at_once_or_at_intervals() -> None:
    at_once, by_chunk, lazily = (joined_rows(every) for every in (0, None, 24))
    assert max(at_once[3:]) <= 2 * 10 + 4
    assert all(a <= b for a, b in zip(at_once, by_chunk, strict=True))
    assert max(lazily) > max(by_chunk)
    assert min(lazily[8:]) < max(lazily)


def test_a_join_of_three_keeps_its_inputs_and_nothing_between() -> None:
    executor = GeneralExecutor(join(*[RangeWindow(100)] * 3))
    for name in STREAMS:
        push(executor, name, [(0, 0, at) for at in range(10)])
    assert len(executor.take()) == 9**3
    assert kept(executor, "⋈") <= 3 * 10


@pytest.mark.parametrize("ends", Ends)
def test_a_join_keeps_its_results_only_where_they_carry_their_ends(ends: Ends) -> None:
    executor = GeneralExecutor(join(RangeWindow(20), RangeWindow(20)), Options(ends=ends))
    for at in range(50):
        for name in ("a", "b"):
            push(executor, name, [(0, 0, at), (1, 0, at)])
    alive = Counter[str]()
    for change in executor.take():
        alive[change.op] += 1
    results = alive["+"] - alive["-"]
    assert results == 2 * 20 * 20
    assert kept(executor, "⋈") < 2 * 2 * 20 * 2
    assert kept(executor, "changes") == (results if ends is Ends.CARRIED else 0)


@pytest.mark.thorough
@pytest.mark.parametrize("negation", [True, False])
def test_a_match_keeps_its_rows_once_and_each_key(negation: bool) -> None:
    plan = negated("NOT EXISTS")
    assert isinstance(plan, Exists)
    executor = GeneralExecutor(Emit(replace(plan, negated=negation)))
    for at in range(100):
        push(executor, "a", [(at % 4, 0, at)])
        push(executor, "b", [(at % 2, 0, at)])
    assert kept(executor, "changes") == 0
    assert sum(executor.program.state_rows(executor.states).values()) <= 2 * 10 + 2 * 2 + 4


@pytest.mark.thorough
def test_catalogues_keep_results_and_negative_rows_do_not() -> None:
    sizes = {}
    for how in Counted:
        executor = GeneralExecutor(join(RowsWindow(5), RowsWindow(5)), Options(counted=how))
        for at in range(30):
            for name in ("a", "b"):
                push(executor, name, [(0, 0, at)])
        changes = executor.take()
        alive = sum(1 if change.op == "+" else -1 for change in changes)
        assert alive == 5 * 5
        sizes[how] = sum(
            rows for name, rows in executor.program.state_rows(executor.states).items() if "⋈" in name
        )
    assert sizes[Counted.CATALOGUES] == sizes[Counted.NEGATIVE] + 5 * 5


@pytest.mark.parametrize("tables", Tables)
def test_joins_on_inequalities_and_equalities(tables: Tables) -> None:
    parts = window("a", RangeWindow(50)), window("b", RangeWindow(50))
    a, b = parts[0].schema.column("a.k"), parts[1].schema.column("b.k")
    for function in ("=", "<", "<>"):
        executor = GeneralExecutor(Emit(Join(parts, call(function, [a, b]))), Options(tables=tables))
        rows = [(k, 0, k) for k in range(9)]
        push(executor, "a", rows)
        push(executor, "b", rows)
        executor.finish()
        inserted = [change for change in executor.take() if change.op == "+"]
        assert len(inserted) == {"=": 9, "<": 36, "<>": 72}[function]


# The order of probing.


def test_a_join_changes_its_order_when_rates_differ_and_then_keeps_it() -> None:
    executor = GeneralExecutor(join(RangeWindow(20), RangeWindow(20), RangeWindow(20)))
    orders = []
    for at in range(80):
        push(executor, "a", [(i, 0, at) for i in range(6)])
        push(executor, "b", [(100 + at, 0, at)])
        push(executor, "c", [(200 + at, 0, at)])
        orders.append(tuple(sorted_order(executor)))
    assert orders[0] == (0, 1, 2)
    assert orders[-1] != (0, 1, 2)
    settled = orders[len(orders) // 2 :]
    assert len(set(settled)) == 1


def sorted_order(executor: GeneralExecutor) -> tuple[int, ...]:
    (meta,) = [state.meta for state in executor.states.values() if "order.0" in state.meta] or [{}]
    return order_of(meta, 3)


@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(1, 999), st.integers(1, 99)), min_size=3, max_size=5)
)
def test_an_order_that_was_changed_is_not_changed_back(windows: list[tuple[int, int, int]]) -> None:
    arrived, rows, values = (list(column) for column in zip(*windows, strict=True))
    first = tuple(range(len(windows)))
    order = cheaper(first, arrived, rows, values, span=10)
    assert sorted(order) == list(first)
    assert cheaper(order, arrived, rows, values, span=10) == order


def test_values_are_counted_only_when_enough_rows_have_come() -> None:
    asked: list[int] = []

    def values() -> list[int]:
        asked.append(1)
        return [1, 1, 1]

    meta: dict[str, int] = {}
    for now in range(200):
        meta = observed(meta, [2, 2, 2], [200, 200, 200], values, now)
    assert len(asked) == 200 * 6 // 300


# Negations.


def negated(kind: str) -> Plan:
    a, b = window("a", RangeWindow(10)), window("b", RangeWindow(10))
    if kind == "NOT EXISTS":
        same = call("=", [a.schema.column("a.k"), b.schema.column("b.k")])
        return Exists(a, b, same, negated=True)
    only = [Project(part, (("k", part.schema.column(f"{n}.k")),)) for n, part in (("a", a), ("b", b))]
    return Except(*only)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["NOT EXISTS", "EXCEPT"])
def test_the_form_of_results_follows_the_share_of_early_ones(kind: str) -> None:
    executor = GeneralExecutor(Emit(negated(kind)), Options(ends=Ends.CARRIED))
    told, matched, steps = [], 20, 150
    for step in range(steps):
        rows = [(200 * step + i, 0, 5 * step) for i in range(200)]
        push(executor, "a", rows)
        push(executor, "b", [(k if step < matched else -k - 1, 0, t + 2) for k, _, t in rows])
        told += numbers(executor, TOLD)[-1:]
    assert told[matched - 1 - steps] == 1
    assert told[-1] == 0
    assert sum(a != b for a, b in pairwise(told)) <= 2


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["NOT EXISTS", "EXCEPT"])
def test_a_forced_form_is_kept(kind: str) -> None:
    kept_rows = {}
    for form in Negation:
        executor = GeneralExecutor(Emit(negated(kind)), Options(negation=form))
        for at in range(60):
            push(executor, "a", [(at, 0, at)])
            push(executor, "b", [(-at - 1, 0, at)])
        states = executor.states.values()
        ends = [chunks for state in states for name, chunks in state.chunks.items() if name == "ends"]
        root = executor.states["0"].of("ends")
        kept_rows[form] = sum(chunk.table.num_rows for chunk in root)
        assert ends
    assert kept_rows[Negation.NEGATIVE] == 0 < kept_rows[Negation.CALENDAR]


# Slide-by-tuple.


@pytest.mark.thorough
@settings(max_examples=10)
@given(st.integers(0, 1 << 32), st.booleans())
def test_bins_bound_the_state_of_slide_by_tuple_aggregates(seed: int, by_rank: bool) -> None:
    random, groups, range_ = Random(seed), 3, 6
    executors = []
    for bins in (True, False):
        part = window("a", SlideByTupleWindow(range_, 4, None, by_rank))
        value = part.schema.column("a.v")
        calls = tuple((n, AggregateCall(n, (value,), BIGINT)) for n in ("count", "sum", "max"))
        plan = Aggregate(part, (("k", part.schema.column("a.k")),), calls)
        executors.append(GeneralExecutor(Emit(plan), Options(bins=bins)))
    binned, by_rows = executors
    for at in range(15):
        rows = [(random.randrange(groups), random.randint(-9, 9), at) for _ in range(30)]
        for executor in executors:
            push(executor, "a", rows)
        assert binned.take() == by_rows.take()
        values_in_window = range_ + 2
        assert kept(binned, "γ, bins") <= groups * values_in_window + values_in_window + groups
    everything = sum(by_rows.program.state_rows(by_rows.states).values())
    assert everything > 100 > sum(binned.program.state_rows(binned.states).values())


# Extremes.


def least_and_greatest(value: str) -> Emit:
    scan = Scan(STREAMS["a"], "a")
    part = Window(scan, LifetimeWindow(scan.schema.column("a.v")))
    column = part.schema.column(value)
    calls = tuple((n, AggregateCall(n, (column,), BIGINT)) for n in ("min", "max"))
    return Emit(Aggregate(part, (), calls))


@settings(max_examples=10)
@given(st.integers(0, 1 << 32))
def test_extremes_of_rows_with_lifetimes_keep_only_candidates(seed: int) -> None:
    random = Random(seed)
    executor = GeneralExecutor(least_and_greatest("a.k"))
    alive: list[tuple[int, int]] = []
    for batch in range(8):
        rows = [(random.randint(0, 99), random.randint(5, 30), batch * 4 + i) for i in range(4)]
        push(executor, "a", rows)
        alive += [(k, t + lifetime) for k, lifetime, t in rows]
        now = int(executor.clock)
        inside = [(k, end) for k, end in alive if end > now]

        def may_be(k: int, end: int, sign: int, inside: list[tuple[int, int]] = inside) -> bool:
            return all(sign * other < sign * k for other, until in inside if until > end)

        useful = [row for row in inside if may_be(*row, 1) or may_be(*row, -1)]
        shown = 1
        assert kept(executor, "γ, candidates") <= len(useful) + shown + 1 + batch_not_final(executor)


def batch_not_final(executor: GeneralExecutor) -> int:
    """Rows at the clock wait for it to pass."""
    return kept(executor, "window") + 4


def test_a_group_of_extremes_vanishes_with_its_longest_row() -> None:
    executor = GeneralExecutor(least_and_greatest("a.ts"))
    push(executor, "a", [(1, 3, 0), (1, 9, 1), (1, 2, 2)])
    executor.finish()
    changes = executor.take()
    assert [(c.op, c.row) for c in changes][-1] == ("-", (1, 1))
    assert changes[-1].at == 10
