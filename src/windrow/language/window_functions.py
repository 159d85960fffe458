"""TUMBLE, HOP, CUMULATE and SESSION in FROM, and `window()` in GROUP BY: each is a window bracket.

Both families begin their windows at multiples of the slide, plus an offset; a bracket ends them there. So
HOP(TABLE s, DESCRIPTOR(ts), slide, size, offset) is [RANGE size SLIDE slide ORIGIN x], x = (offset + size)
mod slide.

>>> print(bracket_of("HOP", {"slide": (4, False), "size": (10, False)}).origin)
2

`window(ts, '10 minutes')` and its like among the keys of GROUP BY: the bracket of the only stream.

    SELECT item, window.start, COUNT(*) FROM bids GROUP BY item, window(ts, '10 minutes', '5 minutes')
    =  SELECT item, window_start, COUNT(*) FROM bids [RANGE 10 MINUTES SLIDE 5 MINUTES ORIGIN …] GROUP BY item

Spark has `window` and `session_window`, older Flink TUMBLE, HOP and SESSION with `TUMBLE_START(…)` in the
select list. WHERE comes before the window, which matters for sessions: there the stream is filtered first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError, Span
from windrow.language import lift_literals, literals, syntax
from windrow.language.tokens import TokenKind, Tokens, mistake, refuse
from windrow.windows.clause import WindowClause
from windrow.windows.domain import Quantity

if TYPE_CHECKING:
    from windrow.language.lift import Lifted


#: ticks, and whether they are microseconds
Length = tuple[int, bool]

#: the lengths each function takes, in their order; those in the second tuple may be left out
LENGTHS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "TUMBLE": (("size",), ("offset",)),
    "HOP": (("slide", "size"), ("offset",)),
    "CUMULATE": (("step", "size"), ("offset",)),
    "SESSION": (("gap",), ()),
}
_TIMES = "TABLE {0}, DESCRIPTOR({1}), INTERVAL"
_FORMS = {
    "TUMBLE": "TUMBLE(TABLE {0}, DESCRIPTOR({1}), INTERVAL '10' MINUTE)",
    "HOP": f"HOP({_TIMES} '5' MINUTE, INTERVAL '10' MINUTE), first the slide, then the size",
    "CUMULATE": f"CUMULATE({_TIMES} '1' HOUR, INTERVAL '1' DAY), first the step, then the size",
    "SESSION": "SESSION(TABLE {0} PARTITION BY k, DESCRIPTOR({1}), INTERVAL '5' MINUTE)",
}
_CLAUSES = syntax.words("SELECT FROM JOIN WHERE ON BY HAVING LIMIT USING UNION EXCEPT INTERSECT")


@dataclass(frozen=True)
class TableFunction:
    """A window function in FROM: the name it is applied to, its column of time, and the bracket it means."""

    span: Span
    word: str
    name: str
    column: str
    clause: WindowClause


def bracket_of(word: str, lengths: dict[str, Length], partition_by: tuple[str, ...] = ()) -> WindowClause:
    """The bracket that a function with these lengths means."""
    offset = lengths.get("offset", (0, True))[0]
    if word == "SESSION":
        gap = _quantity(lengths["gap"])
        return WindowClause("SESSION", gap, partition_by=partition_by, inclusive=True)
    size = lengths["size"]
    if word == "CUMULATE":
        origin = offset % size[0] if size[0] > 0 else 0
        return WindowClause("CUMULATE", _quantity(size), _quantity(lengths["step"]), origin=origin)
    slide = lengths.get("slide", size)
    origin = (offset + size[0]) % slide[0] if slide[0] > 0 else 0
    return WindowClause("RANGE", _quantity(size), _quantity(slide), origin=origin)


def _quantity(length: Length) -> Quantity:
    return Quantity.of_time(length[0]) if length[1] else Quantity(length[0])


def lift_table_functions(lifted: Lifted) -> None:
    """Take the window functions out of FROM; each is one placeholder."""
    tokens = lifted.tokens
    for index in range(len(tokens)):
        if tokens.word(index) not in LENGTHS or tokens.word(index + 1) != "(":
            continue
        begin = index - 2 if tokens.words(index - 2, 2) == ("TABLE", "(") else index
        before = (tokens.word(at) for at in tokens.outwards(begin))
        clause = next((word for word in before if word in _CLAUSES | {"("}), "")
        if clause in ("FROM", "JOIN") and tokens.word(index - 1) != "WINDOW":  # of ksqlDB
            _lift(lifted, index)


def _lift(lifted: Lifted, index: int) -> None:
    tokens, open_at = lifted.tokens, index + 1
    first, last = index, tokens.partner[open_at]
    if tokens.words(index - 2, 2) == ("TABLE", "("):
        first, last = index - 2, tokens.partner[index - 1]
        if last != tokens.partner[open_at] + 1:
            hint = f"write {_FORMS[tokens.word(index)].format('s', 'ts')}"
            refuse(tokens[last], "TABLE takes one window function", "window-function", hint)
    span = lifted.cover(first, last)
    inside = tokens.cut(open_at + 1, tokens.partner[open_at])
    lifted.functions_in_from[span.start] = _Reader(tokens.word(index), span, inside).read()


class _Reader:
    """Reads the arguments of one function."""

    def __init__(self, word: str, span: Span, inside: Tokens) -> None:
        self.word = word
        self.span = span
        commas = [index for index in inside.outside() if inside.word(index) == ","]
        edges = zip([-1, *commas], [*commas, len(inside)], strict=True) if len(inside) else ()
        self.arguments = dict(self._named([inside.cut(begin + 1, end) for begin, end in edges]))

    def read(self) -> TableFunction:
        needed, _ = LENGTHS[self.word]
        for part in ("data", "timecol"):
            if part not in self.arguments:
                raise self.refusal(f"{self.word} does not say its {part}")
        name, partition_by = self._data(self.arguments.pop("data"))
        column = self._column(self.arguments.pop("timecol"))
        missing = next((part for part in needed if part not in self.arguments), None)
        if missing is not None:
            raise self.refusal(f"{self.word} does not say its {missing}", name, column)
        lengths = {part: self._length(self.arguments[part]) for part in self.arguments}
        if len({is_time for _, is_time in lengths.values()}) > 1:
            raise self.refusal("some of these lengths are times and some are numbers", name, column)
        clause = replace(bracket_of(self.word, lengths, partition_by), wattr=column)
        return TableFunction(self.span, self.word, name, column, clause)

    def _named(self, parts: list[Tokens]) -> Iterator[tuple[str, Tokens]]:
        """The arguments by name, where they have none by their place."""
        needed, optional = LENGTHS[self.word]
        order = ["data", "timecol", *needed, *optional]
        if len(parts) > len(order) or len(parts) < 2:
            raise self.refusal(f"{self.word} has {len(parts)} arguments")
        for place, part in zip(order, parts, strict=False):
            name = place
            if part.words(1, 2) == ("=", ">"):
                name, part = part[0].text.lower(), part.cut(3, len(part))
                if name not in order:
                    message = f"{self.word} has no argument `{name}`"
                    raise self.refusal(message, hint=f"its arguments are {', '.join(order).upper()}")
            yield name, part

    def _data(self, part: Tokens) -> tuple[str, tuple[str, ...]]:
        if part.words(0, 2) == ("TABLE", "(") and part.word(3) == ")":
            part = part.cut(2, 3)
        at = int(part.word(0) == "TABLE" and len(part) > 1)
        if not len(part) or not part[at].is_name:
            inner = part.between(0, -1) if len(part) else ""
            inner = inner[inner.find("(") :] if "(" in inner else "(SELECT …)"
            wanted = f"name it first: WITH x AS {inner} SELECT … FROM {self.word}(TABLE x, …)"
            raise self.refusal("a window function is over one stream, by its name", hint=wanted)
        name, rest = part[at].name, part.cut(at + 1, len(part))
        if not len(rest):
            return name, ()
        if rest.words(0, 2) != ("PARTITION", "BY") or self.word != "SESSION":
            other = f"only SESSION takes PARTITION BY; with {self.word} the keys stand in GROUP BY"
            hint = None if self.word == "SESSION" else other
            raise self.refusal(f"unexpected `{rest[0].text}` after `{name}`", name, hint=hint)
        keys = [token for token in rest.items[2:] if token.is_name]
        signs = {token.word for token in rest.items[2:] if not token.is_name}
        if not keys or signs - {"(", ")", ","}:
            raise self.refusal("columns follow PARTITION BY", name)
        return name, tuple(token.name for token in keys)

    def _column(self, part: Tokens) -> str:
        if part.words(0, 2) == ("DESCRIPTOR", "("):
            part = part.cut(2, len(part) - 1)
        last = len(part) - 1
        if last not in (0, 2) or not part[last].is_name or (last == 2 and part.word(1) != "."):
            raise self.refusal("the second argument is the column of time")
        return part[last].name

    def _length(self, part: Tokens) -> Length:
        sign = -1 if part.word(0) == "-" else 1
        part = part.cut(int(sign < 0), len(part))
        found = lift_literals.interval_at(part, 0)
        if found is not None and found[1] == len(part) - 1:
            return sign * found[0], True
        if len(part) == 1 and part[0].kind is TokenKind.STRING:
            return sign * literals.interval(part[0].text[1:-1], (), part.span), True
        if len(part) == 1 and part[0].kind is TokenKind.NUMBER and part[0].text.isdecimal():
            return sign * int(part[0].text), False
        hint = "write INTERVAL '10' MINUTE, or a bare number where the attribute is a number"
        raise mistake(part, "this is not a length", "window-size", hint)

    def refusal(
        self, message: str, name: str = "s", column: str = "ts", hint: str | None = None
    ) -> QueryError:
        form = f"write {_FORMS[self.word].format(name, column)}"
        return mistake(self.span, message, "window-function", hint or form)


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


def with_window_key(select: syntax.Select) -> syntax.Select:
    """The SELECT with the window among its keys as the window of its source."""
    calls = [key for key in select.group_by if isinstance(key, syntax.Apply)]
    found = [key for key in calls if key.function in _KEYS and len(key.args) > 1]
    if not found:
        return select
    key = found[0]
    if len(found) > 1:
        _refuse(found[1], "a query groups by one window", "leave one out")
    source = _only_source(select, key)
    others = tuple(each for each in select.group_by if each is not key)
    clause = _clause(key, others, select)
    changed = _named(replace(select, group_by=others), key)
    if clause.kind == "SESSION" and select.where is not None:
        # the stream without the rows that WHERE leaves out
        star = syntax.SelectItem(source.span, syntax.Star(source.span), None)
        inner = syntax.Select(select.span, (star,), (source,), StreamWord.AUTO, where=select.where)
        source = syntax.FromEntry(source.span, None, inner, source.alias or source.name, None)
        clause, changed = replace(clause, wattr=None), replace(changed, where=None)
    window = syntax.WindowSyntax(key.span, clause)
    bounds = tuple(syntax.Name(key.span, (name,)) for name in _FIELDS.values())
    return replace(changed, sources=(replace(source, window=window),), group_by=(*others, *bounds))


def _only_source(select: syntax.Select, key: syntax.Apply) -> syntax.FromEntry:
    name = key.function.upper() if key.function not in _STRUCTS else key.function
    if len(select.sources) != 1:
        bracket = _bracket_text(key)
        _refuse(
            key,
            f"{name}(…) in GROUP BY is the window of one stream, and this query joins several",
            "give each stream a window in brackets: FROM "
            + ", ".join(_with_bracket(each, bracket) for each in select.sources),
        )
    (source,) = select.sources
    if source.window is not None or source.name is None:
        what, hint = "is a nested query", "group in the query over the stream"
        if source.window is not None:
            what, hint = "has a window already", "leave one of the windows out"
        _refuse(key, f"{name}(…) is the window of a stream, but what stands in FROM {what}", hint)
    return source


def _bracket_text(key: syntax.Apply) -> str:
    """What `window(ts, '1 hour')` is in brackets, as far as its lengths are constants."""
    word, order = _KEYS[key.function]
    lengths = {part: _length(node) for part, node in zip(order, key.args[1:], strict=False)}
    size = _quantity(lengths.get("size", lengths.get("gap", (600_000_000, True))))
    if word == "SESSION":
        return f"[SESSION {size} INCLUSIVE]"
    return f"[RANGE {size} SLIDE {_quantity(lengths['slide']) if 'slide' in lengths else size}]"


def _with_bracket(source: syntax.FromEntry, bracket: str) -> str:
    if source.name is None:
        return "(…)" + (f" AS {source.alias}" if source.alias else "")
    return f"{source.name} {bracket}" + (f" {source.alias}" if source.alias else "")


def _clause(key: syntax.Apply, others: tuple[syntax.Node, ...], select: syntax.Select) -> WindowClause:
    word, order = _KEYS[key.function]
    time, *written = key.args
    if not isinstance(time, syntax.Name):
        _refuse(time, "the first argument is the column of time", f"write {key.function}(ts, '10 minutes')")
    if len(written) > len(order):
        _refuse(key, f"`{key.function}` takes at most {len(order)} lengths", f"they are {', '.join(order)}")
    lengths = {part: _length(node) for part, node in zip(order, written, strict=False)}
    if word == "HOP" and "size" not in lengths:
        _refuse(key, "HOP does not say its size", "write HOP(ts, slide, size)")
    keys = tuple(_partition(node, select) for node in others) if word == "SESSION" else ()
    return replace(bracket_of(word, lengths, keys), wattr=time.parts[-1])


def _length(node: syntax.Node) -> Length:
    if isinstance(node, syntax.Constant) and node.kind == "INTERVAL":
        return node.value, True
    if isinstance(node, syntax.Constant) and node.kind == "STRING":
        text = node.value.strip()
        text = text[len("interval") :] if text.lower().startswith("interval ") else text
        return (0, True) if text.strip() == "0" else (literals.interval(text, (), node.span), True)
    if isinstance(node, syntax.Constant) and node.kind == "NUMBER" and node.value.lstrip("-").isdecimal():
        return int(node.value), False
    raise mistake(node, "this is not a length", "window-size", "write '10 minutes' or INTERVAL '10' MINUTE")


def _partition(node: syntax.Node, select: syntax.Select) -> str:
    """A session is one of the other keys, which are columns."""
    if isinstance(node, syntax.Constant) and node.kind == "NUMBER" and node.value.isdigit():
        place = int(node.value) - 1
        node = select.items[place].expression if place < len(select.items) else node
    aliases = {item.alias.lower(): item.expression for item in select.items if item.alias}
    if isinstance(node, syntax.Name) and len(node.parts) == 1:
        node = aliases.get(node.parts[0].lower(), node)
    if not isinstance(node, syntax.Name):
        hint = "compute the key in a nested query, and group by its name"
        _refuse(node, "the sessions of an expression are not known: each key has sessions of its own", hint)
    return node.parts[-1]


def _named(select: syntax.Select, key: syntax.Apply) -> syntax.Select:
    """The SELECT with `window.start`, `TUMBLE_START(…)` and their like under the names of the bounds."""
    called = {(source.alias or source.name or "").lower() for source in select.sources}

    def renamed(node: syntax.Node) -> syntax.Node:
        return found if (found := bound(node)) is not None else syntax.rebuilt(node, renamed)

    def bound(node: syntax.Node) -> syntax.Node | None:
        if (
            isinstance(node, syntax.Name)
            and node.parts[0].lower() in _STRUCTS
            and node.parts[0].lower() not in called
        ):
            return _field(node, key)
        if isinstance(node, syntax.Apply) and _written(node) == _written(key):
            return _bounds(node)
        if (
            isinstance(node, syntax.Apply)
            and node.function == "get_field"
            and _written(node.args[0]) == _written(key)
        ):
            return _field(
                syntax.Name(node.span, (key.function, str(getattr(node.args[1], "value", "")))), key
            )
        if isinstance(node, syntax.Apply) and (which := _bound_call(node)):
            if which != "window_time":
                return syntax.Name(node.span, (which,))
            # the last instant of a window
            value, kind = (1, "INTERVAL") if _length(key.args[1])[1] else ("1", "NUMBER")
            end, tick = syntax.Name(node.span, ("window_end",)), syntax.Constant(node.span, value, kind)
            return syntax.Apply(node.span, "-", (end, tick))
        return None

    return replace(
        select,
        items=tuple(syntax.rebuilt(each, renamed) for item in select.items for each in _spread(item, key)),
        having=renamed(select.having) if select.having is not None else None,
        group_by=tuple(map(renamed, select.group_by)),
        order_by=tuple((renamed(each), descending) for each, descending in select.order_by),
    )


def _spread(item: syntax.SelectItem, key: syntax.Apply) -> Iterator[syntax.SelectItem]:
    """`window.*` as its bounds, and a window that is a value under its name."""
    if item.alias is None and _written(item.expression) in ((key.function,), _written(key)):
        item = replace(item, alias=key.function)
    if (
        not isinstance(item.expression, syntax.Star)
        or (item.expression.qualifier or "").lower() != key.function
    ):
        yield item
        return
    for name, bound in _FIELDS.items():
        yield replace(item, expression=syntax.Name(item.span, (bound,)), alias=name)


def _written(node: syntax.Node) -> Any:
    """What a window in GROUP BY is told by, wherever it is written again."""
    if not isinstance(node, syntax.Apply):
        return node.parts if isinstance(node, syntax.Name) else getattr(node, "value", node)
    return node.function, tuple(map(_written, node.args))


def _bounds(node: syntax.Node) -> syntax.Apply:
    """The bounds of a window as a struct."""
    pairs = [
        (syntax.Constant(node.span, name, "STRING"), syntax.Name(node.span, (bound,)))
        for name, bound in _FIELDS.items()
    ]
    return syntax.Apply(node.span, "named_struct", tuple(part for pair in pairs for part in pair))


def _field(node: syntax.Name, key: syntax.Apply) -> syntax.Node | None:
    if key.function != node.parts[0].lower():
        return None
    if len(node.parts) == 2 and node.parts[1].lower() in _FIELDS:
        return syntax.Name(node.span, (_FIELDS[node.parts[1].lower()],))
    if len(node.parts) == 1:
        return _bounds(node)
    name = node.parts[0]
    raise mistake(
        node,
        f"`{'.'.join(node.parts)}` is no value here",
        "window-function",
        f"select {name}.start and {name}.end",
    )


def _bound_call(node: syntax.Apply) -> str | None:
    word, _, which = node.function.partition("_")
    if word in ("tumble", "hop", "session") and which in _FIELDS:
        return _FIELDS[which]
    if word in ("tumble", "hop", "session") and which == "rowtime":
        return "window_time"
    return "window_time" if node.function == "window_time" and len(node.args) == 1 else None


def _refuse(node: syntax.Node, message: str, hint: str) -> NoReturn:
    refuse(node, message, "window-function", hint)
