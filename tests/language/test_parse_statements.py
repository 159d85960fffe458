"""Statements: declarations with all their options, and the small ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.language.parse_shown import shown

from windrow.language.compile import parse_columns, parse_script, parse_stream_options
from windrow.language.syntax import (
    CreateQuery,
    CreateStream,
    CreateTable,
    Drop,
    Explain,
    ProgressSyntax,
    SelectOnce,
    Show,
    Statement,
)
from windrow.windows.domain import Quantity


def _one(text: str) -> Statement:
    (statement,) = parse_script(text)
    return statement


def test_a_stream_with_all_its_parts() -> None:
    stream = _one(
        "CREATE STREAM bids (item BIGINT, price DECIMAL(10, 2), `bid der` STRING, ts TIMESTAMP)"
        " WATTR ts SLACK 5 SECONDS LATE TO 'files:///late' SHEDDABLE FROM 'kafka://host:9092/bids';"
    )
    assert isinstance(stream, CreateStream)
    assert [(column.name, column.type_text) for column in stream.columns] == [
        ("item", "BIGINT"),
        ("price", "DECIMAL(10, 2)"),
        ("bid der", "STRING"),
        ("ts", "TIMESTAMP"),
    ]
    assert (stream.name, stream.wattr, stream.late, stream.late_sink) == ("bids", "ts", "TO", "files:///late")
    assert stream.sheddable
    assert stream.source == "kafka://host:9092/bids"


def test_a_stream_with_nothing_but_columns() -> None:
    stream = _one("create stream s (a ARRAY<STRUCT<b: BIGINT>>)".replace(": ", " "))
    assert isinstance(stream, CreateStream)
    assert (stream.wattr, stream.progress, stream.late, stream.sheddable, stream.source) == (
        None,
        None,
        "DROP",
        False,
        None,
    )
    assert stream.columns[0].type_text == "ARRAY<STRUCT<b BIGINT>>"


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("SLACK 5 SECONDS", "SLACK", {"amount": Quantity(5, "SECONDS")}),
        ("SLACK 100 ROWS", "SLACK", {"amount": Quantity(100, "ROWS")}),
        ("SLACK 20", "SLACK", {"amount": Quantity(20)}),
        ("ORDERED", "ORDERED", {}),
        ("ORDERED PER bidder", "ORDERED", {"per": "bidder"}),
        ("ORDERED PER bidder IDLE 30 SECONDS", "ORDERED", {"per": "bidder", "idle": Quantity(30, "SECONDS")}),
        ("PUNCTUATED BY mark", "PUNCTUATED", {"mark": "mark"}),
        ("PUNCTUATED BY a + 1 PER c", "PUNCTUATED", {"mark": "(+ a 1)", "per": "c"}),
        ("PUNCTUATED BY a WHEN b > 1", "PUNCTUATED", {"mark": "a", "when": "(> b 1)"}),
        (
            "PUNCTUATED BY CASE WHEN a = 0 THEN ts END PER c WHEN a = 0",
            "PUNCTUATED",
            {"mark": "(case (= a 0) ts)", "per": "c", "when": "(= a 0)"},
        ),
    ],
)
def test_how_a_stream_makes_progress(text: str, kind: str, parts: dict[str, Any]) -> None:
    for written in (f"WATTR ts {text} LATE KEEP", f"LATE KEEP {text} WATTR ts"):
        options = parse_stream_options(written)
        progress = options.progress
        assert isinstance(progress, ProgressSyntax)
        assert (options.wattr, options.late, progress.kind) == ("ts", "KEEP", kind)
        assert written[progress.span.start : progress.span.end] == text
        found = {name: value for name, value in vars(progress).items() if value is not None}
        trees = {name: shown(value) for name, value in found.items() if name in ("mark", "when")}
        assert found | trees == {"span": progress.span, "kind": kind, **parts}


def test_no_options_are_options_too() -> None:
    options = parse_stream_options("")
    assert (options.wattr, options.progress, options.late) == (None, None, "DROP")


@pytest.mark.parametrize(
    ("text", "key", "kind", "source"),
    [
        ("(item BIGINT, name STRING, KEY (item)) NRR FROM 'x'", ("item",), "NRR", "x"),
        ("(KEY (a, b), a INT, b INT) RELATION FROM 'x'", ("a", "b"), "RELATION", "x"),
        ("(a INT, PRIMARY KEY (a))", ("a",), "NRR", None),
        ("(key INT) RELATION", (), "RELATION", None),
    ],
)
def test_create_table_is_read_with_key_kind_and_source(
    text: str, key: tuple[str, ...], kind: str, source: str | None
) -> None:
    table = _one(f"CREATE TABLE items {text}")
    assert isinstance(table, CreateTable)
    assert (table.name, table.key, table.kind, table.source) == ("items", key, kind, source)


def test_a_query_with_all_its_options() -> None:
    query = _one(
        "CREATE QUERY q AS SELECT a FROM t [NOW] EVERY 10 SECONDS MAX GAP 2 PRIORITY -3 INTO 'memory:'"
    )
    assert isinstance(query, CreateQuery)
    assert shown(query.query) == "SELECT a FROM t [NOW]"
    assert (query.sink, query.priority, query.max_gap, query.every) == (
        "memory:",
        -3,
        2,
        Quantity(10, "SECONDS"),
    )


def test_the_words_of_the_options_may_be_names() -> None:
    query = _one("CREATE QUERY q AS SELECT max(gap) AS priority, every, max FROM into [NOW] max")
    assert isinstance(query, CreateQuery)
    assert shown(query.query) == "SELECT (max gap) AS priority, every, max FROM into AS max [NOW]"
    assert (query.sink, query.priority, query.max_gap, query.every) == (None, 0, None, None)


def test_the_small_statements() -> None:
    script = parse_script(
        """-- a comment; with a semicolon
        DROP QUERY q; DROP STREAM s; DROP TABLE `t;u`;;
        SHOW QUERIES; SHOW STREAMS; SHOW TABLES; /* ; */
        EXPLAIN SELECT ';' FROM s; (SELECT 1) UNION ALL (SELECT 2); WITH x AS (SELECT 1) SELECT * FROM x
        """
    )
    kinds = [type(statement) for statement in script]
    assert kinds == [Drop, Drop, Drop, Show, Show, Show, Explain, SelectOnce, SelectOnce]
    assert [(statement.kind, statement.name) for statement in script if isinstance(statement, Drop)] == [
        ("QUERY", "q"),
        ("STREAM", "s"),
        ("TABLE", "t;u"),
    ]


def test_an_empty_script_has_no_statements() -> None:
    assert parse_script(" ; -- nothing\n ;") == ()


def test_columns_by_themselves() -> None:
    columns = parse_columns("a BIGINT, `b c` DECIMAL(10,2), key STRING")
    assert [(column.name, column.type_text) for column in columns] == [
        ("a", "BIGINT"),
        ("b c", "DECIMAL(10,2)"),
        ("key", "STRING"),
    ]


def test_statements_know_their_places() -> None:
    text = "SHOW STREAMS;\n CREATE QUERY q AS SELECT a FROM t INTO 'x';"
    written = [text[statement.span.start : statement.span.end] for statement in parse_script(text)]
    assert written == ["SHOW STREAMS", "CREATE QUERY q AS SELECT a FROM t INTO 'x'"]
