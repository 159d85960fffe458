"""Commands that run an engine: `run` (a script, until it is done or you stop it), `rescale`, and `shell`
(statements and dot-commands, typed or from a pipe).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windrow.cli import options
from windrow.cli.plain import PlainView, answer_lines, summary
from windrow.cli.run_loop import Signals, run_watched, say, started
from windrow.cli.scripts import name_of, read_script, state_of, trigger_text, within
from windrow.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from windrow.cli.answers import LastAnswers
    from windrow.cli.snapshots import RunSnapshot
    from windrow.session import Windrow
    from windrow.sinks import Sink

#: of a query whose answers go to a sink
_ANSWERS_SHOWN = 4


def run(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE.cql", dir_okay=False, help="A script; - reads from standard input."),
    ],
    state: options.StateOption = None,
    once: Annotated[bool, typer.Option("--once", help="Take what is there, and end.")] = False,
    flush: Annotated[
        bool, typer.Option("--flush", help="Then end the streams and answer everything; implies --once.")
    ] = False,
    trigger: Annotated[
        str, typer.Option(metavar="TIME", callback=trigger_text, help="How often rows are taken.")
    ] = "1 second",
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="QUERY", help="Forget the state of a query the script no longer has."),
    ] = None,
    takeover: Annotated[
        bool, typer.Option("--takeover", help="The engine that seems to own the state is gone: take it.")
    ] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    shards: options.ShardsOption = None,
    log: options.LogOption = None,
    level: options.LevelOption = None,
    metrics: options.MetricsOption = None,
) -> None:
    """Run the standing queries of a script, until Ctrl-C. SELECTs are asked at the end."""
    from windrow.cli.answers import AnswersByQuery
    from windrow.cli.declarations import Declarations
    from windrow.cli.live import LiveView
    from windrow.cli.plain import print_shown
    from windrow.cli.snapshots import Watcher
    from windrow.language.binder.once import Once

    once, observed = once or flush, options.Observability(log, level, metrics)
    observed.set_up()
    text, name, state = read_script(file), name_of(file), state or state_of(file)
    began = time.monotonic()
    declared = Declarations()
    with within(name):
        shown = declared.sql(text)
        declared.check_sources(text)
    if not declared.catalog.queries and not drop and not Declarations().asks(text):
        print_shown(shown)
        return
    spark = options.SparkChoice(master, conf, shards=shards)
    with Signals() as signals, started(state, signals, spark, observed, takeover=takeover) as engine:
        for query in drop or ():
            engine.drop(query)
        kept, is_live = AnswersByQuery(), sys.stdout.isatty()
        engine.default_sink = kept.sink if is_live and not once else _console
        engine.beside_sink = kept.beside if is_live else None
        with within(name):
            shown = engine.declare(text)
        asked = [each for each in shown if isinstance(each, Once)]
        print_shown([each for each in shown if not isinstance(each, Once)])
        view = LiveView(name, answers=not once) if is_live else PlainView()
        watcher = Watcher(engine, kept)
        before = watcher.newest
        told = run_watched(engine, watcher, view, signals, trigger=trigger, once=once, flush=flush)
        _show_sunk(engine, kept if once else {})
        with within(name):
            print_shown([engine.select(each) for each in asked])
        say(_closing(before, watcher.newest, time.monotonic() - began, state, once=once))
    if told is not None:
        raise typer.Exit(told.exit_code)


def _show_sunk(engine: Windrow, kept: Mapping[str, LastAnswers]) -> None:
    """The last answers of queries whose answers go elsewhere."""
    for name, answers in kept.items():
        sink, last = engine.queries[name].sink, answers.last
        if sink is not None and last is not None and not sink.startswith("console:"):
            print("\n".join(answer_lines(name, last, _ANSWERS_SHOWN)), f"  all of them: {sink}\n", sep="\n")


def _closing(before: RunSnapshot, after: RunSnapshot, seconds: float, state: str, *, once: bool) -> str:
    """What a run came to, and what the same command would do now."""
    if once and before.rows_in and before.commit and after.rows_in == before.rows_in:
        return f"nothing new: {state} has these rows already\nanother --state begins again"
    told = f"{'done' if once else 'stopped'}: {summary(after, seconds, before)}"
    silent = [query.name for query in after.queries if not query.rows and query.status == "running"]
    told += f"\nwithout an answer: {', '.join(silent)}" if silent else ""
    return told if once else f"{told}\nthe same command goes on from there, with {state}"


def _console(query: str) -> Sink:
    from windrow.sinks import open_sink

    return open_sink("console:", query)


# ------------------------------------------------------------ rescale


def rescale(
    state: Annotated[str, typer.Option(metavar="DIR|URL", help="Where the state is kept, as for `run`.")],
    shards: Annotated[int, typer.Option(metavar="N", min=1, help="How many shards it is to have.")],
    takeover: Annotated[
        bool, typer.Option("--takeover", help="The engine that seems to own the state is gone: take it.")
    ] = False,
) -> None:
    """Route the state of a stopped engine to another number of shards."""
    from windrow.engine.rescale import rescale as route
    from windrow.state.history import History
    from windrow.state.log import CommitLog
    from windrow.state.object_store import open_store

    store = open_store(state)
    if not History(store).numbers():
        raise StateError(
            f"there is no state in {state}",
            code="no-state",
            hint="name the directory that `windrow run --state` was given",
        )
    with CommitLog.open(store, takeover=takeover) as log:
        before = log.last.shards
        last = route(log, shards)
    told = f"{last.shards} shard{'s' if last.shards != 1 else ''}"
    if before == last.shards:
        print(f"{state} has {told} already")
    elif not before:
        print(f"{state} has no shards yet: give `--shards {shards}` to the first start")
    else:
        print(f"{state} has {told} instead of {before}, from commit {last.number} on")


def shell(
    state: Annotated[
        str | None,
        typer.Option(metavar="DIR|URL", help="Where the state is kept, as for `run`; else nothing is."),
    ] = None,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    shards: options.ShardsOption = None,
    log: options.LogOption = None,
    level: options.LevelOption = None,
    metrics: options.MetricsOption = None,
) -> None:
    """Type statements, run them, watch their answers."""
    from windrow.cli.session import ShellSession, is_ended, piped

    is_typed = sys.stdin.isatty()
    observed = options.Observability(log, level, metrics)
    observed.set_up()
    session = ShellSession(
        state, options.SparkChoice(master, conf, shards=shards), observed, is_typed=is_typed
    )
    lines = piped()
    if is_typed:
        from windrow.cli.prompt import Typed

        print("Statements end with `;`. Tab completes, `help` lists the commands, Ctrl-D ends.")
        lines = iter(Typed(lambda: session.catalog, session.commands, is_ended))
    try:
        for text in lines:
            if not session.take(text):
                break
    finally:
        session.close()
