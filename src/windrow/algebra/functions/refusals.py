"""Functions of Spark that Windrow refuses by name, with the reason and the way out."""

from __future__ import annotations

from typing import NoReturn

from windrow.algebra.expressions import Expression
from windrow.algebra.functions.registry import Function
from windrow.errors import QueryError

_CLOCKS = (
    "current_timestamp",
    "current_date",
    "current_time",
    "now",
    "curdate",
    "localtimestamp",
    "unix_timestamp",
)
#: those that Spark also knows without parentheses
CLOCK_WORDS = frozenset({"current_timestamp", "current_date", "current_time", "localtimestamp"})
_CHANCE = (
    "rand",
    "random",
    "randn",
    "uuid",
    "randstr",
    "shuffle",
    "monotonically_increasing_id",
    "input_file_name",
)


def clock_refusal(name: str) -> QueryError:
    """Why a replayable query cannot ask for the time."""
    return QueryError(
        f"`{name}` depends on when the query runs, so a replay would answer otherwise",
        code="not-deterministic",
        hint="the past hour is a window, FROM s [RANGE 1 HOUR]; arrival_ts is when a row came in;"
        " window_end and `at` are the query's own clock",
    )


def _clock(name: str, _: tuple[Expression, ...]) -> NoReturn:
    raise clock_refusal(name)


def _chance(name: str, _: tuple[Expression, ...]) -> NoReturn:
    raise QueryError(
        f"`{name}` gives another answer each time, so a replay would answer otherwise",
        code="not-deterministic",
        hint="md5 or sha2 of a column spreads rows evenly and repeatably",
    )


FUNCTIONS = tuple(
    Function(
        name, (0, None), rule, "refused: its answer depends on more than its input", "", deterministic=False
    )
    for names, rule in ((_CLOCKS, _clock), (_CHANCE, _chance))
    for name in names
)
