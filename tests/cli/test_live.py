"""The live view: snapshots drawn to a recording console, without an engine."""

from __future__ import annotations

import io
import math
from datetime import UTC, datetime

import pytest
from rich.console import Console

from windrow.cli.answers import Answers
from windrow.cli.live import LiveView, drawing
from windrow.cli.snapshots import QueryNow, RunSnapshot, StreamNow
from windrow.errors import DataError

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


def averages(rows: int, number: int = 1) -> Answers:
    return Answers(
        NOON, ("segment", "speed"), tuple((n, 60.5 + n) for n in range(min(rows, 100))), rows, number
    )


def snapshot(*queries: QueryNow, rows: int = 12_345) -> RunSnapshot:
    stream = StreamNow("traffic", rows, 1999.6, 3, MICROS, MICROS + 5_000_000)
    return RunSnapshot(14, (stream,), queries)


def drawn(shown: RunSnapshot, width: int = 100, height: int = 24, *, answers: bool = True) -> list[str]:
    console = Console(record=True, width=width, height=height, file=io.StringIO())
    console.print(drawing("demo", shown, 75.0, width, height, answers=answers)[0])
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_a_stream_and_a_query() -> None:
    assert drawn(snapshot(QueryNow("average_speed", "running", 40, answers=averages(2)))) == [
        "demo   1:15   commit 14",
        "",
        "stream      rows   rows/s                 clock     lag   late",
        "traffic   12 345    2 000   2026-01-01 12:00:00   5.0 s      3",
        "",
        "● average_speed  40 rows  at 2026-01-01 12:00:00",
        "segment  speed",
        "      0   60.5",
        "      1   61.5",
    ]


def test_before_the_first_row() -> None:
    stream = StreamNow("s", 0, 0.0, 0, -math.inf, None)
    lines = drawn(RunSnapshot(1, (stream,), (QueryNow("q", "running", 0),)))
    assert lines[1] == "warming up: first rows …"
    assert lines[3].split() == ["s", "0", "0", "–", "–", "0"]
    assert lines[5] == "● q  0 rows"


def test_numeric_attributes_are_no_times() -> None:
    stream = StreamNow("s", 10, 0.0, 0, 70, 75, is_time=False)
    assert drawn(RunSnapshot(1, (stream,), ()))[3].split() == ["s", "10", "0", "70", "5", "0"]


def test_a_sealed_stream_is_at_its_end() -> None:
    stream = StreamNow("s", 10, 0.0, 0, math.inf, 75)
    assert "end" in drawn(RunSnapshot(1, (stream,), ()))[3]


def test_a_query_that_failed_and_one_with_a_sink() -> None:
    lines = drawn(
        snapshot(QueryNow("broken", "failed", 3), QueryNow("kept", "running", 1, "files:///out")), 60
    )
    assert "✗ failed broken  3 rows" in lines
    assert "● kept  1 row  into files:///out" in lines


@pytest.mark.parametrize("queries", [1, 2, 4, 7])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (100, 12), (40, 30)])
def test_it_fits_the_terminal(queries: int, width: int, height: int) -> None:
    shown = snapshot(*(QueryNow(f"query{n}", "running", 1, answers=averages(1000)) for n in range(queries)))
    lines = drawn(shown, width, height)
    # A headline for each row of queries is shown, however low the terminal is.
    assert len(lines) <= max(height, 5 + 2 * queries)
    assert all(len(line) <= width for line in lines)


def test_what_is_left_out_is_counted() -> None:
    lines = drawn(snapshot(QueryNow("q", "running", 1, answers=averages(1000))), 80, 12)
    assert lines[-1] == "… 997 more"


def test_values_cannot_command_the_terminal() -> None:
    answers = Answers(NOON, ("k",), (("\x1b[2Jgone [bold]",),), 1, 1)
    lines = drawn(snapshot(QueryNow("q", "running", 1, answers=answers)))
    assert lines[-1] == "\\x1b[2Jgone [bold]"


def test_without_answers_only_the_streams() -> None:
    assert len(drawn(snapshot(QueryNow("q", "running", 1, answers=averages(9))), answers=False)) == 4


def test_drawn_in_place_and_told_above(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24)
    with LiveView("demo", console=console) as view:
        view.show(snapshot(rows=1), 1.0)
        view.show(snapshot(rows=2), 2.0)
        view.tell(DataError("query `q` was stopped"))
    text = out.getvalue()
    assert "\x1b[2K" in text  # lines are overwritten, the screen is not cleared
    assert "\x1b[2J" not in text
    assert text.count("commit 14") == 2 + 1  # each picture, and the last one once more, to stay
    assert capsys.readouterr().err == "error[data]: query `q` was stopped\n"
