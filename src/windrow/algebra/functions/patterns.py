"""Matching text. LIKE takes any pattern; a regular expression must be a literal, of the part of the
language on which Java and Python agree (`regular.py`), so that every executor finds the same."""

from __future__ import annotations

from windrow.algebra.expressions import Call, Expression, Literal
from windrow.algebra.functions.coercion import mismatch
from windrow.algebra.functions.registry import SHORT, TEXT, Function, accept, call, constant
from windrow.algebra.functions.regular import (
    check_replacement,
    compile_pattern,
    like_tokens,
    misplaced_escape,
)
from windrow.algebra.types import BOOLEAN, INT, STRING
from windrow.errors import QueryError


def _like(name: str, args: tuple[Expression, ...]) -> Expression:
    accepted = accept(name, args, (TEXT,))
    escape = constant(name, accepted[2], "the escape character") if len(accepted) == 3 else "\\"
    if escape is None or len(escape) != 1:
        mismatch(name, args, "one escape character")
    pattern = accepted[1]
    if isinstance(pattern, Literal) and pattern.value is not None:
        _check_escapes(pattern.value, escape)
    return Call(name, accepted, BOOLEAN)


def _check_escapes(pattern: str, escape: str) -> None:
    if like_tokens(pattern, escape) is None:
        message, hint = misplaced_escape(pattern, escape)
        raise QueryError(message, code="bad-pattern", hint=hint)


def _ilike(_: str, args: tuple[Expression, ...]) -> Expression:
    """As in Spark: both sides in lower case, but for the escape character."""
    text, pattern, *escape = args
    result = call("like", (call("lower", (text,)), call("lower", (pattern,)), *escape))
    if isinstance(pattern, Literal) and isinstance(pattern.value, str):
        _check_escapes(pattern.value.lower(), constant("ilike", escape[0], "it") if escape else "\\")
    return result


def _pattern_groups(name: str, pattern: Expression) -> int:
    text = constant(name, pattern, "the pattern")
    return 0 if text is None else compile_pattern(text).groups


def _rlike(name: str, args: tuple[Expression, ...]) -> Expression:
    accepted = accept(name, args, (TEXT,))
    _pattern_groups(name, accepted[1])
    return Call(name, accepted, BOOLEAN)


def _extract(name: str, args: tuple[Expression, ...]) -> Expression:
    text, pattern, *rest = accept(name, args, (TEXT, TEXT, SHORT))
    group = rest[0] if rest else Literal(1, INT)
    number, groups = constant(name, group, "the group"), _pattern_groups(name, pattern)
    if number is not None and not 0 <= number <= groups:
        raise QueryError(
            f"the pattern has {groups} groups, so none with number {number}",
            code="bad-pattern",
            hint="0 is the whole match; put parentheses around what you want",
        )
    return Call(name, (text, pattern, group), STRING)


def _matches_nothing(pattern: Expression) -> bool:
    """Whether the empty text is one of its matches."""
    text = constant("regexp_replace", pattern, "the pattern")
    return text is not None and compile_pattern(text).search("") is not None


def _replace(name: str, args: tuple[Expression, ...]) -> Expression:
    accepted = accept(name, args, (TEXT,))
    groups = _pattern_groups(name, accepted[1])
    if _matches_nothing(accepted[1]):
        raise QueryError(
            "a pattern that matches the empty text replaces in places where Java and others disagree",
            code="bad-pattern",
            hint="repeat with + instead of *",
        )
    replacement = constant(name, accepted[2], "the replacement")
    if replacement is not None:
        check_replacement(replacement, groups)
    return Call(name, accepted, STRING)


FUNCTIONS = (
    Function(
        "like",
        (2, 3),
        _like,
        "whether it matches a pattern of % (any text) and _ (any character)",
        "'100%' LIKE '1__\\\\%' -> TRUE",
        sql="{0} LIKE {1}[ ESCAPE {2}]",
        precedence=50,
        can_fail=True,
    ),
    Function(
        "ilike",
        (2, 3),
        _ilike,
        "LIKE in any case: both sides are put into lower case",
        "'Item' ILIKE 'iT%' -> TRUE",
        sql="{0} ILIKE {1}[ ESCAPE {2}]",
        precedence=50,
        can_fail=True,
    ),
    Function(
        "rlike",
        (2, 2),
        _rlike,
        "whether a regular expression finds something in it",
        "'item-42' RLIKE '[0-9]+$' -> TRUE",
        sql="{0} RLIKE {1}",
        precedence=50,
        aliases=("regexp_like", "regexp"),
    ),
    Function(
        "regexp_extract",
        (2, 3),
        _extract,
        "a group of the first match of a regular expression; empty if there is none",
        "regexp_extract('item-42', '([a-z]+)-([0-9]+)', 2) -> '42'",
    ),
    Function(
        "regexp_replace",
        (3, 3),
        _replace,
        "every match of a regular expression replaced; $1 is its first group",
        "regexp_replace('a1b22', '[0-9]+', '#') -> 'a#b#'",
    ),
)
