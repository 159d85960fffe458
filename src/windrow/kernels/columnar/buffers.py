"""Buffers of Arrow tables: what Polars hands on is put so that all libraries read the same in it."""

from __future__ import annotations

import pyarrow as pa


def within_buffers(table: pa.Table) -> pa.Table:
    """A table that other libraries take for what it is.

    Where all lists are empty, Polars may say that their elements begin behind the end of a buffer. Arrow
    writes such a table so that it reads other values, or none, out of it.
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            column = table.column(place)
            if any(map(_begins_outside, column.chunks)):
                everything = pa.chunked_array([pa.repeat(True, len(chunk)) for chunk in column.chunks])
                table = table.set_column(place, field, column.filter(everything))
    return table


def _begins_outside(array: pa.Array) -> bool:
    """Whether a part of an array is empty, and does not begin where its buffers do."""
    if array.offset and not len(array):
        return True
    if pa.types.is_struct(array.type):
        return any(_begins_outside(array.field(place)) for place in range(array.type.num_fields))
    return pa.types.is_nested(array.type) and _begins_outside(array.values)
