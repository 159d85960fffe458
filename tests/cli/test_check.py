"""`windrow check`: the examples pass, mistakes are shown where they are, and bad usage is told apart."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from windrow.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
TYPO = """\
error[unknown-column]: no column `prise`
  --> examples/typo.cql:4:26
  |
4 | SELECT ISTREAM(item, MAX(prise)) FROM bids [RANGE 10 MINUTES] GROUP BY item;
  |                          ^^^^^
  = did you mean `price`?
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `windrow` with these arguments."""
    with pytest.raises(SystemExit) as leaving:
        main(list(arguments))
    output = capsys.readouterr()
    return leaving.value.code or 0, output.out, output.err


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(EXAMPLES.glob("*.cql")) if file.stem != "typo"],
    ids=lambda file: file.stem,
)
def test_the_examples_pass(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "check", str(file))
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("ok  ")


def test_one_line_per_statement(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "a.cql"
    script.write_text(
        "CREATE STREAM s (a INT, ts TIMESTAMP) WATTR ts;"
        " CREATE QUERY sums AS SELECT SUM(a) AS x FROM s [NOW];"
        " SELECT a FROM s [NOW]"
    )
    assert run(capsys, "check", str(script)) == (
        0,
        "stream  s     a INT, ts TIMESTAMP\n"
        "query   sums  x BIGINT\n"
        "query         a INT\n"
        "ok  3 statements: 1 stream, 2 queries\n",
        "",
    )


def test_the_typo_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    assert run(capsys, "check", "examples/typo.cql") == (1, "", TYPO)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ("price DECIMAL(9, 2), ts TIMESTAMP", "column `price` of stream `s` is declared DECIMAL(9,2)"),
        ("prize DOUBLE, ts TIMESTAMP", "did you mean `price`?"),
    ],
)
def test_columns_that_a_generator_does_not_give_are_refused(
    columns: str, told: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    script = tmp_path / "script.cql"
    script.write_text(f"CREATE STREAM s ({columns}) WATTR ts FROM 'generator:auction';")
    code, _, err = run(capsys, "check", str(script))
    assert code == 1
    assert told in err
    assert f"{script}:1:" in err


def test_errors_point_into_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, b"SELECT 1 FROM nothing [NOW]")
    code, out, err = run(capsys, "check", "-")
    assert (code, out) == (1, "")
    assert "--> <stdin>:1:15" in err


def test_a_byte_order_mark_is_no_mistake(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin(monkeypatch, b"\xef\xbb\xbfCREATE STREAM s (ts TIMESTAMP) WATTR ts")
    assert run(capsys, "check", "-")[0] == 0


def test_bytes_that_are_no_text(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"SELECT \xff")
    code, _, err = run(capsys, "check", "-")
    assert code == 1
    assert err.startswith("error[not-text]: <stdin> is not UTF-8 text: byte 7 is 0xff\n")


@pytest.mark.parametrize("arguments", [[], ["missing.cql"], ["."]])
def test_bad_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "check", *arguments)
    assert (code, out) == (2, "")
    assert "Usage: windrow check" in err


@pytest.mark.parametrize("text", ["", "-- nothing", ";;"])
def test_an_empty_script_is_fine(text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = tmp_path / "empty.cql"
    script.write_text(text)
    assert run(capsys, "check", str(script)) == (0, "ok  0 statements\n", "")
