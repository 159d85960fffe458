"""Arithmetic on numbers, times and intervals, with Spark's result types.

A decimal result has the digits an exact result needs; where that is more than 38, digits after the
point give way first, down to six (`spark.sql.decimalOperations.allowPrecisionLoss`, the default).

Functions of numbers. What has no real value is NaN (`sqrt(-1)`) or, for logarithms, NULL, as in Spark.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from windrow.algebra.expressions import Call, Expression, Literal
from windrow.algebra.functions.coercion import cast, is_text_literal, mismatch
from windrow.algebra.functions.registry import (
    INTEGER,
    NUMBER,
    REAL,
    SHORT,
    Function,
    accept,
    constant,
    plain,
    returns,
    same,
)
from windrow.algebra.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    MAX_PRECISION,
    TIMESTAMP,
    DataType,
    Kind,
    as_decimal,
    common_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_LEAST_SCALE = 6
_DAY_FORMS = {"+": "date_add", "-": "date_sub"}
Pair = tuple[Expression, Expression]


def bounded(precision: int, scale: int) -> DataType:
    """The DECIMAL type for a result of that many digits, shortened to what a decimal can hold."""
    if precision > MAX_PRECISION:
        whole = precision - scale
        scale = max(MAX_PRECISION - whole, min(scale, _LEAST_SCALE))
        precision = MAX_PRECISION
    return DataType(Kind.DECIMAL, precision, scale)


def _sum_type(left: DataType, right: DataType) -> DataType:
    scale = max(left.scale, right.scale)
    return bounded(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _product_type(left: DataType, right: DataType) -> DataType:
    return bounded(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient_type(left: DataType, right: DataType) -> DataType:
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return bounded(left.precision - left.scale + right.scale + scale, scale)


def _remainder_type(left: DataType, right: DataType) -> DataType:
    scale = max(left.scale, right.scale)
    return bounded(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def exact_literal(expression: Expression) -> Expression:
    """An integer next to a decimal becomes one: a literal with its own digits, a column with its type's."""
    if not expression.type.is_integer:
        return expression
    if isinstance(expression, Literal) and expression.value is not None:
        return cast(expression, DataType(Kind.DECIMAL, len(str(abs(expression.value))), 0))
    return cast(expression, as_decimal(expression.type))


def numbers(name: str, args: Pair) -> Pair:
    """Both operands as numbers of one type; two decimals may keep their own."""
    left, right = args
    target = common_type(left.type, right.type)
    if target is None or not (target.is_numeric or target.kind is Kind.NULL):
        mismatch(name, args)
    if target.kind is Kind.NULL:
        target = DOUBLE
    if target.kind is Kind.DECIMAL and Kind.NULL not in (left.type.kind, right.type.kind):
        return exact_literal(left), exact_literal(right)
    return cast(left, target), cast(right, target)


def _numeric(decimal_type: Callable[[DataType, DataType], DataType], name: str, args: Pair) -> Expression:
    left, right = numbers(name, args)
    result = left.type
    if result.kind is Kind.DECIMAL:
        result = decimal_type(left.type, right.type)
    return Call(name, (left, right), result)


def _read_time(args: Pair) -> Pair:
    left, right = args
    if is_text_literal(left) and right.type.is_time:
        return cast(left, right.type), right
    if is_text_literal(right) and left.type.is_time:
        return left, cast(right, left.type)
    return left, right


def _day_plus(name: str, day: Expression, days: Expression) -> Expression:
    if name not in _DAY_FORMS:
        mismatch(name, (day, days))
    return Call(_DAY_FORMS[name], (day, cast(days, INT)), DATE)


def _add(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    match left.type.kind, right.type.kind:
        case Kind.INTERVAL, Kind.INTERVAL | Kind.NULL:
            return Call(name, (left, cast(right, INTERVAL)), INTERVAL)
        case ((Kind.DATE | Kind.TIMESTAMP), Kind.INTERVAL):
            return Call(name, (cast(left, TIMESTAMP), right), TIMESTAMP)
        case (Kind.INTERVAL, Kind.DATE | Kind.TIMESTAMP) if name in ("+", "try_add"):
            return _add(name, (right, left))
        case Kind.DATE, (Kind.TINYINT | Kind.SMALLINT | Kind.INT):
            return _day_plus(name, left, right)
        case ((Kind.TINYINT | Kind.SMALLINT | Kind.INT), Kind.DATE) if name == "+":
            return _day_plus(name, right, left)
    return _numeric(_sum_type, name, (left, right))


def _subtract(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = _read_time((args[0], args[1]))
    if left.type.is_time and right.type.is_time:
        target = common_type(left.type, right.type)
        assert target is not None
        return Call(name, (cast(left, target), cast(right, target)), INTERVAL)
    return _add(name, (left, right))


def _multiply(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    if left.type.is_numeric and right.type == INTERVAL:
        left, right = right, left
    if left.type == INTERVAL and right.type.is_numeric:
        return Call(name, (left, right), INTERVAL)
    return _numeric(_product_type, name, (left, right))


def _divide(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    if left.type == INTERVAL and right.type.is_numeric:
        return Call(name, (left, right), INTERVAL)
    left, right = numbers(name, (left, right))
    if left.type.kind is Kind.DECIMAL:
        return Call(name, (left, right), _quotient_type(left.type, right.type))
    return Call(name, (cast(left, DOUBLE), cast(right, DOUBLE)), DOUBLE)


def _whole_quotient(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    if left.type == INTERVAL and right.type == INTERVAL:
        return Call(name, args, BIGINT)
    if left.type.kind is Kind.NULL and right.type.kind is Kind.NULL:
        left = cast(left, BIGINT)
    left, right = numbers(name, (left, right))
    if left.type.is_fractional:
        mismatch(name, args, "integers, decimals or intervals")
    if left.type.kind is not Kind.DECIMAL:
        left, right = cast(left, BIGINT), cast(right, BIGINT)
    return Call(name, (left, right), BIGINT)


def _remainder(name: str, args: tuple[Expression, ...]) -> Expression:
    return _numeric(_remainder_type, name, (args[0], args[1]))


def _negate(name: str, args: tuple[Expression, ...]) -> Expression:
    (arg,) = args
    if not (arg.type.is_numeric or arg.type.kind in (Kind.INTERVAL, Kind.NULL)):
        mismatch(name, args, "a number or an interval")
    arg = cast(arg, DOUBLE) if arg.type.kind is Kind.NULL else arg
    return Call(name, (arg,), arg.type)


_binary = partial(Function, arity=(2, 2), can_fail=True)

FUNCTIONS = (
    _binary(
        name="+",
        rule=_add,
        sql="{0} + {1}",
        precedence=70,
        try_form="try_add",
        description="the sum; a time moved later",
        example="1 + 2 -> 3",
    ),
    _binary(
        name="-",
        rule=_subtract,
        sql="{0} - {1}",
        precedence=70,
        try_form="try_subtract",
        description="the difference; of two times, an interval",
        example="3 - 5 -> -2",
    ),
    _binary(
        name="*",
        rule=_multiply,
        sql="{0} * {1}",
        precedence=80,
        try_form="try_multiply",
        description="the product",
        example="1.5 * 3 -> 4.5",
    ),
    _binary(
        name="/",
        rule=_divide,
        sql="{0} / {1}",
        precedence=80,
        try_form="try_divide",
        description="the quotient, a DOUBLE for integers",
        example="3 / 2 -> 1.5",
    ),
    _binary(
        name="%",
        rule=_remainder,
        sql="{0} % {1}",
        precedence=80,
        aliases=("mod",),
        try_form="try_mod",
        description="the remainder, signed as the dividend",
        example="-7 % 3 -> -1",
    ),
    _binary(
        name="div",
        rule=_whole_quotient,
        sql="{0} div {1}",
        precedence=80,
        description="the quotient without its fraction",
        example="-7 div 2 -> -3",
    ),
    _binary(
        name="pmod",
        rule=_remainder,
        description="the remainder, not negative for a positive divisor",
        example="pmod(-7, 3) -> 2",
    ),
    Function("neg", (1, 1), _negate, "the opposite", "-(5) -> -5", sql="-{0}", precedence=90, can_fail=True),
    Function(
        "try_add", (2, 2), _add, "the sum, or NULL where it overflows", "try_add(2147483647, 1) -> NULL"
    ),
    Function(
        "try_subtract", (2, 2), _subtract, "the difference, or NULL", "try_subtract(-2147483648, 1) -> NULL"
    ),
    Function(
        "try_multiply", (2, 2), _multiply, "the product, or NULL", "try_multiply(2147483647, 2) -> NULL"
    ),
    Function("try_divide", (2, 2), _divide, "the quotient, or NULL", "try_divide(1, 0) -> NULL"),
    Function("try_mod", (2, 2), _remainder, "the remainder, or NULL", "try_mod(1, 0) -> NULL"),
)


# ------------------------------------------------------------ bits
#
# Bits of integers. Shifts take their distance modulo the width and never overflow, as in Java.


def _bitwise(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = accept(name, args, (INTEGER,))
    target = common_type(left.type, right.type)
    assert target is not None
    return Call(name, (cast(left, target), cast(right, target)), target)


def _shift(name: str, args: tuple[Expression, ...]) -> Expression:
    value, distance = accept(name, args, (INTEGER, SHORT))
    target = BIGINT if value.type == BIGINT else INT
    return Call(name, (cast(value, target), distance), target)


BITS = (
    Function("&", (2, 2), _bitwise, "bits set in both", "12 & 10 -> 8", sql="{0} & {1}", precedence=66),
    Function(
        "^", (2, 2), _bitwise, "bits set in one of both", "12 ^ 10 -> 6", sql="{0} ^ {1}", precedence=64
    ),
    Function(
        "|", (2, 2), _bitwise, "bits set in one or both", "12 | 10 -> 14", sql="{0} | {1}", precedence=62
    ),
    Function("~", (1, 1), returns(same, INTEGER), "all bits turned", "~5 -> -6", sql="~{0}", precedence=90),
    Function("shiftleft", (2, 2), _shift, "bits moved up", "shiftleft(3, 2) -> 12", aliases=("<<",)),
    Function(
        "shiftright",
        (2, 2),
        _shift,
        "bits moved down, keeping the sign",
        "shiftright(-8, 1) -> -4",
        aliases=(">>",),
    ),
    Function("bit_count", (1, 1), returns(INT, INTEGER), "how many bits are set", "bit_count(7) -> 3"),
)


def _abs(name: str, args: tuple[Expression, ...]) -> Expression:
    if args[0].type == INTERVAL:
        return Call(name, args, INTERVAL)
    (arg,) = accept(name, args, (NUMBER,))
    return Call(name, (arg,), arg.type)


def _whole(name: str, args: tuple[Expression, ...]) -> Expression:
    """CEIL and FLOOR: a decimal stays one, everything else becomes a BIGINT."""
    (arg,) = accept(name, args, (NUMBER,))
    if arg.type.kind is Kind.DECIMAL:
        return Call(name, (arg,), bounded(arg.type.precision - arg.type.scale + 1, 0))
    return Call(name, (cast(arg, BIGINT if arg.type.is_integer else DOUBLE),), BIGINT)


def _round(name: str, args: tuple[Expression, ...]) -> Expression:
    (value,) = accept(name, args[:1], (NUMBER,))
    digits = accept(name, args[1:], (SHORT,))[0] if len(args) > 1 else Literal(0, INT)
    scale = constant(name, digits, "the number of digits")
    if scale is None:
        mismatch(name, args, "a number of digits that is not NULL")
    kind = _rounded_type(value.type, scale) if value.type.kind is Kind.DECIMAL else value.type
    return Call(name, (value, digits), kind)


def _rounded_type(kind: DataType, scale: int) -> DataType:
    whole = kind.precision - kind.scale + 1
    if scale < 0:
        return DataType(Kind.DECIMAL, min(max(whole, -scale + 1), MAX_PRECISION), 0)
    kept = min(kind.scale, scale)
    return DataType(Kind.DECIMAL, min(whole + kept, MAX_PRECISION), kept)


_real = partial(plain, result=DOUBLE, params=(REAL,))
_pair = partial(plain, result=DOUBLE, params=(REAL, REAL))

NUMERIC = (
    Function("abs", (1, 1), _abs, "the size without the sign", "abs(-5) -> 5", can_fail=True),
    _real("sign", description="-1, 0 or 1 as a DOUBLE", example="sign(-5) -> -1.0", aliases=("signum",)),
    Function(
        "ceil",
        (1, 1),
        _whole,
        "the least integer that is not less",
        "ceil(-1.5) -> -1",
        aliases=("ceiling",),
        can_fail=True,
    ),
    Function(
        "floor",
        (1, 1),
        _whole,
        "the greatest integer that is not greater",
        "floor(-1.5) -> -2",
        can_fail=True,
    ),
    Function(
        "round",
        (1, 2),
        _round,
        "rounded to digits after the point, ties away from zero",
        "round(2.5) -> 3",
        can_fail=True,
    ),
    Function(
        "bround",
        (1, 2),
        _round,
        "rounded to digits after the point, ties to even",
        "bround(2.5) -> 2",
        can_fail=True,
    ),
    _real("sqrt", description="the square root", example="sqrt(2.25) -> 1.5"),
    _real("cbrt", description="the cube root", example="cbrt(8) -> 2.0"),
    _real("exp", description="e to that power", example="exp(0) -> 1.0"),
    _real("expm1", description="exp(x) - 1, exact near 0", example="expm1(0) -> 0.0"),
    _real("ln", description="the natural logarithm; NULL unless positive", example="ln(1) -> 0.0"),
    Function(
        "log",
        (1, 2),
        returns(DOUBLE, REAL, REAL),
        "the logarithm: `log(x)` natural, `log(b, x)` to base b; NULL unless positive",
        "log(2, 8) -> 3.0",
    ),
    _real("log10", description="the decimal logarithm; NULL unless positive", example="log10(100) -> 2.0"),
    _real("log2", description="the binary logarithm; NULL unless positive", example="log2(8) -> 3.0"),
    _real("log1p", description="ln(1 + x), exact near 0; NULL unless x > -1", example="log1p(0) -> 0.0"),
    _pair(
        "power",
        description="the first to the power of the second",
        example="power(2, 3) -> 8.0",
        aliases=("pow",),
    ),
    _pair("hypot", description="the length of the hypotenuse", example="hypot(3, 4) -> 5.0"),
    _real("sin", description="the sine", example="sin(0) -> 0.0"),
    _real("cos", description="the cosine", example="cos(0) -> 1.0"),
    _real("tan", description="the tangent", example="tan(0) -> 0.0"),
    _real("asin", description="the inverse of the sine", example="asin(0) -> 0.0"),
    _real("acos", description="the inverse of the cosine", example="acos(1) -> 0.0"),
    _real("atan", description="the inverse of the tangent", example="atan(0) -> 0.0"),
    _pair("atan2", description="the angle of the point (second, first)", example="atan2(0, 1) -> 0.0"),
    _real("sinh", description="the hyperbolic sine", example="sinh(0) -> 0.0"),
    _real("cosh", description="the hyperbolic cosine", example="cosh(0) -> 1.0"),
    _real("tanh", description="the hyperbolic tangent", example="tanh(0) -> 0.0"),
    _real("degrees", description="radians as degrees", example="degrees(0) -> 0.0"),
    _real("radians", description="degrees as radians", example="radians(0) -> 0.0"),
    Function("pi", (0, 0), returns(DOUBLE), "π", "round(pi(), 4) -> 3.1416"),
    Function("e", (0, 0), returns(DOUBLE), "Euler's number", "round(e(), 4) -> 2.7183"),
)
