"""Opens a stream's source by the text after FROM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.errors import QueryError
from windrow.spark.sources.files_source import open_files
from windrow.spark.sources.generator_source import open_generator
from windrow.spark.sources.kafka_source import open_kafka
from windrow.spark.sources.push_source import open_push
from windrow.spark.sources.urls import parse_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.algebra.catalog import Stream
    from windrow.spark.sources.source import Source

_OPENERS = {"files": open_files, "generator": open_generator, "kafka": open_kafka, "push": open_push}


def open_url(spark: SparkSession, stream: Stream) -> Source:
    """The source that the stream's declaration names."""
    if stream.source is None:
        raise QueryError(
            f"stream `{stream.name}` does not say where its rows come from",
            code="no-source",
            hint="add FROM '…' to its declaration, or give it data in Python",
        )
    url = parse_url(stream.source)
    return _OPENERS[url.scheme](spark, stream, url)
