"""What a loaded engine really does, written down as a history, and judged by its serialisation graph.

Readers in several threads ask for a window that slides as fast as epochs go, while standing queries and an
archive are kept up. Of each read the recorder has the operations, and the answer says which sub-windows are
in it. `WINDROW_READS` is how many reads are judged: 10,000 take some minutes.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support.history import SCHEMA, rows_of

from benchmarks.theory.isolation.graph import SerialisationGraph
from benchmarks.theory.isolation.history import History
from benchmarks.theory.isolation.levels import (
    is_commit_order_preserving,
    is_latest_window_serialisable,
    is_serialisable,
    is_window_serialisable,
)
from benchmarks.theory.isolation.operations import Read, Write
from benchmarks.theory.isolation.recorder import RecordedLog, RecordedReader, Recorder
from windrow.archive.snapshot import SNAPSHOT, UNDOING
from windrow.engine.adhoc import select
from windrow.engine.adhoc.question import Question
from windrow.engine.adhoc.select import Asker, SelectWatch, SubWindowCache, Turns
from windrow.engine.declarations import register
from windrow.engine.engine import Arrival, Engine, WatermarkAdvance
from windrow.execution.local import HereJobs
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_once, compile_script
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from windrow.engine.adhoc.access_paths import SubWindow

READS = int(os.environ.get("WINDROW_READS", "80"))
READERS = 4
#: seconds between epochs: none, unless so much is read that readers should come to their turn
PAUSE = 0.0 if READS < 1000 else 0.2
#: sub-windows of the window, their length, and how many rows each has
N, STEP, ROWS = 6, 10, 5
LEVELS = {"LATEST": is_latest_window_serialisable, "WINDOW": is_window_serialisable}
SCRIPT = f"""
CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED KEEP {3 * N * STEP};
CREATE QUERY sums AS SELECT k, SUM(v) AS total FROM s [RANGE {N * STEP} SLIDE {STEP}] GROUP BY k;
CREATE QUERY pairs AS SELECT a.k, b.v FROM s [RANGE {STEP}] a, s [RANGE {STEP}] b WHERE a.k = b.v;
CREATE ARCHIVE past ON s KEY k KEEP {N * STEP};
"""
ASKED = f"SELECT t DIV {STEP} AS version, COUNT(*) AS n FROM s [RANGE {N * STEP}] GROUP BY t DIV {STEP}"


class Loaded:
    """An engine with a window of N full sub-windows that slides by one with every update."""

    def __init__(self, folder: Path) -> None:
        self.recorder = Recorder(N, STEP, "t", lambda manifest: _version(manifest))
        log: Any = type("Log", (RecordedLog,), {"recorder": self.recorder})
        self.engine = Engine(HereJobs(), log.open(LocalStore(folder)), shards=1, now=lambda: 0)
        self.catalog = Catalog()
        for statement in compile_script(SCRIPT, self.catalog):
            register(self.engine, statement)
        self.engine.commit()
        self.slid = threading.Condition()
        for _ in range(N):
            self.slide()

    def slide(self) -> None:
        """The next sub-window, as an epoch."""
        begin = (self.recorder.latest + 1) * STEP
        rows = [{"k": at % 3, "v": at % 4, "t": begin + 2 * at} for at in range(ROWS)]
        table: Any = pa.Table.from_pylist(rows, schema=SCHEMA)
        self.engine.epoch([Arrival("s", table)], [WatermarkAdvance("s", begin + STEP)])
        with self.slid:
            self.slid.notify_all()

    def wait(self, version: int) -> None:
        """Until the window has slid on."""
        with self.slid:
            self.slid.wait_for(lambda: self.recorder.latest > version)


def _version(manifest: Any) -> int:
    return int(manifest.streams["s"].accepted) // ROWS - 1 if "s" in manifest.streams else -1


class Slow(SubWindowCache):
    """Waits in the midst of some reads until the window has slid."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self._loaded, self._calls = loaded, 0

    def get(self, part: SubWindow) -> pl.DataFrame:
        found = super().get(part)
        self._calls += 1
        if self._calls % max(17, READS // 8) == 0:
            self._loaded.wait(self._loaded.recorder.latest)
        return found


@pytest.fixture(autouse=True)
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "Reader", RecordedReader)


def judged(history: History, level: str) -> dict[str, bool]:
    """What the checker says, by definition and by the theorems on the graph."""
    graph = SerialisationGraph.of(history)
    return {
        "serialisable": is_serialisable(history),
        "by definition": LEVELS[level](history),
        "by theorem": graph.shows_all_updates if level == "LATEST" else graph.keeps_windows_whole,
    }


@pytest.mark.thorough
@pytest.mark.parametrize("level", LEVELS)
def test_what_a_loaded_engine_does_is_on_the_level_that_is_asked_for(tmp_path: Path, level: str) -> None:
    loaded = Loaded(tmp_path)
    once = compile_once(f"{ASKED} WITH ISOLATION {level}", loaded.catalog)
    asker = Asker(loaded.engine.log, turns=Turns(places=2), memory=Slow(loaded))
    answers: list[list[tuple[int, int]]] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def run(task: Any) -> None:
        try:
            task()
        except BaseException as error:  # noqa: BLE001  raised again below
            failures.append(error)
            stop.set()

    def ask() -> None:
        for _ in range(READS // READERS):
            if not stop.is_set():
                answers.append(sorted(rows_of(asker.ask(once, {}))))

    def slide() -> None:
        while not stop.wait(PAUSE):
            loaded.slide()

    sliding = threading.Thread(target=run, args=(slide,))
    readers = [threading.Thread(target=run, args=(ask,)) for _ in range(READERS)]
    for thread in (sliding, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    sliding.join()
    loaded.engine.close()
    assert not failures, failures[0]
    history = loaded.recorder.history
    assert judged(history, level) == {"serialisable": True, "by definition": True, "by theorem": True}
    assert level != "LATEST" or is_commit_order_preserving(history)  # Theorem 7.5
    # what was recorded is what was answered: N whole sub-windows each
    assert len(answers) == len(history.answers) == READS // READERS * READERS
    expected = sorted([(version, ROWS) for version in answer.versions] for answer in history.answers)
    assert sorted(answers) == expected
    assert {len(answer) for answer in answers} == {N}
    writes = [at for at, each in enumerate(history.operations) if isinstance(each, Write)]
    assert any(answer.begin < at < answer.end for answer in history.answers for at in writes)


class Meanwhile(SubWindowCache):
    """The window slides after so many parts of every read."""

    def __init__(self, loaded: Loaded, after: int) -> None:
        super().__init__()
        self._loaded, self._after, self._calls = loaded, after, 0

    def get(self, part: SubWindow) -> pl.DataFrame:
        found = super().get(part)
        self._calls += 1
        if self._calls == self._after:
            self._loaded.slide()
        return found


def test_without_the_look_for_a_newer_commit_the_checker_finds_old_windows(tmp_path: Path) -> None:
    """The guard of LATEST: who reads looks again before it is done."""
    for policy, is_latest in ((UNDOING, True), (SNAPSHOT, False)):
        loaded = Loaded(tmp_path / policy.name)
        once = compile_once(f"{ASKED} WITH ISOLATION LATEST", loaded.catalog)
        Asker(loaded.engine.log, memory=Meanwhile(loaded, 3)).ask(once, {}, policy=policy)
        history = loaded.recorder.history
        found = judged(history, "LATEST")
        assert (found["by definition"], found["by theorem"]) == (is_latest, is_latest), str(history)
        assert judged(history, "WINDOW")["by definition"]
        loaded.engine.close()


def test_without_one_commit_for_all_parts_the_checker_finds_torn_windows(tmp_path: Path) -> None:
    """The guard of WINDOW: all parts are those of one commit, however long it takes to read them."""
    loaded = Loaded(tmp_path)
    log, recorder = loaded.engine.log, loaded.recorder
    once = compile_once(ASKED, loaded.catalog)
    question, memory = Question(once, {}, log), Meanwhile(loaded, 99)

    def parts() -> list[SubWindow]:
        """As the newest commit has them, the oldest first."""
        return sorted(question.at(log.last).parts, key=lambda part: part.ends)

    with log.reader(), recorder.query(SNAPSHOT):
        first = parts()
        recorder.read(first[0].name, memory.get(first[0]))
        loaded.slide()
        loaded.slide()
        for part in parts()[1:]:  # the second of what is there now: two sub-windows were left out
            recorder.read(part.name, memory.get(part))
    found = judged(recorder.history, "WINDOW")
    assert not found["by definition"], str(recorder.history)
    assert not found["by theorem"]
    loaded.engine.close()


def test_the_guard_that_is_there_reads_whole_windows_while_the_window_slides(tmp_path: Path) -> None:
    loaded = Loaded(tmp_path)
    once = compile_once(f"{ASKED} WITH ISOLATION WINDOW", loaded.catalog)
    answer = Asker(loaded.engine.log, memory=Meanwhile(loaded, 2)).ask(once, {}, watch=SelectWatch())
    history = loaded.recorder.history
    assert judged(history, "WINDOW")["by theorem"]
    assert not judged(history, "LATEST")["by theorem"]
    assert sorted(rows_of(answer)) == [(version, ROWS) for version in range(N)]
    assert sum(isinstance(each, Read) for each in history.operations) == N
    loaded.engine.close()
