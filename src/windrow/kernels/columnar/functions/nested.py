"""Parts of structs and arrays, a column at a time; lookups in maps and all of JSON are computed by values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import Literal
from windrow.kernels.columnar.functions.base import Operation, Outcome, Strict

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call


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


FUNCTIONS: dict[str, Strict] = {"get_field": _get_field, "get": _get, "size": _size}
