"""The frame of the command line: help, version, and what each kind of failure exits with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
import typer
from tests.support.patience import PATIENCE

from windrow.cli import main as frame
from windrow.errors import DataError, QueryError, SourceError

if TYPE_CHECKING:
    from pathlib import Path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `windrow` with these arguments."""
    with pytest.raises(SystemExit) as leaving:
        frame.main(list(arguments))
    output = capsys.readouterr()
    code = leaving.value.code
    return (code if isinstance(code, int) else 0), output.out, output.err


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line with one command, `fail`, that fails in the way it is told."""
    failures = {
        "query": QueryError("no column `prise`", hint="did you mean `price`?"),
        "data": DataError("row 3 has no time"),
        "source": SourceError("no such file"),
        "bug": ZeroDivisionError("division by zero\nand a second line"),
    }

    def fail(how: str) -> None:
        """Fail."""
        if how in failures:
            raise failures[how]

    def succeed() -> None:
        """Do nothing."""

    monkeypatch.delenv(frame.TRACEBACK_VARIABLE, raising=False)
    monkeypatch.setattr(frame, "app", frame.build([fail, succeed]))


def test_help_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "standing queries" in out


def test_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"windrow {version('windrow')}\n", "")


def test_the_package_runs_as_a_module() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "windrow", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("windrow ")


def test_ctrl_c_ends_it_without_a_word_while_it_is_being_loaded(tmp_path: Path) -> None:
    """One of its libraries takes for ever to load."""
    (tmp_path / "typer.py").write_text("import signal\nprint('loading', flush=True)\nsignal.pause()\n")
    as_in_a_terminal = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{as_in_a_terminal}; from runpy import run_module as run; run('windrow', run_name='__main__')"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "loading\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", "")
    assert process.returncode == 130


def test_help_does_not_load_the_heavy_libraries() -> None:
    program = (
        "import sys, windrow.cli.main; print(sorted({'pyspark', 'polars', 'pandas'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


@pytest.mark.usefixtures("broken")
def test_done_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "succeed") == (0, "", "")


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("how", ["query", "data"])
def test_the_users_fault_is_1(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "fail", how)
    assert (code, out) == (1, "")
    assert err.startswith(f"error[{how}]: ")
    assert "Traceback" not in err


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize("arguments", [["nonsense"], ["--nonsense"], ["fail"], ["fail", "query", "more"]])
def test_bad_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Usage: windrow" in err


@pytest.mark.usefixtures("broken")
def test_surroundings_are_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "fail", "source") == (3, "", "error[source]: no such file\n")


@pytest.mark.usefixtures("broken")
def test_a_bug_is_3_and_says_how_to_see_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = run(capsys, "fail", "bug")
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        "error[engine]: ZeroDivisionError: division by zero",
        "  = set WINDROW_TRACEBACK=1 to see the traceback",
    ]
    monkeypatch.setenv("WINDROW_TRACEBACK", "1")
    assert "Traceback" in run(capsys, "fail", "bug")[2]


def test_every_command_has_help() -> None:
    for command in typer.main.get_group(frame.app).commands.values():
        assert command.help, command.name
