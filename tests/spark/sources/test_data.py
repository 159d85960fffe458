"""Data given in Python: frames and tables of any make."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.spark.sources.conftest import all_rows

from windrow.algebra.types import BIGINT, DOUBLE, STRING, TIMESTAMP, decimal
from windrow.errors import SourceError
from windrow.spark.sources import infer_schema, open_data
from windrow.spark.sources.tables import as_table, digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.spark.sources.conftest import Declare

MIDNIGHT = datetime(2026, 1, 1)
VALUES = {"Item": [1, 2], "price": [0.5, None], "name": ["a", None], "ts": [MIDNIGHT, MIDNIGHT]}
MAKES = {
    "arrow": pa.table(VALUES),
    "record batch": pa.record_batch(VALUES),
    "pandas": pd.DataFrame(VALUES),
    "polars": pl.DataFrame(VALUES),
    "polars lazy": pl.LazyFrame(VALUES),
    "dictionary": pa.table(VALUES).set_column(2, "name", pa.array(["a", None]).dictionary_encode()),
}
COLUMNS = "ts TIMESTAMP, item BIGINT, price DOUBLE, name STRING"


@pytest.mark.parametrize("make", MAKES)
def test_the_columns_of_a_table(make: str) -> None:
    schema = infer_schema(MAKES[make])
    assert dict(zip(schema.names, schema.types, strict=True)) == {
        "Item": BIGINT,
        "price": DOUBLE,
        "name": STRING,
        "ts": TIMESTAMP,
    }


def test_the_same_contents_have_the_same_digest() -> None:
    assert len({digest(as_table(make)) for make in MAKES.values()}) == 1
    assert digest(pa.table({"a": [1, None]})) != digest(pa.table({"a": [None, 1]}))
    assert digest(pa.table({"a": [1]})) != digest(pa.table({"b": [1]}))


@pytest.mark.parametrize("make", ["arrow", "pandas", "polars lazy"])
def test_a_table_in_memory_is_read_in_its_order(spark: SparkSession, declare: Declare, make: str) -> None:
    source = open_data(spark, declare(COLUMNS), MAKES[make])
    assert source.is_bounded
    assert source.order_key == ("__row",)
    assert source.fingerprint.startswith("table:2 rows ")
    assert all_rows(source).orderBy("__row").toArrow().to_pylist() == [
        {"ts": MIDNIGHT.replace(tzinfo=UTC), "item": 1, "price": 0.5, "name": "a", "__row": 0},
        {"ts": MIDNIGHT.replace(tzinfo=UTC), "item": 2, "price": None, "name": None, "__row": 1},
    ]


def test_a_batch_frame_is_bounded(spark: SparkSession, declare: Declare) -> None:
    frame = spark.sql("SELECT 1 AS ITEM, TIMESTAMP_NTZ '2026-01-01' AS ts, 'x' AS `a.b`")
    assert infer_schema(frame).names == ("ITEM", "ts", "a.b")
    source = open_data(spark, declare("item BIGINT, a.b STRING, ts TIMESTAMP"), frame)
    assert (source.is_bounded, source.order_key) == (True, ())
    assert all_rows(source).toArrow().to_pylist() == [
        {"item": 1, "a.b": "x", "ts": MIDNIGHT.replace(tzinfo=UTC)},
    ]


def test_a_streaming_frame_has_no_end(spark: SparkSession, declare: Declare) -> None:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    source = open_data(
        spark, declare("value BIGINT, ts TIMESTAMP"), rate.withColumnRenamed("timestamp", "ts")
    )
    assert not source.is_bounded
    assert source.fingerprint == "frame:streaming struct<ts:timestamp,value:bigint>"


def test_types_that_spark_does_not_take_are_made_plain() -> None:
    table = pa.table(
        {
            "u": pa.array([2**64 - 1], pa.uint64()),
            "s": pa.array(["a"], pa.string_view()),
            "t": pa.array([0], pa.timestamp("ns", "Europe/Paris")),
        }
    )
    schema = infer_schema(table)
    assert schema.types == (decimal(20, 0), STRING, TIMESTAMP)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(1, 2)], "a stream cannot be read from a list"),
        (pa.table({"t": pa.array([time(1)])}), "column `t` is TIME(6), for which Windrow has no type"),
        (pa.table({"t": pa.array([1], pa.timestamp("ns"))}), "column `t` is timestamp[ns], which is not"),
        (pd.DataFrame({"a": [1, "x"]}), "the data is no table"),
    ],
    ids=["list", "time", "nanoseconds", "mixed"],
)
def test_what_is_no_table(data: object, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        infer_schema(data)
    assert message in str(caught.value)


def test_missing_and_narrow_columns(spark: SparkSession, declare: Declare) -> None:
    with pytest.raises(SourceError, match=r"declares a column `nme`, which the table does not have"):
        open_data(spark, declare("nme STRING, ts TIMESTAMP"), MAKES["arrow"])
    with pytest.raises(
        SourceError, match=r"`price` of stream `s` is declared BIGINT, but the table has DOUBLE"
    ):
        open_data(spark, declare("price BIGINT, ts TIMESTAMP"), MAKES["arrow"])


def test_times_without_a_zone_need_a_session_in_utc(spark: SparkSession, declare: Declare) -> None:
    frame = spark.sql("SELECT TIMESTAMP_NTZ '2026-01-01' AS ts")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    try:
        with pytest.raises(SourceError, match=r"`ts` of stream `s` have no zone .* zone is Europe/Paris"):
            open_data(spark, declare("ts TIMESTAMP"), frame)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
