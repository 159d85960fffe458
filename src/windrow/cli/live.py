"""A run on a terminal, drawn in place: how far each stream is, and the last answers of each query.

What does not fit is counted where it is left out, and at the end it is said how to see it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Lock
from typing import Literal, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windrow.cli import run, snapshots
from windrow.cli.plain import count, counted, elapsed, instant, is_numeric, span
from windrow.sinks.legible import column_values, value

#: a query with its answers has this width, and where they are many at least the other
_WIDTH, _NARROW = 48, 38
_MOST_COLUMNS = 3
#: a headline, the names of the columns and a row: with fewer lines no answer is to be seen
_LEAST = 3
_ELSEWHERE = "not all answers are shown; they are in a pipe, and where INTO 'files://…' says"


class LiveView(snapshots.View):
    """Redraws one region of the terminal. What others print meanwhile scrolls above it.

    Without `answers` only the streams are drawn, and the region is gone at the end. `elsewhere` says at the
    end how to see the answers that were left out.
    """

    def __init__(
        self, title: str, *, answers: bool = True, elsewhere: str = _ELSEWHERE, console: Console | None = None
    ) -> None:
        self._title, self._answers, self._elsewhere = title, answers, elsewhere
        self._console = console or Console(file=sys.stdout)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=not answers,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._above: _Above | None = None
        self._silent = ExitStack()
        self._streams = sys.stdout, sys.stderr
        self._hidden = 0

    def show(self, snapshot: snapshots.RunSnapshot, seconds: float) -> None:
        self._print_above()
        width, height = self._console.size
        picture, self._hidden = drawing(self._title, snapshot, seconds, width, height, answers=self._answers)
        self._live.update(picture, refresh=True)

    def _print_above(self) -> None:
        lines = self._above.take() if self._above is not None else ""
        if lines:  # the terminal breaks long lines; broken here, they would be others
            self._console.print(Text.from_ansi(lines), soft_wrap=True)

    def __enter__(self) -> Self:
        self._streams = sys.stdout, sys.stderr
        if self._console.is_terminal:
            self._above = _Above(sys.stdout)
            sys.stdout = self._above
            sys.stderr = self._above if sys.stderr.isatty() else sys.stderr
            self._silent.enter_context(run.silent())
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._streams
        self._print_above()
        self._live.stop()
        self._silent.close()
        if self._above is not None:
            print(self._above.rest, end="", flush=True)
        if self._hidden and self._elsewhere:
            self._console.print(Text(self._elsewhere, style="dim"))


class _Above(io.TextIOBase):
    """Standard output while a region is drawn: whole lines wait for the one thread that draws. Written at
    once by another, they would come to stand in the region and be drawn over.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal, self._lock = terminal, Lock()
        self.rest = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._terminal.encoding

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def fileno(self) -> int:
        return self._terminal.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        with self._lock:
            self.rest += text
        return len(text)

    def take(self) -> str:
        """The lines that have come, without the last end of line."""
        with self._lock:
            lines, end, rest = self.rest.rpartition("\n")
            self.rest = rest
            return lines if end else ""


def drawing(
    title: str,
    snapshot: snapshots.RunSnapshot,
    seconds: float,
    width: int,
    height: int,
    *,
    answers: bool = True,
) -> tuple[RenderableType, int]:
    """Everything, in less than `height` lines: with a line more, a terminal would scroll; and how many of the
    answers are not in it."""
    head = Text.assemble((title, "bold"), f"   {elapsed(seconds)}   commit {snapshot.commit}")
    head.no_wrap, head.overflow = True, "ellipsis"
    queries = snapshot.queries if answers else ()
    streams = _fitting(snapshot.streams, height - 4 if not queries else max(2, height // 2 - 4))
    parts: list[RenderableType] = [head, _pending(snapshot), _streams(streams)]
    left_out = len(snapshot.streams) - len(streams)
    parts += [_more(left_out, "stream")] if left_out else []
    if not queries:
        return Group(*parts), 0
    layout = Screen.of(len(queries), width, height - len(streams) - bool(left_out) - 5)
    shown = queries[: layout.queries]
    parts += [Text(), _queries(shown, layout)]
    left_out = len(queries) - len(shown)
    parts += [_more(left_out, "query", "queries")] if left_out else []
    seen = sum(rows_shown(query, layout.lines) for query in shown)
    there = sum(query.answers.total for query in queries if query.answers is not None)
    return Group(*parts), there - seen


def _pending(snapshot: snapshots.RunSnapshot) -> Text:
    """Why there is nothing to be seen yet; an empty line if there is."""
    if snapshot.rows_out or not snapshot.queries:
        return Text()
    reason = (
        "the first answers come when a window has closed" if snapshot.rows_in else "warming up: first rows"
    )
    return Text(f"{reason} …", style="dim", no_wrap=True, overflow="ellipsis")


def _fitting(streams: tuple[snapshots.StreamNow, ...], height: int) -> tuple[snapshots.StreamNow, ...]:
    """The first streams, with a line left to count the others."""
    return streams if len(streams) <= height else streams[: max(1, height - 1)]


def _more(number: int, one: str, many: str | None = None) -> Text:
    return Text(f"… {count(number)} more {one if number == 1 else many or f'{one}s'}", style="dim")


def _streams(streams: tuple[snapshots.StreamNow, ...]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("stream")
    sheds = any(stream.shed for stream in streams)
    for name in ("rows", "rows/s", "clock", "lag", "late", *(["shed"] if sheds else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for stream in streams:
        table.add_row(
            Text(value(stream.name)),
            count(stream.rows),
            count(round(stream.rate)),
            instant(stream.clock, is_time=stream.is_time),
            span(stream.lag, is_time=stream.is_time),
            Text(count(stream.late), style="yellow" if stream.late else ""),
            *([Text(count(stream.shed), style="yellow")] if sheds else []),
        )
    return table


@dataclass(frozen=True)
class Screen:
    """Where queries are drawn: how many, so many side by side, each in so many lines."""

    across: int
    lines: int
    queries: int
    #: whether there are empty lines between
    airy: bool = True

    @classmethod
    def of(cls, queries: int, width: int, height: int) -> Screen:
        """The airiest in which every query shows an answer; if there is none, as many headlines as fit.

        >>> Screen.of(2, 80, 18), Screen.of(7, 80, 18)
        (Screen(across=1, lines=8, queries=2, airy=True), Screen(across=2, lines=3, queries=7, airy=True))
        >>> Screen.of(7, 60, 18), Screen.of(30, 60, 18)
        (Screen(across=1, lines=1, queries=7, airy=True), Screen(across=1, lines=1, queries=17, airy=False))
        """
        wide, narrow = (max(1, min(_MOST_COLUMNS, width // each, queries)) for each in (_WIDTH, _NARROW))
        for across, airy in ((wide, True), (narrow, True), (wide, False), (narrow, False)):
            down = -(-queries // across)
            lines = (height - (down - 1 if airy else 0)) // down
            if lines >= _LEAST:  # and the last row no emptier than need be
                return cls(-(-queries // down), lines, queries, airy)
        down = -(-queries // wide)
        if 2 * down - 1 <= height:
            return cls(wide, 1, queries)
        across = wide if down <= height else narrow
        fit = max(1, height if -(-queries // across) <= height else height - 1)
        return cls(across, 1, min(queries, across * fit), airy=False)


def _queries(queries: Sequence[snapshots.QueryNow], layout: Screen) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for _ in range(layout.across):
        grid.add_column(ratio=1)
    for first in range(0, len(queries), layout.across):
        if first and layout.airy:
            grid.add_row()
        grid.add_row(*(_query(query, layout.lines) for query in queries[first : first + layout.across]))
    return grid


def rows_shown(query: snapshots.QueryNow, lines: int) -> int:
    fit, answers = lines - 2, query.answers
    if answers is None or fit < 1:
        return 0
    return min(len(answers.rows), fit if answers.total <= fit or fit == 1 else fit - 1)


def _query(query: snapshots.QueryNow, lines: int) -> RenderableType:
    """A query in at most so many lines: a headline, the names of the columns, rows."""
    head = Text(no_wrap=True, overflow="ellipsis")
    is_running = query.status == "running"
    head.append("● " if is_running else f"✗ {query.status} ", style="green" if is_running else "bold red")
    head.append(value(query.name), style="bold")
    head.append(f"  {counted(query.rows, 'row')}")
    answers, shown = query.answers, rows_shown(query, lines)
    left_out = answers.total - shown if answers is not None else 0
    more = Text(f"… {count(left_out)} more" if left_out else "", style="dim")
    if lines <= _LEAST and more:  # there is no line of its own for it
        head.append("  ").append_text(more)
    if query.sink is not None:
        head.append(f"  into {value(query.sink)}", style="dim")
    if answers is None:
        return head
    head.append(f"  at {value(answers.at)}", style="cyan")
    if not shown:
        return head
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    columns = [*zip(*answers.rows[:shown], strict=True)]
    for name, cells in zip(answers.columns, columns, strict=True):
        justify: Literal["right", "left"] = "right" if is_numeric(cells) else "left"
        table.add_column(Text(value(name)), justify=justify, no_wrap=True, overflow="ellipsis")
    for row in zip(*map(column_values, columns), strict=True):
        table.add_row(*map(Text, row))
    return Group(head, table, more) if more and lines > _LEAST else Group(head, table)
