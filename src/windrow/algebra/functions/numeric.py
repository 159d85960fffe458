"""Functions of numbers. What has no real value is NaN (`sqrt(-1)`) or, for logarithms, NULL, as in Spark."""

from __future__ import annotations

from functools import partial

from windrow.algebra.expressions import Call, Expression, Literal
from windrow.algebra.functions.arithmetic import bounded
from windrow.algebra.functions.coercion import cast, mismatch
from windrow.algebra.functions.registry import NUMBER, REAL, SHORT, Function, accept, constant, plain, returns
from windrow.algebra.types import BIGINT, DOUBLE, INT, INTERVAL, MAX_PRECISION, DataType, Kind


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

FUNCTIONS = (
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
