"""The inside of a window bracket: `[RANGE 5 MINUTES SLIDE 1 MINUTE WATTR ts]`.

`windows.lark` is the grammar; this module labels the tokens of a bracket for it. The spellings of the
papers are read here and in `window_parts`, and nowhere else: `row-num`, `PATTR`, `WINDOW` for RANGE,
`UNBOUNDED START AT` for LANDMARK FROM, tuples for rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark
from lark import Token as Label
from lark.exceptions import UnexpectedInput
from lark.lexer import Lexer

from windrow.errors import QueryError, Span
from windrow.language.lift_literals import ends_interval, interval_at
from windrow.language.numbers import plain_number
from windrow.language.places import placed
from windrow.language.syntax import Constant, Node, WindowSyntax
from windrow.language.tokens import Kind, Tokens
from windrow.language.vocabulary import ends_operand, is_keyword
from windrow.language.window_errors import PARTS, empty_window, unexpected
from windrow.language.window_parts import clause_of, points_of
from windrow.windows.bracket import WindowClause
from windrow.windows.units import MICROSECONDS, unit_name

ReadExpression = Callable[[Tokens], Node]

_KEYWORDS = PARTS | {"BY", "AT", "START", "RANK", "FROM"}
#: words that are keywords only behind or before another
_ONLY_AFTER = {"BY": {"PARTITION"}, "AT": {"START"}}
_ONLY_BEFORE = {"START": {"AT"}, "RANK": {"("}, "PARTITION": {"BY"}}
_SIGNS = {"-": "MINUS", ",": "COMMA", "(": "OPEN", ")": "CLOSE"}
_KINDS = {Kind.STRING: "STRING", Kind.NUMBER: "NUMBER", Kind.QUOTED: "NAME", Kind.WORD: "NAME"}
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
    with placed(bracket.span):
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
        interval = interval_at(inside, index)
        if interval is not None:
            found += _interval(inside.cut(index, interval[1] + 1), interval[0])
            index = interval[1] + 1
            continue
        found.append(_label(inside, index))
        index += 1
    return found


def _interval(written: Tokens, ticks: int) -> list[Label]:
    """INTERVAL '5' MINUTE as a number with its unit."""
    span = written.span
    sign = [Label("MINUS", "-", start_pos=span.start, end_pos=span.end)] if ticks < 0 else []
    number = Label("NUMBER", str(abs(ticks)), start_pos=span.start, end_pos=span.end)
    return [*sign, number, Label("UNIT", "MICROSECONDS", start_pos=span.start, end_pos=span.end)]


def _label(inside: Tokens, index: int) -> Label:
    token = inside[index]
    return Label(_type(inside, index), token.text, start_pos=token.start, end_pos=token.end)


def _type(inside: Tokens, index: int) -> str:
    token, before, after = inside[index], inside.word(index - 1), inside.word(index + 1)
    word = token.word
    if word in _SIGNS:
        return _SIGNS[word]
    if word in ("TIMESTAMP", "DATE") and inside.is_kind(index + 1, Kind.STRING):
        return word
    if token.kind is Kind.WORD and _follows_number(inside, index):
        return "UNIT"
    placed_right = before in _ONLY_AFTER.get(word, {before}) and after in _ONLY_BEFORE.get(word, {after})
    return word if word in _KEYWORDS and placed_right else _KINDS.get(token.kind, "SIGN")


def _follows_number(inside: Tokens, index: int) -> bool:
    """A word after a number is its unit, unless it begins the next part; ROWS there is a unit."""
    if index == 0 or inside[index - 1].kind is not Kind.NUMBER:
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
    with placed(span):
        scale = MICROSECONDS.get(unit_name(unit))
    if scale is None:
        raise QueryError(
            "a LIFETIME is a time, not a number of rows",
            code="window-unit",
            span=span,
            hint="the last n rows are [ROWS n]",
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
    if len(written) != 1 or written[0].kind is not Kind.NUMBER or written[0].text[-1] not in "sSdD":
        return None
    number = written[0]
    value, unit = plain_number(number.text, number.span)
    return Constant(number.span, str(value), "NUMBER"), unit, number.span


def _ends_in_unit(written: Tokens) -> bool:
    """Whether the last word stands behind a whole expression, and is not the end of an interval."""
    last = len(written) - 1
    if not written.is_kind(last, Kind.WORD) or is_keyword(written, last):
        return False
    behind = ends_operand(written, last - 1) and written.word(last - 1) != "*"
    return behind and not ends_interval(written, last)
