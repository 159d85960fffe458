"""Input that cannot be read: one clear error, nothing lost, and the way out works."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.engine.spark_world import Files
from tests.engine.test_loop import Script
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, COLUMNS, OPTIONS, STREAM, SUMS, as_rows, rows_of, table_of
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import PATIENCE

from windrow.engine.engine import Arrival
from windrow.errors import DataError, QueryError, SourceError, WindrowError
from windrow.execution import local
from windrow.execution.malformed_rows import MALFORMED as MALFORMED_COLUMN, MARK, RowShape
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
    assert files.answers("sums") == oracle(SUMS, BATCHES[:2])


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


#: which way rows take: here in this process, aggregated by Spark, or one by one through workers
WAYS = {"here": SUMS, "native": SUMS, "rows": "SELECT ISTREAM(k, v) FROM s [RANGE 30]"}


@pytest.mark.part(3)
@pytest.mark.parametrize("way", WAYS)
def test_bad_rows_are_counted_and_go_to_a_sink(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way != "here":
        monkeypatch.setattr(local, "SMALL_NATIVE", 0)
        monkeypatch.setattr(local, "SMALL_ROWS", 0)
    good = "".join(f'{{"k": {k}, "v": {v}, "t": {t}}}\n' for batch in BATCHES for k, v, t in batch)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text(MALFORMED + good)
    (tmp_path / "in" / "0b.json").write_text(MALFORMED)  # an epoch after one that had few panes
    bad = f"files://{tmp_path}/bad%3Fformat=json"

    def run(more: str) -> None:
        with Windrow(spark, tmp_path / "state") as w:
            source = f"files://{tmp_path}/in/*.json?files_per_batch=1&malformed={more}"
            w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
            w.query("q", WAYS[way], sink=f"files://{tmp_path}/out")
            w.run(once=True)
            counts.append(w.streams["s"].progress.malformed)
            (streams,) = w.sql("SHOW STREAMS")
            assert streams["malformed"].to_pylist() == counts[-1:]

    counts: list[int] = []
    run(f"to&malformed_sink={bad}")
    (tmp_path / "in" / "1.json").write_text('{"k": 1} {}\n' + MALFORMED)
    run(f"to&malformed_sink={bad}")
    (tmp_path / "in" / "2.json").write_text(MALFORMED)
    run("drop")
    assert counts == [2, 4, 5]
    lines = [line for path in (tmp_path / "bad").glob("*.json") for line in path.read_text().splitlines()]
    letters = [json.loads(line) for line in lines]
    assert Counter(tuple(letter.values()) for letter in letters) == {
        (f"{tmp_path}/in/0.json", "v", "`many` is no BIGINT", MALFORMED.strip()): 1,
        (f"{tmp_path}/in/1.json", "v", "`many` is no BIGINT", MALFORMED.strip()): 1,
        (f"{tmp_path}/in/0b.json", "v", "`many` is no BIGINT", MALFORMED.strip()): 1,
        (f"{tmp_path}/in/1.json", None, "after the object there is more: `{}`", '{"k": 1} {}'): 1,
    }
    found = [row for path in (tmp_path / "out").glob("*.parquet") for row in rows_of(pq.read_table(path))]
    expected = oracle(WAYS[way], [[row for batch in BATCHES for row in batch]])
    assert found
    assert not Counter(found) - expected


@pytest.mark.part(4)
@pytest.mark.parametrize("point", ["before-commit", "after-commit", "sink-after-rename", "sink-delivered"])
def test_bad_rows_reach_their_sink_once_whatever_happens(tmp_path: Path, point: str) -> None:
    """Without Spark: rows come with the column that tells of those that are none."""
    (tmp_path / "now").mkdir()
    shape = json.dumps(vars(RowShape("stream `s`", "csv", (("k", "k", "BIGINT", None),))))
    told = f"{MARK} " + ":".join(text.encode().hex().upper() for text in (shape, "f", "x", ""))

    class Dirty(Script):
        hands_on_malformed = True

        def frame(self, start: Any, end: Any) -> Any:
            rows = super().frame(start, end)
            bad = rows.slice(0, 1).append_column(MALFORMED_COLUMN, pa.array([told]))
            return pa.concat_tables(
                [rows.append_column(MALFORMED_COLUMN, pa.nulls(len(rows), pa.string())), bad]
            )

    def live() -> None:
        w = Life(tmp_path / "now" / "state")
        w.sql(STREAM + f" FROM 'files:///x.csv?malformed=to&malformed_sink=files://{tmp_path}/now/bad'")
        w.query("q", SUMS)
        w._sources["s"] = Dirty(*BATCHES)
        try:
            w.run(once=True)
            assert w.streams["s"].progress.malformed == len(BATCHES)
            w.close()
        finally:
            if w._engine is not None:
                w.engine.log._lock.release()

    def copy() -> None:
        shutil.copytree(tmp_path / "now", tmp_path / "then")

    with crashing_at(point, 2, copy) as crash, suppress(Crash):
        live()
    assert crash.happened
    shutil.rmtree(tmp_path / "now")
    (tmp_path / "then").rename(tmp_path / "now")
    live()
    found = [
        row for path in (tmp_path / "now" / "bad").glob("*.parquet") for row in rows_of(pq.read_table(path))
    ]
    assert found == [("f", "k", "`x` is no BIGINT", "x")] * len(BATCHES)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("malformed=to", "bad-option"),
        ("malformed_sink=memory:", "bad-option"),
        ("malformed=drop&malformed_sink=memory:", "bad-option"),
        ("malformed=to&malformed_sink=nowhere:", "unknown-sink"),
        ("malformed=to&malformed_sink=kafka://b/t%3Fkafka.sasl.password=x", "literal-secret"),
    ],
)
def test_where_bad_rows_go_is_checked_when_it_is_declared(tmp_path: Path, options: str, code: str) -> None:
    with Life(tmp_path / "state") as w, pytest.raises(QueryError) as refused:
        w.sql(f"{STREAM} FROM 'files:///x.csv?{options}'")
    assert refused.value.code == code
    assert refused.value.hint


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_growing_text_has_no_order_of_arrival(tmp_path: Path, spark: SparkSession, kind: str) -> None:
    """Lines are not numbered; of files that do not grow Spark numbers them."""
    text = {
        "csv": "k,v,t\n1,10,0\n1,20,5\n",
        "json": '{"k": 1, "v": 10, "t": 0}\n{"k": 1, "v": 20, "t": 5}\n',
    }
    (tmp_path / f"0.{kind}").write_text(text[kind])

    def run(bounded: bool) -> Any:
        with Windrow(spark, tmp_path / f"state {bounded}") as w:
            source = f"files://{tmp_path}/*.{kind}{'?bounded=true' * bounded}"
            w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS} FROM '{source}'")
            w.query("q", "SELECT v FROM s [ROWS 1 WATTR row_num]")
            w.run(once=True)
            return [row["v"] for row in w.queries["q"].results().to_pylist() if row.get("op", "+") == "+"]

    with pytest.raises(QueryError, match="no order of arrival") as refused:
        run(bounded=False)
    assert refused.value.code == "no-order"
    assert run(bounded=True) == [10, 20]


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
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", SUMS)
        w.push(*BATCHES[0])
        before = w.engine.last
        with pytest.raises(DataError) as refused:
            w.push((1, 1, 12), (1, 2, None))
        assert refused.value.code == "null-wattr"
        assert "the row with k 1, v 2 has no `t`" in refused.value.message
        assert w.engine.last == before
        for batch in BATCHES[1:]:
            w.push(*batch)
        w.end()
        assert w.rows("q") == as_rows(oracle(SUMS))


def test_rows_off_their_resolution_are_malformed(tmp_path: Path) -> None:
    values = pa.table({"x": [0.1, 0.25, 0.3, 1e300]})
    with Life(tmp_path) as w:
        w.sql("CREATE STREAM s (x DOUBLE) WATTR x RESOLUTION 0.1 ORDERED")
        w.query("q", "SELECT COUNT(*) AS n, window_start FROM s [RANGE 0.2 SLIDE 0.2]")
        with pytest.raises(DataError, match=r"0\.25.* no multiple of its RESOLUTION") as refused:
            w.engine.epoch([Arrival("s", values)])
        assert refused.value.code == "malformed-row"
        dropping: Any = SimpleNamespace(hands_on_malformed=True, order_key=())
        w.engine.streams["s"] = replace(w.engine.streams["s"], source=dropping)
        told = values.append_column(MALFORMED_COLUMN, pa.nulls(4, pa.string()))
        w.engine.epoch([Arrival("s", told)])
        w.engine.epoch(seals=["s"])
        assert w.rows("q") == [(0.2, 1, 0.0), (0.4, 1, 0.2)]
        assert w.streams["s"].progress.malformed == 2
