"""How numbers, times and values are written for people."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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


def value(cell: Any) -> str:
    """One value of an answer, on one line.

    >>> value(61.25), value(None), value(datetime(2026, 1, 1, 0, 5, tzinfo=UTC)), value(2.0)
    ('61.25', 'NULL', '2026-01-01 00:05:00', '2')
    """
    match cell:
        case None:
            return "NULL"
        case bool():
            return str(cell).lower()
        case float():
            return f"{cell:.6g}"
        case datetime():
            return cell.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").removesuffix(".")
    return _on_one_line(str(cell))


def _on_one_line(text: str) -> str:
    r"""Text that cannot command a terminal.

    >>> _on_one_line("a\x1b[31m")
    'a\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
