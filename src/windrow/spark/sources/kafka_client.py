"""A Kafka topic as offsets and messages, through confluent-kafka, which is imported only when used.

Every wait has an end, and every failure becomes a SourceError that says what to look at.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from windrow.credentials import ScrubbedLog
from windrow.errors import SourceError

if TYPE_CHECKING:
    from windrow.spark.sources.urls import KafkaUrl

_MESSAGES_AT_ONCE = 10_000
_WAIT = 0.2  # seconds; a shorter wait than a slow broker needs is only one more round

Offsets = dict[int, int]
#: the code of errors that pass when whoever did not answer answers again
AWAY = "kafka"


def _confluent() -> Any:
    try:
        import confluent_kafka
    except ImportError:
        raise SourceError(
            "reading from Kafka needs the package confluent-kafka, which is not installed",
            code="missing-package",
            hint="pip install 'windrow[kafka]'",
        ) from None
    return confluent_kafka


class Topic:
    """A topic, connected to. Use it in a `with` statement, which disconnects."""

    def __init__(self, url: KafkaUrl) -> None:
        self._url = url
        self._kafka = _confluent()
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
            self._consumer = self._kafka.Consumer(settings, logger=ScrubbedLog(url.scrubbed))
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
        found = metadata.topics[self._url.topic]
        if found.error is not None or not found.partitions:
            reason = (
                self._url.scrubbed(found.error.str()) if found.error is not None else "it has no partitions"
            )
            raise SourceError(
                f"there is no topic `{self._url.topic}` at `{self._url.servers}`: {reason}",
                code="no-topic",
                hint="check its name, or create it",
            )
        return metadata.cluster_id, sorted(found.partitions)

    def bounds(self) -> tuple[Offsets, Offsets]:
        """For each partition the first offset that is still there, and the one after the last."""
        _, partitions = self.describe()
        first: Offsets = {}
        last: Offsets = {}
        for partition in partitions:
            place = self._kafka.TopicPartition(self._url.topic, partition)
            with self._clear_errors():
                first[partition], last[partition] = self._consumer.get_watermark_offsets(
                    place, timeout=self._url.timeout_seconds
                )
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
                position, heard = (
                    max(position, *(_position_after(event) for event in events)),
                    time.monotonic(),
                )
            elif time.monotonic() - heard > self._url.timeout_seconds:
                raise self._away(partition, position, last, "no more messages come")
            found = [(event.offset(), event.value()) for event in events if not event.error()]
            yield [(offset, value) for offset, value in found if offset < last]

    def _check(self, event: Any, partition: int, position: int, last: int) -> None:
        error = event.error()
        if error is None or error.code() == self._kafka.KafkaError._PARTITION_EOF:
            return
        reason = self._url.scrubbed(error.str())
        if error.code() in (
            self._kafka.KafkaError.OFFSET_OUT_OF_RANGE,
            self._kafka.KafkaError._AUTO_OFFSET_RESET,
        ):
            raise self._lost(partition, position, last, reason)
        raise self._away(partition, position, last, reason)

    def _away(self, partition: int, position: int, last: int, reason: str) -> SourceError:
        return SourceError(
            f"rows {position} to {last - 1} of partition {partition} of `{self._url.place}` do not"
            f" come: {reason}",
            code=AWAY,
            hint="check that the brokers run and can be reached from where tasks run",
        )

    def id(self) -> str | None:
        """The topic's own id, which a topic of the same name that is made later does not have; None where
        brokers are too old to tell."""
        try:
            from confluent_kafka.admin import AdminClient

            settings: dict[str, Any] = {**self._url.client, "bootstrap.servers": self._url.servers}
            admin = AdminClient(settings, logger=ScrubbedLog(self._url.scrubbed))
            wanted = self._kafka.TopicCollection([self._url.topic])
            (told,) = admin.describe_topics(wanted, request_timeout=self._url.timeout_seconds).values()
            return str(told.result(self._url.timeout_seconds).topic_id)
        except Exception:  # noqa: BLE001  whatever the reason, the topic can be read without
            return None

    def _lost(self, partition: int, position: int, last: int, reason: str) -> SourceError:
        return SourceError(
            f"rows {position} to {last - 1} of partition {partition} of `{self._url.place}` cannot be read:"
            f" {reason}",
            code="lost-rows",
            hint="if they are past the topic's retention they are gone: start with a new state directory",
        )


def _position_after(event: Any) -> int:
    """A message is at its offset; the end of a partition is at the offset of what comes next."""
    return int(event.offset()) + (0 if event.error() else 1)


def _text(error: BaseException) -> str:
    inner = error.args[0] if error.args else error
    return str(inner.str()) if hasattr(inner, "str") else str(inner)
