"""The inside of a window bracket: `[RANGE 5 MINUTES SLIDE 1 MINUTE WATTR ts]`.

`windows.lark` is the grammar; this module labels the tokens of a bracket for it. The spellings of the
papers are read here and in `window_parts`, and nowhere else: `row-num`, `PATTR`, `WINDOW` for RANGE,
`UNBOUNDED START AT` for LANDMARK FROM, tuples for rows.

The parts of a window bracket, from the tree of the grammar to a `WindowClause`.

Each rule of `windows.lark` has a reader here, which gives the fields of the clause it stands for.

What to say about a bracket that is no window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Tree
from lark import Token as Label
from lark.exceptions import UnexpectedInput
from lark.lexer import Lexer

from windrow.errors import QueryError, Span, nearest
from windrow.language import lift_literals, literals, vocabulary
from windrow.language.syntax import Constant, Node, PointSyntax, WindowSyntax, words
from windrow.language.tokens import Token, TokenKind, Tokens, at, mistake, refuse
from windrow.windows.clause import WORDS, WindowClause
from windrow.windows.domain import MAX_INT64, MICROSECONDS, Domain, Quantity, is_unit, unit_name

#: words a part of a window begins with
PARTS = words(
    "RANGE WINDOW ROWS SESSION CUMULATE LANDMARK UNBOUNDED NOW LIFETIME SLIDE LAG ORIGIN UNTIL "
    "WATTR RATTR SATTR PATTR PARTITION INTERNAL INCLUSIVE ZONE"
)
KINDS = "RANGE, ROWS, LANDMARK, UNBOUNDED, NOW, LIFETIME, SESSION or CUMULATE"

_SIZE = "a size follows {0}, as in {0} 5 MINUTES, {0} 100 ROWS or {0} 10"
_POINT = "a point in time or a number follows {0}, as in {0} '2024-01-01 07:00:00'"
_NAME = "the name of an attribute follows {0}"
_WANTED = {
    **dict.fromkeys(("RANGE", "WINDOW", "SLIDE", "LAG", "SESSION", "CUMULATE"), _SIZE),
    **dict.fromkeys(("ORIGIN", "FROM", "UNTIL", "AT"), _POINT),
    **dict.fromkeys(("WATTR", "RATTR", "PATTR"), _NAME),
    "ROWS": "the number of rows follows ROWS, as in ROWS 100",
    "ZONE": "the name of a zone follows ZONE, as in ZONE 'Europe/Berlin'",
    "SATTR": "row_num or rank(attribute) follows SATTR",
    "BY": "the names of columns follow PARTITION BY",
    "PARTITION": "write PARTITION BY",
    "LIFETIME": "how long each row lives follows LIFETIME, as in LIFETIME ttl SECONDS",
    "RANK": "write rank(attribute)",
    "START": "write UNBOUNDED START AT '…'",
}


def empty_window(span: Span) -> QueryError:
    return mistake(span, "this window is empty", "window-syntax", "write [UNBOUNDED] for all rows so far")


def unexpected(inside: Tokens, offset: int | None) -> QueryError:
    """The error of a bracket that does not follow the grammar, from where it stopped making sense."""
    index = inside.at(offset) if offset is not None else len(inside)
    if _is_misspelt(inside, index - 1):
        index -= 1
    if index >= len(inside):
        last = inside[len(inside) - 1]
        message, span = f"the window ends too early, after `{last.text}`", last.span
    else:
        message, span = f"unexpected `{inside[index].text}` in a window", inside[index].span
    return mistake(span, message, "window-syntax", _hint(inside, index))


def _is_misspelt(inside: Tokens, index: int) -> bool:
    """Whether a word was taken for a unit, and is none, but almost a part of a window: `RANGE 60 SLYDE 5`."""
    if index < 0 or inside[index].kind is not TokenKind.WORD or is_unit(inside[index].word):
        return False
    close = nearest(inside[index].word, PARTS)
    return inside[index].word not in PARTS and close is not None and close.startswith("did")


def _hint(inside: Tokens, index: int) -> str | None:
    before = inside.word(index - 1)
    if before in _WANTED:
        return _WANTED[before].format(before)
    if index >= len(inside):
        return None
    token = inside[index]
    if token.kind is TokenKind.WORD:
        return _word_hint(token.word, index)
    if token.kind is TokenKind.QUOTED or index == 0:
        return f"a window begins with {KINDS}; elements of arrays have no spelling"
    if token.word == "-" and inside[index - 1].is_name:
        return "quote names with a hyphen: `seg-id`"
    return "parts of a window follow each other without commas, as in [RANGE 5 MINUTES SLIDE 1 MINUTE]"


def _word_hint(word: str, index: int) -> str | None:
    if word == "FROM":
        return "FROM stands directly after LANDMARK"
    if word == "PARTITION":
        return "write PARTITION BY"
    if word == "GROUP":
        return "GROUP BY stands outside the bracket; partitions of a window are PARTITION BY"
    close = nearest(word, PARTS)
    if close and close.startswith("did"):
        return close
    if index == 0:
        return f"a window begins with {KINDS}"
    return "further parts are SLIDE, WATTR, PARTITION BY, ORIGIN, …"


Fields = dict[str, Any]
Parsed = Tree[Label]

_POINTS = ("origin", "start", "until")
_POINT_WORDS = {"origin": "ORIGIN", "landmark": "FROM", "until": "UNTIL"}
_TUPLES = {"TUPLE": "ROWS", "TUPLES": "ROWS"}
_HYPHENATED = {"row-num": "row_num", "arrival-ts": "arrival_ts"}


def clause_of(tree: Parsed, bracket: Tokens) -> WindowClause:
    """The clause that the parts say together."""
    fields: Fields = {}
    times: dict[str, tuple[str, Span]] = {}
    for part in tree.children:
        assert isinstance(part, Tree)
        found = _READERS[part.data](part)
        _refuse_repetition(fields, found, part)
        fields |= found
        times |= {name: found[name] for name in _POINTS if isinstance(found.get(name), tuple)}
    if "kind" not in fields:
        refuse(bracket, "this does not say which window it is", "window-syntax", f"add {KINDS}")
    if "zone" in fields and "origin" in times and literals.has_zone(times["origin"][0]):
        refuse(
            times["origin"][1],
            f"ORIGIN of a window with ZONE is what clocks show in '{fields['zone']}'",
            "window-origin",
            "leave the zone of ORIGIN out, as in ORIGIN '2024-01-31 07:00:00'",
        )
    return WindowClause(**(fields | _instants(times, fields.get("origin"))))


def points_of(tree: Parsed) -> tuple[PointSyntax, ...]:
    """How ORIGIN, FROM and UNTIL are written."""
    found = []
    for part in tree.children:
        assert isinstance(part, Tree)
        for point in (child for child in part.children if isinstance(child, Tree)):
            if part.data in _POINT_WORDS and point.data in ("point", "point_number"):
                is_time = point.data == "point" or _quantity(point).unit is not None
                found.append(PointSyntax(_span(point), _POINT_WORDS[part.data], is_time))
    return tuple(found)


def _refuse_repetition(known: Fields, found: Fields, part: Parsed) -> None:
    twice = next((name for name in found if name in known), None)
    if twice is None:
        return
    if twice == "kind" and known["kind"] != found["kind"]:
        message = f"this window is both {known['kind']} and {found['kind']}"
    else:
        word = known["kind"] if twice == "kind" else WORDS.get(twice, twice.upper())
        message = f"this window has two {word} parts"
    refuse(_span(part), message, "window-syntax", "leave one out")


def _instants(times: dict[str, tuple[str, Span]], origin: Any) -> dict[str, int]:
    """Points in time as microseconds; a bare time of day is on ORIGIN's date, 1970-01-01 if there is none."""
    day = 0
    if isinstance(origin, int):
        day = origin // literals.DAY * literals.DAY
    elif isinstance(origin, tuple):
        day = literals.instant(*origin) // literals.DAY * literals.DAY
    return {name: literals.instant(text, span, day) for name, (text, span) in times.items()}


# Readers, one for each rule.


def _sized(kind: str) -> Callable[[Parsed], Fields]:
    return lambda part: {"kind": kind, "range": _quantity(_child(part, "quantity"))}


def _landmark(part: Parsed) -> Fields:
    points = [child for child in part.children if isinstance(child, Tree)]
    return {"kind": "LANDMARK", **({"start": _point(points[0])} if points else {})}


def _attribute_field(name: str) -> Callable[[Parsed], Fields]:
    return lambda part: {name: _attribute(_child(part, "attribute"))}


def _sattr(part: Parsed) -> Fields:
    ranks = [child for child in part.children if isinstance(child, Tree) and child.data == "rank"]
    if ranks:
        return {"sattr": _attribute(_child(ranks[0], "attribute")), "sattr_rank": True}
    return {"sattr": _attribute(_child(part, "attribute"))}


def _partition_by(part: Parsed) -> Fields:
    columns = [child for child in part.children if isinstance(child, Tree)]
    return {"partition_by": tuple(_attribute(column) for column in columns)}


_READERS: dict[str, Callable[[Parsed], Fields]] = {
    "range": _sized("RANGE"),
    "rows": _sized("ROWS"),
    "session": _sized("SESSION"),
    "cumulate": _sized("CUMULATE"),
    "landmark": _landmark,
    "unbounded": lambda part: {"kind": "UNBOUNDED"},
    "now": lambda part: {"kind": "NOW"},
    "lifetime": lambda part: {"kind": "LIFETIME"},
    "slide": lambda part: {"slide": _quantity(_child(part, "quantity"))},
    "lag": lambda part: {"lag": _quantity(_child(part, "quantity"))},
    "origin": lambda part: {"origin": _point(part.children[-1])},
    "until": lambda part: {"until": _point(part.children[-1])},
    "wattr": _attribute_field("wattr"),
    "rattr": _attribute_field("rattr"),
    "sattr": _sattr,
    "partition_by": _partition_by,
    "internal": lambda part: {"internal": True},
    "zone": lambda part: {"zone": _text(_window_part_labels(part, "STRING")[0])},
    "inclusive": lambda part: {"inclusive": True},
}


# The pieces parts are made of.


def _quantity(part: Parsed) -> Quantity:
    minus, number, unit = (
        _window_part_labels(part, "MINUS"),
        _window_part_labels(part, "NUMBER")[0],
        _window_part_labels(part, "UNIT"),
    )
    value, suffix = literals.plain_number(number.value, _label_span(number))
    word = unit[0].value if unit else suffix
    with at(_label_span(unit[0]) if unit else _label_span(number)):
        return Quantity(-value if minus else value, _TUPLES.get(word.upper(), word) or None)


def _point(part: Any) -> int | Decimal | tuple[str, Span]:
    """A number, or the text of a point in time, which may still need a date."""
    if part.data == "point_number":
        quantity = _quantity(part)
        if quantity.unit:
            return quantity.ticks(Domain.TIME)
        value = int(quantity.value)
        if value != quantity.value:
            return Decimal(quantity.value)
        if abs(value) <= MAX_INT64:
            return value
        refuse(_span(part), f"{quantity} is not a 64-bit integer", "window-overflow")
    label = _window_part_labels(part, "STRING")[0]
    return _text(label), _label_span(label)


def _text(label: Label) -> str:
    return Token(TokenKind.STRING, label.value, 0, "").value


def _attribute(part: Parsed) -> str:
    names = _window_part_labels(part, "NAME")
    if len(names) == 1:
        return _name(names[0])
    written = "-".join(_name(label) for label in names)
    if written.lower() in _HYPHENATED:
        return _HYPHENATED[written.lower()]
    return written


def _name(label: Label) -> str:
    kind = TokenKind.QUOTED if label.value[0] in '`"' else TokenKind.WORD
    return Token(kind, label.value, 0, "").name


def _child(part: Parsed, rule: str) -> Parsed:
    return next(child for child in part.children if isinstance(child, Tree) and child.data == rule)


def _window_part_labels(part: Parsed, kind: str) -> list[Label]:
    return [child for child in part.children if isinstance(child, Label) and child.type == kind]


def _label_span(label: Label) -> Span:
    return Span(label.start_pos or 0, label.end_pos or 0)


def _span(part: Parsed) -> Span:
    labels = list(part.scan_values(lambda value: isinstance(value, Label)))
    return _label_span(labels[0]).to(_label_span(labels[-1]))


ReadExpression = Callable[[Tokens], Node]

_KEYWORDS = PARTS | {"BY", "AT", "START", "RANK", "FROM"}
#: words that are keywords only behind or before another
_ONLY_AFTER = {"BY": {"PARTITION"}, "AT": {"START"}}
_ONLY_BEFORE = {"START": {"AT"}, "RANK": {"("}, "PARTITION": {"BY"}}
_SIGNS = {"-": "MINUS", ",": "COMMA", "(": "OPEN", ")": "CLOSE"}
_KINDS = {
    TokenKind.STRING: "STRING",
    TokenKind.NUMBER: "NUMBER",
    TokenKind.QUOTED: "NAME",
    TokenKind.WORD: "NAME",
}
_AFTER_LIFETIME = {"WATTR", "INTERNAL"}


def parse_window(bracket: Tokens, expression: ReadExpression) -> WindowSyntax:
    """The window in a bracket, given with its `[` and `]`; `expression` reads that of a LIFETIME."""
    inside = bracket.cut(1, len(bracket) - 1)
    if not len(inside):
        raise empty_window(bracket.span)
    begin, end = _lifetime(inside)
    try:
        tree = _grammar().parse(_labels(inside, begin, end))
    except UnexpectedInput as error:
        token = getattr(error, "token", None)
        where = token.start_pos if token is not None and token.type != "$END" else None
        raise unexpected(inside, where) from None
    with at(bracket.span):
        window = WindowSyntax(bracket.span, clause_of(tree, bracket), points=points_of(tree))
    if window.clause.kind != "LIFETIME":
        return window
    return _with_lifetime(window, inside.cut(begin, end), expression)


@cache
def _grammar() -> Lark:
    text = files("windrow.language").joinpath("windows.lark").read_text(encoding="utf-8")
    return Lark(text, start="window", parser="lalr", lexer=_OwnTokens)


class _OwnTokens(Lexer):
    """Lark reads tokens that have their labels already."""

    def __init__(self, lexer_conf: Any) -> None:
        pass

    def lex(self, labels: Sequence[Label]) -> Iterator[Label]:  # type: ignore[override]
        return iter(labels)


def _lifetime(inside: Tokens) -> tuple[int, int]:
    """From where to where the expression of LIFETIME reaches; nowhere if there is none."""
    words = [token.word for token in inside]
    if "LIFETIME" not in words:
        return len(words), len(words)
    begin = words.index("LIFETIME") + 1
    depth = 0
    for end in range(begin, len(words)):
        depth += {"(": 1, ")": -1}.get(words[end], 0)
        if depth == 0 and words[end] in _AFTER_LIFETIME:
            return begin, end
    return begin, len(words)


def _labels(inside: Tokens, begin: int, end: int) -> list[Label]:
    found: list[Label] = []
    index = 0
    while index < len(inside):
        if begin <= index < end:
            covered = inside.cut(begin, end).span
            found.append(Label("EXPRESSION", "", start_pos=covered.start, end_pos=covered.end))
            index = end
            continue
        if _is_plain_interval(inside, index):
            found += [_number(inside[index + 1]), _label(inside, index + 2, "UNIT")]
            index += 3
            continue
        interval = lift_literals.interval_at(inside, index)
        if interval is not None:
            found += _interval(inside.cut(index, interval[1] + 1), interval[0])
            index = interval[1] + 1
            continue
        found.append(_label(inside, index))
        index += 1
    return found


def _is_plain_interval(inside: Tokens, index: int) -> bool:
    """INTERVAL '1' MONTH, which is a number and a unit; a day of it is one of the calendar."""
    written = inside.word(index) == "INTERVAL" and inside.is_kind(index + 1, TokenKind.STRING)
    if not written or not is_unit(inside.word(index + 2)) or inside.word(index + 3) == "TO":
        return False
    return inside[index + 1].value.strip().isdigit()


def _number(token: Token) -> Label:
    return Label("NUMBER", token.value.strip(), start_pos=token.start, end_pos=token.end)


def _interval(written: Tokens, ticks: int) -> list[Label]:
    """INTERVAL '5' MINUTE as a number with its unit."""
    span = written.span
    sign = [Label("MINUS", "-", start_pos=span.start, end_pos=span.end)] if ticks < 0 else []
    number = Label("NUMBER", str(abs(ticks)), start_pos=span.start, end_pos=span.end)
    return [*sign, number, Label("UNIT", "MICROSECONDS", start_pos=span.start, end_pos=span.end)]


def _label(inside: Tokens, index: int, kind: str | None = None) -> Label:
    token = inside[index]
    return Label(kind or _type(inside, index), token.text, start_pos=token.start, end_pos=token.end)


def _type(inside: Tokens, index: int) -> str:
    token, before, after = inside[index], inside.word(index - 1), inside.word(index + 1)
    word = token.word
    if word in _SIGNS:
        return _SIGNS[word]
    if word in ("TIMESTAMP", "DATE") and inside.is_kind(index + 1, TokenKind.STRING):
        return word
    if token.kind is TokenKind.WORD and _follows_number(inside, index):
        return "UNIT"
    placed_right = before in _ONLY_AFTER.get(word, {before}) and after in _ONLY_BEFORE.get(word, {after})
    return word if word in _KEYWORDS and placed_right else _KINDS.get(token.kind, "SIGN")


def _follows_number(inside: Tokens, index: int) -> bool:
    """A word after a number is its unit, unless it begins the next part; ROWS there is a unit."""
    if index == 0 or inside[index - 1].kind is not TokenKind.NUMBER:
        return False
    return inside.word(index) not in _KEYWORDS - {"ROWS"}


def _with_lifetime(window: WindowSyntax, written: Tokens, expression: ReadExpression) -> WindowSyntax:
    """LIFETIME of an expression, perhaps followed by the unit of its value."""
    counted = _number_with_unit(written)
    if counted is not None:
        value, unit, span = counted
    elif _ends_in_unit(written):
        value, last = expression(written.cut(0, len(written) - 1)), written[len(written) - 1]
        unit, span = last.word, last.span
    else:
        return replace(window, lifetime=expression(written))
    with at(span):
        scale = MICROSECONDS.get(unit_name(unit))
    if scale is None:
        refuse(
            span, "a LIFETIME is a time, not a number of rows", "window-unit", "the last n rows are [ROWS n]"
        )
    value, scale = _whole(value, scale)
    return _scaled(window, value, scale)


def _scaled(window: WindowSyntax, value: Node, scale: int) -> WindowSyntax:
    clause: WindowClause = replace(window.clause, lifetime_scale=scale)
    return replace(window, clause=clause, lifetime=value)


def _whole(value: Node, scale: int) -> tuple[Node, int]:
    """`2.5 MINUTES` as a whole number of microseconds."""
    if isinstance(value, Constant) and value.kind == "NUMBER" and not value.value.isdigit():
        ticks = Decimal(value.value) * scale
        if ticks == ticks.to_integral_value() and abs(ticks) < 2**63:
            return replace(value, value=str(int(ticks))), 1
    return value, scale


def _number_with_unit(written: Tokens) -> tuple[Node, str, Span] | None:
    """`5s`, where the unit looks like the suffix of a type; in a window it is a unit."""
    if len(written) != 1 or written[0].kind is not TokenKind.NUMBER or written[0].text[-1] not in "sSdD":
        return None
    number = written[0]
    value, unit = literals.plain_number(number.text, number.span)
    return Constant(number.span, str(value), "NUMBER"), unit, number.span


def _ends_in_unit(written: Tokens) -> bool:
    """Whether the last word stands behind a whole expression, and is not the end of an interval."""
    last = len(written) - 1
    if not written.is_kind(last, TokenKind.WORD) or vocabulary.is_keyword(written, last):
        return False
    behind = vocabulary.ends_operand(written, last - 1) and written.word(last - 1) != "*"
    return behind and not lift_literals.ends_interval(written, last)
