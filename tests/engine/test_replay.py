"""Spark's log against the engine's: which batch is next, and which files are in it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from windrow.errors import StateError
from windrow.spark.streaming import FILES_KEPT, MicroBatch, StreamFeed, next_read
from windrow.state.entries import SourceFile, SourceState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

READ = SourceState("id", 4, "files")


def batch(number: int, query_id: str = "id", files: Sequence[SourceFile] = ()) -> MicroBatch:
    frame: Any = None
    return MicroBatch("s", frame, query_id, number, lambda: tuple(files))


def test_the_next_batch_is_taken_and_the_last_one_skipped() -> None:
    after = next_read("s", READ, batch(5), "files")
    assert after is not None
    assert after.last_batch == 5
    assert next_read("s", READ, batch(4), "files") is None


@pytest.mark.parametrize(
    ("read", "found", "code"),
    [
        (READ, batch(6), "checkpoint-mismatch"),
        (READ, batch(3), "checkpoint-mismatch"),
        (READ, batch(0, "another"), "checkpoint-lost"),
        (SourceState(), batch(2), "checkpoint-mismatch"),
    ],
)
def test_any_other_batch_is_refused(read: SourceState, found: MicroBatch, code: str) -> None:
    with pytest.raises(StateError) as refused:
        next_read("s", read, found, "files")
    assert refused.value.code == code
    assert "restore" in str(refused.value.hint)


def test_only_the_files_read_last_are_remembered() -> None:
    many = [SourceFile(str(number), 1, 1) for number in range(FILES_KEPT)]
    after = next_read("s", READ, batch(5, files=many), "files")
    assert after is not None
    after = next_read("s", after, batch(6, files=[SourceFile("last", 1, 1)]), "files")
    assert after is not None
    assert [file.path for file in after.files] == [str(number) for number in range(1, FILES_KEPT)] + ["last"]


@pytest.fixture
def feed(tmp_path: Path) -> StreamFeed:
    """A checkpoint as Spark leaves it when it died between finding files and planning their batch: batch 1
    takes in the files of two announcements."""
    (tmp_path / "in").mkdir()
    for folder in ("offsets", "sources/0"):
        (tmp_path / "checkpoint" / folder).mkdir(parents=True)
    for number, offset in enumerate((0, 2, 3)):
        text = f'v1\n{{"batchWatermarkMs":0}}\n{{"logOffset":{offset}}}'
        (tmp_path / "checkpoint" / "offsets" / str(number)).write_text(text)
        (tmp_path / "checkpoint" / "offsets" / f".{number}.crc").write_text("")
    lines = []
    for number in range(4):
        path = tmp_path / "in" / str(number)
        path.write_text("row\n")
        entry = {"path": path.as_uri(), "timestamp": path.stat().st_mtime_ns // 10**6, "batchId": number}
        lines.append(json.dumps(entry))
        name, text = (f"{number}.compact", "\n".join(lines)) if number == 2 else (str(number), lines[-1])
        (tmp_path / "checkpoint" / "sources" / "0" / name).write_text(f"v1\n{text}")
    source: Any = SimpleNamespace(is_files=True)
    return StreamFeed("s", source, tmp_path / "checkpoint", lambda _: None)


def test_a_batch_may_hold_the_files_of_two_announcements(feed: StreamFeed) -> None:
    names = [[file.path.rpartition("/")[2] for file in feed._files(number)] for number in range(3)]
    assert names == [["0"], ["1", "2"], ["3"]]


def test_a_plan_that_is_forgotten_leaves_what_was_committed(feed: StreamFeed) -> None:
    feed.forget_plan(1)
    assert sorted(path.name for path in (feed.checkpoint / "offsets").iterdir()) == [
        *(".0.crc", ".1.crc"),
        *("0", "1"),
    ]
    assert sorted(path.name for path in (feed.checkpoint / "sources" / "0").iterdir()) == [
        "0",
        "1",
        "2.compact",
    ]


def test_a_plan_without_any_commit_is_forgotten_whole(feed: StreamFeed) -> None:
    feed.forget_plan(None)
    assert list((feed.checkpoint / "offsets").iterdir()) == []
    assert list((feed.checkpoint / "sources" / "0").iterdir()) == []
