"""The whole way from files through Spark to files: crashes between the two logs, and what cannot go on."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from tests.engine.spark_world import Files
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, SUMS
from tests.support.oracle import oracle
from tests.support.refusal import refusal

from windrow.errors import DataError, SourceError, StateError, WindrowError
from windrow.session import Windrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def die(files: Files, spark: SparkSession, point: str, passage: int) -> None:
    """A process ends at a point; what it leaves is what was there at that moment."""
    with crashing_at(point, passage, files.copy) as crash, suppress(Crash, WindrowError):
        files.connect(spark).run(once=True, flush=True)
    assert crash.happened
    files.go_back()


@pytest.mark.part(3)
@pytest.mark.parametrize(
    ("point", "passage"), [("before-source-told", 1), ("before-commit", 5), ("after-commit", 5)]
)
def test_after_a_crash_a_new_start_goes_on(
    tmp_path: Path, spark: SparkSession, point: str, passage: int
) -> None:
    files = Files(tmp_path, BATCHES[:4])
    die(files, spark, point, passage)
    files.run(spark)
    files.check()


def test_files_that_were_read_may_go(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    die(files, spark, "before-source-told", 2)
    files.path(1).unlink()
    files.run(spark)
    files.check()


@pytest.mark.thorough
def test_a_file_that_no_commit_holds_may_still_be_mended(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    die(files, spark, "before-commit", 4)  # two registrations, a batch, and this one
    files.write(1, extra="{")  # with its time, so that files come in the same order
    with pytest.raises(DataError):
        files.run(spark)
    files.write(1)
    files.run(spark)
    files.check()


def test_a_consumed_file_that_changes_afterwards_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    files.run(spark, flush=False)
    whole, times = files.path(0).read_text(), files.path(0).stat()
    with files.path(0).open("a") as file:
        file.write('{"k": 1, "v": 1, "t": 90}\n')
    error = refusal(lambda: files.run(spark), "file-changed", SourceError)
    assert str(files.path(0)) in error.message
    assert "write new rows to new files" in error.hint
    files.path(0).write_text(whole)
    os.utime(files.path(0), ns=(times.st_atime_ns, times.st_mtime_ns))
    files.run(spark)
    files.check()


def test_a_streaming_frame_of_the_users_own(tmp_path: Path, spark: SparkSession) -> None:
    """It comes through Spark's own loop: twice, and without its checkpoint not at all."""
    files = Files(tmp_path, BATCHES[:4])

    def declare(w: Windrow) -> None:
        schema = "k BIGINT, v BIGINT, t BIGINT"
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(f"{files.folder}/in")
        w.stream("s", frame, wattr="t", slack=3)
        w.sql(f"CREATE QUERY sums AS {SUMS} INTO 'files://{files.folder}/now/sums'")

    files.declare = declare  # type: ignore[method-assign]
    for number in (2, 3):
        files.path(number).rename(tmp_path / f"{number}.later")
    files.run(spark, flush=False)
    for number in (2, 3):
        (tmp_path / f"{number}.later").rename(files.path(number))
    checkpoints = files.folder / "now" / "state" / "checkpoints"
    shutil.move(checkpoints, tmp_path / "kept")
    error = refusal(lambda: files.run(spark), "checkpoint-lost", StateError)
    assert "begins anew" in error.message
    assert "restore the folder `checkpoints`" in error.hint
    shutil.rmtree(checkpoints)
    shutil.move(tmp_path / "kept", checkpoints)
    files.run(spark)
    files.check()


def test_a_sealed_stream_that_grows_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:3])
    files.path(2).rename(tmp_path / "later")
    files.run(spark)
    (tmp_path / "later").rename(files.path(2))
    error = refusal(lambda: files.run(spark), "sealed", DataError)
    assert "`s` is sealed" in error.message
    assert files.answers("sums") == oracle(SUMS, BATCHES[:2])


def test_a_stream_of_another_source_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:2])
    files.run(spark, flush=False)
    files.folder.joinpath("in").rename(tmp_path / "elsewhere")
    (tmp_path / "in").mkdir()
    shutil.copy(tmp_path / "elsewhere" / "000.json", tmp_path / "in" / "000.csv")
    files.declare = lambda w: w.sql(  # type: ignore[method-assign]
        f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 3 FROM 'files://{tmp_path}/elsewhere/*';"
        f"CREATE QUERY sums AS {SUMS} INTO 'files://{tmp_path}/now/sums'"
    )
    error = refusal(lambda: files.run(spark), "source-changed", StateError)
    assert "another source" in error.message
    assert f"{tmp_path}/in" in error.hint


def test_a_dropped_stream_leaves_no_trace_in_the_way_of_the_next(tmp_path: Path, spark: SparkSession) -> None:
    files = Files(tmp_path, BATCHES[:2])
    files.run(spark, flush=False)
    with files.connect(spark) as w:
        w.sql("DROP QUERY sums; DROP STREAM s")
    shutil.rmtree(files.folder / "now" / "sums")
    files.run(spark)
    files.check()
