"""The prompt of a shell, as keys drive it."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.cli.test_shell import QUERY, STREAM

from windrow.cli.prompt import Typed, Words
from windrow.cli.session import ShellSession, is_ended

if TYPE_CHECKING:
    from pathlib import Path

CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


def session() -> ShellSession:
    made = ShellSession(None, is_typed=True)
    made.take(STREAM)
    made.take(QUERY)
    return made


def typed(keys: str, monkeypatch: pytest.MonkeyPatch, home: Path) -> list[str]:
    """What a shell is given if these keys are pressed."""
    monkeypatch.setenv("HOME", str(home))
    shell = session()
    with create_pipe_input() as source:
        source.send_text(keys + CTRL_D)
        prompt = Typed(lambda: shell.catalog, shell.commands, is_ended, source=source, screen=DummyOutput())
        return list(prompt)


def test_enter_ends_what_is_complete_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keys = "SELECT 1\rFROM s;\rhelp\r.tables\r\\d s\rdescribe s\rSHOW QUERIES\r"
    expected = ["SELECT 1\nFROM s;", "help", ".tables", "\\d s", "describe s", "SHOW QUERIES"]
    assert typed(keys, monkeypatch, tmp_path) == expected


def test_ctrl_c_forgets_what_was_begun(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert typed(f"SELECT{CTRL_C}.tables\r", monkeypatch, tmp_path) == [".tables"]


def test_history_is_kept_without_secrets_for_its_owner(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = "CREATE STREAM k (a INT, t BIGINT) WATTR t FROM 'kafka://h:9/t?kafka.sasl.password=hunter2';"
    typed(f"SHOW STREAMS;\r{secret}\r", monkeypatch, tmp_path)
    history = tmp_path / ".windrow_history"
    assert "hunter2" not in history.read_text()
    assert "SHOW STREAMS;" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert typed(f"{UP}{UP}\r", monkeypatch, tmp_path) == ["SHOW STREAMS;"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (".wa", ".watch"),
        (".watch ", "q"),
        ("\\d ", "s"),
        ("CREATE STREAM x FROM 'files://examples/da", "data/"),
        ("CREATE STREAM x FROM 'files://examples/data/ord", "orders.jsonl"),
        ("CREATE STREAM x FROM 'fil", "files://"),
        ("SELECT x.se", "segment"),
        ("SELECT * FROM s [RANGE 5 MIN", "MINUTES"),
        ("SELECT * FROM s [SES", "SESSION"),
        ("DROP QUERY ", "q"),
        ("SELECT approx_co", "APPROX_COUNT"),
        ("EXP", "EXPLAIN"),
        ("SHOW Q", "QUERIES"),
        ("SELECT * FROM ", "s"),
        ("SELECT COUNT(*) FROM s [RANGE 5 SECONDS] GROUP BY ", "segment"),
    ],
)
def test_what_is_completed(before: str, expected: str) -> None:
    shell = session()
    after = " FROM s [NOW] AS x" if before == "SELECT x.se" else ""
    document = Document(before + after, len(before))
    found = [
        each.text for each in Words(lambda: shell.catalog, shell.commands).get_completions(document, None)
    ]
    assert expected in found


def test_nothing_is_completed_inside_of_a_text() -> None:
    shell = session()
    text = "SELECT 'nowhere/SEL"
    assert not list(Words(lambda: shell.catalog, shell.commands).get_completions(Document(text), None))


def test_what_was_done_is_told_where_it_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    shell = session()
    shell.take("DROP QUERY q;")
    assert capsys.readouterr().out == "created s\ncreated q; .start runs the queries\ndropped q\n"


def test_wide_tables_are_cut_and_not_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.cli.plain._terminal_width", lambda: 40)
    shell = session()
    capsys.readouterr()
    shell.take("DESCRIBE s;")
    shown = capsys.readouterr().out
    assert "segment" in shown
    assert max(map(len, shown.splitlines())) <= 40
