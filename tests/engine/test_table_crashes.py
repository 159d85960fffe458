"""A crash at any point of a life in which tables change: every change is seen once, at the same instant."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.engine.driven import Driven
from tests.engine.world import COLUMNS, OPTIONS, rows_of
from tests.support.crashes import Crash, crashing_at

from windrow.engine import engine as core
from windrow.engine import epoch as draft
from windrow.engine import history
from windrow.engine.tables import TableUpdate
from windrow.state.manifest import SourceState
from windrow.testing import Harness

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


@dataclass
class TableWorld:
    """Everything outside of one process: a script, and what is on the disk."""

    folder: Path
    instants: dict[int, int | None] = field(default_factory=dict)

    def live(self) -> None:
        """Go on with the script where the state is, to its end."""
        w = Driven(self.folder / "now" / "state")
        try:
            w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS}")
            for name, (columns, kind) in TABLES.items():
                w.sql(f"CREATE TABLE {name} ({columns}) {kind}")
            for name, text in QUERIES.items():
                w.query(name, text, sink=f"files://{self.folder}/now/{name}")
            w.engine.deliver()
            for number in range(self._done(w), len(SCRIPT)):
                self._step(w, number, *SCRIPT[number])
            w.end()
        finally:
            w.close()

    def _done(self, w: Driven) -> int:
        """How many steps the state holds."""
        batch = w.engine.streams["s"].read.offsets.get("batch")
        tables = [table.read.fingerprint for table in w.engine.tables.values()]
        return max([-1 if batch is None else batch, *(int(known) for known in tables if known)]) + 1

    def _step(self, w: Driven, number: int, name: str, rows: Any) -> None:
        if name == "s":
            w.push(*rows, number=number)
        else:
            w.engine.change([TableUpdate(name, content=rows, read=SourceState(fingerprint=str(number)))])
            at = w.tables[name].changed
            assert self.instants.setdefault(number, at) == at, (
                "another instant than in a life without a crash"
            )

    def die(self, point: str, passage: int) -> bool:
        """A life that ends at a crash point; whether it came so far."""
        with crashing_at(point, passage, self._copy) as crash, suppress(Crash):
            self.live()
        if crash.happened:
            shutil.rmtree(self.folder / "now")
            (self.folder / "then").rename(self.folder / "now")
        return crash.happened

    def _copy(self) -> None:
        shutil.copytree(self.folder / "now", self.folder / "then")

    def answers(self, name: str) -> Counter[Any]:
        files = (self.folder / "now" / name).glob("*.parquet")
        return Counter(row for path in files for row in rows_of(pq.read_table(path)))


def oracle(name: str, instants: dict[int, int | None]) -> Counter[Any]:
    """What a query answers, from scratch: contents as differences, at the instants the engine chose."""
    tables = {table: how for table, how in TABLES.items() if table in QUERIES[name]}
    harness = Harness(QUERIES[name], {"s": (COLUMNS, OPTIONS)}, tables)
    held: dict[str, Counter[Any]] = {table: Counter() for table in TABLES}
    for number, (verb, rows) in enumerate(SCRIPT):
        if verb == "s":
            harness.push("s", rows)
            continue
        now, before = Counter(rows), held[verb]
        at = instants[number]
        if verb in tables:
            new, gone = list((now - before).elements()), list((before - now).elements())
            harness.update(verb, -1000 if at is None else at, insert=new, delete=gone)
        held[verb] = now
    harness.finish()
    op = harness.plan.emits_deletions
    return Counter((change.at, *([change.op] if op else []), *change.row) for change in harness.take())


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps happen all the time, and histories are added up."""
    monkeypatch.setattr(core, "SWEEP_EVERY", 2)
    monkeypatch.setattr(core, "PATIENCE", 0)
    monkeypatch.setattr(core, "KEEP", 2)
    monkeypatch.setattr(draft, "MOST_WAITING", 3)
    monkeypatch.setattr(history, "MOST_PARTS", 2)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[int, int | None], dict[str, Any]]:
    """The instants and answers of a life without a crash, which the oracle confirms."""
    world = TableWorld(tmp_path_factory.mktemp("undisturbed"))
    world.live()
    answers = {name: world.answers(name) for name in QUERIES}
    for name, found in answers.items():
        assert found == oracle(name, world.instants)
        assert found
    return world.instants, answers


@pytest.mark.part(9)
@pytest.mark.parametrize("passage", [1, 6])
@pytest.mark.parametrize("point", POINTS)
def test_after_a_crash_every_change_is_seen_once(
    tmp_path: Path, point: str, passage: int, expected: tuple[dict[int, int | None], dict[str, Any]]
) -> None:
    instants, answers = expected
    world = TableWorld(tmp_path, dict(instants))
    assert world.die(point, passage) or passage > 1
    world.live()
    for name, wanted in answers.items():
        assert world.answers(name) == wanted, name
