"""`windrow run` where it ends before Spark starts: bad usage, mistakes in scripts, nothing to run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Self

import pytest
import typer
from py4j.java_gateway import GatewayClient
from tests.cli.support import EXAMPLES, run
from tests.support.patience import PATIENCE

from windrow.algebra.explain.warnings import Warned
from windrow.cli.options import SparkChoice
from windrow.cli.run import Signals, run_watched, started
from windrow.cli.snapshots import RunSnapshot
from windrow.errors import WindrowError

STREAM = "CREATE STREAM s (speed DOUBLE, ts TIMESTAMP) WATTR ts ORDERED FROM 'generator:traffic';\n"


@pytest.fixture(autouse=True)
def _no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("this test starts Spark")

    monkeypatch.setattr("windrow.session.Windrow", refuse)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["missing.cql"],
        ["."],
        [str(EXAMPLES / "freeway.cql"), "--trigger", "often"],
        [str(EXAMPLES / "freeway.cql"), "--twice"],
        [str(EXAMPLES / "freeway.cql"), "--conf", "spark.executor.memory"],
        [str(EXAMPLES / "freeway.cql"), "--conf", "executor.memory=1g"],
        [str(EXAMPLES / "freeway.cql"), "--metrics", "here"],
        [str(EXAMPLES / "freeway.cql"), "--log", "xml"],
        [str(EXAMPLES / "freeway.cql"), "--log-level", "loud"],
    ],
)
def test_bad_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "run", *arguments)
    assert (code, out) == (2, "")
    assert "Usage: windrow run" in err


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("CREATE QUERY q AS SELECT b FROM s [NOW]", "2:26", "no column `b`"),
        ("CREATE QUERY q AS SELECT a FORM s", "2:28", "unexpected `FORM`"),
        (
            "CREATE QUERY q AS SELECT COUNT(*) FROM s [RANGE 1 HOUR SLIDE 1 HOUR] INTO 'fils:/x'",
            "2:75",
            "no sink is called `fils:`",
        ),
        (
            "CREATE STREAM t (a INT, ts TIMESTAMP) WATTR ts FROM 'generator:traffic?rat=5'",
            "2:53",
            "no option `rat`",
        ),
        ("CREATE STREAM t (a INT, ts TIMESTAMP) WATTR ts", "2:1", "stream `t` has no source"),
        ("SELECT ISTREAM(speed) FROM s [NOW]", "2:1", "ISTREAM is about changes"),
        ("SELECT speed FROM s [RANGE 1 HOUR INTERNAL]", "2:1", "results of INTERNAL windows outlive them"),
    ],
)
def test_mistakes_are_shown_in_the_script(
    text: str, place: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "a.cql"
    script.write_text(STREAM + text)
    code, out, err = run(capsys, "run", str(script))
    assert (code, out) == (1, "")
    assert message in err
    assert f" --> {script}:{place}\n" in err
    assert "^" in err


def test_a_script_without_queries_needs_no_engine(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "a.cql"
    script.write_text(STREAM + "SHOW STREAMS; SHOW QUERIES; EXPLAIN SELECT COUNT(*) FROM s [NOW]")
    code, out, err = run(capsys, "run", str(script), "--state", str(tmp_path / "state"))
    assert (code, err) == (0, "")
    assert out.startswith("name\ns\n(none)\nemit ")
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("command", ["run", "check"])
def test_what_the_engine_refuses_is_shown_in_the_script(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "a.cql"
    script.write_text(STREAM + "CREATE QUERY q AS SELECT speed FROM s [NOW] EVERY 5 SECONDS")
    code, out, err = run(capsys, command, str(script))
    assert (code, out) == (1, "")
    message = "error[bad-every]: query `q` cannot be refreshed EVERY so often: its answers are not about one"
    assert err.startswith(message)
    assert f"\n  --> {script}:2:1\n" in err


class Late:
    """A run whose rows come later and later, as its engine, its watcher and its view."""

    def __init__(self) -> None:
        self.newest = RunSnapshot(0, (), ())
        self.told: list[str] = []
        self._is_shown = threading.Event()

    def run(self, watch: Any, **how: Any) -> None:
        for rows in (1, 2):
            warning = Warned("small-slack", f"{rows} of 10 rows came late", "declare a longer SLACK", "s")
            self.newest = RunSnapshot(rows, (), (), warnings=(warning,))
            self._is_shown.clear()
            assert self._is_shown.wait(PATIENCE)

    def show(self, snapshot: RunSnapshot, seconds: float) -> None:
        if snapshot is self.newest:
            self._is_shown.set()

    def tell(self, problem: WindrowError | Warned) -> None:
        self.told.append(problem.render().splitlines()[0])

    def __call__(self) -> None:
        """The newest snapshot is there already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""


@pytest.mark.parametrize(("once", "rows"), [(False, 1), (True, 2)])
def test_what_rows_show_of_a_declaration_is_told_once(once: bool, rows: int) -> None:
    """While the run goes on, as that is when it helps; or at an end that is near, with the last numbers."""
    late: Any = Late()
    assert run_watched(late, late, late, Signals(), trigger="1 second", once=once) is None
    assert late.told == [f"warning[small-slack]: s: {rows} of 10 rows came late"]


def test_ctrl_c_while_java_is_waited_for_leaves_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """py4j logs one, and closes the connection."""

    class Connection:
        socket = None

        def send_command(self, command: str) -> str:
            raise KeyboardInterrupt

        def close(self, reset: bool = False) -> None: ...

    java = GatewayClient()
    monkeypatch.setattr(java, "_get_connection", Connection)
    monkeypatch.setattr("windrow.session.Windrow", lambda *_, **__: java.send_command("c"))
    with pytest.raises(typer.Exit), Signals() as signals, started(None, signals.take, SparkChoice()):
        pytest.fail("it was interrupted")
    assert caplog.records == []
