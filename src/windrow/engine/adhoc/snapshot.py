"""A plan about one instant.

At one instant a window is the rows that are in it. So every window becomes one that holds all rows it is
given, and is given those that are in the window it stands for: all rows then come at once, no operator works
on the past, and aggregates can be left to Spark. Where the past matters (a window over a nested query's
answers), or the bounds of windows are asked for, the plan stays as it is, and runs over what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from windrow.algebra.catalog import Late, ProgressRule, Stream, Table
from windrow.algebra.operators import Limit, Project, TableJoin
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.errors import QueryError
from windrow.windows.domain import FARTHEST, ROW_NUM
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from windrow.windows.spec import WindowSpec

#: all instants that matter are before this one, and none of them is a slide instant
END = FARTHEST + 1
EVERYTHING = LandmarkWindow(slide=2 * FARTHEST, origin=END)
NO_LIMIT = (1 << 62) - 1


@dataclass(frozen=True)
class WindowLeaf:
    """A window of the query: what the plan calls its rows, and what they are."""

    name: str
    stream: Stream
    spec: WindowSpec
    alias: str


@dataclass(frozen=True)
class QuestionSnapshot:
    """What is evaluated: a plan, the rows it is given, and how its answer is put in order."""

    #: as it was asked
    asked: Emit
    plan: Emit
    #: empty where the plan runs over what is kept
    leaves: tuple[WindowLeaf, ...]
    order: tuple[tuple[str, bool], ...] = ()

    @property
    def is_at_once(self) -> bool:
        """Whether all rows are given as of one instant."""
        return bool(self.leaves)

    @property
    def streams(self) -> dict[str, Stream]:
        """The streams below."""
        scans = [node for node in self.asked.walk() if isinstance(node, Scan)]
        return {scan.stream.name: scan.stream for scan in scans}

    @property
    def tables(self) -> dict[str, Table]:
        """The tables below."""
        joins = [node.table.table for node in self.plan.walk() if isinstance(node, TableJoin)]
        return {table.name: table for table in joins}


def snapshot_of(asked: Emit) -> QuestionSnapshot:
    """The plan about one instant."""
    _refuse(asked)
    top, order = without_order(asked)
    nodes = list(asked.walk())
    windows = [node for node in nodes if isinstance(node, Window)]
    needs_past = any(isinstance(node, Subquery) for node in nodes) or asked.reads_window_bounds
    if needs_past or any(isinstance(window.spec, SlideByTupleWindow) for window in windows):
        return QuestionSnapshot(asked, top, (), order)
    leaves: list[WindowLeaf] = []

    def change(node: Plan) -> Plan:
        if not isinstance(node, Window):
            return node
        scan = node.input
        assert isinstance(scan, Scan)
        leaf = WindowLeaf(f"{scan.stream.name}#{len(leaves)}", scan.stream, node.spec, scan.alias)
        leaves.append(leaf)
        nothing: dict[str, Any] = {"late_sink": None, "keep": None, "source": None}
        plain = replace(scan.stream, name=leaf.name, progress=ProgressRule(), late=Late.DROP, **nothing)
        return Window(replace(scan, stream=plain), EVERYTHING)

    plan = top.rewrite(change)
    assert isinstance(plan, Emit)
    return QuestionSnapshot(asked, plan, tuple(leaves), order)


def without_order(asked: Emit) -> tuple[Emit, tuple[tuple[str, bool], ...]]:
    """The part of the plan that gives the columns to sort by, and those columns, descending or not."""
    top = asked.input
    limit = top.input if isinstance(top, Project) and isinstance(top.input, Limit) else top
    if not isinstance(limit, Limit):
        return asked, ()
    order = tuple((next(iter(key.columns)), down) for key, down in limit.order if key.columns)
    inner = limit.input if limit.count == NO_LIMIT else limit
    return Emit(inner, StreamWord.RSTREAM), order


def _refuse(asked: Emit) -> None:
    for node in asked.walk():
        if isinstance(node, Scan) and ROW_NUM in node.pseudo:
            raise _counts_arrivals()
        if not isinstance(node, Window):
            continue
        if node.spec.counts_arrivals:
            raise _counts_arrivals()
        if node.spec.internal:
            raise QueryError(
                "results of INTERNAL windows outlive them, so they cannot be had from what is there now",
                code="unsupported",
                hint="leave INTERNAL out, or register the query with CREATE QUERY",
            )
        if node.spec.wattr not in (None, *(stream.wattr for stream in node.streams)):
            raise QueryError(
                f"rows are kept by the stream's own WATTR, not by `{node.spec.wattr}`",
                code="unsupported",
                hint="window the stream on its WATTR",
            )
    spec = asked.leaves[0].spec
    if asked.reads_window_bounds and (spec.grid is None or isinstance(spec, SessionWindow)):
        raise QueryError(
            "this query selects the bounds of each extent, so it has no relation at an instant",
            code="no-relation",
            hint="leave window_start and window_end out, or register it with CREATE QUERY",
        )


def _counts_arrivals() -> QueryError:
    return QueryError(
        "rows are kept without the numbers they arrived under",
        code="unsupported",
        hint="count rows in the order of WATTR: leave `row_num` out",
    )
