"""`windrow bench`: its options come from the benchmarks, and what they give reaches them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from benchmarks import command as command_line
from benchmarks.benchmark import Benchmark, Findings
from benchmarks.registry import all_benchmarks
from benchmarks.setting import Setting
from benchmarks.table import Table


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    sizes: Annotated[tuple[int, ...], "Sizes."] = (1, 2)
    count: Annotated[int, "How many."] = 5


def found(setting: Setting, options: Options) -> Findings:
    table = Table(
        "Found",
        ("sizes", "count", "rounds"),
        ((str(options.sizes), str(options.count), str(setting.rounds)),),
    )
    return Findings({"a": {"store": "none"}}, [], [table], [], notes=["A note."])


@pytest.fixture
def app() -> typer.Typer:
    """A command line with one benchmark that runs nothing."""
    benchmark = Benchmark("nothing", "Measure nothing.", Options, Options((7,), 1), found)
    app = typer.Typer()
    app.callback()(lambda: None)
    app.command("nothing")(command_line._command(benchmark))
    return app


def test_every_benchmark_declares_options_with_help_and_defaults() -> None:
    for name, benchmark in all_benchmarks().items():
        assert benchmark.name == name
        assert isinstance(benchmark.quick, benchmark.options)
        assert command_line._own_parameters(benchmark)


def test_options_reach_the_benchmark(app: typer.Typer, tmp_path: Path) -> None:
    arguments = [
        "nothing",
        "--sizes",
        "3,4",
        "--rounds",
        "2",
        "--data",
        str(tmp_path),
        "--out",
        str(tmp_path / "out"),
    ]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert ["(3,", "4)", "5", "2"] in [line.split() for line in told.output.splitlines()]
    assert "A note." in told.output
    assert "--quick" not in told.output
    assert (tmp_path / "out" / "nothing.json").exists()


def test_quick_is_the_small_form(app: typer.Typer, tmp_path: Path) -> None:
    arguments = ["nothing", "--quick", "--count", "9", "--data", str(tmp_path), "--out", str(tmp_path)]
    told = CliRunner().invoke(app, arguments)
    assert ["(7,)", "9", "1"] in [line.split() for line in told.output.splitlines()]
    assert "mean nothing" in told.output


def test_documents_can_be_filled_from_a_run_before(app: typer.Typer, tmp_path: Path) -> None:
    CliRunner().invoke(app, ["nothing", "--data", str(tmp_path), "--out", str(tmp_path)])
    page = tmp_path / "page.md"
    page.write_text("<!-- bench nothing -->\n<!-- end bench -->\n", encoding="utf-8")
    arguments = ["nothing", "--from", str(tmp_path / "nothing.json"), "--write-docs", str(page)]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert "| (1, 2) | 5 | 3 |" in page.read_text(encoding="utf-8")


def test_a_run_that_is_not_there_is_told(app: typer.Typer) -> None:
    told = CliRunner().invoke(app, ["nothing", "--from", "never.json"])
    assert told.exit_code == 2
    assert "never.json" in told.output


def test_lists_are_whole_numbers(app: typer.Typer) -> None:
    told = CliRunner().invoke(app, ["nothing", "--sizes", "1,two"])
    assert told.exit_code == 2
    assert "--sizes takes whole numbers" in told.output
