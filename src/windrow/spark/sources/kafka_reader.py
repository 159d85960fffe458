"""Kafka as a Spark data source: an offset is one number for each partition, a partition is one task.

Spark keeps the offsets in its checkpoint; nothing is committed to Kafka. A range of offsets always gives the
same rows, or an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from windrow.spark.sources.kafka_client import Topic
from windrow.spark.sources.kafka_offsets import Offsets, check_still_there, limited
from windrow.spark.sources.kafka_url import KafkaUrl

NAME = "windrow_kafka"
#: the option that holds the URL; Spark shows no value of an option with `secret` in its name
OPTION = "secret_url"
VALUE, PARTITION, OFFSET = "__value", "__partition", "__offset"
SCHEMA = f"{VALUE} binary, {PARTITION} int, {OFFSET} bigint"
_ARROW = pa.schema([(VALUE, pa.binary()), (PARTITION, pa.int32()), (OFFSET, pa.int64())])


class KafkaSource(DataSource):
    """What Spark knows as `windrow_kafka`."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _StreamReader(self.options[OPTION])


def as_option(url: KafkaUrl) -> str:
    """The URL as the text of an option."""
    return json.dumps(asdict(url))


class _StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, option: str) -> None:
        self._url = KafkaUrl(**json.loads(option))
        self._target: Offsets | None = None
        #: where the topic ended when it was last asked
        self._last: Offsets | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        with Topic(self._url) as topic:
            first, last = topic.bounds()
        return _to_spark(first if self._url.starting == "earliest" else last)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._url.rows_per_batch
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        with Topic(self._url) as topic:
            _, self._target = topic.bounds()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        begun = _from_spark(start)
        with Topic(self._url) as topic:
            first, last = topic.bounds()
        check_still_there(begun, first, last, self._url.place)
        self._last = last
        if self._target is not None:
            last = {
                partition: max(offset, begun.get(partition, 0)) for partition, offset in self._target.items()
            }
        if isinstance(limit, ReadMaxRows):
            last = limited(begun, last, limit.max_rows)
        return _to_spark(last)

    def reportLatestOffset(self) -> dict[str, int] | None:  # noqa: N802
        return None if self._last is None else _to_spark(self._last)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        begun, last = _from_spark(start), _from_spark(end)
        ranges = [(partition, begun.get(partition, 0), offset) for partition, offset in last.items()]
        return [InputPartition(part) for part in ranges if part[1] < part[2]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        number, first, last = partition.value
        with Topic(self._url) as topic:
            for portion in topic.messages(number, first, last):
                yield _as_batch(number, portion)


def _as_batch(partition: int, messages: list[tuple[int, bytes | None]]) -> pa.RecordBatch:
    columns = [
        [value for _, value in messages],
        [partition] * len(messages),
        [offset for offset, _ in messages],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)


def _to_spark(offsets: Offsets) -> dict[str, int]:
    return {str(partition): offset for partition, offset in offsets.items()}


def _from_spark(offsets: dict[str, int]) -> Offsets:
    return {int(partition): offset for partition, offset in offsets.items()}
