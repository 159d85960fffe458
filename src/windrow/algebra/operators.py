"""The relational operators, on multisets of rows whose validity changes over time.

ROW_NUMBER, RANK and DENSE_RANK: each row with its place among those of its partition, at every instant.

OVER: each row of a stream with aggregates of the rows before it, as they were when it came.

    SUM(x) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN 1 HOUR PRECEDING AND CURRENT ROW)

Rows of a partition are in the order of the windowing attribute, ties by all columns. A frame ends at the row
or before it, so that an answer is known as soon as the clock has passed the row, and never changes: the
output only grows, as its input does. Frames by RANGE are about instants, of which all rows have the same
frame; frames by ROWS are about places, and equal rows have different ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from windrow.algebra import catalog, checks, types
from windrow.algebra.expressions import TRUE, Call, ColumnRef, Expression, Field, Literal, Schema, WindowBound
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, TableScan, Window
from windrow.errors import QueryError
from windrow.windows import Label, RangeWindow, UnboundedWindow, patterns

KINDS = ("ROW_NUMBER", "RANK", "DENSE_RANK")


@dataclass(frozen=True)
class Rank(Plan):
    """The rows, with their number behind them under a name that no column has.

    Numbers count from 1 in the given order (expression, descending), NULL first, and last if descending. Rows
    that are equal in it share a RANK and a DENSE_RANK; ROW_NUMBER tells them apart by the remaining columns.
    """

    input: Plan
    name: str
    kind: str
    partition: tuple[Expression, ...]
    order: tuple[tuple[Expression, bool], ...]

    def __post_init__(self) -> None:
        assert self.kind in KINDS
        checks.reads_only(self.input.schema, *self.partition, *(expression for expression, _ in self.order))
        checks.no_internal_windows(self.input, self.kind)

    @cached_property
    def schema(self) -> Schema:
        return Schema((*self.input.schema, Field(self.name, types.BIGINT)))

    label = patterns.strict("a row that comes or goes moves the numbers of others")
    retracts_results = True


@dataclass(frozen=True)
class RowByRow(Plan, ABC):
    """σ or π."""

    input: Plan

    @property
    @abstractmethod
    def reads(self) -> tuple[Expression, ...]:
        """What it computes of each row."""

    @cached_property
    def _reads_bounds(self) -> bool:
        return any(expression.reads_window_bounds for expression in self.reads)

    @property
    def reads_window_bounds(self) -> bool:
        return self._reads_bounds or self.input.reads_window_bounds

    @property
    def is_stream(self) -> bool:
        return self.input.is_stream

    @property
    def label(self) -> Label:
        return patterns.by_extent(self.input.label) if self._reads_bounds else self.input.label


@dataclass(frozen=True)
class Filter(RowByRow):
    """σ: the rows for which the predicate is true."""

    predicate: Expression

    def __post_init__(self) -> None:
        checks.reads_only(self.input.schema, self.predicate)
        checks.is_predicate(self.predicate, "WHERE")
        checks.window_bounds_are_defined(self, self.reads)

    @property
    def reads(self) -> tuple[Expression, ...]:
        return (self.predicate,)


@dataclass(frozen=True)
class Project(RowByRow):
    """π, duplicates kept: named expressions over each row."""

    outputs: tuple[tuple[str, Expression], ...]

    def __post_init__(self) -> None:
        checks.reads_only(self.input.schema, *self.reads)
        checks.window_bounds_are_defined(self, self.reads)

    @property
    def reads(self) -> tuple[Expression, ...]:
        return tuple(expression for _, expression in self.outputs)

    @cached_property
    def schema(self) -> Schema:
        return Schema(tuple(Field(name, expression.type) for name, expression in self.outputs))


@dataclass(frozen=True)
class Union(Plan):
    """∪ ALL."""

    inputs: tuple[Plan, ...]

    def __post_init__(self) -> None:
        checks.has_inputs(self.inputs, 2, "UNION ALL")
        checks.same_columns(self.inputs, "UNION ALL")

    @property
    def is_stream(self) -> bool:
        return all(part.is_stream for part in self.inputs)

    @cached_property
    def label(self) -> Label:
        return patterns.merged([part.label for part in self.inputs])


@dataclass(frozen=True)
class Distinct(Plan):
    """δ: each row value once, for as long as any copy is valid.

    Its result is kept as pieces, the current row and after it the youngest duplicate (thesis, 3.5.2);
    the label describes the pieces.
    """

    input: Plan

    def __post_init__(self) -> None:
        checks.no_internal_windows(self.input, "DISTINCT")

    @cached_property
    def label(self) -> Label:
        return patterns.interfering(
            [self.input.label], "a distinct value is replaced by its youngest duplicate"
        )

    has_wattr = False


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a γ: function, arguments, constant parameters, DISTINCT, FILTER (WHERE …)."""

    function: str
    args: tuple[Expression, ...]
    data_type: types.DataType
    params: tuple[Any, ...] = ()
    distinct: bool = False
    where: Expression = TRUE


@dataclass(frozen=True)
class Aggregate(Plan):
    """γ: one row per group of keys that has rows. No rows, no row: also without keys."""

    input: Plan
    keys: tuple[tuple[str, Expression], ...]
    aggregates: tuple[tuple[str, AggregateCall], ...]

    def __post_init__(self) -> None:
        checks.reads_only(self.input.schema, *(key for _, key in self.keys))
        for _, call in self.aggregates:
            checks.reads_only(self.input.schema, *call.args, call.where)
            checks.order_is_known(self.input, call)
            checks.sub_windows_are_known(self.input, call)

    @cached_property
    def schema(self) -> Schema:
        keys = tuple(Field(name, expression.type) for name, expression in self.keys)
        return Schema(keys + tuple(Field(name, call.data_type) for name, call in self.aggregates))

    label = patterns.AGGREGATED

    @property
    def reads(self) -> tuple[Expression, ...]:
        """What it computes of single rows: keys, arguments and FILTERs."""
        calls = (call for _, call in self.aggregates)
        return (
            *(key for _, key in self.keys),
            *(part for call in calls for part in (*call.args, call.where)),
        )

    has_wattr = False
    aggregates_rows = True


@dataclass(frozen=True)
class Join(Plan):
    """n-way ⋈ on any predicate; NULL never joins by equality."""

    inputs: tuple[Plan, ...]
    predicate: Expression = TRUE

    def __post_init__(self) -> None:
        checks.has_inputs(self.inputs, 2, "a join")
        checks.no_table_below_a_join(self.inputs)
        checks.reads_only(self.schema, self.predicate)
        checks.is_predicate(self.predicate, "ON")

    @cached_property
    def schema(self) -> Schema:
        return Schema(tuple(field for part in self.inputs for field in part.schema))

    @cached_property
    def label(self) -> Label:
        return patterns.interfering(
            [part.label for part in self.inputs], "a result expires with its first part"
        )


@dataclass(frozen=True)
class TableJoin(Plan):
    """⋈ with a table: NRR sees the changes before each result's rows, RELATION reaches back.

    `outer` keeps the rows without a partner, with NULL in place of the table's columns.
    """

    input: Plan
    table: TableScan
    predicate: Expression = TRUE
    outer: bool = False

    def __post_init__(self) -> None:
        checks.reads_only(self.schema, self.predicate)
        checks.is_predicate(self.predicate, "ON")
        checks.table_takes_input(self)

    @cached_property
    def schema(self) -> Schema:
        return self.input.schema + self.table.schema

    @cached_property
    def label(self) -> Label:
        if self.is_retroactive:
            return patterns.strict("changes of a RELATION table reach back to earlier results")
        return self.input.label

    @property
    def is_retroactive(self) -> bool:
        return self.table.table.kind is catalog.TableKind.RELATION

    @property
    def retracts_results(self) -> bool:
        return self.is_retroactive

    @property
    def has_wattr(self) -> bool:
        return self.input.has_wattr

    @property
    def reads_as_of_rows(self) -> bool:
        return not self.is_retroactive or self.input.reads_as_of_rows


@dataclass(frozen=True)
class Except(Plan):
    """EXCEPT ALL: max(0, k1 - k2) copies of each row."""

    left: Plan
    right: Plan

    def __post_init__(self) -> None:
        checks.same_columns((self.left, self.right), "EXCEPT ALL")
        for side in (self.left, self.right):
            checks.no_internal_windows(side, "EXCEPT")

    label = patterns.strict("a row of the right side retracts one of the left")
    has_wattr = False


@dataclass(frozen=True)
class Exists(Plan):
    """EXISTS (semi-join) or, `negated`, NOT EXISTS (anti-join)."""

    left: Plan
    right: Plan
    predicate: Expression = TRUE
    negated: bool = False

    def __post_init__(self) -> None:
        checks.reads_only(self.left.schema + self.right.schema, self.predicate)
        checks.is_predicate(self.predicate, "EXISTS")
        for side in (self.left, self.right) if self.negated else ():
            checks.no_internal_windows(side, "NOT EXISTS")

    @cached_property
    def label(self) -> Label:
        if self.negated:
            return patterns.strict("a match on the right retracts a row of the left")
        return patterns.interfering([self.left.label, self.right.label], "a row lives from match to match")

    @property
    def has_wattr(self) -> bool:
        return self.left.has_wattr


@dataclass(frozen=True)
class Limit(Plan):
    """The first `count` rows by `order` (expression, descending), ties by the remaining columns."""

    input: Plan
    order: tuple[tuple[Expression, bool], ...]
    count: int

    def __post_init__(self) -> None:
        checks.reads_only(self.input.schema, *(expression for expression, _ in self.order))
        checks.positive_limit(self.count)

    label = patterns.strict("a row of higher rank pushes another out")
    retracts_results = True


# ------------------------------------------------------------ unnest
#
# UNNEST: for each row, one row per element of an array of its own.


@dataclass(frozen=True)
class Unnest(Plan):
    """The rows, each as often as its array has elements, with an element behind it: under one name, or a
    struct's fields under as many. `position` names a column for its place from 0 on. A row without elements
    vanishes or, `outer`, is there once with NULL."""

    input: Plan
    array: Expression
    names: tuple[str, ...]
    position: str | None = None
    outer: bool = False

    def __post_init__(self) -> None:
        checks.reads_only(self.input.schema, self.array)
        checks.no_internal_windows(self.input, "UNNEST")
        if self.array.type.kind is not types.Kind.ARRAY:
            raise QueryError(
                f"this is {self.array.type}, and only an ARRAY or a MAP has elements",
                code="not-an-array",
                hint="JSON in a text is made one by from_json(text, 'ARRAY<…>')",
            )
        if len(self.names) not in (1, len(self.array.type.element.fields)):
            fields = len(self.array.type.element.fields) or 1
            raise QueryError(
                f"an element has {fields} columns, and there are {len(self.names)} names",
                code="unnest-columns",
                hint="name one column, or one for each field",
            )

    @property
    def spreads(self) -> bool:
        """Whether the fields of each element are columns."""
        return len(self.names) > 1

    @cached_property
    def schema(self) -> Schema:
        element = self.array.type.element
        kinds = [kind for _, kind in element.fields] if self.spreads else [element]
        place = (Field(self.position, types.INT),) if self.position else ()
        parts = tuple(Field(name, kind) for name, kind in zip(self.names, kinds, strict=True))
        return Schema((*self.input.schema, *place, *parts))


# ------------------------------------------------------------ OVER


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
