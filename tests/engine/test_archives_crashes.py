"""A crash between a commit and the update of an archive, or within it: no row is lost, none is doubled."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.archive.support import temporary
from tests.engine.archived import Definition, values_of
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, SUMS
from tests.support.world import World

from windrow.archive.archive import Archive
from windrow.archive.declaration import Declaration
from windrow.archive.layout import SaidOfLayout
from windrow.archive.snapshot import read_archive
from windrow.engine import archives, engine as core
from windrow.engine.show import ArchiveView
from windrow.language.catalog import StandingArchive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.life import Life

JOINED = "SELECT a.k, a.v, b.v AS w FROM s [RANGE 12] a, s [RANGE 9] b WHERE a.k = b.k"
QUERIES = {"joined": JOINED, "sums": SUMS}
KEEP = 45
#: with a period of 1 rows go to the disk at once, with one of 31 they wait
ARCHIVES = (
    StandingArchive("of_s", "s", "v", KEEP, SaidOfLayout((2, 2))),
    StandingArchive("rebuilt", "s", "k", KEEP, SaidOfLayout((1, 3), rebuild=True)),
    StandingArchive("of_joined", "joined", "k", 1000, SaidOfLayout((2, 1))),
    StandingArchive("of_sums", "sums", "k", KEEP, SaidOfLayout((1, 2))),
)
#: what an update of an archive passes
POINTS = (
    "chunk-partly-written",
    "chunk-written",
    "manifest-temp-written",
    "manifest-linked",
    "before-directory-sync",
    "after-directory-sync",
    "sweep-between-removals",
    "sink-delivered",
)


class Kept(World):
    """A world in which everything is archived."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, queries=dict(QUERIES))

    def open(self) -> Life:
        life = super().open()
        for archive in ARCHIVES:
            life.engine.add_archive(archive)
        life.engine.commit()
        return life

    def check(self) -> None:
        """Everything is there, once, and in files."""
        known = Definition(dict(self.queries))
        for batch in BATCHES:
            known.push(list(batch))
        known.end()
        life = self.open()
        engine = life.engine
        engine.deliver()
        found = {name: ArchiveView(engine.archives, name) for name in engine.archives.kept}
        expected = known.rows(KEEP)
        assert values_of(found["of_s"].scan(), "valid_to") == expected
        assert values_of(found["rebuilt"].scan(), "valid_to") == expected
        assert values_of(found["of_sums"].scan(), "valid_to") == known.emitted("sums", KEEP)
        assert values_of(found["of_joined"].scan(), "at", "valid_to") == known.answer("joined")
        folders = set(engine.store.nests("archives"))
        assert folders == {kept.folder for kept in engine.archives.kept.values()}
        life.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    """In memory, where there is such a thing."""
    with temporary() as made:
        yield Path(made)


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps happen all the time, and rows do not wait for long."""
    monkeypatch.setattr(core, "SWEEP_EVERY", 2)
    monkeypatch.setattr(core, "PATIENCE", 0)
    monkeypatch.setattr(core, "KEEP", 2)
    monkeypatch.setattr(archives, "MOST_WAITING", 3)


def test_without_a_crash_archives_have_what_the_oracle_says(directory: Path) -> None:
    world = Kept(directory)
    world.live()
    world.check()


@pytest.mark.part(4)
@pytest.mark.parametrize("passage", [1, 5])
@pytest.mark.parametrize("point", ["owner-linked", "before-commit", "after-commit", "manifest-linked"])
def test_a_crash_around_commits(directory: Path, point: str, passage: int) -> None:
    world = Kept(directory)
    died = world.die(point, passage)
    assert died or passage > 1
    world.live()
    world.check()


@pytest.mark.part(9)
@pytest.mark.parametrize("update", [2, 11])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_within_an_update(
    directory: Path, point: str, update: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Kept(directory)
    with monkeypatch.context() as patched, ExitStack() as ending, suppress(Crash):
        crashes = _crash_in(update, point, patched, ending, world)
        world.live()
    (crash,) = crashes
    assert crash.happened
    world.go_back()
    world.live()
    world.check()


def _crash_in(
    update: int,
    point: str,
    patched: pytest.MonkeyPatch,
    ending: ExitStack,
    world: World,
    verb: str = "update",
) -> list[Any]:
    """From the n-th update of an archive on, the first passage of a point is the end."""
    crashes: list[Any] = []
    calls: Iterator[int] = iter(range(1, 1000))
    do = getattr(Archive, verb)

    def updated(self: Archive, *args: Any, **more: Any) -> Any:
        if next(calls) == update:
            crashes.append(ending.enter_context(crashing_at(point, 1, world.copy)))
        return do(self, *args, **more)

    patched.setattr(Archive, verb, updated)
    return crashes


class Relaid(Kept):
    """A world in which archives are laid out otherwise whenever an engine opens."""

    def open(self) -> Life:
        life = super().open()
        for name in life.engine.archives.kept:
            life.engine.alter_archive(name, SaidOfLayout((3, 2), rebuild=True, allocation="shuffled"))
        life.engine.commit()
        return life

    def check(self) -> None:
        super().check()
        told = [read_archive(path).declaration for path in (self.state / "archives").iterdir()]
        assert len(told) == len(ARCHIVES)
        for each in told:
            assert each == Declaration.of(
                each.key, each.keep, partitions=(3, 2), rebuild=True, allocation="shuffled"
            )


@pytest.mark.part(4)
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_within_a_new_layout(directory: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are there before the layout changes: the first life ends in the midst, the second changes it."""
    Kept(directory).die("before-commit", 5)
    world = Relaid(directory)
    with monkeypatch.context() as patched, ExitStack() as ending, suppress(Crash):
        crashes = _crash_in(1, point, patched, ending, world, "rearrange")
        world.live()
    (crash,) = crashes
    assert crash.happened
    world.go_back()
    world.live()
    world.check()
