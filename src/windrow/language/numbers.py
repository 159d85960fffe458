"""Number literals, with Spark's suffixes for their types: 10L, 1.5D, 2BD."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from windrow.errors import QueryError, Span
from windrow.language.syntax import CastTo, Constant, Node
from windrow.language.tokens import Token

_SUFFIXED = re.compile(r"(.*?)(BD|[LSYDF])?", re.IGNORECASE)
_TYPES = {"L": "BIGINT", "S": "SMALLINT", "Y": "TINYINT", "D": "DOUBLE", "F": "FLOAT"}
_LONGEST = 100
_LONGEST_QUANTITY = 40


def number(token: Token) -> Node:
    """The constant a number token stands for.

    >>> from windrow.language.scanner import scan
    >>> number(scan("10L")[0]).type_text
    'BIGINT'
    """
    if len(token.text) > _LONGEST:
        raise QueryError(
            f"a number of more than {_LONGEST} digits",
            code="bad-number",
            span=token.span,
            hint="write it with an exponent, as in 1e120",
        )
    match = _SUFFIXED.fullmatch(token.text)
    assert match is not None
    constant = Constant(token.span, match[1], "NUMBER")
    if match[2] is None:
        return constant
    return CastTo(token.span, constant, _TYPES.get(match[2].upper()) or _decimal(token, match[1]))


def plain_number(text: str, span: Span) -> tuple[int | Decimal, str]:
    """A number of a quantity, and the unit in a suffix that Spark would take for the number's type.

    >>> plain_number("2.5", Span(0, 3)), plain_number("5s", Span(0, 2))
    ((Decimal('2.5'), ''), (5, 's'))
    """
    digits = text.rstrip("sSdDlLyYfFbB")
    suffix = text[len(digits) :]
    if suffix.upper() not in ("", "S", "D") or "e" in digits.lower() or len(digits) > _LONGEST_QUANTITY:
        raise QueryError(
            f"`{text[:_LONGEST_QUANTITY]}` is no plain number",
            code="bad-number",
            span=span,
            hint="write the number without an exponent, and behind it the unit",
        )
    return (int(digits) if digits.isdigit() else Decimal(digits)), suffix


def _decimal(token: Token, text: str) -> str:
    whole, _, fraction = text.partition(".")
    digits = len(whole.lstrip("0")) + len(fraction)
    if "e" in text.lower() or digits > 38:
        raise QueryError(
            f"`{token.text}` is no exact decimal",
            code="bad-number",
            span=token.span,
            hint="write at most 38 digits, without an exponent",
        )
    return f"DECIMAL({max(digits, 1)},{len(fraction)})"


def negated(node: Node, span: Span) -> Node | None:
    """The constant with a minus before it; None for anything that is no positive number."""
    if isinstance(node, CastTo) and node.span == node.arg.span:
        inner = negated(node.arg, span)
        return replace(node, arg=inner, span=span) if inner else None
    if isinstance(node, Constant) and node.kind == "NUMBER" and not node.value.startswith("-"):
        return Constant(span, "-" + node.value, "NUMBER")
    return None
