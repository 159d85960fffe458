"""`windrow serve`: its options and refusals without Spark, and a whole life on Spark."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from windrow.cli import serve
from windrow.cli.main import main
from windrow.cli.options import JsonForm, TextForm
from windrow.cli.serve import tokens_for
from windrow.errors import StateError, WindrowError
from windrow.server.serve import _bound


def test_the_loopback_address_needs_no_token(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokens_for("127.0.0.1", None) is None
    assert capsys.readouterr().err == ""


def test_for_another_host_a_token_is_made_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    tokens = tokens_for("0.0.0.0", None)
    said = capsys.readouterr().err
    (text,) = re.findall(r"everything: (\S{40,})", said)
    assert tokens is not None
    assert tokens.role(text) == "write"
    assert "TLS" in said


@pytest.mark.parametrize(
    "options", [["--log", "xml"], ["--log-level", "loud"], ["--port", "70000"], ["--trigger", "x"]]
)
def test_bad_usage_is_told_before_anything_starts(options: list[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["serve", *options])
    assert left.value.code == 2


def test_a_missing_script_is_told_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["serve", "no-such-file.cql"])
    assert left.value.code in (1, 2)


def test_a_missing_library_is_told_with_the_way_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(StateError, match="not installed") as found:
        serve.check_installed()
    assert found.value.hint is not None
    assert found.value.hint.endswith("pip install 'windrow[server]'")


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(StateError, match="cannot listen") as found:
            _bound("127.0.0.1", taken.getsockname()[1])
    assert "--port" in (found.value.hint or "")


def _record(**more: Any) -> logging.LogRecord:
    known = {"name": "windrow.audit", "levelname": "INFO", "msg": "statement", "created": 0.0}
    return logging.makeLogRecord({**known, **more})


def test_logs_are_one_line_each_whatever_they_hold() -> None:
    nasty = "a\nb\x1b[31m\u2028c"
    record = _record(msg=nasty, statement=nasty, commit=7)
    found = JsonForm().format(record)
    assert len(found.splitlines()) == 1
    assert json.loads(found)["statement"] == nasty
    assert json.loads(found)["commit"] == 7
    assert len(TextForm().format(record).splitlines()) == 1
    assert "\x1b" not in TextForm().format(record)


def test_logs_hold_no_secrets() -> None:
    url = "kafka://b/t?kafka.sasl.password=hunter2"
    for form in (JsonForm(), TextForm()):
        assert "hunter2" not in form.format(_record(msg=f"cannot read {url}"))


SCRIPT = """
CREATE STREAM readings (segment STRING, speed DOUBLE, ts TIMESTAMP)
  WATTR ts SLACK 10 SECONDS FROM 'files://{folder}/*.csv';
CREATE QUERY counts AS SELECT COUNT(*) AS n FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE];
"""


def _start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A server in a process of its own, and where it listens."""
    command = [sys.executable, "-m", "windrow", "serve", str(folder / "s.cql"), "--port", "0"]
    command += ["--state", str(folder / "state"), "--log", "json", "--trigger", "200 milliseconds"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    if "serving on" not in line:
        process.kill()
        raise WindrowError(f"{line}{process.communicate()[1]}")
    return process, line.split()[-1].rstrip("/")


def _stop(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=90)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    return said


def _rows(url: str, least: int) -> list[dict[str, Any]]:
    ends = time.monotonic() + 90
    while True:
        found = httpx.get(f"{url}/api/queries/counts/results", trust_env=False).json()["rows"]
        if len(found) >= least or time.monotonic() > ends:
            return found  # type: ignore[no-any-return]
        time.sleep(0.2)


@pytest.mark.thorough
@pytest.mark.process
def test_a_server_on_spark_answers_stops_and_goes_on(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "s.cql").write_text(SCRIPT.format(folder=tmp_path / "in"))
    rows = [f"A,50.0,2026-03-02T07:{minute:02}:30" for minute in range(5)]
    (tmp_path / "in" / "1.csv").write_text("\n".join(["segment,speed,ts", *rows, ""]))
    process, url = _start(tmp_path)
    first = _rows(url, 4)
    assert [row["n"] for row in first] == [1, 1, 1, 1]
    made = "CREATE QUERY fast AS SELECT MAX(speed) AS top FROM readings [RANGE 1 MINUTE SLIDE 1 MINUTE]"
    httpx.post(f"{url}/api/statements", json={"sql": made}, trust_env=False, timeout=30).raise_for_status()
    said = _stop(process)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert any(line["logger"] == "windrow.audit" and line["statement"] == made for line in lines)
    more = [f"A,70.0,2026-03-02T07:{minute:02}:30" for minute in range(5, 9)]
    (tmp_path / "in" / "2.csv").write_text("\n".join(["segment,speed,ts", *more, ""]))
    process, url = _start(tmp_path)
    everything = _rows(url, 8)
    names = [each["name"] for each in httpx.get(f"{url}/api/queries", trust_env=False).json()]
    _stop(process)
    assert everything[:4] == first
    assert [row["n"] for row in everything] == [1] * 8
    assert names == ["counts", "fast"]
