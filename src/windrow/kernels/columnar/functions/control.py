"""Logic and choices: an argument that could fail is computed only for the rows that need it, as in Spark."""

from __future__ import annotations

import polars as pl

from windrow.algebra.expressions import Call, Literal
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.functions.base import Compiled, Evaluator, Lazy, Operation, Outcome, Strict


def _connective(decisive: bool) -> Lazy:
    """AND is decided by the first FALSE, OR by the first TRUE; the rest is Kleene's logic."""

    def build(_: Call, args: tuple[Compiled, ...]) -> Evaluator:
        left, right = args

        def evaluate(frame: pl.DataFrame) -> pl.Series:
            first = left.evaluate(frame).cast(pl.Boolean)
            open_rows = ~first.eq_missing(pl.Series([decisive]))
            second = right.within(frame, open_rows).cast(pl.Boolean)
            return first | second if decisive else first & second

        return evaluate

    return build


def _case(call: Call, args: tuple[Compiled, ...]) -> Evaluator:
    """Conditions and values in turn, then perhaps what else."""
    branches = tuple(zip(args[::2], args[1::2], strict=False))
    otherwise = args[-1] if len(args) % 2 else None
    dtype = polars_type(call.type)

    def evaluate(frame: pl.DataFrame) -> pl.Series:
        left = pl.Series([True]).new_from_index(0, frame.height)
        result = pl.Series([], dtype=dtype).extend_constant(None, frame.height)
        for condition, value in branches:
            holds = condition.within(frame, left).cast(pl.Boolean).fill_null(False) & left
            result = value.within(frame, holds).zip_with(holds, result)
            left = left & ~holds
        return result if otherwise is None else otherwise.within(frame, left).zip_with(left, result)

    return evaluate


def _coalesce(_: Call, args: tuple[Compiled, ...]) -> Evaluator:
    def evaluate(frame: pl.DataFrame) -> pl.Series:
        result = args[0].evaluate(frame)
        for arg in args[1:]:
            missing = result.is_null()
            result = arg.within(frame, missing).zip_with(missing, result)
        return result

    return evaluate


def _array(call: Call, args: tuple[Compiled, ...]) -> Evaluator:
    dtype = polars_type(call.type.element)

    def evaluate(frame: pl.DataFrame) -> pl.Series:
        parts = [arg.evaluate(frame).cast(dtype).alias(f"c{place}") for place, arg in enumerate(args)]
        whole = pl.DataFrame(parts)
        if not isinstance(dtype, pl.List):
            return whole.select(pl.concat_list(pl.all())).to_series()
        # arrays would be put behind one another: as the only field of a struct, each is one element
        wrapped = whole.select(pl.concat_list(pl.struct(pl.col(name).alias("")) for name in whole.columns))
        return wrapped.select(pl.all().list.eval(pl.element().struct.field(""))).to_series()

    return evaluate


def _named_struct(call: Call, args: tuple[Compiled, ...]) -> Evaluator:
    def evaluate(frame: pl.DataFrame) -> pl.Series:
        parts = [
            arg.evaluate(frame).cast(polars_type(kind)).alias(name)
            for (name, kind), arg in zip(call.type.fields, args[1::2], strict=True)
        ]
        return pl.DataFrame(parts).select(pl.struct(pl.all())).to_series()

    return evaluate


FUNCTIONS: dict[str, Lazy] = {
    "array": _array,
    "named_struct": _named_struct,
    "and": _connective(False),
    "or": _connective(True),
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
}


# ------------------------------------------------------------ nested
#
# Parts of structs and arrays, a column at a time; lookups in maps and all of JSON are computed by values.


def _get_field(call: Call) -> Operation | None:
    name = call.args[1]
    assert isinstance(name, Literal)
    return lambda whole, _: Outcome(whole.struct.field(name.value))


def _get(call: Call) -> Operation | None:
    """A place from 0 on."""

    def operation(whole: pl.Series, place: pl.Series) -> Outcome:
        known = place.cast(pl.Int64).zip_with(
            place >= 0, pl.Series([None], dtype=pl.Int64).new_from_index(0, len(place))
        )
        return Outcome(whole.list.get(known, null_on_oob=True))

    return operation


def _size(call: Call) -> Operation | None:
    return lambda whole: Outcome(whole.list.len().cast(pl.Int32))


NESTED: dict[str, Strict] = {"get_field": _get_field, "get": _get, "size": _size}
