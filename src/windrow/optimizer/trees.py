"""What rules have in common: expressions moved through nodes, nodes rebuilt, variants enumerated.

Movability: which expressions may be evaluated elsewhere. A rule may make an error disappear, because fewer
rows reach an expression; it must never make one appear. So an expression that can fail on some row
(division by zero, overflow, a CAST of text) stays where it is, also where an expert could prove that it
sees no new rows. `window_start` and `window_end` belong to the report of an extent, not to rows, and never
move either.

>>> from windrow.algebra.expressions import Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> a, two = ColumnRef("a", INT), Literal(2, INT)
>>> is_movable(call(">", [a, two])), is_movable(call(">", [call("/", [two, a]), two]))
(True, False)
>>> is_movable(call("=", [call("%", [a, two]), two]))
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from windrow.algebra import DataType, Kind, as_decimal, expressions, operators as ops
from windrow.algebra.expressions import Call, ColumnRef, Expression, Schema, WindowBound, conjunction
from windrow.algebra.functions import lookup
from windrow.algebra.functions.calendar import may_leave_the_calendar
from windrow.algebra.plan import Emit, Plan, Scan, Subquery, TableScan
from windrow.errors import QueryError
from windrow.windows.lifetime import LifetimeWindow


def renamed(expression: Expression, source: Schema, target: Schema) -> Expression:
    """The expression over the columns of `target` that stand where those of `source` stand."""
    names = zip(source.names, target.names, strict=True)
    return expressions.substituted(expression, {old: target.column(new) for old, new in names})


def filtered(plan: Plan, predicates: Iterable[Expression]) -> Plan:
    """σ, in one node with a σ right below where no new error can come of it.

    AND goes on to its right side where the left is NULL, so a predicate that can fail stays above.
    """
    parts = tuple(predicates)
    if not parts:
        return plan
    if isinstance(plan, ops.Filter) and not any(map(can_fail, parts)):
        known = expressions.conjuncts(plan.predicate)
        return ops.Filter(plan.input, conjunction(known + tuple(part for part in parts if part not in known)))
    return ops.Filter(plan, conjunction(tuple(dict.fromkeys(parts))))


def kept(plan: Plan, names: Iterable[str]) -> Plan:
    """π of some columns by name, in the order given; nothing is done if these are all."""
    wanted = tuple(names)
    if wanted == plan.schema.names:
        return plan
    return ops.Project(plan, tuple((name, plan.schema.column(name)) for name in wanted))


def peeled(plan: Plan) -> Plan:
    """What is below projections that only drop columns, or change their order."""
    while isinstance(plan, ops.Project) and is_renaming(plan):
        if any(value.columns != {name} for name, value in plan.outputs):
            break
        plan = plan.input
    return plan


def is_renaming(project: ops.Project) -> bool:
    """Whether a π only picks, orders and names columns."""
    return all(isinstance(expression, ColumnRef) for _, expression in project.outputs)


def with_expressions(plan: Plan, change: Callable[[Expression], Expression]) -> Plan:
    """The node, its children untouched, with `change` applied to each of its expressions."""

    def of(value: Any) -> Any:
        match value:
            case Expression():
                return change(value)
            case tuple():
                return tuple(map(of, value))
            case ops.AggregateCall() | ops.FramedCall() | LifetimeWindow():
                return inside(value)
        return value

    def inside(whole: Any) -> Any:
        old = {each.name: getattr(whole, each.name) for each in fields(whole)}
        new = {name: of(value) for name, value in old.items()}
        changed = {
            name: value for name, value in new.items() if value is not old[name] and value != old[name]
        }
        return replace(whole, **changed) if changed else whole

    found: Plan = inside(plan)
    return found


def expressions_of(plan: Plan) -> list[Expression]:
    """The expressions of one node."""
    found: list[Expression] = []

    def note(expression: Expression) -> Expression:
        found.append(expression)
        return expression

    with_expressions(plan, note)
    return found


def own_nodes(plan: Plan) -> Iterator[Plan]:
    """The nodes of this query, without those of nested queries."""
    yield plan
    for child in () if isinstance(plan, Subquery) else plan.children:
        yield from own_nodes(child)


def fresh_alias(plan: Plan, wanted: str) -> str:
    """An alias that no scan or nested query of the plan has."""
    taken = {node.alias for node in plan.walk() if isinstance(node, Scan | Subquery | TableScan)}
    names = (wanted if n == 1 else f"{wanted}{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)


def variants(plan: Plan, change: Callable[[Plan], Iterable[Plan]], nested: bool = True) -> Iterator[Plan]:
    """The tree with one node replaced by one of its alternatives, for every node and alternative.

    What the algebra refuses (a table above rows that expire unpredictably) is no variant. Nested queries
    are left out if `nested` says so.
    """
    yield from _allowed(plan, change)
    for place, child in enumerate(plan.children if nested or not isinstance(plan, Subquery) else ()):
        for other in variants(child, change, nested):
            try:
                changed = plan.with_children((*plan.children[:place], other, *plan.children[place + 1 :]))
            except QueryError:
                continue
            yield changed


def _allowed(plan: Plan, change: Callable[[Plan], Iterable[Plan]]) -> list[Plan]:
    try:
        return list(change(plan))
    except QueryError:
        return []


def as_query(plan: Plan) -> Emit:
    """The same node, known to be the root of a query."""
    assert isinstance(plan, Emit), f"a query ends in Emit, not in {type(plan).__name__}"
    return plan


# ------------------------------------------------------------ which expressions may be evaluated elsewhere


_NEVER_OVERFLOW_AS_DOUBLE = frozenset({"+", "-", "*", "neg"})
_DIVISIONS = frozenset({"/", "%", "pmod"})
_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>", "in", "is_null", "is_not_null", "isnan"})
_WIDTHS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)


def is_movable(expression: Expression) -> bool:
    """Whether it may be evaluated on other rows: it never fails, and reads nothing but the row."""
    return not any(_stays(node) for node in expression.walk())


def can_fail(expression: Expression) -> bool:
    """Whether some row makes it an error."""
    return any(_fails(node) for node in expression.walk())


def can_ever_fail(expression: Expression) -> bool:
    """Whether some row makes it an error, a DATE beyond the calendar being one, too.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import DATE, INT
    >>> later = call("date_add", [ColumnRef("day", DATE), ColumnRef("days", INT)])
    >>> can_fail(later), can_ever_fail(later), can_ever_fail(ColumnRef("day", DATE))
    (False, True, False)
    """
    dates = (node for node in expression.walk() if node.type.kind is Kind.DATE)
    return can_fail(expression) or any(map(may_leave_the_calendar, dates))


def _stays(node: Expression) -> bool:
    if isinstance(node, WindowBound):
        return True
    return _fails(node) or (isinstance(node, Call) and not lookup(node.function).deterministic)


def _fails(node: Expression) -> bool:
    if isinstance(node, expressions.Cast):
        return not node.safe and not always_fits(node.arg.type, node.type)
    if not isinstance(node, Call) or not lookup(node.function).can_fail:
        return False
    if node.function in _NEVER_OVERFLOW_AS_DOUBLE and node.type.is_fractional:
        return False
    return not (node.function in _DIVISIONS and _divides_safely(node))


def _divides_safely(node: Call) -> bool:
    """Numbers by a constant that is not zero; decimal results can still have too many digits."""
    divisor = node.args[1]
    plain = node.type.is_integer or node.type.is_fractional
    return plain and isinstance(divisor, expressions.Literal) and divisor.value not in (None, 0)


def always_fits(source: DataType, target: DataType) -> bool:
    """Whether a CAST between these types never fails.

    >>> from windrow.algebra.types import BIGINT, INT, STRING
    >>> always_fits(INT, BIGINT), always_fits(BIGINT, INT), always_fits(STRING, INT)
    (True, False, False)
    """
    if source == target or source.kind is Kind.NULL or target.kind is Kind.STRING:
        return True
    if source.is_time and target.is_time:
        return True
    if source.is_integer and target.is_integer:
        return _WIDTHS.index(source.kind) <= _WIDTHS.index(target.kind)
    if target.kind is Kind.DECIMAL and source.is_integer:
        return target.precision - target.scale >= as_decimal(source).precision
    return target.kind is Kind.DOUBLE and source.is_numeric


def respects_grouping(expression: Expression) -> bool:
    """Whether it cannot tell apart what grouping takes for equal: 0.0 and -0.0.

    DISTINCT, GROUP BY and EXCEPT may keep either of the two, so only an expression that does not look
    closer than a comparison does may cross them.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import DOUBLE, STRING
    >>> x = ColumnRef("x", DOUBLE)
    >>> text = expressions.Cast(x, STRING)
    >>> respects_grouping(call("<", [x, expressions.Literal(1.0, DOUBLE)])), respects_grouping(text)
    (True, False)
    """
    if isinstance(expression, ColumnRef):
        return not _has_two_zeros(expression.type)
    compares = isinstance(expression, Call) and expression.function in _COMPARISONS
    children = expression.children
    return all((compares and isinstance(child, ColumnRef)) or respects_grouping(child) for child in children)


def _has_two_zeros(kind: DataType) -> bool:
    return kind.is_fractional or any(_has_two_zeros(inner) for _, inner in kind.fields)
