"""Snapshots: a plan about one instant, and which rows its windows need and hold then.

At one instant a window is the rows that are in it. So every window becomes one that holds all rows it is
given, and is given those that are in the window it stands for: all rows then come at once, and aggregates can
be left to Spark. Where the past matters (a window over a nested query's answers), or the bounds of windows
are asked for, the plan stays as it is, and runs over what is kept.

>>> from windrow.windows.ranges import RangeWindow
>>> needs_of(RangeWindow(60), 1000), needs_of(RangeWindow(60, 50), 1020)
(Needs(begin=941, end=1000, rows=None), Needs(begin=940, end=999, rows=None))
>>> needs_of(RowsWindow(5), 1000)
Needs(begin=-inf, end=1000, rows=5)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from windrow.algebra.catalog import Late, ProgressRule, Stream, Table
from windrow.algebra.operators import Limit, Project, TableJoin
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.engine.output.outbox import order_key
from windrow.errors import QueryError
from windrow.kernels.columnar import columns, expressions
from windrow.windows import RowsWindow, WindowSpec, domain, landmark, lifetime, session, slide_by_tuple


@dataclass(frozen=True)
class Needs:
    """Rows with begin <= attribute <= end, or of these the last `rows`."""

    begin: domain.Instant
    end: domain.Instant
    rows: int | None = None


def needs_of(spec: WindowSpec, at: int) -> Needs:
    """The rows a window can hold at an instant."""
    if isinstance(spec, slide_by_tuple.SlideByTupleWindow):
        raise QueryError(
            "a window that slides by the values of its rows is not asked about at one instant",
            code="unsupported",
            hint="register the query with CREATE QUERY",
        )
    begin, end = spec.held(at)
    if isinstance(spec, RowsWindow) and not spec.partition_by and spec.slide_rows is None:
        return Needs(begin, end, spec.rows)
    return Needs(begin, end)


def members(spec: WindowSpec, stream: Stream, rows: pl.DataFrame, at: int, alias: str = "") -> pl.DataFrame:
    """Those of the rows that are in the window at an instant; it must have been given all it needs."""
    needs, moment = needs_of(spec, at), pl.col(moment_of(stream)).cast(pl.Int64)
    inside = rows.filter(moment <= int(needs.end))
    if needs.begin != -domain.INFINITY:
        inside = inside.filter(moment >= int(needs.begin))
    match spec:
        case RowsWindow():
            return _counted(spec, stream, inside)
        case session.SessionWindow():
            return _in_sessions(spec, stream, inside, at)
        case lifetime.LifetimeWindow():
            return _alive(spec, inside, moment, at, alias)
    return inside


def moment_of(stream: Stream) -> str:
    """The column of kept rows that is the windowing attribute."""
    return stream.wattr if stream.wattr in stream.schema else f"#{stream.wattr}"


def _counted(spec: RowsWindow, stream: Stream, rows: pl.DataFrame) -> pl.DataFrame:
    """The last n rows of each partition; with SLIDE m ROWS, up to a multiple of m."""
    keys = [columns.row_order(rows[moment_of(stream)].cast(pl.Int64)).alias("#0")]
    keys += [order_key(rows[name]).alias(f"#o{place}") for place, name in enumerate(stream.schema.names)]
    by = [pl.col(key.name) for key in keys]
    order = pl.DataFrame(keys).select(pl.arg_sort_by(by)).to_series()
    ranked = rows.select(pl.all().gather(order)).with_columns(pl.lit(1, pl.Int64).alias("#one"))
    over = list(spec.partition_by) or ["#one"]
    ranked = ranked.with_columns(
        pl.col("#one").cum_sum().over(over).alias("#position"),
        pl.len().over(over).cast(pl.Int64).alias("#of"),
    )
    step = spec.slide_rows or 1
    last = pl.col("#of") // step * step
    held = (pl.col("#position") <= last) & (pl.col("#position") > last - spec.rows)
    return ranked.filter(held).select(rows.columns)


def _in_sessions(spec: session.SessionWindow, stream: Stream, rows: pl.DataFrame, at: int) -> pl.DataFrame:
    """The rows of sessions that have not ended."""
    t, keys = moment_of(stream), list(spec.partition_by) or ["#one"]
    moment = pl.col(t).cast(pl.Int64).alias("#t")
    ranked = rows.with_columns(pl.lit(1, pl.Int64).alias("#one"), moment).sort("#t")
    gap = (pl.col("#t") - pl.col("#t").shift(1).over(keys)).fill_null(0) >= spec.reach
    ranked = ranked.with_columns(gap.cast(pl.Int64).alias("#new"))
    ranked = ranked.with_columns(pl.col("#new").cum_sum().over(keys).alias("#session"))
    last = pl.col("#t").max().over([*keys, "#session"])
    return ranked.filter(last + spec.reach > at).select(rows.columns)


def _alive(
    spec: lifetime.LifetimeWindow, rows: pl.DataFrame, moment: pl.Expr, at: int, alias: str
) -> pl.DataFrame:
    named = rows.rename(lambda name: f"{alias}.{name}")
    lives: Any = expressions.compile_expression(spec.expression)(named).cast(pl.Int64).fill_null(0)
    limit = (1 << 62) // spec.scale
    ticks = pl.lit(lives.clip(0, limit) * spec.scale)
    return rows.filter(moment + ticks > at)


#: all instants that matter are before this one, and none of them is a slide instant
END = domain.FARTHEST + 1
EVERYTHING = landmark.LandmarkWindow(slide=2 * domain.FARTHEST, origin=END)
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
        scans = [node for node in self.asked.walk() if isinstance(node, Scan)]
        return {scan.stream.name: scan.stream for scan in scans}

    @property
    def tables(self) -> dict[str, Table]:
        joins = [node.table.table for node in self.plan.walk() if isinstance(node, TableJoin)]
        return {table.name: table for table in joins}


def snapshot_of(asked: Emit) -> QuestionSnapshot:
    """The plan about one instant."""
    _refuse(asked)
    top, order = without_order(asked)
    nodes = list(asked.walk())
    windows = [node for node in nodes if isinstance(node, Window)]
    needs_past = any(isinstance(node, Subquery) for node in nodes) or asked.reads_window_bounds
    if needs_past or any(isinstance(window.spec, slide_by_tuple.SlideByTupleWindow) for window in windows):
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
        if (isinstance(node, Scan) and domain.ROW_NUM in node.pseudo) or (
            isinstance(node, Window) and node.spec.counts_arrivals
        ):
            raise QueryError(
                "rows are kept without the numbers they arrived under",
                code="unsupported",
                hint="count rows in the order of WATTR: leave `row_num` out",
            )
        if not isinstance(node, Window):
            continue
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
    if asked.reads_window_bounds and (spec.grid is None or isinstance(spec, session.SessionWindow)):
        raise QueryError(
            "this query selects the bounds of each extent, so it has no relation at an instant",
            code="no-relation",
            hint="leave window_start and window_end out, or register it with CREATE QUERY",
        )
