"""A crash at any point of a life in which tables change: every change is seen once, at the same instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.support.world import World

from windrow.engine import engine as core, epoch as draft, tables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TABLES = {"items": ("k BIGINT, name STRING", "NRR"), "owners": ("k BIGINT, owner STRING", "RELATION")}
QUERIES = {
    "names": "SELECT ISTREAM(s.k, name, v) FROM s [RANGE 10], items WHERE s.k = items.k",
    "owned": "SELECT owner, SUM(v) AS total FROM s [RANGE 10], items, owners"
    " WHERE s.k = items.k AND s.k = owners.k GROUP BY owner",
}
#: batches of the stream, and whole contents of tables, as files would have them
SCRIPT: tuple[tuple[str, Any], ...] = (
    ("items", [(1, "one"), (2, "two")]),
    ("owners", [(1, "ann"), (2, "bob")]),
    ("s", [(1, 10, 0), (2, 20, 4), (1, 5, 11)]),
    ("owners", [(1, "cyd"), (2, "bob")]),
    ("s", [(2, 7, 16), (3, 1, 12), (1, 2, 25)]),
    ("items", [(1, "one"), (2, "deux"), (3, "three")]),
    ("s", [(3, 9, 26), (2, 4, 31)]),
    ("owners", [(2, "bob"), (3, "cyd")]),
    ("items", [(3, "three"), (2, "deux")]),
    ("s", [(2, 6, 47), (3, 8, 51), (1, 1, 52)]),
    ("owners", []),
    ("s", [(3, 3, 60)]),
)
POINTS = (
    "chunk-partly-written",
    "chunk-written",
    "manifest-linked",
    "before-commit",
    "after-commit",
    "sink-after-rename",
    "sink-delivered",
    "sweep-between-removals",
)


def world_of(folder: Path, instants: Mapping[int, int | None] | None = None) -> World:
    return World(folder, QUERIES, tables=TABLES, script=SCRIPT, sink="files", instants=dict(instants or {}))


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps happen all the time, and histories are added up."""
    monkeypatch.setattr(core, "SWEEP_EVERY", 2)
    monkeypatch.setattr(core, "PATIENCE", 0)
    monkeypatch.setattr(core, "KEEP", 2)
    monkeypatch.setattr(draft, "MOST_WAITING", 3)
    monkeypatch.setattr(tables, "MOST_PARTS", 2)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, int | None], dict[str, Any]]:
    """The instants and answers of a life without a crash, which the oracle confirms."""
    world = world_of(tmp_path_factory.mktemp("undisturbed"))
    world.live()
    world.check()
    answers = {name: world.answers(name) for name in QUERIES}
    assert all(answers.values())
    return world.instants, answers


@pytest.mark.part(9)
@pytest.mark.parametrize("passage", [1, 6])
@pytest.mark.parametrize("point", POINTS)
def test_after_a_crash_every_change_is_seen_once(
    tmp_path: Path, point: str, passage: int, expected: tuple[dict[int, int | None], dict[str, Any]]
) -> None:
    instants, answers = expected
    world = world_of(tmp_path, instants)
    assert world.die(point, passage) or passage > 1
    world.live()
    for name, wanted in answers.items():
        assert world.answers(name) == wanted, name
