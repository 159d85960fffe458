"""Gaps are exactly the windows that are dropped; guesses are never where answers are."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from windrow.engine.explain import declared
from windrow.engine.gaps import Gap, gaps, joined, with_gaps
from windrow.engine.output.outbox import published_schema
from windrow.errors import QueryError
from windrow.language.compile import compile_query
from windrow.shedding.phases import Cycles, Phases
from windrow.windows.spec import SlideGrid

worlds = st.tuples(
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 5), st.floats(0, 1), st.integers(0, 9)
)


@given(worlds, st.lists(st.integers(0, 40), min_size=1, max_size=6))
def test_gaps_are_the_dropped_windows_however_the_time_is_cut(
    world: tuple[int, int, int, float, int], cuts: list[int]
):
    slide, times, batch, p, seed = world
    grid = SlideGrid(slide)
    phases = (
        Phases().then(0, Cycles(0, slide * times, batch), p, seed).then(60, Cycles(0, slide, batch), p, seed)
    )
    found: list[Gap] = []
    at = 0
    for length in cuts:
        found = joined(found, gaps(phases, grid, at, at + length), slide)
        at += length
    ends = [end for end in grid.instants(0, at) if phases.drops(end)]
    assert [end for gap in found for end in range(gap.first, gap.last + 1, slide)] == ends
    assert sum(gap.windows for gap in found) == len(ends)
    assert all(after.first > before.last + slide for before, after in pairwise(found))
    assert [Gap.from_json(gap.to_json()) for gap in found] == found


PLAN = compile_query(
    "SELECT k, MIN(word) AS word, window_end, COUNT(*) AS n, AVG(v) AS mean, SUM(d) AS d"
    " FROM s [RANGE 9 SLIDE 3] GROUP BY k",
    declared({"s": ("k BIGINT, v DOUBLE, d DECIMAL(9, 2), word STRING, t BIGINT", "WATTR t ORDERED")}, {}),
)
numbers = st.integers(-9, 9)
answered = st.dictionaries(st.sampled_from([None, 0, 1]), st.tuples(numbers, numbers), max_size=3)


def row_of(at: int, k: int | None, n: Fraction, mean: Fraction) -> tuple[object, ...]:
    """An answer of a group; what has no fractions is rounded."""
    cents = Decimal(round(n * 100)) / 100
    return at, k, f"w{k}", at, round(n), round(float(mean), 9), cents


@given(
    st.lists(st.tuples(answered, st.booleans(), st.booleans()), max_size=12),
    st.sampled_from(["linear", "last"]),
)
def test_gaps_are_filled_from_the_answers_around_and_marked(
    windows: list[tuple[dict[int | None, tuple[int, int]], bool, bool]], fill: str
) -> None:
    given_rows = {
        3 * place: {k: (Fraction(n), Fraction(mean)) for k, (n, mean) in rows.items()}
        for place, (rows, is_missing, _) in enumerate(windows)
        if not is_missing
    }
    missing = [Gap(3 * n, 3 * n, 1, suspended) for n, (_, gone, suspended) in enumerate(windows) if gone]
    schema = published_schema(PLAN)
    answers = [row_of(at, k, *values) for at, rows in given_rows.items() for k, values in rows.items()]
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in answers], schema)
    guesses = []
    for gap in missing:
        left = max((at for at in given_rows if at < gap.first), default=None)
        right = min((at for at in given_rows if at > gap.first), default=None)
        for k, one in given_rows.get(left, {}).items() if left is not None else ():
            other = one if fill == "last" else given_rows.get(right, {}).get(k)
            if other is not None:
                part = Fraction(gap.first - left, (right - left) if fill == "linear" else 1)
                n, mean = (a + (b - a) * part for a, b in zip(one, other, strict=True))
                guesses.append(row_of(gap.first, k, n, mean))
    for marked in (False, True):
        found = with_gaps(PLAN, table, missing, marked=marked, fill=fill)
        assert found.drop_columns(["op"] if marked else []).schema == schema.insert(
            1, pa.field("filled", pa.bool_())
        )
        assert found["at"].to_pylist() == sorted(found["at"].to_pylist())
        rows = found.select(["filled", *(["op"] if marked else []), *schema.names]).to_pylist()
        rows = [row if row["mean"] is None else {**row, "mean": round(row["mean"], 9)} for row in rows]
        filled = Counter(tuple(row[name] for name in schema.names) for row in rows if row["filled"])
        plain = [row for row in rows if not row["filled"]]
        empty = [row for row in plain if marked and row["op"] == "gap"]
        assert filled == Counter(guesses)
        assert [tuple(row[n] for n in schema.names) for row in plain if row not in empty] == answers
        left_out = {gap.first for gap in missing} - {row[0] for row in guesses}
        assert [row["at"] for row in empty] == (sorted(left_out) if marked else [])


@pytest.mark.parametrize(
    ("text", "fill", "why"),
    [
        ("SELECT DISTINCT k FROM s [RANGE 9 SLIDE 3]", "linear", "cannot be told apart"),
        ("SELECT COUNT(*) AS n FROM s [RANGE 9 SLIDE 3] GROUP BY k", "linear", "cannot be told apart"),
        ("SELECT COUNT(*) AS n FROM s [RANGE 9 SLIDE 3]", "cubic", "not filled by `cubic`"),
    ],
)
def test_what_cannot_be_filled_says_why(text: str, fill: str, why: str) -> None:
    plan = compile_query(text, declared({"s": ("k BIGINT, t BIGINT", "WATTR t ORDERED")}, {}))
    with pytest.raises(QueryError, match=why):
        with_gaps(plan, published_schema(plan).empty_table(), (), fill=fill)


def test_suspension_is_a_gap_of_its_own():
    cycles = Cycles(0, 10, 3)
    phases = (
        Phases().then(0, cycles, 0.75, 1).then(80, cycles, 0.0, 1, suspended=True).then(120, cycles, 0.0, 1)
    )
    assert [(gap.first, gap.last, gap.suspended) for gap in gaps(phases, SlideGrid(10), 0, 300)] == [
        (20, 40, False),
        (60, 80, False),
        (90, 120, True),
    ]
