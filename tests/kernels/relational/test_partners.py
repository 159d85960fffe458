"""Finding partners by key and time: the same pairs as nested loops find, and no more looked at than meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, strategies as st

from windrow.kernels.relational.join import partners
from windrow.kernels.relational.signed_rows import FOREVER, SIGNED

_INSTANTS = st.integers(-12, 12)
_BEGINS = st.one_of(_INSTANTS, st.just(-FOREVER))
_ENDS = st.one_of(st.integers(1, 9), st.just(None))


@st.composite
def _rows(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    """(key, begin, end, count, ts); some were there before, some never end, some take others back."""
    found = []
    for _ in range(draw(st.integers(0, 12))):
        begin, lasts = draw(_BEGINS), draw(_ENDS)
        end = FOREVER if lasts is None else max(begin, -12) + lasts
        key = draw(st.sampled_from([None, 1, 2]))
        found.append((key, begin, end, draw(st.sampled_from([1, 2, -1])), draw(_INSTANTS)))
    return found


def _frame(rows: list[tuple[Any, ...]], side: str) -> pl.DataFrame:
    schema = {"#key0": pl.Int64(), **SIGNED}
    return pl.DataFrame(rows, schema, orient="row").with_row_index(side)


@given(_rows(), _rows(), st.booleans())
def test_the_same_pairs_as_by_nested_loops(left: list[Any], right: list[Any], nulls: bool) -> None:
    sides = _frame(left, "left"), _frame(right, "right")
    by_loops = partners.meet(*sides, ["#key0"], nulls=nulls, loops=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partners, "MANY", 0)
        patch.setattr(partners, "TIMES", 0)
        by_slots = partners.meet(*sides, ["#key0"], nulls=nulls)
    order = ["left", "right"]
    assert by_slots.select(by_loops.columns).sort(order).equals(by_loops.sort(order))


def _looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs are tested, from now on."""
    found: list[int] = []
    tested: Callable[..., pl.DataFrame] = partners._tested

    def counted(pairs: pl.DataFrame, *rest: Any) -> pl.DataFrame:
        found.append(pairs.height)
        return tested(pairs, *rest)

    monkeypatch.setattr(partners, "_tested", counted)
    return found


@pytest.mark.parametrize("rows", [2_000, 8_000])
def test_a_batch_over_many_windows_costs_as_much_as_many_batches(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key, and each row lasts for ten others: all pairs would be the square of the rows."""
    looked = _looked_at(monkeypatch)
    new = [(1, instant, instant + 10, 1, instant) for instant in range(rows)]
    was_there = [(1, -FOREVER, end, 1, 0) for end in range(10)]
    met = partners.meet(_frame(new, "left"), _frame(new + was_there, "right"), ["#key0"])
    assert met.height == sum(min(rows, i + 10) - max(0, i - 9) for i in range(rows)) + 45
    assert sum(looked) < 50 * rows
