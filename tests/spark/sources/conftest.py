"""Streams to be opened, and what is read from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from windrow.algebra.catalog import Stream
from windrow.algebra.schema import Field, Schema
from windrow.algebra.types import parse_type

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
def drain(tmp_path: Path) -> Drain:
    """The micro-batches of what a streaming frame has now; the next call goes on where the last one ended."""

    def drained(frame: DataFrame) -> list[pa.Table]:
        batches: list[pa.Table] = []
        query = (
            frame.writeStream.foreachBatch(lambda batch, _: batches.append(batch.toArrow()))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [batch for batch in batches if batch.num_rows]

    return drained
