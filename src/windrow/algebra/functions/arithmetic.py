"""Arithmetic on numbers, times and intervals, with Spark's result types.

A decimal result has the digits an exact result needs; where that is more than 38, digits after the
point give way first, down to six (`spark.sql.decimalOperations.allowPrecisionLoss`, the default).

Functions of numbers. What has no real value is NaN (`sqrt(-1)`) or, for logarithms, NULL, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra import types as dt
from windrow.algebra.expressions import Call, Expression, Literal, cast, is_text_literal, mismatch
from windrow.algebra.functions import registry as fn

_LEAST_SCALE = 6
_DAY_FORMS = {"+": "date_add", "-": "date_sub"}
Pair = tuple[Expression, Expression]


def bounded(precision: int, scale: int) -> dt.DataType:
    """The DECIMAL type for a result of that many digits, shortened to what a decimal can hold."""
    if precision > dt.MAX_PRECISION:
        whole = precision - scale
        scale = max(dt.MAX_PRECISION - whole, min(scale, _LEAST_SCALE))
        precision = dt.MAX_PRECISION
    return dt.DataType(dt.Kind.DECIMAL, precision, scale)


def _sum_type(left: dt.DataType, right: dt.DataType) -> dt.DataType:
    scale = max(left.scale, right.scale)
    return bounded(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _product_type(left: dt.DataType, right: dt.DataType) -> dt.DataType:
    return bounded(left.precision + right.precision + 1, left.scale + right.scale)


def _quotient_type(left: dt.DataType, right: dt.DataType) -> dt.DataType:
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    return bounded(left.precision - left.scale + right.scale + scale, scale)


def _remainder_type(left: dt.DataType, right: dt.DataType) -> dt.DataType:
    scale = max(left.scale, right.scale)
    return bounded(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def exact_literal(expression: Expression) -> Expression:
    """An integer next to a decimal becomes one: a literal with its own digits, a column with its type's."""
    if not expression.type.is_integer:
        return expression
    if isinstance(expression, Literal) and expression.value is not None:
        return cast(expression, dt.DataType(dt.Kind.DECIMAL, len(str(abs(expression.value))), 0))
    return cast(expression, dt.as_decimal(expression.type))


def numbers(name: str, args: Pair) -> Pair:
    """Both operands as numbers of one type; two decimals may keep their own."""
    left, right = args
    target = dt.common_type(left.type, right.type)
    if target is None or not (target.is_numeric or target.kind is dt.Kind.NULL):
        mismatch(name, args)
    if target.kind is dt.Kind.NULL:
        target = dt.DOUBLE
    if target.kind is dt.Kind.DECIMAL and dt.Kind.NULL not in (left.type.kind, right.type.kind):
        return exact_literal(left), exact_literal(right)
    return cast(left, target), cast(right, target)


def _numeric(
    decimal_type: Callable[[dt.DataType, dt.DataType], dt.DataType], name: str, args: Pair
) -> Expression:
    left, right = numbers(name, args)
    result = left.type
    if result.kind is dt.Kind.DECIMAL:
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
    return Call(_DAY_FORMS[name], (day, cast(days, dt.INT)), dt.DATE)


def _add(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    match left.type.kind, right.type.kind:
        case dt.Kind.INTERVAL, dt.Kind.INTERVAL | dt.Kind.NULL:
            return Call(name, (left, cast(right, dt.INTERVAL)), dt.INTERVAL)
        case ((dt.Kind.DATE | dt.Kind.TIMESTAMP), dt.Kind.INTERVAL):
            return Call(name, (cast(left, dt.TIMESTAMP), right), dt.TIMESTAMP)
        case (dt.Kind.INTERVAL, dt.Kind.DATE | dt.Kind.TIMESTAMP) if name in ("+", "try_add"):
            return _add(name, (right, left))
        case dt.Kind.DATE, (dt.Kind.TINYINT | dt.Kind.SMALLINT | dt.Kind.INT):
            return _day_plus(name, left, right)
        case ((dt.Kind.TINYINT | dt.Kind.SMALLINT | dt.Kind.INT), dt.Kind.DATE) if name == "+":
            return _day_plus(name, right, left)
    return _numeric(_sum_type, name, (left, right))


def _subtract(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = _read_time((args[0], args[1]))
    if left.type.is_time and right.type.is_time:
        target = dt.common_type(left.type, right.type)
        assert target is not None
        return Call(name, (cast(left, target), cast(right, target)), dt.INTERVAL)
    return _add(name, (left, right))


def _multiply(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    if left.type.is_numeric and right.type == dt.INTERVAL:
        left, right = right, left
    if left.type == dt.INTERVAL and right.type.is_numeric:
        return Call(name, (left, right), dt.INTERVAL)
    return _numeric(_product_type, name, (left, right))


def _divide(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    if left.type == dt.INTERVAL and right.type.is_numeric:
        return Call(name, (left, right), dt.INTERVAL)
    left, right = numbers(name, (left, right))
    if left.type.kind is dt.Kind.DECIMAL:
        return Call(name, (left, right), _quotient_type(left.type, right.type))
    return Call(name, (cast(left, dt.DOUBLE), cast(right, dt.DOUBLE)), dt.DOUBLE)


def _whole_quotient(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = args[0], args[1]
    if left.type == dt.INTERVAL and right.type == dt.INTERVAL:
        return Call(name, args, dt.BIGINT)
    if left.type.kind is dt.Kind.NULL and right.type.kind is dt.Kind.NULL:
        left = cast(left, dt.BIGINT)
    left, right = numbers(name, (left, right))
    if left.type.is_fractional:
        mismatch(name, args, "integers, decimals or intervals")
    if left.type.kind is not dt.Kind.DECIMAL:
        left, right = cast(left, dt.BIGINT), cast(right, dt.BIGINT)
    return Call(name, (left, right), dt.BIGINT)


def _remainder(name: str, args: tuple[Expression, ...]) -> Expression:
    return _numeric(_remainder_type, name, (args[0], args[1]))


def _negate(name: str, args: tuple[Expression, ...]) -> Expression:
    (arg,) = args
    if not (arg.type.is_numeric or arg.type.kind in (dt.Kind.INTERVAL, dt.Kind.NULL)):
        mismatch(name, args, "a number or an interval")
    arg = cast(arg, dt.DOUBLE) if arg.type.kind is dt.Kind.NULL else arg
    return Call(name, (arg,), arg.type)


FUNCTIONS = fn.family(
    r"""
+ (x, y); fails; try try_add; binds 70; sql {0} + {1}
    the sum; a time moved later | 1 + 2 -> 3
- (x, y); fails; try try_subtract; binds 70; sql {0} - {1}
    the difference; of two times, an interval | 3 - 5 -> -2
* (x, y); fails; try try_multiply; binds 80; sql {0} * {1}
    the product | 1.5 * 3 -> 4.5
/ (x, y); fails; try try_divide; binds 80; sql {0} / {1}
    the quotient, a DOUBLE for integers | 3 / 2 -> 1.5
%, mod (x, y); fails; try try_mod; binds 80; sql {0} % {1}
    the remainder, signed as the dividend | -7 % 3 -> -1
div (x, y); fails; binds 80; sql {0} div {1}
    the quotient without its fraction | -7 div 2 -> -3
pmod (x, y); fails
    the remainder, not negative for a positive divisor | pmod(-7, 3) -> 2
neg (x); fails; binds 90; sql -{0}
    the opposite | -(5) -> -5
try_add (x, y)
    the sum, or NULL where it overflows | try_add(2147483647, 1) -> NULL
try_subtract (x, y)
    the difference, or NULL | try_subtract(-2147483648, 1) -> NULL
try_multiply (x, y)
    the product, or NULL | try_multiply(2147483647, 2) -> NULL
try_divide (x, y)
    the quotient, or NULL | try_divide(1, 0) -> NULL
try_mod (x, y)
    the remainder, or NULL | try_mod(1, 0) -> NULL
""",
    {
        **dict.fromkeys(("+", "try_add"), _add),
        **dict.fromkeys(("-", "try_subtract"), _subtract),
        **dict.fromkeys(("*", "try_multiply"), _multiply),
        **dict.fromkeys(("/", "try_divide"), _divide),
        **dict.fromkeys(("%", "pmod", "try_mod"), _remainder),
        "div": _whole_quotient,
        "neg": _negate,
    },
)


# ------------------------------------------------------------ bits
#
# Bits of integers. Shifts take their distance modulo the width and never overflow, as in Java.


def _bitwise(name: str, args: tuple[Expression, ...]) -> Expression:
    left, right = fn.accept(name, args, (fn.INTEGER,))
    target = dt.common_type(left.type, right.type)
    assert target is not None
    return Call(name, (cast(left, target), cast(right, target)), target)


def _shift(name: str, args: tuple[Expression, ...]) -> Expression:
    value, distance = fn.accept(name, args, (fn.INTEGER, fn.SHORT))
    target = dt.BIGINT if value.type == dt.BIGINT else dt.INT
    return Call(name, (cast(value, target), distance), target)


BITS = fn.family(
    r"""
& (x, y); binds 66; sql {0} & {1}
    bits set in both | 12 & 10 -> 8
^ (x, y); binds 64; sql {0} ^ {1}
    bits set in one of both | 12 ^ 10 -> 6
| (x, y); binds 62; sql {0} | {1}
    bits set in one or both | 12 | 10 -> 14
~ (integer) same; binds 90; sql ~{0}
    all bits turned | ~5 -> -6
shiftleft, << (x, y)
    bits moved up | shiftleft(3, 2) -> 12
shiftright, >> (x, y)
    bits moved down, keeping the sign | shiftright(-8, 1) -> -4
bit_count (integer) INT
    how many bits are set | bit_count(7) -> 3
""",
    {**dict.fromkeys("&^|", _bitwise), **dict.fromkeys(("shiftleft", "shiftright"), _shift)},
)


def _abs(name: str, args: tuple[Expression, ...]) -> Expression:
    if args[0].type == dt.INTERVAL:
        return Call(name, args, dt.INTERVAL)
    (arg,) = fn.accept(name, args, (fn.NUMBER,))
    return Call(name, (arg,), arg.type)


def _whole(name: str, args: tuple[Expression, ...]) -> Expression:
    """CEIL and FLOOR: a decimal stays one, everything else becomes a BIGINT."""
    (arg,) = fn.accept(name, args, (fn.NUMBER,))
    if arg.type.kind is dt.Kind.DECIMAL:
        return Call(name, (arg,), bounded(arg.type.precision - arg.type.scale + 1, 0))
    return Call(name, (cast(arg, dt.BIGINT if arg.type.is_integer else dt.DOUBLE),), dt.BIGINT)


def _round(name: str, args: tuple[Expression, ...]) -> Expression:
    (value,) = fn.accept(name, args[:1], (fn.NUMBER,))
    digits = fn.accept(name, args[1:], (fn.SHORT,))[0] if len(args) > 1 else Literal(0, dt.INT)
    scale = fn.constant(name, digits, "the number of digits")
    if scale is None:
        mismatch(name, args, "a number of digits that is not NULL")
    kind = _rounded_type(value.type, scale) if value.type.kind is dt.Kind.DECIMAL else value.type
    return Call(name, (value, digits), kind)


def _rounded_type(kind: dt.DataType, scale: int) -> dt.DataType:
    whole = kind.precision - kind.scale + 1
    if scale < 0:
        return dt.DataType(dt.Kind.DECIMAL, min(max(whole, -scale + 1), dt.MAX_PRECISION), 0)
    kept = min(kind.scale, scale)
    return dt.DataType(dt.Kind.DECIMAL, min(whole + kept, dt.MAX_PRECISION), kept)


NUMERIC = fn.family(
    r"""
abs (x); fails
    the size without the sign | abs(-5) -> 5
sign, signum (real) DOUBLE
    -1, 0 or 1 as a DOUBLE | sign(-5) -> -1.0
ceil, ceiling (x); fails
    the least integer that is not less | ceil(-1.5) -> -1
floor (x); fails
    the greatest integer that is not greater | floor(-1.5) -> -2
round (x, [y]); fails
    rounded to digits after the point, ties away from zero | round(2.5) -> 3
bround (x, [y]); fails
    rounded to digits after the point, ties to even | bround(2.5) -> 2
sqrt (real) DOUBLE
    the square root | sqrt(2.25) -> 1.5
cbrt (real) DOUBLE
    the cube root | cbrt(8) -> 2.0
exp (real) DOUBLE
    e to that power | exp(0) -> 1.0
expm1 (real) DOUBLE
    exp(x) - 1, exact near 0 | expm1(0) -> 0.0
ln (real) DOUBLE
    the natural logarithm; NULL unless positive | ln(1) -> 0.0
log (real, [real]) DOUBLE
    the logarithm: `log(x)` natural, `log(b, x)` to base b; NULL unless positive | log(2, 8) -> 3.0
log10 (real) DOUBLE
    the decimal logarithm; NULL unless positive | log10(100) -> 2.0
log2 (real) DOUBLE
    the binary logarithm; NULL unless positive | log2(8) -> 3.0
log1p (real) DOUBLE
    ln(1 + x), exact near 0; NULL unless x > -1 | log1p(0) -> 0.0
power, pow (real, real) DOUBLE
    the first to the power of the second | power(2, 3) -> 8.0
hypot (real, real) DOUBLE
    the length of the hypotenuse | hypot(3, 4) -> 5.0
sin (real) DOUBLE
    the sine | sin(0) -> 0.0
cos (real) DOUBLE
    the cosine | cos(0) -> 1.0
tan (real) DOUBLE
    the tangent | tan(0) -> 0.0
asin (real) DOUBLE
    the inverse of the sine | asin(0) -> 0.0
acos (real) DOUBLE
    the inverse of the cosine | acos(1) -> 0.0
atan (real) DOUBLE
    the inverse of the tangent | atan(0) -> 0.0
atan2 (real, real) DOUBLE
    the angle of the point (second, first) | atan2(0, 1) -> 0.0
sinh (real) DOUBLE
    the hyperbolic sine | sinh(0) -> 0.0
cosh (real) DOUBLE
    the hyperbolic cosine | cosh(0) -> 1.0
tanh (real) DOUBLE
    the hyperbolic tangent | tanh(0) -> 0.0
degrees (real) DOUBLE
    radians as degrees | degrees(0) -> 0.0
radians (real) DOUBLE
    degrees as radians | radians(0) -> 0.0
pi () DOUBLE
    π | round(pi(), 4) -> 3.1416
e () DOUBLE
    Euler's number | round(e(), 4) -> 2.7183
""",
    {"abs": _abs, "ceil": _whole, "floor": _whole, "round": _round, "bround": _round},
)
