"""What a query asks of its stream, taken apart: data over windows, by the rows' condition and grouping.

SELECT src, AVG(len), MAX(len) FILTER (WHERE tos = 1) FROM S [RANGE 10 SLIDE 2] WHERE port = 80 GROUP BY src

count of rows    WHERE port = 80               a group is there as long as it has rows
count of len     WHERE port = 80
total of len     WHERE port = 80
greatest of len  WHERE port = 80 AND tos = 1
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from windrow.algebra.catalog import Late
from windrow.algebra.expressions import Expression, conjunction, conjuncts
from windrow.algebra.plan import Emit, Scan
from windrow.errors import QueryError
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.aggregates.value_tables import Cells, Listed
from windrow.kernels.columnar.expressions import can_fail
from windrow.kernels.panes.pane_tables import PaneAnswers
from windrow.kernels.panes.query import Normal, SlidingQuery, normal_form
from windrow.sharing.data import ROW_COUNT, Datum, can_be_shared, parts_of
from windrow.sharing.predicates import Predicate, predicate_of
from windrow.sharing.synopses import Family, SharedGrid, Wanted

if TYPE_CHECKING:
    from windrow.kernels.aggregates.partials import Partial

#: windows of more intervals than these are cut in two per slide instead, each query for itself
MOST_INTERVALS = 4096


@dataclass(frozen=True)
class Need:
    """One datum over the rows that satisfy a condition. If `is_sensitive`, no row may be counted twice."""

    datum: Datum
    predicate: Predicate
    is_sensitive: bool


@dataclass(frozen=True)
class QueryNeeds:
    """All that a query needs. `measured` has the needs of each partial, and of each table of cells."""

    name: str
    emit: Emit
    source: Hashable
    keys: tuple[Expression, ...]
    lengths: tuple[int, ...]
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
    def grid(self) -> SharedGrid:
        """The coarsest grid for its windows."""
        return SharedGrid.of(self.lengths, self.slide, self.origin)

    def wanted(self, need: Need) -> Wanted:
        """A need, as rules look at it."""
        return self._wanted[need]

    @cached_property
    def _wanted(self) -> dict[Need, Wanted]:
        return {
            need: Wanted(
                Family(self.source, need.datum, self.keys),
                self.lengths,
                self.slide,
                self.origin,
                need.predicate,
                need.is_sensitive,
                need.datum.is_subtractable,
                need.datum.adds_up,
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
        (cut.range,),
        cut.slide,
        cut.origin,
        Need(ROW_COUNT, predicate_of(conjunction(where)), is_sensitive=False),
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
    for partial in measures.layouts[GROUPS].partials[1:]:
        users = [each.aggregate for each in measures.measures if each.partial == partial]
        args, chosen = measures.argument_of(partial)
        sensitive = not all(user.duplicate_insensitive for user in users)
        mine = order if any(user.ordered for user in users) else ()
        _check_shape(partial, users[0].name)
        found = parts_of(partial, tuple(map(normal.of, args)), mine)
        predicate = predicate_of(conjunction((*where, *conjuncts(normal.of(chosen)))))
        averages = any(user.name == "AVG" for user in users)
        yield partial.label, tuple(Need(datum, predicate, sensitive) for datum in found), averages
    for table in (name for name in measures.layouts if name != GROUPS):
        users = [each.aggregate for each in measures.measures if each.table == table]
        cells, args, chosen = measures.cells_in(table)
        _check_shape(cells, users[0].name)
        sensitive = not all(user.duplicate_insensitive for user in users)
        mine = order if any(user.ordered for user in users) else ()
        predicate = predicate_of(conjunction((*where, *conjuncts(normal.of(chosen)))))
        cut = SharedGrid.of((query.cut.range or 0,), query.cut.slide, query.cut.origin)
        listed = cut if isinstance(cells, Listed) else None
        datum = Datum(cells, tuple(map(normal.of, args)), mine, listed)
        yield table, (Need(datum, predicate, sensitive),), False


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
    intervals = cut.range // SharedGrid.of((cut.range,), cut.slide).width
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


def _check_shape(shape: Partial | Cells, aggregate: str) -> None:
    if not can_be_shared(shape):
        raise _alone(f"the state of {aggregate} depends on the windows it is of")


def _alone(reason: str) -> QueryError:
    return QueryError(reason, code="not-shared")
