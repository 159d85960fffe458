"""Commands that run an engine: `run` (a script, until it is done or you stop it), `rescale`, and `shell`
(statements and dot-commands, typed or from a pipe).

A run that somebody watches has its epochs in one thread, the view and the signals in another. The first
Ctrl-C (or SIGTERM) lets the epoch under way finish and ends the run in order; the second leaves at once,
which costs nothing but the repetition of that epoch at the next start. The terminal's echo is off while a
region is drawn: what is typed would come to stand in it, Ctrl-C as `^C`, and at the end of a line move it
down by one.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from windrow.cli import options, plain, scripts
from windrow.errors import StateError, WindrowError

if TYPE_CHECKING:
    from windrow.algebra.explain.warnings import Warned
    from windrow.cli.answers import LastAnswers
    from windrow.cli.options import Observability, SparkChoice
    from windrow.cli.snapshots import RunSnapshot, View, Watcher
    from windrow.session import Windrow
    from windrow.sinks import Sink

_LOCAL_MODES = 3
#: how the terminal was, while it is silent
_before: list[tuple[int, list[Any]]] = []


@contextmanager
def silent() -> Iterator[None]:
    """What is typed is not shown; Ctrl-C still interrupts."""
    with suppress(AttributeError, OSError, ValueError, termios.error):  # there is no terminal
        terminal = sys.__stdin__.fileno()  # type: ignore[union-attr]
        controls = -1
        with suppress(OSError):  # a terminal that controls nobody
            controls = os.tcgetpgrp(terminal)
        if controls in (-1, os.getpgrp()):  # a job in the background would be stopped if it touched it
            modes = termios.tcgetattr(terminal)
            _before.append((terminal, [*modes]))
            modes[_LOCAL_MODES] &= ~termios.ECHO
            termios.tcsetattr(terminal, termios.TCSADRAIN, modes)
    try:
        yield
    finally:
        restore()


def restore() -> None:
    """The terminal as it was; for those who leave at once, too."""
    while _before:
        terminal, modes = _before.pop()
        with suppress(OSError, termios.error):
            termios.tcsetattr(terminal, termios.TCSADRAIN, modes)


# ------------------------------------------------------------ the run


#: seconds between two looks at the newest snapshot
_REFRESH = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LEFT_AT_ONCE = 130
_SHOW_CURSOR = b"\x1b[?25h\n"
#: set, tracebacks are shown, Java's too
TRACEBACK_VARIABLE = "WINDROW_TRACEBACK"


class Signals:
    """Whether the user wants the run to end. As a context, signals come here."""

    def __init__(self) -> None:
        self.is_stopping = False
        #: before there is a run to finish, a signal just interrupts
        self.is_running = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def take(self) -> None:
        """Signals come here from now on; starting Spark would have SIGINT cancel its jobs instead."""
        if threading.current_thread() is threading.main_thread():
            for each in _SIGNALS:
                found = signal.signal(each, self._on_signal)
                self._before.setdefault(each, found)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.is_stopping:
            restore()
            if sys.stdout.isatty():
                os.write(sys.stdout.fileno(), _SHOW_CURSOR)
            os._exit(_LEFT_AT_ONCE)
        self.is_stopping = True
        if not self.is_running:
            raise KeyboardInterrupt


@contextmanager
def started(
    state: str | Path | None,
    take_signals: Callable[[], None],
    spark: SparkChoice,
    observed: Observability | None = None,
    *,
    takeover: bool = False,
) -> Iterator[Windrow]:
    """An engine over a state directory, on a Spark of its own. Interrupted before it runs, it just ends."""
    try:
        with ExitStack() as open_:
            open_.enter_context(_interrupted_quietly())
            with _waiting("starting Spark …"), spark.starting() as session:
                from windrow.session import Windrow  # takes as long to load as Java to start
                from windrow.spark.session import warm

                engine = Windrow(None, state, takeover=takeover, start=session, shards=spark.shards)
                open_.enter_context(engine)
            take_signals()
            _quiet(engine)
            warm(engine.spark)
            open_.enter_context(observed.serving(engine) if observed is not None else nullcontext())
            yield engine
    except KeyboardInterrupt:
        say("stopped before anything ran")
        raise typer.Exit from None


@contextmanager
def _interrupted_quietly() -> Iterator[None]:
    """py4j logs with a traceback that somebody did not wait for Java: who pressed Ctrl-C knows."""

    def is_news(record: logging.LogRecord) -> bool:
        return record.msg != "KeyboardInterrupt while sending command."

    root = logging.getLogger()
    root.addFilter(is_news)
    try:
        yield
    finally:
        root.removeFilter(is_news)


def _quiet(engine: Windrow) -> None:
    """What Spark would log with Java's traces is told by errors with a way out; see `windrow.cli.main`."""
    if not os.environ.get(TRACEBACK_VARIABLE):
        engine.spark.sparkContext.setLogLevel("OFF")


def run_watched(
    engine: Windrow,
    watcher: Watcher,
    view: View,
    signals: Signals,
    *,
    trigger: str,
    once: bool = False,
    flush: bool = False,
    until: Callable[[RunSnapshot, float], bool] = lambda snapshot, seconds: False,
) -> WindrowError | None:
    """Run until the inputs end, a signal comes or `until` says so. Gives a failure that was told already.

    Any other failure is raised.
    """
    told = _Told(view)
    failures: list[BaseException] = []

    def make_epochs() -> None:
        try:
            engine.run(trigger=trigger, once=once, flush=flush, watch=watcher)
        except BaseException as error:  # noqa: BLE001  it is raised again by the thread that waits
            failures.append(error)

    run = threading.Thread(target=make_epochs, name="windrow run", daemon=True)
    signals.is_running = True
    began = time.monotonic()
    with view:
        run.start()
        while run.is_alive():
            run.join(_REFRESH)
            snapshot, seconds = watcher.newest, time.monotonic() - began
            told.tell(snapshot)
            if not once:  # what is over soon is told with its last numbers
                told.warn(snapshot)
            view.show(snapshot, seconds)
            if signals.is_stopping or until(snapshot, seconds):
                engine.stop()
        watcher()
        failure = failures[0] if failures else None
        told.tell(watcher.newest, but=failure)
        told.warn(watcher.newest)
        view.show(watcher.newest, time.monotonic() - began)
    if failure is None:
        return None
    if isinstance(failure, WindrowError) and told.knows(failure):
        return failure
    raise failure


class _Told:
    """Tells each problem once, and each warning about a stream, whose numbers grow."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: set[object] = set()

    def tell(self, snapshot: RunSnapshot, but: BaseException | None = None) -> None:
        """All that is new; what has ended the run is told by whoever it is raised to."""
        for problem in snapshot.problems:
            if problem is not but:
                self._once(problem.render(), problem)

    def warn(self, snapshot: RunSnapshot) -> None:
        """What is rarely meant and was not told yet."""
        for warning in snapshot.warnings:
            self._once((warning.code, warning.about), warning)

    def _once(self, key: object, what: WindrowError | Warned) -> None:
        if key not in self._known:
            self._known.add(key)
            self._view.tell(what)

    def knows(self, problem: WindrowError) -> bool:
        return problem.render() in self._known


@contextmanager
def _waiting(text: str) -> Iterator[None]:
    """A line on the terminal while something takes its time, with the seconds it has taken so far."""
    if not sys.stderr.isatty():
        yield
        return
    began, over = time.monotonic(), threading.Event()

    def count() -> None:
        while not over.wait(1.0):
            print(f"\r{text} {time.monotonic() - began:.0f} s", end="", file=sys.stderr, flush=True)

    print(text, end="", file=sys.stderr, flush=True)
    counting = threading.Thread(target=count, daemon=True)
    counting.start()
    try:
        yield
    finally:
        over.set()
        counting.join()
        print(file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A remark for a person who is watching: on standard error, and only if that is a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)


# ------------------------------------------------------------ commands


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
        str, typer.Option(metavar="TIME", callback=scripts.trigger_text, help="How often rows are taken.")
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
    text, name, state = scripts.read_script(file), scripts.name_of(file), state or scripts.state_of(file)
    began = time.monotonic()
    declared = Declarations()
    with scripts.within(name):
        shown = declared.sql(text)
        declared.check_sources(text)
    if not declared.catalog.queries and not drop and not Declarations().asks(text):
        print_shown(shown)
        return
    spark = options.SparkChoice(master, conf, shards=shards)
    with Signals() as signals, started(state, signals.take, spark, observed, takeover=takeover) as engine:
        for query in drop or ():
            engine.drop(query)
        kept, is_live = AnswersByQuery(), sys.stdout.isatty()
        engine.default_sink = kept.sink if is_live and not once else _console
        engine.beside_sink = kept.beside if is_live else None
        with scripts.within(name):
            shown = engine.declare(text)
        asked = [each for each in shown if isinstance(each, Once)]
        print_shown([each for each in shown if not isinstance(each, Once)])
        view = LiveView(name, answers=not once) if is_live else plain.PlainView()
        watcher = Watcher(engine, kept)
        before = watcher.newest
        told = run_watched(engine, watcher, view, signals, trigger=trigger, once=once, flush=flush)
        _show_sunk(engine, kept if once else {})
        with scripts.within(name):
            print_shown([engine.select(each) for each in asked])
        say(_closing(before, watcher.newest, time.monotonic() - began, state, once=once))
    if told is not None:
        raise typer.Exit(told.exit_code)


def _show_sunk(engine: Windrow, kept: Mapping[str, LastAnswers]) -> None:
    """The last answers of queries whose answers go elsewhere."""
    for name, answers in kept.items():
        sink, last = engine.queries[name].sink, answers.last
        if sink is not None and last is not None and not sink.startswith("console:"):
            print(
                "\n".join(plain.answer_lines(name, last, _ANSWERS_SHOWN)),
                f"  all of them: {sink}\n",
                sep="\n",
            )


def _closing(before: RunSnapshot, after: RunSnapshot, seconds: float, state: str, *, once: bool) -> str:
    """What a run came to, and what the same command would do now."""
    if once and before.rows_in and before.commit and after.rows_in == before.rows_in:
        return f"nothing new: {state} has these rows already\nanother --state begins again"
    told = f"{'done' if once else 'stopped'}: {plain.summary(after, seconds, before)}"
    silent = [query.name for query in after.queries if not query.rows and query.status == "running"]
    told += f"\nwithout an answer: {', '.join(silent)}" if silent else ""
    return told if once else f"{told}\nthe same command goes on from there, with {state}"


def _console(query: str) -> Sink:
    from windrow.sinks import open_sink

    return open_sink("console:", query)


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
