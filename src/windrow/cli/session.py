"""What a shell does with what is typed.

Until `.start`, statements are checked and kept, which needs no Spark and is immediate. Then an engine runs
them, and takes all that follow.

What a user types, put together to statements: several lines up to a semicolon, or one dot-command.

The answers of one query as they come, printed under each other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli.answers import Kept
from windrow.cli.declarations import Declared
from windrow.cli.options import Observed, SparkChoice
from windrow.cli.plain import answer_lines, print_shown
from windrow.errors import QueryError, WindrowError, nearest
from windrow.language.tokens import scan
from windrow.redaction import redacted

if TYPE_CHECKING:
    from windrow.cli.answers import LastAnswers
    from windrow.session import Windrow


_PROMPT, _MORE = "windrow> ", "      -> "
_HISTORY = ".windrow_history"


class Lines:
    """The statements and commands that are typed, one after the other.

    >>> typed = iter([".help", "CREATE STREAM s", "  (a INT); -- done", "SHOW STREAMS"])
    >>> list(Lines(is_typed=False, read=lambda prompt: next(typed, None)))
    ['.help', 'CREATE STREAM s\\n  (a INT); -- done', 'SHOW STREAMS']
    """

    def __init__(self, *, is_typed: bool, read: Callable[[str], str | None] | None = None) -> None:
        self._read = read or (_typed if is_typed else _piped)

    def __iter__(self) -> Iterator[str]:
        parts: list[str] = []
        while True:
            try:
                line = self._read(_MORE if parts else _PROMPT)
            except KeyboardInterrupt:  # forget what was begun
                print()
                parts = []
                continue
            if line is None:
                break
            if not parts and line.strip().startswith("."):
                yield line.strip()
                continue
            if parts or line.strip():
                parts.append(line)
            if parts and is_complete("\n".join(parts)):
                yield "\n".join(parts)
                parts = []
        if parts:
            yield "\n".join(parts)


def is_complete(text: str) -> bool:
    """Whether the last thing in the text is a semicolon; one in a text or a comment is none.

    >>> is_complete("SELECT 1;  -- ;"), is_complete("SELECT ';'"), is_complete("SELECT 1 -- ;")
    (True, False, False)
    """
    try:
        tokens = scan(text).items
    except QueryError:  # a text that is not closed yet; if it never is, the next semicolon at an end will do
        return text.rstrip().endswith(";")
    return not tokens or tokens[-1].text == ";"


def _typed(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        print()
        return None


def _piped(prompt: str) -> str | None:
    line = sys.stdin.readline()
    return line.rstrip("\n") if line else None


@contextmanager
def remembered(*, is_typed: bool) -> Iterator[None]:
    """What was typed is there again in the next shell, where the system has readline."""
    try:
        import readline
    except ImportError:
        is_typed = False
    if not is_typed:
        yield
        return
    history = Path.home() / _HISTORY
    with suppress(OSError):
        readline.read_history_file(history)
    try:
        yield
    finally:
        with suppress(OSError):
            _forget_secrets(readline)
            readline.set_history_length(1000)
            readline.write_history_file(history)


def _forget_secrets(readline: Any) -> None:
    """What was typed and refused because of a secret in it is not kept as it was."""
    for place in range(readline.get_current_history_length()):
        line = readline.get_history_item(place + 1) or ""
        if (shown := redacted(line)) != line:
            readline.replace_history_item(place, shown)


_PAUSE = 0.2


def watch(
    name: str, kept: LastAnswers, seconds: float | None, goes_on: Callable[[], bool], *, most_rows: int
) -> None:
    """Print the last answers and all that follow, for so long, or until the run or the user ends it."""
    began = time.monotonic()
    last = kept.last
    seen = last.number - 1 if last is not None else 0
    try:
        while True:
            for answers in kept.since(seen):
                print("\n".join(answer_lines(name, answers, most_rows)), flush=True)
                seen = answers.number
            if not goes_on() or (seconds is not None and time.monotonic() - began >= seconds):
                return
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        print()


HELP = """\
statements end with `;`: CREATE STREAM, CREATE QUERY, DROP, SHOW STREAMS, SHOW QUERIES, EXPLAIN SELECT …
SELECT … ;          ask once, about now: windows of streams with KEEP, tables, last answers
.tables             what is declared
.explain NAME       how a query is run
.start [TIME]       run the queries in the background; TIME is how often rows are taken
.stop               end the run; .start goes on from there
.results NAME       the last answers of a query
.watch NAME [SECS]  answers as they come, until Ctrl-C or for so many seconds
.help               this list
.quit               end, as Ctrl-D does"""
#: from a pipe nobody can press Ctrl-C
_PIPE_SECONDS = 10.0
_ANSWERS_SHOWN = 20


class Session:
    """Takes statements and dot-commands, and tells what is wrong with them. One engine, made by `.start`."""

    def __init__(
        self,
        state: str | Path | None,
        spark: SparkChoice | None = None,
        observed: Observed | None = None,
        *,
        is_typed: bool,
    ) -> None:
        self._state, self._is_typed = state, is_typed
        self._spark, self._observed = spark or SparkChoice(), observed or Observed()
        self._open = ExitStack()
        self._declared = Declared()
        self._engine: Windrow | None = None
        self._kept = Kept()
        self._told: set[str] = set()
        self._commands: dict[str, Callable[..., None]] = {
            ".help": self._help,
            ".tables": self._tables,
            ".explain": self._explain,
            ".start": self._start,
            ".stop": self._stop,
            ".results": self._results,
            ".watch": self._watch,
        }

    def take(self, text: str) -> bool:
        """Do what a statement or a command says; False if it ends the session."""
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
        """End the run, if there is one."""
        self._open.close()
        if self._engine is not None:
            try:
                self._engine.close()
            except WindrowError as error:
                self._tell_once(error)
            self._tell_problems()

    # ------------------------------------------------------------ statements

    def _sql(self, text: str) -> None:
        if self._engine is None:
            if self._declared.asks(text):
                raise QueryError(
                    "there is nothing to ask yet", code="not-running", hint="run the queries with .start"
                )
            print_shown(self._declared.sql(text))
            return
        before = set(self._declared.catalog.streams)
        with self._declared.keeping(text):  # first, for errors that show their place
            shown = self._engine.sql(text)
        print_shown(shown)
        new = set(self._declared.catalog.streams) - before
        if new and self._engine.is_running:
            print(f"stream `{min(new)}` is read after the next .stop and .start")

    # ------------------------------------------------------------ commands

    def _command(self, text: str) -> None:
        name, *arguments = text.rstrip(";").split()
        command = self._commands.get(name)
        if command is None:
            hint = nearest(name, [*self._commands, ".quit"]) or ".help lists the commands"
            raise QueryError(f"no command `{name}`", code="unknown-command", hint=hint)
        try:
            command(*arguments)
        except TypeError:
            raise QueryError(
                f"`{name}` does not take {len(arguments)} words", code="bad-command", hint="see .help"
            ) from None

    def _help(self) -> None:
        print(HELP)

    def _tables(self) -> None:
        catalog = self._declared.catalog
        kinds = {"stream": [*catalog.streams], "table": [*catalog.tables], "query": [*catalog.queries]}
        lines = [f"{kind:<8}{name}" for kind, names in kinds.items() for name in names]
        print("\n".join(lines) or "nothing is declared")

    def _explain(self, name: str) -> None:
        from windrow.engine import explain_plan

        query = self._declared.catalog.queries[self._known(name)]
        print(explain_plan(query.plan, name=query.name, sink=query.sink, max_gap=query.max_gap))

    def _start(self, *trigger: str) -> None:
        if not self._declared.catalog.queries:
            raise QueryError(
                "there is no query to run", code="no-query", hint="write CREATE QUERY name AS SELECT … ;"
            )
        self._declared.check_sources(self._declared.text)
        engine = self._engine or self._connected()
        self._told.clear()  # what goes wrong again is told again
        engine.start(" ".join(trigger) or "1 second")
        print("running; .watch NAME shows answers, .stop ends")

    def _connected(self) -> Windrow:
        from windrow.session import Windrow

        if self._is_typed:
            print("starting Spark …", flush=True)
        engine = Windrow(None, self._state, start=self._spark.start)
        try:
            engine.default_sink = self._kept.sink
            engine.sql(self._declared.text)
            self._open.enter_context(self._observed.serving(engine))
        except BaseException:
            engine.close()
            raise
        self._engine = engine
        return engine

    def _stop(self) -> None:
        self._running().stop()
        assert self._engine is not None
        print(f"stopped at commit {self._engine.commit}")

    def _running(self) -> Windrow:
        """The engine, if it runs; what has ended it is told with the other problems."""
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
        kept = self._kept.get(self._kept_name(name))
        answers = kept.last if kept else None
        print("\n".join(answer_lines(name, answers, _ANSWERS_SHOWN)) if answers else "no answers yet")

    def _watch(self, name: str, seconds: str | None = None) -> None:
        kept, engine = self._kept.get(self._kept_name(name)), self._running()
        assert kept is not None
        if seconds is not None and not seconds.replace(".", "", 1).isdigit():
            raise QueryError(f"`{seconds}` is no number of seconds", code="bad-command", hint="see .help")
        most = float(seconds) if seconds else None if self._is_typed else _PIPE_SECONDS
        watch(name, kept, most, lambda: engine.is_running, most_rows=_ANSWERS_SHOWN)

    # ------------------------------------------------------------ names and problems

    def _known(self, name: str) -> str:
        queries = self._declared.catalog.queries
        found = next((each for each in queries if each.lower() == name.lower()), None)
        if found is None:
            raise QueryError(f"no query `{name}`", code="unknown-source", hint=nearest(name, queries))
        return found

    def _kept_name(self, name: str) -> str:
        known = self._known(name)
        sink = self._declared.catalog.queries[known].sink
        if sink is not None:
            raise QueryError(
                f"the answers of query `{known}` go to {sink}", code="no-results", hint="read them there"
            )
        return known

    def _tell(self, error: WindrowError) -> None:
        print(error.render(), file=sys.stderr, flush=True)
        self._told.add(error.render())

    def _tell_problems(self) -> None:
        for problem in self._engine.problems if self._engine is not None else ():
            self._tell_once(problem)

    def _tell_once(self, problem: WindrowError) -> None:
        if problem.render() not in self._told:
            self._tell(problem)
