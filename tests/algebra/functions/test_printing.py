"""Printed expressions: readable, the same when read and printed again, and SQL to others as well."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import sqlglot

from windrow.algebra.expressions import Call, Literal, WindowBound
from windrow.algebra.functions import catalogue
from windrow.algebra.functions.sql_text import literal_text, to_sql
from windrow.algebra.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    array,
    decimal,
    struct,
)

COLUMNS = {
    "a": INT,
    "b": BIGINT,
    "p": BOOLEAN,
    "q": BOOLEAN,
    "s": STRING,
    "d": DATE,
    "t": TIMESTAMP,
    "x": DOUBLE,
}
EXAMPLES = [function.example.split(" -> ")[0] for function in catalogue() if function.deterministic]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a + 1) * 2", "(a + 1) * 2"),
        ("a + 1 * 2", "a + 1 * 2"),
        ("a - (1 - 2)", "a - (1 - 2)"),
        ("a - 1 - 2", "a - 1 - 2"),
        ("a / (a / 2)", "CAST(a AS DOUBLE) / (CAST(a AS DOUBLE) / 2.0D)"),
        ("a + b", "CAST(a AS BIGINT) + b"),
        ("-(-a)", "-(-a)"),
        ("-(-5)", "-(-5)"),
        ("a - -5", "a - -5"),
        ("p AND q AND NOT p OR q", "p AND q AND NOT p OR q"),
        ("p AND (q OR p)", "p AND (q OR p)"),
        ("NOT (p AND q)", "NOT (p AND q)"),
        ("(p OR q) IS NULL", "(p OR q) IS NULL"),
        ("(a = 1) = (a = 2)", "(a = 1) = (a = 2)"),
        ("a NOT IN (1, 2)", "NOT a IN (1, 2)"),
        ("a BETWEEN 1 AND 5", "a >= 1 AND a <= 5"),
        ("s LIKE '50!%' ESCAPE '!'", "s LIKE '50!%' ESCAPE '!'"),
        ("s || (a + 1)", "s || CAST(a + 1 AS STRING)"),
        ("CASE WHEN p THEN 1 ELSE b END", "CASE WHEN p THEN 1L ELSE b END"),
        ("nullif(a, 0)", "if(a = 0, CAST(NULL AS INT), a)"),
        ("d > '2024-01-01'", "d > CAST('2024-01-01' AS DATE)"),
        ("d - d", "CAST(d - d AS INTERVAL DAY TO SECOND)"),
        ("EXTRACT(SECOND FROM t)", "EXTRACT(SECOND FROM t)"),
        ("TRY_CAST(s AS DECIMAL(10,2))", "TRY_CAST(s AS DECIMAL(10,2))"),
        ("trim('x' FROM s)", "TRIM('x' FROM s)"),
        ("trim(s)", "TRIM(s)"),
        ("~(a | 1) & 2", "~(a | 1) & 2"),
    ],
)
def test_an_expression_is_written_as_people_would(text, expected, parse):
    assert to_sql(parse(text, COLUMNS), str) == expected


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, NULL, "NULL"),
        (None, INT, "CAST(NULL AS INT)"),
        (True, BOOLEAN, "TRUE"),
        (-5, TINYINT, "-5Y"),
        (5, SMALLINT, "5S"),
        (-(1 << 63), BIGINT, "-9223372036854775808L"),
        (0.1, DOUBLE, "0.1D"),
        (1e300, DOUBLE, "1e+300D"),
        (0.5, FLOAT, "0.5F"),
        (math.nan, DOUBLE, "CAST('NaN' AS DOUBLE)"),
        (-math.inf, FLOAT, "CAST('-Infinity' AS FLOAT)"),
        (Decimal("1.50"), decimal(3, 2), "1.50BD"),
        (Decimal("0.05"), decimal(2, 2), "0.05BD"),
        (Decimal("-7"), decimal(10, 0), "CAST(-7BD AS DECIMAL(10,0))"),
        ("a'b\\c\n", STRING, "'a\\'b\\\\c\\n'"),
        ("\x00", STRING, "'\\u0000'"),
        (b"\x00\xff", BINARY, "X'00FF'"),
        (0, DATE, "DATE '1970-01-01'"),
        (-1, TIMESTAMP, "TIMESTAMP '1969-12-31 23:59:59.999999'"),
        (1 << 62, TIMESTAMP, "timestamp_micros(4611686018427387904L)"),
        (90_000_000, INTERVAL, "INTERVAL '0 00:01:30' DAY TO SECOND"),
        ((1, None), array(INT), "array(1, CAST(NULL AS INT))"),
        ((1, "x"), struct(n=INT, s=STRING), "named_struct('n', 1, 's', 'x')"),
    ],
)
def test_a_literal_is_written_so_that_spark_reads_it(value, kind, expected):
    assert literal_text(value, kind) == expected
    assert sqlglot.parse_one(expected, read="spark")


@pytest.mark.parametrize("text", EXAMPLES)
def test_read_again_it_is_printed_the_same(text, parse):
    printed = to_sql(parse(text), str)
    assert to_sql(parse(printed), str) == printed


@pytest.mark.parametrize("text", EXAMPLES)
def test_sqlglot_reads_it(text, parse):
    assert sqlglot.parse_one(to_sql(parse(text), str), read="spark")


def test_names_are_spelled_by_the_caller():
    tree = Call("<", (WindowBound("window_start", TIMESTAMP), Literal(0, TIMESTAMP)), BOOLEAN)
    assert to_sql(tree, lambda name: f"`{name}`") == "`window_start` < TIMESTAMP '1970-01-01 00:00:00'"
