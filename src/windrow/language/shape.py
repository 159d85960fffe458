"""The shape of a text: how deep it may go, and mistakes that sqlglot would let pass or tell in its own terms.

sqlglot reads many dialects and forgives much: `SELECT FROM t`, `JOIN u ON` without a condition, a
trailing comma. A standing query runs for months, so nothing is forgiven here. Each rule looks at a token
and its neighbours only.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from windrow.errors import QueryError, Span
from windrow.language.syntax import Node, QueryExpression, children, words
from windrow.language.tokens import TokenKind, Tokens, mistake, refuse
from windrow.language.vocabulary import RESERVED, begins_operand, ends_operand, is_keyword, refuse_foreign

_SIGNED = frozenset({"-", "+", "~", "!"})


@dataclass(frozen=True)
class ExpectedToken:
    """What must follow a token, in words and as the keywords and signs that are fine besides an operand."""

    what: str
    besides: frozenset[str] = _SIGNED
    operand: bool = True
    #: of operands, only names
    name: bool = False


_OPERATORS = words("LIKE ILIKE RLIKE DIV - + / % = == <> != < <= > >= <=> || | & ^ ~ << >>")
_GROUPINGS = words("ROLLUP CUBE GROUPING")
_VALUE = ExpectedToken("an expression")
_CONDITION = ExpectedToken("a condition")
_SOURCE = ExpectedToken("a stream or a nested query", frozenset({"("}), name=True)
_WANTED: dict[str, ExpectedToken] = {
    **dict.fromkeys(("WHERE", "ON", "HAVING", "QUALIFY", "WHEN", "AND", "OR"), _CONDITION),
    **dict.fromkeys(_OPERATORS | {"THEN", "ELSE", "LIMIT", "BETWEEN"}, _VALUE),
    **dict.fromkeys(("FROM", "JOIN"), _SOURCE),
    "NOT": ExpectedToken("a condition", _SIGNED | words("IN LIKE ILIKE RLIKE BETWEEN NULL DISTINCT UNKNOWN")),
    "BY": ExpectedToken("an expression", _SIGNED | _GROUPINGS | {"ALL"}),
    "CASE": ExpectedToken("WHEN or an expression", _SIGNED | {"WHEN"}),
    "SELECT": ExpectedToken("a column or an expression", _SIGNED | {"*", "DISTINCT", "ALL"}),
    "DISTINCT": ExpectedToken("a column or an expression", _SIGNED | {"*", "SELECT", "WITH", "ON"}),
    "ALL": ExpectedToken("a query or an expression", _SIGNED | {"*", "SELECT", "WITH"}),
    ",": ExpectedToken("another item", _SIGNED | _GROUPINGS | {"*"}),
    "(": ExpectedToken(
        "an expression or a query",
        _SIGNED | {"*", "SELECT", "DISTINCT", "WITH", "WHERE", "PARTITION", "ORDER", ")"},
    ),
    "GROUP": ExpectedToken("BY", frozenset({"BY"}), operand=False),
    "ORDER": ExpectedToken("BY", frozenset({"BY"}), operand=False),
    "IN": ExpectedToken("a list or a query in parentheses", frozenset({"("}), operand=False),
    "EXISTS": ExpectedToken("a query in parentheses", frozenset({"("}), operand=False),
    "IS": ExpectedToken("NULL, TRUE or FALSE", words("NULL NOT TRUE FALSE UNKNOWN DISTINCT"), operand=False),
    "AS": ExpectedToken("a name", frozenset({"("}), name=True),
    ".": ExpectedToken("a name", frozenset({"*"}), name=True),
}
_ENDS_JOIN = words(
    "JOIN INNER CROSS LEFT RIGHT FULL NATURAL , WHERE GROUP HAVING ORDER LIMIT UNION EXCEPT MINUS )"
)


def check_shape(tokens: Tokens, ignored: Collection[int]) -> None:
    """Refuse a SELECT in which something is missing; the tokens `ignored` are no keywords there."""
    refuse_foreign(tokens, ignored)
    for index, token in enumerate(tokens):
        if index in ignored:
            continue
        _check_next(tokens, index)
        _check_beside(tokens, index)
        if token.word == "JOIN" and is_keyword(tokens, index):
            _check_join(tokens, index)
        if token.word == "FROM" and tokens.word(index - 1) == "(":
            refuse(token, "there is no SELECT before FROM", "syntax", "write SELECT … FROM …")


def _check_next(tokens: Tokens, index: int) -> None:
    token = tokens[index]
    wanted = _wanted(tokens, index)
    if wanted is None or (token.kind is TokenKind.WORD and not is_keyword(tokens, index)):
        return
    after = tokens.word(index + 1)
    operand = wanted.operand and begins_operand(tokens, index + 1)
    if operand and wanted.name:
        operand = tokens[index + 1].is_name and not is_keyword(tokens, index + 1)
    if after in wanted.besides or operand:
        if (token.word, after) == ("(", ")") and not _may_be_empty(tokens, index):
            refuse(
                token.span.to(tokens[index + 1].span),
                "nothing stands between these parentheses",
                "syntax",
                "remove them, or put something between",
            )
        return
    raise _missing(tokens, index, wanted)


def _wanted(tokens: Tokens, index: int) -> ExpectedToken | None:
    word = tokens.word(index)
    if word == "*":
        return _VALUE if ends_operand(tokens, index - 1) and tokens.word(index - 1) != "*" else None
    if (tokens.word(index - 1), word) in (("WITHIN", "GROUP"), ("BY", "ALL")):
        return None
    if "IS" in tokens.words(index - 2, 2) and word == "DISTINCT":
        return ExpectedToken("FROM", frozenset({"FROM"}), operand=False)
    if "IS" in tokens.words(index - 3, 2) and tokens.word(index - 1) == "DISTINCT":
        return _VALUE
    return _WANTED.get(word)


def _may_be_empty(tokens: Tokens, index: int) -> bool:
    before = index - 1
    named = index > 0 and tokens[before].is_name and not is_keyword(tokens, before)
    around = [at for at in range(index) if tokens.word(at) == "(" and tokens.partner[at] > index]
    is_grouping_set = bool(around) and tokens.word(around[-1] - 1) == "SETS"
    return named or tokens.word(before) in ("BY", "OVER") or is_grouping_set


def _of_others(tokens: Tokens, index: int) -> str | None:
    """What to write for two signs that are an operator elsewhere: `->`, `//`, `**`."""
    both = tokens.words(index, 2)
    left = tokens[index - 1].text if index else "x"
    right = tokens[index + 2].text if index + 2 < len(tokens) else "y"
    if both in (("-", ">"), ("-", ">>")):
        if tokens.is_kind(index + 2, TokenKind.STRING):
            return f"write get_json_object({left}, '$.{right[1:-1]}')"
        if tokens.word(index - 2) in (",", "(") and tokens.word(index - 3) != "SELECT":
            return (
                f"functions of elements are not part of the language: UNNEST the array AS t({left}) in FROM"
            )
        return f"a field of a struct is {left}.{right}"
    if both == ("/", "/"):
        return f"write {left} DIV {right}"
    return f"write power({left}, {right})" if both == ("*", "*") else None


def _missing(tokens: Tokens, index: int, wanted: ExpectedToken) -> QueryError:
    token = tokens[index]
    if index + 1 >= len(tokens):
        return mistake(
            token,
            f"the text ends after `{token.text}`, where {wanted.what} should follow",
            "syntax",
            "complete it",
        )
    found = tokens[index + 1]
    if token.word == "," and is_keyword(tokens, index + 1):
        message, span = f"a comma before `{found.text}`", token.span
        return mistake(span, message, "syntax", "remove the comma, or add another item")
    if (token.word, found.word) == ("*", "FROM") and get_close_matches(tokens.word(index - 1), ["SELECT"]):
        before, hint = tokens[index - 1], "did you mean `SELECT`?"
        return mistake(before, f"unexpected `{before.text}`", "syntax", hint)
    hint = _of_others(tokens, index) or f"add it, or remove `{token.text}`"
    if wanted.name and found.kind is TokenKind.WORD:
        hint = f"`{found.text}` is a word of the language; as a name it is written in backticks"
    message = f"after `{token.text}` {wanted.what} should follow, not `{found.text}`"
    return mistake(found, message, "syntax", hint)


def _check_beside(tokens: Tokens, index: int) -> None:
    """Two tokens that make no sense beside each other."""
    if index + 1 >= len(tokens):
        return
    token, after = tokens[index], tokens[index + 1]
    if token.kind is after.kind is TokenKind.STRING:
        message = "two strings beside each other"
        hint = "join them with ||; a quote inside a string is written ''"
    elif token.end == after.start and TokenKind.SIGN not in (token.kind, after.kind):
        message = f"`{token.text}{after.text}` is not one thing"
        hint = "put a space between, or the whole name in backticks; the only prefix of a string is X"
    else:
        return
    refuse(token.span.to(after.span), message, "syntax", hint)


def _check_join(tokens: Tokens, index: int) -> None:
    before = tokens.word(index - 1)
    if before == "NATURAL" or tokens.word(index - 2) == "NATURAL":
        ends = tokens.find(*_ENDS_JOIN, ";", begin=index + 1) or len(tokens)
        source = tokens.between(index + 1, ends - 1) if index + 1 < ends else "…"
        refuse(
            tokens[index - 1].span.to(tokens[index].span),
            "NATURAL JOIN is not part of the language",
            "not-supported",
            f"write JOIN {source} USING (…), with the columns that are meant: a"
            " new one cannot change the query then",
        )
    if before == "CROSS":
        return
    words = (tokens.word(at) for at in tokens.outside(index + 1))
    if next((word for word in words if word in _ENDS_JOIN | {"ON", "USING"}), "") in ("ON", "USING"):
        return
    refuse(
        tokens[index], "this JOIN has no condition", "syntax", "add ON …, or write CROSS JOIN for all pairs"
    )


_SUGGESTED = RESERVED - {"BY", "IS", "OR", "ON", "IN", "AS", "DIV", "END", "ALL", "ASC"}
#: what sqlglot says, and what to say instead
_ADVICE = {
    "Expected END": "CASE … WHEN … THEN … ends with END",
    "'high' missing": "write BETWEEN low AND high",
    "Found multiple": "each clause stands once; join conditions with AND",
}


def unexpected(tokens: Tokens, offset: int, description: str = "") -> QueryError:
    """The error for SQL that stopped making sense at an offset; `description` is what sqlglot said."""
    index = min(tokens.around(offset), len(tokens) - 1)
    hint = next((advice for said, advice in _ADVICE.items() if said in description), None)
    if tokens.word(index) == "~" and 0 < index < len(tokens) - 1:
        hint = f"write {tokens[index - 1].text} RLIKE {tokens[index + 1].text}"
    meant = [
        (likeness, at, word) for at in (index, index - 1, index - 2) for likeness, word in _meant(tokens, at)
    ]
    if hint is None and meant:
        _, index, word = max(meant, key=lambda found: found[0])
        hint = f"did you mean `{word}`?"
    token = tokens[index]
    if index == len(tokens) - 1 and not ends_operand(tokens, index):
        message = f"the text ends too early, after `{token.text}`"
    else:
        message = f"unexpected `{token.text}`"
    if hint is None and ends_operand(tokens, index) and ends_operand(tokens, index - 1):
        hint = "a comma or an operator may be missing before it"
    return mistake(token, message, "syntax", hint)


def is_misspelt(tokens: Tokens, index: int, keyword: str) -> bool:
    """Whether a name was most likely meant to be this keyword."""
    return any(word == keyword for _, word in _meant(tokens, index))


def _meant(tokens: Tokens, index: int) -> list[tuple[float, str]]:
    """The keyword that a name may have been meant to be, and how much alike they are; or nothing."""
    if not 0 <= index < len(tokens) or tokens[index].kind is not TokenKind.WORD or is_keyword(tokens, index):
        return []
    word = tokens.word(index)
    close = get_close_matches(word, sorted(_SUGGESTED), n=1, cutoff=0.6)
    return [(SequenceMatcher(None, word, keyword).ratio(), keyword) for keyword in close]


# ------------------------------------------------------------ depth
#
# How deep a text may go: both limits are counted, before anything recurses over what is counted. Python's
# recursion limit counts the caller's calls as well. A text within the limits needs up to two thousand calls,
# in sqlglot and here; whoever runs out of them gets a thread with a stack of its own.


_CALLS = 10_000
_STACK = 64 << 20
#: the recursion limit and the size of new stacks belong to the process
_LOCK = threading.Lock()

P = ParamSpec("P")
T = TypeVar("T")


#: whether a thread has a stack of its own
_ROOM = threading.local()


def has_room() -> bool:
    """Whether this is a stack of its own: to run out of it is an answer."""
    return getattr(_ROOM, "is_own", False)


def roomy(function: Callable[P, T]) -> Callable[P, T]:
    """The function, which must be pure, begun again on a stack of its own where that of its caller is full.

    >>> @roomy
    ... def depth(levels: int) -> int:
    ...     return 1 + depth.__wrapped__(levels - 1) if levels else 0
    >>> depth(3000)
    3000
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            if has_room():
                raise
        return _apart(lambda: function(*args, **kwargs))

    return run


def _apart(call: Callable[[], T]) -> T:
    """What a call gives or raises on a stack of its own."""

    def work() -> T:
        _ROOM.is_own = True
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _CALLS))
        try:
            return call()
        finally:
            sys.setrecursionlimit(limit)

    with _LOCK, ThreadPoolExecutor(1) as pool:
        size = threading.stack_size(_STACK)
        try:
            answer = pool.submit(work)
        finally:
            threading.stack_size(size)
        return answer.result()


#: parentheses, brackets, CASE and signs inside one another
MAX_NESTING = 32
#: operators and calls above one another, of which `a + b + c` has two; sides of a set operation
MAX_DEPTH = 100

_PARTNER = {")": "(", "]": "[", "END": "CASE"}
_OPENING = frozenset(_PARTNER.values())
_SIGNS = frozenset({"NOT", "-", "+", "~", "!"})


def too_deep(span: Span) -> QueryError:
    """The refusal of what only a machine writes."""
    return mistake(
        span,
        "this is nested too deeply",
        "too-deep",
        "take inner parts out into nested queries or WITH; write long chains of OR as IN (…)",
    )


def check_nesting(tokens: Tokens) -> None:
    """Refuse a statement of too many levels."""
    opened: list[str] = []
    signs = 0
    for index, token in enumerate(tokens):
        signs = signs + 1 if token.word in _SIGNS and not ends_operand(tokens, index - 1) else 0
        if token.word in _OPENING:
            opened.append(token.word)
        elif opened and opened[-1] == _PARTNER.get(token.word):
            opened.pop()
        # a window in its bracket is no level of nesting, but brackets inside brackets are
        if len(opened) - ("[" in opened) + signs > MAX_NESTING:
            raise too_deep(token.span)


def check_depth(root: Node) -> None:
    """Refuse expressions with too many operators above one another; each query in it counts by itself."""
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise too_deep(root.span)
        depth = 0 if isinstance(node, QueryExpression) else depth + 1
        waiting += [(child, depth) for child in children(node)]
