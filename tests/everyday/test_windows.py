"""Window functions against their definitions in the systems they come from, by brute force on random rows."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from windrow.language.compile import Catalog, compile_script, declare_stream
from windrow.testing import Harness

STREAMS = {"s": ("k BIGINT, v BIGINT, n BIGINT", "WATTR n")}
rows = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(-12, 30)), min_size=1, max_size=12
)
sizes = st.integers(1, 9)
offsets = st.integers(-9, 9)
executors = st.sampled_from(["reference", "kernels", "engine"])


def answered(query: str, given_rows: list[tuple[int, int, int]], executor: str) -> Counter[tuple[int, ...]]:
    harness = Harness(query, STREAMS, executor=executor)
    harness.push("s", given_rows[:4])
    harness.push("s", given_rows[4:])
    harness.finish()
    return Counter(change.row for change in harness.take())


def counted(extents: dict[tuple[int, int], list[int]]) -> Counter[tuple[int, ...]]:
    return Counter((start, end, len(held), sum(held)) for (start, end), held in extents.items() if held)


@given(rows, sizes, sizes, offsets, executors)
def test_hop_has_every_window_that_begins_at_a_multiple_of_the_slide(
    given_rows: list[tuple[int, int, int]], slide: int, size: int, offset: int, executor: str
) -> None:
    """A row is in the windows [b, b + size) with b = offset + i * slide: Flink's and Spark's definition."""
    extents: dict[tuple[int, int], list[int]] = {}
    for begin in (offset + i * slide for i in range(-60, 60)):
        extents[begin, begin + size] = [v for _, v, n in given_rows if begin <= n < begin + size]
    written = f"HOP(TABLE s, DESCRIPTOR(n), {slide}, {size}, {offset})"
    query = (
        f"SELECT window_start, window_end, COUNT(*), SUM(v) FROM {written} GROUP BY window_start, window_end"
    )
    assert answered(query, given_rows, executor) == counted(extents)
    key = f"window(n, {size}, {slide}, {offset})"
    spark = f"SELECT window.start, window.end, COUNT(*), SUM(v) FROM s GROUP BY {key}"
    assert answered(spark, given_rows, executor) == counted(extents)


@given(rows, sizes, sizes, offsets, executors)
def test_cumulate_has_every_prefix_of_a_window_in_whole_steps(
    given_rows: list[tuple[int, int, int]], step: int, steps: int, offset: int, executor: str
) -> None:
    size = step * steps
    extents: dict[tuple[int, int], list[int]] = {}
    for begin in (offset + i * size for i in range(-60, 60)):
        for end in range(begin + step, begin + size + 1, step):
            extents[begin, end] = [v for _, v, n in given_rows if begin <= n < end]
    written = f"CUMULATE(TABLE s, DESCRIPTOR(n), {step}, {size}, {offset})"
    query = (
        f"SELECT window_start, window_end, COUNT(*), SUM(v) FROM {written} GROUP BY window_start, window_end"
    )
    assert answered(query, given_rows, executor) == counted(extents)


@pytest.mark.parametrize("where", ["", "WHERE v > 1"])
@given(rows, sizes, executors)
def test_sessions_join_rows_at_most_a_gap_apart(
    where: str, given_rows: list[tuple[int, int, int]], gap: int, executor: str
) -> None:
    """Spark filters first; each key has sessions of its own."""
    held = [row for row in given_rows if not where or row[1] > 1]
    expected: Counter[tuple[int, ...]] = Counter()
    for key in {k for k, _, _ in held}:
        run: list[tuple[int, int]] = []
        for n, v in [*sorted((n, v) for k, v, n in held if k == key), (10_000, 0)]:
            if run and n - run[-1][0] > gap:
                expected[key, run[0][0], run[-1][0] + gap, len(run), sum(v for _, v in run)] += 1
                run = []
            run.append((n, v))
    items = "k, {0}start, {0}end, COUNT(*), SUM(v)"
    spark = f"SELECT {items.format('session_window.')} FROM s {where} GROUP BY k, session_window(n, {gap})"
    assert answered(spark, given_rows, executor) == expected
    if not where:
        flink = f"SESSION(TABLE s PARTITION BY k, DESCRIPTOR(n), {gap})"
        query = f"SELECT {items.format('window_')} FROM {flink} GROUP BY k, window_start, window_end"
        assert answered(query, given_rows, executor) == expected


def test_a_session_is_final_when_the_clock_has_passed_its_end() -> None:
    query = "SELECT COUNT(*) FROM SESSION(TABLE s, DESCRIPTOR(n), 5)"
    for executor in ("reference", "kernels", "engine"):
        harness = Harness(query, STREAMS, executor=executor)
        harness.push("s", [(1, 1, 3)])
        harness.punctuate("s", 8)
        assert harness.take() == []
        harness.push("s", [(1, 1, 8)])  # still within the gap
        harness.punctuate("s", 14)
        assert [(change.row, change.at) for change in harness.take()] == [((2,), 13)]


def test_the_watermark_of_a_declaration_is_its_slack() -> None:
    written = "CREATE STREAM s (a INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)"
    plain = "CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS"
    assert compile_script(written, Catalog()) == compile_script(plain, Catalog())
    bare = "CREATE STREAM s (a INT, n BIGINT, WATERMARK FOR n AS n) LATE KEEP"
    ordered = "CREATE STREAM s (a INT, n BIGINT) WATTR n ORDERED LATE KEEP"
    assert compile_script(bare, Catalog()) == compile_script(ordered, Catalog())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("TIMESTAMP(3)", "TIMESTAMP"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "TIMESTAMP"),
        ("timestamp without time zone", "TIMESTAMP"),
        ("timestamptz", "TIMESTAMP"),
        ("character varying", "STRING"),
        ("CHARACTER VARYING(20)", "STRING"),
        ("double precision", "DOUBLE"),
        ("BYTES", "BINARY"),
        ("VARBINARY(16)", "BINARY"),
        ("bytea", "BINARY"),
        ("int8", "BIGINT"),
        ("float4", "FLOAT"),
    ],
)
def test_the_types_of_other_systems(written: str, meant: str) -> None:
    assert declare_stream("s", f"x {written}, n BIGINT", "WATTR n") == declare_stream(
        "s", f"x {meant}, n BIGINT", "WATTR n"
    )
