"""What a mistake in the text looks like: rendered messages, kept as pairs in `parse_errors.txt`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.support.snapshots import Pair, read_pairs

from windrow.errors import QueryError
from windrow.language.compile import parse_expression, parse_query, parse_script


def message_of(text: str) -> str:
    with pytest.raises(QueryError) as refused:
        parse_script(text)
    return refused.value.render()


PAIRS = read_pairs(Path(__file__).with_name("parse_errors.txt"), message_of)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_mistakes_are_explained(pair: Pair) -> None:
    assert message_of(pair.text) == pair.message


def test_every_message_points_somewhere_and_most_say_what_to_do() -> None:
    messages = [pair.message for pair in PAIRS]
    assert len(messages) >= 100
    assert all(" --> " in message for message in messages)
    assert sum("\n  = " in message for message in messages) >= 0.9 * len(messages)
    assert not any("cannot be read" in message for message in messages)


_A_LOT = 10_000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("SELECT " + "(" * 4_000 + "a" + ")" * 4_000, "too-deep", id="parentheses"),
        pytest.param("SELECT " + "(" * _A_LOT + "a" + ")" * _A_LOT, "too-large", id="more parentheses"),
        pytest.param("SELECT " + "NOT " * 9_000 + "a", "too-deep", id="a chain of NOT"),
        pytest.param("SELECT " + "- " * 9_000 + "a", "too-deep", id="a chain of signs"),
        pytest.param("SELECT " + "CASE WHEN " * 900 + "a", "too-deep", id="nested CASE"),
        pytest.param("SELECT " + "f(" * 33 + "a" + ")" * 33, "too-deep", id="nested calls"),
        pytest.param("SELECT a" + " + a" * 4_000, "too-deep", id="a chain of +"),
        pytest.param("SELECT a" + " UNION ALL SELECT a" * 2_000, "too-deep", id="a chain of UNION ALL"),
        pytest.param("SELECT a" + "::int" * 3_000, "too-deep", id="a chain of casts"),
        pytest.param("SELECT " + "a, " * _A_LOT + "a", "too-large", id="columns"),
        pytest.param("SELECT '" + "x" * 1_000_000 + "'", "too-large", id="a million characters"),
        pytest.param("SELECT a FROM t" + " JOIN t" * 3_000, "syntax", id="joins without conditions"),
        pytest.param("SELECT '" + "x" * 900_000, "unterminated", id="a long string without an end"),
        pytest.param("SELECT /*" + "*" * 900_000, "unterminated", id="a long comment without an end"),
        pytest.param('SELECT "' + '""' * 400_000, "unterminated", id="a long name without an end"),
        pytest.param("[" * _A_LOT, "too-deep", id="brackets"),
        pytest.param("SELECT a\0 FROM t", "unreadable", id="a NUL character"),
        pytest.param("SELECT a" + "." * 9_000 + "b", "syntax", id="points"),
        pytest.param("SELECT " + "9" * 5_000, "bad-number", id="digits"),
        pytest.param(
            "SELECT a FROM t [RANGE " + "9" * 5_000 + " SECONDS]", "bad-number", id="digits of a window"
        ),
        pytest.param("SELECT a FROM t [RANGE 1e999999999 SECONDS]", "bad-number", id="a huge exponent"),
    ],
)
def test_what_is_too_much_is_refused_at_once(text: str, code: str) -> None:
    began = time.thread_time()
    with pytest.raises(QueryError) as refused:
        parse_query(text)
    refused.value.render()
    assert refused.value.code == code
    assert time.thread_time() - began < 5  # of which a collection of garbage may take one


def test_names_used_inside_names_do_not_multiply_without_end() -> None:
    names = ", ".join(f"n{i} AS (SELECT a FROM n{i - 1} x, n{i - 1} y)" for i in range(1, 20))
    with pytest.raises(QueryError, match="copies"):
        parse_query(f"WITH n0 AS (SELECT a FROM t), {names} SELECT a FROM n19")


def test_long_lists_and_long_conditions_are_no_problem() -> None:
    assert len(parse_query("SELECT " + ", ".join(f"c{i}" for i in range(3_000))).items) == 3_000  # type: ignore[attr-defined]
    parse_query("SELECT a FROM t WHERE " + " OR ".join(f"a = {i}" for i in range(1_000)))
    parse_query("SELECT a FROM t WHERE a IN (" + ", ".join(map(str, range(4_000))) + ")")


def test_errors_know_the_file_and_the_line() -> None:
    with pytest.raises(QueryError) as refused:
        parse_script("SHOW STREAMS;\n\nSELECT a FORM t", file="traffic.cql")
    assert "--> traffic.cql:3:10" in refused.value.render()


def test_expressions_and_queries_do_not_hold_statements() -> None:
    with pytest.raises(QueryError, match="more than one statement"):
        parse_query("SELECT 1; SELECT 2")
    with pytest.raises(QueryError, match="one expression"):
        parse_expression("a, b")
