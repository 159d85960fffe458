"""Takes out of a SELECT what plain SQL does not have, and leaves a skeleton of the same length.

Window brackets, stream words, literals and types are read here. What remains for sqlglot has only
keywords, operators and placeholders: every name becomes underscores, every string an empty-looking one,
every number ones. So sqlglot decides about the shape of the SQL and nothing else; names cannot be
mistaken for its keywords, nor functions be renamed by it, and each offset in its tree is an offset in
the text.

>>> from windrow.language.tokens import scan
>>> query = "SELECT RSTREAM(max(price)) FROM bids [ROWS 10] AS b WHERE item = 'pen'"
>>> print(query + "\\n" + lift(scan(query), lambda tokens: None).skeleton())
SELECT RSTREAM(max(price)) FROM bids [ROWS 10] AS b WHERE item = 'pen'
SELECT         ___(_____)  FROM ____           AS _ WHERE ____ = '___'

A stream word and its parentheses are blanked out, so that `SELECT RSTREAM(DISTINCT a)` leaves
`SELECT DISTINCT a`. WSTREAM may also be the argument of an aggregate, so it stays, as one placeholder.
Frames of OVER and IGNORE NULLS are not shown to sqlglot: their words are names elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import NoReturn

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError, Span
from windrow.language import lift_literals, shape, vocabulary, window_functions
from windrow.language.lift_literals import Cursor
from windrow.language.syntax import Constant, EmitClause, FrameSyntax, Node, Unnesting, WindowSyntax, words
from windrow.language.tokens import Token, TokenKind, Tokens, mistake, refuse
from windrow.language.windows import ReadExpression, parse_window
from windrow.windows.domain import Quantity

_WORDS = {word.value: word for word in StreamWord if word.value}
_ENDS_LIST = words("FROM WHERE GROUP HAVING ORDER LIMIT UNION EXCEPT MINUS INTERSECT )")


def lift_stream_words(lifted: Lifted) -> None:
    tokens = lifted.tokens
    taken = set()
    for index in range(len(tokens)):
        if tokens.word(index) == "SELECT":
            first = index + 1 + (tokens.word(index + 1) in ("DISTINCT", "ALL"))
            taken.add(first)
            _around_list(lifted, index, first)
    for index in range(len(tokens)):
        name, open_at = _stream_word(tokens, index)
        if not name or tokens.word(open_at) != "(" or tokens.word(index - 1) == ".":
            continue
        if name == "WSTREAM":
            _wstream(lifted, index, open_at)
        elif index not in taken:
            raise _not_whole_list(name, tokens[index].span)


def _stream_word(tokens: Tokens, index: int) -> tuple[str, int]:
    """The stream word at an index, the thesis' hyphen as an underscore, and the index behind it."""
    word, first = tokens.word(index), index
    if tokens.words(index + 1, 2) == ("-", "RESTORE") and word.endswith("STREAM"):
        word, index = word + "_RESTORE", index + 2
    if word == "WSTREAM_RESTORE":
        refuse(
            tokens[first].span.to(tokens[index].span),
            "WSTREAM_RESTORE does not exist: more results may come at once than its window holds",
            "stream-word",
            "use WSTREAM, or RSTREAM_RESTORE",
        )
    return (word if word in _WORDS or word == "WSTREAM" else ""), index + 1


def refuse_before_select(tokens: Tokens) -> None:
    """CQL has the stream word around the query; here it is around the select list."""
    name, behind = _stream_word(tokens, 0)
    if name and tokens.word(behind) in ("(", "SELECT"):
        refuse(
            tokens[0],
            f"{name} stands around the select list, not around the query",
            "stream-word",
            f"write SELECT {name}(…) FROM …",
        )


def _around_list(lifted: Lifted, select: int, first: int) -> None:
    tokens = lifted.tokens
    name, open_at = _stream_word(tokens, first)
    if not name or name == "WSTREAM":
        return
    if tokens.word(open_at) != "(":
        _refuse_without_parentheses(tokens, name, first, open_at)
        return
    close = tokens.partner[open_at]
    if close + 1 < len(tokens) and tokens.word(close + 1) not in _ENDS_LIST:
        if shape.is_misspelt(tokens, close + 1, "FROM"):
            raise shape.unexpected(tokens, tokens[close + 1].start)
        raise _not_whole_list(name, tokens[first].span.to(tokens[close].span))
    _refuse_clauses_inside(tokens, name, open_at, close)
    lifted.words[tokens[select].start] = _WORDS[name]
    lifted.blank(*range(first, open_at + 1), close)


def _refuse_without_parentheses(tokens: Tokens, name: str, first: int, after: int) -> None:
    star = tokens.word(after) == "*" and not vocabulary.begins_operand(tokens, after + 1)
    if star or (vocabulary.begins_operand(tokens, after) and not vocabulary.ends_operand(tokens, first - 1)):
        refuse(
            tokens[first],
            f"{name} needs parentheses around the select list",
            "stream-word",
            f"write SELECT {name}(…) FROM …",
        )


def _refuse_clauses_inside(tokens: Tokens, name: str, open_at: int, close: int) -> None:
    if close == open_at + 1:
        refuse(
            tokens[open_at].span.to(tokens[close].span),
            f"{name} encloses nothing",
            "stream-word",
            f"write {name}(*) for all columns",
        )
    for index in tokens.outside(open_at + 1, close):
        if tokens.word(index) in ("ORDER", "LIMIT"):
            refuse(
                tokens[index],
                f"{tokens.word(index)} does not stand inside {name}(…)",
                "stream-word",
                "write it at the end of the query",
            )


def _wstream(lifted: Lifted, index: int, open_at: int) -> None:
    tokens = lifted.tokens
    close = tokens.partner[open_at]
    if tokens[close].start not in lifted.windows:
        refuse(
            tokens[index].span.to(tokens[close].span),
            "WSTREAM needs a window behind it",
            "stream-word",
            "write WSTREAM(…)[ROWS 10] or WSTREAM(…)[RANGE 1 MINUTE]",
        )
    _refuse_clauses_inside(tokens, "WSTREAM", open_at, close)
    lifted.cover(index, close)
    lifted.wstreams[tokens[index].start] = tokens.cut(open_at + 1, close)


def _not_whole_list(name: str, span: Span) -> QueryError:
    return mistake(
        span,
        f"{name} encloses the whole select list",
        "stream-word",
        f"write SELECT {name}(a, b AS c) FROM …",
    )


_KINDS = ("ROWS", "RANGE", "GROUPS")
_SIDES = ("PRECEDING", "FOLLOWING")
#: the row itself
_ROW = Quantity(0)
_FOLLOWS = "an answer would have to wait for rows that come later; write {} BETWEEN {} AND CURRENT ROW"


def lift_frames(lifted: Lifted) -> None:
    tokens = lifted.tokens
    for index in range(len(tokens)):
        if tokens.word(index) == "WINDOW" and vocabulary.is_keyword(tokens, index):
            named = index + 1  # `w AS (…), v AS (…)`
            while tokens.words(named + 1, 2) == ("AS", "("):
                _lift_frame(lifted, named + 2)
                named = tokens.partner[named + 2] + 2
        if tokens.word(index) != "OVER" or not vocabulary.is_keyword(tokens, index):
            continue
        inside = index - 1 if tokens.word(index - 1) == ")" else index
        for nulls in (index, inside):
            if tokens.words(nulls - 2, 2) in (("IGNORE", "NULLS"), ("RESPECT", "NULLS")):
                if tokens.word(nulls - 2) == "IGNORE":
                    lifted.ignoring.add(tokens[index + 1].start)
                lifted.blank(nulls - 2, nulls - 1)
        if tokens.word(index + 1) == "(":
            _lift_frame(lifted, index + 1)


def _lift_frame(lifted: Lifted, open_at: int) -> None:
    """Take a frame out of its parenthesis: it begins at its word, behind an operand and before a bound."""
    tokens, close = lifted.tokens, lifted.tokens.partner[open_at]
    for begin in tokens.outside(open_at + 1, close):
        bounds = tokens.word(begin + 1) in ("BETWEEN", "UNBOUNDED", "CURRENT", "INTERVAL")
        if tokens.word(begin) in _KINDS and (bounds or tokens.is_kind(begin + 1, TokenKind.NUMBER)):
            lifted.frames[tokens[open_at].start] = _frame(tokens.cut(begin, close))
            lifted.blank(*range(begin, close))
            return


def _frame(tokens: Tokens) -> FrameSyntax:
    cursor = Cursor(tokens)
    kind = cursor.choose(_KINDS, "ROWS or RANGE")
    if kind == "GROUPS":
        _refuse(tokens, 0, "frames by GROUPS are not part of the language", "write ROWS or RANGE")
    between = cursor.take("BETWEEN")
    start = _bound(cursor)
    stop = _ROW
    if between:
        cursor.expect("AND")
        last = _bound(cursor)
        if last is None:
            _refuse(tokens, cursor.index - 1, "a frame does not end before all rows", "write CURRENT ROW")
        stop = last
    cursor.finish()
    return FrameSyntax(tokens.span, kind == "ROWS", start, stop)


def _bound(cursor: Cursor) -> Quantity | None:
    """How far before the row, None if that is all rows before."""
    if cursor.take("CURRENT"):
        cursor.expect("ROW")
        return _ROW
    _check_side(cursor)
    amount = None if cursor.take("UNBOUNDED") else cursor.quantity("a number of rows or a length", _SIDES)
    if cursor.word == "FOLLOWING":
        # the same frame up to the row; one that begins at the row or behind it takes all before
        tokens, ends = cursor.tokens, cursor.tokens.find("PRECEDING")
        first = 2 if tokens.word(1) == "BETWEEN" else 1
        start = tokens.between(first, ends) if ends else "UNBOUNDED PRECEDING"
        hint = _FOLLOWS.format(tokens.word(0), start)
        _refuse(tokens, cursor.index, "a frame cannot reach to rows that follow", hint)
    cursor.expect("PRECEDING")
    return amount


def _check_side(cursor: Cursor) -> None:
    """`2 PRECEEDING`: a word that is nearly one of the sides is no unit."""
    after = cursor.index + 1
    word = cursor.tokens.word(after)
    meant = get_close_matches(word, _SIDES, n=1, cutoff=0.8)
    if meant and word not in _SIDES:
        refuse(
            cursor.tokens[after],
            f"unexpected `{cursor.tokens[after].text}`",
            "syntax",
            f"did you mean `{meant[0]}`?",
        )


def _refuse(tokens: Tokens, index: int, message: str, hint: str) -> NoReturn:
    refuse(tokens[index], message, "not-supported", hint)


@dataclass
class Lifted:
    """A SELECT without its brackets, and what was lifted out of it. Keys are offsets of the text."""

    tokens: Tokens
    #: windows, by the token they follow
    windows: dict[int, WindowSyntax]
    #: stream words, by their SELECT
    words: dict[int, StreamWord] = field(default_factory=dict)
    #: the select list inside each WSTREAM
    wstreams: dict[int, Tokens] = field(default_factory=dict)
    #: literals of more than one token
    atoms: dict[int, Node] = field(default_factory=dict)
    #: types, by the CAST or `::` they belong to
    types: dict[int, Span] = field(default_factory=dict)
    #: how many casts `::` follow each other up to a token
    casts: dict[int, int] = field(default_factory=dict)
    #: what functions are called whose arguments have words between them
    functions: dict[int, str] = field(default_factory=dict)
    #: frames of OVER, by its parenthesis, and which OVERs follow IGNORE NULLS, by what is behind the word
    frames: dict[int, FrameSyntax] = field(default_factory=dict)
    ignoring: set[int] = field(default_factory=set)
    #: LATERAL VIEWs
    laterals: dict[int, Unnesting] = field(default_factory=dict)
    #: times of FOR SYSTEM_TIME AS OF, by the table before it
    as_of: dict[int, Node] = field(default_factory=dict)
    #: the parentheses of UNNEST before WITH ORDINALITY, and the BETWEENs that are SYMMETRIC
    ordinalities: set[int] = field(default_factory=set)
    symmetric: set[int] = field(default_factory=set)
    #: EMIT … at the end
    emits: EmitClause | None = None
    #: window functions of FROM
    functions_in_from: dict[int, window_functions.TableFunction] = field(default_factory=dict)
    #: what stands in the skeleton for the token at an index; "" is blank
    swapped: dict[int, str] = field(default_factory=dict)
    #: one placeholder for all tokens from an index through another
    covered: dict[int, int] = field(default_factory=dict)

    def blank(self, *indexes: int) -> None:
        self.swapped.update(dict.fromkeys(indexes, ""))

    def cover(self, first: int, last: int) -> Span:
        """One placeholder from a token through another; where that is."""
        self.covered[first] = last
        return self.tokens[first].span.to(self.tokens[last].span)

    def atom(self, first: int, last: int, value: object, kind: str) -> None:
        """A constant in place of a token through another."""
        span = self.cover(first, last)
        self.atoms[span.start] = Constant(span, value, kind)

    @property
    def ignored(self) -> set[int]:
        """The tokens that are read already: they are no keywords any more."""
        return self.ignored_between(0, len(self.tokens))

    def ignored_between(self, begin: int, end: int) -> set[int]:
        """The same for a stretch of them, counted from its beginning."""
        covers = [(first, last) for first, last in self.covered.items() if begin <= first and last < end]
        found = {index for first, last in covers for index in range(first, last)}
        return {index - begin for index in found | self.swapped.keys() if begin <= index < end}

    def skeleton(self, begin: int = 0, end: int | None = None) -> str:
        """The SQL that is left of the tokens from an index up to another; it begins where the first does."""
        end = len(self.tokens) if end is None else end
        if begin >= end:
            return ""
        base = self.tokens[begin].start
        characters = [" "] * (self.tokens[end - 1].end - base)
        index = begin
        while index < end:
            last = self.covered.get(index, index)
            start, text = self.tokens[index].start - base, self._placeholder(index, last)
            characters[start : start + len(text)] = text
            index = last + 1
        return "".join(characters)

    def _placeholder(self, index: int, last: int) -> str:
        token = self.tokens[index]
        if index in self.covered:
            width = self.tokens[last].end - token.start
            return "'" + "_" * (width - 2) + "'" if token.start in self.atoms and width > 1 else "_" * width
        if index in self.swapped:
            return self.swapped[index].ljust(len(token.text))
        if token.kind is TokenKind.WORD and vocabulary.is_keyword(self.tokens, index):
            return token.word if len(token.word) == len(token.text) else "_" * len(token.text)
        return _PLACEHOLDERS[token.kind](token)


_PLACEHOLDERS: dict[TokenKind, Callable[[Token], str]] = {
    **dict.fromkeys((TokenKind.WORD, TokenKind.QUOTED), lambda token: "_" * len(token.text)),
    TokenKind.STRING: lambda token: "'" + "_" * (len(token.text) - 2) + "'",
    TokenKind.NUMBER: lambda token: "1" * len(token.text),
    TokenKind.SIGN: lambda token: token.text,
}


def lift(tokens: Tokens, expression: ReadExpression) -> Lifted:
    """Take windows, stream words, literals and types out of a SELECT or an expression."""
    lifted = _without_brackets(tokens, expression)
    window_functions.lift_table_functions(lifted)
    lift_stream_words(lifted)
    lift_frames(lifted)
    lift_clauses(lifted, expression)
    lift_literals.lift_literals(lifted)
    return lifted


def _without_brackets(tokens: Tokens, expression: ReadExpression) -> Lifted:
    kept: list[Token] = []
    windows: dict[int, WindowSyntax] = {}
    made = _made_arrays(tokens)
    index = 0
    while index < len(tokens):
        if tokens.word(index) != "[" or _is_element(tokens, index) or index in made:
            unary_plus = tokens.word(index) == "+" and not vocabulary.ends_operand(tokens, index - 1)
            kept += [] if unary_plus and index + 1 < len(tokens) else [made.get(index, tokens[index])]
            index += 1
            continue
        close = tokens.partner[index]
        bracket = tokens.cut(index, close + 1)
        _refuse_misplaced(kept, windows, bracket)
        windows[kept[-1].start] = parse_window(bracket, expression)
        index = close + 1
    return Lifted(Tokens(tokens.text, tuple(kept)), windows)


def _made_arrays(tokens: Tokens) -> dict[int, Token]:
    """`ARRAY[1, 2]` is array(1, 2): what stands for its brackets."""
    found = {}
    for index in range(1, len(tokens)):
        named = tokens.word(index - 1) == "ARRAY" and tokens.word(index - 2) not in ("FROM", "JOIN", ".")
        if tokens.word(index) == "[" and named:
            for at, sign in ((index, "("), (tokens.partner[index], ")")):
                found[at] = replace(tokens[at], text=sign, word=sign)
    return found


def _is_element(tokens: Tokens, index: int) -> bool:
    """Whether a bracket holds the place or the key of an element: one number or text, and not in FROM."""
    one = tokens.partner[index] == index + 2
    named = tokens.word(index - 2) not in ("FROM", "JOIN")
    return one and named and tokens.is_kind(index + 1, TokenKind.NUMBER, TokenKind.STRING)


def _refuse_misplaced(kept: list[Token], windows: dict[int, WindowSyntax], bracket: Tokens) -> None:
    if kept and kept[-1].start in windows:
        refuse(
            bracket,
            "two windows on one stream",
            "window-place",
            "put the stream into FROM twice, or a window on a nested query",
        )
    if not kept or not (kept[-1].is_name or kept[-1].word == ")"):
        refuse(
            bracket,
            "this window follows nothing that it could be on",
            "window-place",
            "a window stands directly after a stream or a nested query in FROM",
        )


# ------------------------------------------------------------ clauses
#
# `LATERAL VIEW [OUTER] explode(x) t AS a`, which follows FROM, `UNNEST(x) WITH ORDINALITY`,
# `t FOR SYSTEM_TIME AS OF s.ts` and EMIT at the end are not shown to sqlglot; `FETCH FIRST n ROWS ONLY` is
# shown as LIMIT, `* EXCLUDE` as `* EXCEPT`, and `= ANY (SELECT …)` as IN.

UNNESTING = ("UNNEST", "EXPLODE", "POSEXPLODE")


def lift_clauses(lifted: Lifted, expression: ReadExpression) -> None:
    tokens = lifted.tokens
    for index in range(len(tokens)):
        match tokens.words(index, 2):
            case "LATERAL", "VIEW":
                cursor = Cursor(tokens, index + 2)
                lifted.laterals[tokens[index].start] = _lateral(cursor, index, expression)
                lifted.blank(*range(index, cursor.index))
            case "LATERAL", word if word in UNNESTING:
                lifted.blank(index)
            case "WITH", "ORDINALITY" if tokens.word(index - 1) == ")":
                lifted.ordinalities.add(tokens[tokens.partner[index - 1]].start)
                lifted.blank(index, index + 1)
            case "FOR", "SYSTEM_TIME" if index > 0:
                cursor = Cursor(tokens, index + 2)
                lifted.as_of[tokens[index - 1].start] = _time(cursor, expression)
                lifted.blank(*range(index, cursor.index))
            case "EMIT", "CHANGES" | "FINAL" | "ON":
                _emit(lifted, Cursor(tokens, index + 1))
            case "FETCH", "FIRST" | "NEXT":
                _fetch(lifted, Cursor(tokens, index + 2))
            case "EXCLUDE", "(" if tokens.word(index - 1) == "*":
                lifted.swapped[index] = "EXCEPT"
            case _, "(" if vocabulary.is_any_of_query(tokens, index):
                lifted.blank(index - 1)
                lifted.swapped[index] = "IN"


def _time(cursor: Cursor, expression: ReadExpression) -> Node:
    """The time behind AS OF: a column, or a call."""
    cursor.expect("AS", "OF")
    begin = cursor.index
    cursor.name("the time of a row, as in b.ts,")
    while cursor.take("."):
        cursor.name("a column")
    if cursor.word == "(":
        cursor.parenthesis()
    return expression(cursor.tokens.cut(begin, cursor.index))


def _emit(lifted: Lifted, cursor: Cursor) -> None:
    """`EMIT CHANGES | FINAL | ON WINDOW CLOSE | ON UPDATE`, behind all else but LIMIT."""
    tokens, first = cursor.tokens, cursor.index - 1
    long = tokens.words(cursor.index, 3) == ("ON", "WINDOW", "CLOSE")
    last = cursor.index + (2 if long else 1 if tokens.word(cursor.index) == "ON" else 0)
    known = long or tokens.words(first + 1, last - first) in (("CHANGES",), ("FINAL",), ("ON", "UPDATE"))
    if known and tokens.word(last + 1) in ("", "LIMIT"):
        span = tokens[first].span.to(tokens[last].span)
        lifted.emits = EmitClause(span, final=long or tokens.word(last) == "FINAL")
        lifted.blank(*range(first, last + 1))


def _fetch(lifted: Lifted, cursor: Cursor) -> None:
    """`FETCH FIRST 3 ROWS ONLY` is LIMIT 3."""
    begin = cursor.index
    cursor.whole("a number of rows")
    cursor.choose(("ROW", "ROWS"), "ROWS")
    cursor.expect("ONLY")
    lifted.swapped[begin - 2] = "LIMIT"
    lifted.blank(begin - 1, begin + 1, begin + 2)


def _lateral(cursor: Cursor, begin: int, expression: ReadExpression) -> Unnesting:
    outer = cursor.take("OUTER")
    function, place = cursor.word.removesuffix("_OUTER"), cursor.here.span if not cursor.done else None
    if function not in UNNESTING:
        refuse(
            place or cursor.tokens[begin].span,
            "LATERAL VIEW takes explode(…) or posexplode(…)",
            "not-supported",
            "write LATERAL VIEW explode(x) t AS a",
        )
    outer = outer or cursor.word.endswith("_OUTER")
    cursor.index += 1
    array = expression(cursor.parenthesis())
    named = not cursor.done and cursor.here.is_name and not vocabulary.is_keyword(cursor.tokens, cursor.index)
    alias = cursor.name("a name") if named else None
    columns = [cursor.name("a column")] if cursor.take("AS") else []
    while columns and cursor.take(","):
        columns.append(cursor.name("a column"))
    return Unnesting(cursor.span_since(begin), function, array, alias, tuple(columns), outer)
