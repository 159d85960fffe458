"""The table operator × window → update pattern, computed from the rules by building each plan.

It is Table 1 of Patroumpas and Sellis for Windrow's windows; the documentation shows it, and says where and
why it differs from the paper.

>>> table = pattern_table()
>>> [str(table[window]["⋈"].pattern) for window in ("sliding", "landmark", "count-based")]
['WK', 'MON', 'STR']
"""

from __future__ import annotations

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import TRUE, ColumnRef, Field, Schema
from windrow.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Except,
    Exists,
    Filter,
    Join,
    Project,
    Union,
)
from windrow.algebra.plan import Plan, Scan, Window
from windrow.algebra.types import BIGINT
from windrow.windows.calendar import CalendarWindow
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.patterns import Label
from windrow.windows.ranges import LaggedWindow, NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

_STREAM = Stream("s", Schema((Field("k", BIGINT), Field("e", BIGINT), Field("ts", BIGINT))), "ts")

#: one window of each kind, by the name the papers use
WINDOWS: dict[str, WindowSpec] = {
    "sliding": RangeWindow(60),
    "sliding, SLIDE divides RANGE": RangeWindow(60, 10),
    "sliding, SLIDE does not divide RANGE": RangeWindow(60, 25),
    "tumbling": RangeWindow(60, 60),
    "sliding, some time ago (LAG)": LaggedWindow(60, 30),
    "NOW": NowWindow(),
    "cumulating": CumulateWindow(60, 10),
    "by the calendar": CalendarWindow((1, "MONTHS"), (1, "DAYS"), "UTC"),
    "landmark": LandmarkWindow(0, None, None),
    "unbounded": UnboundedWindow(),
    "lifetime": LifetimeWindow(ColumnRef("a.e", BIGINT)),
    "count-based": RowsWindow(10),
    "partitioned": RowsWindow(10, partition_by=("k",)),
    "slide-by-tuple": SlideByTupleWindow(60, 1, None, True),
    "session": SessionWindow(30),
}
OPERATORS = ("σ", "π", "∪", "δ", "⋈", "EXISTS", "γ", "−", "NOT EXISTS")


def pattern_table() -> dict[str, dict[str, Label]]:
    """The label of each operator over each window; binary operators have the same window on both sides."""
    return {
        name: {operator: built(operator, spec).label for operator in OPERATORS}
        for name, spec in WINDOWS.items()
    }


def markdown() -> str:
    """The table as the documentation shows it."""
    lines = [f"| window | {' | '.join(OPERATORS)} |", "|---" * (len(OPERATORS) + 1) + "|"]
    for name, labels in pattern_table().items():
        lines.append(f"| {name} | " + " | ".join(str(labels[op].pattern) for op in OPERATORS) + " |")
    return "\n".join(lines)


def built(operator: str, spec: WindowSpec) -> Plan:
    """The operator over the window."""
    left, right = Window(Scan(_STREAM, "a"), spec), Window(Scan(_STREAM, "b"), spec)
    key = left.schema.column("a.k")
    match operator:
        case "σ":
            return Filter(left, TRUE)
        case "π":
            return Project(left, (("k", key),))
        case "∪":
            return Union((left, right))
        case "δ":
            return Distinct(left)
        case "⋈":
            return Join((left, right))
        case "γ":
            return Aggregate(left, (("k", key),), (("n", AggregateCall("count", (), BIGINT)),))
        case "−":
            return Except(left, right)
        case _:
            return Exists(left, right, negated=operator.startswith("NOT"))
