"""Rows of a table, from whatever holds them: tuples, dictionaries, frames and tables of all kinds.

>>> from windrow.language.compile import declare_table
>>> items = declare_table("items", "item BIGINT, name STRING")
>>> given_rows(items, [(1, "vase"), {"name": "lamp", "item": 2}])
[(1, 'vase'), (2, 'lamp')]
>>> given_rows(items, [{"itm": 3, "name": "rug"}])
Traceback (most recent call last):
windrow.errors.DataError: table `items` has no column `itm` (did you mean `item`?)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.algebra.values import canonical_rows
from windrow.errors import DataError, SourceError, nearest
from windrow.kernels.columnar.columns import frame_from_arrow, rows_of
from windrow.spark.sources.tables import as_table

if TYPE_CHECKING:
    from windrow.algebra.catalog import Table
    from windrow.spark.frames import DataFrame

Values = tuple[Any, ...]


def given_rows(table: Table, data: Any) -> list[Values]:
    """Rows that somebody gives: a list of tuples or dictionaries, or anything that is a table itself."""
    if data is None:
        return []
    if _is_spark(data):
        return _spark_rows(table, data)
    if isinstance(data, list | tuple):
        rows = [_in_order(table, row) if isinstance(row, Mapping) else row for row in data]
        return canonical_rows(table.schema, rows, table.title)
    return arrow_rows(table, as_table(data))


def arrow_rows(table: Table, data: pa.Table) -> list[Values]:
    """The rows of an Arrow table, whose columns are found by name."""
    from pyspark.sql.pandas.types import to_arrow_type

    from windrow.spark.sources.data import spark_schema
    from windrow.spark.sources.fit import check_types, match_names
    from windrow.spark.sources.spark_types import to_spark

    check_types(spark_schema(data.schema), table, "the data")
    names = match_names(table, data.column_names, "the data")
    kinds = [to_arrow_type(to_spark(field.type), timezone="UTC") for field in table.schema]
    columns = [data[names[field.name]].cast(kind) for field, kind in zip(table.schema, kinds, strict=True)]
    fitting = pa.table(columns, names=list(table.schema.names))
    return rows_of(frame_from_arrow(fitting, table.schema), table.schema)


def rows_to_change(table: Table, data: Any) -> list[Values]:
    """Rows to insert or delete: a column that the table does not have is refused, not left out."""
    names = data.columns if _is_spark(data) else getattr(data, "column_names", getattr(data, "columns", ()))
    known = {name.lower() for name in table.schema.names}
    for name in map(str, names):
        if name.lower() not in known:
            raise _no_column(table, name)
    return given_rows(table, data)


def _spark_rows(table: Table, frame: DataFrame) -> list[Values]:
    from windrow.spark.failures import job_failed
    from windrow.spark.sources.fit import fit

    if frame.isStreaming:
        raise SourceError(
            f"{table.title} cannot be read from a streaming frame: it has no content at any moment",
            code="bad-source",
            hint="declare a stream, or give a frame that is not streaming",
        )
    with job_failed(f"reading {table.title}"):
        return arrow_rows(table, fit(frame, table, where="the frame").toArrow())


def _is_spark(data: Any) -> bool:
    return type(data).__module__.startswith("pyspark.")


def _in_order(table: Table, row: Mapping[str, Any]) -> Iterable[Any]:
    given = {name.lower(): value for name, value in row.items()}
    known = [name.lower() for name in table.schema.names]
    strange = next((name for name in row if name.lower() not in known), None)
    if strange is not None:
        raise _no_column(table, strange)
    absent = next((name for name in table.schema.names if name.lower() not in given), None)
    if absent is not None:
        raise DataError(
            f"{table.title}: a row has no `{absent}`",
            code="missing-column",
            hint=f"give every column; `{absent}` may be None",
        )
    return tuple(given[name] for name in known)


def _no_column(table: Table, name: str) -> DataError:
    hint = nearest(name, table.schema.names) or "its columns are " + ", ".join(table.schema.names)
    return DataError(f"{table.title} has no column `{name}`", code="unknown-column", hint=hint)
