"""Names, constants, and aggregates as values."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from windrow.algebra import types as t
from windrow.algebra.aggregates import AggregateFunction, is_aggregate, lookup, make, names
from windrow.errors import QueryError


def test_names_know_no_case_and_have_aliases() -> None:
    assert is_aggregate("Var_Samp")
    assert not is_aggregate("abs")
    assert lookup("variance") is lookup("VAR_SAMP")
    assert lookup("stddev") is lookup("STDDEV_SAMP")
    assert names() == tuple(sorted(names()))


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("medain", (), "no aggregate `medain` (did you mean `MEDIAN`?)"),
        ("quantile", (), "QUANTILE got 0 constants (it takes: fraction)"),
        ("quantile", (1.5,), "no QUANTILE at 1.5 (the fraction is a number from 0 to 1)"),
        ("quantile", ("a",), "no QUANTILE at 'a' (the fraction is a number from 0 to 1)"),
        ("top_k", (0,), "no TOP_K of 0 values (k is a whole number from 1 on)"),
        ("sum", (1,), "SUM got 1 constants (it takes: no constants)"),
        ("approx_quantile", (), "APPROX_QUANTILE got 0 constants (it takes: fraction, perhaps error)"),
        (
            "approx_count_distinct",
            (0.001,),
            "no APPROX_COUNT_DISTINCT with an error of 0.001 (the error is a number from 0.0021 to below 1)",
        ),
        (
            "approx_top_k",
            (3, 2),
            "no APPROX_TOP_K with capacity = 2 (capacity is a whole number from 3 on)",
        ),
    ],
)
def test_what_cannot_be_made(name: str, params: tuple[Any, ...], message: str) -> None:
    with pytest.raises(QueryError) as caught:
        make(name, params)
    assert str(caught.value) == message


def test_constants_that_may_be_left_out_are_the_same_when_written() -> None:
    assert make("approx_quantile", (0.5,)) == make("approx_quantile", (0.5, 0.01))
    assert make("approx_top_k", (5,)).params == (5, 10_000)


def test_count_distinct_needs_an_argument() -> None:
    with pytest.raises(QueryError, match="DISTINCT COUNT got 0 arguments"):
        make("count", distinct=True, types=())


def test_distinct_is_nothing_where_duplicates_are_nothing() -> None:
    assert make("max", distinct=True) == make("max")
    assert make("sum", distinct=True) != make("sum")


def test_aggregates_are_equal_by_function_constants_and_types() -> None:
    assert make("quantile", (0.5,)) == make("PERCENTILE", (0.5,))
    assert make("quantile", (0.5,)) != make("quantile", (0.9,))
    assert make("sum", types=(t.INT,)) != make("sum", types=(t.BIGINT,))
    assert make("sum", distinct=True) != make("avg", distinct=True)
    assert len({make("min"), make("min"), make("max")}) == 2


@pytest.mark.parametrize("name", ["sum", "count"])
@pytest.mark.parametrize("distinct", [False, True])
def test_aggregates_can_be_pickled(name: str, distinct: bool) -> None:
    aggregate = make(name, distinct=distinct, types=(t.INT,))
    assert pickle.loads(pickle.dumps(aggregate)) == aggregate


def test_a_new_aggregate_needs_five_methods() -> None:
    class Product(AggregateFunction):
        """As someone outside this package would write it: init, step, merge, final, and its type."""

        name = "PRODUCT"

        def identity(self) -> int:
            return 1

        def lift(self, args: tuple[Any, ...], order: tuple[Any, ...] = ()) -> int:
            return 1 if args[0] is None else int(args[0])

        def combine(self, a: int, b: int) -> int:
            return a * b

        def lower(self, state: int) -> int:
            return state

        def _result_type(self, types: tuple[t.DataType, ...]) -> t.DataType:
            return t.BIGINT

    product = Product().bind((t.INT,))
    total = product.fold(product.lift((value,)) for value in (2, None, 3))
    assert product.lower(total) == 6
    with pytest.raises(NotImplementedError, match="PRODUCT has no inverse"):
        product.subtract(total, 2)
