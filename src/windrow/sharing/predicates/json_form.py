"""Conditions as JSON, for what is kept longer than the query that brought it.

>>> from windrow.algebra.functions import call
>>> from windrow.algebra.types import INT
>>> short = call("<", [Column("length", INT), Literal(100, INT)])
>>> written(short)
['call', '<', [['column', 'length', 'INT'], ['literal', 'int', '100', 'INT']], 'BOOLEAN']
>>> read(written(short)) == short
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from windrow.algebra.expressions import Call, Cast, Column, Expression, Literal
from windrow.algebra.types import DataType, parse_type
from windrow.errors import QueryError

#: how constants are read again, by the names of their Python types
_VALUES: dict[str, Callable[[str], Any]] = {
    "NoneType": lambda _: None,
    "bool": lambda text: text == "True",
    "int": int,
    "float": float,
    "str": str,
    "Decimal": Decimal,
}


def written(expression: Expression) -> list[Any] | None:
    """An expression as JSON; None if it cannot be read again from that."""
    try:
        found = _written(expression)
        return found if read(found) == expression else None
    except (KeyError, QueryError):
        return None


def read(stored: Sequence[Any]) -> Expression:
    """What `written` has written."""
    match stored:
        case ["column", name, kind]:
            return Column(name, parse_type(kind))
        case ["literal", value, text, kind]:
            return Literal(_VALUES[value](text), parse_type(kind))
        case ["call", name, args, kind]:
            return Call(name, tuple(map(read, args)), parse_type(kind))
        case ["cast", arg, kind, safe]:
            return Cast(read(arg), parse_type(kind), safe)
    raise KeyError(stored[0])


def _written(expression: Expression) -> list[Any]:
    kind = _name(expression.type)
    match expression:
        case Column(name):
            return ["column", name, kind]
        case Literal(value):
            return ["literal", type(value).__name__, str(value), kind]
        case Call(name, args):
            return ["call", name, [_written(arg) for arg in args], kind]
        case Cast(arg, _, safe):
            return ["cast", _written(arg), kind, safe]
    raise KeyError(type(expression).__name__)


def _name(kind: DataType) -> str:
    return str(kind)
