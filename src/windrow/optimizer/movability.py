"""Which expressions may be evaluated elsewhere.

A rule may make an error disappear, because fewer rows reach an expression; it must never make one
appear. So an expression that can fail on some row (division by zero, overflow, a CAST of text) stays
where it is, also where an expert could prove that it sees no new rows. `window_start` and `window_end`
belong to the report of an extent, not to rows, and never move either.

>>> from windrow.algebra.expressions import ColumnRef, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> a, two = ColumnRef("a", INT), Literal(2, INT)
>>> is_movable(call(">", [a, two])), is_movable(call(">", [call("/", [two, a]), two]))
(True, False)
>>> is_movable(call("=", [call("%", [a, two]), two]))
True
"""

from __future__ import annotations

from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.functions import lookup
from windrow.algebra.functions.calendar import may_leave_the_calendar
from windrow.algebra.types import DataType, Kind, as_decimal

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
    if isinstance(node, Cast):
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
    return plain and isinstance(divisor, Literal) and divisor.value is not None and divisor.value != 0


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
    >>> respects_grouping(call("<", [x, Literal(1.0, DOUBLE)])), respects_grouping(Cast(x, STRING))
    (True, False)
    """
    if isinstance(expression, ColumnRef):
        return not _has_two_zeros(expression.type)
    compares = isinstance(expression, Call) and expression.function in _COMPARISONS
    children = expression.children
    return all((compares and isinstance(child, ColumnRef)) or respects_grouping(child) for child in children)


def _has_two_zeros(kind: DataType) -> bool:
    return kind.is_fractional or any(_has_two_zeros(inner) for _, inner in kind.fields)
