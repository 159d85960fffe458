"""LIKE with a literal pattern as a regular expression that polars runs in linear time.

Regular expressions that users write stay with Python's `re`, whose dialect is the one that is checked
against Java's (`windrow.algebra.functions.regular`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.algebra.expressions import Literal
from windrow.algebra.functions.regular import ANY_CHARACTER, ANY_TEXT, Token, like_tokens
from windrow.kernels.columnar.functions.base import Operation, Strict, total

if TYPE_CHECKING:
    from windrow.algebra.expressions import Call

#: a longer pattern might be too large for polars when it is compiled
_LONGEST = 200


def _like(call: Call) -> Operation | None:
    literals = [arg.value if isinstance(arg, Literal) else None for arg in call.args[1:]]
    if None in literals:
        return None
    tokens = like_tokens(*literals)
    if tokens is None or len(tokens) > _LONGEST:
        return None
    pattern = regular_form(tokens)
    return total(lambda text, *_: text.str.contains(pattern))


def regular_form(tokens: tuple[Token, ...]) -> str:
    r"""The regular expression that finds something in a text which the pattern matches.

    >>> print(regular_form(like_tokens("a_%")))
    (?s)\A\x{61}.
    """
    parts = [_part(token) for token in tokens]
    while parts and parts[-1] == ".*":
        parts.pop()
    end = r"\z" if not tokens or tokens[-1] != ANY_TEXT else ""
    return r"(?s)\A" + "".join(parts) + end


def _part(token: Token) -> str:
    if isinstance(token, int):
        return {ANY_TEXT: ".*", ANY_CHARACTER: "."}[token]
    return f"\\x{{{ord(token):x}}}"


FUNCTIONS: dict[str, Strict] = {"like": _like}
