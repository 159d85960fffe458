"""Names of every kind, however hostile: nothing is written or removed outside, and answers are right.

A stream called `../../x` is a stream like any other. A life declares, runs, restarts and drops with such
names for everything that has one, among canaries that lie wherever a name, taken for a path, would lead.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from hypothesis import example, given, settings, strategies as st
from tests.support.history import BATCHES, COLUMNS, COUNTS, SCHEMA, SUMS, rows_in, rows_of
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.errors import QueryError, StateError
from windrow.spark.sources.source import Begun, Position, Source
from windrow.state.names import file_name
from windrow.state.store import remove_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

#: stands for a directory outside, by its absolute path
ABSOLUTE = "<absolute>"
HOSTILE = (
    ABSOLUTE,
    ".",
    "..",
    "../../x",
    "../commits",
    "../archives",
    "a/b",
    "/",
    "~",
    ".hidden",
    "-rf",
    "%2e%2e%2f",
    "Calm ",
    "late rows of s",
    "archived rows of s",
    "s@1",
    "index",
    "#pack",
    "con",
    "a\u0301",  # two spellings of one letter
    "\u00e1",
    "\u2028",
    "``",
    "'; DROP",
    "[RANGE",
    "x" * 300,
    "\U0001f600" * 80,
)
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=40
)
#: a stream, a query, a table, an archive, and a query whose answers are rows of a Delta table
FIVE = st.lists(NAMES, min_size=5, max_size=5, unique_by=str.lower).filter(
    lambda names: "calm" not in map(str.lower, names)
)


class _Noting(Source):
    """In the place of a streaming frame: notes in a checkpoint, and no rows."""

    fingerprint = "script"

    def begin(self, begun: Begun) -> None:
        (begun.folder / "commits").mkdir(parents=True, exist_ok=True)
        (begun.folder / "commits" / "0").write_text("v1")

    def latest(self) -> None: ...

    def upto(self, start: Position, latest: Any) -> None: ...

    def is_over(self) -> bool:
        return True


class Place:
    """One place on the disk with a state directory deep inside, and canaries around it."""

    def __init__(self, root: Path, names: Sequence[str]) -> None:
        self.root, self.state, self.out = root, root / "a" / "b" / "state", root / "out"
        self.out.mkdir()
        self.state.parent.mkdir(parents=True)
        outside = root / "outside"
        self.names = [str(outside) if name == ABSOLUTE else name for name in names]
        self.stream, self.query, self.table, self.archive, self.delta = self.names
        for name in self.names:
            for folder in ("checkpoints", "archives", "chunks", "tmp", "."):
                self._canary(Path(os.path.normpath(self.state / folder / name)))
            self._canary(Path(os.path.normpath(self.out / name)))
        self.before = self.around()

    def _canary(self, place: Path) -> None:
        inside = place.is_relative_to(self.state) or place.is_relative_to(self.out)
        fits = all(len(os.fsencode(part)) < 200 for part in place.parts)
        if place.is_relative_to(self.root) and not inside and place != self.root and fits:
            place.mkdir(parents=True, exist_ok=True)
            (place / "canary").write_text("alive")

    def around(self) -> dict[str, bytes | None]:
        """Everything outside the state directory and the sinks' one."""
        found = [path for path in self.root.rglob("*") if not path.is_relative_to(self.out)]
        return {
            str(path): path.read_bytes() if path.is_file() else None
            for path in found
            if not path.is_relative_to(self.state)
        }

    def open(self) -> Life:
        w = Life(self.state)
        quoted = ["`" + name.replace("`", "``") + "`" for name in self.names]
        stream, query, table, archive, delta = quoted
        w.sql(f"CREATE STREAM calm ({COLUMNS}) WATTR t SLACK 3")
        w.sql(
            f"CREATE STREAM {stream} ({COLUMNS}) WATTR t SLACK 3 LATE TO 'files://{self.out}' KEEP 1000;"
            f"CREATE TABLE {table} (k BIGINT, label STRING, KEY (k)) RELATION;"
            f"CREATE QUERY {query} AS {SUMS.replace('FROM s', f'FROM {stream}')} INTO 'files://{self.out}';"
            f"CREATE QUERY {delta} AS {COUNTS.replace('FROM s', f'FROM {stream}')}"
            f" INTO 'delta://{self.out}/delta';"
            f"CREATE ARCHIVE {archive} ON {stream} KEY k KEEP 1000"
        )
        w._sources = {"calm": _Noting(), self.stream: _Noting()}
        w.run(once=True)
        return w

    def written(self, name: str) -> Counter[Any]:
        """The rows that a sink has written for a query."""
        return rows_in(self.out, f"{file_name(name)}-[0-9]*.parquet")


def _lived(root: Path, names: Sequence[str]) -> None:
    life = Place(root, names)
    accepted = sum(map(len, BATCHES)) - 1
    first = life.open()
    first.update(life.table, insert=[(1, "one")])
    for number, batch in enumerate(BATCHES[:4]):
        first.push(*batch, stream=life.stream, number=number)
    first.close()
    w = life.open()
    for number, batch in enumerate(BATCHES[4:], start=4):
        w.push(*batch, stream=life.stream, number=number)
    w._engine.epoch(seals=[life.stream])
    w._engine.deliver()
    assert life.written(life.query) == oracle(SUMS)
    assert Counter(rows_of(DeltaTable(f"{life.out}/delta").to_pyarrow_table())) == oracle(COUNTS)
    assert life.written(f"late_{life.stream}") == Counter([(2, 100, 3)])
    assert len(w.archives[life.archive]) == accepted
    assert rows_of(w.tables[life.table].rows()) == [(1, "one")]
    for kind, name in zip(("ARCHIVE", "QUERY", "QUERY", "TABLE", "STREAM"), _to_drop(life), strict=True):
        w.sql(f"DROP {kind} {name}")
    assert [path.name for path in (life.state / "checkpoints").iterdir()] == ["calm"]
    assert list((life.state / "archives").iterdir()) == []
    for path in life.state.rglob("*"):
        if "checkpoints" not in path.parts:  # what Spark writes has its modes, in a folder that is closed
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    w.close()
    assert life.around() == life.before
    Life(life.state).close()


def _to_drop(life: Place) -> list[str]:
    names = life.archive, life.query, life.delta, life.table, life.stream
    return ["`" + name.replace("`", "``") + "`" for name in names]


@settings(max_examples=6)
@given(FIVE)
@example(["../../x", ".", "..", ABSOLUTE, "/"])
@example([ABSOLUTE, "../commits", "../../x", "..", "."])
@example([".", "x" * 300, "\U0001f600" * 80, "../archives", "\u2028"])
@example(["..", "late rows of ..", "archived rows of ..", "a/b", "../../x"])
@example(
    ["x@3", "late rows of x", "archived rows of x", "/", "'\"; DROP"]
)  # as the engine called late rows itself once
def test_no_name_leads_outside(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)  # no power cuts here, but many files
        _lived(tmp_path_factory.mktemp("names"), names)


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\x1b[2J", "\x1flate rows of s", "\x85", "\ud800"])
@pytest.mark.parametrize("kind", ["stream", "query", "table"])
def test_names_that_nobody_can_read_are_refused(tmp_path: Path, kind: str, name: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t SLACK 3")
        rows = SCHEMA.empty_table()
        declare = {
            "stream": lambda: w.stream(name, rows, wattr="t"),
            "query": lambda: w.query(name, SUMS),
            "table": lambda: w.table(name, rows),
        }
        with pytest.raises(QueryError) as caught:
            declare[kind]()
        assert caught.value.hint
        assert name not in caught.value.message or not name
        assert not w.queries
        assert list(w.streams) == ["s"]


@given(st.lists(st.text(max_size=100) | st.sampled_from(HOSTILE), min_size=2, max_size=2, unique=True))
def test_names_of_files_are_one_part_of_a_path_and_differ(names: list[str]) -> None:
    one, other = map(file_name, names)
    assert one.lower() != other.lower()
    for made in (one, other):
        assert made.isascii()
        assert len(made) <= 80
        assert Path("folder", made).name == made
        assert made[0] not in "._-"


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "canary").write_text("alive")
    (root / "link").symlink_to(outside)
    remove_folder(root, "link")
    assert list(root.iterdir()) == []
    for name in (".", "..", "../outside", str(outside), "", "a/../../outside"):
        with pytest.raises(StateError):
            remove_folder(root, name)
    assert (outside / "canary").read_text() == "alive"
