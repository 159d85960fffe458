"""Which rows an archive takes: the right columns, a key that can be ordered, an expiry that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.archive.piece import instants
from windrow.errors import DataError, QueryError, nearest

if TYPE_CHECKING:
    from windrow.archive.declaration import Declaration

_ORDERED = (
    pa.types.is_integer,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_boolean,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
)


def check_schema(schema: pa.Schema, declaration: Declaration) -> pa.Schema:
    """The schema of the files: that of the rows, and the expiry, if they do not have it themselves."""
    key = declaration.key
    if key not in schema.names:
        raise QueryError(f"no column `{key}`", code="unknown-column", hint=nearest(key, schema.names))
    kind = schema.field(key).type
    if not any(fits(kind) for fits in _ORDERED):
        hint = "choose a column of whole numbers, decimals, text, dates or times"
        raise QueryError(f"`{key}` is {kind}, which is no good key", code="key", hint=hint)
    if declaration.expires not in schema.names:
        schema = schema.append(pa.field(declaration.expires, pa.int64()))
    expires = schema.field(declaration.expires).type
    if not (pa.types.is_int64(expires) or pa.types.is_timestamp(expires)):
        hint = "an expiry is a BIGINT or a TIMESTAMP"
        raise QueryError(f"`{declaration.expires}` is {expires}", code="expiry", hint=hint)
    return schema.remove_metadata()


def accepted(
    rows: pa.Table | None,
    schema: pa.Schema,
    declaration: Declaration,
    now: int,
    latest: int | None = None,
) -> pa.Table:
    """The rows as they are stored: nothing that has expired, and nothing that stays longer than agreed."""
    if rows is None or not rows.num_rows:
        return schema.empty_table()
    name = declaration.expires
    last = now + declaration.keep if latest is None else latest
    if name not in rows.column_names:
        ends = pa.array(np.full(rows.num_rows, last), pa.int64())
        rows = rows.append_column(name, ends.cast(schema.field(name).type))
    if rows[name].null_count:
        hint = "every row has to say until when it is valid; leave the column out to keep all alike"
        raise DataError(f"`{name}` is NULL in {rows[name].null_count} rows", code="expiry", hint=hint)
    try:
        rows = rows.select(schema.names).cast(schema)
    except (KeyError, ValueError, pa.ArrowInvalid) as error:
        hint = "columns of this archive: " + ", ".join(f"`{each}`" for each in schema.names)
        raise DataError(f"these rows do not fit the archive: {error}", code="schema", hint=hint) from error
    ends = instants(rows[name])
    if (ends > last).any():
        clipped = pa.array(np.minimum(ends, last), pa.int64()).cast(schema.field(name).type)
        rows = rows.set_column(schema.get_field_index(name), schema.field(name), clipped)
    return rows.filter(pa.array(ends > now))
