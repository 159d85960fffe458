"""Oracle tests: a synopsis of any kind answers what combining the rows of each window answers."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.layout import PANE, ROWS, Layout
from windrow.kernels.partials import Rows
from windrow.kernels.selections import Extreme
from windrow.sharing.synopses.choose import converted, make, restored
from windrow.sharing.synopses.states import EMPTY, States
from windrow.sharing.synopses.synopsis import Kind

KINDS = [Kind.RUNNING, Kind.INTERVAL, Kind.BASIC]
COUNTS = States(Layout(("k0",)), counts_rows=True)
GREATEST = States(Layout(("k0",), (Extreme("d", True),)))
Interval = list[tuple[str | None, int]]
intervals = st.lists(
    st.lists(st.tuples(st.sampled_from(["a", "b", None]), st.integers(-5, 5)), max_size=4), max_size=14
)


def counted(rows: Interval) -> pl.DataFrame:
    if not rows:
        return EMPTY
    keys = pl.Series("k0", [key for key, _ in rows], dtype=pl.String)
    frame = pl.DataFrame([pl.Series(PANE, [0] * len(rows)), keys, pl.Series("rows.0", [1] * len(rows))])
    return COUNTS.merged([frame])


def greatest(rows: Interval) -> pl.DataFrame:
    if not rows:
        return EMPTY
    keys = pl.Series("k0", [key for key, _ in rows], dtype=pl.String)
    lifted = Extreme("d", True).lift(
        Rows((pl.Series([value for _, value in rows]),), pl.Series([True] * len(rows)), pl.DataFrame())
    )
    return GREATEST.merged([pl.DataFrame([pl.Series(PANE, [0] * len(rows)), keys, *lifted])])


def as_counts(table: pl.DataFrame) -> dict[Any, int]:
    return {row["k0"]: row["rows.0"] for row in table.to_dicts()}


def as_greatest(table: pl.DataFrame) -> dict[Any, int]:
    return {row["k0"]: row["d.1"] for row in table.to_dicts()}


@settings(max_examples=25)
@given(intervals, st.integers(1, 9), st.integers(-20, 20), st.sampled_from(KINDS))
def test_counts(rows: list[Interval], b: int, start: int, kind: Kind) -> None:
    synopsis = make(kind, COUNTS, b, start)
    for place, interval in enumerate(rows, start=1):
        synopsis.update(counted(interval))
        probed = synopsis.probe([1, b - b // 3, b])
        for n in probed:
            window = [key for each in rows[max(0, place - n) : place] for key, _ in each]
            assert as_counts(probed[n]) == Counter(window)


@settings(max_examples=30)
@given(intervals, st.integers(1, 9), st.sampled_from(KINDS[1:]))
def test_maxima(rows: list[Interval], b: int, kind: Kind) -> None:
    synopsis = make(kind, GREATEST, b, 3)
    for place, interval in enumerate(rows, start=1):
        synopsis.update(greatest(interval))
        probed = synopsis.probe([1, b - b // 3, b])
        for n in probed:
            window = [row for each in rows[max(0, place - n) : place] for row in each]
            keys = {key for key, _ in window}
            assert as_greatest(probed[n]) == {k: max(v for key, v in window if key == k) for k in keys}


@settings(max_examples=30)
@given(intervals, st.integers(1, 6), st.integers(1, 9), st.permutations(KINDS))
def test_what_is_held_can_be_kept_in_another_way(
    rows: list[Interval], b: int, longer: int, kinds: list[Kind]
) -> None:
    synopsis = make(kinds[0], COUNTS, b, 0)
    for interval in rows:
        synopsis.update(counted(interval))
    other = converted(converted(synopsis, kinds[1], b), kinds[2], longer)
    assert other.end == synopsis.end
    for n in range(1, b + 1):
        assert as_counts(other.probe([n])[n]) == as_counts(synopsis.probe([n])[n])


@settings(max_examples=25)
@given(intervals, st.integers(1, 6), st.integers(0, 13), st.sampled_from(KINDS))
def test_what_was_written_goes_on_as_if_it_had_not_been(
    rows: list[Interval], b: int, cut: int, kind: Kind
) -> None:
    kept, again = make(kind, COUNTS, b, 0), make(kind, COUNTS, b, 0)
    written: dict[str, pl.DataFrame] = {}
    for place, interval in enumerate(rows):
        for synopsis in (kept, again):
            synopsis.update(counted(interval))
        if place >= cut:
            again = restored(again.stored(), COUNTS)
        for name, table in again.stored().tables.items():
            assert name not in written or written[name].equals(table), "a name stands for one table"
            written[name] = table
    assert (again.end, again.is_empty) == (kept.end, kept.is_empty)
    for n in range(1, b + 1):
        assert as_counts(again.probe([n])[n]) == as_counts(kept.probe([n])[n])


@pytest.mark.parametrize("kind", KINDS)
def test_long_gaps_cost_nothing_and_leave_nothing(kind: Kind) -> None:
    synopsis = make(kind, COUNTS, 8, 0)
    synopsis.update(counted([("a", 1)]))
    synopsis.skip_to(5)
    assert as_counts(synopsis.probe([8])[8]) == {"a": 1}
    synopsis.skip_to(10**15)
    assert synopsis.is_empty
    synopsis.update(counted([("b", 1)]))
    assert synopsis.end == 10**15 + 1
    assert as_counts(synopsis.probe([8])[8]) == {"b": 1}


def test_groups_that_are_long_gone_do_not_stay_in_running_totals() -> None:
    synopsis = make(Kind.RUNNING, COUNTS, 4, 0)
    for number in range(40):
        synopsis.update(counted([(f"key {number}", 1)]))
    sizes = [total.height for total in synopsis._totals]  # type: ignore[attr-defined]
    assert max(sizes) <= 2 * (4 + 1)


@pytest.mark.parametrize("b", [8, 64])
def test_how_many_intervals_are_read(b: int) -> None:
    """log b each by an interval synopsis, b once for all by a basic one."""
    reads = {}
    for kind in (Kind.INTERVAL, Kind.BASIC):
        synopsis = make(kind, COUNTS, b, 0)
        for _ in range(b):
            synopsis.update(counted([("a", 1)]))
        synopsis.probe(range(1, b + 1))
        reads[kind] = synopsis.reads
    assert reads[Kind.BASIC] == b
    assert b * math.log2(b) / 2 <= reads[Kind.INTERVAL] <= b * 2 * math.log2(b)


def test_rows_is_what_layouts_count() -> None:
    assert COUNTS.layout.partials == (ROWS,)
    assert COUNTS.is_subtractable
    assert not GREATEST.is_subtractable
