"""`console:`: a table for people, lines for programs."""

from __future__ import annotations

import io
import json
import re
import sys

import pyarrow as pa
import pytest
from tests.sinks.support import delivery_of, every_type, nothing, numbers

from windrow.errors import SinkError
from windrow.sinks import Delivery, open_sink


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Closed(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def printed_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, delivery: Delivery, url: str = "console:", columns: int = 100
) -> str:
    out = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    with monkeypatch.context() as patched:  # within the test: pytest puts its own in place before each
        patched.setattr(sys, "stdout", out)
        open_sink(url, "top").deliver(delivery)
    return re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())  # without the colours


def test_a_pipe_gets_a_line_of_json_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink("console:", "top")
    for commit in (1, 1, 2):
        sink.deliver(delivery_of(numbers(commit), commit))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["commit"], line["row"]) for line in lines] == [(c, r) for c in (1, 1, 2) for r in range(3)]
    assert lines[0] == {"query": "top", "commit": 1, "row": 0, "values": {"at": 10, "k": "key 10"}}


def test_a_pipe_gets_all_rows_unless_limited(capsys: pytest.CaptureFixture[str]) -> None:
    open_sink("console:", "top").deliver(delivery_of(numbers(1, 50)))
    assert capsys.readouterr().out.count("\n") == 50
    open_sink("console:?limit=3", "top").deliver(delivery_of(numbers(1, 50)))
    assert capsys.readouterr().out.count("\n") == 3


def test_a_table_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed_on_a_terminal(monkeypatch, delivery_of(numbers(1)), "console:?limit=2")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[0] == "top, commit 42: 2 of 3 rows"
    assert lines[1].split() == ["at", "k"]
    assert [line.split(maxsplit=1) for line in lines[3:-1]] == [["10", "key 10"], ["11", "key 11"]]
    assert lines[-1] == "… 1 more: INTO 'console:?limit=3' prints all, and so does a pipe"


def test_what_is_too_wide_for_a_table_is_shown_in_records(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = pa.array([0, 90_250_000], pa.timestamp("us", "UTC"))
    table = pa.table({"at": moment, "airport": ["EWR", None], "window_start": moment, "window_end": moment})
    assert printed_on_a_terminal(monkeypatch, delivery_of(table), columns=60).splitlines() == [
        "top, commit 42: 2 rows",
        "",
        "  at 1970-01-01 00:00:00  airport EWR",
        "    window_start 1970-01-01 00:00:00",
        "    window_end 1970-01-01 00:00:00",
        "  at 1970-01-01 00:01:30.25  airport NULL",
        "    window_start 1970-01-01 00:01:30.25",
        "    window_end 1970-01-01 00:01:30.25",
        "",
    ]


def test_a_terminal_is_not_commanded_by_data(monkeypatch: pytest.MonkeyPatch) -> None:
    table = numbers(1, 1).set_column(1, "k", [["[bold]\x1b[2J\n"]])
    assert r"[bold]\x1b[2J\n" in printed_on_a_terminal(monkeypatch, delivery_of(table))


def test_nothing_prints_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed_on_a_terminal(monkeypatch, nothing()) == ""


def test_every_type_can_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed_on_a_terminal(monkeypatch, delivery_of(every_type()), columns=600)
    assert "2024-05-01 12:00:00.000001" in text
    assert "naïve Ω 🌾" in text


def test_output_that_cannot_have_all_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    open_sink("console:", "top").deliver(delivery_of(every_type()))
    assert "naïve Ω 🌾" in json.loads(raw.getvalue().splitlines()[1])["values"]["text"]


def test_a_reader_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Closed())
    with pytest.raises(SinkError, match="cannot write to standard output: nobody reads it any more"):
        open_sink("console:", "top").deliver(delivery_of(numbers(1)))
