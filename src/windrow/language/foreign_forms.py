"""What to write instead of SQL of other systems, with the names that stand in the text."""

from __future__ import annotations

from windrow.language.tokens import Kind, Tokens

OVER_ALL_ROWS = ("NTILE", "PERCENT_RANK", "CUME_DIST", "LEAD", "NTH_VALUE")


def over(tokens: Tokens, index: int) -> str:
    """What to write for LEAD, NTILE and their like, or for a window that has a name."""
    function = _function_before(tokens, index)
    if function not in OVER_ALL_ROWS:
        return "write the window in parentheses: OVER (PARTITION BY … ORDER BY …)"
    inside = tokens.cut(index + 2, tokens.partner[index + 1])
    keys = _partition(inside)
    apart = f"PARTITION BY {keys} " if keys else ""
    if function in ("LEAD", "NTH_VALUE"):
        return f"look back instead: LAG(…) OVER ({apart}ORDER BY {_ordered(inside)})"
    return f"there are ROW_NUMBER, RANK and DENSE_RANK: RANK() OVER ({apart}ORDER BY {_ordered(inside)})"


def ksql_window(tokens: Tokens, index: int) -> str:
    """`FROM s WINDOW TUMBLING (SIZE 1 HOUR)` as a bracket."""
    kind, stream = tokens.word(index + 1), source_of(tokens, index)
    if tokens.word(index + 2) != "(" or kind not in ("TUMBLING", "HOPPING", "SESSION"):
        return "put the window in brackets after the stream"
    inside = tokens.cut(index + 3, tokens.partner[index + 2])
    words = [token.word or token.text for token in inside]
    size = _amount(words, "SIZE") or "1 HOUR"
    if kind == "SESSION":
        return f"write FROM {stream} [SESSION {' '.join(words[:2]) or '5 MINUTES'} INCLUSIVE]"
    advance = _amount(words, "BY") if kind == "HOPPING" else size
    return f"write FROM {stream} [RANGE {size} SLIDE {advance or size}]"


def source_of(tokens: Tokens, index: int) -> str:
    """The first source of the SELECT that an index is in; `s` if that is not a name."""
    after = [at for at in range(index, len(tokens)) if tokens.word(at) == "FROM"]
    before = [at for at in range(index, -1, -1) if tokens.word(at) == "FROM"]
    for at in (*after[:1], *before[:1]):
        if tokens.is_kind(at + 1, Kind.WORD, Kind.QUOTED):
            return tokens[at + 1].text
    return "s"


def _amount(words: list[str], behind: str) -> str | None:
    """A number and its unit behind a word."""
    if behind not in words:
        return None
    at = words.index(behind)
    return " ".join(words[at + 1 : at + 3])


def _function_before(tokens: Tokens, index: int) -> str:
    """The function of the call that ends before an index."""
    return tokens.word(tokens.partner[index - 1] - 1) if tokens.word(index - 1) == ")" else ""


def _partition(inside: Tokens) -> str:
    if inside.words(0, 2) != ("PARTITION", "BY"):
        return ""
    end = next(
        (at for at in range(len(inside)) if inside.word(at) in ("ORDER", "ROWS", "RANGE")), len(inside)
    )
    return inside.text[inside[2].start : inside[end - 1].end] if end > 2 else ""


def _ordered(inside: Tokens) -> str:
    for at in range(len(inside) - 2):
        if inside.words(at, 2) == ("ORDER", "BY"):
            return inside[at + 2].text
    return "y"
