"""`windrow shell`, as a pipe drives it."""

from __future__ import annotations

import io
import re
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

import pytest
from tests.cli.support import run
from tests.support.patience import PATIENCE

from windrow.cli.session import HELP, ShellSession
from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

STREAM = """\
CREATE STREAM s (segment BIGINT, speed DOUBLE, ts TIMESTAMP)
  WATTR ts SLACK 5 SECONDS
  FROM 'generator:traffic?rate=1500&event_rate=100';
"""
QUERY = "CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS];\n"


def typed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> tuple[int, str, str]:
    """What a shell says to this input; with Spark, on the session that is there."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return run(capsys, "shell")


def test_statements_over_several_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = STREAM + QUERY + ".tables\nSHOW QUERIES;"
    assert typed(monkeypatch, capsys, text) == (0, "stream  s\nquery   q\nname\nq\n", "")


def test_mistakes_are_shown_and_the_shell_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = typed(
        monkeypatch, capsys, STREAM + QUERY.replace("COUNT(*)", "SUM(sped)") + QUERY + ".tables"
    )
    assert (code, out) == (0, "stream  s\nquery   q\n")
    assert err.splitlines()[0] == "error[unknown-column]: no column `sped`"
    assert "^^^^" in err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (".wtch q", "error[unknown-command]: no command `.wtch`\n  = did you mean `.watch`?\n"),
        (".explain nothing", "error[unknown-source]: no query `nothing`\n"),
        (".explain", "error[bad-command]: `.explain` does not take 0 words\n  = see .help\n"),
        (".start", "error[no-query]: there is no query to run\n  = write CREATE QUERY name AS SELECT … ;\n"),
        (".stop", "error[not-running]: nothing is running\n  = run the queries with .start\n"),
        ("watch q", "error[unknown-command]: no command `watch`\n  = did you mean `.watch`?\n"),
        ("start;", "error[unknown-command]: no command `start`\n  = did you mean `.start`?\n"),
    ],
)
def test_a_command_that_is_wrong_says_how_it_is_used(
    command: str, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(monkeypatch, capsys, command) == (0, "", message)


def test_a_span_of_time_is_refused_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = typed(monkeypatch, capsys, STREAM + QUERY + ".start 1 secnd\n")
    assert (code, err) == (0, "error[window-unit]: no unit `secnd`\n  = did you mean `SECONDS`?\n")


def test_what_is_declared_is_told_while_spark_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = ShellSession(None, is_typed=True)
    session.take(STREAM)
    starting: Future[None] = Future()
    monkeypatch.setattr(session, "_starting", starting)
    for text in ("\\d s", "SHOW STREAMS", ".tables"):
        capsys.readouterr()
        session.take(text)
        assert re.search(r"^(segment|s|stream  s)\b", capsys.readouterr().out, re.MULTILINE)
    assert not starting.done()


class Failed:
    """An engine that runs, and one of whose queries has failed."""

    commit, is_running = 7, True
    problems = (QueryError("query `bad` was stopped"),)

    def stop(self) -> None:
        raise self.problems[0]


def test_a_failure_is_told_once_and_a_run_with_one_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session = ShellSession(None, is_typed=False)
    monkeypatch.setattr(session, "_engine", Failed())
    session.take(".stop")
    shown = capsys.readouterr()
    assert shown.out == "stopped at commit 7\n"
    assert shown.err == "error[query]: query `bad` was stopped\n"


def test_what_fails_in_the_background_is_told_while_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    session, told = ShellSession(None, is_typed=True), ""

    class Running(Failed):
        looks = 0

        @property
        def is_running(self) -> bool:  # type: ignore[override]
            nonlocal told
            told += capsys.readouterr().err
            self.looks += 1
            return not told and self.looks < 10

    running = Running()
    monkeypatch.setattr(session, "_engine", running)
    session._run_here(lambda: None, Future())
    assert told == "error[query]: query `bad` was stopped\n"
    assert running.looks == 2


def test_commands_list_explain_and_quit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = typed(monkeypatch, capsys, ".help\n" + STREAM + QUERY + ".explain Q\n.quit\n.tables\n")
    assert (code, err) == (0, "")
    assert ".watch NAME" in out
    assert "query q\n\nemit RSTREAM" in out
    assert "stream  s" not in out  # .quit ends


@pytest.mark.parametrize("word", ["help", "HELP;", "?", ".help", "\\?"])
def test_words_that_need_no_semicolon(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ".watch NAME" in typed(monkeypatch, capsys, f"{word}\nquit\nSHOW nonsense;")[1]


def test_a_command_below_a_statement_without_its_semicolon(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = typed(monkeypatch, capsys, STREAM.replace(";", "") + ".tables\n" + STREAM + "\\d\n")
    assert (code, out) == (0, "nothing is declared\nstream  s\n")
    assert (
        err == "error[unfinished]: the statement has no end, and was left out\n  = end statements with `;`\n"
    )


def test_the_list_of_commands_fits_a_terminal() -> None:
    assert max(map(len, HELP.splitlines())) <= 80


def test_describe_by_backslash_d(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = typed(monkeypatch, capsys, STREAM + "\\d\n\\d s\n")
    assert (code, err) == (0, "")
    assert out.startswith("stream  s\n")
    assert "segment" in out


def test_queries_run_in_the_background(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What goes to a sink is watched, too."""
    into = QUERY.replace(";", f" INTO 'files://{tmp_path}/out';")
    late = "CREATE QUERY late AS SELECT MAX(speed) AS m FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS];\n"
    shown: list[str] = []

    def lines() -> Iterator[str]:
        yield from (STREAM + into + ".start\n" + late).splitlines(keepends=True)
        until = time.monotonic() + PATIENCE
        while "q at " not in "".join(shown) and time.monotonic() < until:
            yield ".watch q 2\n"
            shown.append(capsys.readouterr().out)
        yield from ("SHOW QUERIES;\n", ".stop\n", "DROP QUERY late;\n", ".tables\n")

    typing = lines()
    stdin = io.StringIO()
    monkeypatch.setattr(stdin, "readline", lambda: next(typing, ""))
    monkeypatch.setattr("sys.stdin", stdin)
    code, last, err = run(capsys, "shell")
    out = "".join([*shown, last])
    assert (code, err) == (0, "")
    assert "running; .watch NAME shows answers, .stop ends\n" in out
    assert re.search(r"q at 2026-01-01 00:0\d:\d0: 1 row\n +n\n +[1-6]000\n", out), out
    assert "\nlate  running  " in out
    assert [*(tmp_path / "out").iterdir()]
    assert out.endswith("stream  s\nquery   q\n")
