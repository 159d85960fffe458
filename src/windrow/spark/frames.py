"""Spark's own types, for those above that name them: only this package imports pyspark."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["DataFrame", "SparkSession", "StreamingQuery"]
