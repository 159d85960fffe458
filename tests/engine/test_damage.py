"""A state directory with every kind of file in it, one of which is damaged: it is told, or does no harm.

A first life leaves state, kept rows, output that waits, tables and archives; it ends in order, or in a crash.
One file is then changed, cut off or removed, and a second life goes on. Either it is stopped with our error;
or all it tells, before and after its last rows, is what a life with undamaged files tells.
"""

from __future__ import annotations

import logging
import os
import random
import re
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.archive.support import temporary
from tests.engine.archived import values_of
from tests.support.history import BATCHES, SUMS, rows_in, rows_of
from tests.support.life import Life

from windrow.archive.snapshot import read_archive
from windrow.engine import archives
from windrow.errors import SinkError, StateError
from windrow.state.history import History
from windrow.state.names import ANSWERS, DRIVER, KEPT
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = logging.getLogger(__name__)
FIRST = 4
SCRIPT = f"""
CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t SLACK 3 KEEP 1000;
CREATE TABLE items (k BIGINT, name STRING) NRR;
CREATE QUERY sums AS {SUMS} INTO 'files://OUT/sums';
CREATE QUERY joined AS SELECT a.k, a.v, b.v AS w FROM s [RANGE 30] a, s [RANGE 25] b WHERE a.k = b.k
  INTO 'files://OUT/joined';
CREATE QUERY named AS SELECT ISTREAM(s.k, name, v) FROM s [RANGE 30], items WHERE s.k = items.k
  INTO 'files://OUT/named';
CREATE QUERY kinds AS SELECT DISTINCT k FROM s [RANGE 40];
CREATE ARCHIVE of_s ON s KEY v PARTITIONS 2 x 2 KEEP 30;
CREATE ARCHIVE of_joined ON joined KEY k PARTITIONS 1 x 2 REBUILD KEEP 500
"""
#: more than any archive has: it is answered from what KEEP has kept
ASKED = "SELECT k, v, t FROM s [RANGE 60]"


class Complete(Life):
    """A life with everything that leaves files; `heard` is what its function was called with."""

    def __init__(self, world: Path, *, deaf: bool = False) -> None:
        super().__init__(world / "state")
        self.world, self.deaf = world, deaf
        self.heard: Counter[Any] = Counter()

    def set_up(self) -> Complete:
        """All that is declared."""
        self.sql(SCRIPT.replace("OUT", str(self.world / "out")))
        self.query("told", "SELECT MAX(v) AS most FROM s [RANGE 20 SLIDE 10]", self._hear)
        return self

    def _hear(self, table: Any, commit: int) -> None:
        if self.deaf:
            raise SinkError("nobody listens")
        self.heard.update(rows_of(table))

    def all_told(self) -> dict[str, Any]:
        """Whatever can be asked."""
        answers: dict[str, Any] = {name: values_of(each.scan()) for name, each in self.archives.items()}
        answers["asked"] = sorted(rows_of(self.select(ASKED)))
        answers["kinds"] = sorted(rows_of(self.select("SELECT k FROM kinds")))
        answers["items"] = sorted(rows_of(self.tables["items"].rows()))
        for name in ("sums", "joined", "named"):
            answers[name] = rows_in(self.world / "out" / name)
        return {**answers, "told": Counter(self.heard)}


def first_life(world: Path, ending: str) -> None:
    w = Complete(world, deaf=True).set_up()
    w.update("items", insert=[(1, "one"), (2, "two")])
    w.follow(BATCHES[:2])
    w.update("items", insert=[(3, "three")], delete=[(1, "one")])
    w.follow(BATCHES[:FIRST])
    if ending == "crash":
        w.vanish()
    else:
        with suppress(SinkError):
            w.close()


def second_life(world: Path) -> list[dict[str, Any]]:
    w = Complete(world)
    try:
        w.set_up()
        w.engine.deliver()
        before = w.all_told()
        w.follow(BATCHES)
        w.end()
        after = w.all_told()
        w.close()
        return [before, after]
    except BaseException:
        with suppress(Exception):
            w.vanish()
        raise


@dataclass(frozen=True)
class Left:
    """What a first life has left, where it has to be to go on from it, and what is told then."""

    copy: Path
    world: Path
    expected: list[dict[str, Any]]

    @property
    def files(self) -> dict[str, list[Path]]:
        """The files of the state directory by kind, those of a kind in the order of their names."""
        found: dict[str, list[Path]] = {}
        for path in sorted((self.copy / "state").rglob("*")):
            if path.is_file():
                place = path.relative_to(self.copy)
                found.setdefault(_VARIES.sub("#", str(place)), []).append(place)
        return found

    def begin_again(self) -> None:
        shutil.rmtree(self.world)
        shutil.copytree(self.copy, self.world)

    def goes_on(self, file: Path, damage: str, at: float) -> str:
        """How a second life ends after some damage: with which error, or with what difference."""
        self.begin_again()
        damaged = _damaged((self.world / file).read_bytes(), damage, at)
        (self.world / file).unlink()
        if damaged is not None:
            (self.world / file).write_bytes(damaged)
        try:
            found = second_life(self.world)
        except StateError as error:
            return f"refused: {error.code}" if error.hint else "refused without a way out"
        differs = {
            name for a, b in zip(found, self.expected, strict=True) for name in a if a[name] != b[name]
        }
        return f"wrong: {sorted(differs)}" if differs else "harmless"


_VARIES = re.compile(r"[0-9a-f]{5,}(-\w+)*")
DAMAGES = ("flip", "cut", "remove")
#: parts of a file's length
PLACES = (0.0, 0.3, 0.55, 0.8, 0.999)


def _damaged(data: bytes, damage: str, at: float) -> bytes | None:
    place = min(int(len(data) * at), len(data) - 1)
    match damage:
        case "flip" if data:
            return data[:place] + bytes([data[place] ^ 0x11]) + data[place + 1 :]
        case "cut" | "flip":
            return data[: max(place, 0)]
    return None


@pytest.fixture(scope="module", params=["crash", "in order"])
def left(request: pytest.FixtureRequest) -> Iterator[Left]:
    with temporary() as made, pytest.MonkeyPatch.context() as patch:
        patch.setattr(archives, "MOST_WAITING", 2)
        patch.setattr(os, "fsync", lambda descriptor: None)
        world, copy = Path(made) / "world", Path(made) / "copy"
        first_life(world, request.param)
        shutil.copytree(world, copy)
        yield Left(copy, world, second_life(world))


def test_every_kind_of_file_is_there_and_is_read(left: Left) -> None:
    kinds = set(left.files)
    for part in ("commits", "chunks", "outbox", "owners", "archives"):
        assert any(f"/{part}/" in kind for kind in kinds), part
    assert {Path(kind).suffix for kind in kinds} >= {".json", ".chunk", ".parquet", ""}
    manifest = History(LocalStore(left.copy / "state")).latest()
    assert manifest is not None
    assert manifest.outbox
    assert manifest.chunks.keys() >= {DRIVER, KEPT, ANSWERS, 0, 1}
    told = left.expected[0]
    assert all(told.values())
    assert left.expected[0] != left.expected[1]


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_to_the_newest_file_of_each_kind_is_told_or_harmless(left: Left, damage: str) -> None:
    for number, (kind, files) in enumerate(left.files.items()):
        at = PLACES[number % len(PLACES)]
        ended = left.goes_on(files[-1], damage, at)
        assert not ended.startswith("wrong"), (files[-1], ended)
        if kind.endswith(("commits/#.json", ".parquet")) and damage == "flip":
            assert ended == "refused: damaged", (files[-1], at)
        if kind.endswith("commits/#.json") and damage == "remove":
            assert ended in ("refused: commit-lost", "refused: archive-lost"), files[-1]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_damage_anywhere_is_told_or_harmless(left: Left, draws: st.DataObject) -> None:
    file = draws.draw(st.sampled_from(sorted(path for files in left.files.values() for path in files)))
    damage, at = draws.draw(st.sampled_from(DAMAGES)), draws.draw(st.floats(0, 1))
    ended = left.goes_on(file, damage, at)
    assert not ended.startswith("wrong"), (file, ended)


#: of each of the two endings of a first life; WINDROW_FLIPS=250 takes some minutes
FLIPS = int(os.environ.get("WINDROW_FLIPS", "60"))


@pytest.mark.thorough
def test_bytes_changed_one_by_one_are_told_or_harmless(left: Left) -> None:
    """Files are chosen evenly by kind, since most are chunks; what comes of all is counted."""
    chance, kinds, endings = random.Random(FLIPS), sorted(left.files), Counter[str]()
    for _ in range(FLIPS):
        file = chance.choice(left.files[chance.choice(kinds)])
        ended = left.goes_on(file, "flip", chance.random())
        assert not ended.startswith("wrong"), (file, ended)
        endings[ended] += 1
    LOG.info("%s flips: %s", endings.total(), dict(endings))
    assert endings["refused: damaged"], endings


def test_kept_rows_of_the_same_size_are_not_taken_for_those_that_were_written(left: Left) -> None:
    """Parquet has no checksums of its own: a value that was changed would be read as another."""
    kept = [path for files in left.files.values() for path in files if "-driver-" in path.name]
    newest = [path for path in kept if path.suffix == ".parquet"][-1]
    assert left.goes_on(newest, "flip", 0.1) == "refused: damaged"


def _archive(left: Left, name: str) -> Path:
    left.begin_again()
    return next(iter((left.world / "state" / "archives").glob(f"{name}-*")))


def test_an_archive_behind_the_commit_is_refused_and_can_begin_anew(left: Left) -> None:
    """Also where no note of it is left in the archive itself: the engine's commit tells what it had."""
    archive = _archive(left, "of_s")
    known = History(LocalStore(left.world / "state")).latest()
    assert known is not None
    (archive / "owners" / "lock").unlink()
    for path in (archive / "commits").iterdir():
        if int(path.stem) >= known.decisions["archives"]["of_s"]["commit"]:
            path.unlink()
    with Complete(left.world) as w:
        with pytest.raises(StateError, match=r"archive `of_s` in .* has lost rows") as caught:
            w.set_up()
        assert caught.value.code == "archive-lost"
        assert "w.drop('of_s')" in str(caught.value.hint)
        w.drop("of_s")
        w.set_up()
        w.follow(BATCHES)
        assert values_of(w.archives["of_s"].scan(), "valid_to") == Counter(
            row for batch in BATCHES[FIRST:] for row in batch
        )


def test_an_archive_that_is_gone_is_refused(left: Left) -> None:
    shutil.rmtree(_archive(left, "of_s"))
    with Complete(left.world) as w, pytest.raises(StateError, match="it has no commits"):
        w.set_up()


def test_an_archive_ahead_of_the_commit_tells_that_commits_are_lost(left: Left) -> None:
    archive = _archive(left, "of_s")
    state = left.world / "state"
    (state / "owners" / "lock").unlink()
    reached = read_archive(archive).read.offsets.get("commit")
    assert reached is not None
    for path in (state / "commits").iterdir():
        if int(path.stem) >= reached:
            path.unlink()
    for folder in ("chunks", "outbox"):
        for path in (state / folder).iterdir():
            if int(path.name[:12]) > reached:
                path.unlink()
    with Complete(left.world) as w:
        with pytest.raises(StateError, match=rf"archive `of_s` has rows of commit {reached}") as caught:
            w.set_up()
        assert caught.value.code == "commit-lost"
