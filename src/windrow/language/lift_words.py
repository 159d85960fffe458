"""Stream words: ISTREAM, DSTREAM, RSTREAM, WSTREAM and the RESTORE forms, around a select list.

A word and its parentheses are blanked out, so that `SELECT RSTREAM(DISTINCT a)` leaves `SELECT DISTINCT a`.
WSTREAM may also be the argument of an aggregate, so it stays, as one placeholder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError, Span
from windrow.language.places import words
from windrow.language.shape import is_misspelt, unexpected
from windrow.language.tokens import Tokens
from windrow.language.vocabulary import begins_operand, ends_operand

if TYPE_CHECKING:
    from windrow.language.lift import Lifted

_WORDS = {word.value: word for word in StreamWord if word.value}
_ENDS_LIST = words("FROM WHERE GROUP HAVING ORDER LIMIT UNION EXCEPT MINUS INTERSECT )")


def lift_stream_words(lifted: Lifted) -> None:
    """Take the stream words of all SELECTs."""
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
        raise QueryError(
            "WSTREAM_RESTORE does not exist: more results may come at once than its window holds",
            code="stream-word",
            span=tokens[first].span.to(tokens[index].span),
            hint="use WSTREAM, or RSTREAM_RESTORE",
        )
    return (word if word in _WORDS or word == "WSTREAM" else ""), index + 1


def refuse_before_select(tokens: Tokens) -> None:
    """CQL has the stream word around the query; here it is around the select list."""
    name, behind = _stream_word(tokens, 0)
    if name and tokens.word(behind) in ("(", "SELECT"):
        raise QueryError(
            f"{name} stands around the select list, not around the query",
            code="stream-word",
            span=tokens[0].span,
            hint=f"write SELECT {name}(…) FROM …",
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
        if is_misspelt(tokens, close + 1, "FROM"):
            raise unexpected(tokens, tokens[close + 1].start)
        raise _not_whole_list(name, tokens[first].span.to(tokens[close].span))
    _refuse_clauses_inside(tokens, name, open_at, close)
    lifted.words[tokens[select].start] = _WORDS[name]
    lifted.blank(*range(first, open_at + 1), close)


def _refuse_without_parentheses(tokens: Tokens, name: str, first: int, after: int) -> None:
    star = tokens.word(after) == "*" and not begins_operand(tokens, after + 1)
    if star or (begins_operand(tokens, after) and not ends_operand(tokens, first - 1)):
        raise QueryError(
            f"{name} needs parentheses around the select list",
            code="stream-word",
            span=tokens[first].span,
            hint=f"write SELECT {name}(…) FROM …",
        )


def _refuse_clauses_inside(tokens: Tokens, name: str, open_at: int, close: int) -> None:
    if close == open_at + 1:
        raise QueryError(
            f"{name} encloses nothing",
            code="stream-word",
            span=tokens[open_at].span.to(tokens[close].span),
            hint=f"write {name}(*) for all columns",
        )
    index = open_at + 1
    while index < close:
        if tokens.word(index) in ("ORDER", "LIMIT"):
            raise QueryError(
                f"{tokens.word(index)} does not stand inside {name}(…)",
                code="stream-word",
                span=tokens[index].span,
                hint="write it at the end of the query",
            )
        index = tokens.partner[index] + 1 if tokens.word(index) == "(" else index + 1


def _wstream(lifted: Lifted, index: int, open_at: int) -> None:
    tokens = lifted.tokens
    close = tokens.partner[open_at]
    if tokens[close].start not in lifted.windows:
        raise QueryError(
            "WSTREAM needs a window behind it",
            code="stream-word",
            span=tokens[index].span.to(tokens[close].span),
            hint="write WSTREAM(…)[ROWS 10] or WSTREAM(…)[RANGE 1 MINUTE]",
        )
    _refuse_clauses_inside(tokens, "WSTREAM", open_at, close)
    lifted.cover(index, close)
    lifted.wstreams[tokens[index].start] = tokens.cut(open_at + 1, close)


def _not_whole_list(name: str, span: Span) -> QueryError:
    return QueryError(
        f"{name} encloses the whole select list",
        code="stream-word",
        span=span,
        hint=f"write SELECT {name}(a, b AS c) FROM …",
    )
