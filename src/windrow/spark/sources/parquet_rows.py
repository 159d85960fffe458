"""Few rows of a Parquet file, read without Spark: where nothing about the file needs it.

What is read here is what Spark would read. So columns are taken only if their types are the declared ones, or
hold fewer values of the same kind; anything else is left to Spark, which reads it or says why not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_a

if TYPE_CHECKING:
    from collections.abc import Sequence

_UTC = ("UTC", "Etc/UTC", "+00:00", None)


def parquet_rows(path: str, names: Sequence[str], declared: pa.Schema) -> pa.Table | None:
    """The rows of a file as declared, whose columns have these names there; None if that is not for us."""
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        if len(set(map(str.lower, schema.names))) < len(schema.names) or not set(names) <= set(schema.names):
            return None
        kinds = [schema.field(name).type for name in names]
        if not all(map(is_same, kinds, declared.types)):
            return None
        table = file.read(columns=list(names)).select(list(names))
    table.validate(full=True)  # text that is no UTF-8 is told by Spark
    return table.rename_columns(declared.names).cast(declared)


def is_same(given: pa.DataType, declared: pa.DataType) -> bool:
    """Whether all values of a type are the same values of the declared one.

    >>> is_same(pa.int32(), pa.int64()), is_same(pa.int64(), pa.int32()), is_same(pa.int64(), pa.float64())
    (True, False, False)
    """
    if given == declared:
        return True
    if is_a.is_timestamp(given) and is_a.is_timestamp(declared):
        return given.unit in ("us", "ms") and given.tz in _UTC
    if is_a.is_signed_integer(given) and is_a.is_signed_integer(declared):
        return bool(given.bit_width < declared.bit_width)
    if is_a.is_large_string(given) or is_a.is_large_binary(given):
        return is_same(pa.string() if is_a.is_large_string(given) else pa.binary(), declared)
    return bool(is_a.is_float32(given) and is_a.is_float64(declared))


def numbered(tables: Sequence[pa.Table], order: Sequence[str]) -> pa.Table:
    """The rows of several files, in the order of the files; `order` are columns to tell it by.

    >>> some = [pa.table({"a": [7, 8]}), pa.table({"a": [9]})]
    >>> numbered(some, ["file", "row"]).to_pydict()
    {'a': [7, 8, 9], 'file': [0, 0, 1], 'row': [0, 1, 0]}
    """
    whole = pa.concat_tables(tables)
    counts = [table.num_rows for table in tables]
    files = pa.array(np.repeat(np.arange(len(tables), dtype=np.int64), counts))
    rows = pa.array(np.concatenate([np.arange(count, dtype=np.int64) for count in counts]))
    for name in order:
        whole = whole.append_column(name, rows if name == order[-1] else files)
    return whole
