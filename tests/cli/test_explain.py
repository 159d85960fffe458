"""`windrow explain`: files, -e and standard input, in all formats; mistakes without a traceback."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from windrow.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
BIDS = "bids(item BIGINT, price DOUBLE, ts TIMESTAMP) WATTR ts SLACK 5 SECONDS"
DISTINCT = "SELECT DISTINCT item FROM bids [RANGE 5 MINUTES]"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `windrow explain` with these arguments."""
    with pytest.raises(SystemExit) as leaving:
        main(["explain", *arguments])
    output = capsys.readouterr()
    return leaving.value.code or 0, output.out, output.err


@pytest.mark.part(7)
@pytest.mark.parametrize(
    "file",
    [file for file in sorted(EXAMPLES.glob("*.cql")) if file.stem != "typo"],
    ids=lambda file: file.stem,
)
@pytest.mark.parametrize("form", ["text", "json", "dot"])
def test_the_examples_are_explained(file: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, str(file), "--format", form)
    assert (code, err) == (0, "")
    queries = file.read_text(encoding="utf-8").count("CREATE QUERY")
    marks = {"text": "answers   ", "json": '"answers": ', "dot": "digraph "}
    assert out.count(marks[form]) == queries


def test_a_query_is_explained_with_its_method_and_clock(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "-e", DISTINCT, "--stream", BIDS)
    assert (code, err) == (0, "")
    assert out.startswith("emit '+' and '-' · WK\n└─ δ DISTINCT\n")
    assert "method  δ, told: each value" in out
    assert "clock       bids: SLACK 5 SECONDS" in out


def test_rates_make_estimates(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT item FROM bids [RANGE 5 MINUTES]"
    assert "about 3 000 rows" in run(capsys, "-e", query, "--stream", BIDS, "--rate", "bids=10")[1]
    assert "about" not in run(capsys, "-e", query, "--stream", BIDS)[1]


def test_a_table_is_explained_with_its_kind(capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT name FROM bids [NOW] b JOIN items i ON b.item = i.item"
    table = "items(item BIGINT, name STRING, KEY (item)) NRR"
    code, out, _ = run(capsys, "-e", query, "--stream", BIDS, "--table", table)
    assert code == 0
    assert "table items AS i NRR" in out


def test_explain_statements_and_several_queries(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"EXPLAIN {DISTINCT}; CREATE QUERY q AS {DISTINCT} INTO 'kafka://h:9092/t'; {DISTINCT}"
    code, out, _ = run(capsys, "-e", text, "--stream", BIDS, "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert [each["query"] for each in found] == ["#1", "q", "#3"]
    assert found[1]["sink"]["guarantee"].startswith("at least once")


def test_a_script_is_read_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"CREATE STREAM {BIDS}; {DISTINCT}"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
    code, out, _ = run(capsys, "-")
    assert code == 0
    assert "δ, told" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-e", "SELECT x FROM bids [NOW]", "--stream", BIDS], "-e:1:8"),
        (["-e", DISTINCT, "--stream", "bids(item BIGNT, ts TIMESTAMP)"], "--stream:1:20"),
        (["-e", DISTINCT], "no stream, table or query `bids`"),
        (["-e", f"CREATE STREAM {BIDS}"], "there is no query to explain"),
        (["-e", ""], "there is no query to explain"),
    ],
)
def test_the_users_mistake_is_1(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["missing.cql"],
        [str(EXAMPLES / "traffic.cql"), "-e", DISTINCT],
        ["-e", DISTINCT, "--format", "pdf"],
        ["-e", DISTINCT, "--rate", "bids"],
        ["-e", DISTINCT, "--rate", "bids=fast"],
    ],
)
def test_bad_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "Usage: windrow explain" in err
