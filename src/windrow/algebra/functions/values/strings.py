"""Functions of text, by characters (code points), as Spark's UTF8String has them."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable

from windrow.algebra.expressions import Call
from windrow.algebra.functions import patterns
from windrow.algebra.functions.values.base import Strict, Value, plain
from windrow.errors import DataError

#: no function makes a longer text; Spark's own limit is what memory allows, up to 2 GB
LONGEST_TEXT = 1 << 26
_INT_MAX = (1 << 31) - 1


def _within_limit(length: int) -> int:
    if length > LONGEST_TEXT:
        raise DataError(
            f"a text of {length} characters is too long",
            code="text-too-long",
            hint=f"the limit is {LONGEST_TEXT}",
        )
    return length


def substring(text: str, position: int, length: int = _INT_MAX) -> str:
    """From a position counted from 1, or from the end; what lies before the start counts as empty.

    >>> substring("abc", 2), substring("abc", -5, 4), substring("abc", 0, 1)
    ('bc', 'ab', 'a')
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    until = start + length
    return text[max(start, 0) : until] if until > max(start, 0) else ""


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word.lower()[len(word[:1].lower()) :] for word in text.split(" "))


def _padding(text: str, length: int, pad: str) -> str:
    missing = _within_limit(length) - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if pad and missing > 0 else ""


def _repeat(text: str, times: int) -> str:
    _within_limit(len(text) * times)
    return text * times


def split_part(text: str, delimiter: str, number: int) -> str:
    """The n-th part between delimiters; an empty delimiter splits nothing.

    >>> split_part("a.b.c", ".", -1), split_part("a.b.c", ".", 9)
    ('c', '')
    """
    if number == 0:
        raise DataError(
            "split_part counts parts from 1, or from -1 backwards; there is no part 0", code="bad-index"
        )
    parts = text.split(delimiter) if delimiter else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if 0 <= index < len(parts) else ""


def _translate(text: str, characters: str, replacements: str) -> str:
    table: dict[int, str | None] = {}
    for index, character in enumerate(characters):
        table.setdefault(ord(character), replacements[index] if index < len(replacements) else None)
    return text.translate(table)


def _sha2(value: bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if name is None else hashlib.new(name, value).hexdigest()


def locate(wanted: str, text: str, position: int = 1) -> int:
    """Where a text stands, from a position on; 0 if nowhere, or if the position is none.

    >>> locate("b", "abcb"), locate("b", "abcb", 3), locate("x", "abcb")
    (2, 4, 0)
    """
    if position < 1:
        return 0
    return text.find(wanted, position - 1) + 1 if wanted else 1


def _joined(call: Call) -> Callable[..., Value]:
    empty: Value = b"" if call.type.kind.value == "BINARY" else ""
    return lambda *values: empty.join(values)


FUNCTIONS: dict[str, Strict] = {
    "||": _joined,
    "concat": _joined,
    "length": plain(len),
    "octet_length": plain(lambda value: len(value.encode() if isinstance(value, str) else value)),
    "upper": plain(str.upper),
    "lower": plain(str.lower),
    "initcap": plain(_initcap),
    "trim": plain(lambda text, characters=" ": text.strip(characters) if characters else text),
    "ltrim": plain(lambda text, characters=" ": text.lstrip(characters) if characters else text),
    "rtrim": plain(lambda text, characters=" ": text.rstrip(characters) if characters else text),
    "substring": plain(substring),
    "left": plain(lambda text, length: text[: max(length, 0)]),
    "right": plain(lambda text, length: text[max(len(text) - length, 0) :] if length > 0 else ""),
    "replace": plain(lambda text, old, new="": text.replace(old, new) if old else text),
    "lpad": plain(lambda text, length, pad=" ": _padding(text, length, pad) + text[: max(length, 0)]),
    "rpad": plain(lambda text, length, pad=" ": text[: max(length, 0)] + _padding(text, length, pad)),
    "repeat": plain(_repeat),
    "space": plain(lambda times: _repeat(" ", times)),
    "reverse": plain(lambda text: text[::-1]),
    "split_part": plain(split_part),
    "startswith": plain(str.startswith),
    "endswith": plain(str.endswith),
    "contains": plain(str.__contains__),
    "translate": plain(_translate),
    "ascii": plain(lambda text: ord(text[0]) if text else 0),
    "chr": plain(lambda code: "" if code < 0 else chr(code & 0xFF)),
    "md5": plain(lambda value: hashlib.md5(value, usedforsecurity=False).hexdigest()),
    "sha1": plain(lambda value: hashlib.sha1(value, usedforsecurity=False).hexdigest()),
    "sha2": plain(_sha2),
    "crc32": plain(zlib.crc32),
    "hex": plain(lambda value: value.hex().upper()),
}


# ------------------------------------------------------------ patterns
#
# LIKE and regular expressions.


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    """Whether the whole text matches, in time at most |text|·|pattern|: only the last % is ever reconsidered.

    >>> like("abcabd", "%ab_"), like("50%", r"50\\%")
    (True, True)
    """
    tokens = patterns.like_tokens(pattern, escape)
    if tokens is None:
        message, hint = patterns.misplaced_escape(pattern, escape)
        raise DataError(message, code="bad-pattern", hint=hint)
    at = token = 0
    resume_at, resume_token = 0, -1
    while at < len(text):
        if token < len(tokens) and tokens[token] == patterns.ANY_TEXT:
            resume_at, resume_token = at, token
            token += 1
        elif token < len(tokens) and tokens[token] in (patterns.ANY_CHARACTER, text[at]):
            at, token = at + 1, token + 1
        elif resume_token >= 0:
            resume_at += 1
            at, token = resume_at, resume_token + 1
        else:
            return False
    return all(rest == patterns.ANY_TEXT for rest in tokens[token:])


def _extract(text: str, pattern: str, group: int) -> str:
    match = patterns.compile_pattern(pattern).search(text)
    return (match[group] or "") if match else ""


def _replace_pattern(text: str, pattern: str, replacement: str) -> str:
    template = re.sub(r"\$([0-9])", r"\\g<\1>", replacement)
    return patterns.compile_pattern(pattern).sub(template, text)


PATTERNS: dict[str, Strict] = {
    "like": plain(like),
    "rlike": plain(lambda text, pattern: patterns.compile_pattern(pattern).search(text) is not None),
    "regexp_extract": plain(_extract),
    "regexp_replace": plain(_replace_pattern),
}
