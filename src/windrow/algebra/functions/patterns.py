"""Matching text. LIKE takes any pattern; a regular expression must be a literal, of the part of the
language on which Java and Python agree, so that every executor finds the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from windrow.algebra.expressions import Call, Expression, Literal, mismatch
from windrow.algebra.functions.registry import SHORT, TEXT, accept, call, constant, family
from windrow.algebra.types import BOOLEAN, INT, STRING
from windrow.errors import QueryError

# ------------------------------------------------------------ regular expressions
#
# The regular expressions on which Java (Spark) and Python agree, and which cannot run away.
#
# A pattern is parsed, checked and written anew for Python. What the two languages read differently is
# either spelled out (`.` stops at each of Java's line ends, `$` stands before the last one) or refused
# (`\b`, lookarounds, back-references, possessive repetitions, nested classes). A repeated group holds
# neither another repetition nor alternatives that begin alike, so matching never takes exponential time;
# at most six open repetitions per pattern keep the rest small.
#
# The patterns of LIKE.


#: the parts of a pattern that stand for any text, or for any one character
ANY_TEXT, ANY_CHARACTER = 0, 1
Token = str | int
_WILDCARDS: dict[str, Token] = {"%": ANY_TEXT, "_": ANY_CHARACTER}


@lru_cache(maxsize=256)
def like_tokens(pattern: str, escape: str = "\\") -> tuple[Token, ...] | None:
    """The pattern in parts; None if the escape character stands before neither a wildcard nor itself.

    >>> like_tokens(r"5_\\%%")
    ('5', 1, '%', 0)
    """
    result: list[Token] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("_", "%", escape):
                return None
            result.append(escaped)
        else:
            result.append(_WILDCARDS.get(character, character))
    return tuple(result)


def misplaced_escape(pattern: str, escape: str) -> tuple[str, str]:
    """What is wrong with such a pattern, and the way out."""
    return (
        f"in the pattern {pattern!r} `{escape}` stands before neither %, _ nor itself",
        f"write `{escape}{escape}` for the character, or choose another one with ESCAPE",
    )


MAX_PATTERN = 500
MAX_REPEATS = 6
MAX_COUNT = 1000

_ANY = r"[^\n\r\x85\u2028\u2029]"
_END = r"(?=(?:\r\n|(?<!\r)\n|[\r\x85\u2028\u2029])?\Z)"
_CLASSES = "dDwWsS"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BOUNDS = re.compile(r"\{([0-9]{1,4})(?:(,)([0-9]{1,4})?)?\}")


@dataclass(frozen=True)
class _Part:
    """A translated piece: its text, how its matches may begin (None: in many ways), and what it holds."""

    text: str
    first: str | None = None
    repeats: bool = False
    forks: bool = False
    repeatable: bool = True


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Java's pattern as Python's, or a `QueryError` that says what is not supported.

    >>> compile_pattern("^ab?.$").pattern
    '^ab?[^\\\\n\\\\r\\\\x85\\\\u2028\\\\u2029](?=(?:\\\\r\\\\n|(?<!\\\\r)\\\\n|[\\\\r\\\\x85\\\\u2028\\\\u2029])?\\\\Z)'
    >>> compile_pattern("(a+)+")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    windrow.errors.QueryError: `(a+)+`: a repeated group must not contain a repetition ...
    """
    if len(pattern) > MAX_PATTERN:
        raise QueryError(f"the pattern has more than {MAX_PATTERN} characters", code="bad-pattern")
    return re.compile(_Parser(pattern).parse(), re.ASCII)


def check_replacement(text: str, groups: int) -> None:
    """Refuse a replacement that Java would read otherwise than literally, except for `$1` to `$9`."""
    for match in re.finditer(r"\\|\$([0-9]?)([0-9]?)", text):
        if not match[1] or match[2] or int(match[1]) > groups:
            raise QueryError(
                f"the replacement {text!r} does not name a group of the pattern",
                code="bad-pattern",
                hint=f"$0 is the match, $1 to ${groups} are its groups" if groups else "$0 is the match",
            )


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.open_repeats = pattern, 0, 0

    def parse(self) -> str:
        part = self.alternatives()
        if self.at < len(self.pattern):
            self.refuse("a `)` closes no group", "write `\\)` for the character")
        return part.text

    def refuse(self, why: str, hint: str | None = None) -> NoReturn:
        raise QueryError(f"`{self.pattern}`: {why}", code="bad-pattern", hint=hint)

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self, count: int = 1) -> str:
        text = self.pattern[self.at : self.at + count]
        self.at += count
        return text

    def alternatives(self) -> _Part:
        branches = [self.sequence()]
        while self.peek() == "|":
            self.take()
            branches.append(self.sequence())
        if len(branches) == 1:
            return branches[0]
        firsts = [branch.first for branch in branches]
        distinct = None not in firsts and len(set(firsts)) == len(firsts)
        return _Part(
            "|".join(branch.text for branch in branches),
            repeats=any(branch.repeats for branch in branches),
            forks=not distinct or any(branch.forks for branch in branches),
        )

    def sequence(self) -> _Part:
        parts: list[_Part] = []
        while self.peek() not in ("", "|", ")"):
            parts.append(self.repeated(self.atom()))
        return _Part(
            "".join(part.text for part in parts),
            first=parts[0].first if parts else None,
            repeats=any(part.repeats for part in parts),
            forks=any(part.forks for part in parts),
        )

    def repeated(self, part: _Part) -> _Part:
        bounds = self.bounds()
        if bounds is None:
            return part
        if not part.repeatable:
            self.refuse("an anchor cannot be repeated")
        if bounds not in ("?", "{0,1}"):
            if part.repeats:
                self.refuse("a repeated group must not contain a repetition", "write it without nesting")
            if part.forks:
                self.refuse("alternatives in a repeated group must begin with different characters")
        if self.peek() == "?":
            bounds += self.take()
        if self.peek() in ("+", "*", "{") and self.peek():
            self.refuse("one repetition after another is not supported")
        return _Part(part.text + bounds, repeats=True, forks=part.forks)

    def bounds(self) -> str | None:
        sign = self.peek()
        if sign and sign in "*+?":
            self.count_open(sign != "?")
            return self.take()
        if sign != "{":
            return None
        match = _BOUNDS.match(self.pattern, self.at)
        if not match or int(match[3] or match[1]) > MAX_COUNT or int(match[3] or match[1]) < int(match[1]):
            self.refuse("`{` starts no count", f"write {{n}}, {{n,}} or {{n,m}} up to {MAX_COUNT}, or `\\{{`")
        self.count_open(bool(match[2]) and not match[3])
        return self.take(len(match[0]))

    def count_open(self, is_open: bool) -> None:
        self.open_repeats += is_open
        if self.open_repeats > MAX_REPEATS:
            self.refuse(f"more than {MAX_REPEATS} open repetitions")

    def atom(self) -> _Part:
        sign = self.take()
        match sign:
            case "(":
                return self.group()
            case "[":
                return _Part(self.char_class())
            case ".":
                return _Part(_ANY)
            case "^":
                return _Part("^", repeatable=False)
            case "$":
                return _Part(_END, repeatable=False)
            case "\\":
                return self.escape()
            case "*" | "+" | "?" | "{":
                self.refuse(f"`{sign}` repeats nothing", f"write `\\{sign}` for the character")
        return _Part(re.escape(sign), first=sign)

    def group(self) -> _Part:
        opening = "("
        if self.peek() == "?":
            if self.take(2) != "?:":
                self.refuse("only (…) and (?:…) groups are supported")
            opening = "(?:"
        inner = self.alternatives()
        if self.take() != ")":
            self.refuse("a group is not closed")
        return _Part(f"{opening}{inner.text})", inner.first, inner.repeats, inner.forks)

    def escape(self) -> _Part:
        sign = self.take()
        if sign and sign in _CLASSES:
            return _Part(f"\\{sign}")
        literal = self.escaped_literal(sign)
        return _Part(re.escape(literal), first=literal)

    def escaped_literal(self, sign: str) -> str:
        if sign in _CONTROLS:
            return _CONTROLS[sign]
        if not sign or sign.isalnum() or not sign.isascii():
            self.refuse(f"`\\{sign}` is not supported", "classes are \\d, \\w, \\s and [...]")
        return sign

    def char_class(self) -> str:
        text = "[" + (self.take() if self.peek() == "^" else "")
        start = len(text)
        while self.peek() not in ("]", ""):
            text += self.class_item()
        if not self.take() or len(text) == start:
            self.refuse("a class […] is empty or not closed", "write `\\]` and `\\[` for the characters")
        return text + "]"

    def class_item(self) -> str:
        if self.peek() == "\\" and self.pattern[self.at + 1 : self.at + 2] in tuple(_CLASSES):
            return self.take(2)
        low = self.class_character()
        if self.peek() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", ""):
            return re.escape(low)
        self.take()
        high = self.class_character()
        if high < low:
            self.refuse(f"the range {low}-{high} is empty")
        return f"{re.escape(low)}-{re.escape(high)}"

    def class_character(self) -> str:
        sign = self.take()
        if sign == "[" or (sign == "&" and self.peek() == "&"):
            self.refuse("classes within classes are not supported", "write `\\[` for the character")
        return self.escaped_literal(self.take()) if sign == "\\" else sign


# ------------------------------------------------------------ patterns


def _like(name: str, args: tuple[Expression, ...]) -> Expression:
    accepted = accept(name, args, (TEXT,))
    escape = constant(name, accepted[2], "the escape character") if len(accepted) == 3 else "\\"
    if escape is None or len(escape) != 1:
        mismatch(name, args, "one escape character")
    pattern = accepted[1]
    if isinstance(pattern, Literal) and pattern.value is not None:
        _check_escapes(pattern.value, escape)
    return Call(name, accepted, BOOLEAN)


def _check_escapes(pattern: str, escape: str) -> None:
    if like_tokens(pattern, escape) is None:
        message, hint = misplaced_escape(pattern, escape)
        raise QueryError(message, code="bad-pattern", hint=hint)


def _ilike(_: str, args: tuple[Expression, ...]) -> Expression:
    """As in Spark: both sides in lower case, but for the escape character."""
    text, pattern, *escape = args
    result = call("like", (call("lower", (text,)), call("lower", (pattern,)), *escape))
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        _check_escapes(pattern.value.lower(), constant("ilike", escape[0], "it") if escape else "\\")
    return result


def _pattern_groups(name: str, pattern: Expression) -> int:
    text = constant(name, pattern, "the pattern")
    return 0 if text is None else compile_pattern(text).groups


def _rlike(name: str, args: tuple[Expression, ...]) -> Expression:
    accepted = accept(name, args, (TEXT,))
    _pattern_groups(name, accepted[1])
    return Call(name, accepted, BOOLEAN)


def _extract(name: str, args: tuple[Expression, ...]) -> Expression:
    text, pattern, *rest = accept(name, args, (TEXT, TEXT, SHORT))
    group = rest[0] if rest else Literal(1, INT)
    number, groups = constant(name, group, "the group"), _pattern_groups(name, pattern)
    if number is not None and not 0 <= number <= groups:
        raise QueryError(
            f"the pattern has {groups} groups, so none with number {number}",
            code="bad-pattern",
            hint="0 is the whole match; put parentheses around what you want",
        )
    return Call(name, (text, pattern, group), STRING)


def _replace(name: str, args: tuple[Expression, ...]) -> Expression:
    accepted = accept(name, args, (TEXT,))
    groups, pattern = _pattern_groups(name, accepted[1]), constant(name, accepted[1], "the pattern")
    if pattern is not None and compile_pattern(pattern).search(""):
        raise QueryError(
            "a pattern that matches the empty text replaces in places where Java and others disagree",
            code="bad-pattern",
            hint="repeat with + instead of *",
        )
    replacement = constant(name, accepted[2], "the replacement")
    if replacement is not None:
        check_replacement(replacement, groups)
    return Call(name, accepted, STRING)


FUNCTIONS = family(
    r"""
like (x, y, [z]); fails; binds 50; sql {0} LIKE {1}[ ESCAPE {2}]
    whether it matches a pattern of % (any text) and _ (any character) | '100%' LIKE '1__\\%' -> TRUE
ilike (x, y, [z]); fails; binds 50; sql {0} ILIKE {1}[ ESCAPE {2}]
    LIKE in any case: both sides are put into lower case | 'Item' ILIKE 'iT%' -> TRUE
rlike, regexp_like, regexp (x, y); binds 50; sql {0} RLIKE {1}
    whether a regular expression finds something in it | 'item-42' RLIKE '[0-9]+$' -> TRUE
regexp_extract (x, y, [z])
    a group of the first match of a regular expression; empty if there is none | regexp_extract('item-42',
    '([a-z]+)-([0-9]+)', 2) -> '42'
regexp_replace (x, y, z)
    every match of a regular expression replaced; $1 is its first group | regexp_replace('a1b22', '[0-9]+',
    '#') -> 'a#b#'
""",
    {"like": _like, "ilike": _ilike, "rlike": _rlike, "regexp_extract": _extract, "regexp_replace": _replace},
)
