"""`windrow bench NAME`: one command per benchmark, its options those that the benchmark declares."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from benchmarks.benchmark import Benchmark
from benchmarks.registry import all_benchmarks

if TYPE_CHECKING:
    from benchmarks.report import Report

_ROUNDS, _QUICK_ROUNDS = 3, 1
_QUICK_WARNING = "This was a --quick run: it shows that the benchmark works. Its figures mean nothing."


def run_benchmark(
    benchmark: Benchmark,
    chosen: dict[str, Any],
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A small form, to see that it works.")] = False,
    rounds: Annotated[
        int | None, typer.Option(min=1, help=f"How often each case runs ({_ROUNDS}; quick: {_QUICK_ROUNDS}).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where rows are kept (~/.cache/windrow/bench).")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the JSON and the plots go.")] = Path(
        "bench"
    ),
    cores: Annotated[str, typer.Option(metavar="N", help="Cores for everyone; * is all.")] = "*",
    memory: Annotated[str, typer.Option(metavar="SIZE", help="Java's heap.")] = "4g",
    extra: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            metavar="NAME",
            help="A contestant to include: pyflink, which is installed; spark. Or engine: run what a study"
            " asks of kernels on the engine, beside them.",
        ),
    ] = None,
    patience: Annotated[
        int, typer.Option(metavar="MINUTES", min=1, help="After these, another contestant's run is stopped.")
    ] = 20,
    told: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="JSON",
            exists=True,
            dir_okay=False,
            help="Run nothing: take the results of a run before.",
        ),
    ] = None,
    write_docs: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Put the tables into their place on this page.")
    ] = None,
) -> None:
    """Run a benchmark, or take up a run of it; print, save and document what it found."""
    from benchmarks.docs import write_docs as fill
    from benchmarks.plot import need_matplotlib
    from benchmarks.report import Report
    from benchmarks.runs import publish, run
    from benchmarks.setting import Setting

    need_matplotlib()  # now, and not after an hour
    if told is not None:
        report, written = Report.load(told), []
    else:
        options = replace(benchmark.quick if quick else benchmark.options(), **chosen)
        with tempfile.TemporaryDirectory(prefix="windrow-bench-") as scratch:
            setting = Setting(
                data=_cache(data),
                scratch=Path(scratch),
                rounds=rounds or (_QUICK_ROUNDS if quick else _ROUNDS),
                cores=cores,
                memory=memory,
                extras=_extras(extra or []),
                patience=60.0 * patience,
                say=_say,
            )
            report = run(benchmark, options, setting, is_quick=quick)
        written = publish(report, out)
    show(report)
    if write_docs is not None:
        written += fill(report, write_docs)
    for path in written:
        print(f"wrote {path}")


def show(report: Report) -> None:
    """Print a report: what it ran on and with, then what it found."""
    from benchmarks.runs import settings_table

    print(f"{report.benchmark}: {report.about}\n")
    facts = {**report.machine, "rounds": report.rounds, **report.options}
    print("\n".join(f"{name}: {value}" for name, value in facts.items()), end="\n\n")
    for table in (settings_table(report), *report.tables):
        print(table.text(), end="\n\n")
    for note in report.notes:
        print(note)
    if report.is_quick:
        print(_QUICK_WARNING)


def _extras(names: list[str]) -> frozenset[str]:
    if unknown := set(names) - {"pyflink", "spark", "engine"}:
        raise typer.BadParameter(
            f"no contestant {', '.join(sorted(unknown))}; there are pyflink, spark and engine"
        )
    return frozenset(names)


def _cache(given: Path | None) -> Path:
    """Where rows are kept: as said, or in the user's cache, or where it is not, with temporary files."""
    if given is None:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        given = home / "windrow" / "bench"
        try:
            given.mkdir(parents=True, exist_ok=True)
        except OSError:
            given = Path(tempfile.gettempdir()) / "windrow-bench"
    given.mkdir(parents=True, exist_ok=True)
    return given.resolve()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# ------------------------------------------------------------ options of benchmarks


def _command(benchmark: Benchmark) -> Callable[..., None]:
    """The function typer makes a command of: its parameters are everyone's and the benchmark's own."""
    own = {parameter.name: parameter for parameter in _own_parameters(benchmark)}

    def command(**given: Any) -> None:
        chosen = {name: given.pop(name) for name in own}
        chosen = {name: _value(benchmark, name, text) for name, text in chosen.items() if text is not None}
        run_benchmark(benchmark, chosen, **given)

    return _declared(command, [*own.values(), *_common_parameters()], benchmark.about)


def _all(benchmarks: Mapping[str, Benchmark]) -> Callable[..., None]:
    """The same for all benchmarks, one after the other."""

    def command(**given: Any) -> None:
        took: dict[str, float] = {}
        for name, benchmark in benchmarks.items():
            began = time.perf_counter()
            run_benchmark(benchmark, {}, **given)
            took[name] = time.perf_counter() - began
        for name, seconds in (*took.items(), ("all of them", sum(took.values()))):
            print(f"{name:<12} {seconds:7.1f} s")

    shared = [parameter for parameter in _common_parameters() if parameter.name != "told"]
    return _declared(command, shared, "All of them, one after the other.")


def _declared(
    command: Callable[..., None], parameters: list[inspect.Parameter], about: str
) -> Callable[..., None]:
    """A function with the parameters and the help that typer is to see."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__doc__ = about
    return command


def _common_parameters() -> list[inspect.Parameter]:
    return list(inspect.signature(run_benchmark, eval_str=True).parameters.values())[2:]


def _own_parameters(benchmark: Benchmark) -> list[inspect.Parameter]:
    hints = get_type_hints(benchmark.options, include_extras=True)
    parameters = []
    for each in fields(benchmark.options):
        kind, text = get_args(hints[each.name])
        taken, metavar = (str, "N,N,…") if get_origin(kind) is tuple else (kind, None)
        about = f"{text} ({_text(each.default)}; quick: {_text(getattr(benchmark.quick, each.name))})"
        option = typer.Option(help=about, metavar=metavar, show_default=False)
        parameters.append(
            inspect.Parameter(
                each.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[taken | None, option],
            )
        )
    return parameters


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(benchmark: Benchmark, name: str, given: Any) -> Any:
    """What is given, as the benchmark wants it: numbers of a list become one."""
    if not isinstance(getattr(benchmark.quick, name), tuple):
        return given
    try:
        return tuple(int(part) for part in given.split(","))
    except ValueError:
        raise typer.BadParameter(f"--{name.replace('_', '-')} takes whole numbers: 1,10,100") from None


def _build(benchmarks: Mapping[str, Benchmark]) -> typer.Typer:
    """A command for each, and one for all."""
    built = typer.Typer(
        help="Measure Windrow against others: same rows, same answers.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,  # the command line of Windrow reports exceptions
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for each in benchmarks.values():
        built.command(each.name)(_command(each))
    built.command("all")(_all(benchmarks))
    return built


def main(arguments: Sequence[str]) -> None:
    """Run what `windrow bench` was told, and leave through `SystemExit`."""
    _build(all_benchmarks())(args=list(arguments), prog_name="windrow bench")
