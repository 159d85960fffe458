"""What an expression is on columns: the reference's answers (Spark's, in ANSI mode), a whole frame at a time.

An expression is compiled once. A row in which it has no value (overflow, division by zero, a bad cast) is
a `DataError`, but only if that row's value is asked for: NULL arguments, CASE, AND, OR and COALESCE keep
later arguments from being computed, and so they do here, by computing them for fewer rows. The error is that
of the first row that has one.

Every function of the registry has a form on columns: one of its own (`windrow.kernels.columnar.functions`),
or else its meaning on values, applied to the distinct ones.

>>> from windrow.algebra.expressions import ColumnRef, Literal
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> half = compile_expression(call("/", [ColumnRef("n", INT), Literal(2, INT)]))
>>> half(pl.DataFrame({"n": [3, None]}, schema={"n": pl.Int32})).to_list()
[1.5, None]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import and_
from typing import Any

import polars as pl

from windrow.algebra.expressions import Call, Cast, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.functions import lookup
from windrow.algebra.functions.calendar import may_leave_the_calendar
from windrow.algebra.functions.values import STRICT as VALUES
from windrow.algebra.types import DataType, Kind
from windrow.errors import DataError
from windrow.kernels.columnar.columns import arrow_type, constant, polars_type, valued
from windrow.kernels.columnar.functions import LAZY, STRICT, WHOLE, base, casts as casting

#: Spark computes the divisor first: where that is NULL, the dividend is not computed and cannot fail
_DIVISIONS = frozenset({"/", "%", "div", "pmod", "try_divide", "try_mod"})


def compile_expression(expression: Expression) -> base.Evaluator:
    """The expression as a function of a frame whose columns have the names it reads."""
    evaluate = _compiled(expression).evaluate

    def attempt(frame: pl.DataFrame) -> pl.Series:
        try:
            return evaluate(frame)
        except DataError:
            first = _first_that_fails(evaluate, frame)
        return evaluate(first)

    return attempt


def holds(predicate: base.Evaluator, frame: pl.DataFrame) -> pl.Series:
    """The rows for which a predicate is true: not false, not NULL."""
    return predicate(frame).cast(pl.Boolean).fill_null(False)


def can_fail(expression: Expression) -> bool:
    """Whether some row may make it an error."""
    return any(_fails_itself(part) for part in expression.walk())


def target_of(expression: Expression) -> pl.DataType:
    """The polars type of an expression's values."""
    return polars_type(expression.type)


def _first_that_fails(evaluate: base.Evaluator, frame: pl.DataFrame) -> pl.DataFrame:
    """The first row of a frame with an error, found by halves."""
    while frame.height > 1:
        first = frame.head(frame.height // 2)
        try:
            evaluate(first)
            frame = frame.slice(first.height)
        except DataError:
            frame = first
    return frame


def _fails_itself(part: Expression) -> bool:
    if isinstance(part, Cast) and not part.safe and not casting.never_fails(part.arg.type, part.type):
        return True
    if isinstance(part, Call) and lookup(part.function).can_fail and not _divides_by_constant(part):
        return True
    return part.type.kind is Kind.DATE and may_leave_the_calendar(part)


def _divides_by_constant(part: Call) -> bool:
    """Whether it is the rest of a division by a number that is not zero, which every number has."""
    divisor = part.args[-1]
    if part.function != "%" or part.type.kind is Kind.DECIMAL or not isinstance(divisor, Literal):
        return False
    return divisor.value is not None and divisor.value != 0


def _compiled(expression: Expression) -> base.Compiled:
    return base.Compiled(_build(expression), can_fail(expression))


def _build(expression: Expression) -> base.Evaluator:
    match expression:
        case Literal(value, kind):
            return _constant(value, kind)
        case ColumnRef(name):
            return lambda frame: frame[name]
        case WindowBound(which, kind, Decimal() as step):
            return lambda frame: pl.Series(valued(frame[f"#{which}"].to_arrow(), step, arrow_type(kind)))
        case WindowBound(which):
            return lambda frame: frame[f"#{which}"]
        case Cast(arg):
            return _build_cast(expression, _compiled(arg))
        case Call(name, args):
            compiled = tuple(map(_compiled, args))
            if name in LAZY:
                return LAZY[name](expression, compiled)
            if name in WHOLE:
                function = WHOLE[name](expression)
                if lookup(name).null_propagating:
                    return lambda frame: function(*_in_turn(compiled, frame))
                return lambda frame: function(*(arg.evaluate(frame) for arg in compiled))
            return _build_strict(expression, compiled)
    raise AssertionError(f"cannot evaluate {type(expression).__name__}")


def _constant(value: Any, kind: DataType) -> base.Evaluator:
    def evaluate(frame: pl.DataFrame) -> pl.Series:
        if kind.kind is Kind.DATE and frame.height:
            base.check_dates([value])
        return constant(value, kind, frame.height)

    return evaluate


def _build_cast(cast: Cast, arg: base.Compiled) -> base.Evaluator:
    source, target = cast.arg.type, cast.type
    if source.kind is Kind.NULL:
        return lambda frame: base.nulls(polars_type(target), frame.height)
    meaning = casting.meaning(source, target)
    return _Strict(casting.caster(source, target), meaning, (arg,), (source,), target, safe=cast.safe)


def _build_strict(call: Call, args: tuple[base.Compiled, ...]) -> base.Evaluator:
    name, kinds, meaning = call.function, tuple(arg.type for arg in call.args), VALUES[call.function](call)
    if not args:
        return _constant(meaning(), call.type)
    operation = STRICT[name](call) if name in STRICT else None
    if operation is None:
        operation = base.by_value(meaning, kinds, call.type)
    return _Strict(operation, meaning, args, kinds, call.type, last_first=name in _DIVISIONS)


@dataclass(frozen=True)
class _Strict:
    """NULL in, NULL out: the operation sees rows without NULLs, and its failures are told by its meaning."""

    operation: base.Operation
    meaning: Callable[..., Any]
    args: tuple[base.Compiled, ...]
    kinds: tuple[DataType, ...]
    result: DataType
    #: whether failures are NULL
    safe: bool = False
    #: whether the last argument is computed first
    last_first: bool = False

    def __call__(self, frame: pl.DataFrame) -> pl.Series:
        dtype = polars_type(self.result)
        columns = list(_in_turn(self.args[::-1] if self.last_first else self.args, frame))
        columns = columns[::-1] if self.last_first else columns
        complete = reduce(and_, [column.is_not_null() for column in columns])
        if complete.all():
            return self._computed(columns).cast(dtype) if frame.height else base.nulls(dtype, 0)
        if not complete.any():
            return base.nulls(dtype, frame.height)
        known = self._computed([column.filter(complete) for column in columns])
        return base.spread(known.cast(dtype), complete)

    def _computed(self, columns: Sequence[pl.Series]) -> pl.Series:
        outcome = self.operation(*columns)
        if outcome.fails and not self.safe:
            assert outcome.failed is not None
            raise base.explained(self.meaning, self.kinds, columns, outcome.failed)
        return outcome.or_null()


def _in_turn(args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> Iterable[pl.Series]:
    """The arguments' values; of two, the second only where the first is not NULL."""
    first = args[0].evaluate(frame)
    yield first
    if len(args) == 2:
        yield args[1].within(frame, first.is_not_null())
        return
    for arg in args[1:]:
        yield arg.evaluate(frame)
