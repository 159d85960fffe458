"""Oracle tests: a synopsis of a join answers what joining the two windows anew answers."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.kernels.layout import PANE, Layout
from windrow.sharing.synopses.joins.basic import BasicIntervalJoin
from windrow.sharing.synopses.joins.generalised import GeneralisedJoin
from windrow.sharing.synopses.joins.interval import IntervalJoin
from windrow.sharing.synopses.joins.running import RunningJoin
from windrow.sharing.synopses.joins.synopsis import FIRST, SECOND, JoinSynopsis, Results
from windrow.sharing.synopses.states import EMPTY, States

COUNTS = States(Layout(("k0",)), counts_rows=True)
KINDS: list[type[JoinSynopsis]] = [BasicIntervalJoin, RunningJoin, IntervalJoin]
#: by interval, the keys of the rows of the two streams
Streams = list[tuple[list[str], list[str]]]
keys = st.lists(st.sampled_from("ab"), max_size=3)
streams = st.lists(st.tuples(keys, keys), min_size=1, max_size=10)


def matches(rows: Streams, first: range, second: range) -> list[tuple[str, int, int]]:
    """The results of joining rows of some intervals: the key, and the intervals of both rows."""
    return [
        (one, i, j)
        for i in first
        for j in second
        for one in rows[i][0]
        for other in rows[j][1]
        if one == other
    ]


def new_results(rows: Streams, at: int, b: int) -> Results:
    """What the rows of the newest interval give with those of the windows."""
    alive = range(max(0, at - b + 1), at + 1)
    found = [match for match in matches(rows, alive, alive) if at in match[1:]]
    if not found:
        return Results(EMPTY)
    columns: dict[str, list[Any]] = {
        PANE: [0] * len(found),
        "k0": [key for key, _, _ in found],
        "rows.0": [1] * len(found),
        FIRST: [i for _, i, _ in found],
        SECOND: [j for _, _, j in found],
    }
    return Results(pl.DataFrame(columns))


def expected(rows: Streams, end: int, first: int, second: int) -> Counter[str]:
    windows = range(max(0, end - first), end), range(max(0, end - second), end)
    return Counter(key for key, _, _ in matches(rows, *windows))


def as_counts(table: pl.DataFrame) -> dict[str, int]:
    return {row["k0"]: row["rows.0"] for row in table.to_dicts()}


@settings(max_examples=40)
@given(streams, st.integers(1, 8), st.sampled_from(KINDS))
def test_equal_windows(rows: Streams, b: int, kind: type[JoinSynopsis]) -> None:
    synopsis = kind(COUNTS, b, 0)
    for at in range(len(rows)):
        synopsis.update(new_results(rows, at, synopsis.b))
        probed = synopsis.probe(range(1, b + 1))
        for n in range(1, b + 1):
            assert as_counts(probed[n]) == expected(rows, at + 1, n, n)


@settings(max_examples=40)
@given(streams, st.integers(1, 8), st.data(), st.sampled_from(KINDS))
def test_unequal_windows(rows: Streams, b: int, data: st.DataObject, kind: type[JoinSynopsis]) -> None:
    equal = kind(COUNTS, b, 0)
    b = equal.b
    g = data.draw(st.integers(0, b - 1))
    synopsis = GeneralisedJoin(equal, g)
    for at in range(len(rows)):
        synopsis.update(new_results(rows, at, b))
    for first in range(b - g, b + 1):
        for second in range(b - g, b + 1):
            found = as_counts(synopsis.probe_unequal(first, second))
            assert found == expected(rows, len(rows), first, second)


@pytest.mark.parametrize("lengths", [(7, 8), (6, 8)])
def test_one_flag_per_interval_decides_joins_that_differ_by_one_only(lengths: tuple[int, int]) -> None:
    """The thesis' three states: without first rows of the same interval, (6, 8) has a result too many."""
    rows: Streams = [([], ["a"]), (["a"], []), *([([], [])] * 6)]
    results = matches(rows, range(8), range(8))
    unflagged = [(i, j) for _, i, j in results if min(i, j) >= 8 - lengths[0] or i != min(i, j)]
    exact = sum(expected(rows, 8, *lengths).values())
    assert len(unflagged) - exact == (0 if lengths == (7, 8) else 1)
    synopsis = GeneralisedJoin(BasicIntervalJoin(COUNTS, 8, 0), 2)
    for at in range(8):
        synopsis.update(new_results(rows, at, 8))
    assert sum(as_counts(synopsis.probe_unequal(*lengths)).values()) == exact


def test_the_states_of_a_generalised_synopsis_are_bounded() -> None:
    synopsis = GeneralisedJoin(BasicIntervalJoin(COUNTS, 8, 0), 2)
    rows: Streams = [(["a"], ["a"])] * 30
    for at in range(30):
        synopsis.update(new_results(rows, at, 8))
    assert len(synopsis._pairs) <= 8 * (2 * 2 + 1)
