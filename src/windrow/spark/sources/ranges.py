"""Rows that Python tasks read: each part of a range is one task, and gives Arrow batches."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.errors import SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class SourceTaskError(RuntimeError):
    """The error of a source, on its way from a task to the driver."""


#: how a traceback names it
_TOLD = re.compile(rf"{re.escape(SourceTaskError.__module__)}\.{SourceTaskError.__name__}: ([0-9a-f]+)")


@contextmanager
def told_to_driver(stream: str) -> Iterator[None]:
    """Errors of a source in a task reach the driver as what they are."""
    try:
        yield
    except SourceError as error:
        told = {"stream": stream, "code": error.code, "message": error.message, "hint": error.hint}
        raise SourceTaskError(json.dumps(told).encode().hex()) from None  # so that it is named first


def told_by_task(raised: str) -> SourceError | None:
    """The error of a source, out of the line of a traceback that says what a task has raised."""
    found = _TOLD.fullmatch(raised)
    if found is None:
        return None
    told = json.loads(bytes.fromhex(found[1]))
    error = SourceError(told["message"], code=told["code"], hint=told["hint"])
    error.stream = told["stream"]
    return error


def _read_parts(
    parts: Sequence[Any],
    read: Callable[[Any], Iterator[pa.RecordBatch]],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            yield from read(parts[number])


def frame_of_parts(
    spark: SparkSession,
    parts: Sequence[Any],
    read: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """The rows of all parts, each read by a task of its own."""
    numbers = spark.range(0, len(parts), 1, max(1, len(parts)))
    return numbers.mapInArrow(partial(_read_parts, tuple(parts), read), schema)
