"""EXTRACT(field FROM source), also written date_part('field', source): one function per field.

The fields of an interval are the parts of `d hh:mm:ss`, all with the interval's sign.
"""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Call, Expression, Literal
from windrow.algebra.functions.registry import SPAN, Function, call, constant, plain
from windrow.algebra.types import INT, TINYINT, Kind, decimal
from windrow.errors import QueryError, nearest

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
    field = str(constant(name, args[0], "the field")).upper()
    function = _FIELDS.get(field)
    if args[1].type.kind is Kind.INTERVAL and function is not None:
        function = _INTERVAL_FIELDS.get(function)
    if function is None:
        raise QueryError(
            f"`{name}` knows no field `{field}` of {args[1].type}",
            code="bad-unit",
            hint=nearest(field, _FIELDS),
        )
    found = call(function, args[1:])
    # ISO days count from Monday = 1, WEEKDAY counts from 0.
    return Call("+", (found, Literal(1, INT)), INT) if function == "weekday" else found


_part = partial(plain, params=(SPAN,))
_SAMPLE = "INTERVAL '1 02:03:04.5' DAY TO SECOND"

FUNCTIONS = (
    Function(
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
        example=f"EXTRACT(DAY FROM {_SAMPLE}) -> 1",
        sql="EXTRACT(DAY FROM {0})",
    ),
    _part(
        "interval_hour",
        result=TINYINT,
        description="the hours of an interval beyond its days",
        example=f"EXTRACT(HOUR FROM {_SAMPLE}) -> 2",
        sql="EXTRACT(HOUR FROM {0})",
    ),
    _part(
        "interval_minute",
        result=TINYINT,
        description="the minutes of an interval beyond its hours",
        example=f"EXTRACT(MINUTE FROM {_SAMPLE}) -> 3",
        sql="EXTRACT(MINUTE FROM {0})",
    ),
    _part(
        "interval_second",
        result=decimal(8, 6),
        description="the seconds of an interval beyond its minutes",
        example=f"EXTRACT(SECOND FROM {_SAMPLE}) -> 4.5",
        sql="EXTRACT(SECOND FROM {0})",
    ),
)
