"""`window(ts, '10 minutes')` and its like among the keys of GROUP BY: the bracket of the only stream.

    SELECT item, window.start, COUNT(*) FROM bids GROUP BY item, window(ts, '10 minutes', '5 minutes')
    =  SELECT item, window_start, COUNT(*) FROM bids [RANGE 10 MINUTES SLIDE 5 MINUTES ORIGIN …] GROUP BY item

Spark has `window` and `session_window`, older Flink TUMBLE, HOP and SESSION with `TUMBLE_START(…)` in the
select list. WHERE comes before the window, which matters for sessions: there the stream is filtered first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError
from windrow.language.instants import interval
from windrow.language.syntax import (
    Apply,
    Constant,
    Name,
    Node,
    Query,
    Select,
    SelectItem,
    Source,
    Star,
    WindowSyntax,
)
from windrow.language.table_functions import Length, bracket_of
from windrow.windows.bracket import WindowClause

#: of each key: the function it is in FROM, and the order of its lengths
_KEYS = {
    "window": ("HOP", ("size", "slide", "offset")),
    "session_window": ("SESSION", ("gap",)),
    "tumble": ("TUMBLE", ("size", "offset")),
    "hop": ("HOP", ("slide", "size", "offset")),
    "session": ("SESSION", ("gap",)),
}
_FIELDS = {"start": "window_start", "end": "window_end"}
_STRUCTS = ("window", "session_window")


def with_window_key(select: Select) -> Select:
    """The SELECT with the window among its keys as the window of its source."""
    found = [key for key in select.group_by if _is_window(key)]
    if not found:
        return select
    key = found[0]
    assert isinstance(key, Apply)
    if len(found) > 1:
        _refuse(found[1], "a query groups by one window", "leave one out")
    source = _only_source(select, key)
    others = tuple(each for each in select.group_by if each is not key)
    clause = _clause(key, others, select)
    changed = replace(select, group_by=others, having=select.having)
    changed = _named(changed, key)
    if clause.kind == "SESSION" and select.where is not None:
        source = _filtered(source, select)
        clause, changed = replace(clause, wattr=None), replace(changed, where=None)
    window = WindowSyntax(key.span, clause)
    bounds = tuple(Name(key.span, (name,)) for name in _FIELDS.values())
    return replace(changed, sources=(replace(source, window=window),), group_by=(*others, *bounds))


def _is_window(node: Node) -> bool:
    return isinstance(node, Apply) and node.function in _KEYS and len(node.args) > 1


def _only_source(select: Select, key: Apply) -> Source:
    name = key.function.upper() if key.function not in _STRUCTS else key.function
    if len(select.sources) != 1:
        _refuse(
            key,
            f"{name}(…) in GROUP BY is the window of one stream, and this query joins several",
            "give each stream a window in brackets: FROM "
            + ", ".join(
                f"{each.name or '(…)'} [RANGE 10 MINUTES SLIDE 10 MINUTES]" for each in select.sources[:2]
            ),
        )
    (source,) = select.sources
    if source.window is not None or source.name is None:
        what = "has a window already" if source.window is not None else "is a nested query"
        hint = (
            "leave one of the windows out"
            if source.window is not None
            else "group in the query over the stream"
        )
        _refuse(key, f"{name}(…) is the window of a stream, but what stands in FROM {what}", hint)
    return source


def _clause(key: Apply, others: tuple[Node, ...], select: Select) -> WindowClause:
    word, order = _KEYS[key.function]
    time, *written = key.args
    if not isinstance(time, Name):
        _refuse(time, "the first argument is the column of time", f"write {key.function}(ts, '10 minutes')")
    if len(written) > len(order):
        _refuse(key, f"`{key.function}` takes at most {len(order)} lengths", f"they are {', '.join(order)}")
    lengths = {part: _length(node) for part, node in zip(order, written, strict=False)}
    if word == "HOP" and "size" not in lengths:
        _refuse(key, "HOP does not say its size", "write HOP(ts, slide, size)")
    keys = tuple(_partition(node, select) for node in others) if word == "SESSION" else ()
    return replace(bracket_of(word, lengths, keys), wattr=time.parts[-1])


def _length(node: Node) -> Length:
    if isinstance(node, Constant) and node.kind == "INTERVAL":
        return node.value, True
    if isinstance(node, Constant) and node.kind == "STRING":
        text = node.value.strip()
        text = text[len("interval") :] if text.lower().startswith("interval ") else text
        return (0, True) if text.strip() == "0" else (interval(text, (), node.span), True)
    if isinstance(node, Constant) and node.kind == "NUMBER" and node.value.lstrip("-").isdecimal():
        return int(node.value), False
    raise QueryError(
        "this is not a length",
        code="window-size",
        span=node.span,
        hint="write '10 minutes' or INTERVAL '10' MINUTE",
    )


def _partition(node: Node, select: Select) -> str:
    """A session is one of the other keys, which are columns."""
    if isinstance(node, Constant) and node.kind == "NUMBER" and node.value.isdigit():
        place = int(node.value) - 1
        node = select.items[place].expression if place < len(select.items) else node
    aliases = {item.alias.lower(): item.expression for item in select.items if item.alias}
    if isinstance(node, Name) and len(node.parts) == 1:
        node = aliases.get(node.parts[0].lower(), node)
    if not isinstance(node, Name):
        hint = "compute the key in a nested query, and group by its name"
        _refuse(node, "the sessions of an expression are not known: each key has sessions of its own", hint)
    return node.parts[-1]


def _filtered(source: Source, select: Select) -> Source:
    """The stream without the rows that WHERE leaves out."""
    star = SelectItem(source.span, Star(source.span), None)
    inner = Select(select.span, (star,), (source,), StreamWord.AUTO, where=select.where)
    return Source(source.span, None, inner, source.alias or source.name, None)


def _named(select: Select, key: Apply) -> Select:
    """The SELECT with `window.start`, `TUMBLE_START(…)` and their like under the names of the bounds."""
    called = {(source.alias or source.name or "").lower() for source in select.sources}

    def rename(node: Node) -> Node | None:
        if (
            isinstance(node, Name)
            and node.parts[0].lower() in _STRUCTS
            and node.parts[0].lower() not in called
        ):
            return _field(node, key)
        if isinstance(node, Apply) and (bound := _bound_call(node)):
            return Name(node.span, (bound,))
        return None

    parts = ("items", "having", "group_by", "order_by")
    return replace(select, **{part: _mapped(getattr(select, part), rename) for part in parts})


def _field(node: Name, key: Apply) -> Node | None:
    if key.function != node.parts[0].lower():
        return None
    if len(node.parts) == 2 and node.parts[1].lower() in _FIELDS:
        return Name(node.span, (_FIELDS[node.parts[1].lower()],))
    name = node.parts[0]
    raise QueryError(
        f"`{'.'.join(node.parts)}` is no value here",
        code="window-function",
        span=node.span,
        hint=f"select {name}.start and {name}.end",
    )


def _bound_call(node: Apply) -> str | None:
    word, _, which = node.function.partition("_")
    if word in ("tumble", "hop", "session") and which in _FIELDS:
        return _FIELDS[which]
    return "window_time" if node.function == "window_time" and len(node.args) == 1 else None


def _mapped(value: Any, change: Callable[[Node], Node | None]) -> Any:
    """The syntax with every node replaced that `change` gives another for; nested queries stay."""
    if isinstance(value, tuple):
        return tuple(_mapped(item, change) for item in value)
    if not isinstance(value, Node) or isinstance(value, Query):
        return value
    found = change(value)
    if found is not None:
        return found
    assert is_dataclass(value)
    parts = {each.name: getattr(value, each.name) for each in fields(value) if each.name != "span"}
    changed = {name: _mapped(part, change) for name, part in parts.items()}
    return replace(value, **{name: part for name, part in changed.items() if part is not parts[name]})


def _refuse(node: Node, message: str, hint: str) -> NoReturn:
    raise QueryError(message, code="window-function", span=node.span, hint=hint)
