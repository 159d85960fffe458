"""Functions of DATE and TIMESTAMP, in UTC where no zone is named.

Nothing here asks what time it is: a standing query's answer must depend on its input alone.
"""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Call, Cast, Expression, Literal, cast, mismatch
from windrow.algebra.functions import registry as fn
from windrow.algebra.functions.time_patterns import compiled, reader
from windrow.algebra.types import BIGINT, DATE, INT, STRING, TIMESTAMP, TINYINT, DataType, Kind, decimal
from windrow.errors import QueryError, nearest
from windrow.windows.zones import zone

#: every unit that DATE_TRUNC knows, by each of its names
UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "YEAR"),
    **dict.fromkeys(("MONTH", "MON", "MM"), "MONTH"),
    **dict.fromkeys(("DAY", "DD"), "DAY"),
    **{unit: unit for unit in ("QUARTER", "WEEK", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")},
}
_DATE_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK")


def _unit(name: str, arg: Expression, allowed: tuple[str, ...]) -> Literal:
    text = str(fn.constant(name, arg, "the unit")).upper()
    unit = UNITS.get(text)
    if unit not in allowed:
        raise QueryError(f"`{name}` knows no unit `{text}`", code="bad-unit", hint=nearest(text, allowed))
    return Literal(unit, STRING)


def _date_trunc(name: str, args: tuple[Expression, ...]) -> Expression:
    unit = _unit(name, args[0], tuple(UNITS.values()))
    places = tuple(_zone(name, arg) for arg in args[2:])
    return Call(name, (unit, *fn.accept(name, args[1:2], (fn.INSTANT,)), *places), TIMESTAMP)


def _zone(name: str, arg: Expression) -> Literal:
    found = str(fn.constant(name, arg, "the zone"))
    return Literal(zone(found).name, STRING)


def _in_zone(name: str, args: tuple[Expression, ...]) -> Expression:
    return Call(name, (*fn.accept(name, args[:1], (fn.INSTANT,)), _zone(name, args[1])), TIMESTAMP)


def _by_pattern(target: DataType, safe: bool) -> fn.Rule:
    """Text read as a time: as it is cast, or by a pattern."""

    def rule(name: str, args: tuple[Expression, ...]) -> Expression:
        (arg, *rest) = args
        if not (arg.type.is_time or arg.type.kind in (Kind.STRING, Kind.NULL)):
            mismatch(name, args, "text or a time")
        if not rest or arg.type.is_time or arg.type.kind is Kind.NULL:
            return (
                Cast(arg, target, safe=True) if safe and arg.type.kind is Kind.STRING else cast(arg, target)
            )
        pattern = str(fn.constant(name, rest[0], "the pattern"))
        reader(pattern)
        read = "try_to_timestamp" if safe else "to_timestamp"
        return cast(Call(read, (arg, Literal(pattern, STRING)), TIMESTAMP), target)

    return rule


def _date_format(name: str, args: tuple[Expression, ...]) -> Expression:
    pattern = fn.constant(name, args[1], "the pattern")
    compiled(str(pattern))
    return Call(name, (*fn.accept(name, args[:1], (fn.INSTANT,)), Literal(str(pattern), STRING)), STRING)


def _trunc(name: str, args: tuple[Expression, ...]) -> Expression:
    return Call(name, (*fn.accept(name, args[:1], (fn.DAY,)), _unit(name, args[1], _DATE_UNITS)), DATE)


def _timestamp_seconds(name: str, args: tuple[Expression, ...]) -> Expression:
    (arg,) = fn.accept(name, args, (fn.NUMBER,))
    return Call(name, (arg,), TIMESTAMP)


_field = partial(fn.plain, result=INT, params=(fn.DAY,))
_clock = partial(fn.plain, result=INT, params=(fn.INSTANT,))
_moved = partial(fn.plain, result=DATE, params=(fn.DAY, fn.SHORT))
_since = partial(fn.plain, result=BIGINT, params=(fn.INSTANT_ONLY,))
_SAMPLE = "TIMESTAMP '2024-02-29 13:14:15.5'"

FUNCTIONS = (
    _field("year", description="the year", example="year(DATE '2024-02-29') -> 2024"),
    _field(
        "quarter", description="the quarter of the year, 1 to 4", example="quarter(DATE '2024-02-29') -> 1"
    ),
    _field("month", description="the month of the year", example="month(DATE '2024-02-29') -> 2"),
    _field(
        "day",
        description="the day of the month",
        example="day(DATE '2024-02-29') -> 29",
        aliases=("dayofmonth",),
    ),
    _field("dayofweek", description="the weekday, 1 for Sunday", example="dayofweek(DATE '2024-02-29') -> 5"),
    _field("weekday", description="the weekday, 0 for Monday", example="weekday(DATE '2024-02-29') -> 3"),
    _field("dayofyear", description="the day of the year", example="dayofyear(DATE '2024-02-29') -> 60"),
    _field(
        "weekofyear", description="the ISO week of the year", example="weekofyear(DATE '2024-12-31') -> 1"
    ),
    _field(
        "yearofweek",
        description="the year its ISO week belongs to",
        example="EXTRACT(YEAROFWEEK FROM DATE '2024-12-31') -> 2025",
        sql="EXTRACT(YEAROFWEEK FROM {0})",
    ),
    _clock("hour", description="the hour of the day", example=f"hour({_SAMPLE}) -> 13"),
    _clock("minute", description="the minute of the hour", example=f"minute({_SAMPLE}) -> 14"),
    _clock("second", description="the whole second of the minute", example=f"second({_SAMPLE}) -> 15"),
    fn.plain(
        "exact_second",
        decimal(8, 6),
        (fn.INSTANT,),
        "the second of the minute with its fraction",
        f"EXTRACT(SECOND FROM {_SAMPLE}) -> 15.5",
        sql="EXTRACT(SECOND FROM {0})",
    ),
    fn.Function(
        "date_trunc",
        (2, 3),
        _date_trunc,
        "the start of the unit (YEAR to MICROSECOND) it lies in, by the clocks of a zone",
        f"date_trunc('HOUR', {_SAMPLE}) -> TIMESTAMP '2024-02-29 13:00:00'",
        can_fail=True,
    ),
    fn.Function(
        "date_format",
        (2, 2),
        _date_format,
        "a time as text, by a pattern",
        f"date_format({_SAMPLE}, 'yyyy-MM-dd HH:mm') -> '2024-02-29 13:14'",
    ),
    fn.Function(
        "trunc",
        (2, 2),
        _trunc,
        "the first day of the YEAR, QUARTER, MONTH or WEEK it lies in",
        "trunc(DATE '2024-02-29', 'WEEK') -> DATE '2024-02-26'",
    ),
    fn.Function(
        "to_date",
        (1, 2),
        _by_pattern(DATE, safe=False),
        "text, by a pattern, or a timestamp as a DATE",
        "to_date('29.2.2024', 'd.M.yyyy') -> DATE '2024-02-29'",
        can_fail=True,
    ),
    fn.Function(
        "to_timestamp",
        (1, 2),
        _by_pattern(TIMESTAMP, safe=False),
        "text, by a pattern, or a date as a TIMESTAMP",
        "to_timestamp('29/Feb/2024 13:14', 'dd/MMM/yyyy HH:mm') -> TIMESTAMP '2024-02-29 13:14:00'",
        can_fail=True,
        try_form="try_to_timestamp",
    ),
    fn.Function(
        "try_to_timestamp",
        (1, 2),
        _by_pattern(TIMESTAMP, safe=True),
        "text as a TIMESTAMP, NULL where it is none",
        "try_to_timestamp('soon', 'dd.MM.yyyy') -> NULL",
    ),
    fn.Function(
        "from_utc_timestamp",
        (2, 2),
        _in_zone,
        "what clocks of a zone show at a time",
        f"from_utc_timestamp({_SAMPLE}, 'Europe/Berlin') -> TIMESTAMP '2024-02-29 14:14:15.5'",
        aliases=("at_timezone",),
        can_fail=True,
    ),
    fn.Function(
        "to_utc_timestamp",
        (2, 2),
        _in_zone,
        "when clocks of a zone show a time",
        f"to_utc_timestamp({_SAMPLE}, 'Europe/Berlin') -> TIMESTAMP '2024-02-29 12:14:15.5'",
        can_fail=True,
    ),
    _moved(
        "date_add",
        description="days later",
        example="date_add(DATE '2024-02-28', 2) -> DATE '2024-03-01'",
        aliases=("dateadd",),
    ),
    _moved(
        "date_sub", description="days earlier", example="date_sub(DATE '2024-03-01', 1) -> DATE '2024-02-29'"
    ),
    _moved(
        "add_months",
        description="months later, on the same day or the last of the month",
        example="add_months(DATE '2024-01-31', 1) -> DATE '2024-02-29'",
        can_fail=True,
    ),
    fn.plain(
        "datediff",
        INT,
        (fn.DAY, fn.DAY),
        "the days from the second to the first",
        "datediff(DATE '2024-03-01', DATE '2024-02-28') -> 2",
        aliases=("date_diff",),
    ),
    fn.plain(
        "last_day",
        DATE,
        (fn.DAY,),
        "the last day of its month",
        "last_day(DATE '2024-02-01') -> DATE '2024-02-29'",
    ),
    fn.plain(
        "make_date",
        DATE,
        (fn.SHORT, fn.SHORT, fn.SHORT),
        "the DATE of a year, month and day",
        "make_date(2024, 2, 29) -> DATE '2024-02-29'",
        can_fail=True,
    ),
    fn.plain("unix_date", INT, (fn.DAY,), "days since 1970-01-01", "unix_date(DATE '1970-01-02') -> 1"),
    fn.plain(
        "date_from_unix_date",
        DATE,
        (fn.SHORT,),
        "a day counted from 1970-01-01",
        "date_from_unix_date(1) -> DATE '1970-01-02'",
    ),
    _since(
        "unix_seconds",
        description="whole seconds since 1970",
        example="unix_seconds(TIMESTAMP '1970-01-01 00:01:00.5') -> 60",
    ),
    _since(
        "unix_millis",
        description="whole milliseconds since 1970",
        example="unix_millis(TIMESTAMP '1970-01-01 00:00:01') -> 1000",
    ),
    _since(
        "unix_micros",
        description="microseconds since 1970",
        example="unix_micros(TIMESTAMP '1970-01-01 00:00:01') -> 1000000",
    ),
    fn.Function(
        "timestamp_seconds",
        (1, 1),
        _timestamp_seconds,
        "the time so many seconds after 1970 began",
        "timestamp_seconds(1.5) -> TIMESTAMP '1970-01-01 00:00:01.5'",
        can_fail=True,
    ),
    fn.plain(
        "timestamp_millis",
        TIMESTAMP,
        (fn.LONG,),
        "the time so many milliseconds after 1970 began",
        "timestamp_millis(1500) -> TIMESTAMP '1970-01-01 00:00:01.5'",
        can_fail=True,
    ),
    fn.plain(
        "timestamp_micros",
        TIMESTAMP,
        (fn.LONG,),
        "the time so many microseconds after 1970 began",
        "timestamp_micros(1500000) -> TIMESTAMP '1970-01-01 00:00:01.5'",
    ),
    fn.plain(
        "from_unixtime",
        STRING,
        (fn.LONG,),
        "seconds since 1970 as text",
        "from_unixtime(60) -> '1970-01-01 00:01:00'",
    ),
)


# ------------------------------------------------------------ extraction
#
# EXTRACT(field FROM source), also written date_part('field', source): one function per field.
#
# The fields of an interval are the parts of `d hh:mm:ss`, all with the interval's sign.


_FIELDS = {
    **dict.fromkeys(("YEAR", "Y", "YEARS", "YR", "YRS"), "year"),
    "YEAROFWEEK": "yearofweek",
    **dict.fromkeys(("QUARTER", "QTR"), "quarter"),
    **dict.fromkeys(("MONTH", "MON", "MONS", "MONTHS"), "month"),
    **dict.fromkeys(("WEEK", "W", "WEEKS"), "weekofyear"),
    **dict.fromkeys(("DAY", "D", "DAYS"), "day"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "dayofweek"),
    **dict.fromkeys(("DAYOFWEEK_ISO", "DOW_ISO"), "weekday"),
    "DOY": "dayofyear",
    **dict.fromkeys(("HOUR", "H", "HOURS", "HR", "HRS"), "hour"),
    **dict.fromkeys(("MINUTE", "M", "MIN", "MINS", "MINUTES"), "minute"),
    **dict.fromkeys(("SECOND", "S", "SEC", "SECONDS", "SECS"), "exact_second"),
}
_INTERVAL_FIELDS = {
    "day": "interval_day",
    "hour": "interval_hour",
    "minute": "interval_minute",
    "exact_second": "interval_second",
}


def _extract(name: str, args: tuple[Expression, ...]) -> Expression:
    field = str(fn.constant(name, args[0], "the field")).upper()
    function = _FIELDS.get(field)
    if args[1].type.kind is Kind.INTERVAL and function is not None:
        function = _INTERVAL_FIELDS.get(function)
    if function is None:
        raise QueryError(
            f"`{name}` knows no field `{field}` of {args[1].type}",
            code="bad-unit",
            hint="write unix_seconds(ts), unix_millis(ts) or unix_micros(ts)"
            if field == "EPOCH"
            else nearest(field, _FIELDS),
        )
    found = fn.call(function, args[1:])
    # ISO days count from Monday = 1, WEEKDAY counts from 0.
    return Call("+", (found, Literal(1, INT)), INT) if function == "weekday" else found


_part = partial(fn.plain, params=(fn.SPAN,))
_INSTANT = "INTERVAL '1 02:03:04.5' DAY TO SECOND"

EXTRACTION = (
    fn.Function(
        "extract",
        (2, 2),
        _extract,
        "a field of a time or an interval",
        "EXTRACT(WEEK FROM DATE '2024-02-29') -> 9",
        aliases=("date_part", "datepart"),
    ),
    _part(
        "interval_day",
        result=INT,
        description="the days of an interval",
        example=f"EXTRACT(DAY FROM {_INSTANT}) -> 1",
        sql="EXTRACT(DAY FROM {0})",
    ),
    _part(
        "interval_hour",
        result=TINYINT,
        description="the hours of an interval beyond its days",
        example=f"EXTRACT(HOUR FROM {_INSTANT}) -> 2",
        sql="EXTRACT(HOUR FROM {0})",
    ),
    _part(
        "interval_minute",
        result=TINYINT,
        description="the minutes of an interval beyond its hours",
        example=f"EXTRACT(MINUTE FROM {_INSTANT}) -> 3",
        sql="EXTRACT(MINUTE FROM {0})",
    ),
    _part(
        "interval_second",
        result=decimal(8, 6),
        description="the seconds of an interval beyond its minutes",
        example=f"EXTRACT(SECOND FROM {_INSTANT}) -> 4.5",
        sql="EXTRACT(SECOND FROM {0})",
    ),
)
