"""Generators in Spark: bounded ones whole, others in step with the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.sources.conftest import all_rows

from windrow.errors import QueryError, SourceError
from windrow.language.compile import declare_stream
from windrow.spark.sources import open_url
from windrow.spark.sources.generator_source import GeneratorSource, ReadRows, in_parts
from windrow.spark.sources.generators import TRAFFIC, Disorder, Settings
from windrow.spark.sources.source import Begun, Offsets
from windrow.spark.sources.urls import parse_url, read_generator_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.spark.sources.conftest import Declare, Drain


class Clock:
    """A clock on the wall that a test can set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def opened(url: str, clock: Clock | None = None, start: int = 0) -> GeneratorSource:
    stream = declare_stream("s", "ts TIMESTAMP", "WATTR ts")
    no_spark: Any = None
    found = GeneratorSource(no_spark, stream, read_generator_url(parse_url(url)), clock or Clock())
    found.begin(Begun("s", {"row": start}))
    return found


def test_rows_become_due_as_time_passes() -> None:
    clock = Clock()
    source = opened("generator:traffic?rate=10", clock)
    assert source.latest() == 10
    clock.now += 2.5
    assert source.latest() == 35
    assert source.upto({"row": 10}, 35) == Offsets({"row": 35})
    assert source.upto({"row": 35}, 35) is None


def test_another_rate_counts_from_the_rows_that_are_due() -> None:
    clock = Clock()
    source = opened("generator:traffic?rate=10", clock)
    clock.now += 2
    source.quicken(3)
    assert (source.latest(), source.rate) == (30, 30)
    clock.now += 2
    assert source.latest() == 90
    source.quicken(1)
    clock.now += 1
    assert source.latest() == 100


def test_what_is_due_and_not_taken_yet_is_told() -> None:
    source = opened("generator:traffic?rate=10&rows_per_batch=4")
    assert source.upto({}, 30) == Offsets({"row": 4}, backlog=26, has_more=True)


def test_a_restart_goes_on_without_a_jump() -> None:
    clock = Clock()
    source = opened("generator:traffic?rate=10", clock, start=7000)
    assert source.latest() == 7010
    clock.now += 1
    assert source.latest() == 7020


def test_a_stream_with_an_end_stops_there() -> None:
    clock = Clock()
    source = opened("generator:traffic?rate=10&rows=15", clock)
    clock.now += 60
    assert source.latest() == 15


def test_a_single_run_takes_what_is_there() -> None:
    assert opened("generator:traffic?rate=10", start=3).whole() == 13
    assert opened("generator:traffic?rate=10&rows=500", start=3).whole() == 500


def test_tasks_share_the_rows() -> None:
    settings, columns = Settings(disorder=Disorder.BOUNDED, rows=100_000), ("ts", "speed", "__row")
    parts = in_parts(0, 100_000, 2)
    assert parts == [(0, 50_000), (50_000, 100_000)]
    read = ReadRows("traffic", settings, columns)
    rows = pa.Table.from_batches([rows for part in parts for rows in read(part)])
    assert rows == pa.Table.from_batches([TRAFFIC.rows(settings, 0, 100_000, columns)])


@pytest.mark.thorough
def test_all_rows_at_once(spark: SparkSession, declare: Declare) -> None:
    stream = declare("ts TIMESTAMP, speed DOUBLE, Segment BIGINT", "generator:traffic?rows=500")
    source = open_url(spark, stream)
    assert source.is_bounded
    assert source.order_key == ("__row",)
    rows = all_rows(source).orderBy("__row").toArrow()
    assert rows.column_names == ["ts", "speed", "Segment", "__row"]
    expected = TRAFFIC.rows(Settings(), 0, 500, ["ts", "speed", "segment", "__row"])
    assert rows.rename_columns(expected.schema.names) == pa.Table.from_batches([expected])


def test_a_stream_in_micro_batches(spark: SparkSession, declare: Declare, drain: Drain) -> None:
    options = "rate=400&disorder=bounded&rows_per_batch=300"
    source = open_url(
        spark, declare("item BIGINT, bidder STRING, ts TIMESTAMP", f"generator:auction?{options}")
    )
    assert not source.is_bounded
    batches = [*drain(source), *drain(source)]
    assert [batch.num_rows for batch in batches] == [300, 100]
    numbers = pa.concat_tables(batches)["__row"].to_pylist()
    assert numbers == list(range(400))


def test_unknown_columns_and_types(spark: SparkSession, declare: Declare) -> None:
    with pytest.raises(
        SourceError, match=r"`segmnt`, which generator:traffic does not have \(did you mean `segment`"
    ):
        open_url(spark, declare("segmnt BIGINT, ts TIMESTAMP", "generator:traffic"))
    with pytest.raises(SourceError, match=r"declared INT, but generator:traffic has BIGINT"):
        open_url(spark, declare("segment INT, ts TIMESTAMP", "generator:traffic"))
    with pytest.raises(QueryError, match=r"cannot have a column `__row`"):
        open_url(spark, declare("__row BIGINT, ts TIMESTAMP", "generator:traffic"))
    with pytest.raises(QueryError, match=r"does not say where its rows come from"):
        open_url(spark, declare("segment BIGINT, ts TIMESTAMP"))
