"""Input that cannot be read: one clear error, nothing lost, and the way out works."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine.driven import STREAM, Driven, as_rows
from tests.engine.spark_world import Files
from tests.engine.world import BATCHES, COLUMNS, OPTIONS, SUMS, oracle, rows_of, table_of
from tests.support.patience import PATIENCE

from windrow.errors import DataError, SourceError, WindrowError
from windrow.session import Windrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MALFORMED = '{"k": 1, "v": "many", "t": 60}\n'
NO_MOMENT = '{"k": 1, "v": 1, "t": null}\n'


@pytest.mark.parametrize(("line", "code"), [(MALFORMED, "malformed-row"), (NO_MOMENT, "null-wattr")])
def test_a_bad_row_is_refused_and_its_file_may_be_mended(
    tmp_path: Path, spark: SparkSession, line: str, code: str
) -> None:
    files = Files(tmp_path, BATCHES[:3])
    files.write(1, extra=line)
    with pytest.raises(WindrowError) as refused:
        files.run(spark)
    assert refused.value.code == code
    assert "`s`" in refused.value.message
    assert refused.value.hint
    mended = files.path(1).read_text().replace(line, "")
    files.path(1).write_text(mended)
    os.utime(files.path(1), (1_700_000_001.5, 1_700_000_001.5))  # changed later, and still the second
    files.run(spark)
    files.check()


def test_a_bad_row_is_named_by_its_line_in_the_background_too(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:1])
    files.write(0, extra=MALFORMED)
    lines = files.path(0).read_text().split("\n")
    at = lines.index(MALFORMED.strip()) + 1
    with pytest.raises(DataError) as refused, files.connect(spark) as w:  # noqa: PT012
        w.start()
        w.wait(PATIENCE)
    assert f"line {at}, column `v`: `many` is no BIGINT" in refused.value.message


@pytest.mark.parametrize("instant", [2**62 + 5, -(2**62) - 5])
def test_a_row_out_of_reach_is_refused_where_spark_aggregates(
    tmp_path: Path, spark: SparkSession, instant: int
) -> None:
    files = Files(tmp_path, BATCHES[:2])
    files.write(0, extra=f'{{"k": 1, "v": 1, "t": {instant}}}\n')
    with pytest.raises(DataError, match=f"`t` of stream `s` is {instant}") as refused:
        files.run(spark)
    assert refused.value.code == "instant-range"


def test_a_file_with_bad_rows_may_be_taken_away(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    files.write(2, extra=MALFORMED)
    with pytest.raises(DataError):
        files.run(spark)
    files.path(2).unlink()
    files.run(spark)
    assert files.answers == oracle(SUMS, BATCHES[:2])


def test_bad_rows_may_be_dropped_from_then_on(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    files.write(1, extra=MALFORMED)
    with pytest.raises(DataError) as refused:
        files.run(spark)
    assert "malformed=drop" in str(refused.value.hint)
    files.url = "&malformed=drop"
    files.run(spark)
    files.check()


@pytest.mark.parametrize("malformed", ["fail", "drop"])
def test_bad_rows_of_a_csv_file(tmp_path: Path, spark: SparkSession, malformed: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("k,v,t\n1,10,0\n1,ten,5\n2,20,7\n")
    with Windrow(spark, tmp_path / "state") as w:
        source = f"files://{path}?bounded=true&malformed={malformed}"
        w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
        w.query("q", SUMS)
        if malformed == "fail":
            with pytest.raises(DataError) as refused:
                w.run(once=True)
            assert refused.value.code == "malformed-row"
            path.write_text("k,v,t\n1,10,0\n2,20,7\n")
        w.run(once=True)
        expected = oracle(SUMS, [((1, 10, 0), (2, 20, 7))])
        assert sorted(tuple(row.values()) for row in w.queries["q"].results().to_pylist()) == as_rows(
            expected
        )


def test_a_file_of_another_type_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(table_of(BATCHES[0]), tmp_path / "in" / "0.parquet")
    source = f"files://{tmp_path}/in/*.parquet?files_per_batch=1"

    def run(*, flush: bool) -> list[tuple[Any, ...]]:
        with Windrow(spark, tmp_path / "state") as w:
            w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
            w.query("q", SUMS)
            w.run(once=True, flush=flush)
            return rows_of(w.queries["q"].results())

    found = run(flush=False)
    strange = table_of(BATCHES[1]).set_column(1, "v", pa.array(["a", "b", "c"]))
    pq.write_table(strange, tmp_path / "in" / "1.parquet")
    with pytest.raises(SourceError) as refused:
        run(flush=False)
    assert "1.parquet" in refused.value.message
    pq.write_table(table_of(BATCHES[1]), tmp_path / "in" / "1.parquet")
    found += run(flush=True)
    assert sorted(found) == as_rows(oracle(SUMS, BATCHES[:2]))


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("files:///no/such/folder/*.json?bounded=true", "no-files"),
        ("files:///no/such/file.json?bounded=true", "no-files"),
        ("kafka://127.0.0.1:9/topic?timeout=3", "kafka"),
    ],
)
def test_a_source_that_is_not_there_is_told_soon(
    tmp_path: Path, spark: SparkSession, source: str, code: str
) -> None:
    with Windrow(spark, tmp_path / "state") as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
        w.query("q", SUMS)
        began = time.monotonic()
        with pytest.raises(SourceError) as refused:
            w.run(once=True)
        assert time.monotonic() - began < PATIENCE / 2
        assert refused.value.code == code
        assert refused.value.hint


def test_a_row_without_a_moment_stops_the_batch_and_nothing_else(tmp_path: Path) -> None:
    with Driven(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS)
        w.push(*BATCHES[0])
        before = w.engine.last
        with pytest.raises(DataError) as refused:
            w.push((1, 1, 12), (1, 1, None))
        assert refused.value.code == "null-wattr"
        assert "row 2 of the batch has no `t`" in refused.value.message
        assert w.engine.last == before
        for batch in BATCHES[1:]:
            w.push(*batch)
        w.end()
        assert w.rows("q") == as_rows(oracle(SUMS))
