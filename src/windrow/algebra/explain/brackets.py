"""Windows, lengths and punctuation policies as a reader writes them.

>>> from windrow.windows.ranges import RangeWindow
>>> bracket(RangeWindow(300_000_000, 60_000_000), Domain.TIME, "ts", str)
'[RANGE 5 MINUTES SLIDE 1 MINUTE]'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Context
from typing import TYPE_CHECKING

from windrow.algebra.catalog import ProgressRule, Stream
from windrow.algebra.expressions import Literal
from windrow.algebra.functions.calendar import timestamp_text
from windrow.algebra.functions.registry import ATOM
from windrow.algebra.functions.sql_text import is_ordinary, precedence, to_sql
from windrow.algebra.types import SMALLINT, STRING
from windrow.windows.calendar import CalendarWindow, Length
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.domain import ROW_NUM, Domain
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.punctuation import NoPolicy, Ordered, OrderedPer, Punctuated, Slack, SlackRows
from windrow.windows.ranges import LaggedWindow, NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.units import CALENDAR, DAYS, MICROSECONDS, MONTHS, Quantity

if TYPE_CHECKING:
    from windrow.algebra.over import OverFrame
    from windrow.windows.spec import WindowSpec


Spell = Callable[[str], str]


def bracket(spec: WindowSpec, domain: Domain, wattr: str, names: Spell, attributes: Spell = str) -> str:
    """A window on a stream ordered by `wattr`, whose instants are of the domain.

    `names` spells the columns that LIFETIME reads, `attributes` those of the other parts.
    """
    parts = _parts(spec, domain, wattr, names, attributes)
    if spec.wattr is not None and not (isinstance(spec, SlideByTupleWindow) and spec.range is not None):
        parts.append(f"WATTR {attributes(spec.wattr)}")
    return f"[{' '.join(parts + ['INTERNAL'] * spec.internal)}]"


def _parts(spec: WindowSpec, domain: Domain, wattr: str, names: Spell, attributes: Spell) -> list[str]:
    match spec:
        case RangeWindow() | LaggedWindow():
            slide = _optional("SLIDE", spec.slide, domain, quantity)
            origin = _optional("ORIGIN", spec.origin or None, domain, point)
            lag = [f"LAG {quantity(spec.lag, domain)}"] if isinstance(spec, LaggedWindow) else []
            return [f"RANGE {quantity(spec.range, domain)}", *slide, *lag, *origin]
        case RowsWindow():
            return _rows(spec, domain, attributes)
        case LandmarkWindow():
            return _landmark(spec, domain)
        case SlideByTupleWindow(range=None):
            points = [
                *_optional("FROM", spec.start, domain, point),
                *_optional("UNTIL", spec.until, domain, point),
            ]
            return ["LANDMARK", *points, f"SLIDE {spec.every} ROWS"]
        case SlideByTupleWindow():
            assert spec.range is not None
            over = attributes(spec.rattr or wattr)
            rows = f"SLIDE {spec.every} ROWS SATTR {f'rank({over})' if spec.by_rank else ROW_NUM}"
            parts = [f"RANGE {quantity(spec.range, domain)} RATTR {over}", rows]
            return parts + _partitions(spec.partition_by, attributes)
        case CumulateWindow():
            origin = _optional("ORIGIN", spec.origin or None, domain, point)
            return [f"CUMULATE {quantity(spec.size, domain)} SLIDE {quantity(spec.step, domain)}", *origin]
        case CalendarWindow():
            origin = _optional("ORIGIN", spec.origin or None, domain, point)
            sizes = [f"RANGE {calendar_length(spec.length)}", f"SLIDE {calendar_length(spec.step)}"]
            return [*sizes, *origin, "ZONE " + to_sql(Literal(spec.zone, STRING), str)]
        case SessionWindow():
            gap = f"SESSION {quantity(spec.gap, domain)}" + " INCLUSIVE" * spec.inclusive
            return [gap, *_partitions(spec.partition_by, attributes)]
        case LifetimeWindow():
            return [f"LIFETIME {_lifetime(spec, names)}"]
        case NowWindow() | UnboundedWindow():
            return [type(spec).__name__.removesuffix("Window").upper()]
    raise TypeError(f"no bracket for {type(spec).__name__}")


def _rows(spec: RowsWindow, domain: Domain, attributes: Spell) -> list[str]:
    parts = [f"ROWS {spec.rows}"]
    parts += [f"SLIDE {spec.slide_rows} ROWS"] if spec.slide_rows else []
    parts += _optional("SLIDE", spec.slide_time, domain, quantity)
    parts += _optional("ORIGIN", spec.origin or None, domain, point)
    parts += [f"WATTR {ROW_NUM}"] if spec.arrival_order else []
    return parts + _partitions(spec.partition_by, attributes)


def _landmark(spec: LandmarkWindow, domain: Domain) -> list[str]:
    parts = ["LANDMARK", *_optional("FROM", spec.start, domain, point)]
    parts += _optional("UNTIL", spec.until, domain, point)
    parts += _optional("SLIDE", spec.slide, domain, quantity)
    return parts + _optional("ORIGIN", spec.origin, domain, point)


def _optional(word: str, value: int | None, domain: Domain, write: Callable[[int, Domain], str]) -> list[str]:
    return [] if value is None else [f"{word} {write(value, domain)}"]


def _partitions(columns: Sequence[str], attributes: Spell) -> list[str]:
    return [f"PARTITION BY {', '.join(map(attributes, columns))}"] if columns else []


def _lifetime(spec: LifetimeWindow, names: Spell) -> str:
    """The expression and its unit, of all of it: operators are put in parentheses."""
    text = to_sql(spec.expression, names)
    unit = next((name for name, size in MICROSECONDS.items() if 1 < size == spec.scale), "")
    bare = isinstance(spec.expression, Literal) and spec.expression.type == SMALLINT
    if (unit and precedence(spec.expression) < ATOM) or bare:
        text = f"({text})"  # 5S by itself would be five seconds
    return f"{text} {unit}".rstrip()


def frame_text(frame: OverFrame, domain: Domain) -> str:
    """The frame of an OVER.

    >>> from windrow.algebra.over import OverFrame
    >>> frame_text(OverFrame(False, 60_000_000), Domain.TIME)
    'RANGE 1 MINUTE PRECEDING'
    >>> frame_text(OverFrame(True, None, 1), Domain.TIME)
    'ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING'
    """

    def before(amount: int | None) -> str:
        if amount is None:
            return "UNBOUNDED"
        return str(amount) if frame.by_rows else quantity(amount, domain)

    word, start = "ROWS" if frame.by_rows else "RANGE", f"{before(frame.start)} PRECEDING"
    return f"{word} BETWEEN {start} AND {before(frame.stop)} PRECEDING" if frame.stop else f"{word} {start}"


def quantity(ticks: int, domain: Domain) -> str:
    """A length in the greatest unit that divides it.

    >>> quantity(90_000_000, Domain.TIME), quantity(60_000_000, Domain.TIME), quantity(90, Domain.NUMBER)
    ('90 SECONDS', '1 MINUTE', '90')
    """
    if domain is not Domain.TIME:
        return _number(ticks, domain)
    return str(Quantity.of_time(ticks))


def _number(ticks: int, domain: Domain) -> str:
    """So many ticks as a number of the attribute, with all its digits.

    >>> from fractions import Fraction
    >>> _number(3, Domain("number", Fraction(1, 4))), _number(8, Domain("number", Fraction(1, 4), 2))
    ('0.75', '2')
    """
    exact = Context(prec=99)
    return f"{exact.multiply(ticks, domain.step or 1).normalize(exact):f}"


def calendar_length(length: Length) -> str:
    """A length by the calendar.

    >>> calendar_length((24, "MONTHS")), calendar_length((1, "DAYS")), calendar_length((90, "MICROSECONDS"))
    ('2 YEARS', '1 DAY', '90 MICROSECONDS')
    """
    number, unit = length
    if unit not in (MONTHS, DAYS):
        return quantity(number, Domain.TIME)
    times, name = max((t, name) for name, (t, of) in CALENDAR.items() if of == unit and number % t == 0)
    count = number // times
    return f"{count} {name.removesuffix('S') if count == 1 else name}"


def point(instant: int, domain: Domain) -> str:
    """A point of the attribute; times that no calendar text says are counted from 1970.

    >>> point(-3, Domain.NUMBER), point(-3_000_000, Domain.TIME), point(2**60, Domain.TIME)
    ('-3', "'1969-12-31 23:59:57'", '1152921504606846976 MICROSECONDS')
    """
    if domain is not Domain.TIME:
        return _number(instant, domain)
    return f"'{timestamp_text(instant)}'" if is_ordinary(instant) else f"{instant} MICROSECONDS"


def resolution_text(stream: Stream) -> str:
    """What follows the name of a WATTR that is a DOUBLE or a DECIMAL."""
    return "" if stream.domain.resolution is None else f" RESOLUTION {_number(1, stream.domain)}"


def policy(stream: Stream) -> str | None:
    """How a stream's punctuation is made, in the words of CREATE STREAM; None if it has none."""
    rule = stream.progress
    per = f" PER {rule.per}" if rule.per else ""
    if stream.also:
        own = {
            name: replace(stream, wattr=name, progress=ProgressRule(p), also=()) for name, p in stream.also
        }
        further = [f"ALSO {name} {policy(each)}" for name, each in own.items()]
        return " ".join(filter(None, [policy(replace(stream, also=())), *further]))
    match rule.policy:
        case NoPolicy():
            return None
        case Ordered() | Slack(ticks=0):
            return "ORDERED"
        case Slack(ticks=ticks):
            return f"SLACK {quantity(ticks, stream.domain)}"
        case SlackRows(rows=rows):
            return f"SLACK {rows} ROWS"
        case OrderedPer(idle=idle):
            return f"ORDERED{per}" + (f" IDLE {quantity(idle, Domain.TIME)}" if idle else "")
        case Punctuated():
            return f"PUNCTUATED BY {to_sql(rule.mark, str) if rule.mark else 'the source'}{per}"
    raise TypeError(f"no words for {type(rule.policy).__name__}")
