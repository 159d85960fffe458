"""`windrow run` as users run it: with Spark, in a pipe, and where that matters in a process of its own."""

from __future__ import annotations

import csv
import json
import signal
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from subprocess import Popen
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.support import EXAMPLES, finish, run, start
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAILS = """\
CREATE STREAM orders (item STRING, quantity INT, ts TIMESTAMP)
  WATTR ts SLACK 1 MINUTE FROM 'files://examples/data/orders.jsonl';
CREATE QUERY broken AS
  SELECT SUM(CAST(item AS INT)) AS total FROM orders [RANGE 1 HOUR SLIDE 1 HOUR];
CREATE QUERY sound AS
  SELECT COUNT(*) AS orders FROM orders [RANGE 1 HOUR SLIDE 1 HOUR];
SHOW STREAMS;
"""
GOES_ON = """\
CREATE STREAM traffic (segment BIGINT, speed DOUBLE, ts TIMESTAMP)
  WATTR ts ORDERED FROM 'generator:traffic?rate=1000&event_rate=100';
CREATE QUERY readings AS
  SELECT COUNT(*) AS readings FROM traffic [RANGE 1 MINUTE SLIDE 10 SECONDS];
"""


def answers(out: str, query: str) -> list[dict[str, Any]]:
    """The rows of a query among lines of the console sink."""
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [line["values"] for line in lines if line["query"] == query]


def minute_of(text: str) -> int:
    return int(text[11:13]) * 60 + int(text[14:16])


def slow_windows() -> list[tuple[int, str, float]]:
    """What `slow` in examples/speeds.cql has to answer, straight from the file."""
    found = defaultdict(list)
    with (EXAMPLES / "data" / "speeds.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for end in range(minute_of(row["ts"]) + 1, minute_of(row["ts"]) + 6):
                found[end, row["segment"]].append(float(row["speed"]))
    means = [(end, segment, fmean(speeds)) for (end, segment), speeds in sorted(found.items())]
    return [(end, segment, round(mean, 1)) for end, segment, mean in means if mean < 40]


def test_a_script_over_files(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(EXAMPLES)
    code, out, err = run(capsys, "run", "examples/speeds.cql", "--flush")
    assert code == 0, err
    assert "error" not in err
    found = [(minute_of(row["at"]), row["segment"], row["speed"]) for row in answers(out, "slow")]
    assert found == slow_windows()
    written = sorted((tmp_path / "per_minute").glob("*.csv"))
    assert sum(len(file.read_text().splitlines()) - 1 for file in written) == 60
    assert (tmp_path / "state" / "speeds").is_dir()


@pytest.mark.thorough
@pytest.mark.process
def test_a_query_that_fails_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "fails.cql").write_text(FAILS)
    code, out, err = finish(start("run", "fails.cql", "--flush", folder=tmp_path))
    assert code == 1, err
    assert [row["orders"] for row in answers(out, "sound")] == [150]
    head, orders = (line.split() for line in out.splitlines()[:2])
    assert head == ["name", "rows", "late", "shed", "malformed", "source", "warnings"]
    assert orders[:6] == ["orders", "0", "0", "0", "0", "files://examples/data/orders.jsonl"]
    assert err.count("error[") == 1
    told = [line for line in err.splitlines() if " commit " not in line]
    assert told[0].startswith("error["), err  # Spark and Java have printed nothing
    assert "query `broken` was stopped: " in err
    assert "Traceback" not in err
    assert "\tat " not in err  # no trace of Java's either


def _wait_for_answers(process: Popen[str], printed: Path) -> None:
    def ended() -> str | None:
        return None if process.poll() is None else str(finish(process))

    wait_until(lambda: bool(printed.read_text().count("\n")), ended)


@pytest.mark.process
@pytest.mark.thorough
def test_what_was_stopped_goes_on(tmp_path: Path) -> None:
    (tmp_path / "goes_on.cql").write_text(GOES_ON)
    ends: list[str] = []
    for stop in (signal.SIGINT, signal.SIGTERM):
        printed = tmp_path / f"{stop.name}.txt"
        with printed.open("w") as out:
            process = start("run", "goes_on.cql", "--state", "kept", folder=tmp_path, out=out)
            _wait_for_answers(process, printed)
            process.send_signal(stop)
            code, _, err = finish(process)
        assert code == 0, err
        assert "error" not in err
        ends += [row["at"] for row in answers(printed.read_text(), "readings")]
    assert ends == sorted(set(ends))  # nothing twice
    seconds = [minute_of(end) * 60 + int(end[17:19]) for end in ends]
    assert seconds == list(range(10, seconds[-1] + 1, 10))  # nothing missing
