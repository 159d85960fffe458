"""The durable names of operators, layouts and kernels: what a state directory knows them by.

A name says what is kept and in which form; its number is raised when that form changes. Names never come from
classes, so a class can be renamed; a name that was ever committed is never given to another form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.kernels.panes.landmark import RunningTotals
from windrow.kernels.panes.live_panes import LivePanes
from windrow.kernels.panes.subtract_on_evict import Differences
from windrow.kernels.panes.two_stacks import TwoStacks
from windrow.kernels.relational.aggregate.bins import Binned
from windrow.kernels.relational.aggregate.by_expiry import ByEnd, Candidates
from windrow.kernels.relational.aggregate.frames import Framed
from windrow.kernels.relational.aggregate.group_by import Grouped
from windrow.kernels.relational.aggregate.row_panes import RowPanes
from windrow.kernels.relational.aggregate.totals import Running
from windrow.kernels.relational.distinct import CountingDelta, DeltaStar, Presence
from windrow.kernels.relational.emit.emission import ByCount, Changes, Reports, Restored, Snapshots
from windrow.kernels.relational.emit.evaluation import HeldRows
from windrow.kernels.relational.except_all import Difference
from windrow.kernels.relational.exists import Keys, Matched, Semijoin, _Asked
from windrow.kernels.relational.expiry_layouts import Calendar, ExpiryLayout, ExpiryList, Fifo, Hashed, Sorted
from windrow.kernels.relational.internal.build import Outliving
from windrow.kernels.relational.internal.operators import (
    Branch,
    Copies,
    Stamped,
    Unmatched,
    Valued,
    Witnessed,
)
from windrow.kernels.relational.internal.runs import GroupRuns, TableRuns, ValueRuns, WindowRuns
from windrow.kernels.relational.internal.validity import Staying
from windrow.kernels.relational.join.catalogues import Catalogued
from windrow.kernels.relational.join.multiway import Joined
from windrow.kernels.relational.limit import Limited, Ranked
from windrow.kernels.relational.operator import Operator
from windrow.kernels.relational.stateless import Filtered, Projected, United, Unnested
from windrow.kernels.relational.tables import LookedUp, TablePieces
from windrow.kernels.relational.windows.extents import Extents, ReportedRows, ReportedSessions, Sessions
from windrow.kernels.relational.windows.leaf import (
    Identified,
    Intervals,
    NegativeRows,
    NestedRows,
    NumberedRows,
    Scanned,
)
from windrow.kernels.relational.windows.rows import RowsNumbering
from windrow.kernels.relational.windows.slide_by_tuple import ByTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATORS: dict[type[Operator], str] = {
    Scanned: "rows-of-stream.1",
    NestedRows: "rows-of-query.1",
    Filtered: "filter.1",
    Projected: "project.1",
    United: "union.1",
    Unnested: "unnest.1",
    Intervals: "interval-window.1",
    RowsNumbering: "row-window.1",
    ReportedRows: "row-extents.1",
    ByTuple: "tuple-window.1",
    Sessions: "session-window.1",
    ReportedSessions: "session-extents.1",
    NumberedRows: "numbered-rows.1",
    Identified: "identified-rows.1",
    NegativeRows: "negative-rows.1",
    Extents: "extents.1",
    Joined: "join.1",
    Catalogued: "join-catalogues.1",
    HeldRows: "held-results.1",
    TablePieces: "table-rows.1",
    LookedUp: "table-lookup.1",
    Matched: "match.1",
    Semijoin: "semi-join.1",
    Keys: "keys.1",
    _Asked: "asked-columns.1",
    Difference: "difference.1",
    DeltaStar: "distinct-youngest.1",
    CountingDelta: "distinct-counting.1",
    Presence: "distinct-told.1",
    Grouped: "group-rows.1",
    Running: "group-running.1",
    ByEnd: "group-by-end.1",
    Candidates: "group-candidates.1",
    Binned: "group-bins.1",
    RowPanes: "group-row-panes.1",
    Limited: "limit.1",
    Ranked: "rank.1",
    Framed: "frames.1",
    Staying: "staying-results.1",
    Outliving: "outliving.1",
    Witnessed: "outliving-witnessed.1",
    Unmatched: "outliving-unmatched.1",
    Valued: "outliving-valued.1",
    Branch: "outliving-branch.1",
    Stamped: "outliving-stamped.1",
    Copies: "outliving-copies.1",
    WindowRuns: "runs-of-window.1",
    TableRuns: "runs-of-table.1",
    ValueRuns: "runs-of-values.1",
    GroupRuns: "runs-of-groups.1",
    Changes: "changes.1",
    Snapshots: "snapshots.1",
    Reports: "reports.1",
    Restored: "restored.1",
    ByCount: "restored-by-count.1",
}
LAYOUTS: dict[type[ExpiryLayout], str] = {
    Fifo: "fifo.1",
    Calendar: "calendar.1",
    Sorted: "sorted.1",
    Hashed: "hash.1",
    ExpiryList: "list.1",
}
KERNELS: dict[type, str] = {
    RunningTotals: "running-totals.1",
    TwoStacks: "two-stacks.1",
    Differences: "running-counts.1",
    LivePanes: "live-panes.1",
}


def kind_of(thing: object) -> str:
    """The durable name of an operator, a layout or a kernel.

    >>> kind_of(Fifo()), kind_of(Calendar(4))
    ('fifo.1', 'calendar.1')
    """
    known: dict[Any, str] = {**OPERATORS, **LAYOUTS, **KERNELS}
    return known[type(thing)]


def parts_of(operator: Operator) -> list[str]:
    """The names of the layouts, kernels and inner operators that an operator has, besides its inputs."""
    return sorted(name for value in vars(operator).values() for name in _names(value, operator))


def _names(value: object, operator: Operator) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _names(each, operator)
    elif (
        type(value) in LAYOUTS
        or type(value) in KERNELS
        or (isinstance(value, Operator) and not any(value is each for each in operator.inputs))
    ):
        yield kind_of(value)
