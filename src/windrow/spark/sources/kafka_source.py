"""Opens `kafka://…` as a source: the messages come from Kafka, the columns in them from Spark's parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from windrow.spark.sources.fit import check_order_names
from windrow.spark.sources.kafka_client import Topic
from windrow.spark.sources.kafka_reader import (
    NAME,
    OFFSET,
    OPTION,
    PARTITION,
    SCHEMA,
    VALUE,
    KafkaSource,
    as_option,
)
from windrow.spark.sources.kafka_url import KafkaUrl, read_kafka_url
from windrow.spark.sources.parsing import TextFormat, check_flat, parse
from windrow.spark.sources.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.algebra.catalog import Stream
    from windrow.spark.sources.url import SourceUrl


def open_kafka(spark: SparkSession, stream: Stream, url: SourceUrl) -> Source:
    """The messages of a topic. That brokers do not answer or have no such topic is found out here."""
    wanted = read_kafka_url(url).resolved()
    order_key = (PARTITION, OFFSET)
    check_order_names(stream, order_key)
    if wanted.format == "csv":
        check_flat(stream, "a csv message")
    with Topic(wanted) as topic:
        cluster, _ = topic.describe()
    spark.dataSource.register(KafkaSource)
    messages = spark.readStream.format(NAME).schema(SCHEMA).option(OPTION, as_option(wanted)).load()
    how = TextFormat(wanted.format, wanted.malformed, wanted.delimiter)
    order = [F.col(name) for name in order_key]
    place = F.concat(F.lit(f"topic `{wanted.topic}`, partition "), order[0], F.lit(", offset "), order[1])
    frame = parse(messages, F.col(VALUE).cast("string"), how, stream, order=order, place=place)
    return Source(frame, False, _fingerprint(wanted, cluster), order_key)


def _fingerprint(wanted: KafkaUrl, cluster: str | None) -> str:
    """A cluster stays the same under other addresses of its brokers, and knows its own name."""
    csv = f" delimiter={wanted.delimiter!r}" if wanted.format == "csv" else ""
    return f"kafka:{cluster or wanted.servers}/{wanted.topic} {wanted.format}{csv}"
