"""Syntax trees as short text, for tests: operators before their operands, no places."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from windrow.language.syntax import (
    Apply,
    CastTo,
    Constant,
    ExistsTest,
    FromEntry,
    Name,
    Node,
    QueryExpression,
    Select,
    SelectItem,
    SetOperation,
    Star,
    WStream,
)


def _apply(node: Apply) -> str:
    distinct = "DISTINCT " if node.distinct else ""
    where = f" WHERE {shown(node.where)}" if node.where else ""
    return f"({node.function} {distinct}{' '.join(map(shown, node.args))}{where})".replace(" )", ")")


def _source(node: FromEntry) -> str:
    what = node.name if node.query is None else f"<{shown(node.query)}>"
    alias = f" AS {node.alias}" if node.alias else ""
    return f"{what}{alias}" + (f" [{node.window.clause.kind}]" if node.window else "")


def _select(node: Select) -> str:
    order = [shown(part) + (" DESC" if down else "") for part, down in node.order_by]
    parts = {
        node.word.value: "",
        "DISTINCT" if node.distinct else "": "",
        "SELECT": ", ".join(map(shown, node.items)),
        "FROM": ", ".join(map(shown, node.sources)),
        "ON": ", ".join(map(shown, node.on)),
        "WHERE": shown(node.where) if node.where else "",
        "GROUP": ", ".join(map(shown, node.group_by)),
        "HAVING": shown(node.having) if node.having else "",
        "ORDER": ", ".join(order),
        "LIMIT": shown(node.limit) if node.limit else "",
    }
    bare = ("DISTINCT", node.word.value)
    return " ".join(
        f"{word} {text}".strip() for word, text in parts.items() if text or (word and word in bare)
    )


_SHOWN: dict[type[Node], Callable[[Any], str]] = {
    Apply: _apply,
    CastTo: lambda node: f"({node.type_text}{'?' if node.safe else ''} {shown(node.arg)})",
    Constant: lambda node: node.value if node.kind == "NUMBER" else repr(node.value),
    ExistsTest: lambda node: f"{'NOT ' if node.negated else ''}EXISTS <{shown(node.query)}>",
    Name: lambda node: ".".join(node.parts),
    Select: _select,
    SelectItem: lambda node: shown(node.expression) + (f" AS {node.alias}" if node.alias else ""),
    SetOperation: lambda node: f"<{shown(node.left)}> {node.kind} <{shown(node.right)}>",
    FromEntry: _source,
    Star: lambda node: f"{node.qualifier}.*" if node.qualifier else "*",
    WStream: lambda node: f"WSTREAM({', '.join(map(shown, node.items))})[{node.window.clause.kind}]",
}


def shown(node: Node) -> str:
    """The tree as text."""
    return _SHOWN[type(node)](node)


def nodes(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    for part in fields(node):
        yield from _below(getattr(node, part.name))


def _below(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield from nodes(value)
    elif isinstance(value, tuple):
        for each in value:
            yield from _below(each)


def select(query: QueryExpression) -> Select:
    """The query, which is a single SELECT."""
    assert isinstance(query, Select)
    return query
