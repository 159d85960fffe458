"""The session of a shell: what it does with statements and commands.

Until `.start`, statements are checked and kept, which needs no Spark and is immediate. Then an engine runs
them, and takes all that follow. Where somebody types, Spark starts in the background, what fails there is
told at once, and answers that are watched stay in their place.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from windrow.cli import declarations, options, plain, run
from windrow.cli.answers import AnswersByQuery, LastAnswers
from windrow.errors import QueryError, WindrowError, nearest
from windrow.language.statements import begins_statement
from windrow.language.tokens import scan

if TYPE_CHECKING:
    from windrow.language.catalog import Catalog
    from windrow.session import Windrow


#: words that need no semicolon, and the commands they are
_BARE = {
    "?": ".help",
    "help": ".help",
    "\\?": ".help",
    "\\h": ".help",
    "quit": ".quit",
    "exit": ".quit",
    "\\q": ".quit",
    "\\d": ".tables",
}
_COMMANDS = (".help", ".tables", ".explain", ".start", ".stop", ".results", ".watch", ".quit", ".exit")
#: statements that a line holds, with their semicolon or without
_WHOLE = re.compile(r"\s*(describe|show)\s+\w+\s*", re.IGNORECASE)
#: statements that tell what is declared
_SHOWS = re.compile(r"\s*(describe|desc|show|explain)\b[^;]*;?\s*$", re.IGNORECASE)
#: a word alone in its line
_WORD = re.compile(r"\s*(\w+)\s*;?\s*")
_PAUSE = 0.2


def piped() -> Iterator[str]:
    """The statements and commands that come through a pipe.

    >>> from unittest.mock import patch
    >>> from io import StringIO
    >>> with patch("sys.stdin", StringIO("help\\nCREATE STREAM s\\n  (a INT); -- done\\nSHOW STREAMS")):
    ...     list(piped())
    ['help', 'CREATE STREAM s\\n  (a INT); -- done', 'SHOW STREAMS']
    """
    parts: list[str] = []
    while line := sys.stdin.readline():
        if parts or line.strip():
            parts.append(line.rstrip("\n"))
        if parts and is_ended("\n".join(parts)):
            yield "\n".join(parts).strip()
            parts = []
    if parts:
        yield "\n".join(parts)


def is_ended(text: str) -> bool:
    """Whether nothing more is waited for: a command, a word that is one, or a last semicolon.

    >>> [is_ended(text) for text in ("SELECT 1;  -- ;", "SELECT ';'", "SELECT 1 -- ;", ".watch q", "help")]
    [True, False, False, True, True]
    >>> [is_ended(text) for text in ("SELECT 1\\nquit", "SELECT x\\n.5", "DESCRIBE bids", "DESCRIBE")]
    [True, False, True, False]
    >>> [is_ended(text) for text in ("start", "watch q", "clear", "SELECT", "SELECT\\nwatch")]
    [True, True, True, False, False]
    """
    if _WHOLE.fullmatch(text) or _without_point(text):
        return True
    word = _WORD.fullmatch(text)
    if word and not begins_statement(word[1]):
        return True
    if text.strip().startswith((".", "\\")) or _is_command(text.rpartition("\n")[2]):
        return True
    try:
        tokens = scan(text).items
    except QueryError:  # a text that is not closed yet; if it never is, the next semicolon at an end will do
        return text.rstrip().endswith(";")
    return not tokens or tokens[-1].text == ";"


def _is_command(line: str) -> bool:
    """Whether a line is one by itself, also below a statement whose semicolon was forgotten."""
    word = line.strip().rstrip(";").partition(" ")[0]
    return word in _COMMANDS or word.startswith("\\") or line.strip().rstrip(";").lower() in _BARE


def _without_point(text: str) -> str | None:
    """The command that a line begins with, if only its point is missing.

    >>> _without_point("watch top"), _without_point("explain SELECT")
    ('.watch', None)
    """
    word = text.split(maxsplit=1)[0].rstrip(";").lower() if text.strip() else ""
    return f".{word}" if f".{word}" in _COMMANDS and not begins_statement(word) else None


def watch(
    name: str, kept: LastAnswers, seconds: float | None, goes_on: Callable[[], bool], *, is_live: bool
) -> None:
    """The last answers and all that follow, for so long, or until the run or the user ends it: under each
    other, or live in one place."""
    ends = None if seconds is None else time.monotonic() + seconds
    last = kept.last
    seen = last.number - 1 if last is not None else 0
    live = Live(auto_refresh=False, transient=False) if is_live else None
    with suppress(KeyboardInterrupt), run.silent(), live or nullcontext():
        while True:
            for answers in kept.since(seen):
                lines = "\n".join(plain.answer_lines(name, answers, _ANSWERS_SHOWN))
                live.update(Text(lines), refresh=True) if live else print(lines, flush=True)
                seen = answers.number
            if not goes_on() or (ends is not None and time.monotonic() >= ends):
                break
            time.sleep(_PAUSE)


HELP = """\
statements end with `;`: CREATE STREAM, CREATE QUERY, DROP, SHOW, EXPLAIN …
SELECT … ;          ask once, about now: streams with KEEP, tables, answers
.tables, \\d         what is declared; \\d NAME, DESCRIBE NAME: its columns
.explain NAME       how a query is run
.start [TIME]       run the queries in the background, taking rows every TIME
.stop               end the run; .start goes on from there
.results NAME       the last answers of a query
.watch NAME [SECS]  answers as they come, until Ctrl-C or for so many seconds
.help, help, ?      this list
.quit, quit         end, as Ctrl-D does"""
#: from a pipe nobody can press Ctrl-C
_PIPE_SECONDS = 10.0
_ANSWERS_SHOWN = 20


def _spelt_out(text: str) -> str:
    """What is meant by a word without a semicolon.

    >>> [_spelt_out(text) for text in ("help", "QUIT;", "\\\\d bids", "SELECT 1;")]
    ['.help', '.quit', 'DESCRIBE bids;', 'SELECT 1;']
    """
    if text.startswith("\\d "):
        return f"DESCRIBE {text[3:].strip().rstrip(';')};"
    return _BARE.get(text.rstrip(";").strip().lower(), text)


class ShellSession:
    """Takes statements and dot-commands, and tells what is wrong with them. One engine, made by `.start`."""

    def __init__(
        self,
        state: str | Path | None,
        spark: options.SparkChoice | None = None,
        observed: options.Observability | None = None,
        *,
        is_typed: bool,
    ) -> None:
        self._state, self._is_typed = state, is_typed
        self._spark, self._observed = spark or options.SparkChoice(), observed or options.Observability()
        self._open = ExitStack()
        self._declared = declarations.Declarations()
        self._engine: Windrow | None = None
        self._kept = AnswersByQuery()
        self._told: set[str] = set()
        self._telling = threading.Lock()
        self._starting: Future[None] | None = None
        self._commands: dict[str, Callable[..., None]] = {
            ".help": lambda: print(HELP),
            ".tables": self._tables,
            ".explain": self._explain,
            ".start": self._start,
            ".stop": self._stop,
            ".results": self._results,
            ".watch": self._watch,
        }
        #: in the order of `.help`
        self.commands = [*self._commands, ".quit"]

    @property
    def catalog(self) -> Catalog:
        return self._declared.catalog

    def take(self, text: str) -> bool:
        """Do what a statement or a command says; False if it ends the session."""
        unfinished, _, last = text.rpartition("\n")
        if unfinished.strip() and _is_command(last):
            hint = "end statements with `;`"
            self._tell(QueryError("the statement has no end, and was left out", code="unfinished", hint=hint))
            text = last.strip()
        text = _spelt_out(text)
        if text in (".quit", ".exit"):
            return False
        self._tell_problems()  # a run in the background may have failed since the last command
        try:
            self._command(text) if text.startswith(".") else self._sql(text)
        except WindrowError as error:
            self._tell(error)
        except KeyboardInterrupt:
            print()
        self._tell_problems()
        return True

    def close(self) -> None:
        if self._starting is not None:
            wait([self._starting])
        self._open.close()
        if self._engine is not None:
            try:
                self._engine.close()
            except WindrowError as error:
                self._tell_once(error)
            self._tell_problems()

    # ------------------------------------------------------------ statements

    def _sql(self, text: str) -> None:
        command = _without_point(text)
        if command is not None:
            hint = f"did you mean `{command}`?"
            raise QueryError(f"no command `{command[1:]}`", code="unknown-command", hint=hint)
        is_starting = self._engine is None and self._starting is not None and not self._starting.done()
        if is_starting and _SHOWS.match(text):  # what is declared is known meanwhile
            plain.print_shown(self._declared.sql(text))
            return
        self._await_start()
        before = set(self.catalog.names)
        self._do(text)
        if self._is_typed:
            after = set(self.catalog.names)
            done = {"created": after - before, "dropped": before - after}
            told = [f"{word} {', '.join(sorted(names))}" for word, names in done.items() if names]
            hint = "; .start runs the queries" if self._engine is None and self.catalog.queries else ""
            if told:
                print("; ".join(told) + hint)

    def _do(self, text: str) -> None:
        if self._engine is None:
            if self._declared.asks(text):
                raise QueryError(
                    "there is nothing to ask yet", code="not-running", hint="run the queries with .start"
                )
            plain.print_shown(self._declared.sql(text))
            return
        before = set(self.catalog.streams)
        with self._declared.keeping(text):  # first, for errors that show their place
            shown = self._engine.sql(text)
        plain.print_shown(shown)
        new = set(self.catalog.streams) - before
        if new and self._engine.is_running:
            print(f"stream `{min(new)}` is read after the next .stop and .start")

    # ------------------------------------------------------------ commands

    def _command(self, text: str) -> None:
        name, *arguments = text.rstrip(";").split()
        command = self._commands.get(name)
        if command is None:
            hint = nearest(name, self.commands) or ".help lists the commands"
            raise QueryError(f"no command `{name}`", code="unknown-command", hint=hint)
        try:
            command(*arguments)
        except TypeError:
            raise QueryError(
                f"`{name}` does not take {len(arguments)} words", code="bad-command", hint="see .help"
            ) from None

    def _tables(self) -> None:
        catalog = self.catalog
        kinds = {"stream": [*catalog.streams], "table": [*catalog.tables], "query": [*catalog.queries]}
        lines = [f"{kind:<8}{name}" for kind, names in kinds.items() for name in names]
        print("\n".join(lines) or "nothing is declared")

    def _explain(self, name: str) -> None:
        from windrow.engine.explain import explain_plan

        query = self.catalog.queries[self._known(name)]
        plan = explain_plan(query.plan, name=query.name, sink=query.sink, max_gap=query.max_gap)
        print(plain.wrapped(str(plan)))

    def _start(self, *trigger: str) -> None:
        from windrow.engine.declarations import period

        if not self.catalog.queries:
            raise QueryError(
                "there is no query to run", code="no-query", hint="write CREATE QUERY name AS SELECT … ;"
            )
        self._await_start()
        every = " ".join(trigger) or "1 second"
        if trigger[:1] != ("0",):  # at once, whatever the unit
            period(every)  # what is no span of time is refused before Spark starts
        self._declared.check_sources(self._declared.text)
        self._told.clear()  # what goes wrong again is told again
        run = partial(self._run, every)
        if not self._is_typed:
            run()
            return
        if self._engine is None:
            print(
                "Spark is starting; type on meanwhile. .watch NAME waits for answers, .stop ends", flush=True
            )
        self._starting = Future()
        threading.Thread(target=self._run_here, args=(run, self._starting), daemon=True).start()

    def _run(self, trigger: str) -> None:
        if self._engine is None:
            self._engine = self._connected()
        self._engine.start(trigger)
        print("running; .watch NAME shows answers, .stop ends", flush=True)

    def _run_here(self, run: Callable[[], None], begun: Future[None]) -> None:
        """In the background: start, and tell what fails when it fails."""
        try:
            run()
        except WindrowError as error:
            self._tell(error)
        except BaseException as error:  # noqa: BLE001  whoever waits for the start raises it
            begun.set_exception(error)
            return
        begun.set_result(None)
        while self._engine is not None and self._engine.is_running:
            self._tell_problems()
            time.sleep(_PAUSE)
        self._tell_problems()

    def _await_start(self) -> None:
        """What needs the engine waits until it is there."""
        starting, self._starting = self._starting, None
        if starting is not None:
            if not starting.done():
                print("waiting for Spark …", flush=True)
            starting.result()

    def _connected(self) -> Windrow:
        with self._spark.starting() as session:
            from windrow.session import Windrow

            engine = Windrow(None, self._state, start=session, shards=self._spark.shards)
        try:
            engine.default_sink, engine.beside_sink = self._kept.sink, self._kept.beside
            engine.sql(self._declared.text)
            self._open.enter_context(self._observed.serving(engine))
        except BaseException:
            engine.close()
            raise
        return engine

    def _stop(self) -> None:
        engine = self._running()
        try:
            engine.stop()
        except WindrowError as error:  # of a query that has failed, and was told when it did
            self._tell_once(error)
        print(f"stopped at commit {engine.commit}")

    def _running(self) -> Windrow:
        self._await_start()
        engine = self._engine
        if engine is None or not engine.is_running:
            failed = engine is not None and engine.exception is not None
            raise QueryError(
                "nothing is running: the run has failed" if failed else "nothing is running",
                code="not-running",
                hint=".start goes on from the last commit" if failed else "run the queries with .start",
            )
        return engine

    def _results(self, name: str) -> None:
        kept = self._kept.get(self._known(name))
        answers = kept.last if kept else None
        print("\n".join(plain.answer_lines(name, answers, _ANSWERS_SHOWN)) if answers else "no answers yet")

    def _watch(self, name: str, seconds: str | None = None) -> None:
        known = self._known(name)
        engine, kept = self._running(), self._kept.get(known)
        assert kept is not None
        if seconds is not None and not seconds.replace(".", "", 1).isdigit():
            raise QueryError(f"`{seconds}` is no number of seconds", code="bad-command", hint="see .help")
        most = float(seconds) if seconds else None if self._is_typed else _PIPE_SECONDS
        watch(name, kept, most, lambda: engine.is_running, is_live=self._is_typed)

    # ------------------------------------------------------------ names and problems

    def _known(self, name: str) -> str:
        queries = self.catalog.queries
        found = next((each for each in queries if each.lower() == name.lower()), None)
        if found is None:
            raise QueryError(f"no query `{name}`", code="unknown-source", hint=nearest(name, queries))
        return found

    def _tell(self, error: WindrowError) -> None:
        print(error.render(), file=sys.stderr, flush=True)
        self._told.add(error.render())

    def _tell_problems(self) -> None:
        for problem in self._engine.problems if self._engine is not None else ():
            self._tell_once(problem)

    def _tell_once(self, problem: WindrowError) -> None:
        with self._telling:
            if problem.render() not in self._told:
                self._tell(problem)
