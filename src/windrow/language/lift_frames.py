"""The frame inside an OVER, `ROWS | RANGE [BETWEEN] n PRECEDING [AND CURRENT ROW]`, and IGNORE NULLS before.

sqlglot is not shown them: their words are names elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from windrow.errors import QueryError
from windrow.language.cursor import Cursor
from windrow.language.syntax import FrameSyntax
from windrow.language.tokens import Kind
from windrow.windows.units import Quantity

if TYPE_CHECKING:
    from windrow.language.lift import Lifted
    from windrow.language.tokens import Tokens

_KINDS = ("ROWS", "RANGE", "GROUPS")
_SIDES = ("PRECEDING", "FOLLOWING")
#: the row itself
_ROW = Quantity(0)
_FOLLOWS = "an answer would have to wait for rows that come later; take the frame up to CURRENT ROW"


def lift_frames(lifted: Lifted) -> None:
    """Take the frames of all OVERs."""
    tokens = lifted.tokens
    for index in range(len(tokens)):
        if tokens.word(index) != "OVER" or tokens.word(index + 1) != "(":
            continue
        if tokens.words(index - 2, 2) in (("IGNORE", "NULLS"), ("RESPECT", "NULLS")):
            if tokens.word(index - 2) == "IGNORE":
                lifted.ignoring.add(tokens[index + 1].start)
            lifted.blank(index - 2, index - 1)
        close = tokens.partner[index + 1]
        begin = _frame_at(tokens, index + 2, close)
        if begin is not None:
            lifted.frames[tokens[index + 1].start] = _frame(tokens.cut(begin, close))
            lifted.blank(*range(begin, close))


def _frame_at(tokens: Tokens, begin: int, close: int) -> int | None:
    """Where the frame begins: at its word, behind an operand and before a bound."""
    at = begin
    while at < close:
        bounds = tokens.word(at + 1) in ("BETWEEN", "UNBOUNDED", "CURRENT", "INTERVAL")
        if tokens.word(at) in _KINDS and (bounds or tokens.is_kind(at + 1, Kind.NUMBER)):
            return at
        at = tokens.partner[at] + 1 if tokens.word(at) == "(" else at + 1
    return None


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
    amount = None if cursor.take("UNBOUNDED") else cursor.quantity("a number of rows or a length", _SIDES)
    if cursor.word == "FOLLOWING":
        _refuse(cursor.tokens, cursor.index, "a frame cannot reach to rows that follow", _FOLLOWS)
    cursor.expect("PRECEDING")
    return amount


def _refuse(tokens: Tokens, index: int, message: str, hint: str) -> NoReturn:
    raise QueryError(message, code="not-supported", span=tokens[index].span, hint=hint)
