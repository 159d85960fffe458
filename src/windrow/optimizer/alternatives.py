"""Rewritings that may go either way: which plan is cheaper is for `windrow.optimizer.cost.model` to say.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Distinct, Join
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> schema = Schema((Field("a", BIGINT), Field("ts", BIGINT)))
>>> x, y = (Window(Scan(Stream("s", schema, "ts"), alias), RangeWindow(9)) for alias in "xy")
>>> [name for name, _ in alternatives(Emit(Distinct(Join((x, y)))))]
['push_distinct']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from windrow.algebra.plan import Emit, Plan
from windrow.optimizer.cost.statistics import Statistics
from windrow.optimizer.guards import reports_alike
from windrow.optimizer.merge_windows import split_windows
from windrow.optimizer.move_negation import pull_up_negation, push_down_negation
from windrow.optimizer.move_tables import pull_up_tables, push_down_tables
from windrow.optimizer.push_distinct import push_distinct
from windrow.optimizer.reorder_joins import reorder_joins
from windrow.optimizer.use_panes import use_panes

if TYPE_CHECKING:
    from collections.abc import Collection

Variation = Callable[[Plan, Statistics], Iterable[Plan]]

ALTERNATIVES: tuple[tuple[str, Variation], ...] = (
    ("push_down_negation", lambda plan, _: push_down_negation(plan)),
    ("pull_up_negation", lambda plan, _: pull_up_negation(plan)),
    ("push_down_tables", lambda plan, _: push_down_tables(plan)),
    ("pull_up_tables", lambda plan, _: pull_up_tables(plan)),
    ("push_distinct", lambda plan, _: push_distinct(plan)),
    ("reorder_joins", reorder_joins),
    ("use_panes", lambda plan, _: use_panes(plan)),
    ("split_windows", lambda plan, _: split_windows(plan)),
)


def alternatives(
    plan: Emit, statistics: Statistics | None = None, disabled: Collection[str] = ()
) -> list[tuple[str, Emit]]:
    """Every plan one step away, with the name of the step."""
    return [
        (name, other)
        for name, variation in ALTERNATIVES
        if name not in disabled
        for other in variation(plan, statistics or Statistics())
        if isinstance(other, Emit) and reports_alike(plan, other)
    ]
