"""Rows that no query needs, on Spark: what is told of a batch is what the engine tells without it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from tests.support.history import COLUMNS, rows_of, table_of
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.engine.engine import Arrival
from windrow.errors import DataError
from windrow.execution.local import HereJobs
from windrow.kernels.intake import Intake, Observed
from windrow.session import Windrow
from windrow.spark import jobs
from windrow.state.chunk import open_chunk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

#: general queries put away the rows they need as they are
ROWS = "SELECT DISTINCT k FROM s [RANGE 10{unit} SLIDE 10{unit}]"
MEDIAN = "SELECT k, MEDIAN(v) AS v FROM s [RANGE 20 SLIDE 10] GROUP BY k"
JOIN = "SELECT s.k, r.v FROM s [RANGE 10 SLIDE 10], r [RANGE 10 SLIDE 10] WHERE s.k = r.k"
_DAY, _SECOND = 86_400_000_000, 1_000_000
#: the type of WATTR, ticks between moments, and a moment as Arrow has it
KINDS: dict[str, tuple[str, int, pa.DataType, Any]] = {
    "BIGINT": ("", 1, pa.int64(), int),
    "TIMESTAMP": (
        *(" SECONDS", _SECOND, pa.timestamp("us", tz="UTC")),
        lambda t: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=t),
    ),
    "DATE": (" DAYS", _DAY, pa.date32(), lambda t: date(1970, 1, 1) + timedelta(days=t)),
}


def pieces(w: Windrow, arrived: list[Any]) -> Any:
    """The engine's ingest job, remembering what it was called with."""
    plain = w._engine.jobs.ingest

    def ingest(*given: Any) -> Any:
        arrived.append(given)
        return plain(*given)

    return ingest


def told(reports: list[Any], batch: Any, place: Any) -> tuple[Any, ...]:
    """All that the driver learns from a batch, and the rows that are put away for queries, in any order."""
    seen = [report.observed for report in reports if report.observed is not None]
    moments = [t for each in seen for t in each.batch.wattr if t is not None]
    whole = Observed.all(seen)
    rows: Counter[Any] = Counter()
    for chunk in (open_chunk(place.store, report.chunk) for report in reports if report.chunk is not None):
        for key in chunk.keys:
            table = chunk.read(key)
            rows.update((key, row) for row in rows_of(table.drop_columns(["#row_num"])))
    late = sum(report.outbox.rows for report in reports if report.outbox is not None)
    return (
        *(whole.accepted, whole.late, max(moments, default=None), sum(report.shed for report in reports)),
        *(Intake(batch.stream).learn(batch.known, seen, 0), rows, late),
    )


def some_intervals(chance: Random, step: int) -> tuple[tuple[int, int], ...]:
    """In order and apart, of moments from 0 to 300; in step with one another, or not at all."""
    grain = chance.choice([1, 1, 5, 10])
    bounds = sorted(chance.sample(range(0, 300, grain), 2 * chance.choice([1, 1, 2, 5, 12])))
    return tuple((a * step, b * step) for a, b in zip(bounds[::2], bounds[1::2], strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("policy", ["SLACK 3{unit}", "ORDERED", ""])
def test_batches_tell_the_same(spark: SparkSession, tmp_path: Path, kind: str, policy: str):
    """Rows of any order, some of them late, and any intervals of needless ones."""
    unit, step, arrow, moment = KINDS[kind]
    options = f"WATTR t {policy.format(unit=unit)} SHEDDABLE LATE TO 'memory:'"
    schema = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", arrow)])
    chance, given = Random(f"{kind}{policy}"), []

    def table(count: int, low: int, high: int) -> pa.Table:
        rows = [(chance.randint(0, 3), n, moment(chance.randint(low, high))) for n in range(count)]
        return pa.Table.from_pylist([dict(zip("kvt", row, strict=True)) for row in rows], schema=schema)

    with Windrow(spark, tmp_path) as w:
        w.sql(f"CREATE STREAM s (k BIGINT, v BIGINT, t {kind}) {options}")
        w.query("q", ROWS.format(unit=unit), max_gap=6)
        engine: Any = w._engine
        engine.jobs.ingest = pieces(w, given)
        for _ in range(2):
            engine.epoch([Arrival("s", spark.createDataFrame(table(9, 60, 90)))])
        (batch,), place, now = given[1]
        counted = late = 0
        for count in (0, 1, 40, 90, 200):
            rows = table(count, 0, 320)
            frame = spark.createDataFrame(rows).repartition(chance.randint(1, 3))
            mine = replace(batch, frame=frame, shed=some_intervals(chance, step))
            found = told(jobs.ingest([mine], place, now), mine, place)
            assert found == told(HereJobs().ingest([replace(mine, frame=rows)], place, now), mine, place)
            counted += found[3]
            late += found[1]
        assert counted
        assert (late > 0) == (policy != "")


@contextmanager
def first_batch(spark: SparkSession, folder: Path, policy: str = "") -> Iterator[Any]:
    """What the ingest job was given for one row of a stream with this policy."""
    given: list[Any] = []
    with Windrow(spark, folder) as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t {policy} SHEDDABLE")
        w.query("q", ROWS.format(unit=""), max_gap=6)
        engine: Any = w._engine
        engine.jobs.ingest = pieces(w, given)
        engine.epoch([Arrival("s", spark.createDataFrame(table_of([(1, 1, 5)])))])
        (batch,), place, now = given[0]
        yield batch, place, now


def test_a_row_without_a_moment_is_refused_as_ever(spark: SparkSession, tmp_path: Path):
    with first_batch(spark, tmp_path, "SLACK 3") as (batch, place, now):
        rows = table_of([(1, 1, 15), (1, 1, 16), (1, 7, None), (1, 1, 45)])
        mine = replace(batch, frame=spark.createDataFrame(rows), shed=((10, 20), (30, 40)))
        refusals = [report.refusal for report in jobs.ingest([mine], place, now) if report.refusal]
        assert [(type(each), each.code) for each in refusals] == [(DataError, "null-wattr")]
        assert "the row with k 1, v 7 has no `t`" in refusals[0].message


def _fails_at_first(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hands rows on; the first attempt at each partition fails after all of them."""
    yield from rows
    context = TaskContext.get()
    if context is not None and not context.attemptNumber():
        raise ValueError("at first")


@pytest.mark.thorough
def test_rows_of_a_task_that_is_tried_again_are_counted_once(spark: SparkSession, tmp_path: Path):
    with first_batch(spark, tmp_path) as (batch, place, now):
        rows = table_of([(1, n, n) for n in range(600)])
        plain = spark.createDataFrame(rows).repartition(3)
        frame = plain.mapInArrow(_fails_at_first, plain.schema)
        mine = replace(batch, frame=frame, shed=((100, 200), (300, 400)))
        found = told(jobs.ingest([mine], place, now), mine, place)
        assert found == told(HereJobs().ingest([replace(mine, frame=rows)], place, now), mine, place)
        assert found[:4] == (600, 0, 599, 200)


def disordered(seed: int, count: int = 7) -> list[list[tuple[int, int, int]]]:
    """Batches of different sizes, with ties and rows that come too late."""
    chance, now, found = Random(seed), 0, []
    for _ in range(count):
        rows = []
        for _ in range(chance.choice([1, 5, 20, 40])):
            now += chance.choice([0, 0, 1, 2, 4])
            rows.append((chance.randint(0, 2), chance.randint(0, 5), max(0, now - chance.randint(0, 7))))
        found.append(rows)
    return found


POLICIES = ["SLACK 3", "ORDERED", "SLACK 2 ROWS", "ORDERED PER k", "SLACK 3 LATE KEEP", "SLACK 3 KEEP 50"]


@pytest.mark.thorough
@pytest.mark.parametrize("policy", POLICIES)
def test_engines_tell_the_same(spark: SparkSession, tmp_path: Path, policy: str):
    """One on Spark, and one that drops every row in Python."""
    script = disordered(len(policy), 9)
    w, here = Windrow(spark, tmp_path / "spark"), Life(tmp_path / "here")
    for each in (w, here):
        engine: Any = each._engine
        engine.shedding, engine.now = replace(engine.shedding, seed=5), lambda: 0
        each.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t {policy} SHEDDABLE")
        each.query("median", MEDIAN, max_gap=6)
        each.shed(1.0)
    on_spark: Any = w._engine
    for batch in script:
        on_spark.epoch([Arrival("s", spark.createDataFrame(table_of(batch)).repartition(2))])
        here.push(*batch)
        one, other = on_spark.streams["s"], here.engine.streams["s"]
        for part in ("known", "late", "shed", "greatest"):
            assert getattr(one, part) == getattr(other, part)
    on_spark.epoch(seals=["s"])
    here.end()
    assert Counter(rows_of(w.queries["median"].results())) == Counter(here.rows("median"))
    assert w.queries["median"].gaps.equals(here.queries["median"].gaps)
    assert w.streams["s"].progress.shed
    w.close()


def test_archives_have_needless_rows_too(spark: SparkSession, tmp_path: Path):
    with Windrow(spark, tmp_path) as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t SLACK 3 SHEDDABLE")
        w.query("median", MEDIAN, max_gap=6)
        w.sql("CREATE ARCHIVE a ON s KEY k KEEP 1000")
        w.shed(1.0)
        engine: Any = w._engine
        for n in range(3):
            rows = [(0, t, t) for t in range(80 * n, 80 * n + 80)]
            engine.epoch([Arrival("s", spark.createDataFrame(table_of(rows)))])
        assert w.streams["s"].progress.shed
        assert len(w.archives["a"]) == 240


@pytest.mark.thorough
def test_both_streams_of_a_join(spark: SparkSession, tmp_path: Path):
    """In one job, each with rows that are dropped."""
    scripts = {"s": disordered(3), "r": disordered(4)}
    with Windrow(spark, tmp_path) as w, Life(tmp_path / "here") as here:
        for each in (w, here):
            engine: Any = each._engine
            engine.shedding, engine.now = replace(engine.shedding, seed=5), lambda: 0
            for name in scripts:
                each.sql(f"CREATE STREAM {name} ({COLUMNS}) WATTR t SLACK 3 SHEDDABLE")
            each.query("join", JOIN, max_gap=6)
            each.shed(1.0)
        on_spark: Any = w._engine
        for both in zip(*scripts.values(), strict=True):
            tables = dict(zip(scripts, map(table_of, both), strict=True))
            on_spark.epoch([Arrival(name, spark.createDataFrame(rows)) for name, rows in tables.items()])
            here.engine.epoch([Arrival(name, rows) for name, rows in tables.items()])
            for name in scripts:
                one, other = on_spark.streams[name], here.engine.streams[name]
                assert (one.known, one.late, one.shed) == (other.known, other.late, other.shed)
        assert all(w.streams[name].progress.shed for name in scripts)
        for engine in (on_spark, here.engine):
            engine.epoch(seals=list(scripts))
        assert Counter(rows_of(w.queries["join"].results())) == Counter(here.rows("join"))


def test_answers_are_the_oracles(spark: SparkSession, tmp_path: Path):
    options, script = "WATTR t SLACK 3 SHEDDABLE", disordered(8, 9)
    with Windrow(spark, tmp_path) as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) {options}")
        w.query("median", MEDIAN, max_gap=6)
        w.shed(1.0)
        engine: Any = w._engine
        for batch in script:
            engine.epoch([Arrival("s", spark.createDataFrame(table_of(batch)))])
        engine.epoch(seals=["s"])
        gaps = w.queries["median"].gaps.to_pylist()
        lost = {end for gap in gaps for end in range(gap["first"], gap["last"] + 1, 10)}
        exact = oracle(MEDIAN, script, {"s": (COLUMNS, options)})
        assert lost
        assert Counter(rows_of(w.queries["median"].results())) == Counter(
            row for row in exact.elements() if row[0] not in lost
        )


def test_moments_far_away_are_no_needless_ones(spark: SparkSession, tmp_path: Path):
    """Nor do they make Spark compute beyond 64 bits."""
    with first_batch(spark, tmp_path) as (batch, place, now):
        rows = table_of([(1, n, t) for n, t in enumerate([-(2**60), 2**60, 105, 205, 305])])
        for frame in (spark.createDataFrame(rows), spark.createDataFrame(rows).repartition(2)):
            mine = replace(batch, frame=frame, shed=((100, 200), (300, 400)))
            found = told(jobs.ingest([mine], place, now), mine, place)
            assert found == told(HereJobs().ingest([replace(mine, frame=rows)], place, now), mine, place)
            assert found[:4] == (5, 0, 2**60, 2)
        wide = replace(mine, shed=((-(2**60), -(2**60) + 10), (2**60 - 10, 2**60 + 10)))
        found = told(jobs.ingest([wide], place, now), wide, place)
        assert found == told(HereJobs().ingest([replace(wide, frame=rows)], place, now), wide, place)


def test_rows_of_a_source_are_dropped_too(spark: SparkSession, tmp_path: Path):
    """Files, each a batch of its own, as Spark streams them."""
    script = [[(0, t, t) for t in range(90 * n, 90 * n + 90)] for n in range(3)]
    (tmp_path / "in").mkdir()
    for number, rows in enumerate(script):
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(table_of(rows), path)
        os.utime(path, (number, number))
    url = f"files://{tmp_path}/in/*.parquet?files_per_batch=1"
    with Windrow(spark, tmp_path / "state") as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED SHEDDABLE FROM '{url}'")
        w.query("median", MEDIAN, max_gap=6)
        w.shed(1.0)
        w.run(once=True, flush=True)
        progress, gaps = w.streams["s"].progress, w.queries["median"].gaps.to_pylist()
        assert progress.accepted == 270
        assert progress.shed
        lost = {end for gap in gaps for end in range(gap["first"], gap["last"] + 1, 10)}
        exact = oracle(MEDIAN, script, {"s": (COLUMNS, "WATTR t ORDERED")})
        assert Counter(rows_of(w.queries["median"].results())) == Counter(
            row for row in exact.elements() if row[0] not in lost
        )
