"""Oracle tests of exact numbers: limbs and unscaled decimals against Python's integers."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from windrow.algebra.aggregates import make
from windrow.algebra.types import BIGINT, INT, DataType, decimal
from windrow.errors import DataError
from windrow.kernels.aggregates.lowering import lower
from windrow.kernels.aggregates.measures import partial_of
from windrow.kernels.aggregates.partials import LiftedRows
from windrow.kernels.columnar import decimals
from windrow.kernels.columnar.columns import column_of
from windrow.kernels.state import TableLayout

WIDE = decimal(38, 0)
NINES = 10**38 - 1
INTEGERS: dict[DataType, st.SearchStrategy[int]] = {
    INT: st.integers(*INT.bounds),
    BIGINT: st.integers(*BIGINT.bounds),
    WIDE: st.integers(-NINES, NINES),
}


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_limbs_add_and_square_exactly(kind: DataType) -> None:
    @given(st.lists(INTEGERS[kind], min_size=1, max_size=20))
    def check(values: list[int]) -> None:
        array = np.array(values, dtype=np.int64) if kind is not WIDE else decimals.ints(values)
        count = decimals.limb_count(kind)
        assert decimals.joined(decimals.split(array, count)).tolist() == values
        sums = [np.array([limb.sum()]) for limb in decimals.split(array, count)]
        assert decimals.joined(sums).tolist() == [sum(values)]
        squares = [np.array([limb.sum()]) for limb in decimals.squares(array, count)]
        assert decimals.joined(squares).tolist() == [sum(value * value for value in values)]

    check()


@pytest.mark.parametrize("kind", [decimal(5, 2), decimal(18, 0), decimal(19, 3), decimal(38, 38)], ids=str)
def test_decimals_are_unscaled_integers_and_back(kind: DataType) -> None:
    most = 10**kind.precision - 1
    for integers in ([0, 1, -1, most, -most], [-most]):
        values = [Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -kind.scale)) for n in integers]
        column = column_of("d", kind, values)
        assert decimals.unscaled(column).tolist() == integers
        assert decimals.unscaled(column[1:]).tolist() == integers[1:]
        assert decimals.decimal_column(decimals.unscaled(column), kind).to_list() == values


def value_of(name: str, kind: DataType, values: list[object]) -> object:
    """An aggregate of a column, through lift, merge and lower."""
    aggregate = make(name, types=(kind,))
    partial = partial_of(aggregate, "p")
    everyone = pl.Series([True] * len(values))
    states = pl.DataFrame(partial.lift(LiftedRows((column_of("v", kind, values),), everyone, pl.DataFrame())))
    states = states.with_columns(pl.lit(0).alias("w"))
    return lower(aggregate, partial, TableLayout((), (partial,)).merge(states, ["w"])).to_list()[0]


@pytest.mark.parametrize("name", ["sum", "avg", "var_pop", "stddev_samp"])
@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_aggregates_of_exact_numbers(name: str, kind: DataType) -> None:
    @given(st.lists(INTEGERS[kind], min_size=2, max_size=6))
    def check(numbers: list[int]) -> None:
        values = [Decimal(n) if kind is WIDE else n for n in numbers]
        algebra = make(name, types=(kind,))
        try:
            expected = algebra.lower(algebra.fold(algebra.lift((value,)) for value in values))
        except DataError:
            with pytest.raises(DataError):
                value_of(name, kind, list(values))
            return
        found = value_of(name, kind, list(values))
        if isinstance(expected, float):
            assert isinstance(found, float)
            assert math.isclose(found, expected, rel_tol=1e-15)
        else:
            assert found == expected

    check()


def test_a_spread_is_not_lost_beside_a_large_mean() -> None:
    huge = 1 << 62
    assert value_of("var_pop", BIGINT, [huge + 1, huge + 2, huge + 3]) == 2 / 3
