"""`files:`: one whole file per commit, whatever happens."""

from __future__ import annotations

import errno
import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sinks.support import (
    HOOKS,
    delivery_of,
    every_type,
    hidden,
    nothing,
    numbers,
    rows_of,
    visible,
)
from tests.sinks.victim import COMMITS, ROWS, deliver, deliver_without_room
from tests.state.processes import run

from windrow.errors import SinkError, StateError
from windrow.sinks import Delivery, open_sink

FORMATS = ("parquet", "csv", "json")


def names(commits: tuple[int, ...], form: str = "parquet", query: str = "top") -> list[str]:
    return [f"{query}-{commit:012d}.{form}" for commit in commits]


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_per_commit_and_repetitions_change_nothing(tmp_path: Path, form: str) -> None:
    sink = open_sink(f"files://{tmp_path}/a/b?format={form}", "top")
    for commit in (1, 2):
        sink.deliver(delivery_of(numbers(commit), commit))
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "a/b").iterdir()}
    sink.deliver(delivery_of(numbers(2), 2, cut=1))
    sink.close()
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "a/b").iterdir()}
    assert before == after
    assert visible(tmp_path / "a/b") == names((1, 2), form)
    assert hidden(tmp_path / "a/b") == []


@pytest.mark.parametrize("point", HOOKS)
def test_an_engine_that_was_overtaken_in_the_middle(tmp_path: Path, point: str) -> None:
    """It falls asleep at some point of a delivery; the next owner delivers all, and it wakes up."""
    url, asleep = f"files://{tmp_path}", []

    def overtaken(now: str) -> None:
        if now == point and not asleep:
            asleep.append(now)
            new = open_sink(url, "top")
            for commit in (1, 2):
                new.deliver(delivery_of(numbers(commit), commit))

    with suppress(SinkError):  # what it was writing may have been cleared away
        open_sink(url, "top", hook=overtaken).deliver(delivery_of(numbers(1), 1))
    assert asleep
    assert visible(tmp_path) == names((1, 2))
    for commit, path in enumerate(sorted(tmp_path.iterdir()), 1):
        assert pq.ParquetFile(path).read().equals(numbers(commit))


def test_parquet_keeps_every_type(tmp_path: Path) -> None:
    open_sink(f"files://{tmp_path}", "top").deliver(delivery_of(every_type()))
    (path,) = tmp_path.iterdir()
    found = pq.ParquetFile(path).read()
    assert found.schema.equals(every_type().schema)
    assert rows_of(found) == rows_of(every_type())


@pytest.mark.parametrize("form", ["csv", "json"])
def test_text_files_have_a_line_per_row(tmp_path: Path, form: str) -> None:
    open_sink(f"files://{tmp_path}?format={form}", "top").deliver(delivery_of(numbers(1)))
    (path,) = tmp_path.iterdir()
    text = path.read_text()
    assert text.endswith("\n")
    if form == "csv":
        assert text == '"at","k"\n10,"key 10"\n11,"key 11"\n12,"key 12"\n'
    else:
        assert [json.loads(line) for line in text.splitlines()] == numbers(1).to_pylist()


def test_names_are_in_the_order_of_commits(tmp_path: Path) -> None:
    sink = open_sink(f"files://{tmp_path}?format=csv", "top")
    for commit in (9, 10, 11, 100):
        sink.deliver(delivery_of(numbers(commit, 1), commit))
    assert visible(tmp_path) == names((9, 10, 11, 100), "csv")


def test_several_queries_in_one_directory(tmp_path: Path) -> None:
    queries = ("top", "top-000000000001", "../up", "naïve Ω", ".hidden")
    for query in queries:
        sink = open_sink(f"files://{tmp_path}/out", query)
        sink.deliver(delivery_of(numbers(1), 1, query))
    assert len(visible(tmp_path / "out")) == len(queries)
    assert visible(tmp_path) == ["out"]


def test_nothing_writes_nothing(tmp_path: Path) -> None:
    open_sink(f"files://{tmp_path}", "top").deliver(nothing())
    assert list(tmp_path.iterdir()) == []


def test_a_relative_place_is_one_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_sink("files:out/new", "top").deliver(delivery_of(numbers(1), 1))
    assert visible(tmp_path / "out/new") == names((1,))


@pytest.mark.part(10)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("point", [*HOOKS, "among-rows"])
def test_killed_at_any_point_and_repeated(tmp_path: Path, point: str, form: str) -> None:
    url = f"files://{tmp_path}?format={form}"
    assert run(deliver, url, 1, point, 2 if point in HOOKS else 1) == -signal.SIGKILL
    killed = 1 if point == "among-rows" else 2
    whole = visible(tmp_path)
    assert whole in (names(COMMITS[: killed - 1], form), names(COMMITS[:killed], form))
    bytes_before = {name: Path(tmp_path, name).read_bytes() for name in whole}
    assert run(deliver, url, killed) == 0
    assert visible(tmp_path) == names(COMMITS, form)
    assert hidden(tmp_path) == []
    assert bytes_before.items() <= {path.name: path.read_bytes() for path in tmp_path.iterdir()}.items()
    if form == "parquet":
        read = [pq.ParquetFile(Path(tmp_path, name)).read() for name in visible(tmp_path)]
        assert pa.concat_tables(read).equals(pa.concat_tables([numbers(c, ROWS) for c in COMMITS]))


def test_only_own_temporary_files_are_cleared(tmp_path: Path) -> None:
    own = ".top-000000000003.parquet.0123456789abcdef.tmp"
    others = [".top2-000000000003.parquet.0123456789abcdef.tmp", ".top-1.tmp", "x.tmp"]
    for name in (own, *others):
        Path(tmp_path, name).touch()
    open_sink(f"files://{tmp_path}", "top")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


# ------------------------------------------------------------------ what goes wrong


def failure(sink_url: str, delivery: Delivery) -> SinkError:
    with pytest.raises(SinkError) as caught:
        open_sink(sink_url, "top").deliver(delivery)
    assert caught.value.hint
    return caught.value


def test_other_rows_under_the_same_number_are_not_overwritten(tmp_path: Path) -> None:
    """A new state in an old directory: to skip would lose rows, to overwrite would mix two lives."""
    for form in FORMATS:
        url = f"files://{tmp_path}?format={form}"
        open_sink(url, "top").deliver(delivery_of(numbers(1), 1))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        error = failure(url, delivery_of(numbers(2), 1))
        assert error.code == "place-taken"
        assert "other rows than commit 1 of `top`" in error.message
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_repetition_by_another_version_of_the_writer_is_known(tmp_path: Path) -> None:
    path = tmp_path / names((1,))[0]
    pq.write_table(every_type(), path, compression="zstd", row_group_size=1)
    before = path.read_bytes()
    open_sink(f"files://{tmp_path}", "top").deliver(delivery_of(every_type(), 1))
    assert path.read_bytes() == before
    longer = pa.concat_tables([every_type(), every_type()])
    assert failure(f"files://{tmp_path}", delivery_of(longer, 1)).code == "place-taken"
    path.write_bytes(b"not Parquet")
    assert failure(f"files://{tmp_path}", delivery_of(every_type(), 1)).code == "place-taken"


def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    assert failure(f"files://{tmp_path}/out", nothing()).code == "place-taken"
    assert failure(f"files://{tmp_path}/out/deeper", nothing()).code == "place-taken"


def test_a_directory_where_the_file_should_be(tmp_path: Path) -> None:
    (tmp_path / names((1,))[0]).mkdir()
    error = failure(f"files://{tmp_path}", delivery_of(numbers(1), 1))
    assert "it is a directory" in error.message
    assert hidden(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.ENOSPC, "disk-full"), (errno.EACCES, "permission-denied"), (errno.EIO, "file-system")],
)
def test_after_an_error_of_the_disk_the_rows_are_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    sink = open_sink(f"files://{tmp_path}", "top")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fail)
        with pytest.raises(SinkError) as caught:
            sink.deliver(delivery_of(numbers(1), 1))
    assert caught.value.code == code
    assert str(tmp_path) in caught.value.message
    assert list(tmp_path.iterdir()) == []
    sink.deliver(delivery_of(numbers(1), 1))
    assert visible(tmp_path) == names((1,))


@pytest.mark.parametrize("form", FORMATS)
def test_no_room_for_the_file(tmp_path: Path, form: str) -> None:
    out = tmp_path / "top"
    assert run(deliver_without_room, f"files://{out}?format={form}") == 7
    assert visible(out) == names((1,), form)
    assert hidden(out) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert failure(f"files://{tmp_path}/out", nothing()).code == "permission-denied"


def test_a_directory_that_was_removed(tmp_path: Path) -> None:
    sink = open_sink(f"files://{tmp_path}/out", "top")
    (tmp_path / "out").rmdir()
    with pytest.raises(SinkError, match="does not exist any more"):
        sink.deliver(delivery_of(numbers(1)))


def test_long_names_are_told_apart_and_not_too_long(tmp_path: Path) -> None:
    for name in ("q" * 250, "q" * 251, "Top", "top"):
        open_sink(f"files://{tmp_path}", name).deliver(delivery_of(numbers(1)))
    written = sorted(path.name for path in tmp_path.iterdir())
    assert [name.partition(".")[0][:3] for name in written] == ["qqq", "qqq", "top", "top"]
    assert len({name.lower() for name in written}) == 4


def test_an_error_of_the_rows_is_not_taken_for_one_of_the_sink(tmp_path: Path) -> None:
    error = StateError("a chunk is damaged")

    def tables():  # type: ignore[no-untyped-def]
        yield numbers(1)
        raise error

    with pytest.raises(StateError) as caught:
        open_sink(f"files://{tmp_path}", "top").deliver(Delivery("top", 1, numbers(1).schema, tables))
    assert caught.value is error
    assert list(tmp_path.iterdir()) == []
