"""What an expression is on columns: the reference's answers (Spark's, in ANSI mode), a whole frame at a time.

An expression is compiled once. A row in which it has no value (overflow, division by zero, a bad cast) is
a `DataError`, but only if that row's value is asked for: NULL arguments, CASE, AND, OR and COALESCE keep
later arguments from being computed, and so they do here, by computing them for fewer rows.

Not every function has a form on columns. `supports` says whether an expression has; what to do otherwise is
the caller's decision.

>>> from windrow.algebra.expressions import Column, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> half = compile_expression(call("/", [Column("n", INT), Literal(2, INT)]))
>>> half(pl.DataFrame({"n": [3, None]}, schema={"n": pl.Int32})).to_list()
[1.5, None]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import Call, Cast, Column, Expression, Literal, WindowBound
from windrow.algebra.functions import lookup
from windrow.errors import QueryError
from windrow.kernels.columns import constant, polars_type
from windrow.kernels.functions import LAZY, STRICT, WHOLE
from windrow.kernels.functions.base import Compiled, Evaluator, Operation, settled, spread
from windrow.kernels.functions.casting import caster, never_fails

if TYPE_CHECKING:
    from collections.abc import Callable

#: Spark computes the divisor first: where that is NULL, the dividend is not computed and cannot fail
_DIVISIONS = frozenset({"/", "%", "div", "try_divide", "try_mod"})
#: arguments after the one that settles the answer are not computed, which only matters if they can fail
_FIRST_FOUND = frozenset({"in"})


def supports(expression: Expression) -> bool:
    """Whether the expression can be computed on columns."""
    return unsupported(expression) is None


def unsupported(expression: Expression) -> Expression | None:
    """The first part of it that cannot, looking at parts before what they are part of.

    >>> from windrow.algebra.functions import call
    >>> from windrow.algebra.types import STRING
    >>> unsupported(call("=", [call("upper", [Column("s", STRING)]), Literal("A", STRING)])).function
    'upper'
    """
    for child in expression.children:
        found = unsupported(child)
        if found is not None:
            return found
    return None if _build(expression) else expression


def compile_expression(expression: Expression) -> Evaluator:
    """The expression as a function of a frame whose columns have the names it reads."""
    part = unsupported(expression)
    if part is not None:
        raise QueryError(
            f"{_named(part)} has no form on columns", code="unsupported", hint="the reference executor has it"
        )
    return _compiled(expression).evaluate


def holds(predicate: Evaluator, frame: pl.DataFrame) -> pl.Series:
    """The rows for which a predicate is true: not false, not NULL."""
    return predicate(frame).cast(pl.Boolean).fill_null(False)


def can_fail(expression: Expression) -> bool:
    """Whether some row may make it an error."""
    return any(_fails_itself(part) for part in expression.walk())


def _fails_itself(part: Expression) -> bool:
    if isinstance(part, Cast):
        return not part.safe and not never_fails(part.arg.type, part.type)
    return isinstance(part, Call) and lookup(part.function).can_fail


def _named(part: Expression) -> str:
    if isinstance(part, Cast):
        return f"a cast from {part.arg.type} to {part.type}"
    if isinstance(part, Call):
        types = ", ".join(str(arg.type) for arg in part.args)
        return f"`{part.function}` of {types}"
    return type(part).__name__


def _compiled(expression: Expression) -> Compiled:
    evaluate = _build(expression)
    assert evaluate is not None
    return Compiled(evaluate, can_fail(expression))


def _build(expression: Expression) -> Evaluator | None:
    match expression:
        case Literal(value, kind):
            return lambda frame: constant(value, kind, frame.height)
        case Column(name):
            return lambda frame: frame[name]
        case WindowBound(which):
            return lambda frame: frame[f"#{which}"]
        case Cast(arg, target, safe):
            operation = caster(arg.type, target)
            return _strict(operation, (_late(arg),), target_of(expression), safe) if operation else None
        case Call():
            return _build_call(expression)
    return None


def _build_call(call: Call) -> Evaluator | None:
    name, args = call.function, tuple(_late(arg) for arg in call.args)
    if name in _FIRST_FOUND and any(arg.can_fail for arg in args[1:]):
        return None
    if name in LAZY:
        return LAZY[name](call, args)
    if name in WHOLE:
        return _whole(WHOLE[name](call), args, lookup(name).null_propagating)
    operation = STRICT[name](call) if name in STRICT else None
    if operation is None:
        return None
    if name in _DIVISIONS:
        return _strict(_swapped(operation), args[::-1], target_of(call))
    return _strict(operation, args, target_of(call))


def _late(expression: Expression) -> Compiled:
    """An argument that is compiled when it is first computed: `_build` alone must not need its parts."""
    known: list[Evaluator] = []

    def evaluate(frame: pl.DataFrame) -> pl.Series:
        if not known:
            known.append(_compiled(expression).evaluate)
        return known[0](frame)

    return Compiled(evaluate, can_fail(expression))


def target_of(expression: Expression) -> pl.DataType:
    """The polars type of an expression's values."""
    return polars_type(expression.type)


def _swapped(operation: Operation) -> Operation:
    return lambda divisor, dividend: operation(dividend, divisor)


def _whole(
    function: Callable[..., pl.Series] | None, args: tuple[Compiled, ...], strict: bool
) -> Evaluator | None:
    if function is None:
        return None
    if strict:
        return lambda frame: function(*_in_turn(args, frame))
    return lambda frame: function(*(arg.evaluate(frame) for arg in args))


def _strict(
    operation: Operation, args: tuple[Compiled, ...], dtype: pl.DataType, safe: bool = False
) -> Evaluator:
    """NULL in, NULL out."""

    def evaluate(frame: pl.DataFrame) -> pl.Series:
        columns = list(_in_turn(args, frame))
        whole = columns[0].is_not_null()
        for column in columns[1:]:
            whole = whole & column.is_not_null()
        if whole.all():
            return settled(*operation(*columns), safe=safe).cast(dtype)
        result = settled(*operation(*(column.filter(whole) for column in columns)), safe=safe)
        return spread(result.cast(dtype), whole)

    return evaluate


def _in_turn(args: tuple[Compiled, ...], frame: pl.DataFrame) -> Iterable[pl.Series]:
    """The arguments' values; of two, the second only where the first is not NULL."""
    first = args[0].evaluate(frame)
    yield first
    if len(args) == 2 and args[1].can_fail:
        yield args[1].within(frame, first.is_not_null())
        return
    for arg in args[1:]:
        yield arg.evaluate(frame)
