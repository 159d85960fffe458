"""Values as Spark writes them as text: Java's doubles, plain decimals, times without needless zeros."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from windrow.algebra.functions.calendar import date_text, interval_text, timestamp_text
from windrow.algebra.functions.values.numbers import single
from windrow.algebra.types import Kind

if TYPE_CHECKING:
    from collections.abc import Callable


def double_text(value: float) -> str:
    """A double as Java's `Double.toString`.

    >>> double_text(1e10), double_text(0.001), double_text(5e-324)
    ('1.0E10', '0.001', '4.9E-324')
    """
    return _java(value, shortest(value))


def float_text(value: float) -> str:
    """A 32-bit float as Java's `Float.toString`: the fewest digits that give it back."""
    return _java(value, shortest_single(value))


def shortest(value: float) -> str:
    """The fewest digits that give the double back, in scientific form."""
    text = f"{value:.1e}"
    if not math.isfinite(value) or float(text) == value:
        return text
    digits, _, exponent = repr(value).partition("e")
    return f"{digits}e{exponent}" if exponent else f"{value:.{_significant(digits) - 1}e}"


def shortest_single(value: float) -> str:
    """The same for 32-bit floats."""
    return next(
        (text for p in range(1, 9) if single(float(text := f"{value:.{p}e}")) == value), f"{value:.9e}"
    )


def _significant(digits: str) -> int:
    return len(digits.lstrip("-").replace(".", "").strip("0")) or 1


def _java(value: float, scientific: str) -> str:
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    mantissa, _, power = scientific.partition("e")
    exponent = int(power)
    sign, digits = mantissa[: mantissa.startswith("-")], mantissa.lstrip("-").replace(".", "").rstrip("0")
    if not -3 <= exponent < 7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    return f"{sign}{digits[: exponent + 1].ljust(exponent + 1, '0')}.{digits[exponent + 1 :] or '0'}"


WRITERS: dict[Kind, Callable[[Any], str]] = {
    Kind.BOOLEAN: lambda value: "true" if value else "false",
    Kind.TINYINT: str,
    Kind.SMALLINT: str,
    Kind.INT: str,
    Kind.BIGINT: str,
    Kind.FLOAT: float_text,
    Kind.DOUBLE: double_text,
    Kind.DECIMAL: lambda value: f"{value:f}",
    Kind.BINARY: lambda value: value.decode("utf-8", "replace"),
    Kind.DATE: date_text,
    Kind.TIMESTAMP: timestamp_text,
    Kind.INTERVAL: interval_text,
}
