"""Order and equality of columns, logic and choices, parts of structs and arrays.

polars orders as Spark does: NaN equals itself, and no number is greater. Arrays and structs are compared row
by row. An argument that could fail is computed only for the rows that need it, as in Spark. Lookups in maps
and all of JSON are computed by values.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, lt
from typing import Any

import polars as pl

from windrow.algebra import Call, DataType, Kind, Literal
from windrow.algebra.functions.values.comparison import equality, less
from windrow.kernels.columnar.columns import column_of, polars_type, values_of
from windrow.kernels.columnar.functions import base

Test = Callable[[pl.Series, pl.Series], pl.Series]


def _test(kind: DataType, whole: Test, meaning: Callable[[Any, Any], bool]) -> Test:
    """A comparison of two columns of a type: NULL in, NULL out."""
    if kind.kind is Kind.NULL:
        return lambda a, _: base.nulls(pl.Boolean(), len(a))
    if not kind.fields:
        return whole

    def row_by_row(a: pl.Series, b: pl.Series) -> pl.Series:
        pairs = zip(values_of(a, kind), values_of(b, kind), strict=True)
        answers = [None if x is None or y is None else meaning(x, y) for x, y in pairs]
        return pl.Series(answers, dtype=pl.Boolean)

    return row_by_row


def _same(kind: DataType) -> Test:
    return _test(kind, eq, equality(kind))


def _below(kind: DataType) -> Test:
    return _test(kind, lt, less(kind))


def _compared(
    test: Callable[[DataType], Test], *, swapped: bool = False, negated: bool = False
) -> base.Whole:
    def build(call: Call) -> Callable[..., pl.Series]:
        compare = test(call.args[0].type)

        def evaluate(a: pl.Series, b: pl.Series) -> pl.Series:
            found = compare(b, a) if swapped else compare(a, b)
            return ~found if negated else found

        return evaluate

    return build


def _null_safe(call: Call) -> Callable[..., pl.Series]:
    same = _same(call.args[0].type)
    return lambda a, b: (same(a, b) | (a.is_null() & b.is_null())).fill_null(False)


def _extremum(beats: Callable[[DataType], Test], *, swapped: bool) -> base.Whole:
    def build(call: Call) -> Callable[..., pl.Series]:
        below = beats(call.type)

        def evaluate(best: pl.Series, *others: pl.Series) -> pl.Series:
            for other in others:
                better = (below(best, other) if swapped else below(other, best)) | best.is_null()
                best = other.zip_with(better.fill_null(False) & other.is_not_null(), best)
            return best

        return evaluate

    return build


@base.lazy
def _in(call: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    """TRUE from the first that is equal on; else NULL if one is NULL, else FALSE."""
    same, (value, *items) = _same(call.args[0].type), args
    wanted = value.evaluate(frame)
    answer = pl.Series([False]).new_from_index(0, frame.height)
    open_rows = wanted.is_not_null()
    for item in items:
        answer = answer | same(wanted, item.within(frame, open_rows))
        open_rows = open_rows & ~answer.eq_missing(pl.Series([True]))
    return answer.zip_with(wanted.is_not_null(), base.nulls(pl.Boolean(), frame.height))


def _in_list(call: Call, args: tuple[base.Compiled, ...]) -> base.Evaluator:
    kind, value = call.args[0].type, args[0]
    constants = [item.value for item in call.args[1:] if isinstance(item, Literal)]
    if kind.is_fractional or kind.fields or kind.kind is Kind.NULL or len(constants) < len(args) - 1:
        return _in(call, args)
    known = column_of("", kind, [each for each in constants if each is not None])

    def evaluate(frame: pl.DataFrame) -> pl.Series:
        found = value.evaluate(frame).is_in(known.implode())
        missed = base.nulls(pl.Boolean(), frame.height) if None in constants else found
        return found.zip_with(found.fill_null(False), missed)

    return evaluate


@base.lazy
def _and(_: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    """Decided by the first FALSE; the rest is Kleene's logic."""
    first = args[0].evaluate(frame).cast(pl.Boolean)
    return first & args[1].within(frame, ~first.eq_missing(pl.Series([False]))).cast(pl.Boolean)


@base.lazy
def _or(_: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    """Decided by the first TRUE."""
    first = args[0].evaluate(frame).cast(pl.Boolean)
    return first | args[1].within(frame, ~first.eq_missing(pl.Series([True]))).cast(pl.Boolean)


@base.lazy
def _case(call: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    """Conditions and values in turn, then perhaps what else."""
    left = pl.Series([True]).new_from_index(0, frame.height)
    result = base.nulls(polars_type(call.type), frame.height)
    for condition, value in zip(args[::2], args[1::2], strict=False):
        holds = condition.within(frame, left).cast(pl.Boolean).fill_null(False) & left
        result = value.within(frame, holds).zip_with(holds, result)
        left = left & ~holds
    return args[-1].within(frame, left).zip_with(left, result) if len(args) % 2 else result


@base.lazy
def _coalesce(_: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    result = args[0].evaluate(frame)
    for arg in args[1:]:
        missing = result.is_null()
        result = arg.within(frame, missing).zip_with(missing, result)
    return result


@base.lazy
def _array(call: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    dtype = polars_type(call.type.element)
    parts = [arg.evaluate(frame).cast(dtype).alias(f"c{place}") for place, arg in enumerate(args)]
    whole = pl.DataFrame(parts)
    if not isinstance(dtype, pl.List):
        return whole.select(pl.concat_list(pl.all())).to_series()
    # arrays would be put behind one another: as the only field of a struct, each is one element
    wrapped = whole.select(pl.concat_list(pl.struct(pl.col(name).alias("")) for name in whole.columns))
    return wrapped.select(pl.all().list.eval(pl.element().struct.field(""))).to_series()


@base.lazy
def _named_struct(call: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    fields = zip(call.type.fields, args[1::2], strict=True)
    parts = [arg.evaluate(frame).cast(polars_type(kind)).alias(name) for (name, kind), arg in fields]
    return pl.DataFrame(parts).select(pl.struct(pl.all())).to_series()


def _get_field(call: Call) -> base.Operation | None:
    name = call.args[1]
    assert isinstance(name, Literal)
    return lambda whole, _: base.Outcome(whole.struct.field(name.value))


def _element(whole: pl.Series, place: pl.Series) -> pl.Series:
    """The one at a place, from 0 on."""
    known = place.cast(pl.Int64).zip_with(place >= 0, base.nulls(pl.Int64(), len(place)))
    return whole.list.get(known, null_on_oob=True)


WHOLE: dict[str, base.Whole] = {
    "=": _compared(_same),
    "<>": _compared(_same, negated=True),
    "<": _compared(_below),
    "<=": _compared(_below, swapped=True, negated=True),
    ">": _compared(_below, swapped=True),
    ">=": _compared(_below, negated=True),
    "<=>": _null_safe,
    "greatest": _extremum(_below, swapped=True),
    "least": _extremum(_below, swapped=False),
    "isnan": lambda _: lambda a: a.is_nan().fill_null(False),
    "is_null": lambda _: lambda a: a.is_null(),
    "is_not_null": lambda _: lambda a: a.is_not_null(),
    "not": lambda _: lambda a: ~a.cast(pl.Boolean),
}
LAZY: dict[str, base.Lazy] = {
    "in": _in_list,
    "array": _array,
    "named_struct": _named_struct,
    "and": _and,
    "or": _or,
    "case": _case,
    "if": _case,
    "coalesce": _coalesce,
}
STRICT: dict[str, base.Strict] = {
    "get_field": _get_field,
    "get": base.plain(_element),
    "size": base.plain(lambda whole: whole.list.len().cast(pl.Int32)),
}
