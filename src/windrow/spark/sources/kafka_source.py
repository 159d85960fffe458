"""`kafka://…`: a topic as a source. A position is one offset for each partition; each partition is a task.

Offsets are in the manifest, and nothing is committed to Kafka. A range of offsets always gives the same rows,
or an error. Brokers that do not answer are away, and asked again; only offsets that the topic does not have
any more are lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as F

from windrow.algebra.catalog import Stream, Table
from windrow.credentials import ScrubbedLog
from windrow.errors import SourceError, to_install
from windrow.spark.sources import fit, parsers, urls
from windrow.spark.sources.source import Begun, Offsets, Position, Source, frame_of_parts, told_to_driver

PartitionOffsets = dict[int, int]
#: the first offsets that are still there, and those after the last
Bounds = tuple[PartitionOffsets, PartitionOffsets]


def check_still_there(
    start: PartitionOffsets, first: PartitionOffsets, last: PartitionOffsets, place: str
) -> None:
    """Refuse to go on if rows after `start` are gone, or if the topic is not the one that was read before."""
    for partition, offset in start.items():
        if partition not in last or offset > last[partition]:
            raise SourceError(
                f"`{place}` ends before row {offset} of partition {partition}, which was read already: the"
                " topic was deleted and made anew, or cut",
                code="lost-rows",
                hint="start afresh with a new state directory",
            )
    for partition, offset in first.items():
        wanted = start.get(partition, 0)
        if wanted < offset:
            raise SourceError(
                f"rows {wanted} to {offset - 1} of partition {partition} of `{place}` are gone"
                " before they were read: they are past the topic's retention",
                code="lost-rows",
                hint="give the topic a longer retention, or start with a new state directory",
            )


def limited(start: PartitionOffsets, last: PartitionOffsets, most: int) -> PartitionOffsets:
    """An end at or before `last` with about `most` rows up to it, from every partition in proportion.

    >>> limited({0: 0, 1: 5}, {0: 90, 1: 15}, 10)
    {0: 9, 1: 6}
    """
    waiting = {partition: offset - start.get(partition, 0) for partition, offset in last.items()}
    total = sum(waiting.values())
    if total <= most:
        return last
    taken = {partition: min(rows, max(1, most * rows // total)) for partition, rows in waiting.items()}
    return {partition: start.get(partition, 0) + rows for partition, rows in taken.items()}


# ------------------------------------------------------------ kafka source


VALUE, PARTITION, OFFSET = "__value", "__partition", "__offset"
SCHEMA = f"{VALUE} binary, {PARTITION} int, {OFFSET} bigint"
_ARROW = pa.schema([(VALUE, pa.binary()), (PARTITION, pa.int32()), (OFFSET, pa.int64())])
#: what an epoch takes of a stream, unless it is told
_ROWS_PER_BATCH = 1_000_000
#: seconds between two questions whether a topic is still the same one, where there is nothing to commit; how
#: long an answer is waited for, and after how many seconds brokers that gave none are asked again
_ASK_EVERY, _ID_WAIT, _ASK_LATER = 5.0, 1.0, 60.0
#: the partitions of a position; whatever else it holds has another name
_PARTITIONS = "partitions"


@dataclass(frozen=True)
class ReadMessages:
    """Reads the messages of a partition in a task, from one offset up to another."""

    stream: str
    url: urls.KafkaUrl

    def __call__(self, part: tuple[int, int, int]) -> Iterator[pa.RecordBatch]:
        number, first, last = part
        with told_to_driver(self.stream), Topic(self.url) as topic:
            for portion in topic.messages(number, first, last):
                offsets, values = [offset for offset, _ in portion], [value for _, value in portion]
                yield pa.record_batch([values, [number] * len(portion), offsets], schema=_ARROW)


class KafkaSource(Source):
    """A topic, asked by one connection for how far it is, and read by tasks."""

    is_slow = True
    order_key = (PARTITION, OFFSET)

    def __init__(self, spark: SparkSession, stream: Stream | Table, wanted: urls.KafkaUrl) -> None:
        self._spark, self._stream, self._wanted = spark, stream, wanted
        self.hands_on_malformed = parsers.hands_on(stream, wanted.malformed)
        fit.check_order_names(stream, self.order_key)
        if wanted.format == "csv":
            parsers.check_flat(stream, "a csv message")
        self._topic: Topic | None = None
        #: where a topic is read from that was never read before
        self._first: PartitionOffsets | None = None
        #: what was found at the last look, and when to ask which topic it is
        self._bounds: Bounds = {}, {}
        self._ask_at = self._ask_again = 0.0
        with Topic(wanted) as topic:
            cluster, _ = topic.describe()
            self._id = topic.id()
        # A cluster stays the same under other addresses of its brokers, and knows its own name. A topic that
        # is deleted and made anew is another: between the two parts its id has its place.
        csv = f" delimiter={wanted.delimiter!r}" if wanted.format == "csv" else ""
        self._parts_of_name = f"kafka:{cluster or wanted.servers}/{wanted.topic}", f" {wanted.format}{csv}"
        self.fingerprint = (f" id={self._id}" if self._id else "").join(self._parts_of_name)

    def describe(self) -> str:
        return self._wanted.place

    def continues(self, before: str) -> bool:
        """A broker that does not tell the topic's id, now or before, tells nothing against it either; an id
        that was told once stays."""
        head, tail = self._parts_of_name
        if self._id is None and before.startswith(f"{head} id=") and before.endswith(tail):
            self.fingerprint = before
        return before in ("", head + tail, self.fingerprint)

    def begin(self, begun: Begun) -> None:
        self._first, self._bounds = None, ({}, {})
        self._ask_at = self._ask_again = 0.0

    def end(self) -> None:
        if self._topic is not None:
            self._topic.close()
            self._topic = None

    def latest(self) -> Bounds:
        """The first and last offsets of all partitions."""
        found = self._connected().bounds()
        before, self._bounds = self._bounds, found
        if _went_back(before, found) or time.monotonic() >= self._ask_at:
            self._check_id()
        return found

    def _connected(self) -> Topic:
        if self._topic is None:
            self._topic = Topic(self._wanted)
        return self._topic

    def check(self, end: Offsets) -> bool:
        """Whether rows are of the topic that they should be of: of another one that has as many, too."""
        self._check_id()
        return True

    def _check_id(self) -> None:
        """Refuse a topic that was made anew under the name. Brokers that tell no id are not asked; that
        they do not answer now says nothing of the topic, and they are asked again later."""
        now = time.monotonic()
        if self._id is None or now < self._ask_again:
            return
        found, self._ask_at = self._connected().id(_ID_WAIT), now + _ASK_EVERY
        if found is None:
            self._ask_at = self._ask_again = now + _ASK_LATER
        elif found != self._id:
            raise SourceError(
                f"`{self._wanted.place}` is another topic than the one that was read: that was deleted, and"
                " one of its name made anew",
                code="source-changed",
                hint="start afresh with a new state directory",
            )

    def upto(self, start: Position, latest: Bounds) -> Offsets | None:
        first, last = latest
        is_new = _PARTITIONS not in start and self._wanted.starting == "latest" and self._first is None
        begun = self._begun(start, latest)
        if is_new:  # a commit fixes where it begins, before there is a row
            return Offsets(_position(begun))
        check_still_there(begun, first, last, self._wanted.place)
        # the changes of a table are taken together
        most = self._wanted.rows_per_batch or (_ROWS_PER_BATCH if isinstance(self._stream, Stream) else None)
        taken = last if most is None else limited(begun, last, most)
        if taken == begun:
            return None
        backlog = sum(last.values()) - sum(taken.values())
        return Offsets(_position(taken), backlog=backlog, has_more=backlog > 0)

    def _begun(self, start: Position, latest: Bounds) -> PartitionOffsets:
        """Where the next rows are. Partitions that come later are read from their beginning."""
        stored = start.get(_PARTITIONS)
        if stored is not None:
            return {int(number): offset for number, offset in stored.items()}
        if self._first is None:
            self._first = dict(latest[0] if self._wanted.starting == "earliest" else latest[1])
        return self._first

    def frame(self, start: Position, end: Offsets) -> DataFrame:
        parts, wanted = self._parts(start, end), self._wanted
        messages = frame_of_parts(self._spark, parts, ReadMessages(self._stream.name, wanted), SCHEMA)
        if isinstance(self._stream, Table):  # those that compaction goes by have no value and mean nothing
            messages = messages.filter(F.col(VALUE).isNotNull())
        how = parsers.TextFormat(wanted.format, wanted.malformed, wanted.delimiter)
        order = [F.col(name) for name in self.order_key]
        topic = F.lit(f"topic `{wanted.topic}`, partition ")
        place = F.concat(topic, order[0], F.lit(", offset "), order[1])
        return parsers.parse(
            messages, F.col(VALUE).cast("string"), how, self._stream, order=order, place=place
        )

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
        parts = self._parts(start, end)
        return " and ".join(f"partition {number}, offset {first}" for number, first, _ in parts)

    def _parts(self, start: Position, end: Offsets) -> list[tuple[int, int, int]]:
        begun = self._begun(start, ({}, {}))
        ranges = [(int(n), begun.get(int(n), 0), last) for n, last in end.at[_PARTITIONS].items()]
        return [part for part in ranges if part[1] < part[2]]


def _went_back(before: Bounds, now: Bounds) -> bool:
    """Whether a partition has ended, or begun, earlier than it did, or is gone."""
    return any(
        number not in new or new[number] < offset
        for old, new in zip(before, now, strict=True)
        for number, offset in old.items()
    )


def _position(offsets: PartitionOffsets) -> Position:
    return {_PARTITIONS: {str(number): offset for number, offset in offsets.items()}}


# ------------------------------------------------------------ client
#
# A Kafka topic as offsets and messages, through confluent-kafka, which is imported only when used. Every wait
# has an end, and every failure becomes a SourceError that says what to look at.


_MESSAGES_AT_ONCE = 10_000
_WAIT = 0.2  # seconds; a shorter wait than a slow broker needs is only one more round

#: the code of errors that pass when whoever did not answer answers again
AWAY = "kafka"


def _confluent() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise SourceError(
            "reading from Kafka needs the package confluent-kafka, which is not installed",
            code="missing-package",
            hint=to_install("kafka"),
        ) from None
    return confluent_kafka


class _TopicLog(ScrubbedLog):
    """The library's log, each line once: it says with every try why brokers do not answer."""

    def __init__(self, scrubbed: Callable[[str], str]) -> None:
        super().__init__(scrubbed)
        self._said: deque[str] = deque(maxlen=100)

    def log(self, level: int, message: str, *values: Any) -> None:
        text = message % values if values else message
        if text not in self._said:
            self._said.append(text)
            super().log(level, "%s", text)


class Topic:
    """A topic, connected to. Use it in a `with` statement, which disconnects."""

    def __init__(self, url: urls.KafkaUrl) -> None:
        self._url = url
        self._kafka = _confluent()
        self._has_controller = True
        #: asks for the topic's id; a new one would take a hundred times as long as an answer
        self._admin: Any = None
        errors = self._kafka.KafkaError
        #: what brokers say of a topic that there is not, or not for us; all else passes
        unknown = (errors.UNKNOWN_TOPIC_OR_PART, errors._UNKNOWN_TOPIC)
        self._of_topics = (*unknown, errors.TOPIC_EXCEPTION, errors.TOPIC_AUTHORIZATION_FAILED)
        settings: dict[str, Any] = {
            "group.id": "windrow",  # asked for by the client; offsets are never committed to it
            **url.client,
            "bootstrap.servers": url.servers,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",  # rows that are gone are an error, never skipped
            "isolation.level": "read_committed",
            "allow.auto.create.topics": False,
        }
        try:
            self._consumer = self._kafka.Consumer(settings, logger=_TopicLog(url.scrubbed))
        except (self._kafka.KafkaException, TypeError, ValueError) as error:
            raise SourceError(
                f"`{url.place}`: {url.scrubbed(_text(error))}",
                code="bad-option",
                hint="check the options that begin with `kafka.`",
            ) from None

    def __enter__(self) -> Topic:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect."""
        self._admin = None
        self._consumer.close()

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        try:
            yield
        except self._kafka.KafkaException as error:
            raise SourceError(
                f"no answer from `{self._url.place}` within {self._url.timeout_seconds:g} seconds:"
                f" {self._url.scrubbed(_text(error))}",
                code=AWAY,
                hint="check that the brokers run and can be reached from here, and their security settings",
            ) from None

    def describe(self) -> tuple[str | None, list[int]]:
        """The cluster's own name, and the numbers of the topic's partitions."""
        with self._clear_errors():
            metadata = self._consumer.list_topics(self._url.topic, timeout=self._url.timeout_seconds)
        self._has_controller = metadata.controller_id in metadata.brokers
        found = metadata.topics[self._url.topic]
        if found.error is not None or not found.partitions:
            reason = "it has no partitions" if found.error is None else self._url.scrubbed(found.error.str())
            if found.error is not None and found.error.code() not in self._of_topics:
                raise SourceError(
                    f"`{self._url.place}` cannot be read for now: {reason}",
                    code=AWAY,
                    hint="check that the brokers run, and that the topic has a leader",
                )
            raise SourceError(
                f"there is no topic `{self._url.topic}` at `{self._url.servers}`: {reason}",
                code="no-topic",
                hint="check its name, or create it",
            )
        return metadata.cluster_id, sorted(found.partitions)

    def bounds(self) -> Bounds:
        """For each partition the first offset that is still there, and the one after the last."""
        _, partitions = self.describe()
        first: PartitionOffsets = {}
        last: PartitionOffsets = {}
        for partition in partitions:
            place = self._kafka.TopicPartition(self._url.topic, partition)
            with self._clear_errors():
                found = self._consumer.get_watermark_offsets(place, timeout=self._url.timeout_seconds)
            first[partition], last[partition] = found
        return first, last

    def messages(self, partition: int, first: int, last: int) -> Iterator[list[tuple[int, bytes | None]]]:
        """Offsets and values of a partition's messages from `first` up to, not including, `last`.

        Not every offset has a message: transactions and compaction leave gaps.
        """
        self._consumer.assign([self._kafka.TopicPartition(self._url.topic, partition, first)])
        position, heard = first, time.monotonic()
        while position < last:
            most = min(last - position, _MESSAGES_AT_ONCE)
            events = self._consumer.consume(most, timeout=_WAIT)
            for event in events:
                self._check(event, partition, position, last)
            if events:
                # a message is at its offset; the end of a partition is at the offset of what comes next
                after = (event.offset() + (0 if event.error() else 1) for event in events)
                position, heard = max(position, *after), time.monotonic()
            elif time.monotonic() - heard > self._url.timeout_seconds:
                raise self._away(partition, position, last, "no more messages come")
            found = [event for event in events if not event.error() and event.offset() < last]
            yield [(event.offset(), event.value()) for event in found]

    def _check(self, event: Any, partition: int, position: int, last: int) -> None:
        error, errors = event.error(), self._kafka.KafkaError
        if error is None or error.code() == errors._PARTITION_EOF:
            return
        reason = self._url.scrubbed(error.str())
        if error.code() not in (errors.OFFSET_OUT_OF_RANGE, errors._AUTO_OFFSET_RESET):
            raise self._away(partition, position, last, reason)
        raise SourceError(
            f"rows {position} to {last - 1} of partition {partition} of `{self._url.place}` cannot be read:"
            f" {reason}",
            code="lost-rows",
            hint="if they are past the topic's retention they are gone: start with a new state directory",
        )

    def _away(self, partition: int, position: int, last: int, reason: str) -> SourceError:
        return SourceError(
            f"rows {position} to {last - 1} of partition {partition} of `{self._url.place}` do not"
            f" come: {reason}",
            code=AWAY,
            hint="check that the brokers run and can be reached from where tasks run",
        )

    def id(self, wait: float | None = None) -> str | None:
        """The topic's own id, which a topic of the same name that is made later does not have; None where
        brokers do not tell it: those that have no controller are not asked, who answers for it."""
        if not self._has_controller:
            return None
        try:
            if self._admin is None:
                from confluent_kafka.admin import AdminClient

                settings: dict[str, Any] = {**self._url.client, "bootstrap.servers": self._url.servers}
                self._admin = AdminClient(settings, logger=_TopicLog(self._url.scrubbed))
            seconds = min(wait or self._url.timeout_seconds, self._url.timeout_seconds)
            wanted = self._kafka.TopicCollection([self._url.topic])
            (told,) = self._admin.describe_topics(wanted, request_timeout=seconds).values()
            found = told.result(seconds).topic_id
            is_known = found.get_most_significant_bits() or found.get_least_significant_bits()
            return str(found) if is_known else None
        except Exception:  # noqa: BLE001  whatever the reason, the topic can be read without
            return None


def _text(error: BaseException) -> str:
    inner = error.args[0] if error.args else error
    return str(inner.str()) if hasattr(inner, "str") else str(inner)
