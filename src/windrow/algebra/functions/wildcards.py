"""The patterns of LIKE."""

from __future__ import annotations

from functools import lru_cache

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
