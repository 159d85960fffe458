"""Rows outside of intervals: found by counting bounds, the same as by asking every interval."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import given, strategies as st

from windrow.execution.ingest import without

MOMENTS = st.integers(-30, 120) | st.sampled_from([-(2**62), 2**62])


@given(
    st.lists(st.integers(-20, 100), min_size=2, max_size=24, unique=True),
    st.lists(MOMENTS, max_size=40),
    st.booleans(),
)
def test_each_row_is_asked_of_every_interval(bounds: list[int], moments: list[int], touching: bool):
    """Ties, bounds themselves, and intervals that touch."""
    edges = sorted(bounds)
    shed = list(pairwise(edges)) if touching else list(zip(edges[::2], edges[1::2], strict=False))
    rows = pl.DataFrame(
        {"t": [*moments, *edges], "n": range(len(moments) + len(edges))}, schema_overrides={"t": pl.Int64}
    )
    kept = [n for t, n in rows.rows() if not any(begin <= t < end for begin, end in shed)]
    assert without(rows, "t", shed)["n"].to_list() == kept


def test_nothing_is_asked_where_nothing_is_shed():
    rows = pl.DataFrame({"t": [1, 2]})
    assert without(rows, "t", ()) is rows
