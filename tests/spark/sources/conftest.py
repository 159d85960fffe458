"""Streams to be opened, and what is read from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import Field, Schema
from windrow.algebra.types import parse_type
from windrow.execution.bundle import Few
from windrow.execution.malformed_rows import MALFORMED
from windrow.spark.sources.source import Begun, Position, Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Declare = Callable[..., Stream]
Drain = Callable[..., "list[pa.Table]"]


@pytest.fixture(scope="session")
def declare() -> Declare:
    """A stream `s` with these columns, on `ts`."""

    def declared(columns: str, source: str | None = None) -> Stream:
        pairs = [column.split() for column in columns.split(", ")]
        return Stream(
            "s", Schema(tuple(Field(name, parse_type(kind)) for name, kind in pairs)), "ts", source=source
        )

    return declared


@pytest.fixture
def drain() -> Drain:
    """What a source has now, a table for each epoch; the next call goes on where the last one ended."""
    positions: dict[int, Position] = {}

    def drained(source: Source) -> list[pa.Table]:
        position = positions.get(id(source))
        if position is None:
            position = {}
            source.begin(Begun("s", position))
        latest, tables = source.whole(), []
        while (end := source.upto(position, latest)) is not None:
            tables.append(on_spark(source.frame(position, end)).toArrow())
            source.keys(end)
            source.committed(end, 0)
            position = end.at
        positions[id(source)] = position
        return [table for table in tables if table.num_rows]

    return drained


def on_spark(rows: Any) -> Any:
    """Rows as Spark reads them, but for malformed ones; if they can be had without it, they are the same."""
    if not isinstance(rows, Few):
        return rows.where(f"`{MALFORMED}` IS NULL").drop(MALFORMED) if MALFORMED in rows.columns else rows
    frame, table = on_spark(rows.frame()), rows.table()
    if table is not None:
        same = frame.toArrow()
        names = [name for name in same.column_names if not name.startswith("__")]
        assert table.select(names).equals(same.select(names).cast(table.select(names).schema))
        assert rows.rows == table.num_rows
    return frame


def all_rows(source: Source) -> DataFrame:
    """The rows of the first epoch."""
    end = source.upto({}, source.whole())
    assert end is not None
    frame: DataFrame = on_spark(source.frame({}, end))
    return frame
