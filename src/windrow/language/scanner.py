"""Text to tokens: the one place that knows strings, quoted names, comments and numbers.

Everything after it, from splitting a script at `;` to finding window brackets, looks at tokens and so
cannot be fooled by a `;` inside a string. What is too long is refused first.

>>> [token.text for token in scan("SELECT 'a;b' -- it's").items]
['SELECT', "'a;b'"]
"""

from __future__ import annotations

import re

from windrow.errors import QueryError, Span
from windrow.language.tokens import Kind, Token, Tokens

MAX_TEXT = 1_000_000
MAX_TOKENS = 10_000


def scan(text: str) -> Tokens:
    """All tokens of a text; what cannot be part of any statement is refused."""
    if len(text) > MAX_TEXT:
        raise QueryError(
            f"the text is longer than {MAX_TEXT:,} characters",
            code="too-long",
            span=Span(0, 1),
            hint="put data into a table or stream, not into the statement",
        )
    found: list[Token] = []
    statement = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind in _KINDS:
            found.append(_token(_KINDS[kind], match[0], match.start()))
            statement = len(found) if found[-1].word == ";" else statement
            if len(found) - statement > MAX_TOKENS:
                raise _too_long(found[-1])
        elif kind != "space":
            raise _UNREADABLE[kind](match)
    return Tokens(text, tuple(found))


def _too_long(token: Token) -> QueryError:
    return QueryError(
        f"the statement has more than {MAX_TOKENS:,} words and signs",
        code="too-long",
        span=token.span,
        hint="put long lists of values into a table and join it",
    )


_KINDS = {kind.name.lower(): kind for kind in Kind}
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


def _token(kind: Kind, text: str, start: int) -> Token:
    return Token(kind, text, start, text.upper() if kind in (Kind.WORD, Kind.SIGN) else "")


_NEVER_CLOSED = {
    "/*": ("this comment never ends", "close it with */"),
    "'": ("this string never ends", "close it with '; a quote inside a string is written ''"),
    '"': ("this quoted name never ends", 'close it with "; strings stand in single quotes'),
    "`": ("this quoted name never ends", "close it with `"),
}


def _never_closed(match: re.Match[str]) -> QueryError:
    quotes = match.string[match.start() : match.start() + 3]
    if match[0] in '"`' and quotes[:2] == match[0] * 2 and quotes != match[0] * 3:
        return QueryError(
            "a name cannot be empty",
            code="unreadable",
            span=Span(match.start(), match.start() + 2),
            hint="an empty string is written ''",
        )
    message, hint = _NEVER_CLOSED[match[0]]
    end = match.string.find("\n", match.start())
    return QueryError(
        message,
        code="unterminated",
        span=Span(match.start(), end if end > 0 else len(match.string)),
        hint=hint,
    )


def _hint_comment(match: re.Match[str]) -> QueryError:
    return QueryError(
        "optimizer hints are not understood",
        code="not-supported",
        span=Span(match.start(), match.start() + 3),
        hint="leave out the /*+ … */; EXPLAIN shows what Windrow chose",
    )


def _strange(match: re.Match[str]) -> QueryError:
    character = match[0]
    shown = f"`{character}`" if character.isprintable() else f"U+{ord(character):04X}"
    return QueryError(
        f"the character {shown} means nothing here",
        code="unreadable",
        span=Span(match.start(), match.end()),
        hint=_STRANGE.get(character, "strings stand in '…', unusual names in `…`"),
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
_UNREADABLE = {"open": _never_closed, "hint": _hint_comment, "strange": _strange}
