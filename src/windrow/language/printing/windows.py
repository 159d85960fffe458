"""Window specifications back to brackets.

>>> from windrow.windows.ranges import RangeWindow
>>> bracket(RangeWindow(300_000_000, 60_000_000), Domain.TIME, "ts", str)
'[RANGE 5 MINUTES SLIDE 1 MINUTE]'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.functions.calendar import timestamp_text
from windrow.algebra.functions.printing import to_sql
from windrow.language.printing.names import quoted
from windrow.windows.domain import ROW_NUM, Domain
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.units import MICROSECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.plan import Window
    from windrow.windows.spec import WindowSpec


def bracket(spec: WindowSpec, domain: Domain, wattr: str, names: Callable[[str], str]) -> str:
    """A window on a stream ordered by `wattr`, whose instants are of the domain; `names` spells columns."""
    parts = _parts(spec, domain, wattr, names)
    if spec.wattr is not None and not isinstance(spec, SlideByTupleWindow):
        parts.append(f"WATTR {quoted(spec.wattr)}")
    if spec.internal:
        parts.append("INTERNAL")
    return f"[{' '.join(parts)}]"


def _parts(spec: WindowSpec, domain: Domain, wattr: str, names: Callable[[str], str]) -> list[str]:
    match spec:
        case RangeWindow():
            slide = _given("SLIDE", spec.slide, domain, quantity)
            origin = _given("ORIGIN", spec.origin, domain, point)
            return [f"RANGE {quantity(spec.range, domain)}", *slide, *origin]
        case RowsWindow():
            return _rows(spec, domain)
        case SlideByTupleWindow():
            over = quoted(spec.rattr or wattr)
            slide_by = f"rank({over})" if spec.by_rank else ROW_NUM
            size = quantity(spec.range, domain)
            return [f"RANGE {size} RATTR {over} SLIDE {spec.every} ROWS SATTR {slide_by}"]
        case LandmarkWindow():
            return _landmark(spec, domain)
        case SessionWindow():
            return [f"SESSION {quantity(spec.gap, domain)}", *_partitions(spec.partition_by)]
        case LifetimeWindow():
            return [f"LIFETIME {to_sql(spec.expression, names)}"]
        case NowWindow():
            return ["NOW"]
        case UnboundedWindow():
            return ["UNBOUNDED"]
    raise TypeError(f"no bracket for {type(spec).__name__}")


def _rows(spec: RowsWindow, domain: Domain) -> list[str]:
    parts = [f"ROWS {spec.rows}"]
    if spec.slide_rows is not None:
        parts.append(f"SLIDE {spec.slide_rows} ROWS")
    parts += _given("SLIDE", spec.slide_time, domain, quantity)
    parts += _given("ORIGIN", spec.origin, domain, point)
    parts += [f"WATTR {ROW_NUM}"] if spec.arrival_order else []
    return parts + _partitions(spec.partition_by)


def _landmark(spec: LandmarkWindow, domain: Domain) -> list[str]:
    parts = ["LANDMARK"]
    if spec.start is not None:
        parts.append(f"FROM {point(spec.start, domain)}")
    if spec.until is not None:
        parts.append(f"UNTIL {point(spec.until, domain)}")
    parts += _given("SLIDE", spec.slide, domain, quantity)
    return parts + ([f"ORIGIN {point(spec.origin, domain)}"] if spec.origin is not None else [])


def _given(word: str, value: int | None, domain: Domain, write: Callable[[int, Domain], str]) -> list[str]:
    return [f"{word} {write(value, domain)}"] if value else []


def _partitions(columns: tuple[str, ...]) -> list[str]:
    return [f"PARTITION BY {', '.join(quoted(column) for column in columns)}"] if columns else []


def quantity(ticks: int, domain: Domain) -> str:
    """A length in the greatest unit that divides it.

    >>> quantity(90_000_000, Domain.TIME), quantity(90, Domain.NUMBER)
    ('90 SECONDS', '90')
    """
    if domain is Domain.NUMBER:
        return str(ticks)
    unit = max(
        (name for name, size in MICROSECONDS.items() if ticks % size == 0), key=MICROSECONDS.__getitem__
    )
    count = ticks // MICROSECONDS[unit]
    return f"{count} {unit.removesuffix('S') if count == 1 else unit}"


def point(instant: int, domain: Domain) -> str:
    """A point of the attribute."""
    return str(instant) if domain is Domain.NUMBER else f"'{timestamp_text(instant)}'"


def window_text(window: Window, names: Callable[[str], str]) -> str:
    """The bracket behind a stream or nested query."""
    streams = window.streams
    own = streams[0].wattr if streams else "at"
    return bracket(window.spec, window.domain, own, names)
