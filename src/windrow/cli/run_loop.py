"""A run with someone watching: epochs in one thread, the view and the signals in another.

The first Ctrl-C (or SIGTERM) lets the epoch under way finish and ends the run in order; the second leaves at
once, which costs nothing but the repetition of that epoch at the next start.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, Self

import typer

from windrow.cli.echo import restore
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from pathlib import Path

    from windrow.cli.options import Observability, SparkChoice
    from windrow.cli.snapshots import RunSnapshot, View, Watcher
    from windrow.session import Windrow

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


class Takes(Protocol):
    """Whoever wants the signals."""

    def take(self) -> None:
        """Signals come here from now on."""


@contextmanager
def started(
    state: str | Path | None,
    signals: Takes,
    spark: SparkChoice,
    observed: Observability | None = None,
    *,
    takeover: bool = False,
) -> Iterator[Windrow]:
    """An engine over a state directory, on a Spark of its own. Interrupted before it runs, it just ends."""
    try:
        with ExitStack() as open_:
            with Waiting("starting Spark …"):  # and loading the engine, which takes a second or two
                from windrow.session import Windrow
                from windrow.spark.session import warm

                engine = Windrow(None, state, takeover=takeover, start=spark.start, shards=spark.shards)
                open_.enter_context(engine)
            signals.take()
            _quiet(engine)
            warm(engine.spark)
            open_.enter_context(observed.serving(engine) if observed is not None else nullcontext())
            yield engine
    except KeyboardInterrupt:
        say("stopped before anything ran")
        raise typer.Exit from None


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
    run = _Run(engine, watcher, trigger=trigger, once=once, flush=flush)
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
        told.tell(watcher.newest, but=run.failure)
        told.warn(watcher.newest)
        view.show(watcher.newest, time.monotonic() - began)
    if run.failure is None:
        return None
    if isinstance(run.failure, WindrowError) and told.knows(run.failure):
        return run.failure
    raise run.failure


class _Run(threading.Thread):
    """The epochs, in a thread of their own."""

    def __init__(self, engine: Windrow, watcher: Watcher, **how: Any) -> None:
        super().__init__(name="windrow run", daemon=True)
        self._engine, self._watcher, self._how = engine, watcher, how
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self._engine.run(watch=self._watcher, **self._how)
        except BaseException as error:  # noqa: BLE001  it is raised again by the thread that waits
            self.failure = error


class _Told:
    """Tells each problem once, and each warning about a stream, whose numbers grow."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: set[str] = set()
        self._warned: set[tuple[str, str]] = set()

    def tell(self, snapshot: RunSnapshot, but: BaseException | None = None) -> None:
        """All that is new; what has ended the run is told by whoever it is raised to."""
        for problem in snapshot.problems:
            if problem is not but and not self.knows(problem):
                self._known.add(problem.render())
                self._view.tell(problem)

    def warn(self, snapshot: RunSnapshot) -> None:
        """What is rarely meant and was not told yet."""
        for warning in snapshot.warnings:
            if (warning.code, warning.about) not in self._warned:
                self._warned.add((warning.code, warning.about))
                self._view.tell(warning)

    def knows(self, problem: WindrowError) -> bool:
        return problem.render() in self._known


class Waiting:
    """A line on the terminal while something takes its time, with the seconds it has taken so far."""

    def __init__(self, text: str) -> None:
        self._text, self._over = text, threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def __enter__(self) -> None:
        if sys.stderr.isatty():
            print(self._text, end="", file=sys.stderr, flush=True)
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
            print(file=sys.stderr, flush=True)

    def _count(self) -> None:
        began = time.monotonic()
        while not self._over.wait(1.0):
            taken = f"\r{self._text} {time.monotonic() - began:.0f} s"
            print(taken, end="", file=sys.stderr, flush=True)


def say(text: str) -> None:
    """A remark for a person who is watching: on standard error, and only if that is a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr, flush=True)
