"""What an expression without an alias is called: its text in canonical form.

Names keep only their last part, functions are spelled as in the registry, aggregates in capitals.

>>> from windrow.errors import Span
>>> here = Span(0, 0)
>>> a, one = Name(here, ("s", "a")), Constant(here, "1", "NUMBER")
>>> describe(Apply(here, "SUM", (Apply(here, "*", (Apply(here, "+", (a, one)), a)),), distinct=True))
'SUM(DISTINCT (a + 1) * a)'
"""

from __future__ import annotations

from collections.abc import Callable

from windrow.algebra import TRUE, Call, ColumnRef, Expression, aggregates
from windrow.algebra.functions import lookup
from windrow.algebra.functions.sql_text import constant_sql, literal_text, text_literal, to_sql
from windrow.algebra.operators import AggregateCall
from windrow.algebra.types import BINARY, INTERVAL, NULL
from windrow.language.binder.constants import suffixed, written_type
from windrow.language.syntax import Apply, CastTo, Constant, Name, Node, OverCall, Star


def call_sql(call: AggregateCall, names: Callable[[str], str]) -> str:
    """An aggregate call; `names` spells the columns.

    >>> from windrow.algebra.expressions import ColumnRef
    >>> from windrow.algebra.operators import AggregateCall
    >>> from windrow.algebra.types import DOUBLE
    >>> call_sql(AggregateCall("quantile", (ColumnRef("s.x", DOUBLE),), DOUBLE, (0.95,)), str)
    'QUANTILE(s.x, 0.95)'
    """
    args = [to_sql(arg, names) for arg in call.args] or ["*"]
    args += [constant_sql(param) for param in call.params]
    where = f" FILTER (WHERE {to_sql(call.where, names)})" if call.where != TRUE else ""
    return f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}{', '.join(args)}){where}"


def describe(node: Node) -> str:
    """The text of an expression that binds, independent of how it was spaced and spelled."""
    return to_sql(_spelled(node), str)


def _spelled(node: Node) -> Expression:
    """The expression without types, each part that is no operator under the name of its text."""
    match node:
        case Apply() if aggregates.is_aggregate(node.function):
            return ColumnRef(_aggregate(node), NULL)
        case Apply():
            return Call(lookup(node.function).name, tuple(_spelled(arg) for arg in node.args), NULL)
        case CastTo(arg=Constant(kind="NUMBER") as number) if number.span == node.span:
            typed = suffixed(number, written_type(node.type_text))
            return ColumnRef(literal_text(typed.value, typed.type), NULL)
        case CastTo():
            word = "TRY_CAST" if node.safe else "CAST"
            return ColumnRef(f"{word}({describe(node.arg)} AS {node.type_text.upper()})", NULL)
        case Name():
            return ColumnRef(node.parts[-1], NULL)
        case Star():
            return ColumnRef("*", NULL)
        case OverCall():
            framed = aggregates.is_aggregate(node.call.function)
            return ColumnRef(describe(node.call) if framed else node.function, NULL)
        case Constant():
            return ColumnRef(_constant(node), NULL)
    return ColumnRef("value", NULL)


def _constant(node: Constant) -> str:
    match node.kind:
        case "STRING":
            return text_literal(node.value)
        case "TIMESTAMP" | "DATE":
            return f"{node.kind} {text_literal(node.value)}"
        case "INTERVAL":
            return literal_text(node.value, INTERVAL)
        case "BINARY":
            return literal_text(node.value, BINARY)
        case "NUMBER":
            return str(node.value)
    return "NULL" if node.value is None else str(node.value).upper()


def _aggregate(node: Apply) -> str:
    args = ", ".join(describe(arg) for arg in node.args)
    where = f" FILTER (WHERE {describe(node.where)})" if node.where is not None else ""
    keys = [describe(key) + " DESC" * descending for key, descending in node.order]
    order = f" ORDER BY {', '.join(keys)}" if keys else ""
    return f"{node.function.upper()}({'DISTINCT ' if node.distinct else ''}{args}{order}){where}"
