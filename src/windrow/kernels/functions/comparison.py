"""Order and equality of columns. polars orders as Spark does: NaN equals itself, and no number is greater."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.types import Kind
from windrow.kernels.functions.base import Whole

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call


def _compared(operation: Callable[[pl.Series, pl.Series], pl.Series]) -> Whole:
    """NULL in, NULL out; arrays and structs are not compared here."""

    def build(call: Call) -> Callable[..., pl.Series] | None:
        if any(arg.type.fields for arg in call.args):
            return None
        if any(arg.type.kind is Kind.NULL for arg in call.args):
            return lambda a, b: pl.Series([None], dtype=pl.Boolean).new_from_index(0, len(a))
        return operation

    return build


def _in(call: Call) -> Callable[..., pl.Series] | None:
    """Any comparison that holds; else NULL if one is unknown, else FALSE: an OR of three values."""
    if any(arg.type.fields or arg.type.kind is Kind.NULL for arg in call.args):
        return None

    def evaluate(value: pl.Series, *items: pl.Series) -> pl.Series:
        found = value == items[0]
        for item in items[1:]:
            found = found | (value == item)
        return found

    return evaluate


def _extremum(beats: Callable[[pl.Series, pl.Series], pl.Series]) -> Whole:
    def build(call: Call) -> Callable[..., pl.Series] | None:
        if call.type.fields or call.type.kind is Kind.NULL:
            return None

        def evaluate(best: pl.Series, *others: pl.Series) -> pl.Series:
            for other in others:
                better = (beats(other, best) | best.is_null()).fill_null(False)
                best = other.zip_with(better & other.is_not_null(), best)
            return best

        return evaluate

    return build


def _plain(function: Callable[..., pl.Series]) -> Whole:
    return lambda _: function


FUNCTIONS: dict[str, Whole] = {
    "=": _compared(lambda a, b: a == b),
    "<>": _compared(lambda a, b: a != b),
    "<": _compared(lambda a, b: a < b),
    "<=": _compared(lambda a, b: a <= b),
    ">": _compared(lambda a, b: a > b),
    ">=": _compared(lambda a, b: a >= b),
    "<=>": lambda call: (lambda a, b: a.eq_missing(b)) if not call.args[0].type.fields else None,
    "in": _in,
    "greatest": _extremum(lambda a, b: a > b),
    "least": _extremum(lambda a, b: a < b),
    "isnan": _plain(lambda a: a.is_nan().fill_null(False)),
    "is_null": _plain(lambda a: a.is_null()),
    "is_not_null": _plain(lambda a: a.is_not_null()),
    "not": _plain(lambda a: ~a.cast(pl.Boolean)),
}
