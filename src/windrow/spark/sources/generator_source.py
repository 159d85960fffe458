"""Opens `generator:name?…` as a source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from windrow.spark.sources.fit import check_order_names, fit, match_names
from windrow.spark.sources.generator_reader import NAME, GeneratorSource, Request
from windrow.spark.sources.generator_url import read_generator_url
from windrow.spark.sources.generators.generator import ROW
from windrow.spark.sources.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.algebra.catalog import Stream
    from windrow.spark.sources.url import SourceUrl


def open_generator(spark: SparkSession, stream: Stream, url: SourceUrl) -> Source:
    """The generator's rows: a batch if all of them come at once, else a stream."""
    wanted = read_generator_url(url)
    where = f"generator:{wanted.generator.name}"
    check_order_names(stream, (ROW,))
    schema = from_arrow_schema(wanted.generator.schema)
    names = match_names(stream, schema.names, where)
    columns = tuple(dict.fromkeys(names.values()))
    spark.dataSource.register(GeneratorSource)
    tasks = spark.sparkContext.defaultParallelism
    request = Request(
        wanted.generator.name, wanted.settings, (*columns, ROW), tasks, wanted.rate, wanted.rows_per_batch
    )
    is_bounded = wanted.rate is None
    reader = spark.read if is_bounded else spark.readStream
    read_schema = StructType([*(schema[name] for name in columns), StructField(ROW, LongType())])
    frame = reader.format(NAME).schema(read_schema).option("request", request.to_json()).load()
    return Source(fit(frame, stream, [F.col(ROW)], where), is_bounded, wanted.fingerprint, order_key=(ROW,))
