"""Literals and types as they are written: which type a constant has, as in Spark.

A number without a point is the least of INT, BIGINT and DECIMAL that holds it; one with a point is an
exact DECIMAL; one with an exponent is a DOUBLE.

>>> from windrow.errors import Span
>>> [literal(Constant(Span(0, 1), text, "NUMBER")).type for text in ("7", "3000000000", "0.95", "1e3")]
[INT, BIGINT, DECIMAL(2,2), DOUBLE]
"""

from __future__ import annotations

from decimal import Decimal

from windrow.algebra import Literal, types as dt
from windrow.errors import QueryError
from windrow.language import literals, tokens
from windrow.language.syntax import Constant, Node

_PLAIN = {
    "STRING": dt.STRING,
    "BOOLEAN": dt.BOOLEAN,
    "NULL": dt.NULL,
    "INTERVAL": dt.INTERVAL,
    "BINARY": dt.BINARY,
}
_READ_AS = {"TIMESTAMP": dt.TIMESTAMP, "DATE": dt.DATE}


def literal(node: Constant) -> Literal:
    if node.kind in _PLAIN:
        return Literal(node.value, _PLAIN[node.kind])
    if node.kind in _READ_AS:
        found = literals.instant(str(node.value), node.span)
        # a DATE is its midnight
        return Literal(found - found % literals.DAY if node.kind == "DATE" else found, _READ_AS[node.kind])
    return _number(node)


def suffixed(node: Constant, target: dt.DataType) -> Literal:
    """A number with a suffix for its type: 10L, 1.5D, 2BD."""
    if target.is_fractional:
        return Literal(float(node.value), target)
    if not target.is_integer:
        return Literal(Decimal(node.value), target)
    low, high = target.bounds
    if "." in node.value or not low <= int(node.value) <= high:
        tokens.refuse(
            node, f"{node.value} is no {target}", "bad-number", f"a {target} is whole, {low} to {high}"
        )
    return Literal(int(node.value), target)


def _number(node: Constant) -> Literal:
    text = str(node.value)
    if "e" in text.lower():
        return Literal(float(text), dt.DOUBLE)
    if "." in text:
        return _decimal(node, Decimal(text))
    fitting = next(
        (kind for kind in (dt.INT, dt.BIGINT) if kind.bounds[0] <= int(text) <= kind.bounds[1]), None
    )
    return Literal(int(text), fitting) if fitting else _decimal(node, Decimal(text))


def _decimal(node: Constant, value: Decimal) -> Literal:
    scale = max(0, -int(value.as_tuple().exponent))
    whole = len(f"{abs(value):f}".replace(".", "").lstrip("0"))
    digits = max(whole, scale, 1)
    if digits > dt.MAX_PRECISION:
        message = f"{node.value} has {digits} digits, more than a DECIMAL holds"
        tokens.refuse(node, message, "bad-number", "write it with an exponent to make it a DOUBLE")
    return Literal(value, dt.decimal(digits, scale))


def whole_number(node: Node) -> int | None:
    """The value of a constant that is a plain whole number, such as a position in GROUP BY 1."""
    if isinstance(node, Constant) and node.kind == "NUMBER" and str(node.value).isdigit():
        return int(node.value)
    return None


def _no_interval(fields: list[str]) -> QueryError:
    calendar = next((field for field in fields if field in literals.CALENDAR), None)
    return QueryError(
        f"no type `INTERVAL {' '.join(fields)}`" + (f": {calendar} has no fixed length" if calendar else ""),
        code="bad-type",
        hint="all intervals are of one type, INTERVAL or INTERVAL DAY TO SECOND",
    )


def written_type(text: str) -> dt.DataType:
    """The type a text names. Spark's intervals name their fields; here they are of one type.

    >>> written_type("interval day to second"), written_type("decimal(5, 2)")
    (INTERVAL, DECIMAL(5,2))
    >>> written_type("money")
    Traceback (most recent call last):
    windrow.errors.QueryError: no type `money` (types are BIGINT, DOUBLE, DECIMAL(10,2), STRING, TIMESTAMP, …)
    """
    words = text.upper().split()
    try:
        return dt.parse_type(text)
    except QueryError as error:
        if words[:1] == ["INTERVAL"] and len(words) > 1:
            raise _no_interval(words[1:]) from None
        error.hint = error.hint or "types are BIGINT, DOUBLE, DECIMAL(10,2), STRING, TIMESTAMP, …"
        raise
