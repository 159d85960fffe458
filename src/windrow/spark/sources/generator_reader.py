"""Generators as Spark data sources: bounded ones as a batch, others in step with the clock on the wall.

An offset is the number of rows given so far. Rows are a function of their number, so a replayed range of
offsets gives the same rows. The rows of a second are due at its beginning, so that there is something to see
at once. A reader that begins at some offset, after a restart too, counts the rows due from there and from
then: the time in between is not made up for.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from windrow.spark.sources.generators.registry import GENERATORS
from windrow.spark.sources.generators.settings import Disorder, Settings

NAME = "windrow_generator"
_ROWS_PER_ARROW_BATCH = 1 << 16
#: fewer rows are not worth a task of their own
_ROWS_PER_TASK = 1 << 15


@dataclass(frozen=True)
class Request:
    """What a reader is to give; it travels to Spark's workers as one option, in JSON."""

    generator: str
    settings: Settings
    columns: tuple[str, ...]
    tasks: int
    rate: int | None = None
    rows_per_batch: int | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Request:
        values: dict[str, Any] = json.loads(text)
        settings = values.pop("settings")
        settings["disorder"] = Disorder(settings["disorder"])
        return cls(**{**values, "settings": Settings(**settings), "columns": tuple(values["columns"])})

    def split(self, first: int, last: int) -> list[InputPartition]:
        """The rows in equal parts, one for each task."""
        tasks = max(1, min(self.tasks, (last - first) // _ROWS_PER_TASK))
        cuts = [first + (last - first) * task // tasks for task in range(tasks + 1)]
        return [InputPartition(pair) for pair in pairwise(cuts) if pair[0] < pair[1]]

    def read(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        first, last = part.value
        for start in range(first, last, _ROWS_PER_ARROW_BATCH):
            end = min(start + _ROWS_PER_ARROW_BATCH, last)
            yield GENERATORS[self.generator].rows(self.settings, start, end, self.columns)


class GeneratorSource(DataSource):
    """What Spark knows as `windrow_generator`. Its schema is given by whoever reads it."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def reader(self, schema: StructType) -> DataSourceReader:
        return _BatchReader(self.options["request"])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader(self.options["request"])


class _BatchReader(DataSourceReader):
    def __init__(self, request: str) -> None:
        self._request = Request.from_json(request)

    def partitions(self) -> Sequence[InputPartition]:
        rows = self._request.settings.rows or 0
        return self._request.split(0, rows) or [InputPartition((0, 0))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._request.read(partition)


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, request: str) -> None:
        self._request = Request.from_json(request)
        self._began: tuple[float, int] | None = None
        self._is_once = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"row": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._request.rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """A run that takes what is there takes all rows of a stream that ends, else those of one second."""
        self._is_once = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        given, now = start["row"], time.monotonic()
        if self._began is None:
            self._began = now, given
        due = self._due(now)
        if isinstance(limit, ReadMaxRows):
            due = min(due, given + limit.max_rows)
        return {"row": max(due, given)}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"row": self._due(time.monotonic())}

    def _due(self, now: float) -> int:
        since, first = self._began or (now, 0)
        rate, rows = self._request.rate or 1, self._request.settings.rows
        if self._is_once and rows is not None:
            return rows
        due = first + rate if self._is_once else first + int((now - since + 1) * rate)
        return due if rows is None else min(due, rows)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return self._request.split(start["row"], end["row"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._request.read(partition)
