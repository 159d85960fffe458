"""A window as written in brackets, and the window it means.

`WindowClause` holds the words and nothing else; `ClauseScope` looks up what they name. `resolve` finds the
attribute, turns quantities into its ticks, and refuses what has no meaning, with the reason and the way out.

>>> traffic = {"ts": Domain.TIME, "speed": Domain.NUMBER}
>>> q1 = WindowClause("RANGE", range=Quantity(300, "SECONDS"), slide=Quantity(60, "SECONDS"), wattr="ts")
>>> resolve(q1, traffic, "ts")
RangeWindow(wattr=None, internal=False, range=300000000, slide=60000000, origin=0)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NoReturn

from windrow.errors import QueryError, nearest
from windrow.windows import calendar, cumulate, landmark, lifetime, ranges, rows, session, slide_by_tuple
from windrow.windows.domain import CALENDAR, IMPLICIT, ROW_NUM, Domain, Quantity
from windrow.windows.spec import WindowSpec


@dataclass(frozen=True)
class WindowClause:
    """The written parts of a bracket. `range` is also the number of ROWS, the gap of SESSION and the size of
    CUMULATE."""

    kind: str
    range: Quantity | None = None
    slide: Quantity | None = None
    #: RANGE: how long ago the window ended
    lag: Quantity | None = None
    wattr: str | None = None
    rattr: str | None = None
    sattr: str | None = None
    #: SATTR rank(sattr)
    sattr_rank: bool = False
    partition_by: tuple[str, ...] = ()
    #: points as written; once it is resolved, instants
    origin: Any = None
    start: Any = None
    until: Any = None
    lifetime: object | None = None
    #: ticks per unit of the LIFETIME expression
    lifetime_scale: int = 1
    #: RANGE: by whose clocks days, weeks, months and years are
    zone: str | None = None
    #: SESSION: rows exactly the gap apart belong together
    inclusive: bool = False
    internal: bool = False


#: what each part is called in the text; `range` under the name of its kind
WORDS = {
    "range": "RANGE",
    "slide": "SLIDE",
    "lag": "LAG",
    "rattr": "RATTR",
    "sattr": "SATTR",
    "partition_by": "PARTITION BY",
    "origin": "ORIGIN",
    "start": "FROM",
    "until": "UNTIL",
    "lifetime": "LIFETIME",
    "inclusive": "INCLUSIVE",
    "zone": "ZONE",
}
#: the parts each kind understands; WATTR and INTERNAL are looked at by all
PARTS = {
    "RANGE": {"range", "slide", "lag", "rattr", "sattr", "partition_by", "origin", "zone"},
    "ROWS": {"range", "slide", "partition_by", "origin"},
    "LANDMARK": {"slide", "origin", "start", "until"},
    "UNBOUNDED": set(),
    "NOW": set(),
    "LIFETIME": {"lifetime"},
    "SESSION": {"range", "partition_by", "inclusive"},
    "CUMULATE": {"range", "slide", "origin"},
}
_INSTEAD = {
    ("LIFETIME", "slide"): "each row says how long it lives, so there is no extent to slide",
    ("UNBOUNDED", "slide"): "write [LANDMARK SLIDE ...] for all rows so far, reported periodically",
    ("NOW", "slide"): "write [RANGE s SLIDE s] for the rows since the last report",
    ("SESSION", "slide"): "a session is reported when it ends",
    ("ROWS", "rattr"): "ROWS counts rows; write WATTR for the attribute that orders them",
    ("ROWS", "sattr"): "write SLIDE n ROWS; SATTR is for RANGE windows that slide by rows",
}


def refuse_strange_parts(clause: WindowClause) -> None:
    for part, word in WORDS.items():
        if part in PARTS[clause.kind] or getattr(clause, part) in (None, (), False):
            continue
        known = ", ".join(WORDS[p] for p in WORDS if p in PARTS[clause.kind] - {"range", "lifetime"})
        hint = _INSTEAD.get((clause.kind, part), f"{clause.kind} takes {known or 'no further parts'}")
        if part == "lag":
            hint = "LAG is for RANGE windows, as in [RANGE 5 MINUTES LAG 1 HOUR]"
        raise QueryError(f"a {clause.kind} window takes no {word}", code="window-part", hint=hint)


@dataclass(frozen=True)
class ClauseScope:
    """A clause with the stream it stands on."""

    clause: WindowClause
    attributes: Mapping[str, Domain]
    own: str

    @property
    def attribute(self) -> str:
        """The attribute the window is over."""
        return self.named(self.clause.wattr or self.own)

    @property
    def common(self) -> dict[str, Any]:
        return {"wattr": self.foreign(self.attribute), "internal": self.clause.internal}

    def foreign(self, name: str) -> str | None:
        return None if name == self.named(self.own) else name

    def named(self, name: str) -> str:
        if name in self.attributes:
            return name
        folded = {known.lower(): known for known in self.attributes}
        if name.lower() in folded:
            return folded[name.lower()]
        raise QueryError(
            f"no attribute `{name}` to window on",
            code="window-attribute",
            hint=nearest(name, self.attributes),
        )

    def size(self, part: str) -> Quantity:
        if self.clause.range is None:
            raise QueryError(f"{part} needs a size", code="window-size", hint=f"write it after {part}")
        return self.clause.range

    def ticks(self, quantity: Quantity, attribute: str) -> int:
        domain = self.attributes[attribute]
        times = [name for name in (self.own,) if self.attributes.get(name) is Domain.TIME]
        if (
            quantity.is_duration
            and domain is not Domain.TIME
            and times
            and attribute not in (ROW_NUM, *times)
        ):
            raise QueryError(
                f"{quantity} does not measure `{attribute}`, which is a number",
                code="window-unit",
                hint=f"window by the time, `{times[0]}`, or write a bare number of `{attribute}`",
            )
        return quantity.ticks(domain)

    def period(self, attribute: str) -> int | None:
        """The SLIDE as ticks of the attribute. ORIGIN is its phase and has no meaning without it."""
        if self.clause.slide is None:
            self.refuse_origin("there is no SLIDE")
            return None
        return self.ticks(self.clause.slide, attribute)

    def refuse_origin(self, reason: str) -> None:
        if self.clause.origin is not None:
            raise QueryError(
                f"ORIGIN is the phase of slides along an attribute, and {reason}",
                code="window-origin",
                hint="leave ORIGIN out; to begin at an instant use LANDMARK FROM",
            )


# ------------------------------------------------------------ meaning


#: sizes of up to so many units are looked at for a step that divides them
_MOST_STEPS = 100_000

__all__ = ["Quantity", "WindowClause", "resolve"]


def resolve(clause: WindowClause, attributes: Mapping[str, Domain], wattr: str) -> WindowSpec:
    """The window a clause means on a stream with these orderable attributes and this WATTR of its own."""
    if clause.kind not in PARTS:
        raise QueryError(f"no window `{clause.kind}`", code="window-part", hint=nearest(clause.kind, PARTS))
    refuse_strange_parts(clause)
    return _KINDS[clause.kind](_in_ticks(ClauseScope(clause, {**IMPLICIT, **attributes}, wattr)))


def _in_ticks(scope: ClauseScope) -> ClauseScope:
    """With points as instants: numbers are values of the attribute."""
    written = {name: getattr(scope.clause, name) for name in ("origin", "start", "until")}
    points = {name: value for name, value in written.items() if value is not None}
    domain = scope.attributes[scope.attribute] if points else Domain.NUMBER
    if domain.resolution is None and not any(isinstance(value, Decimal) for value in points.values()):
        return scope
    instants: dict[str, Any] = {name: Quantity(value).ticks(domain) for name, value in points.items()}
    return replace(scope, clause=replace(scope.clause, **instants))


def _range(scope: ClauseScope) -> WindowSpec:
    clause, size = scope.clause, scope.size("RANGE")
    by_rows = clause.slide is not None and clause.slide.in_rows
    over = scope.named(clause.rattr) if clause.rattr else scope.attribute
    if clause.sattr is not None or (by_rows and over != ROW_NUM):
        return _range_by_tuple(scope, over)
    if clause.rattr is not None:
        raise QueryError(
            "RATTR is for windows that slide by rows",
            code="window-attribute",
            hint=f"write WATTR {clause.rattr}, or SLIDE n ROWS SATTR row_num",
        )
    if over == ROW_NUM:
        _refuse_lag(scope)
        return _rows(scope)
    _refuse_rows_of(size, over)
    # PARTITION BY changes nothing in a window by value: every partition has the same extents
    if clause.zone is not None or size.is_calendar or (clause.slide is not None and clause.slide.is_calendar):
        return _calendar(scope, size, over)
    slide = scope.period(over)
    if clause.lag is not None:
        lag = scope.ticks(clause.lag, over)
        return ranges.LaggedWindow(scope.ticks(size, over), lag, slide, clause.origin or 0, **scope.common)
    return ranges.RangeWindow(scope.ticks(size, over), slide, clause.origin or 0, **scope.common)


def _calendar(scope: ClauseScope, size: Quantity, over: str) -> WindowSpec:
    """A window by the clocks of a zone."""
    clause, slide = scope.clause, scope.clause.slide
    written = f"[RANGE {size} SLIDE … ZONE '{clause.zone or 'UTC'}']"
    if scope.attributes[over] is not Domain.TIME:
        raise QueryError(
            f"months, years and zones are of time, and `{over}` is a number",
            code="window-unit",
            hint="write a bare number, as in [RANGE 10 SLIDE 5]",
        )
    _refuse_lag(scope)
    if slide is None:
        raise QueryError(
            "a window by the calendar needs a SLIDE: without one a row could leave it and come back",
            code="window-slide",
            hint=f"write {written.replace('…', '1 DAY')}",
        )
    if slide.unit not in CALENDAR:
        if size.unit not in CALENDAR:
            why, way = "nothing in this window depends on a ZONE", "leave ZONE out, or slide by DAYS"
        else:
            why = f"RANGE {size} by the calendar cannot slide by {slide}: rows could leave and come back"
            way = f"write {written.replace('…', '1 DAY')}"
            if not size.is_calendar:
                way += ", or RANGE in HOURS, without ZONE"
        raise QueryError(why, code="window-slide", hint=way)
    step, length = (_by_calendar(each) for each in (slide, size))
    return calendar.CalendarWindow(length, step, clause.zone or "UTC", clause.origin or 0, **scope.common)


def _by_calendar(quantity: Quantity) -> calendar.Length:
    if quantity.unit not in CALENDAR:
        return quantity.ticks(Domain.TIME), "MICROSECONDS"
    times, unit = CALENDAR[quantity.unit]
    number = quantity.value * times
    if number != int(number):
        raise QueryError(
            f"{quantity} is not a whole number of {unit}", code="window-size", hint="use a multiple of one"
        )
    return int(number), unit


def _refuse_lag(scope: ClauseScope) -> None:
    if scope.clause.lag is not None:
        raise QueryError(
            "LAG is for windows by value, and this one goes by rows or by the calendar",
            code="window-part",
            hint="leave LAG out, or write [RANGE r LAG d] over the windowing attribute of the stream",
        )


def _range_by_tuple(scope: ClauseScope, over: str) -> WindowSpec:
    _refuse_lag(scope)
    clause, size = scope.clause, scope.size("RANGE")
    if clause.wattr is not None and clause.rattr is not None and scope.attribute != over:
        raise QueryError(
            f"the window is over `{over}` and over `{scope.attribute}`",
            code="window-attribute",
            hint="RATTR stands in place of WATTR: give one",
        )
    if clause.slide is None or not clause.slide.in_rows:
        raise QueryError(
            "SATTR says which rows a SLIDE counts", code="window-slide", hint="write SLIDE n ROWS with it"
        )
    by_rank = clause.sattr is None or _slides_by_rank(scope, over)
    if over == ROW_NUM:
        return _rows(scope)
    _refuse_rows_of(size, over)
    scope.refuse_origin("this SLIDE counts rows")
    length = scope.ticks(size, over)
    foreign = scope.foreign(over)
    return slide_by_tuple.SlideByTupleWindow(
        length,
        clause.slide.count(),
        foreign,
        by_rank,
        clause.partition_by,
        wattr=foreign,
        internal=clause.internal,
    )


def _slides_by_rank(scope: ClauseScope, over: str) -> bool:
    sattr = scope.named(scope.clause.sattr or ROW_NUM)
    if scope.clause.sattr_rank and sattr == over:
        return True
    if not scope.clause.sattr_rank and sattr == ROW_NUM:
        return False
    written = f"rank({sattr})" if scope.clause.sattr_rank else sattr
    raise QueryError(
        f"a window over `{over}` cannot slide by the rows of `{written}`",
        code="window-slide",
        hint=f"SATTR is row_num (as rows arrive) or rank({over}) (in order of `{over}`)",
    )


def _refuse_rows_of(size: Quantity, over: str) -> None:
    if size.in_rows:
        raise QueryError(
            f"RANGE {size} counts rows, but the window is over `{over}`",
            code="window-unit",
            hint=f"write [ROWS {size.value}], or WATTR row_num",
        )


def _rows(scope: ClauseScope) -> WindowSpec:
    """ROWS, or RANGE over row_num, which is the same (WID Q2, Q4)."""
    clause, attribute = scope.clause, scope.attribute
    if clause.rattr is not None:
        attribute = scope.named(clause.rattr)
    arrival = attribute == ROW_NUM
    clock = scope.named(scope.own) if arrival else attribute
    slide_rows = slide_time = None
    if clause.slide is not None and (clause.slide.in_rows or (arrival and not clause.slide.is_duration)):
        scope.refuse_origin("this SLIDE counts rows")
        slide_rows = clause.slide.count()
    else:
        slide_time = scope.period(clock)
    return rows.RowsWindow(
        scope.size("ROWS").count(),
        slide_rows,
        slide_time,
        clause.origin or 0,
        clause.partition_by,
        arrival,
        wattr=scope.foreign(clock),
        internal=clause.internal,
    )


def _landmark(scope: ClauseScope) -> WindowSpec:
    clause, over = scope.clause, scope.attribute
    if clause.slide is not None and clause.slide.in_rows and over != ROW_NUM:
        scope.refuse_origin("this SLIDE counts rows")
        return slide_by_tuple.SlideByTupleWindow(
            None,
            clause.slide.count(),
            by_rank=True,
            start=clause.start,
            until=clause.until,
            **scope.common,
        )
    slide = clause.slide.count() if clause.slide is not None and over == ROW_NUM else scope.period(over)
    return landmark.LandmarkWindow(clause.start, clause.until, slide, clause.origin, **scope.common)


def _cumulate(scope: ClauseScope) -> WindowSpec:
    size, step = scope.ticks(scope.size("CUMULATE"), scope.attribute), scope.period(scope.attribute)
    if step is None:
        raise QueryError(
            "CUMULATE does not say in which steps it grows",
            code="window-slide",
            hint=f"write [CUMULATE {scope.clause.range} SLIDE …], with a SLIDE that divides it",
        )
    if step > 0 and size > 0 and size % step:
        _refuse_step(scope, size, step)
    return cumulate.CumulateWindow(size, step, scope.clause.origin or 0, **scope.common)


def _refuse_step(scope: ClauseScope, size: int, step: int) -> NoReturn:
    """With the greatest step below and the least above, in the unit of the one that was asked for."""
    asked = scope.clause.slide
    assert asked is not None
    unit = scope.ticks(replace(asked, value=1), scope.attribute)
    whole, hint = size // unit, "choose a step of which the size is a multiple"
    if size % unit == 0 and whole <= _MOST_STEPS:
        steps = [each for each in range(1, whole + 1) if whole % each == 0]
        below = max(each for each in steps if each * unit <= step)
        above = min(each for each in steps if each * unit >= step)
        hint = f"take a step of {' or '.join(str(replace(asked, value=each)) for each in (below, above))}"
    message = f"a CUMULATE window grows in whole steps, and {scope.clause.range} is no multiple of {asked}"
    raise QueryError(message, code="window-size", hint=hint)


_KINDS: dict[str, Callable[[ClauseScope], WindowSpec]] = {
    "RANGE": _range,
    "ROWS": _rows,
    "LANDMARK": _landmark,
    "UNBOUNDED": lambda scope: ranges.UnboundedWindow(**scope.common),
    "NOW": lambda scope: ranges.NowWindow(**scope.common),
    "LIFETIME": lambda scope: lifetime.LifetimeWindow(
        scope.clause.lifetime, scope.clause.lifetime_scale, **scope.common
    ),
    "SESSION": lambda scope: session.SessionWindow(
        scope.ticks(scope.size("SESSION"), scope.attribute),
        scope.clause.partition_by,
        scope.clause.inclusive,
        **scope.common,
    ),
    "CUMULATE": _cumulate,
}
