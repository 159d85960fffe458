"""Opens sources: by the text after FROM, and data given in Python (Spark frames, tables of pandas, Polars or
Arrow).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, functions as F

from windrow.algebra import Field, Schema, Stream
from windrow.errors import QueryError
from windrow.spark.sources import fit
from windrow.spark.sources.files_source import FilesSource
from windrow.spark.sources.generator_source import GeneratorSource
from windrow.spark.sources.kafka_source import KafkaSource
from windrow.spark.sources.push_source import PushSource
from windrow.spark.sources.source import Bounded, Source
from windrow.spark.sources.streaming_frame import StreamingFrame
from windrow.spark.sources.tables import as_table, digest
from windrow.spark.sources.urls import FilesUrl, KafkaUrl, PushUrl, read_url

_ROW = "__row"


def open_data(spark: SparkSession, stream: Stream, data: object) -> Source:
    """The rows of a frame or a table. Only a streaming frame is unbounded."""
    if isinstance(data, DataFrame):
        frame = fit.fitting(data, stream, "the frame").of(data)
        columns = data.schema.simpleString()
        if data.isStreaming:
            return StreamingFrame(frame, f"frame:streaming {columns}")
        return Bounded(frame, f"frame:batch {columns}")
    table = as_table(data)  # its rows arrive in their order
    fit.check_order_names(stream, (_ROW,))
    names = fit.check_types(fit.spark_schema(table.schema), stream, "the table")
    table = table.select(list(dict.fromkeys(names.values())))
    fingerprint = f"table:{table.num_rows} rows {digest(table)}"
    rows = spark.createDataFrame(table.append_column(_ROW, pa.array(np.arange(table.num_rows))))
    return Bounded(fit.fitting(rows, stream, "the table", [F.col(_ROW)]).of(rows), fingerprint, (_ROW,))


def infer_schema(data: Any) -> Schema:
    """The columns of a frame or a table, for a stream that declares none."""
    if isinstance(data, DataFrame):
        given = data.schema
    else:  # the rows of a lazy frame would be computed for nothing
        is_lazy = type(data).__module__.startswith("polars.") and hasattr(data, "collect")
        given = fit.spark_schema(as_table(data.limit(0) if is_lazy else data).schema)
    fields = []
    for field in given.fields:
        kind = fit.from_spark(field.dataType)
        if kind is None:
            raise fit.no_type(field.name, field.dataType.simpleString().upper())
        fields.append(Field(field.name, kind))
    return Schema(tuple(fields))


def open_url(spark: SparkSession, stream: Stream) -> Source:
    """The source that the stream's declaration names."""
    if stream.source is None:
        raise QueryError(
            f"stream `{stream.name}` does not say where its rows come from",
            code="no-source",
            hint="add FROM '…' to its declaration, or give it data in Python",
        )
    match read_url(stream.source):
        case FilesUrl() as wanted:
            return FilesSource(spark, stream, wanted)
        case KafkaUrl() as wanted:  # that brokers do not answer or have no such topic is found out here
            return KafkaSource(spark, stream, wanted.resolved())
        case PushUrl() as wanted:
            return PushSource(stream, wanted)
        case wanted:
            return GeneratorSource(spark, stream, wanted)
