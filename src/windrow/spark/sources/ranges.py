"""Rows that Python tasks read: each part of a range is one task, and gives Arrow batches.

They come through a data source: a `mapInArrow` whose rows come from another one, in the same task, waits for
ever in Spark 4.3 if it reads all of them before it gives any.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from windrow.algebra.shipments import packed, unpacked
from windrow.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NAME = "windrow_parts"
#: the option that holds what to read; Spark shows no value of an option with `secret` in its name
_OPTION = "secret_parts"
#: begins the text of an error that a task sends to the driver
_MARK = "WINDROW_SOURCE_ERROR"
_TOLD = re.compile(_MARK + r" ([0-9a-f]+)")


@contextmanager
def told_to_driver(stream: str) -> Iterator[None]:
    """Errors of a source in a task reach the driver as what they are."""
    try:
        yield
    except SourceError as error:
        told = {"stream": stream, "code": error.code, "message": error.message, "hint": error.hint}
        raise RuntimeError(f"{_MARK} {json.dumps(told).encode().hex()}") from error


def told_by_task(text: str) -> SourceError | None:
    """The error of a source, out of what Spark says of a failed job."""
    found = _TOLD.search(text)
    if found is None:
        return None
    told = json.loads(bytes.fromhex(found[1]))
    error = SourceError(told["message"], code=told["code"], hint=told["hint"])
    error.stream = told["stream"]
    return error


class PartsSource(DataSource):
    """What Spark knows as `windrow_parts`. Its schema is given by whoever reads it."""

    @classmethod
    def name(cls) -> str:
        return _NAME

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(*unpacked(b64decode(self.options[_OPTION])))


class _Reader(DataSourceReader):
    def __init__(self, parts: Sequence[Any], read: Callable[[Any], Iterator[pa.RecordBatch]]) -> None:
        self._parts, self._read = parts, read

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(part) for part in self._parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value)


def frame_of_parts(
    spark: SparkSession,
    parts: Sequence[Any],
    read: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """The rows of all parts, each read by a task of its own."""
    spark.dataSource.register(PartsSource)
    asked = b64encode(packed((tuple(parts), read))).decode()
    return spark.read.format(_NAME).schema(schema).option(_OPTION, asked).load()
