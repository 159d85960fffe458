"""A run as plain lines, for pipes, files and logs; what SHOW and EXPLAIN give; numbers for people."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windrow.cli.snapshots import RunSnapshot, StreamNow, View
from windrow.sinks.legible import column_values, value

if TYPE_CHECKING:
    from windrow.cli.answers import Answers
    from windrow.windows.domain import Instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOTHING = "–"


def count(number: int) -> str:
    """
    >>> count(1234567)
    '1 234 567'
    """
    return f"{number:,}".replace(",", " ")


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2 000 rows')
    """
    return f"{count(number)} {noun if number == 1 else noun + 's'}"


def elapsed(seconds: float) -> str:
    """
    >>> elapsed(75.4), elapsed(3601)
    ('1:15', '1:00:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def instant(tick: Instant | None, *, is_time: bool) -> str:
    """A value of a windowing attribute.

    >>> instant(1_767_225_600_000_000, is_time=True), instant(70, is_time=False)
    ('2026-01-01 00:00:00', '70')
    >>> instant(-math.inf, is_time=True), instant(math.inf, is_time=True)
    ('–', 'end')
    """
    if tick is None or tick == -math.inf:
        return NOTHING
    if tick == math.inf:
        return "end"
    if not is_time:
        return count(int(tick))
    try:
        return value(_EPOCH + timedelta(microseconds=int(tick)))
    except OverflowError:
        return str(int(tick))


def span(ticks: Instant | None, *, is_time: bool) -> str:
    """A distance between two values of a windowing attribute.

    >>> span(5_000_000, is_time=True), span(90_000_000, is_time=True), span(3, is_time=False)
    ('5.0 s', '1:30', '3')
    """
    if ticks is None or math.isinf(ticks):
        return NOTHING
    if not is_time:
        return count(int(ticks))
    seconds = ticks / 1_000_000
    return f"{seconds:.1f} s" if seconds < 60 else elapsed(seconds)


def is_numeric(cells: Sequence[Any]) -> bool:
    """Whether a column is one of numbers.

    >>> is_numeric([1, 2.5, None]), is_numeric(["1"]), is_numeric([True]), is_numeric([None])
    (True, False, False, False)
    """
    there = [cell for cell in cells if cell is not None]
    return bool(there) and all(
        isinstance(cell, int | float | Decimal) and not isinstance(cell, bool) for cell in there
    )


#: seconds between two lines of progress
EVERY = 5.0
#: no cell is cut to less
_LEAST = 8


class PlainView(View):
    """A line of progress on standard error every few seconds, if rows come; with `answers`, so many of the
    last ones of each query on standard output."""

    def __init__(self, *, answers: int = 0) -> None:
        self._most = answers
        self._told = 0.0
        self._last: RunSnapshot | None = None
        self._shown: dict[str, int] = {}

    def show(self, snapshot: RunSnapshot, seconds: float) -> None:
        for query in snapshot.queries if self._most else ():
            answers = query.answers
            if answers is not None and self._shown.get(query.name) != answers.number:
                self._shown[query.name] = answers.number
                print("\n".join(answer_lines(query.name, answers, self._most)), flush=True)
        if self._last is None:
            self._last = snapshot
        if seconds - self._told >= EVERY and snapshot.rows_in > self._last.rows_in:
            self._told, self._last = seconds, snapshot
            streams = "; ".join(map(_stream, snapshot.streams))
            told = f"{seconds:.0f} s  commit {snapshot.commit}  {streams}"
            print(f"{told}  {counted(snapshot.rows_out, 'answer')}", file=sys.stderr, flush=True)


def _stream(stream: StreamNow) -> str:
    is_time, shed = stream.is_time, f", shed {count(stream.shed)}" if stream.shed else ""
    return (
        f"{stream.name}: {counted(stream.rows, 'row')}, {count(round(stream.rate))}/s,"
        f" clock {instant(stream.clock, is_time=is_time)},"
        f" lag {span(stream.lag, is_time=is_time)}, late {count(stream.late)}{shed}"
    )


def summary(snapshot: RunSnapshot, seconds: float, before: RunSnapshot | None = None) -> str:
    """What a run came to, from its first snapshot on."""
    before = before or RunSnapshot(0, (), ())
    return (
        f"{counted(snapshot.rows_in - before.rows_in, 'row')} in,"
        f" {counted(snapshot.rows_out - before.rows_out, 'answer')} out,"
        f" {counted(snapshot.late - before.late, 'late row')},"
        f" {counted(snapshot.commit - before.commit, 'commit')} in {seconds:.0f} s"
    )


def answer_lines(name: str, answers: Answers, most: int) -> list[str]:
    shown = answers.rows[:most]
    lines = [f"{name} at {value(answers.at)}: {counted(answers.total, 'row')}"]
    lines += table_of(answers.columns, shown)
    if answers.total > len(shown):
        lines.append(f"  … {count(answers.total - len(shown))} more")
    return lines


def table_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows under the names of their columns, numbers to the right.

    >>> table_of(("k", "speed"), [("a", 61.25), ("b", 9.5)])
    ['  k  speed', '  a  61.25', '  b   9.50']
    """
    columns = [*zip(*rows, strict=True)] or [()] * len(names)
    texts = zip(*map(column_values, columns), strict=True)
    right = [place for place, cells in enumerate(columns) if is_numeric(cells)]
    return aligned([tuple(names), *texts], right=right)


def aligned(
    rows: list[list[str] | tuple[str, ...]], width: int | None = None, right: Collection[int] = ()
) -> list[str]:
    """Columns under each other. On a terminal no line is longer than that: the widest cells are cut.

    >>> aligned([("segment", "speed"), ("3", "61.2")])
    ['  segment  speed', '  3        61.2']
    >>> aligned([("name", "query"), ("top", "SELECT MAX(price) FROM bids")], width=20)
    ['  name  query', '  top   SELECT MAX(…']
    """
    widths = _fitting([max(len(cell) for cell in column) for column in zip(*rows, strict=True)], width)
    lines = []
    for row in rows:
        cells = [
            cell if len(cell) <= most else f"{cell[: most - 1]}…"
            for cell, most in zip(row, widths, strict=True)
        ]
        padded = [
            cell.rjust(most) if place in right else cell.ljust(most)
            for place, (cell, most) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append(f"  {'  '.join(padded)}".rstrip())
    return lines


def _fitting(widths: list[int], width: int | None) -> list[int]:
    room = _terminal_width() if width is None else width
    while room is not None and sum(widths) + 2 * len(widths) > room and max(widths) > _LEAST:
        widest = widths.index(max(widths))
        widths = [*widths[:widest], widths[widest] - 1, *widths[widest + 1 :]]
    return widths


def _terminal_width() -> int | None:
    return get_terminal_size().columns if sys.stdout.isatty() else None


#: the branches before a line of a plan, and the words that its text stands behind
_BRANCHES = re.compile(r"([ │├└─]*)((?:\w+ {2,})*)")


def wrapped(text: str, width: int | None = None) -> str:
    """A plan that fits a terminal: what is broken goes on below its own text, and the tree beside it.

    >>> print(wrapped("├─ γ k\\n│     method  panes: a state for each pane and group", width=32))
    ├─ γ k
    │     method  panes: a state for
    │             each pane and
    │             group
    """
    room = _terminal_width() if width is None else width
    return text if room is None else "\n".join(_broken(line, room) for line in text.split("\n"))


def _broken(line: str, room: int) -> str:
    found = _BRANCHES.match(line)
    assert found is not None
    below = found[1].replace("├─", "│ ").replace("└─", "  ") + " " * len(found[2])
    if len(line) <= room or len(below) > room // 2:
        return line
    return fill(
        line[found.end() :], room, initial_indent=found[0], subsequent_indent=below, break_on_hyphens=False
    )


def print_shown(shown: list[Any]) -> None:
    """Print what statements gave, in order.

    >>> print_shown([pa.table({"name": ["top"], "rows": [3]})])
    name  rows
    top      3
    """
    for each in shown:
        print("\n".join(_table_lines(each)) if isinstance(each, pa.Table) else wrapped(str(each)))


def _table_lines(table: pa.Table) -> list[str]:
    """A small table. Queries are written on several lines, and shown on one."""
    if table.num_rows == 0:
        return ["(none)"]
    rows = [
        [" ".join(cell.split()) if isinstance(cell, str) else cell for cell in row.values()]
        for row in table.to_pylist()
    ]
    return [line.removeprefix("  ") for line in table_of(table.column_names, rows)]
