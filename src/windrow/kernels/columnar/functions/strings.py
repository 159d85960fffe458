"""Functions of text on columns, by characters (code points).

Case is mapped by polars only where all is ASCII: its tables of Unicode are not those of the reference. LIKE
with a literal pattern is a regular expression that polars runs in linear time. Regular expressions that users
write stay with Python's `re`, whose dialect is the one that is checked against Java's
(`windrow.algebra.functions.patterns`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np
import polars as pl

from windrow.algebra import INT, STRING, Call, Kind, Literal
from windrow.algebra.functions.patterns import ANY_CHARACTER, ANY_TEXT, Token, like_tokens
from windrow.algebra.functions.values.strings import locate
from windrow.kernels.columnar.functions import base
from windrow.windows.domain import Ints

_INT_MAX = (1 << 31) - 1


def _of_literals(form: Callable[..., Callable[[pl.Series], pl.Series] | None]) -> base.Strict:
    """A form of the first argument, if all others are literals that are not NULL."""

    def build(call: Call) -> base.Operation | None:
        others = [arg.value if isinstance(arg, Literal) else None for arg in call.args[1:]]
        known = None if None in others else form(*others)
        return None if known is None else lambda a, *_: base.Outcome(known(a))

    return build


def is_ascii(column: pl.Series) -> bool:
    """Whether all its texts are.

    >>> is_ascii(pl.Series(["a", "b"])), is_ascii(pl.Series(["a", "é"]))
    (True, False)
    """
    return bool((column.str.len_bytes() == column.str.len_chars()).all())


def _cased(ascii_form: Callable[[pl.Series], pl.Series], meaning: Callable[[str], str]) -> base.Strict:
    general = base.by_value(meaning, [STRING], STRING)
    return lambda _: lambda a: base.Outcome(ascii_form(a)) if is_ascii(a) else general(a)


def _sliced(text: pl.Series, start: Ints, length: Ints) -> pl.Series:
    parts = pl.DataFrame({"text": text, "start": start, "length": np.maximum(length, 0).astype(np.uint64)})
    return parts.select(pl.col("text").str.slice(pl.col("start"), pl.col("length"))).to_series()


def _substring(text: pl.Series, position: pl.Series, length: pl.Series | None = None) -> pl.Series:
    """What lies before the start counts as empty."""
    place, size = base.longs(position), base.longs(text.str.len_chars())
    start = np.where(place > 0, place - 1, np.where(place < 0, size + place, 0))
    until: Ints = start + (np.int64(_INT_MAX) if length is None else base.longs(length))
    return _sliced(text, np.maximum(start, 0), until - np.maximum(start, 0))


def _left(text: pl.Series, length: pl.Series) -> pl.Series:
    return _sliced(text, np.zeros(len(text), dtype=np.int64), base.longs(length))


def _right(text: pl.Series, length: pl.Series) -> pl.Series:
    kept = base.longs(length)
    return _sliced(text, np.maximum(base.longs(text.str.len_chars()) - kept, 0), kept)


def _tested(test: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> base.Strict:
    """A test of one text by another."""
    return base.plain(
        lambda a, b: pl.DataFrame({"a": a, "b": b}).select(test(pl.col("a"), pl.col("b"))).to_series()
    )


def _trimmed(form: Callable[[pl.Series, str], pl.Series]) -> base.Strict:
    return _of_literals(lambda characters=" ": lambda a: form(a, characters) if characters else a)


def _replaced(old: str, new: str = "") -> Callable[[pl.Series], pl.Series]:
    return lambda a: a.str.replace_all(old, new, literal=True) if old else a


def _measured(text: Callable[[pl.Series], pl.Series]) -> base.Strict:
    """A size of text; of bytes, their number."""
    return lambda call: base.total(text if call.args[0].type.kind is Kind.STRING else lambda a: a.bin.size())


@base.lazy
def _locate(call: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    """Where a text stands, from a position on. A NULL position finds nothing, as in Hive."""
    positions = [arg.evaluate(frame) for arg in args[2:]]
    asked = positions[0].is_not_null() if positions else pl.Series([True]).new_from_index(0, frame.height)
    columns = [*(arg.within(frame, asked) for arg in args[:2]), *positions]
    whole = reduce(lambda rows, column: rows & column.is_not_null(), columns, asked)
    found = base.nulls(pl.Int32(), frame.height)
    if whole.any():
        find = base.by_value(locate, [arg.type for arg in call.args], INT)
        found = base.spread(find(*(column.filter(whole) for column in columns)).result, whole)
    return found.zip_with(asked, pl.Series([0], dtype=pl.Int32).new_from_index(0, frame.height))


@base.lazy
def _concat_ws(_: Call, args: tuple[base.Compiled, ...], frame: pl.DataFrame) -> pl.Series:
    separator, *texts = args
    between = separator.evaluate(frame)
    asked = between.is_not_null()
    result = base.nulls(pl.String(), frame.height)
    for text in texts:
        column = text.within(frame, asked)
        longer = (result + between + column).zip_with(result.is_not_null(), column)
        result = longer.zip_with(column.is_not_null(), result)
    return result.fill_null("").zip_with(asked, base.nulls(pl.String(), frame.height))


#: a longer pattern might be too large for polars when it is compiled
_LONGEST = 200


def _like(call: Call) -> base.Operation | None:
    literals = [arg.value if isinstance(arg, Literal) else None for arg in call.args[1:]]
    tokens = None if None in literals else like_tokens(*literals)
    if tokens is None or len(tokens) > _LONGEST:
        return None
    pattern = regular_form(tokens)
    return base.total(lambda text, *_: text.str.contains(pattern))


def regular_form(tokens: tuple[Token, ...]) -> str:
    r"""The regular expression that finds something in a text which the pattern matches.

    >>> print(regular_form(like_tokens("a_%")))
    (?s)\A\x{61}.
    """
    parts = [
        f"\\x{{{ord(token):x}}}" if isinstance(token, str) else {ANY_TEXT: ".*", ANY_CHARACTER: "."}[token]
        for token in tokens
    ]
    while parts and parts[-1] == ".*":
        parts.pop()
    end = r"\z" if not tokens or tokens[-1] != ANY_TEXT else ""
    return r"(?s)\A" + "".join(parts) + end


FUNCTIONS: dict[str, base.Strict] = {
    "||": base.plain(add),
    "concat": base.plain(lambda *columns: reduce(add, columns)),
    "length": _measured(lambda a: a.str.len_chars()),
    "octet_length": _measured(lambda a: a.str.len_bytes()),
    "upper": _cased(lambda a: a.str.to_uppercase(), str.upper),
    "lower": _cased(lambda a: a.str.to_lowercase(), str.lower),
    "trim": _trimmed(lambda a, characters: a.str.strip_chars(characters)),
    "ltrim": _trimmed(lambda a, characters: a.str.strip_chars_start(characters)),
    "rtrim": _trimmed(lambda a, characters: a.str.strip_chars_end(characters)),
    "substring": base.plain(_substring),
    "left": base.plain(_left),
    "right": base.plain(_right),
    "replace": _of_literals(_replaced),
    "startswith": _tested(lambda a, b: a.str.starts_with(b)),
    "endswith": _tested(lambda a, b: a.str.ends_with(b)),
    "contains": _tested(lambda a, b: a.str.contains(b, literal=True)),
    "hex": base.plain(lambda a: a.bin.encode("hex").str.to_uppercase()),
    "like": _like,
}
LAZY: dict[str, base.Lazy] = {"locate": _locate, "concat_ws": _concat_ws}
