"""OVER: each row of a stream with aggregates of the rows before it, as they were when it came.

    SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 1 HOUR PRECEDING AND CURRENT ROW)

Rows of a partition are in the order of the windowing attribute, ties by all columns. A frame ends at the row
or before it, so that an answer is known as soon as the clock has passed the row, and never changes: the
output only grows, as its input does. Frames by RANGE are about instants, of which all rows have the same
frame; frames by ROWS are about places, and equal rows have different ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windrow.algebra import checks
from windrow.algebra.expressions import Call, ColumnRef, Expression, Field, Literal, Schema, WindowBound
from windrow.algebra.operators import AggregateCall, Filter, Project
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.errors import QueryError
from windrow.windows import patterns
from windrow.windows.ranges import RangeWindow, UnboundedWindow

if TYPE_CHECKING:
    from windrow.windows.patterns import Label


@dataclass(frozen=True)
class OverFrame:
    """From `start` before a row, or from the first row on if that is None, up to `stop` before it; both
    included. They are places if it is `by_rows`, else ticks of the windowing attribute."""

    by_rows: bool
    start: int | None
    stop: int = 0


@dataclass(frozen=True)
class FramedCall:
    """An aggregate of the rows of a frame, within a partition."""

    call: AggregateCall
    partition: tuple[Expression, ...]
    frame: OverFrame


@dataclass(frozen=True)
class Over(Plan):
    """The rows, with values of their frames behind them under names that no column has.

    One node has all of a SELECT, so that equal rows have one order among them. `order` is the column that
    says when a row is.
    """

    input: Plan
    order: Expression
    calls: tuple[tuple[str, FramedCall], ...]

    def __post_init__(self) -> None:
        checks.no_internal_windows(self.input, "OVER")
        _is_over_all_rows(self.input)
        _is_in_order(self.input, self.order)
        for _, framed in self.calls:
            call = framed.call
            checks.reads_only(self.input.schema, *framed.partition, *call.args, call.where)
            checks.sub_windows_are_known(self.input, call)

    @cached_property
    def schema(self) -> Schema:
        more = (Field(name, framed.call.data_type) for name, framed in self.calls)
        return Schema((*self.input.schema, *more))

    @property
    def label(self) -> Label:
        return patterns.neutral(self.input.label)


def is_over_stream(plan: Plan) -> bool:
    """Whether a plan is σ and π of all rows of one stream."""
    while isinstance(plan, Filter | Project | Over):
        plan = plan.input
    return isinstance(plan, Window) and isinstance(plan.spec, UnboundedWindow) and not plan.keeps_late_rows


def instant_columns(plan: Plan) -> frozenset[str]:
    """The columns that say when each row is: the windowing attribute under all its names, and the bounds of
    windows that a nested query has answered about."""
    match plan:
        case Filter() | Over():
            return instant_columns(plan.input) & frozenset(plan.schema.names)
        case Project(input=below, outputs=outputs):
            known = instant_columns(below)
            return frozenset(
                name for name, value in outputs if isinstance(value, ColumnRef) and value.name in known
            )
        case Window() if len(plan.origins) == 1:
            origin = plan.origins[0]
            if isinstance(origin, Scan):
                return frozenset({plan.instants}) & frozenset(plan.schema.names)
            inner = _instants_of_answers(origin.query)
            return frozenset(f"{origin.alias}.{name}" for name in inner) & frozenset(plan.schema.names)
    return frozenset()


def _instants_of_answers(query: Emit) -> frozenset[str]:
    """Which outputs of a nested query say when its answers are, or differ from that by a constant."""
    if query.meaning is StreamWord.ISTREAM and query.label.pattern is patterns.Pattern.MON:
        return instant_columns(query.input)
    evenly = all(isinstance(leaf.spec, RangeWindow) for leaf in query.leaves)
    if query.is_by_extent and evenly and isinstance(query.input, Project):
        return frozenset(name for name, value in query.input.outputs if _is_bound(value))
    return frozenset()


def _is_bound(value: Expression) -> bool:
    """A bound of a window, or one less a constant, as `window_time` is."""
    if isinstance(value, Call) and value.function == "-" and isinstance(value.args[1], Literal):
        value = value.args[0]
    return isinstance(value, WindowBound)


def _is_over_all_rows(plan: Plan) -> None:
    if is_over_stream(plan):
        return
    leaf = plan.leaves[0] if len(plan.leaves) == 1 else None
    if leaf is not None and leaf.keeps_late_rows:
        name = leaf.streams[0].name
        raise QueryError(
            f"stream `{name}` keeps late rows (LATE KEEP), and a late row would change answers about rows"
            " after it that are given already",
            code="late-keep",
            hint="declare the stream LATE DROP or LATE TO a sink",
        )
    what = "it is over a join or a group" if leaf is None or isinstance(leaf.spec, UnboundedWindow) else ""
    raise QueryError(
        f"OVER is about the rows of one stream without a window; {what or 'here a bracket limits them'}",
        code="bad-over",
        hint="make it a nested query under [UNBOUNDED]: FROM (SELECT ISTREAM(…) FROM …) [UNBOUNDED]"
        if what
        else "leave the bracket out: RANGE and ROWS inside OVER say which rows count",
    )


def _is_in_order(plan: Plan, order: Expression) -> None:
    known = instant_columns(plan)
    if isinstance(order, ColumnRef) and order.name in known:
        return
    names = sorted(name.rsplit(".", 1)[-1] for name in known)
    raise QueryError(
        "OVER goes through rows in the order in which they become final",
        code="bad-over",
        hint=f"write ORDER BY {names[0]}"
        if names
        else "select the windowing attribute, or window_end, in the nested query, and write ORDER BY with it",
    )
