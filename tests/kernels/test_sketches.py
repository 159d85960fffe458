"""Sketches: kernels compute them as the algebra does, to the last bit, and err as little as is promised."""

from __future__ import annotations

import math
import random
import struct
from collections import Counter
from decimal import Decimal
from statistics import fmean
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.queries import COLUMNS, Measured, row_of
from tests.kernels.test_executor import SPECS, grouped

from windrow.algebra import types as t
from windrow.algebra.aggregates import make
from windrow.algebra.aggregates.approx_count_distinct import estimate, place
from windrow.algebra.aggregates.approx_quantile import bucket, representative
from windrow.algebra.aggregates.approx_top_k import ApproxTopK
from windrow.algebra.aggregates.order import hash64
from windrow.algebra.catalog import Stream
from windrow.errors import QueryError
from windrow.kernels.aggregates.lowering import of_counts
from windrow.kernels.aggregates.partials import LiftedRows
from windrow.kernels.aggregates.value_tables import Listed, buckets, cells_of, estimates, representatives
from windrow.kernels.columnar.columns import column_of
from windrow.kernels.columnar.hashing import hashed
from windrow.kernels.executor import KernelExecutor
from windrow.kernels.state import TableLayout

DOUBLES = st.floats(allow_nan=True, allow_infinity=True)
KINDS: dict[t.DataType, st.SearchStrategy[Any]] = {
    t.BOOLEAN: st.booleans(),
    t.TINYINT: st.integers(-128, 127),
    t.BIGINT: st.integers(-(1 << 63), (1 << 63) - 1),
    t.FLOAT: DOUBLES.map(lambda x: struct.unpack("f", struct.pack("f", x))[0] if abs(x) < 1e38 else 0.0),
    t.DOUBLE: DOUBLES,
    t.decimal(10, 2): st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    t.decimal(38, 5): st.integers(-(10**38) + 1, 10**38 - 1).map(
        lambda n: Decimal((n < 0, tuple(map(int, str(abs(n)))), -5))
    ),
    t.STRING: st.text(max_size=30),
    t.BINARY: st.binary(max_size=40),
    t.TIMESTAMP: st.integers(-(1 << 50), 1 << 50),
}


@pytest.mark.part(3)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_columns_are_hashed_as_values_are(kind: t.DataType) -> None:
    @given(st.lists(st.none() | KINDS[kind], max_size=8))
    def check(values: list[Any]) -> None:
        column = column_of("", kind, values)
        found = hashed(column, kind).tolist()
        assert [h for h, v in zip(found, values, strict=True) if v is not None] == [
            hash64(v, kind) for v in values if v is not None
        ]
        assert hashed(column[1:], kind).tolist() == found[1:], "a slice has an offset"

    check()


def test_hashes_never_change() -> None:
    """Checkpoints hold sketches: these numbers are for good."""
    expected = {
        0: 16294208416658607535,
        -1: 16490336266968443936,
        2.5: 7033843765569497573,
        "": 16294208416658607535,
        "windrow": 13177513065927488778,
        "a text of more than eight bytes": 14604903151191354724,
        b"\x00": 6791897765849424158,
        Decimal("12.30"): 2905804996188724489,
        Decimal(10**30): 6689439075778071027,
        True: 10451216379200822465,
    }
    assert {value: hash64(value) for value in expected} == expected


@given(st.lists(DOUBLES, max_size=20), st.sampled_from([0.5, 0.1, 0.01, 0.003, 1e-6]))
def test_buckets_hold_what_they_stand_for(values: list[float], error: float) -> None:
    steps = make("approx_quantile", (0.5, error)).steps  # type: ignore[attr-defined]
    found = buckets(np.array(values, dtype=float), steps)
    assert found.tolist() == [bucket(value, steps) for value in values]
    stood = representatives(found, steps)
    assert repr(stood.tolist()) == repr([representative(int(number), steps) for number in found])
    for value, other in zip(values, stood.tolist(), strict=True):
        if math.isfinite(value):
            assert abs(value - other) <= error * abs(value) * (1 + 1e-9) + 5e-324
        else:
            assert repr(value) == repr(other)
    order = sorted(value for value in values if value == value)
    assert buckets(np.array(order, dtype=float), steps).tolist() == sorted(bucket(v, steps) for v in order)


@given(st.lists(st.integers(0, (1 << 64) - 1), max_size=200), st.sampled_from([4, 7, 12, 18]))
def test_estimates_are_the_same_on_columns(hashes: list[int], precision: int) -> None:
    ranks: dict[int, int] = {}
    for each in hashes:
        register, rank = place(each, precision)
        ranks[register] = max(rank, ranks.get(register, 0))
    histogram = np.bincount(list(ranks.values()), minlength=66 - precision).astype(np.int64)
    histogram[0] = (1 << precision) - len(ranks)
    other = np.zeros_like(histogram)
    other[3] = 1 << precision
    found = estimates(np.stack([histogram, other, histogram])).tolist()
    assert found == [round(estimate(each.tolist())) for each in (histogram, other, histogram)]


def of_column(name: str, params: tuple[Any, ...], column: pl.Series, kind: t.DataType) -> Any:
    """The value of a sketch over a whole column, by its kernel."""
    aggregate = make(name, params, types=(kind,))
    cells = cells_of(aggregate)
    assert cells is not None
    everyone = pl.Series([True]).new_from_index(0, len(column))
    window = [pl.Series(name, [0]).new_from_index(0, len(column)) for name in ("w", "g")]
    counts = everyone.cast(pl.Int64).alias("rows.0")
    rows = cells.table([*window, counts], LiftedRows((column,), everyone, pl.DataFrame()))
    layout = TableLayout(("v0",), cells.partials)
    return of_counts(aggregate, layout.merge(rows, ["w", "g", "v0"]))["value"][0]


# ------------------------------------------------------------------ errors, measured

#: the seeds are fixed, so these are facts about this hash, not about luck
TRIALS = 40


@pytest.mark.part(5)
@pytest.mark.parametrize("error", [0.2, 0.05, 0.02])
@pytest.mark.parametrize("count", [10, 300, 5_000, 200_000])
def test_distinct_counts_err_as_promised(error: float, count: int) -> None:
    chance = np.random.default_rng(count)
    trials = TRIALS if count < 100_000 else 12
    errors = []
    for trial in range(trials):
        values = chance.permutation(np.arange(count, dtype=np.int64) * 7919 + trial * 10**12)
        found = of_column(
            "approx_count_distinct", (error,), pl.Series(np.append(values, values[:100])), t.BIGINT
        )
        errors.append((found - count) / count)
    spread = math.sqrt(fmean(each * each for each in errors))
    assert spread <= 1.3 * error, "the standard error"
    assert max(map(abs, errors)) <= 4 * error
    registers = make("approx_count_distinct", (error,)).most_cells
    assert registers is not None
    assert abs(fmean(errors)) <= 3 * error / math.sqrt(trials) + 1.1 / registers, "nearly no bias"


@pytest.mark.parametrize(
    "maker", [str, lambda n: f"user-{n:06}@example.org", lambda n: n / 7, lambda n: Decimal(n)]
)
def test_distinct_counts_of_other_types(maker: Any) -> None:
    values = [maker(n) for n in range(20_000)]
    kind = {str: t.STRING, float: t.DOUBLE, Decimal: t.decimal(20, 3)}[type(values[0])]
    found = of_column("approx_count_distinct", (0.02,), column_of("", kind, values), kind)
    assert abs(found - 20_000) <= 4 * 0.02 * 20_000


@pytest.mark.part(5)
@pytest.mark.parametrize("error", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("fraction", [0.0, 0.01, 0.5, 0.95, 0.999, 1.0])
def test_quantiles_err_as_promised_on_any_shape(error: float, fraction: float) -> None:
    chance = np.random.default_rng(7)
    shapes = {
        "latencies": chance.lognormal(3, 2, 20_000),
        "both signs": chance.normal(0, 1e6, 20_000),
        "heavy": chance.pareto(0.7, 20_000),
        "few": chance.integers(-3, 4, 50).astype(float),
        "tiny": chance.random(100) * 1e-310,
    }
    for shape, values in shapes.items():
        exact = float(np.sort(values)[math.floor(fraction * (len(values) - 1))])
        found = of_column("approx_quantile", (fraction, error), pl.Series(values), t.DOUBLE)
        assert abs(found - exact) <= error * abs(exact) * (1 + 1e-9) + 5e-324, shape


@pytest.mark.thorough
@pytest.mark.parametrize("error", [0.05, 0.004])
def test_frequencies_are_never_too_low_and_seldom_too_high(error: float) -> None:
    chance = np.random.default_rng(5)
    values = np.minimum(chance.zipf(1.3, 20_000), 5_000).astype(np.int64)
    exact = dict(zip(*(each.tolist() for each in np.unique(values, return_counts=True)), strict=True))
    asked = [*list(exact)[:150], *range(10_000, 10_050)]
    column = pl.Series(values)
    excess = [
        of_column("approx_frequency", (value, error), column, t.BIGINT) - exact.get(value, 0)
        for value in asked
    ]
    assert min(excess) >= 0
    assert sum(each > error * len(values) for each in excess) <= 0.007 * len(asked) + 1
    assert max(excess) > 0, "a sketch this small cannot be exact"


@pytest.mark.parametrize("kind", [t.STRING, t.DOUBLE, t.decimal(10, 2), t.BOOLEAN, t.TIMESTAMP], ids=str)
def test_frequencies_of_other_types(kind: t.DataType) -> None:
    @given(st.lists(st.none() | KINDS[kind], min_size=1, max_size=30), st.sampled_from([0.9, 0.3, 0.001]))
    @settings(max_examples=30)
    def check(values: list[Any], error: float) -> None:
        known = [value for value in values if value is not None and value == value]
        if not known:
            return
        found = of_column("approx_frequency", (known[0], error), column_of("", kind, values), kind)
        of = make("approx_frequency", (known[0], error), types=(kind,))
        assert found == of.lower(of.fold(of.lift((value,)) for value in values))
        assert found >= known.count(known[0])

    check()


def test_values_to_count_must_fit_the_argument() -> None:
    assert make("approx_frequency", (3, 0.5), types=(t.DOUBLE,)).value == 3.0  # type: ignore[attr-defined]
    for value, kind in (("a", t.BIGINT), (2.5, t.INT), (1, t.STRING), (Decimal("0.001"), t.decimal(5, 2))):
        with pytest.raises(QueryError, match="equals"):
            make("approx_frequency", (value,), types=(kind,))
    with pytest.raises(QueryError, match="of NULL"):
        make("approx_frequency", (None,))


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 40)), max_size=300),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_top_k_misses_no_more_than_its_share(rows: list[tuple[int, int]], capacity: int, k: int) -> None:
    """Rows are (sub-window, value); whichever of them are over, the answer is the same."""
    top = make("approx_top_k", (min(k, capacity), capacity), types=(t.BIGINT,))
    assert isinstance(top, ApproxTopK)
    parts = [[top.lift((value,), (number,)) for number, value in rows if number == n] for n in range(6)]
    closed = top.fold(top.closed(top.fold(part)) for part in parts)
    answer = top.lower(closed)
    assert answer == top.lower(top.fold(state for part in parts for state in part))
    exact = Counter(value for _, value in rows)
    slack = len(rows) / (capacity + 1)
    reported = dict(answer)
    assert all(exact[value] - slack <= count <= exact[value] for value, count in answer)
    least = min(reported.values(), default=0) if len(reported) == top.k else 0
    assert all(value in reported or count <= least + slack for value, count in exact.items())
    if all(len({v for n, v in rows if n == number}) <= capacity for number in range(6)):
        assert reported == dict(sorted(exact.items(), key=lambda each: (-each[1], each[0]))[: top.k])


# ------------------------------------------------------------------ cuts and merges


@pytest.mark.part(12)
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("stacked", [True, False])
def test_the_cut_and_the_order_do_not_matter(kind: str, stacked: bool) -> None:
    chance = random.Random(11)
    rows = [row_of(chance.randrange(10**6), chance.randint(0, 20)) for _ in range(120)]
    many = [Measured("approx_count_distinct", (c,), (0.1,)) for c in "vxdwsb"]
    many += [Measured("approx_quantile", (c,), (0.5,)) for c in "vxdw"]
    many += [Measured("approx_top_k", (c,), (2, 3)) for c in "vxdws"]
    many += [Measured("approx_frequency", ("v",), (n, 0.5)) for n in (1, 2)]
    emit = grouped(Stream("s", COLUMNS, "ts"), SPECS[kind], many, "k")
    answers = []
    for size in (120, 40, 11):
        chance.shuffle(rows)
        executor = KernelExecutor(emit, stacked=stacked)
        for begin in range(0, len(rows), size):
            executor.push("s", rows[begin : begin + size])
        executor.finish()
        answers.append(repr(executor.take()))
    assert answers[0] == answers[1] == answers[2]


def test_panes_that_are_over_hold_no_more_than_the_capacity() -> None:
    cells = cells_of(make("approx_top_k", (2, 5), types=(t.BIGINT,)))
    assert isinstance(cells, Listed)
    frame = pl.DataFrame(
        {
            "pane": [0] * 20 + [1] * 3,
            "v0": [*range(20), *range(3)],
            "v1": [0] * 20 + [1] * 3,
            "rows.0": [*range(20), 1, 1, 1],
        }
    )
    kept = cells.closed(frame, ["pane"]).filter(pl.col("v0").is_not_null())
    assert sorted(kept.filter(pl.col("pane") == 0)["v0"].to_list()) == [15, 16, 17, 18, 19]
    assert kept.filter(pl.col("pane") == 1).height == 3


def test_equal_sketches_share_a_table() -> None:
    from windrow.kernels.aggregates.measures import Measures

    many = [Measured("approx_quantile", ("v",), (q,)) for q in (0.5, 0.95, 0.99)]
    many += [Measured("approx_count_distinct", ("v",)), Measured("median", ("v",)), Measured("mode", ("v",))]
    many += [Measured("approx_frequency", ("v",), (n,)) for n in (1, 2, 3)]
    emit = grouped(Stream("s", COLUMNS, "ts"), SPECS["sliding"], many, "k")
    assert len(Measures(emit.input).layouts) == 5  # type: ignore[arg-type]
