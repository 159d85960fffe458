"""The frame of the command line: its commands, and what it exits with.

A command is a function with typer annotations, in a module of `windrow/cli/`. It prints its
result to standard output, returns nothing, and raises a `WindrowError` when it cannot go on. To add one, put
it into `COMMANDS` below; its function name is its name on the command line, its docstring its help.

A command imports what is slow to import (Spark, Polars) inside its function, so that `windrow --help` stays
quick.

    exit code   meaning
    0           done
    1           the user's query or data is at fault
    2           bad usage: an unknown command, option or argument
    3           the engine failed, or its surroundings (Java, Spark, a disk)
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from windrow.cli.demo import demo
from windrow.cli.lsp import lsp
from windrow.cli.run import TRACEBACK_VARIABLE, rescale, run, shell
from windrow.cli.scripts import check, explain
from windrow.cli.serve import serve
from windrow.errors import WindrowError

#: what stands in a checkout of the repository, and nowhere else
_COMMAND = Path("benchmarks", "command.py")
#: how typer is to declare the command: every word after `bench` is for the benchmarks, `--help` too
PASSED_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
    "help_option_names": [],
}


def bench(context: typer.Context) -> None:
    """Measure Windrow against others: same rows, same answers. From a checkout of the repository."""
    found = checkout(Path(__file__).parents[3], Path.cwd())
    if found is None:
        raise WindrowError(
            "the benchmarks are not part of the installed package",
            code="no-benchmarks",
            hint="clone Windrow's repository, run `pip install -e '.[bench]'` in it, and call `windrow bench`"
            " there",
        )
    if str(found) not in sys.path:
        sys.path.insert(0, str(found))
    import_module("benchmarks.command").main(context.args)


def checkout(*folders: Path) -> Path | None:
    """The first folder that holds the repository.

    >>> checkout(Path("/proc/none")) is None
    True
    """
    return next((each for each in folders if (each / _COMMAND).is_file()), None)


ENGINE_FAILED = 3

#: every command, in the order of the help text
COMMANDS: tuple[Callable[..., None], ...] = (demo, run, explain, check, shell, serve, rescale, lsp)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, and leave through `SystemExit`, whatever happens."""
    try:
        app(args=arguments, prog_name="windrow")
    except Exception as problem:  # noqa: BLE001 - the outermost frame: what is not caught here is a traceback
        raise SystemExit(report(problem)) from None


def report(problem: Exception) -> int:
    """Tell the user about a problem on standard error; the exit code it deserves."""
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(problem)
    if isinstance(problem, WindrowError):
        print(problem.render(), file=sys.stderr)
        return problem.exit_code
    first_line = (str(problem).strip().splitlines() or ["no message"])[0]
    print(f"error[engine]: {type(problem).__name__}: {first_line}", file=sys.stderr)
    print(f"  = set {TRACEBACK_VARIABLE}=1 to see the traceback", file=sys.stderr)
    return ENGINE_FAILED


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"windrow {version('windrow')}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    """Keep the answers of standing queries fresh over sliding windows of data streams."""


def build(commands: Sequence[Callable[..., None]]) -> typer.Typer:
    """The command line made of these commands."""
    built = typer.Typer(
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # `main` reports exceptions
        rich_markup_mode=None,  # help as plain text, the same on every terminal
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback()(_root)
    for command in commands:
        built.command()(command)
    return built


app = build(COMMANDS)
app.command(context_settings=PASSED_ON)(bench)
