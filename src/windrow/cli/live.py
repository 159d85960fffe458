"""A run on a terminal, drawn in place: how far each stream is, and the last answers of each query."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from windrow.cli.formats import count, counted, elapsed, instant, span, value
from windrow.cli.views import View

if TYPE_CHECKING:
    from windrow.cli.snapshots import QueryNow, Snapshot, StreamNow
    from windrow.errors import WindrowError

#: a query with its answers has at least this width
_WIDTH = 48
_MOST_COLUMNS = 3


class LiveView(View):
    """Redraws one region of the terminal. What others print meanwhile scrolls above it.

    Without `answers` only the streams are drawn, and the region is gone at the end.
    """

    def __init__(self, title: str, *, answers: bool = True, console: Console | None = None) -> None:
        self._title, self._answers = title, answers
        self._console = console or Console()
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=not answers,
            vertical_overflow="crop",
            redirect_stderr=sys.stderr.isatty(),
        )

    def show(self, snapshot: Snapshot, seconds: float) -> None:
        room = self._console.size
        drawn = drawing(self._title, snapshot, seconds, room.width, room.height, answers=self._answers)
        self._live.update(drawn, refresh=True)

    def tell(self, problem: WindrowError) -> None:
        print(problem.render(), file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def drawing(
    title: str, snapshot: Snapshot, seconds: float, width: int, height: int, *, answers: bool = True
) -> RenderableType:
    """Everything, in at most `height` lines."""
    head = Text.assemble((title, "bold"), f"   {elapsed(seconds)}   commit {snapshot.commit}")
    parts: list[RenderableType] = [head, Text(), _streams(snapshot.streams)]
    if answers and snapshot.queries:
        left = height - len(snapshot.streams) - 5
        parts += [Text(), _queries(snapshot.queries, width, left)]
    return Group(*parts)


def _streams(streams: tuple[StreamNow, ...]) -> Table:
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


def _queries(queries: tuple[QueryNow, ...], width: int, height: int) -> Table:
    """Side by side as far as there is room, and as many answers of each as fit."""
    across = max(1, min(_MOST_COLUMNS, width // _WIDTH, len(queries)))
    down = -(-len(queries) // across)
    each = max(1, (height - down + 1) // down)
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for _ in range(across):
        grid.add_column(ratio=1)
    for first in range(0, len(queries), across):
        if first:
            grid.add_row()
        row = [_query(query, each) for query in queries[first : first + across]]
        grid.add_row(*row)
    return grid


def _query(query: QueryNow, height: int) -> RenderableType:
    """A query in at most `height` lines: a headline, the names of the columns, rows."""
    head = Text(no_wrap=True, overflow="ellipsis")
    is_running = query.status == "running"
    head.append("● " if is_running else f"✗ {query.status} ", style="green" if is_running else "bold red")
    head.append(value(query.name), style="bold")
    head.append(f"  {counted(query.rows, 'row')}")
    if query.sink is not None:
        head.append(f"  into {value(query.sink)}", style="dim")
    answers = query.answers
    if answers is None:
        return head
    head.append(f"  at {value(answers.at)}", style="cyan")
    fit = height - 2
    if fit < 1:
        return head
    shown = answers.rows[:fit] if answers.total <= fit else answers.rows[: fit - 1]
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in answers.columns:
        table.add_column(Text(value(column)), no_wrap=True, overflow="ellipsis")
    for row in shown:
        table.add_row(*(Text(value(cell)) for cell in row))
    parts: list[RenderableType] = [head, table]
    if answers.total > len(shown):
        parts.append(Text(f"… {count(answers.total - len(shown))} more", style="dim"))
    return Group(*parts)
