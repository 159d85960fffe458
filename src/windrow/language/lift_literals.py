"""Literals and types that are more than one token: INTERVAL '5' SECOND, X'1F', CAST(x AS DECIMAL(10,2)).

Also here: calls with keywords between their arguments, which become plain calls (`EXTRACT(HOUR FROM ts)`).

Reading statements token by token: what is there, what must be there, what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, NoReturn

from windrow.credentials import refuse_literals
from windrow.errors import Span, nearest
from windrow.language.literals import CALENDAR, interval, plain_number
from windrow.language.shape import MAX_DEPTH, too_deep, unexpected
from windrow.language.tokens import Token, TokenKind, Tokens, at, refuse
from windrow.language.vocabulary import begins_operand, is_keyword
from windrow.windows.domain import Quantity, is_unit, unit_name

if TYPE_CHECKING:
    from windrow.language.lift import Lifted


_TIMES = {"DATE": "DATE", **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"), "TIMESTAMP")}
_SIDES = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")
_CONSTANTS = {"TRUE": (True, "BOOLEAN"), "FALSE": (False, "BOOLEAN"), "NULL": (None, "NULL")}


def lift_literals(lifted: Lifted) -> None:
    tokens = lifted.tokens
    for index, token in enumerate(tokens):
        if token.word in _LIFTERS and tokens.word(index - 1) != "." and index not in lifted.swapped:
            _LIFTERS[token.word](lifted, index)


def _constant(lifted: Lifted, index: int) -> None:
    tokens = lifted.tokens
    if "IS" in (tokens.word(index - 1), *tokens.words(index - 2, 1)) or tokens.word(index + 1) == ".":
        return
    value, kind = _CONSTANTS[tokens.word(index)]
    lifted.atom(index, index, value, kind)


def _time(lifted: Lifted, index: int) -> None:
    tokens = lifted.tokens
    if tokens.is_kind(index + 1, TokenKind.STRING):
        lifted.atom(index, index + 1, tokens[index + 1].value, _TIMES[tokens.word(index)])


def _bytes(lifted: Lifted, index: int) -> None:
    """X'1F', with Spark's zero before an odd number of digits."""
    tokens = lifted.tokens
    if not tokens.is_kind(index + 1, TokenKind.STRING):
        return
    digits = tokens[index + 1].value
    if not set(digits) <= _HEXADECIMAL:
        span = tokens[index].span.to(tokens[index + 1].span)
        refuse(span, "these are no bytes", "bad-binary", "write hexadecimal digits, as in X'1F'")
    lifted.atom(index, index + 1, bytes.fromhex("0" * (len(digits) % 2) + digits), "BINARY")


def _interval(lifted: Lifted, index: int) -> None:
    found = interval_at(lifted.tokens, index)
    if found is not None:
        lifted.atom(index, found[1], found[0], "INTERVAL")


def interval_at(tokens: Tokens, index: int) -> tuple[int, int] | None:
    """The microseconds of the INTERVAL at an index and its last token; None if there is none."""
    amounts = list(_amounts(tokens, index))
    if not amounts:
        return None
    _, _, last = amounts[-1]
    span = tokens[index].span.to(tokens[last].span)
    total = sum(interval(text, units, span) for text, units, _ in amounts)
    return -total if tokens.word(index + 1) == "-" else total, last


def ends_interval(tokens: Tokens, last: int) -> bool:
    """Whether a word is the last unit of an interval, or of its type."""
    intervals = (list(_amounts(tokens, index)) for index in range(last))
    return tokens.word(last - 1) == "TO" or any(amounts[-1][2] == last for amounts in intervals if amounts)


def _amounts(tokens: Tokens, index: int) -> Iterator[tuple[str, tuple[str, ...], int]]:
    """The amounts of the INTERVAL at an index, if there is one: their texts, units and last tokens."""
    if tokens.word(index) != "INTERVAL":
        return
    index += 2 if tokens.word(index + 1) in ("-", "+") else 1
    more = tokens.is_kind(index, TokenKind.STRING, TokenKind.NUMBER)
    while more:
        token, units = tokens[index], _units(tokens, index + 1)
        index += {0: 0, 1: 1, 2: 3}[len(units)]
        yield token.value if token.kind is TokenKind.STRING else token.text, units, index
        index += 1
        more = bool(units) and tokens.is_kind(index, TokenKind.NUMBER) and bool(_units(tokens, index + 1))


def _units(tokens: Tokens, index: int) -> tuple[str, ...]:
    """`SECOND`, `DAY TO SECOND` or nothing."""
    if not _is_unit(tokens, index):
        return ()
    if tokens.word(index + 1) == "TO" and _is_unit(tokens, index + 2):
        return tokens.word(index), tokens.word(index + 2)
    return (tokens.word(index),)


def _is_unit(tokens: Tokens, index: int) -> bool:
    word = tokens.word(index)
    is_time = word in CALENDAR or (is_unit(word) and unit_name(word) != "ROWS")
    return is_time and tokens.is_kind(index, TokenKind.WORD)


def _cast(lifted: Lifted, index: int) -> None:
    tokens = lifted.tokens
    if tokens.word(index + 1) != "(":
        return
    close = tokens.partner[index + 1]
    (as_at,) = _in_call(tokens, index, "AS")[-1:] or (None,)
    if as_at is None or as_at + 1 == close or not tokens[as_at + 1].is_name:
        refuse(
            tokens[index].span.to(tokens[close].span),
            f"{tokens.word(index)} does not say which type",
            "bad-cast",
            f"write {tokens.word(index)}(x AS BIGINT)",
        )
    lifted.swapped[as_at] = ","
    lifted.types[tokens[index].start] = lifted.cover(as_at + 1, close - 1)


def _postfix_cast(lifted: Lifted, index: int) -> None:
    tokens = lifted.tokens
    typed = tokens.is_kind(index + 1, TokenKind.WORD) and not is_keyword(tokens, index + 1)
    if not typed or len(tokens[index + 1].text) < 3:
        refuse(tokens[index], "a type follows `::`", "bad-cast", "write x::BIGINT or CAST(x AS BIGINT)")
    last = tokens.partner[index + 2] if tokens.word(index + 2) == "(" else index + 1
    if tokens.word(last + 1) == "(":
        raise unexpected(tokens, tokens[last + 1].start)
    lifted.casts[last] = lifted.casts.get(index - 1, 0) + 1
    if lifted.casts[last] > MAX_DEPTH:
        raise too_deep(tokens[index].span)
    lifted.swapped[index + 1] = "INT"
    lifted.blank(*range(index + 2, last + 1))
    lifted.types[tokens[index].start] = tokens[index + 1].span.to(tokens[last].span)


def _extract(lifted: Lifted, index: int) -> None:
    tokens = lifted.tokens
    if tokens.word(index + 1) == "(" and tokens.word(index + 3) == "FROM":
        _comma(lifted, index + 3)
        unit = tokens[index + 2]
        text = unit.value if unit.kind is TokenKind.STRING else unit.name
        lifted.atom(index + 2, index + 2, text.upper(), "STRING")


def _substring(lifted: Lifted, index: int) -> None:
    for found in _in_call(lifted.tokens, index, "FROM", "FOR"):
        _comma(lifted, found)


def _comma(lifted: Lifted, index: int) -> None:
    """A keyword between arguments becomes a comma, if an argument follows."""
    after = index + 1
    if not (begins_operand(lifted.tokens, after) or lifted.tokens.word(after) in ("-", "+", "~")):
        raise unexpected(lifted.tokens, lifted.tokens[after].start)
    lifted.swapped[index] = ","


def _trim(lifted: Lifted, index: int) -> None:
    """`TRIM(LEADING 'k' FROM x)` is `ltrim('k', x)`."""
    tokens = lifted.tokens
    found = _in_call(tokens, index, "FROM")
    if not found:
        return
    side, from_at = index + 2, found[0]
    if tokens.word(side) in _SIDES and (begins_operand(tokens, side + 1) or side + 1 == from_at):
        lifted.functions[tokens[index].start] = _SIDES[tokens.word(side)]
        lifted.blank(side)
    if side + 1 == from_at and side in lifted.swapped:
        lifted.blank(from_at)
    else:
        _comma(lifted, from_at)


def _to_unit(lifted: Lifted, index: int) -> None:
    """`FLOOR(ts TO HOUR)` is `floor_to(ts, 'HOUR')`."""
    tokens = lifted.tokens
    found = _in_call(tokens, index, "TO")
    if found and found[-1] + 2 == tokens.partner[index + 1]:
        lifted.swapped[found[-1]] = ","
        unit = found[-1] + 1
        lifted.atom(unit, unit, tokens[unit].name.upper(), "STRING")
        lifted.functions[tokens[index].start] = "floor_to" if tokens.word(index) == "FLOOR" else "ceil_to"


def _unit_first(lifted: Lifted, index: int) -> None:
    """`TIMESTAMPDIFF(MINUTE, a, b)`: the unit as a text."""
    tokens = lifted.tokens
    three = len(_in_call(tokens, index, ",")) == 2
    unit = tokens.word(index + 2)
    if three and tokens.word(index + 3) == "," and (unit in CALENDAR or _is_unit(tokens, index + 2)):
        lifted.atom(index + 2, index + 2, tokens[index + 2].name.upper(), "STRING")


def _position(lifted: Lifted, index: int) -> None:
    """`POSITION('a' IN x)` is `position('a', x)`."""
    for found in _in_call(lifted.tokens, index, "IN")[:1]:
        _comma(lifted, found)


def _symmetric(lifted: Lifted, index: int) -> None:
    """`BETWEEN SYMMETRIC 3 AND 1`."""
    tokens = lifted.tokens
    if tokens.word(index + 1) in ("SYMMETRIC", "ASYMMETRIC") and begins_operand(tokens, index + 2):
        lifted.blank(index + 1)
        if tokens.word(index + 1) == "SYMMETRIC":
            lifted.symmetric.add(tokens[index].start)


def _in_call(tokens: Tokens, index: int, *words: str) -> list[int]:
    """The indexes of these words directly inside the parenthesis of a call; none without one."""
    if tokens.word(index + 1) != "(":
        return []
    inside = tokens.outside(index + 2, tokens.partner[index + 1])
    return [at for at in inside if tokens.word(at) in words]


_LIFTERS = {
    **dict.fromkeys(_CONSTANTS, _constant),
    **dict.fromkeys(_TIMES, _time),
    "X": _bytes,
    "INTERVAL": _interval,
    **dict.fromkeys(("CAST", "TRY_CAST", "SAFE_CAST"), _cast),
    "::": _postfix_cast,
    "EXTRACT": _extract,
    **dict.fromkeys(("SUBSTRING", "SUBSTR"), _substring),
    "TRIM": _trim,
    **dict.fromkeys(("FLOOR", "CEIL", "CEILING"), _to_unit),
    **dict.fromkeys(("TIMESTAMPDIFF", "TIMESTAMPADD", "DATEDIFF", "DATE_DIFF", "DATEADD"), _unit_first),
    "POSITION": _position,
    "BETWEEN": _symmetric,
}


class Cursor:
    """A place in a statement's tokens."""

    def __init__(self, tokens: Tokens, index: int = 0) -> None:
        self.tokens = tokens
        self.index = index

    @property
    def done(self) -> bool:
        return self.index >= len(self.tokens)

    @property
    def here(self) -> Token:
        return self.tokens[self.index]

    @property
    def word(self) -> str:
        """The keyword or sign that comes next; nothing at the end."""
        return self.tokens.word(self.index)

    def step(self) -> Token:
        """Step over a token, whatever it is."""
        self.index += 1
        return self.tokens[self.index - 1]

    def next_is(self, *words: str) -> bool:
        return self.tokens.words(self.index, len(words)) == words

    def take(self, *words: str) -> bool:
        """Step over these words, if they come next."""
        if not self.next_is(*words):
            return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        """Step over words that must come next."""
        for word in words:
            if not self.take(word):
                self.fail(f"`{word}`", [word])

    def choose(self, words: Collection[str], what: str, instead: Mapping[str, str] | None = None) -> str:
        """Step over one of these words; `instead` has hints for others."""
        if self.word not in words:
            self.fail(what, words, (instead or {}).get(self.word))
        return self.step().word

    def name(self, what: str) -> str:
        if self.done or not self.here.is_name:
            self.fail(what)
        return self.step().name

    def string(self, what: str) -> str:
        if self.done or self.here.kind is not TokenKind.STRING:
            self.fail(f"{what}, in single quotes,", hint="write '…'")
        return self.step().value

    def url(self, what: str) -> str:
        """Step over the text of a source or a sink. It is written down, so it holds no secret."""
        text = self.string(what)
        refuse_literals(text, self.tokens[self.index - 1].span)
        return text

    def whole(self, what: str) -> int:
        sign = -1 if self.take("-") else 1
        if self.done or not self.here.text.isdecimal() or len(self.here.text) > 18:
            self.fail(what)
        return sign * int(self.step().text)

    def quantity(self, what: str, then: Collection[str] = ()) -> Quantity:
        """Step over a number with its unit, or an INTERVAL; the words `then` are no units but come next."""
        interval = interval_at(self.tokens, self.index)
        if interval is not None:
            self.index = interval[1] + 1
            return Quantity(interval[0], "MICROSECONDS")
        if self.done or self.here.kind is not TokenKind.NUMBER:
            self.fail(what)
        number = self.step()
        value, unit = plain_number(number.text, number.span)
        if not unit and self.word not in then and self.tokens.is_kind(self.index, TokenKind.WORD):
            unit = self.step().text
        with at(self.tokens[self.index - 1].span):
            return Quantity(value, unit or None)

    def parenthesis(self) -> Tokens:
        """Step over a parenthesis; what is inside."""
        if self.word != "(":
            self.fail("`(`")
        inside = self.tokens.inside(self.index)
        self.index = self.tokens.partner[self.index] + 1
        return inside

    def until(self, words: Collection[str], what: str) -> Tokens:
        """Step to the first of these words that is not inside parentheses or CASE; what is before it."""
        begin, cases = self.index, 0
        while not self.done and (cases or self.word not in words):
            cases += {"CASE": 1, "END": -1}.get(self.word, 0)
            self.index = self.tokens.partner[self.index] + 1 if self.word == "(" else self.index + 1
        if self.index == begin:
            self.fail(what)
        return self.tokens.cut(begin, self.index)

    def upto(self, ends: Callable[[Cursor], bool]) -> Tokens:
        """Step to where that holds, outside of parentheses; what is before it."""
        begin = self.index
        while not self.done and not ends(self):
            self.index = self.tokens.partner[self.index] + 1 if self.word == "(" else self.index + 1
        return self.tokens.cut(begin, self.index)

    def span_since(self, begin: int) -> Span:
        """From the token at an index through the last one stepped over."""
        return self.tokens[begin].span.to(self.tokens[max(begin, self.index - 1)].span)

    def finish(self) -> None:
        """Nothing may be left."""
        if not self.done:
            message = f"unexpected `{self.here.text}`"
            refuse(self.here, message, "syntax", "remove it")

    def fail(self, wanted: str, words: Collection[str] = (), hint: str | None = None) -> NoReturn:
        """Something else should be here; `words` are those it may have been meant to be."""
        after = f"after `{self.tokens[self.index - 1].text}` " if self.index else ""
        message = f"{after}{wanted} should follow"
        if self.done:
            span = self.tokens[self.index - 1].span if self.index else self.tokens.span
            refuse(span, message, "syntax", hint or "complete it")
        close = nearest(self.here.text, words) if words else None
        hint = close if close and close.startswith("did") else hint
        refuse(self.here, f"{message}, not `{self.here.text}`", "syntax", hint)
