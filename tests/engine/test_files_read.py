"""Which files are read, and when: every file once, whatever its time, its name and its writer do.

The source of files itself; what it would ask Spark for is known, so that no JVM is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from typing import TYPE_CHECKING, Any, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import LongType, StructField, StructType
from tests.support.history import BATCHES, COLUMNS, STREAM, SUMS, rows_in, table_of
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.patience import wait_until

from windrow.engine import epoch as draft, loop
from windrow.errors import DataError, SourceError, WindrowError
from windrow.spark.sources import files_source, listing
from windrow.spark.sources.files_source import FilesSource
from windrow.spark.sources.urls import FilesUrl
from windrow.state.names import KEYS

if TYPE_CHECKING:
    from pathlib import Path

#: all rows come late, and none too late
WIDE = STREAM.replace("SLACK 3", "SLACK 1000")
BEFORE = 1_700_000_000


def unreadable(*_: Any) -> Any:
    raise SourceError("it is no Parquet file", code="malformed-row")


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the reader asks Spark for: the columns of the first file, and rows that it does not read here."""
    columns = [StructField(name, LongType()) for name in ("k", "v", "t")]

    def look_at(self: Any, file: Any) -> None:
        try:
            pq.read_schema(file.path)
        except (OSError, pa.ArrowException):
            unreadable()
        self.columns = {"schema": StructType(columns).jsonValue()}

    monkeypatch.setattr(files_source, "_order_key", lambda *_: {})
    monkeypatch.setattr(files_source._Reader, "look_at", look_at)
    monkeypatch.setattr(files_source._Reader, "frame", unreadable)
    monkeypatch.setattr(files_source, "_STABLE", 0.05)
    monkeypatch.setattr(loop, "PAUSE", 0.001)


class Folder:
    """A folder of files, a state directory beside it, and lives of a process that reads the one into the
    other."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder, self.options = folder, options
        (folder / "in").mkdir()

    def write(self, name: str, number: int, modified: int | None = None) -> Path:
        """A batch as a file."""
        path = self.folder / "in" / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table_of(BATCHES[number]), self.folder / "draft")
        if modified is not None:
            os.utime(self.folder / "draft", (modified, modified))
        (self.folder / "draft").rename(path)
        return path

    def __enter__(self) -> Self:
        self.w = Life(self.folder / "state")
        self.w.sql(WIDE)
        self.w.query("q", SUMS, sink=f"files://{self.folder}/out")
        stream = self.w.engine.streams["s"].stream
        how = {"format": "parquet", **self.options}
        url = FilesUrl(f"{self.folder}/in/**/*.parquet".replace("**/", how.pop("below", "")), **how)
        self.source = FilesSource(cast("Any", None), stream, url)
        self.w._sources["s"] = self.source
        return self

    def __exit__(self, *_: object) -> None:
        self.w.close()

    @property
    def accepted(self) -> int:
        accepted: int = self.w.engine.streams["s"].known.accepted
        return accepted

    def check(self, *numbers: int) -> None:
        """Exactly these batches were read."""
        assert self.accepted == sum(len(BATCHES[number]) for number in numbers)
        self.w.end()
        batches = [BATCHES[number] for number in numbers]
        wide = {"s": (COLUMNS, "WATTR t SLACK 1000")}
        assert rows_in(self.folder / "out", "*.parquet") == oracle(SUMS, batches, wide)


def test_files_that_come_late_with_old_times_are_read(tmp_path: Path) -> None:
    """As copies and files from elsewhere do: in a run that goes on, and across a restart."""
    files = Folder(tmp_path)
    files.write("m.parquet", 0, BEFORE)
    with files:
        files.w.start()
        wait_until(lambda: files.accepted == 3)
        files.write("a.parquet", 1, BEFORE - 1000)
        wait_until(lambda: files.accepted == 6)
        files.w.stop()
    files.write("b.parquet", 2, BEFORE - 2000)
    files.write("m/z.parquet", 3, BEFORE)
    files.options["below"] = "{,m/}"
    with files:
        files.source.fingerprint = files.w.engine.streams["s"].read.fingerprint
        files.w.run(once=True)
        files.check(0, 1, 2, 3)


def test_files_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    files = Folder(tmp_path, files_per_batch=2)
    for name, modified in (("a", 3), ("b", 1), ("c", 2), ("d", 2), ("e", 0)):
        files.write(f"{name}.parquet", 0, BEFORE + modified)
    with files:
        latest = files.source.latest()
        end = files.source.upto({}, latest)
        assert [file.path[-9] for file in latest] == ["e", "b", "c", "d", "a"]
        assert end is not None
        assert [file.path[-9] for file in end.items] == ["e", "b"]
        assert end.has_more


def test_epochs_are_bounded_if_nobody_says_how(tmp_path: Path) -> None:
    """In files and in bytes; one file is always taken."""
    files = Folder(tmp_path)
    for number in range(1002):
        os.link(
            files.write("x.parquet", 0, BEFORE) if not number else tmp_path / "in" / "x.parquet",
            (tmp_path / "in" / f"{number:04}.parquet"),
        )
    with files:
        latest = files.source.latest()
        end = files.source.upto({}, latest)
        assert end is not None
        assert (len(latest), len(end.items), end.has_more) == (1003, 1000, True)
    for size, taken in ((1 << 20, 512), (600 << 20, 1)):
        large = [type(file)(file.path, size, file.modified) for file in latest]
        end = files.source.upto({}, large)
        assert end is not None
        assert len(end.items) == taken


def test_a_listing_without_files_forgets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is away for a while, or cannot be listed, comes back with what was read before."""
    monkeypatch.setattr(loop, "AWAY", 0.01)
    files = Folder(tmp_path)
    files.write("0.parquet", 0, BEFORE)
    with files:
        files.w.start()
        wait_until(lambda: files.accepted == 3)
        (tmp_path / "in").rename(tmp_path / "away")
        wait_until(lambda: files.source.latest() == [])
        listed = listing.list_files

        def fail(*_: Any) -> Any:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(listing, "list_files", fail)
        wait_until(lambda: [error.code for error in files.w.problems] == ["source-away"])
        monkeypatch.setattr(listing, "list_files", listed)
        (tmp_path / "away").rename(tmp_path / "in")
        files.write("1.parquet", 1, BEFORE)
        wait_until(lambda: files.accepted >= 6)
        files.w.stop()
        files.check(0, 1)


def test_what_was_read_is_in_a_chunk_and_in_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of fixed size, some with each commit, put together now and then."""
    files = Folder(tmp_path, files_per_batch=1)
    with files:
        sizes, chunks = [], []
        for number in range(40):
            files.write(f"{number:02}-{'x' * 100}.parquet", number % 3, BEFORE + number)
            files.w.run(once=True)
            manifest = files.w.engine.last
            newest = max((tmp_path / "state" / "commits").glob("*.json"))
            text = newest.read_text()
            assert "x" * 100 not in text
            sizes.append(len(json.dumps(manifest.streams["s"].source.offsets)))
            chunks.append(len(manifest.chunks[KEYS]))
        assert max(sizes) - min(sizes) < 5
        assert max(chunks) < 20
        keys = files.w.engine.keys_of("s")
        assert keys is not None
        assert keys.num_rows == 40
        assert keys.schema.field("key").type == pa.binary(16)


def test_a_copy_of_a_file_that_is_still_there_is_another_file(tmp_path: Path) -> None:
    files = Folder(tmp_path)
    first = files.write("0.parquet", 0, BEFORE)
    with files:
        files.w.run(once=True)
        shutil.copy2(first, first.with_name("1.parquet"))
        files.w.run(once=True)
        assert files.accepted == 6


@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_that_was_read_under_another_name_is_known(tmp_path: Path, restarts: bool) -> None:
    files = Folder(tmp_path)
    path = files.write("0.parquet", 0, BEFORE)
    with files:
        files.w.run(once=True)
        path.rename(path.with_name("9.parquet"))
        if not restarts:
            files.w.run(once=True)
            files.check(0)
    if restarts:
        with files:
            files.w.run(once=True)
            files.check(0)


def test_a_file_that_is_written_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The epoch is made once more, with what the file is then; what else there was comes first."""
    files = Folder(tmp_path)
    files.write("0.parquet", 0, BEFORE)
    files.write("1.parquet", 1, BEFORE + 1)
    tidy, seen = draft.Draft.overlook, list[int]()

    def change(self: Any, *arguments: Any) -> None:
        if not seen:
            files.write("0.parquet", 2, BEFORE)
        seen.append(len(seen))
        tidy(self, *arguments)

    monkeypatch.setattr(draft.Draft, "overlook", change)
    with files:
        files.w.run(once=True)
        files.check(1, 2)
    assert len(seen) > 1


def partly(path: Path, number: int) -> bytes:
    """The first half of a file, whose writer goes on later."""
    sink = pa.BufferOutputStream()
    pq.write_table(table_of(BATCHES[number]), sink)
    whole: bytes = sink.getvalue().to_pybytes()
    path.write_bytes(whole[: len(whole) // 2])
    return whole


@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_whose_end_is_not_written_yet_is_waited_for(tmp_path: Path, is_first: bool) -> None:
    """Also if it is the first, which is to tell the columns; what comes after it is read meanwhile."""
    files, failed = Folder(tmp_path), threading.Event()
    if not is_first:
        files.write("0.parquet", 0, BEFORE)
    with files:
        settled = files.source.is_settled

        def is_settled(end: Any) -> bool:
            found = settled(end)
            failed.set()
            return found

        files.source.is_settled = is_settled  # type: ignore[method-assign]
        files.w.start()
        path = tmp_path / "in" / "1.parquet"
        whole = partly(path, 1)
        assert failed.wait(60)
        files.write("2.parquet", 2, BEFORE + 2)
        path.write_bytes(whole)
        numbers = (1, 2) if is_first else (0, 1, 2)
        wait_until(lambda: files.accepted == sum(len(BATCHES[n]) for n in numbers), files_end(files))
        files.w.stop()
        files.check(*numbers)


def test_a_first_file_that_is_written_while_it_is_opened_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, path = Folder(tmp_path), tmp_path / "in" / "0.parquet"
    whole = partly(path, 0)
    is_whole, asked = files_source._Reader.is_whole, list[str]()

    def written(self: Any, file: Any) -> bool:
        found = is_whole(self, file)
        if not asked:
            path.write_bytes(whole)
        asked.append(file.path)
        return found

    monkeypatch.setattr(files_source._Reader, "is_whole", written)
    with files:
        assert asked
        files.w.run(once=True)
        assert files.accepted == 3


def files_end(files: Folder) -> Any:
    """Why a run has ended, if it has."""
    return lambda: None if files.w.is_running else str(files.w.engine.ended)


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_that_stays_without_an_end_is_told(tmp_path: Path, once: bool, is_first: bool) -> None:
    files = Folder(tmp_path)
    if not is_first:
        files.write("0.parquet", 0, BEFORE)
    partly(tmp_path / "in" / "1.parquet", 1)
    with pytest.raises(SourceError, match="no Parquet file"), files:  # noqa: PT012
        if once:
            files.w.run(once=True)
        else:
            files.w.start()
            files.w.wait(60)


@pytest.mark.parametrize("deadly", [0, 3, 6])
def test_files_before_one_that_workers_die_of_are_read_once(tmp_path: Path, deadly: int) -> None:
    """And those after it, once it is gone: what is halved is what was not read."""
    files, numbers = Folder(tmp_path), [number for number in range(7) if number != deadly]
    for number in range(7):
        files.write(f"{number}.parquet", number, BEFORE + number)
    with files:
        real, rows = files.w.engine.jobs.ingest, table_of(BATCHES[deadly]).to_pylist()

        def ingest(batches: Any, *rest: Any) -> Any:
            if any(rows[0] in batch.frame.table().to_pylist() for batch in batches):
                raise WindrowError("a worker has died", code="worker-died")
            return real(batches, *rest)

        files.w.engine.jobs.ingest = ingest
        with pytest.raises(DataError, match=rf"workers die of file .*/in/{deadly}\.parquet") as told:
            files.w.run(once=True)
        assert told.value.code == "poison-row"
        assert files.accepted == sum(len(BATCHES[number]) for number in range(deadly))
        (tmp_path / "in" / f"{deadly}.parquet").unlink()
        files.w.run(once=True)
        assert files.w.engine.streams["s"].read.offsets["files"] == 6
        files.check(*numbers)


COLUMN_CASES = {
    "as they are": ({"k": [1], "v": [2], "t": [3]}, "x.parquet", None),
    "in another case": ({"K": [1], "V": [2], "t": [3]}, "x.parquet", None),
    "one in the path": ({"v": [2], "t": [3]}, "K=1/x.parquet", None),
    "one absent": ({"k": [1], "t": [3]}, "x.parquet", "v"),
    "one absent, another in the path": ({"t": [3]}, "k=1/x.parquet", "v"),
}


@pytest.mark.parametrize("case", COLUMN_CASES)
@pytest.mark.parametrize("absent", ["fail", "null"])
def test_a_new_file_without_a_column_is_refused(tmp_path: Path, case: str, absent: str) -> None:
    files = Folder(tmp_path, below="{,*/}", absent=absent)
    files.write("0.parquet", 0, BEFORE)
    columns, name, lacking = COLUMN_CASES[case]
    with files:
        files.w.run(once=True)
        path = tmp_path / "in" / name
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table(columns), path)
        latest = files.source.latest()
        start = files.w.engine.streams["s"].read.offsets
        if lacking is None or absent == "null":
            end = files.source.upto(start, latest)
            assert end is not None
            assert [file.path for file in end.items] == [str(path)]
        else:
            with pytest.raises(SourceError, match=f"has no column `{lacking}`") as refused:
                files.source.upto(start, latest)
            assert refused.value.code == "missing-column"
            assert "absent=null" in str(refused.value.hint)
