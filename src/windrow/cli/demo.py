"""`windrow demo`: standing queries on Spark, over a bundled stream, with their answers as they come."""

from __future__ import annotations

import math
import re
import sys
import time
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from shutil import get_terminal_size, which
from string import Template
from typing import Annotated

import typer

from windrow.cli import options, plain, run, snapshots
from windrow.cli.serve import PORT, check_installed, is_installed, listen, serving
from windrow.errors import to_install

#: how much faster than the clock on the wall time passes in the streams: a minute takes two seconds
SPEED = 30
_PIPE_SECONDS = 30
#: the time counts from the first rows; if none come in this time, it is up
_PATIENCE = 60
_ANSWERS_SHOWN = 4
#: a gap of a demonstration that is served, in times of its longest window
_GAP = 6


class DemoSource(StrEnum):
    """The bundled streams."""

    traffic = "traffic"
    auction = "auction"
    network = "network"


def demo(
    source: Annotated[DemoSource, typer.Argument(help="Which bundled stream.")] = DemoSource.traffic,
    seconds: Annotated[
        int | None, typer.Option(min=1, help="How long; on a terminal until Ctrl-C, else 30.")
    ] = None,
    rate: Annotated[int, typer.Option(min=30, help="Rows per second.")] = 3000,
    serve: Annotated[bool, typer.Option("--serve", help="With an HTTP API and a live page.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port of the page.")] = PORT,
    sql: Annotated[bool, typer.Option("--sql", help="Print the queries as they are written.")] = False,
    master: options.MasterOption = None,
    conf: options.ConfOption = None,
    log: options.LogOption = None,
    level: options.LevelOption = None,
    metrics: options.MetricsOption = None,
) -> None:
    """Show standing queries over a bundled stream, on Spark. Answers come as they become final."""
    spark = options.SparkChoice(master, conf, is_brief=True)
    observed = options.Observability(log, level, metrics)
    observed.set_up()
    if serve:  # its streams keep rows to be asked about, and may lose windows
        check_installed()
        text = servable(script(source, rate))
        with serving(None, text, trigger="1 second", spark=spark, observed=observed) as service:
            listen(service, "127.0.0.1", port, None, seconds)
        return
    from windrow.cli.answers import AnswersByQuery
    from windrow.cli.live import LiveView

    is_live = sys.stdout.isatty()
    most = seconds if seconds is not None else None if is_live else _PIPE_SECONDS
    text = script(source, rate)
    print(queries_of(text) if sql else asked(text), end="\n\n", flush=True)
    began = time.monotonic()
    with run.Signals() as signals, run.started(None, signals.take, spark, observed) as engine:
        kept = AnswersByQuery()
        engine.default_sink, engine.beside_sink = kept.sink, kept.beside
        engine.sql(text)
        watcher = snapshots.Watcher(engine, kept)
        title = f"windrow demo {source}"
        view = LiveView(title, elsewhere="") if is_live else plain.PlainView(answers=_ANSWERS_SHOWN)
        told = run.run_watched(engine, watcher, view, signals, trigger="1 second", until=Deadline(most))
    print(f"\n{plain.summary(watcher.newest, time.monotonic() - began)}\n\n{try_next(source)}")
    if told is not None:
        raise typer.Exit(told.exit_code)


def script(source: DemoSource, rate: int) -> str:
    """The statements of a demonstration at this rate."""
    event_rate = max(1, rate // SPEED)
    text = (files("windrow.cli") / "demos" / f"{source}.cql").read_text(encoding="utf-8")
    return Template(text).substitute(rate=rate, event_rate=event_rate, many=4 * event_rate)


def servable(text: str) -> str:
    """A demonstration's script whose streams keep rows to be asked about, and whose windows may be shed.

    A row is needless where the windows of all queries are missing: so gaps are as long as each other, and
    much longer than the longest window.

    >>> query = "CREATE QUERY q AS SELECT 1 FROM s [RANGE 1 MINUTE SLIDE 5 SECONDS];"
    >>> print(servable(f"CREATE STREAM s (…) SLACK 5 SECONDS FROM 'x';\\n{query}"))
    CREATE STREAM s (…) SLACK 5 SECONDS KEEP 20 MINUTES SHEDDABLE FROM 'x';
    CREATE QUERY q AS SELECT 1 FROM s [RANGE 1 MINUTE SLIDE 5 SECONDS]
    MAX GAP 72;
    """
    gap = _GAP * max(map(_seconds, re.findall(r"RANGE (\d+ \w+)", text)))

    def with_gap(query: re.Match[str]) -> str:
        slide = _seconds(re.findall(r"SLIDE (\d+ \w+)", query[1])[-1])
        return f"{query[1]}\nMAX GAP {gap // slide};"

    kept = re.sub(r"(SLACK \d+ SECONDS)", r"\1 KEEP 20 MINUTES SHEDDABLE", text)
    return re.sub(r"(CREATE QUERY [^;]*[^;\s])\s*;", with_gap, kept)


def _seconds(length: str) -> int:
    """
    >>> _seconds("5 MINUTES"), _seconds("1 HOUR")
    (300, 3600)
    """
    number, unit = length.split()
    return int(number) * {"SECOND": 1, "MINUTE": 60, "HOUR": 3600}[unit.removesuffix("S")]


def queries_of(text: str) -> str:
    """The script without its stream: what is asked.

    >>> print(queries_of("-- A stream.\\nCREATE STREAM s (…);\\n\\n-- A query.\\nCREATE QUERY q AS …;\\n"))
    -- A query.
    CREATE QUERY q AS …;
    """
    return "\n\n".join(part.strip() for part in re.split(r"\n\s*\n", text) if "CREATE QUERY" in part)


def asked(text: str) -> str:
    """What each query of a script asks, by the first line of the comment above it.

    >>> print(asked("CREATE …;\\n\\n-- One.\\n-- More.\\nCREATE QUERY q AS …;\\n\\nCREATE QUERY p AS …;"))
    q  One.
    p
    """
    found = []
    for part in queries_of(text).split("\n\n"):
        first = part.split("\n")[0]
        above = first.removeprefix("--").strip() if first.startswith("--") else ""
        found.append((part.split("CREATE QUERY ")[1].split()[0], above))
    width = max(len(name) for name, _ in found) + 2
    most = get_terminal_size().columns
    lines = [f"{name:<{width}}{above}".rstrip() for name, above in found]
    return "\n".join(line if len(line) <= most else f"{line[: most - 1]}…" for line in lines)


def try_next(source: str) -> str:
    """What to do next, as commands that work when they are pasted here."""
    command = here()
    other = "auction" if source != "auction" else "network"
    served = [] if source == "traffic" else [source]
    page = (" ".join(["demo", *served, "--serve"]), f"live: http://127.0.0.1:{PORT}")
    tries = [*([page] if is_installed() else []), (f"demo {other}", "another stream")]
    if Path("examples/speeds.cql").is_file():
        tries += [
            ("run examples/speeds.cql --flush", "a script over a file"),
            ("explain examples/traffic.cql", "how queries are run"),
        ]
    tries += [(f"demo {source} --sql", "the queries of this one"), ("shell", "your own queries")]
    lines = [(f"{command} {words}", what) for words, what in tries]
    lines += [] if is_installed() else [(to_install("server"), f"for a live page: {command} demo --serve")]
    width = max(len(words) for words, _ in lines) + 2
    shown = [f"  {words:<{width}}{what}" for words, what in lines]
    if max(map(len, shown)) > get_terminal_size().columns:  # no room for both: what they do comes first
        shown = [f"  {what}\n    {words}" for words, what in lines]
    return "\n".join(["try next:", *shown])


def here() -> str:
    """The command as it is called from here: by its name if that is on the PATH, else where it is."""
    own = Path(sys.executable).with_name("windrow")
    found = which("windrow")
    if found is not None or not own.exists():
        return "windrow" if found is not None else f"{Path(sys.executable).name} -m windrow"
    return str(own.relative_to(Path.cwd())) if own.is_relative_to(Path.cwd()) else str(own)


class Deadline:
    """Says when the time is up: so many seconds after the first rows.

    >>> from windrow.cli.snapshots import RunSnapshot, StreamNow
    >>> nothing, rows = (RunSnapshot(1, (StreamNow("s", n, 0.0, 0, 0, None),), ()) for n in (0, 5))
    >>> deadline = Deadline(10)
    >>> deadline(nothing, 20.0), deadline(rows, 25.0), deadline(rows, 34.0), deadline(rows, 35.0)
    (False, False, False, True)
    """

    def __init__(self, seconds: float | None) -> None:
        self._seconds = math.inf if seconds is None else seconds
        self._began = math.inf

    def __call__(self, snapshot: snapshots.RunSnapshot, seconds: float) -> bool:
        if snapshot.rows_in or seconds > _PATIENCE:
            self._began = min(self._began, seconds)
        return seconds - self._began >= self._seconds
