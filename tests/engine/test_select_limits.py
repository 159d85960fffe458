"""A SELECT takes no more than it may, ends when it is told to, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from tests.support.history import rows_of
from tests.support.life import Life
from tests.support.patience import PATIENCE

from windrow.engine.adhoc.select import Limits, SelectWatch, Turns
from windrow.errors import QueryError
from windrow.state.history import sweep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUERY = "SELECT k, v FROM s [RANGE 30]"


@pytest.fixture
def w(tmp_path: Path) -> Iterator[Life]:
    driven = Life(tmp_path)
    driven.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED KEEP 40")
    for t in range(20):
        driven.push((t % 2, t, t))
    yield driven
    driven.close()


def refused(w: Life, code: str, **how: float) -> QueryError:
    with pytest.raises(QueryError) as error:
        w.select(QUERY, **how)  # type: ignore[arg-type]
    assert error.value.code == code
    return error.value


def test_as_many_rows_as_allowed_are_given_and_no_more(w: Life) -> None:
    count = w.select(QUERY).num_rows
    assert w.select(QUERY, max_rows=count).num_rows == count
    assert refused(w, "too-many-rows", max_rows=count - 1).hint


def test_bytes_are_counted_as_they_are_read(w: Life) -> None:
    files = sum(ref.bytes for ref in w.engine.last.chunks[-2])
    assert w.select(QUERY, max_bytes=files).num_rows
    refused(w, "too-many-bytes", max_bytes=files // 2)


def test_time_is_up(w: Life) -> None:
    refused(w, "too-long", timeout=1e-6)


@pytest.mark.parametrize("how", [{"timeout": 0}, {"max_rows": -1}, {"max_bytes": 0}])
def test_limits_that_allow_nothing_are_refused(w: Life, how: dict[str, float]) -> None:
    refused(w, "bad-value", **how)


def test_a_cancelled_select_ends_and_lets_go_of_its_commit(w: Life) -> None:
    turns = w._asker.turns
    with turns.turn(9), turns.turn(9):  # nobody else gets a turn
        asked = w.ask(QUERY)
        assert not asked.is_done
        with pytest.raises(QueryError, match="no answer after"):
            asked.result(timeout=0.01)
        asked.cancel()
        with pytest.raises(QueryError) as error:
            asked.result(timeout=PATIENCE)
    assert error.value.code == "cancelled"
    assert not turns.waiting
    assert not w.engine.log.leases._pins


def test_what_a_reader_holds_is_not_swept_away(w: Life) -> None:
    log = w.engine.log
    with log.reader() as held:
        names = set(held.files)
        for t in range(100, 140):
            w.push((1, t, t))
        sweep(log, keep=1)
        there = {*log.store.list("chunks"), *log.store.list("outbox")}
        assert names <= there
    for t in range(200, 260):
        w.push((1, t, t))
    sweep(log, keep=1)
    assert not names & {*log.store.list("chunks"), *log.store.list("outbox")}


def test_a_failing_reader_lets_go_of_its_commit(w: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("windrow.engine.adhoc.access_paths.read_kept", interrupted)
    with pytest.raises(KeyboardInterrupt):
        w.select(QUERY)
    assert not w.engine.log.leases._pins
    assert not w._asker.turns.waiting


def test_a_damaged_sub_window_is_told_of(w: Life) -> None:
    ref = w.engine.last.chunks[-2][0]
    path = w._folder / ref.name
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    with pytest.raises(Exception, match="is not the file that was committed"):
        w.select(QUERY)


def test_temporary_directories_of_killed_readers_go_when_the_state_is_opened(tmp_path: Path) -> None:
    Life(tmp_path).close()
    left = tmp_path / "tmp" / "select-dead" / "commits"
    left.mkdir(parents=True)
    (left / "x").write_text("x")
    Life(tmp_path).close()
    assert not list((tmp_path / "tmp").iterdir())


_READER = """
import sys, time
from pathlib import Path
import windrow.engine.adhoc.access_paths as columns
from tests.support.life import Life

def slow(*_):
    (Path(sys.argv[1]) / "tmp" / "select-1").mkdir()
    print("reading", flush=True)
    time.sleep(60)

columns.read_kept = slow
w = Life(Path(sys.argv[1]))
w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED KEEP 40")
w.push((1, 1, 1), (1, 2, 2))
w.select("SELECT v FROM s [RANGE 30]")
"""


def test_a_reader_that_is_killed_leaves_nothing(tmp_path: Path) -> None:
    reader = [sys.executable, "-c", _READER, str(tmp_path)]
    with subprocess.Popen(reader, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "reading\n"
        killed.kill()
    w = Life(tmp_path)
    w.sql("CREATE STREAM s (k BIGINT, v BIGINT, t BIGINT) WATTR t ORDERED KEEP 40")
    assert rows_of(w.select("SELECT v FROM s [RANGE 30]")) == [(1,)]
    w.push((1, 3, 3))
    sweep(w.engine.log, keep=1)
    assert not list((tmp_path / "tmp").iterdir())
    assert {f"chunks/{path.name}" for path in (tmp_path / "chunks").iterdir()} == set(w.engine.last.files)
    w.close()


def test_the_highest_priority_goes_first() -> None:
    turns, order = Turns(places=1), list[int]()

    def wait(priority: int) -> None:
        with turns.turn(priority):
            order.append(priority)

    threads = []
    with turns.turn(0):
        for priority in (1, 3, 2, 3):
            thread = threading.Thread(target=wait, args=(priority,))
            threads.append(thread)
            thread.start()
            while turns.waiting < len(threads):
                pass
    for thread in threads:
        thread.join()
    assert order == [3, 3, 2, 1]


def test_what_runs_elsewhere_is_stopped_when_time_is_up() -> None:
    stopped = threading.Event()
    watch = SelectWatch(Limits(seconds=0.05))

    def job() -> None:
        with watch.stopping(stopped.set):
            assert stopped.wait(PATIENCE)
            raise RuntimeError("the job was cancelled")

    with pytest.raises(QueryError) as error:
        job()
    assert error.value.code == "too-long"


def test_selects_of_a_script_are_answered_after_its_other_statements(w: Life) -> None:
    shown = w.sql(
        "SELECT COUNT(*) AS n FROM s [RANGE 5];"
        "CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5];"
        "SELECT * FROM q WITH ISOLATION WINDOW PRIORITY 3"
    )
    assert [rows_of(table) for table in shown] == [[(5,)], []]
