"""What KEEP keeps: the rows that it says, in few files, whatever happens; and the last answers of queries."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from tests.support.crashes import Crash, crashing_at
from tests.support.history import rows_of
from tests.support.life import Life

from windrow.engine.records import StreamRecord
from windrow.engine.retention import TOGETHER, tidied
from windrow.errors import QueryError
from windrow.execution.delta_file import WriteTarget
from windrow.execution.kept_rows import KeptWriter, read_kept
from windrow.language.compile import declare_stream
from windrow.state.history import sweep
from windrow.state.names import ANSWERS, KEPT
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windrow.algebra.catalog import Stream
    from windrow.state.manifest import ChunkRef

Row = tuple[int, int, int]


def declared(keep: str) -> str:
    return f"CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 5 {keep}"


def kept_rows(w: Life) -> Counter[Any]:
    """All that the files hold, read by somebody who knows nothing of Windrow."""
    refs = w.engine.last.chunks.get(KEPT, ())
    tables = [pq.read_table(w._folder / ref.name) for ref in refs]
    return Counter(row[:3] for table in tables for row in rows_of(table))


def batches(count: int, step: int = 3) -> list[list[Row]]:
    return [[(n % 4, n, n * step), (1, -n, max(n * step - 2, 0))] for n in range(count)]


@pytest.mark.part(3)
@pytest.mark.parametrize("keep", ["KEEP 40", "KEEP 900", "KEEP 30 ROWS"])
def test_all_that_has_to_be_kept_is_kept_in_few_files(tmp_path: Path, keep: str) -> None:
    w = Life(tmp_path)
    w.sql(declared(keep))
    all_rows: list[Row] = []
    amount = int(keep.split()[1])
    for batch in batches(70):
        w.push(*batch)
        all_rows += batch
    known = sorted(row for row in all_rows if row[2] < w.engine.streams["s"].known.progress.progress)
    known.sort(key=lambda row: row[2])
    now = w.engine.streams["s"].known.progress.progress - 1
    needed = known[-amount:] if "ROWS" in keep else [row for row in known if row[2] > now - amount]
    found = kept_rows(w)
    assert not Counter(needed) - found
    assert not found - Counter(all_rows)
    if len(needed) < len(known) // 2:
        assert found.total() < len(all_rows), "nothing was forgotten"
    assert len(w.engine.last.chunks[KEPT]) <= 30
    w.close()


@pytest.mark.part(4)
@pytest.mark.parametrize(
    ("keep", "tasks", "span"),
    [("KEEP 300", 1, 3), ("KEEP 200 ROWS", 1, 3), ("KEEP 300", 14, 1), ("KEEP 300", 14, 90)],
)
def test_the_number_of_files_does_not_grow_with_the_epochs(
    tmp_path: Path, keep: str, tasks: int, span: int
) -> None:
    stream = declare_stream("s", "k BIGINT, t BIGINT", f"WATTR t {keep}")
    (tmp_path / "chunks").mkdir()
    store, numbers = LocalStore(tmp_path), count()
    record, kept, written = StreamRecord.new(stream), [], []
    counts, rewritten = [], []
    epochs = 130 if tasks == 1 else 24
    for commit in range(1, epochs + 1):
        place, now = WriteTarget(store, commit, 1, 1), commit * span
        new = [_written(place, stream, numbers, range(now - span, now)) for _ in range(tasks)]
        written += [row for _, rows in new for row in rows]
        known = replace(record.known, progress=replace(record.known.progress, progress=now))
        before = {ref.name for ref, _ in new} | {ref.name for ref in kept}
        record, kept = tidied(replace(record, known=known), [*kept, *(ref for ref, _ in new)], place)
        counts.append(len(kept))
        rewritten.append(sum(ref.rows for ref in kept if ref.name not in before))
    found = Counter(row for ref in kept for row in read_kept(store, ref, stream).select("k", "t").rows())
    needed = sorted(written, key=lambda row: row[1])[-200:]
    if "ROWS" not in keep:
        needed = [row for row in written if row[1] > now - 1 - 300]
    assert not Counter(needed) - found
    assert not found - Counter(written)
    assert max(counts) <= 80 + 2 * tasks
    assert max(counts[-20:]) <= 1.25 * max(counts[: len(counts) // 2]) + TOGETHER
    assert max(rewritten) < len(written), "one epoch has rewritten everything"


def _written(
    place: WriteTarget, stream: Stream, numbers: Iterator[int], times: range
) -> tuple[ChunkRef, list[Any]]:
    rows = [(next(numbers), times[0]), (next(numbers), times[-1])]
    with KeptWriter(place, stream) as writer:
        frame = pl.DataFrame(rows, schema={"k": pl.Int64, "t": pl.Int64}, orient="row")
        writer.add(frame.with_columns(pl.lit(0, pl.Int64).alias("#arrival_ts")))
    assert writer.ref is not None
    return writer.ref, rows


def test_only_columns_that_are_asked_for_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[set[str]] = []

    def spied(table: Any, columns: list[str], **more: Any) -> Any:
        read.append(set(columns))
        return plain(table, columns=columns, **more)

    plain = pq.read_table
    w = Life(tmp_path)
    w.sql(declared("KEEP 100"))
    w.push((1, 5, 10), (1, 6, 20), (2, 7, 40))
    monkeypatch.setattr("windrow.execution.kept_rows.pq.read_table", spied)
    asked = {
        "SELECT COUNT(*) AS n FROM s [RANGE 30]": ({"t"}, {"k", "t"}),
        "SELECT MAX(v) AS most FROM s [RANGE 30]": ({"v", "t"},),
        "SELECT t FROM s [RANGE 30] WHERE k = 1 ORDER BY t": ({"k", "t"},),
        "SELECT a.t FROM s [RANGE 9] a, s [RANGE 30] b WHERE a.v > b.v": ({"v", "t"},),
        "SELECT v FROM s [ROWS 1]": ({"k", "v", "t", "arrival_ts"},),
        "SELECT LAST(v) AS last FROM s [RANGE 30]": ({"k", "v", "t"},),
    }
    for query, expected in asked.items():
        read.clear()
        w._asker.memory._frames.clear()
        w.select(query)
        assert read[0] in expected, query
        assert len(read) == 1
    w.close()


def test_a_stream_without_keep_costs_nothing(tmp_path: Path) -> None:
    w = Life(tmp_path)
    w.sql(declared(""))
    for batch in batches(5):
        w.push(*batch)
    assert KEPT not in w.engine.last.chunks
    assert not list((tmp_path / "chunks").iterdir())
    with pytest.raises(QueryError, match="keeps no rows to ask about"):
        w.select("SELECT k FROM s [RANGE 5]")
    w.close()


def test_keep_can_be_added_and_taken_away(tmp_path: Path) -> None:
    w = Life(tmp_path)
    w.sql(declared(""))
    w.push((1, 1, 10), (1, 2, 20))
    w.close()
    w = Life(tmp_path)
    w.sql(declared("KEEP 100"))
    w.push((1, 3, 30), (1, 4, 40))
    assert rows_of(w.select("SELECT v FROM s [RANGE 14]")) == [(3,)]
    with pytest.raises(QueryError, match="keeps rows from 21 on"):
        w.select("SELECT v FROM s [RANGE 15]")
    w.close()
    w = Life(tmp_path)
    w.sql(declared(""))
    w.push((1, 5, 50))
    assert KEPT not in w.engine.last.chunks
    w.close()


def test_dropping_a_stream_lets_go_of_its_rows(tmp_path: Path) -> None:
    w = Life(tmp_path)
    w.sql(declared("KEEP 100"))
    w.push((1, 1, 10))
    w.sql("DROP STREAM s")
    assert KEPT not in w.engine.last.chunks
    w.close()


@pytest.mark.part(4)
@pytest.mark.parametrize("point", ["chunk-partly-written", "chunk-written", "before-commit", "after-commit"])
@pytest.mark.parametrize("passage", [2, 5, 11])
def test_after_a_crash_every_row_is_kept_once(tmp_path: Path, point: str, passage: int) -> None:
    script = batches(24)

    def follow(w: Life) -> None:
        last = w.engine.streams["s"].read.offsets.get("batch")
        for number in range(0 if last is None else last + 1, len(script)):
            w.push(*script[number], number=number)

    def opened(folder: Path) -> Life:
        w = Life(folder)
        w.sql(declared("KEEP 1000"))
        return w

    first, second = tmp_path / "first", tmp_path / "second"
    with crashing_at(point, passage, lambda: shutil.copytree(first, second)) as crash, suppress(Crash):
        w = opened(first)
        follow(w)
    assert crash.happened
    w.vanish()
    w = opened(second)
    follow(w)
    assert kept_rows(w) == Counter(row for batch in script for row in batch)
    for _ in range(3):
        w.engine.shed(None)  # commits, so that nothing of before is held
    sweep(w.engine.log, keep=1)
    named = set(w.engine.last.files)
    assert {f"chunks/{path.name}" for path in (second / "chunks").iterdir()} == named
    w.close()


def test_the_last_answer_is_there_after_delivery_and_restart(tmp_path: Path) -> None:
    query = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k"
    w = Life(tmp_path)
    w.sql(f"{declared('')}; {query}")
    w.push((1, 1, 3), (2, 1, 4), (1, 1, 16))
    assert rows_of(w.select("SELECT * FROM q")) == [(10, 1, 1), (10, 2, 1)]
    w.close()
    w = Life(tmp_path)
    w.sql(f"{declared('')}; {query}")
    assert rows_of(w.select("SELECT n, k FROM q WHERE k = 2")) == [(1, 2)]
    w.push((1, 1, 29))
    assert rows_of(w.select("SELECT * FROM q")) == [(20, 1, 1)]
    # the same question, asked without its name: no row is kept, and none is needed
    asked = w.select("SELECT k, COUNT(*) AS n FROM s [RANGE 10 SLIDE 10] GROUP BY k")
    assert rows_of(asked) == [(1, 1)]
    w.push((1, 1, 60))
    assert rows_of(w.select("SELECT * FROM q")) == [], "the window from 40 to 50 is empty"
    w.sql("DROP QUERY q")
    assert ANSWERS not in w.engine.last.chunks
    w.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("WATTR t KEEP 0", "keeps nothing"),
        ("WATTR t KEEP 1 HOUR", "does not measure a numeric attribute"),
        ("WATTR row_num KEEP 5", "place in time"),
        ("WATTR t KEEP 5 KEEP 6", "KEEP is there twice"),
    ],
)
def test_keep_that_means_nothing_is_refused(options: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        declare_stream("s", "k BIGINT, t BIGINT", options)


def test_keep_is_read() -> None:
    hour = declare_stream("s", "k BIGINT, ts TIMESTAMP", "WATTR ts LATE KEEP KEEP 1 HOUR SHEDDABLE").keep
    assert hour is not None
    assert (hour.ticks, hour.rows) == (3_600_000_000, None)
    rows = declare_stream("s", "k BIGINT, ts TIMESTAMP", "KEEP 7 ROWS").keep
    assert rows is not None
    assert (rows.ticks, rows.rows) == (None, 7)
