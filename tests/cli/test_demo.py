"""`windrow demo`: the main job, and its scripts at any rate."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.support import run

from windrow.cli.declarations import Declarations
from windrow.cli.demo import DemoSource, asked, queries_of, script, try_next
from windrow.cli.plain import summary
from windrow.cli.snapshots import QueryNow, RunSnapshot, StreamNow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("rate", [30, 3000, 100_000])
@pytest.mark.parametrize("source", DemoSource)
def test_the_scripts_can_be_run(source: DemoSource, rate: int) -> None:
    declared = Declarations()
    declared.sql(script(source, rate))
    declared.check_sources("")
    assert len(declared.catalog.streams) == 1
    assert 3 <= len(declared.catalog.queries) <= 4


@pytest.mark.parametrize("arguments", [["rain"], ["--seconds", "0"], ["--rate", "1"]])
def test_bad_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "demo", *arguments)
    assert (code, out) == (2, "")
    assert "Usage: windrow demo" in err


def test_the_summary_counts_rows_answers_and_commits() -> None:
    stream = StreamNow("s", 12_345, 2000.4, 2, 0, 0)
    shown = RunSnapshot(9, (stream,), (QueryNow("a", "running", 3), QueryNow("b", "running", 4)))
    assert summary(shown, 30.2) == ("12 345 rows in, 7 answers out, 2 late rows, 9 commits in 30 s")


def test_what_to_try_next_can_be_pasted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is not on the PATH is named by its place, and no file that is not here is named."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("windrow.cli.demo.which", lambda _: None)
    bin_ = tmp_path / ".venv" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "windrow").touch()
    monkeypatch.setattr("sys.executable", str(bin_ / "python"))
    shown = try_next(DemoSource.traffic)
    assert "  .venv/bin/windrow demo auction" in shown
    assert "examples/" not in shown
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "speeds.cql").touch()
    assert ".venv/bin/windrow run examples/speeds.cql --flush" in try_next(DemoSource.traffic)


def test_the_live_page_is_named_where_it_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    assert " demo auction --serve" in try_next(DemoSource.auction)
    monkeypatch.setattr("windrow.cli.demo.is_installed", lambda: False)
    assert "pip install 'windrow[server]'" in try_next(DemoSource.auction)


@pytest.mark.parametrize("source", DemoSource)
def test_what_is_asked_and_what_to_try_fit_a_usual_terminal(
    source: DemoSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = script(source, 3000)
    shown = asked(text)
    assert "…" not in shown
    assert max(map(len, "\n".join([shown, try_next(source), queries_of(text)]).splitlines())) <= 80


def test_it_runs_and_ends_by_itself(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "demo", "traffic", "--seconds", "5")
    assert code == 0, err
    assert "error" not in err
    assert "average_speed  The average speed on each segment" in out
    assert "CREATE QUERY" not in out
    assert "average_speed at 2026-01-01 00:0" in out
    assert re.search(r"\n  segment +speed", out)
    assert " rows in, " in out
    assert "try next:" in out
    assert not list(tmp_path.iterdir())  # nothing is left behind
