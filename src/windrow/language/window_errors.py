"""What to say about a bracket that is no window."""

from __future__ import annotations

from windrow.errors import QueryError, Span, nearest
from windrow.language.places import words
from windrow.language.tokens import Kind, Tokens
from windrow.windows.units import is_unit

#: words a part of a window begins with
PARTS = words(
    "RANGE WINDOW ROWS SESSION CUMULATE LANDMARK UNBOUNDED NOW LIFETIME SLIDE ORIGIN UNTIL "
    "WATTR RATTR SATTR PATTR PARTITION INTERNAL INCLUSIVE"
)
KINDS = "RANGE, ROWS, LANDMARK, UNBOUNDED, NOW, LIFETIME, SESSION or CUMULATE"

_SIZE = "a size follows {0}, as in {0} 5 MINUTES, {0} 100 ROWS or {0} 10"
_POINT = "a point in time or a number follows {0}, as in {0} '2024-01-01 07:00:00'"
_NAME = "the name of an attribute follows {0}"
_WANTED = {
    **dict.fromkeys(("RANGE", "WINDOW", "SLIDE", "SESSION", "CUMULATE"), _SIZE),
    **dict.fromkeys(("ORIGIN", "FROM", "UNTIL", "AT"), _POINT),
    **dict.fromkeys(("WATTR", "RATTR", "PATTR"), _NAME),
    "ROWS": "the number of rows follows ROWS, as in ROWS 100",
    "SATTR": "row_num or rank(attribute) follows SATTR",
    "BY": "the names of columns follow PARTITION BY",
    "PARTITION": "write PARTITION BY",
    "LIFETIME": "how long each row lives follows LIFETIME, as in LIFETIME ttl SECONDS",
    "RANK": "write rank(attribute)",
    "START": "write UNBOUNDED START AT '…'",
}


def empty_window(span: Span) -> QueryError:
    return QueryError(
        "this window is empty", code="window-syntax", span=span, hint="write [UNBOUNDED] for all rows so far"
    )


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
    return QueryError(message, code="window-syntax", span=span, hint=_hint(inside, index))


def _is_misspelt(inside: Tokens, index: int) -> bool:
    """Whether a word was taken for a unit, and is none, but almost a part of a window: `RANGE 60 SLYDE 5`."""
    if index < 0 or inside[index].kind is not Kind.WORD or is_unit(inside[index].word):
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
    if token.kind is Kind.WORD:
        return _word_hint(token.word, index)
    if token.kind is Kind.QUOTED or index == 0:
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
