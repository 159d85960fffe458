"""The regular expressions that mean the same to Java and to Python."""

from __future__ import annotations

import pytest

from windrow.algebra.functions.patterns import MAX_PATTERN, check_replacement, compile_pattern
from windrow.errors import QueryError


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a$", "a\n", True),
        ("^a$", "a\r\n", True),
        ("^a$", "a\n\n", False),
        ("a.b", "a\rb", False),
        ("a.b", "a\tb", True),
        (r"\d+", "٣", False),
        (r"[\d.-]+$", "1.5-3", True),
        ("[a-]$", "-", True),
        ("(ab|cd)+e", "abcde", True),
        ("(?:ab)?c", "c", True),
        ("x{2,3}y", "xxy", True),
        (r"\{\}", "{}", True),
        ("a|", "b", True),
        ("", "", True),
    ],
)
def test_a_pattern_is_found_or_not(pattern, text, found):
    assert (compile_pattern(pattern).search(text) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(a+)+", "must not contain a repetition"),
        ("(a|ab)*", "must begin with different characters"),
        ("(.|a)*", "must begin with different characters"),
        ("a++", "one repetition after another"),
        ("a{3", "starts no count"),
        ("a{2000}", "starts no count"),
        ("*a", "repeats nothing"),
        ("^*", "an anchor cannot be repeated"),
        ("(a", "a group is not closed"),
        ("a)", "closes no group"),
        ("(?=a)", "only (…) and (?:…) groups"),
        (r"\bword", "is not supported"),
        (r"(a)\1", "is not supported"),
        ("[a[b]]", "classes within classes"),
        ("[a&&b]", "classes within classes"),
        ("[]", "empty or not closed"),
        ("[z-a]", "is empty"),
        ("a*" * 7, "more than 6 open repetitions"),
        ("a" * (MAX_PATTERN + 1), "more than 500 characters"),
    ],
)
def test_a_pattern_that_spark_reads_otherwise_is_refused(pattern, reason):
    with pytest.raises(QueryError, match=r".*") as caught:
        compile_pattern(pattern)
    assert caught.value.code == "bad-pattern"
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["$", "$12", "a\\b", "$3", "$x"])
def test_replacements_that_java_reads_otherwise(text):
    with pytest.raises(QueryError):
        check_replacement(text, groups=2)


def test_replacements_may_name_groups():
    check_replacement("<$2$1 $0>", groups=2)
