"""Generators in Spark: bounded ones whole, others in step with the clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from windrow.errors import QueryError, SourceError
from windrow.spark.sources import generator_reader, open_url
from windrow.spark.sources.generator_reader import Request, _BatchReader, _StreamReader
from windrow.spark.sources.generators.settings import Disorder, Settings
from windrow.spark.sources.generators.traffic import TRAFFIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.spark.sources.conftest import Declare, Drain


class Clock:
    """A clock on the wall that a test can set."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(generator_reader, "time", clock)
    return clock


def reader(rate: int = 10, rows: int | None = None, rows_per_batch: int | None = None) -> _StreamReader:
    request = Request("traffic", Settings(rows=rows), ("ts", "__row"), 2, rate, rows_per_batch)
    return _StreamReader(request.to_json())


def test_rows_become_due_as_time_passes(clock: Clock) -> None:
    stream = reader(rate=10)
    everything = ReadAllAvailable()
    assert stream.initialOffset() == {"row": 0}
    assert stream.latestOffset({"row": 0}, everything) == {"row": 10}
    clock.now += 2.5
    assert stream.latestOffset({"row": 10}, everything) == {"row": 35}
    clock.now += 1
    assert stream.latestOffset({"row": 35}, everything) == {"row": 45}


def test_what_is_due_and_not_taken_yet_is_told(clock: Clock) -> None:
    stream = reader(rate=10, rows_per_batch=4)
    end = stream.latestOffset({"row": 0}, stream.getDefaultReadLimit())
    clock.now += 2
    assert (end, stream.reportLatestOffset()) == ({"row": 4}, {"row": 30})


def test_a_restart_goes_on_without_a_jump(clock: Clock) -> None:
    stream = reader(rate=10)
    assert stream.latestOffset({"row": 7000}, ReadAllAvailable()) == {"row": 7010}
    clock.now += 1
    assert stream.latestOffset({"row": 7010}, ReadAllAvailable()) == {"row": 7020}


def test_a_stream_with_an_end_stops_there(clock: Clock) -> None:
    stream = reader(rate=10, rows=15)
    stream.latestOffset({"row": 0}, ReadAllAvailable())
    clock.now += 60
    assert stream.latestOffset({"row": 0}, ReadAllAvailable()) == {"row": 15}
    assert stream.latestOffset({"row": 15}, ReadAllAvailable()) == {"row": 15}


def test_a_batch_has_no_more_rows_than_asked_for(clock: Clock) -> None:
    stream = reader(rate=10, rows_per_batch=4)
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(4)
    stream.latestOffset({"row": 0}, limit)
    clock.now += 1
    assert stream.latestOffset({"row": 0}, limit) == {"row": 4}


def test_a_single_run_takes_what_is_there(clock: Clock) -> None:
    endless, ending = reader(rate=10), reader(rate=10, rows=500)
    for stream, last in ((endless, 13), (ending, 500)):
        stream.prepareForTriggerAvailableNow()
        assert stream.latestOffset({"row": 3}, ReadAllAvailable()) == {"row": last}
        clock.now += 60
        assert stream.latestOffset({"row": last}, ReadAllAvailable()) == {"row": last}


def test_tasks_share_the_rows() -> None:
    request = Request(
        "traffic", Settings(disorder=Disorder.BOUNDED, rows=100_000), ("ts", "speed", "__row"), 2
    )
    batch = _BatchReader(request.to_json())
    parts = batch.partitions()
    assert [part.value for part in parts] == [(0, 50_000), (50_000, 100_000)]
    rows = pa.Table.from_batches([rows for part in parts for rows in batch.read(part)])
    assert rows == pa.Table.from_batches([TRAFFIC.rows(request.settings, 0, 100_000, request.columns)])
    assert reader().partitions({"row": 5}, {"row": 5}) == []


def test_all_rows_at_once(spark: SparkSession, declare: Declare) -> None:
    stream = declare("ts TIMESTAMP, speed DOUBLE, Segment BIGINT", "generator:traffic?rows=500")
    source = open_url(spark, stream)
    assert source.is_bounded
    assert not source.is_files
    assert source.order_key == ("__row",)
    rows = source.frame.orderBy("__row").toArrow()
    assert rows.column_names == ["ts", "speed", "Segment", "__row"]
    expected = TRAFFIC.rows(Settings(), 0, 500, ["ts", "speed", "segment", "__row"])
    assert rows.rename_columns(expected.schema.names) == pa.Table.from_batches([expected])


def test_a_stream_in_micro_batches(spark: SparkSession, declare: Declare, drain: Drain) -> None:
    options = "rate=400&disorder=bounded&rows_per_batch=300"
    source = open_url(
        spark, declare("item BIGINT, bidder STRING, ts TIMESTAMP", f"generator:auction?{options}")
    )
    assert not source.is_bounded
    batches = [*drain(source.frame), *drain(source.frame)]
    assert [batch.num_rows for batch in batches] == [300, 100, 300, 100]
    numbers = pa.concat_tables(batches)["__row"].to_pylist()
    assert numbers == list(range(800))


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
