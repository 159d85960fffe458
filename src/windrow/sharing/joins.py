"""What an aggregate over a join of two windows asks: the same, with a length for each window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Column, Expression, conjunction, conjuncts
from windrow.algebra.operators import Aggregate, Filter, Join, Project
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.errors import QueryError
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.columnar.expressions import can_fail
from windrow.sharing.data import ROW_COUNT, Datum, can_be_shared, parts_of
from windrow.sharing.predicates.terms import predicate_of
from windrow.sharing.questions import Need, Question
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    Names = Mapping[str, Expression]


def join_question_of(name: str, emit: Emit) -> Question:
    """What a query over a join of two streams asks; a QueryError says why it shares nothing."""
    if emit.meaning is not StreamWord.RSTREAM or emit.is_internal:
        raise _alone("it does not answer per window of time")
    aggregate = _above(emit.input)
    conditions, names, join = _down(aggregate.input, ())
    if not isinstance(join, Join) or len(join.inputs) != 2:
        raise _alone("only joins of two windows are shared")
    sides = [_side(part, place) for place, part in enumerate(join.inputs)]
    columns = {**sides[0][1], **sides[1][1]}
    read = tuple(_put(each, columns) for each in (*conditions, join.predicate))
    found = tuple(part for each in (*read, *sides[0][0], *sides[1][0]) for part in conjuncts(each))
    if any(map(can_fail, found)):
        raise _alone("an expression may fail for some row, which must not stop other queries")
    matching = frozenset(part for part in found if len(_sides(part)) == 2)
    where = tuple(part for part in found if part not in matching)
    names = {column: _put(expression, columns) for column, expression in names.items()} or columns
    windows = [side[2] for side in sides]
    _check_windows(windows)
    source = (*(leaf.streams[0].name for leaf in emit.leaves), matching)
    lengths = tuple(window.range for window in windows)
    slide = windows[0].slide
    assert slide is not None
    measured = dict(_needs(aggregate, names, where))
    keys = tuple(_put(key, names) for _, key in aggregate.keys)
    existence = Need(ROW_COUNT, predicate_of(conjunction(where)), is_sensitive=False)
    return Question(name, emit, source, keys, lengths, slide, windows[0].origin, existence, measured)


def _needs(
    aggregate: Aggregate, names: Names, where: tuple[Expression, ...]
) -> Iterator[tuple[str, tuple[Need, ...]]]:
    measures = Measures(aggregate)
    for each in measures.measures:
        if each.aggregate.ordered or not each.aggregate.commutative:
            raise _alone("an aggregate depends on the order of rows")
        sensitive = not each.aggregate.duplicate_insensitive
        if not can_be_shared(each.partial or measures.cells_in(each.table)[0]):
            raise _alone(f"the state of {each.aggregate.name} depends on the windows it is of")
        if each.partial is not None:
            args, chosen = measures.argument_of(each.partial)
            data = list(parts_of(each.partial, tuple(_put(arg, names) for arg in args)))
        else:
            cells, args, chosen = measures.cells_in(each.table)
            data = [Datum(cells, tuple(_put(arg, names) for arg in args))]
        predicate = predicate_of(conjunction((*where, *conjuncts(_put(chosen, names)))))
        label = each.partial.label if each.partial is not None and each.table == GROUPS else each.table
        yield label, tuple(Need(datum, predicate, sensitive) for datum in data)


def _above(plan: Plan) -> Aggregate:
    while isinstance(plan, Filter | Project):
        plan = plan.input
    if not isinstance(plan, Aggregate):
        raise _alone("it has no aggregate, whose states could be shared")
    return plan


def _down(plan: Plan, conditions: tuple[Expression, ...]) -> tuple[tuple[Expression, ...], Names, Plan]:
    """The conditions of stateless operators, what their columns are below them, and the plan below."""
    names: dict[str, Expression] = {}
    while isinstance(plan, Filter | Project):
        if isinstance(plan, Filter):
            conditions = (*conditions, plan.predicate)
        else:
            below = dict(plan.outputs)
            conditions = tuple(_put(each, below) for each in conditions)
            names = {name: _put(each, below) for name, each in names.items()} if names else below
        plan = plan.input
    return conditions, names, plan


def _side(plan: Plan, place: int) -> tuple[tuple[Expression, ...], Names, RangeWindow]:
    """One input of the join: its conditions and columns over the stream, and its window."""
    above, outer, window = _down(plan, ())
    if not isinstance(window, Window) or not isinstance(window.spec, RangeWindow):
        raise _alone("only joins of windows [RANGE … SLIDE …] are shared")
    below, inner, scan = _down(window.input, ())
    if not isinstance(scan, Scan) or scan.pseudo or window.spec.wattr not in (None, scan.stream.wattr):
        raise _alone("only windows over streams, by their own time, are shared")
    own: dict[str, Expression] = {
        f"{scan.alias}.{field.name}": Column(f"{place}.{field.name}", field.type)
        for field in scan.stream.schema
    }
    at_window = {name: _put(each, own) for name, each in inner.items()} if inner else own
    names = {name: _put(each, at_window) for name, each in outer.items()} if outer else at_window
    conditions = (*(_put(each, own) for each in below), *(_put(each, at_window) for each in above))
    return conditions, names, window.spec


def _check_windows(windows: list[RangeWindow]) -> None:
    one, other = windows
    if one.slide is None or one.slide != other.slide or (one.origin - other.origin) % one.slide:
        raise _alone("its windows do not slide together")


def _sides(part: Expression) -> set[str]:
    return {name.partition(".")[0] for name in part.columns}


def _put(expression: Expression, names: Names) -> Expression:
    def change(node: Expression) -> Expression:
        return names.get(node.name, node) if isinstance(node, Column) else node

    return expression.rewrite(change)


def _alone(reason: str) -> QueryError:
    return QueryError(reason, code="not-shared")
