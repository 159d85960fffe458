"""LIKE and regular expressions."""

from __future__ import annotations

import re

from windrow.algebra.functions.regular import (
    ANY_CHARACTER,
    ANY_TEXT,
    compile_pattern,
    like_tokens,
    misplaced_escape,
)
from windrow.algebra.functions.values.base import Strict, plain
from windrow.errors import DataError


def like(text: str, pattern: str, escape: str = "\\") -> bool:
    """Whether the whole text matches, in time at most |text|·|pattern|: only the last % is ever reconsidered.

    >>> like("abcabd", "%ab_"), like("50%", r"50\\%")
    (True, True)
    """
    tokens = like_tokens(pattern, escape)
    if tokens is None:
        message, hint = misplaced_escape(pattern, escape)
        raise DataError(message, code="bad-pattern", hint=hint)
    at = token = 0
    resume_at, resume_token = 0, -1
    while at < len(text):
        if token < len(tokens) and tokens[token] == ANY_TEXT:
            resume_at, resume_token = at, token
            token += 1
        elif token < len(tokens) and tokens[token] in (ANY_CHARACTER, text[at]):
            at, token = at + 1, token + 1
        elif resume_token >= 0:
            resume_at += 1
            at, token = resume_at, resume_token + 1
        else:
            return False
    return all(rest == ANY_TEXT for rest in tokens[token:])


def _extract(text: str, pattern: str, group: int) -> str:
    match = compile_pattern(pattern).search(text)
    return (match[group] or "") if match else ""


def _replace(text: str, pattern: str, replacement: str) -> str:
    template = re.sub(r"\$([0-9])", r"\\g<\1>", replacement)
    return compile_pattern(pattern).sub(template, text)


FUNCTIONS: dict[str, Strict] = {
    "like": plain(like),
    "rlike": plain(lambda text, pattern: compile_pattern(pattern).search(text) is not None),
    "regexp_extract": plain(_extract),
    "regexp_replace": plain(_replace),
}
