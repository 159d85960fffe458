"""Made-up streams: the same rows however they are cut, and as much disorder as they say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, strategies as st
from tests.support.patience import PATIENCE

from windrow.spark.sources.generators import (
    GENERATORS,
    MICROS,
    NETWORK,
    TRAFFIC,
    Disorder,
    Generator,
    Settings,
)

generators = st.sampled_from(list(GENERATORS.values()))
some_settings = st.builds(
    Settings,
    seed=st.integers(0, 3),
    keys=st.none() | st.integers(1, 30),
    event_rate=st.sampled_from([1, 7, 100]),
    disorder=st.sampled_from(Disorder),
    disorder_by=st.sampled_from([0, MICROS // 2, 5 * MICROS]),
    block=st.sampled_from([MICROS, 3 * MICROS]),
    rows=st.none() | st.integers(0, 400),
)


@given(generators, some_settings, st.integers(0, 500), st.lists(st.integers(0, 200), min_size=1, max_size=5))
def test_rows_are_the_same_however_they_are_cut(
    generator: Generator, settings: Settings, first: int, sizes: list[int]
) -> None:
    cuts = np.cumsum([first, *sizes]).tolist()
    parts = [generator.rows(settings, *part) for part in pairwise(cuts)]
    whole = generator.rows(settings, cuts[0], cuts[-1])
    assert pa.Table.from_batches(parts).combine_chunks() == pa.Table.from_batches([whole]).combine_chunks()


@given(generators, some_settings)
def test_disorder_changes_the_order_and_nothing_else(generator: Generator, settings: Settings) -> None:
    settings = replace(settings, rows=300)
    ordered = generator.rows(replace(settings, disorder=Disorder.NONE), 0, 1000)
    arrived = generator.rows(settings, 0, 1000)
    assert arrived.num_rows == 300
    assert arrived.sort_by("ts") == ordered


@given(some_settings, st.integers(0, 10_000))
def test_bounded_disorder_is_bounded(settings: Settings, first: int) -> None:
    settings = replace(settings, disorder=Disorder.BOUNDED, rows=None)
    ts = _micros(TRAFFIC.rows(settings, first, first + 1000, ["ts"]))
    assert (np.maximum.accumulate(ts) - ts).max() <= settings.disorder_by


def test_bounded_disorder_comes_near_its_bound() -> None:
    settings = Settings(disorder=Disorder.BOUNDED, event_rate=100)
    ts = _micros(TRAFFIC.rows(settings, 0, 20_000, ["ts"]))
    assert (np.maximum.accumulate(ts) - ts).max() > 0.9 * settings.disorder_by


def test_a_block_is_sorted_by_another_attribute() -> None:
    settings = Settings(disorder=Disorder.BLOCK, event_rate=10, block=30 * MICROS, start=0)
    rows = TRAFFIC.rows(settings, 0, 900)
    segments, blocks = rows["segment"].to_numpy(), _micros(rows) // settings.block
    assert (np.diff(blocks) >= 0).all()
    for block in range(3):
        assert (np.diff(segments[blocks == block]) >= 0).all()
    assert (np.diff(segments) < 0).any()


def test_event_time_follows_the_row_number() -> None:
    ts = _micros(TRAFFIC.rows(Settings(event_rate=4, start=1000), 0, 9, ["ts"]))
    assert ts.tolist() == [1000 + row * MICROS // 4 for row in range(9)]


def test_rows_far_into_the_stream_cost_no_more() -> None:
    rows = TRAFFIC.rows(Settings(disorder=Disorder.BOUNDED), 10**12, 10**12 + 10, ["ts", "__row"])
    assert rows["__row"].to_pylist() == list(range(10**12, 10**12 + 10))


def test_another_seed_gives_other_rows() -> None:
    assert TRAFFIC.rows(Settings(seed=1), 0, 100) != TRAFFIC.rows(Settings(seed=2), 0, 100)


@pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS)
def test_columns_have_the_promised_types(generator: Generator) -> None:
    rows = generator.rows(Settings(), 0, 10)
    assert rows.schema == generator.schema
    assert rows.schema.names[-1] == "ts"
    assert not any(column.null_count for column in rows.columns)


def test_only_the_wanted_columns_are_made() -> None:
    assert TRAFFIC.rows(Settings(), 0, 5, ["ts", "speed"]).schema.names == ["ts", "speed"]


def test_traffic_jams_some_segments_some_of_the_time() -> None:
    rows = pa.Table.from_batches([TRAFFIC.rows(Settings(event_rate=100), 0, 120_000)])
    slowest = rows.group_by("segment").aggregate([("speed", "min"), ("speed", "mean")]).sort_by("segment")
    jammed = [least < 25 for least in slowest["speed_min"].to_pylist()]
    assert jammed == [segment % 4 == 3 for segment in range(20)]
    assert all(mean > 40 for mean in slowest["speed_mean"].to_pylist())


def test_sensors_belong_to_one_segment() -> None:
    rows = TRAFFIC.rows(Settings(), 0, 2000)
    assert pc.all(pc.equal(pc.divide(rows["sensor"], 5), rows["segment"])).as_py()
    assert len(rows["sensor"].unique()) == 100


def test_a_few_items_get_most_of_the_bids() -> None:
    bids = GENERATORS["auction"].rows(Settings(), 0, 20_000)
    counts = sorted((count["counts"].as_py() for count in bids["item"].value_counts()), reverse=True)
    assert 0.45 < sum(counts[:5]) / 20_000 < 0.6
    assert pc.min(bids["price"]).as_py() > 0


def test_telnet_is_ten_times_as_frequent_as_ftp() -> None:
    rows = NETWORK.rows(Settings(), 0, 400_000, ["protocol", "src"])
    counts = {pair["values"].as_py(): pair["counts"].as_py() for pair in rows["protocol"].value_counts()}
    assert 9 < counts["telnet"] / counts["ftp"] < 11
    assert max(counts, key=lambda protocol: counts[protocol]) == "http"


def test_sources_follow_zipfs_law() -> None:
    sources = NETWORK.rows(Settings(), 0, 400_000, ["src"])["src"].to_numpy()
    counts = np.bincount(sources, minlength=1650)
    assert len(counts) == 1650
    assert counts.min() > 0
    for rank in (1, 3, 9):
        assert counts[0] / counts[rank] == pytest.approx(rank + 1, rel=0.1)


def test_generators_do_without_spark() -> None:
    code = (
        "import sys; from windrow.spark.sources import check_url; check_url('generator:traffic');"
        "from windrow.spark.sources.generators import GENERATORS; sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE).returncode == 0


def _micros(rows: pa.RecordBatch) -> np.ndarray:
    return rows["ts"].view(pa.int64()).to_numpy()
