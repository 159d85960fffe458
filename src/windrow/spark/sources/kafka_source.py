"""`kafka://…`: a topic as a source. A position is one offset for each partition; each partition is a task.

Offsets are in the manifest, and nothing is committed to Kafka. A range of offsets always gives the same rows,
or an error. Brokers that do not answer are away, and asked again; only offsets that the topic does not have
any more are lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from windrow.algebra.catalog import Stream
from windrow.execution.malformed_rows import MALFORMED
from windrow.spark.sources.fit import check_order_names
from windrow.spark.sources.kafka_client import Topic
from windrow.spark.sources.kafka_offsets import check_still_there, limited
from windrow.spark.sources.parsers import TextFormat, check_flat, parse
from windrow.spark.sources.ranges import frame_of_parts, told_to_driver
from windrow.spark.sources.source import Begun, Offsets, Position, Source
from windrow.spark.sources.urls import KafkaUrl, read_kafka_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from windrow.algebra.catalog import Table
    from windrow.spark.sources.kafka_offsets import Bounds
    from windrow.spark.sources.urls import SourceUrl

VALUE, PARTITION, OFFSET = "__value", "__partition", "__offset"
SCHEMA = f"{VALUE} binary, {PARTITION} int, {OFFSET} bigint"
_ARROW = pa.schema([(VALUE, pa.binary()), (PARTITION, pa.int32()), (OFFSET, pa.int64())])
#: the partitions of a position; whatever else it holds has another name
_PARTITIONS = "partitions"


def open_kafka(spark: SparkSession, stream: Stream, url: SourceUrl) -> KafkaSource:
    """The messages of a topic. That brokers do not answer or have no such topic is found out here."""
    return KafkaSource(spark, stream, read_kafka_url(url).resolved())


@dataclass(frozen=True)
class ReadMessages:
    """Reads the messages of a partition in a task, from one offset up to another."""

    stream: str
    url: KafkaUrl

    def __call__(self, part: tuple[int, int, int]) -> Iterator[pa.RecordBatch]:
        number, first, last = part
        with told_to_driver(self.stream), Topic(self.url) as topic:
            for portion in topic.messages(number, first, last):
                yield _as_batch(number, portion)


class KafkaSource(Source):
    """A topic, asked by one connection for how far it is, and read by tasks."""

    is_slow = True
    order_key = (PARTITION, OFFSET)

    def __init__(
        self, spark: SparkSession, stream: Stream | Table, wanted: KafkaUrl, *, skips_empty: bool = False
    ) -> None:
        self._spark, self._stream, self._wanted = spark, stream, wanted
        #: whether messages without a value mean nothing, as those that compaction goes by
        self._skips_empty = skips_empty
        self.hands_on_malformed = wanted.malformed != "fail" and isinstance(stream, Stream)
        check_order_names(stream, [*self.order_key, *([MALFORMED] if self.hands_on_malformed else ())])
        if wanted.format == "csv":
            check_flat(stream, "a csv message")
        self._topic: Topic | None = None
        #: where a topic is read from that was never read before
        self._first: dict[int, int] | None = None
        with Topic(wanted) as topic:
            cluster, _ = topic.describe()
            self.fingerprint = _fingerprint(wanted, cluster, topic.id())

    def describe(self) -> str:
        return self._wanted.place

    def begin(self, begun: Begun) -> None:
        self._first = None

    def end(self) -> None:
        if self._topic is not None:
            self._topic.close()
            self._topic = None

    def latest(self) -> Bounds:
        """The first and last offsets of all partitions."""
        if self._topic is None:
            self._topic = Topic(self._wanted)
        return self._topic.bounds()

    def upto(self, start: Position, latest: Bounds) -> Offsets | None:
        first, last = latest
        is_new = _PARTITIONS not in start and self._wanted.starting == "latest" and self._first is None
        begun = self._begun(start, latest)
        if is_new:  # a commit fixes where it begins, before there is a row
            return Offsets(_position(begun))
        check_still_there(begun, first, last, self._wanted.place)
        most = self._wanted.rows_per_batch
        taken = last if most is None else limited(begun, last, most)
        if taken == begun:
            return None
        backlog = sum(last.values()) - sum(taken.values())
        return Offsets(_position(taken), backlog=backlog, has_more=backlog > 0)

    def _begun(self, start: Position, latest: Bounds) -> dict[int, int]:
        """Where the next rows are. Partitions that come later are read from their beginning."""
        stored = start.get(_PARTITIONS)
        if stored is not None:
            return {int(number): offset for number, offset in stored.items()}
        if self._first is None:
            self._first = dict(latest[0] if self._wanted.starting == "earliest" else latest[1])
        return self._first

    def frame(self, start: Position, end: Offsets) -> DataFrame:
        parts = self._parts(start, end)
        messages = frame_of_parts(self._spark, parts, ReadMessages(self._stream.name, self._wanted), SCHEMA)
        if self._skips_empty:
            messages = messages.filter(F.col(VALUE).isNotNull())
        wanted = self._wanted
        how = TextFormat(wanted.format, wanted.malformed, wanted.delimiter, self.hands_on_malformed)
        order = [F.col(name) for name in self.order_key]
        topic = F.lit(f"topic `{self._wanted.topic}`, partition ")
        place = F.concat(topic, order[0], F.lit(", offset "), order[1])
        return parse(messages, F.col(VALUE).cast("string"), how, self._stream, order=order, place=place)

    def half(self, start: Position, end: Offsets) -> Offsets | None:
        """Partition by partition, so that at last one message is left."""
        parts, taken = self._parts(start, end), dict(self._begun(start, ({}, {})))
        left = sum(last - first for _, first, last in parts) // 2
        if not left:
            return None
        for number, first, last in parts:
            taken[number] = first + min(last - first, left)
            left -= taken[number] - first
        return Offsets(_position(taken), has_more=True)

    def piece(self, start: Position, end: Offsets) -> str:
        return " and ".join(
            f"partition {number}, offset {first}" for number, first, _ in self._parts(start, end)
        )

    def _parts(self, start: Position, end: Offsets) -> list[tuple[int, int, int]]:
        begun = self._begun(start, ({}, {}))
        ranges = [(int(n), begun.get(int(n), 0), last) for n, last in end.at[_PARTITIONS].items()]
        return [part for part in ranges if part[1] < part[2]]


def _position(offsets: dict[int, int]) -> Position:
    return {_PARTITIONS: {str(number): offset for number, offset in offsets.items()}}


def _fingerprint(wanted: KafkaUrl, cluster: str | None, topic: str | None) -> str:
    """A cluster stays the same under other addresses of its brokers, and knows its own name; a topic that is
    deleted and made anew is another."""
    csv = f" delimiter={wanted.delimiter!r}" if wanted.format == "csv" else ""
    known = f" id={topic}" if topic else ""
    return f"kafka:{cluster or wanted.servers}/{wanted.topic}{known} {wanted.format}{csv}"


def _as_batch(partition: int, messages: list[tuple[int, bytes | None]]) -> pa.RecordBatch:
    columns: list[Any] = [
        [value for _, value in messages],
        [partition] * len(messages),
        [offset for offset, _ in messages],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ARROW, strict=True)]
    return pa.record_batch(arrays, schema=_ARROW)
