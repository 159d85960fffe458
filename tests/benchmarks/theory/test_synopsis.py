"""The basic interval synopsis answers what combining the rows of each window answers."""

from __future__ import annotations

from collections import Counter

import polars as pl
from hypothesis import given, strategies as st

from benchmarks.theory.synopsis import EMPTY, BasicIntervalSynopsis
from windrow.kernels.state import PANE, TableLayout

LONGEST = 6
ROWS = "rows.0"


def counted(keys: list[str]) -> pl.DataFrame:
    counts = sorted(Counter(keys).items())
    if not counts:
        return EMPTY
    return pl.DataFrame({PANE: [0] * len(counts), "k0": [k for k, _ in counts], ROWS: [n for _, n in counts]})


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=4), max_size=14))
def test_windows_of_all_lengths_are_answered_in_one_probe(intervals: list[list[str]]) -> None:
    synopsis = BasicIntervalSynopsis(TableLayout(("k0",)), LONGEST)
    for keys in intervals:
        synopsis.update(counted(keys))
    found = synopsis.probe(range(1, LONGEST + 1))
    for length, table in found.items():
        wanted = Counter(key for keys in intervals[-length:] for key in keys)
        told = {} if table.is_empty() else dict(table.select("k0", ROWS).iter_rows())
        assert told == dict(wanted)
