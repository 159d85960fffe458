"""What a query asks of its stream, taken apart: data over windows, by the rows' condition and grouping.

SELECT src, AVG(len), MAX(len) FILTER (WHERE tos = 1) FROM S [RANGE 10 SLIDE 2] WHERE port = 80 GROUP BY src

count of rows    WHERE port = 80               a group is there as long as it has rows
count of len     WHERE port = 80
total of len     WHERE port = 80
greatest of len  WHERE port = 80 AND tos = 1

A datum is kept of each interval and group, in the smallest parts that can be shared: AVG finds the count and
the total where SUM and COUNT have left them; VAR also wants the total of squares. MEDIAN, MODE, TOP_K and
COUNT(DISTINCT) keep how often each value occurs, sketches their cells, FREQUENT a list for each sub-window.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeAlias

from windrow.algebra import Emit, Late, Scan
from windrow.algebra.expressions import Expression, conjunction, conjuncts
from windrow.algebra.functions.sql_text import to_sql
from windrow.errors import QueryError
from windrow.kernels.aggregates import partials, value_tables
from windrow.kernels.aggregates.measures import GROUPS, Measure, Measures
from windrow.kernels.columnar.expressions import can_fail
from windrow.kernels.panes.pane_tables import PaneAnswers
from windrow.kernels.panes.query import Normal, SlidingQuery, normal_form
from windrow.sharing import predicates, synopses

#: what the columns of a datum are called, before the number
LABEL = "d"


Shape: TypeAlias = partials.Partial | value_tables.Cells


@dataclass(frozen=True)
class Datum:
    """A state, and the expressions over the stream's columns that it is made of.

    `order` is what rows of one instant are ordered by, where that matters. Which rows count is up to the
    synopsis. Lists are of sub-windows, which are the intervals of their synopsis.
    """

    shape: Shape
    args: tuple[Expression, ...]
    order: tuple[Expression, ...] = ()
    sub_windows: synopses.SharedGrid | None = None

    @property
    def is_complex(self) -> bool:
        """Whether it holds counters or sketches, whose size is not constant."""
        return isinstance(self.shape, value_tables.Cells)

    @property
    def adds_up(self) -> bool:
        """Whether states of the rows of two conditions are that of the rows of either."""
        return not isinstance(self.shape, value_tables.Listed)

    @cached_property
    def is_subtractable(self) -> bool:
        """Is f(X − Y) = f(X) − f(Y), exactly? Not if merging leaves anything out."""
        kept = self.shape.partials if isinstance(self.shape, value_tables.Cells) else (self.shape,)
        return all(combiner.invertible for partial in kept for combiner in partial.combiners)

    @cached_property
    def text(self) -> str:
        """For people.

        >>> from windrow.algebra.expressions import ColumnRef
        >>> from windrow.algebra.types import BIGINT
        >>> [datum.text for datum in parts_of(partials.ExactTotal("", BIGINT), (ColumnRef("v", BIGINT),))]
        ['count of v', 'total of v']
        """
        args = ", ".join(to_sql(arg, str) for arg in self.args) or "rows"
        return f"{_name(self.shape)} of {args}"

    @property
    def form(self) -> list[Any]:
        """What it is known by in a state directory, for its canonical text.

        >>> [datum.form[0] for datum in parts_of(partials.CountPartial(""), ())]
        [['count.1']]
        """
        cut = self.sub_windows
        return [_form(self.shape), self.args, self.order, None if cut is None else [cut.width, cut.phase]]


#: of states that are shared; a number is raised when the columns of a state, or what they mean, change
_DURABLE: dict[type, str] = {
    partials.CountPartial: "count.1",
    partials.ExactTotal: "exact-total.1",
    partials.FloatTotal: "float-total.1",
    partials.FloatMoments: "float-moments.1",
    partials.PartialColumns: "part-of-state.1",
    partials.Extreme: "extreme.1",
    partials.Edge: "edge.1",
    value_tables.Values: "values.1",
    value_tables.Buckets: "buckets.1",
    value_tables.Ranks: "ranks.1",
    value_tables.Counters: "counters.1",
    value_tables.OrderedRows: "rows-in-order.1",
    value_tables.Listed: "lists.1",
}


def _form(shape: Shape) -> list[Any]:
    found: list[Any] = [_DURABLE[type(shape)]]
    for item in fields(shape):
        value = getattr(shape, item.name)
        if item.name != "label":
            found.append(_form(value) if isinstance(value, partials.Partial | value_tables.Cells) else value)
    return found


def _name(shape: Shape) -> str:
    match shape:
        case partials.PartialColumns():
            return "total of squares" if shape.first > 1 else "total"
        case partials.Extreme():
            return "greatest" if shape.greatest else "least"
        case partials.Edge():
            return "last" if shape.greatest else "first"
    return _NAMES[type(shape)]


_NAMES: dict[type, str] = {
    partials.CountPartial: "count",
    partials.FloatMoments: "moments",
    partials.UserState: "state",
    value_tables.Values: "frequencies",
    value_tables.Buckets: "buckets",
    value_tables.Ranks: "ranks",
    value_tables.Counters: "counters",
    value_tables.OrderedRows: "rows in order",
    value_tables.Listed: "lists of the most frequent",
}


def parts_of(
    shape: Shape,
    args: tuple[Expression, ...],
    order: tuple[Expression, ...] = (),
    sub_windows: synopses.SharedGrid | None = None,
) -> Iterator[Datum]:
    """The data that a state consists of, in the order of its columns."""
    count = Datum(partials.CountPartial(LABEL), args)
    match shape:
        case partials.CountPartial():
            yield count
        case partials.ExactTotal():
            total = partials.ExactTotal(LABEL, shape.kind)
            width = len(total.combiners)
            yield count
            yield Datum(partials.PartialColumns(LABEL, total, 1, width), args)
            if shape.squared:
                squares = partials.ExactTotal(LABEL, shape.kind, squared=True)
                yield Datum(partials.PartialColumns(LABEL, squares, width, len(squares.combiners)), args)
        case partials.FloatTotal():
            yield count
            yield Datum(partials.PartialColumns(LABEL, partials.FloatTotal(LABEL), 1, 2), args)
        case partials.Partial():
            yield Datum(replace(shape, label=LABEL), args, order)
        case _:
            yield Datum(shape, args, order, sub_windows)


#: how many rows a group has
ROW_COUNT = Datum(partials.CountPartial(LABEL), ())


# ------------------------------------------------------------ synopses


@dataclass(frozen=True)
class Family:
    """What synopses used together have in common, but for their conditions: the input (a stream, or a shared
    state of it), the data per interval, and the grouping."""

    source: Hashable
    datum: Datum
    keys: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """Data over windows of this length, whose bounds are on a grid."""

    family: Family
    length: int
    grid: synopses.SharedGrid
    predicate: predicates.Predicate
    #: whether a row that is counted twice does harm
    is_sensitive: bool


@dataclass(frozen=True)
class Held:
    """A synopsis with its parameters: s (the grid) and b."""

    name: str
    family: Family
    grid: synopses.SharedGrid
    predicate: predicates.Predicate
    b: int = 1
    kind: synopses.SynopsisKind = synopses.SynopsisKind.BASIC

    def is_usable(self, wanted: Wanted) -> bool:
        """Whether windows begin and end where intervals do, and are not of too many of them."""
        return self.grid.has(wanted.grid) and self.intervals(wanted) <= MOST_INTERVALS

    def intervals(self, wanted: Wanted) -> int:
        """The length of the windows, in intervals."""
        return wanted.length // self.grid.width


# ------------------------------------------------------------ questions


#: windows of more intervals than these are cut in two per slide instead, each query for itself
MOST_INTERVALS = 4096


@dataclass(frozen=True)
class Need:
    """One datum over the rows that satisfy a condition. If `is_sensitive`, no row may be counted twice."""

    datum: Datum
    predicate: predicates.Predicate
    is_sensitive: bool


@dataclass(frozen=True)
class QueryNeeds:
    """All that a query needs. `measured` has the needs of each partial, and of each table of cells."""

    name: str
    emit: Emit
    source: Hashable
    keys: tuple[Expression, ...]
    length: int
    slide: int
    origin: int
    existence: Need
    measured: Mapping[str, tuple[Need, ...]]
    #: the needs of averages: counts and totals
    averages: frozenset[Need] = frozenset()
    #: whether it answers every window
    is_exact: bool = True

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """Each need once, that of the groups first."""
        found = [self.existence, *(need for needs in self.measured.values() for need in needs)]
        return tuple(dict.fromkeys(found))

    @property
    def grid(self) -> synopses.SharedGrid:
        """The coarsest grid for its windows."""
        return synopses.SharedGrid.of(self.length, self.slide, self.origin)

    @cached_property
    def wanted(self) -> Mapping[Need, Wanted]:
        """Its needs, as rules look at them."""
        return {
            need: Wanted(
                Family(self.source, need.datum, self.keys),
                self.length,
                self.grid,
                need.predicate,
                need.is_sensitive,
            )
            for need in self.needs
        }


def question_of(name: str, emit: Emit) -> QueryNeeds:
    """What a query over one stream asks; a QueryError says why it shares nothing."""
    query = SlidingQuery.of(emit)
    _check(query)
    normal, measures = normal_form(query), Measures(query.aggregate)
    _check_expressions(query, normal)
    cut, where = query.cut, conjuncts(normal.where)
    assert cut.range is not None
    needed = list(_needs(query, normal, measures, where))
    return QueryNeeds(
        name,
        emit,
        query.scan.stream.name,
        normal.keys,
        cut.range,
        cut.slide,
        cut.origin,
        Need(ROW_COUNT, predicates.predicate_of(conjunction(where)), is_sensitive=False),
        {label: needs for label, needs, _ in needed},
        frozenset(need for _, needs, averages in needed if averages for need in needs),
    )


def answers_of(question: QueryNeeds) -> PaneAnswers:
    """What makes rows of the states that a question asks for."""
    query = SlidingQuery.of(question.emit)
    return PaneAnswers(query, Measures(query.aggregate))


def _needs(
    query: SlidingQuery, normal: Normal, measures: Measures, where: tuple[Expression, ...]
) -> Iterator[tuple[str, tuple[Need, ...], bool]]:
    """(label of a partial or name of a table, its needs, whether an average is among its users)."""
    columns = query.aggregate.input.schema
    order = tuple(normal.of(columns.column(name)) for name in columns.names)
    partial_states = measures.layouts[GROUPS].partials[1:]
    shapes: list[tuple[str, Shape, tuple[Expression, ...], Expression]] = [
        *((each.label, each, *measures.argument_of(each)) for each in partial_states),
        *((table, *measures.cells_in(table)) for table in measures.layouts if table != GROUPS),
    ]
    for label, shape, args, chosen in shapes:
        users = [each.aggregate for each in measures.measures if _label(each) == label]
        if type(shape) not in (*_DURABLE, partials.UserState):
            raise _alone(f"the state of {users[0].name} depends on the windows it is of")
        sensitive = not all(user.duplicate_insensitive for user in users)
        mine = order if any(user.ordered for user in users) else ()
        predicate = predicates.predicate_of(conjunction((*where, *conjuncts(normal.of(chosen)))))
        cut = synopses.SharedGrid.of(query.cut.range or 0, query.cut.slide, query.cut.origin)
        listed = cut if isinstance(shape, value_tables.Listed) else None
        data = parts_of(shape, tuple(map(normal.of, args)), mine, listed)
        averages = isinstance(shape, partials.Partial) and any(user.name == "AVG" for user in users)
        yield label, tuple(Need(datum, predicate, sensitive) for datum in data), averages


def _label(measure: Measure) -> str:
    """The partial, or the table, that the state of an aggregate is in."""
    return measure.partial.label if measure.partial and measure.table == GROUPS else measure.table


def _check(query: SlidingQuery) -> None:
    if not isinstance(query.origin, Scan):
        raise _alone("it reads the answers of a nested query")
    stream, cut = query.scan.stream, query.cut
    if cut.range is None:
        raise _alone("a landmark window keeps one running state, and no intervals")
    if query.attribute != stream.wattr or query.scan.pseudo:
        raise _alone("row numbers and arrival times are given to rows as they come")
    if stream.late is Late.KEEP:
        raise _alone("late rows that are kept count in later windows only")
    if stream.progress.per is not None:
        raise _alone("its groups may become final one by one")
    intervals = cut.range // synopses.SharedGrid.of(cut.range, cut.slide).width
    if intervals > MOST_INTERVALS:
        raise _alone(f"its windows would be cut into {intervals:,} intervals")


def _check_expressions(query: SlidingQuery, normal: Normal) -> None:
    calls = [call for _, call in query.aggregate.aggregates]
    read = [normal.where, *normal.keys, *(normal.of(e) for call in calls for e in (*call.args, call.where))]
    if any(map(can_fail, read)):
        raise _alone("an expression may fail for some row, which must not stop other queries")
    measures = Measures(query.aggregate)
    if not all(each.aggregate.commutative for each in measures.measures):
        raise _alone("an aggregate depends on the order in which states are combined")


def _alone(reason: str) -> QueryError:
    return QueryError(reason, code="not-shared")
