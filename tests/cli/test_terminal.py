"""What stands on a terminal: the command line and the live view on pseudo-terminals, without Spark."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console
from tests.cli.support import EXAMPLES
from tests.cli.test_live import averages, snapshot
from tests.support.terminal import Screen, run_in_terminal

from windrow.algebra.explain.warnings import Warned
from windrow.cli.live import LiveView, drawing
from windrow.cli.snapshots import QueryNow, RunSnapshot, StreamNow
from windrow.errors import QueryError, Span

REPOSITORY = Path(__file__).parents[2]
SIZES = [(80, 24), (160, 50)]
#: what the first example answers, as the console shows it
ORDERS = """\
takings, commit 3: 4 rows

  at                    takings   orders
 ────────────────────────────────────────
  2026-03-02 09:15:00    186.90       37
  2026-03-02 09:30:00    448.20       75
  2026-03-02 09:45:00    720.10      113
  2026-03-02 10:00:00   1009.20      150

best_quarter, commit 3: 8 rows

  at                    item     sold
 ─────────────────────────────────────
  2026-03-02 10:00:00   cake       20
  2026-03-02 10:00:00   coffee     36
  2026-03-02 10:00:00   soup        8
  2026-03-02 10:00:00   tea        19
  2026-03-02 11:00:00   cake        6
  2026-03-02 11:00:00   coffee     24
  2026-03-02 11:00:00   soup        4
  2026-03-02 11:00:00   tea         7
"""
#: a run whose thread prints while the region is drawn, and whose last words have no end of line
PRINTING = """
import sys
from threading import Thread
from tests.cli.test_live import averages, snapshot
from windrow.cli.live import LiveView
from windrow.cli.snapshots import QueryNow

def run():
    for number in range(40):
        print(f"line {number}", file=(sys.stdout, sys.stderr)[number % 2])
    print("x" * 300)
    sys.stdout.write("and the rest")

with LiveView("demo") as view:
    thread = Thread(target=run)
    view.show(snapshot(QueryNow("q", "running", 1, answers=averages(500))), 0.0)
    thread.start()
    while thread.is_alive():
        view.show(snapshot(QueryNow("q", "running", 1, answers=averages(500))), 1.0)
    view.show(snapshot(QueryNow("q", "running", 3, answers=averages(3))), 2.0)
"""

#: a run that goes on until a line is typed, and draws once more
TYPED_AT = """
import sys
from tests.cli.test_live import averages, snapshot
from windrow.cli.live import LiveView
from windrow.cli.snapshots import QueryNow

with LiveView("demo") as view:
    view.show(snapshot(QueryNow("q", "running", 1, answers=averages(1))), 0.0)
    sys.stdin.readline()
    view.show(snapshot(QueryNow("q", "running", 3, answers=averages(1))), 2.0)
"""


def environment() -> dict[str, str]:
    """As on most terminals, and with no wishes of whoever runs the tests."""
    ours = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path]), "TERM": "xterm-256color"}
    return {
        name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
    } | ours


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_first_example_shows_all_its_answers(width: int, height: int, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    command = [sys.executable, "-m", "tests.cli.without_spark", "run", "examples/orders.cql", "--flush"]
    code, screen = run_in_terminal(command, width, height, cwd=tmp_path, env=environment())
    assert (code, screen.cursor_is_shown) == (0, True)
    *shown, last = screen.lines
    assert "\n".join(shown) == f"starting Spark …\n{ORDERS}"
    assert re.fullmatch(r"done: 150 rows in, 12 answers out, 0 late rows, \d commits in \d+ s", last)
    again, screen = run_in_terminal(command, width, height, cwd=tmp_path, env=environment())
    assert again == 0
    told = ["nothing new: state/orders has these rows already", "another --state begins again"]
    assert screen.lines[1:] == told


@pytest.mark.thorough
def test_what_goes_to_a_sink_shows_its_last_rows(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(EXAMPLES)
    script = (
        (EXAMPLES / "orders.cql").read_text().replace("GROUP BY item;", "GROUP BY item INTO 'files:out';")
    )
    huge = "CREATE QUERY huge AS SELECT item FROM orders [RANGE 1 HOUR] WHERE quantity > 1000;"
    (tmp_path / "sunk.cql").write_text(script + huge)
    command = [sys.executable, "-m", "tests.cli.without_spark", "run", "sunk.cql", "--flush"]
    code, screen = run_in_terminal(command, 80, 24, cwd=tmp_path, env=environment())
    assert code == 0, screen.lines
    begin = screen.lines.index("best_quarter at 2026-03-02 11:00:00: 4 rows")
    assert screen.lines[begin + 1 : begin + 7] == [
        "  item    sold",
        "  cake       6",
        "  coffee    24",
        "  soup       4",
        "  tea        7",
        "  all of them: files:out",
    ]
    assert [*(tmp_path / "out").iterdir()]
    assert screen.lines[-1] == "without an answer: huge"


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_what_a_run_prints_is_above_the_picture(width: int, height: int) -> None:
    code, screen = run_in_terminal(
        [sys.executable, "-c", PRINTING], width, height, cwd=REPOSITORY, env=environment()
    )
    assert code == 0, screen.lines
    printed = [f"line {number}" for number in range(40)]
    whole, broken = divmod(300, width)
    assert screen.lines[: 40 + whole + 1] == [*printed, *["x" * width] * whole, "x" * broken]
    assert screen.lines[40 + whole + 1 :] == [
        "demo   0:02   commit 14",
        "",
        "stream      rows   rows/s                 clock     lag   late",
        "traffic   12 345    2 000   2026-01-01 12:00:00   5.0 s      3",
        "",
        "● q  3 rows  at 2026-01-01 12:00:00",
        "segment  speed",
        "      0   60.5",
        "      1   61.5",
        "      2   62.5",
        "and the rest",
    ]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_what_is_typed_is_not_in_the_picture(width: int, height: int) -> None:
    code, screen = run_in_terminal(
        [sys.executable, "-c", TYPED_AT],
        width,
        height,
        cwd=REPOSITORY,
        env=environment(),
        typed=[("60.5", "typed\n")],
    )
    assert code == 0, screen.lines
    assert [line for line in screen.lines if "demo" in line] == ["demo   0:02   commit 14"]
    assert not any("typed" in line for line in screen.lines)


#: what is typed into a shell, each once the pattern before it is to be seen
SHELL = [
    ("windrow>", "CREATE STREAM bids (item BIGINT, price DOUBLE, ts TIMESTAMP)\r"),
    ("->", "WATTR ts SLACK 5 SECONDS FROM 'push:';\r"),
    ("created bids\nwindrow>", "\\d bids\r"),
    ("WATTR SLACK 5 SECONDS\nwindrow>", "SELECT pric\t"),
    ("windrow> SELECT price", "\x03"),
    ("windrow> SELECT price\nwindrow>", "help\r"),
    ("end, as Ctrl-D does\nwindrow>", "CREATE QUERY q AS SELECT itm FROM bids [NOW];\r"),
    ("did you mean `item`.\nwindrow>", "\x04"),
]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_shell_is_typed_into(width: int, height: int, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    code, screen = run_in_terminal(
        [sys.executable, "-m", "windrow", "shell"],
        width,
        height,
        cwd=tmp_path,
        env=environment() | home,
        typed=SHELL,
    )
    assert (code, screen.cursor_is_shown) == (0, True), screen.lines
    lines = screen.lines
    assert lines[1:9] == [
        "windrow> CREATE STREAM bids (item BIGINT, price DOUBLE, ts TIMESTAMP)",
        "      -> WATTR ts SLACK 5 SECONDS FROM 'push:';",
        "created bids",
        "windrow> \\d bids",
        "column  type       about",
        "item    BIGINT",
        "price   DOUBLE",
        "ts      TIMESTAMP  WATTR SLACK 5 SECONDS",
    ]
    mistake = lines.index("error[unknown-column]: no column `itm`")
    assert lines[mistake - 1] == "windrow> CREATE QUERY q AS SELECT itm FROM bids [NOW];"
    assert lines[-2:] == ["  = did you mean `item`?", "windrow>"]
    assert max(map(len, lines)) <= width


def shown(pictures: list[RunSnapshot], width: int, height: int) -> Screen:
    """What a view leaves on a screen."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, height=height)
    with LiveView("demo", console=console) as view:
        for second, picture in enumerate(pictures):
            view.show(picture, float(second))
    screen = Screen(width, height)
    screen.feed(out.getvalue().replace("\n", "\r\n"))
    return screen


@pytest.mark.parametrize(("width", "height"), [*SIZES, (60, 15)])
@pytest.mark.parametrize("queries", [1, 2, 3, 7, 12, 40])
def test_the_last_picture_is_all_that_is_left(queries: int, width: int, height: int) -> None:
    """Pictures grow and shrink; none of an earlier one stays, and none scrolls away."""
    sizes = [1, 500, 3, 0, 500]
    pictures = [
        snapshot(*(QueryNow(f"query{n}", "running", size, answers=averages(size)) for n in range(queries)))
        for size in sizes
    ]
    screen = shown(pictures, width, height)
    last, _ = drawing("demo", pictures[-1], float(len(sizes) - 1), width, height)
    console = Console(file=io.StringIO(), record=True, width=width, height=height)
    console.print(last)
    picture = [line.rstrip() for line in console.export_text().splitlines()]
    assert len(picture) < height
    assert screen.lines[: len(picture)] == picture
    assert " ".join(screen.lines[len(picture) :]).startswith("not all answers are shown")
    assert max(map(len, screen.lines)) <= width


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("queries", [1, 2, 5, 8])
@pytest.mark.parametrize("rows", [1, 2, 4, 500])
def test_every_query_shows_an_answer_and_counts_the_others(
    queries: int, rows: int, width: int, height: int
) -> None:
    now = snapshot(*(QueryNow(f"query{n}", "running", rows, answers=averages(rows)) for n in range(queries)))
    drawn, hidden = drawing("demo", now, 1.0, width, height)
    console = Console(file=io.StringIO(), record=True, width=width, height=height)
    console.print(drawn)
    text = console.export_text()
    assert text.count("60.5") == queries  # the first row of each
    seen = sum(text.count(f"{60 + n}.5") for n in range(100))
    assert hidden == queries * rows - seen
    told = [int(word) for word, after in zip(text.split(), text.split()[1:], strict=False) if after == "more"]
    assert sum(told) == hidden


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_many_queries_and_streams_are_counted(width: int, height: int) -> None:
    streams = tuple(StreamNow(f"stream{n}", n, 0.0, 0, 0, None) for n in range(60))
    queries = tuple(QueryNow(f"query{n}", "running", 1, answers=averages(1)) for n in range(200))
    lines = shown([RunSnapshot(1, streams, queries)], width, height).lines
    seen = sum("stream" in line for line in lines) - 2  # the names of the columns, and the count
    assert f"… {60 - seen} more streams" in lines
    seen = sum(line.count("●") for line in lines)
    assert f"… {200 - seen} more queries" in lines
    assert "not all answers are shown" in " ".join(lines)


def test_what_is_all_shown_needs_no_remark() -> None:
    lines = shown([snapshot(QueryNow("q", "running", 3, answers=averages(3)))], 80, 24).lines
    assert lines[-1] == "      2   62.5"


def test_carets_stay_below_their_word_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("windrow.errors.get_terminal_size", lambda: os.terminal_size((60, 24)))
    text = f"SELECT {'a, ' * 40}prise FROM bids [RANGE 1 HOUR]"
    where = text.index("prise")
    *_, line, carets = (
        QueryError("no column", span=Span(where, where + 5)).located(text).render().splitlines()
    )
    assert max(len(line), len(carets)) <= 60
    assert line[carets.index("^") : carets.rindex("^") + 1] == "prise"


def test_messages_are_broken_between_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("windrow.errors.get_terminal_size", lambda: os.terminal_size((60, 24)))
    told = QueryError(
        "stream `s` was declared otherwise when it was written, and its rows are gone", hint="h"
    )
    assert told.render().splitlines() == [
        "error[query]: stream `s` was declared otherwise when it was",
        "  written, and its rows are gone",
        "  = h",
    ]
    warned = Warned(
        "small-slack", "1 of 4 rows (25 %) came later than SLACK 5 SECONDS allows for", "more", "s"
    )
    assert warned.render().splitlines() == [
        "warning[small-slack]: s: 1 of 4 rows (25 %) came later than",
        "  SLACK 5 SECONDS allows for",
        "  = more",
    ]
    pasted = QueryError("no", hint=f"pip install 'windrow[java]'{' ' * 80}.")
    assert len(pasted.render().splitlines()) == 2
