"""Functions of DATE and TIMESTAMP, in UTC where no zone is named.

Nothing here asks what time it is: a standing query's answer must depend on its input alone.
"""

from __future__ import annotations

from windrow.algebra.expressions import Call, Cast, Expression, Literal, cast, mismatch
from windrow.algebra.functions import registry as fn
from windrow.algebra.functions.time_patterns import compiled, reader
from windrow.algebra.types import DATE, INT, STRING, TIMESTAMP, DataType, Kind
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


FUNCTIONS = fn.family(
    r"""
year (date) INT
    the year | year(DATE '2024-02-29') -> 2024
quarter (date) INT
    the quarter of the year, 1 to 4 | quarter(DATE '2024-02-29') -> 1
month (date) INT
    the month of the year | month(DATE '2024-02-29') -> 2
day, dayofmonth (date) INT
    the day of the month | day(DATE '2024-02-29') -> 29
dayofweek (date) INT
    the weekday, 1 for Sunday | dayofweek(DATE '2024-02-29') -> 5
weekday (date) INT
    the weekday, 0 for Monday | weekday(DATE '2024-02-29') -> 3
dayofyear (date) INT
    the day of the year | dayofyear(DATE '2024-02-29') -> 60
weekofyear (date) INT
    the ISO week of the year | weekofyear(DATE '2024-12-31') -> 1
yearofweek (date) INT; sql EXTRACT(YEAROFWEEK FROM {0})
    the year its ISO week belongs to | EXTRACT(YEAROFWEEK FROM DATE '2024-12-31') -> 2025
hour (timestamp) INT
    the hour of the day | hour(TIMESTAMP '2024-02-29 13:14:15.5') -> 13
minute (timestamp) INT
    the minute of the hour | minute(TIMESTAMP '2024-02-29 13:14:15.5') -> 14
second (timestamp) INT
    the whole second of the minute | second(TIMESTAMP '2024-02-29 13:14:15.5') -> 15
exact_second (timestamp) DECIMAL(8,6); sql EXTRACT(SECOND FROM {0})
    the second of the minute with its fraction | EXTRACT(SECOND FROM TIMESTAMP '2024-02-29 13:14:15.5') ->
    15.5
date_trunc (x, y, [z]); fails
    the start of the unit (YEAR to MICROSECOND) it lies in, by the clocks of a zone | date_trunc('HOUR',
    TIMESTAMP '2024-02-29 13:14:15.5') -> TIMESTAMP '2024-02-29 13:00:00'
date_format (x, y)
    a time as text, by a pattern | date_format(TIMESTAMP '2024-02-29 13:14:15.5', 'yyyy-MM-dd HH:mm') ->
    '2024-02-29 13:14'
trunc (x, y)
    the first day of the YEAR, QUARTER, MONTH or WEEK it lies in | trunc(DATE '2024-02-29', 'WEEK') -> DATE
    '2024-02-26'
to_date (x, [y]); fails
    text, by a pattern, or a timestamp as a DATE | to_date('29.2.2024', 'd.M.yyyy') -> DATE '2024-02-29'
to_timestamp (x, [y]); fails; try try_to_timestamp
    text, by a pattern, or a date as a TIMESTAMP | to_timestamp('29/Feb/2024 13:14', 'dd/MMM/yyyy HH:mm') ->
    TIMESTAMP '2024-02-29 13:14:00'
try_to_timestamp (x, [y])
    text as a TIMESTAMP, NULL where it is none | try_to_timestamp('soon', 'dd.MM.yyyy') -> NULL
from_utc_timestamp, at_timezone (x, y); fails
    what clocks of a zone show at a time | from_utc_timestamp(TIMESTAMP '2024-02-29 13:14:15.5',
    'Europe/Berlin') -> TIMESTAMP '2024-02-29 14:14:15.5'
to_utc_timestamp (x, y); fails
    when clocks of a zone show a time | to_utc_timestamp(TIMESTAMP '2024-02-29 13:14:15.5', 'Europe/Berlin')
    -> TIMESTAMP '2024-02-29 12:14:15.5'
date_add, dateadd (date, int) DATE
    days later | date_add(DATE '2024-02-28', 2) -> DATE '2024-03-01'
date_sub (date, int) DATE
    days earlier | date_sub(DATE '2024-03-01', 1) -> DATE '2024-02-29'
add_months (date, int) DATE; fails
    months later, on the same day or the last of the month | add_months(DATE '2024-01-31', 1) -> DATE
    '2024-02-29'
datediff, date_diff (date, date) INT
    the days from the second to the first | datediff(DATE '2024-03-01', DATE '2024-02-28') -> 2
last_day (date) DATE
    the last day of its month | last_day(DATE '2024-02-01') -> DATE '2024-02-29'
make_date (int, int, int) DATE; fails
    the DATE of a year, month and day | make_date(2024, 2, 29) -> DATE '2024-02-29'
unix_date (date) INT
    days since 1970-01-01 | unix_date(DATE '1970-01-02') -> 1
date_from_unix_date (int) DATE
    a day counted from 1970-01-01 | date_from_unix_date(1) -> DATE '1970-01-02'
unix_seconds (instant) BIGINT
    whole seconds since 1970 | unix_seconds(TIMESTAMP '1970-01-01 00:01:00.5') -> 60
unix_millis (instant) BIGINT
    whole milliseconds since 1970 | unix_millis(TIMESTAMP '1970-01-01 00:00:01') -> 1000
unix_micros (instant) BIGINT
    microseconds since 1970 | unix_micros(TIMESTAMP '1970-01-01 00:00:01') -> 1000000
timestamp_seconds (number) TIMESTAMP; fails
    the time so many seconds after 1970 began | timestamp_seconds(1.5) -> TIMESTAMP '1970-01-01 00:00:01.5'
timestamp_millis (bigint) TIMESTAMP; fails
    the time so many milliseconds after 1970 began | timestamp_millis(1500) -> TIMESTAMP '1970-01-01
    00:00:01.5'
timestamp_micros (bigint) TIMESTAMP
    the time so many microseconds after 1970 began | timestamp_micros(1500000) -> TIMESTAMP '1970-01-01
    00:00:01.5'
from_unixtime (bigint) STRING
    seconds since 1970 as text | from_unixtime(60) -> '1970-01-01 00:01:00'
""",
    {
        "date_trunc": _date_trunc,
        "date_format": _date_format,
        "trunc": _trunc,
        "to_date": _by_pattern(DATE, safe=False),
        "to_timestamp": _by_pattern(TIMESTAMP, safe=False),
        "try_to_timestamp": _by_pattern(TIMESTAMP, safe=True),
        "from_utc_timestamp": _in_zone,
        "to_utc_timestamp": _in_zone,
    },
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


EXTRACTION = fn.family(
    r"""
extract, date_part, datepart (x, y)
    a field of a time or an interval | EXTRACT(WEEK FROM DATE '2024-02-29') -> 9
interval_day (interval) INT; sql EXTRACT(DAY FROM {0})
    the days of an interval | EXTRACT(DAY FROM INTERVAL '1 02:03:04.5' DAY TO SECOND) -> 1
interval_hour (interval) TINYINT; sql EXTRACT(HOUR FROM {0})
    the hours of an interval beyond its days | EXTRACT(HOUR FROM INTERVAL '1 02:03:04.5' DAY TO SECOND) -> 2
interval_minute (interval) TINYINT; sql EXTRACT(MINUTE FROM {0})
    the minutes of an interval beyond its hours | EXTRACT(MINUTE FROM INTERVAL '1 02:03:04.5' DAY TO SECOND)
    -> 3
interval_second (interval) DECIMAL(8,6); sql EXTRACT(SECOND FROM {0})
    the seconds of an interval beyond its minutes | EXTRACT(SECOND FROM INTERVAL '1 02:03:04.5' DAY TO SECOND)
    -> 4.5
""",
    {"extract": _extract},
)
