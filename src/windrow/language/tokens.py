"""Tokens of a text: what each is, where it stands, which parenthesis closes which; errors about a place.

Text to tokens: the one place that knows strings, quoted names, comments and numbers.

Everything after it, from splitting a script at `;` to finding window brackets, looks at tokens and so
cannot be fooled by a `;` inside a string. What is too long is refused first.

>>> [token.text for token in scan("SELECT 'a;b' -- it's").items]
['SELECT', "'a;b'"]
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import NoReturn, Protocol

from windrow.errors import QueryError, Span


class Placed(Protocol):
    """Something with a place in the text: a token, a piece of syntax."""

    @property
    def span(self) -> Span: ...


def mistake(place: Placed | Span, message: str, code: str, hint: str | None = None) -> QueryError:
    """What is wrong with a piece of the text."""
    return QueryError(message, code=code, span=place if isinstance(place, Span) else place.span, hint=hint)


def refuse(place: Placed | Span, message: str, code: str, hint: str | None = None) -> NoReturn:
    """Say what is wrong with a piece of the text."""
    raise mistake(place, message, code, hint)


@contextmanager
def at(place: Placed | Span) -> Iterator[None]:
    """Errors without a place, raised inside, are about this one; of several around, the innermost.

    Plan nodes, windows and functions refuse what has no meaning, but know no text.

    >>> try:
    ...     with at(Span(0, 9)), at(Span(4, 5)):
    ...         raise QueryError("no")
    ... except QueryError as error:
    ...     print(error.span)
    Span(start=4, end=5)
    """
    try:
        yield
    except QueryError as error:
        if error.span is None and error.text is None:
            error.span = place if isinstance(place, Span) else place.span
        raise


class TokenKind(Enum):
    """What a token is."""

    WORD = "word"
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"


@dataclass(frozen=True)
class Token:
    """A piece of the text; `word` is it in capitals, so that quoted names are never keywords."""

    kind: TokenKind
    text: str
    start: int
    word: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)

    @property
    def is_name(self) -> bool:
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED)

    @property
    def name(self) -> str:
        """The name without its quotes."""
        if self.kind is not TokenKind.QUOTED:
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    @property
    def value(self) -> str:
        """What a string stands for."""
        return _ESCAPE.sub(_unescaped, self.text[1:-1])


@dataclass(frozen=True)
class Tokens:
    """A stretch of tokens of a text, with what stands where."""

    text: str
    items: tuple[Token, ...]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Token]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Token:
        return self.items[index]

    def cut(self, start: int, end: int) -> Tokens:
        """The tokens from one index up to another."""
        return Tokens(self.text, self.items[start:end])

    def word(self, index: int) -> str:
        """The keyword or sign at an index; nothing outside."""
        return self.items[index].word if 0 <= index < len(self.items) else ""

    def words(self, index: int, count: int) -> tuple[str, ...]:
        return tuple(self.word(index + step) for step in range(count))

    def is_kind(self, index: int, *kinds: TokenKind) -> bool:
        """Whether the token at an index is of one of these kinds; none is outside."""
        return 0 <= index < len(self.items) and self.items[index].kind in kinds

    def between(self, first: int, last: int) -> str:
        """The text from one token through another."""
        return self.text[self.items[first].start : self.items[last].end]

    def inside(self, open_at: int) -> Tokens:
        """What stands in the parenthesis that opens at an index."""
        return self.cut(open_at + 1, self.partner[open_at])

    def find(self, *words: str, begin: int = 0) -> int | None:
        """The index of the first of these words from an index on."""
        return next((index for index in range(begin, len(self)) if self.word(index) in words), None)

    def outside(self, begin: int = 0, end: int | None = None) -> Iterator[int]:
        """The indexes from one up to another, of a parenthesis only that of `(`."""
        index, end = begin, len(self) if end is None else end
        while index < end:
            yield index
            index = self.partner[index] + 1 if self.word(index) == "(" else index + 1

    def outwards(self, index: int) -> Iterator[int]:
        """The indexes before one, backwards, of a parenthesis only that of `)`."""
        while index > 0:
            index -= 1
            yield index
            index = self.partner[index] if self.word(index) == ")" else index

    @property
    def span(self) -> Span:
        """Where the stretch is; just after the text if it is empty."""
        if not self.items:
            end = len(self.text.rstrip())
            return Span(end, end + 1)
        return self.items[0].span.to(self.items[-1].span)

    @cached_property
    def _starts(self) -> list[int]:
        return [token.start for token in self.items]

    def at(self, offset: int) -> int:
        """The index of the first token at or after an offset."""
        return bisect_left(self._starts, offset)

    def before(self, offset: int) -> int:
        """The index of the last token that starts before an offset; -1 if none does."""
        return bisect_left(self._starts, offset) - 1

    def around(self, offset: int) -> int:
        """The index of the token an offset falls into or behind."""
        return max(0, bisect_right(self._starts, offset) - 1)

    @cached_property
    def partner(self) -> dict[int, int]:
        """Of each opening parenthesis or bracket the closing one, and back."""
        return _pairs(self)


_ESCAPE = re.compile(r"''|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})|\\(.)", re.DOTALL)
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def _unescaped(match: re.Match[str]) -> str:
    """As Spark reads escapes; `\\%` and `\\_` are left to LIKE."""
    code = match[1] or match[2]
    if code:
        number = int(code, 16)
        surrogate = 0xD800 <= number <= 0xDFFF
        return chr(number) if number <= 0x10FFFF and not surrogate else match[0]
    character = match[3]
    return "'" if character is None else _CONTROLS.get(character, character)


_CLOSES = {")": "(", "]": "["}


def _pairs(tokens: Tokens) -> dict[int, int]:
    found: dict[int, int] = {}
    waiting: list[int] = []
    for index, token in enumerate(tokens):
        if token.word in _CLOSES.values():
            waiting.append(index)
        elif token.word in _CLOSES:
            if not waiting or tokens[waiting[-1]].word != _CLOSES[token.word]:
                raise _unpaired(token, tokens[waiting[-1]] if waiting else None)
            found[index] = waiting.pop()
            found[found[index]] = index
    if waiting:
        raise _unpaired(tokens[waiting[-1]], None)
    return found


def _unpaired(token: Token, other: Token | None) -> QueryError:
    if other is not None:
        message, hint = f"`{token.text}` closes a `{other.text}`", f"close the `{other.text}` first"
    elif token.word in _CLOSES:
        message, hint = (
            f"`{token.text}` closes nothing",
            f"remove it, or open a `{_CLOSES[token.word]}` before",
        )
    else:
        message, hint = f"`{token.text}` is never closed", f"add a `{')' if token.word == '(' else ']'}`"
    return mistake(token, message, "unbalanced", hint)


MAX_TEXT = 1_000_000
MAX_TOKENS = 10_000


def scan(text: str) -> Tokens:
    """All tokens of a text; what cannot be part of any statement is refused."""
    if len(text) > MAX_TEXT:
        refuse(
            Span(0, 1),
            f"the text is longer than {MAX_TEXT:,} characters",
            "too-large",
            "put data into a table or stream, not into the statement",
        )
    found: list[Token] = []
    statement = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind in _KINDS:
            found.append(_token(_KINDS[kind], match[0], match.start()))
            statement = len(found) if found[-1].word == ";" else statement
            if len(found) - statement > MAX_TOKENS:
                refuse(
                    found[-1],
                    f"the statement has more than {MAX_TOKENS:,} words and signs",
                    "too-large",
                    "put long lists of values into a table and join it",
                )
        elif match[0] == ":" and _is_in_struct(found):
            found.append(_token(TokenKind.SIGN, ":", match.start()))
        elif kind == "hint":
            refuse(
                Span(match.start(), match.start() + 3),
                "optimizer hints are not understood",
                "not-supported",
                "leave out the /*+ … */; EXPLAIN shows what Windrow chose",
            )
        elif kind != "space":
            raise (_never_closed if kind == "open" else _strange)(match)
    return Tokens(text, tuple(found))


def _is_in_struct(found: list[Token]) -> bool:
    """Whether the last token may be the name of a field, as in STRUCT<name: STRING>."""
    depth = 0
    for token in reversed(found[-200:]):
        depth += {">": 1, ">>": 2, "<": -1}.get(token.word, 0)
        if depth < 0:
            return True
    return False


_KINDS = {kind.name.lower(): kind for kind in TokenKind}
_TOKEN = re.compile(
    r"""
      (?P<space>   \s++ | --[^\n]*+ | /\*(?!\+)(?s:.)*?\*/ )
    | (?P<number>  (?: [0-9]++ (?:\.(?!\.)[0-9]*+)? | \.[0-9]++ ) (?:[eE][+-]?[0-9]++)?
                   (?: (?:BD|[LSYDF]) (?!\w) )? )
    | (?P<word>    [^\W\d]\w*+ )
    | (?P<string>  '(?: [^'\\]++ | \\(?s:.) | '' )*+' )
    | (?P<quoted>  `(?: [^`]++ | `` )++` | "(?: [^"]++ | "" )++" )
    | (?P<hint>    /\*\+ )
    | (?P<open>    /\* | ['"`] )
    | (?P<sign>    <=> | <> | != | == | <= | >= | << | >> | \|\| | :: | [-+*/%=<>!|&^~().,;\[\]] )
    | (?P<strange> (?s:.) )
    """,
    re.VERBOSE | re.IGNORECASE,
)


def _token(kind: TokenKind, text: str, start: int) -> Token:
    return Token(kind, text, start, text.upper() if kind in (TokenKind.WORD, TokenKind.SIGN) else "")


_NEVER_CLOSED = {
    "/*": ("this comment never ends", "close it with */"),
    "'": ("this string never ends", "close it with '; a quote inside a string is written ''"),
    '"': ("this quoted name never ends", 'close it with "; strings stand in single quotes'),
    "`": ("this quoted name never ends", "close it with `"),
}


def _never_closed(match: re.Match[str]) -> QueryError:
    quotes = match.string[match.start() : match.start() + 3]
    if match[0] in '"`' and quotes[:2] == match[0] * 2 and quotes != match[0] * 3:
        return mistake(
            Span(match.start(), match.start() + 2),
            "a name cannot be empty",
            "unreadable",
            "an empty string is written ''",
        )
    message, hint = _NEVER_CLOSED[match[0]]
    end = match.string.find("\n", match.start())
    return mistake(Span(match.start(), end if end > 0 else len(match.string)), message, "unterminated", hint)


def _strange(match: re.Match[str]) -> QueryError:
    character = match[0]
    shown = f"`{character}`" if character.isprintable() else f"U+{ord(character):04X}"
    return mistake(
        Span(match.start(), match.end()),
        f"the character {shown} means nothing here",
        "unreadable",
        _STRANGE.get(character, "strings stand in '…', unusual names in `…`"),
    )


_STRANGE = {
    "\0": "the text holds a NUL character: is it a binary file?",
    "?": "there are no parameters: write the value itself",
    "@": "there are no variables: write the value itself",
    "$": "there are no parameters: write the value itself",
    ":": "there are no parameters; a cast is written x::TYPE or CAST(x AS TYPE)",
    "‘": "strings stand in straight quotes, '…'",
    "’": "strings stand in straight quotes, '…'",
    "“": 'quoted names stand in straight quotes, `…` or "…"',
    "”": 'quoted names stand in straight quotes, `…` or "…"',
    "–": "this is a dash, not a minus sign",
}
