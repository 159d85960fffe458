"""Implicit casts: where Spark's ANSI mode would insert one, and where Windrow would rather ask.

Numbers widen, a DATE becomes a TIMESTAMP, a string *literal* next to a time or in its place is read as
a time, NULL becomes whatever is wanted. Spark goes further and reads every string as a number when it
stands next to one; one bad row would then stop a standing query, so Windrow asks for a CAST (or
TRY_CAST) instead.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, NoReturn

from windrow.algebra.expressions import Cast, Expression, Literal
from windrow.algebra.types import DOUBLE, MAX_PRECISION, NULL, STRING, DataType, Kind, common_type
from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_EXACT_IN_DOUBLE = 1 << 53
_READABLE = (Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL)


def cast(expression: Expression, target: DataType) -> Expression:
    """The expression as `target`; a number that is a literal is written as one of that type.

    >>> from windrow.algebra.types import INT
    >>> cast(Literal(3, INT), DOUBLE)
    Literal(value=3.0, data_type=DOUBLE)
    """
    if expression.type == target:
        return expression
    if isinstance(expression, Literal):
        return _converted(expression, target) or Cast(expression, target)
    return Cast(expression, target)


def _converted(literal: Literal, target: DataType) -> Literal | None:
    value = literal.value
    if value is None:
        return Literal(None, target)
    if literal.type.is_integer:
        if target.is_integer and target.bounds[0] <= value <= target.bounds[1]:
            return Literal(value, target)
        if target == DOUBLE and abs(value) <= _EXACT_IN_DOUBLE:
            return Literal(float(value), target)
    if target.kind is Kind.DECIMAL and (literal.type.is_integer or literal.type.kind is Kind.DECIMAL):
        return _exact(Decimal(value), target)
    return None


def _exact(value: Decimal, target: DataType) -> Literal | None:
    """The value with the target's digits, if none is lost."""
    fraction = max(0, -int(value.as_tuple().exponent))
    if fraction > target.scale or value.adjusted() >= target.precision - target.scale:
        return None
    return Literal(
        value.quantize(Decimal(1).scaleb(-target.scale), context=Context(prec=MAX_PRECISION)), target
    )


def is_text_literal(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.type == STRING


def fits(expression: Expression, target: DataType) -> bool:
    """Whether Windrow casts it to `target` without being asked."""
    source = expression.type
    if source in (target, NULL):
        return True
    if source == STRING:
        return target.kind in _READABLE and is_text_literal(expression)
    return common_type(source, target) == target or (target == DOUBLE and source.is_numeric)


def widest(name: str, args: Iterable[Expression]) -> DataType:
    """The type all arguments of a CASE, COALESCE, IN, … become."""
    arguments = tuple(args)
    typed = [each for each in arguments if not is_text_literal(each)]
    result = NULL
    for each in typed or arguments:
        result = _wider(name, arguments, result, each.type)
    if len(typed) < len(arguments) and result.kind not in _READABLE:
        result = _wider(name, arguments, result, STRING)
    return result


def unify(name: str, args: Sequence[Expression]) -> tuple[Expression, ...]:
    """The arguments, all as their widest type."""
    target = widest(name, args)
    return tuple(cast(each, target) for each in args)


def mismatch(name: str, args: Iterable[Expression], wanted: str = "") -> NoReturn:
    """Refuse the arguments, saying what they are and which cast is missing."""
    arguments = tuple(args)
    types = [each.type for each in arguments]
    given = " and ".join(
        [", ".join(map(str, types[:-1])), str(types[-1])] if len(types) > 1 else map(str, types)
    )
    message = f"`{name}` does not work on {given}" + (f"; it wants {wanted}" if wanted else "")
    raise QueryError(message, code="type-mismatch", hint=_way_out(types))


def _wider(name: str, arguments: Iterable[Expression], left: DataType, right: DataType) -> DataType:
    found = common_type(left, right)
    if found is None:
        mismatch(name, arguments, "one common type")
    return found


def _way_out(types: list[DataType]) -> str | None:
    others = [each for each in types if each not in (STRING, NULL)]
    if STRING in types and others:
        return f"text is not converted silently: CAST(… AS {others[0]}), or TRY_CAST for NULL where it fails"
    return None
