"""What `call` refuses and how it says so, and the casts it writes out."""

from __future__ import annotations

import pytest

from windrow.algebra.expressions import Cast, ColumnRef
from windrow.algebra.functions import call, castable, explicit_cast, lookup
from windrow.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    STRING,
    TIMESTAMP,
    array,
    common_type,
    decimal,
)
from windrow.errors import QueryError

COLUMNS = {
    "n": INT,
    "b": BIGINT,
    "s": STRING,
    "d": DATE,
    "t": TIMESTAMP,
    "p": BOOLEAN,
    "x": DOUBLE,
    "i": INTERVAL,
}


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("uper(s)", "unknown-function", "no function `uper` (did you mean `upper`?)"),
        ("upper(s, s)", "wrong-arity", "`upper` takes 1 argument, not 2 (for example upper('straße'))"),
        ("substring(s)", "wrong-arity", "`substring` takes 2 to 3 arguments, not 1"),
        (
            "n = s",
            "type-mismatch",
            "`=` does not work on INT and STRING; it wants one common type "
            "(text is not converted silently: CAST(… AS INT), or TRY_CAST for NULL where it fails)",
        ),
        ("n + '1'", "type-mismatch", "`+` does not work on INT and STRING"),
        ("t = s", "type-mismatch", "CAST(… AS TIMESTAMP)"),
        ("upper(n)", "type-mismatch", "`upper` does not work on INT; it wants text"),
        ("substring(s, b)", "type-mismatch", "it wants text, an INT, an INT"),
        ("t + 1", "type-mismatch", "`+` does not work on TIMESTAMP and INT"),
        ("x div 2", "type-mismatch", "it wants integers, decimals or intervals"),
        ("n AND p", "type-mismatch", "`and` does not work on INT and BOOLEAN; it wants a BOOLEAN, a BOOLEAN"),
        ("coalesce(n, s)", "type-mismatch", "it wants one common type"),
        ("CAST(d AS INT)", "bad-cast", "a DATE cannot be cast to INT (unix_date counts days)"),
        ("CAST(i AS BIGINT)", "bad-cast", "an INTERVAL cannot be cast to BIGINT"),
        ("round(x, n)", "not-constant", "`round` wants the number of digits as a literal"),
        ("date_format(t, 'yyyy-ww')", "bad-pattern", "no letter `w` in a pattern of time"),
        ("date_format(t, 'ddd')", "bad-pattern", "`ddd` is no part of a pattern of time"),
        ("date_trunc('FORTNIGHT', t)", "bad-unit", "`date_trunc` knows no unit `FORTNIGHT`"),
        ("EXTRACT(EPOCH FROM t)", "bad-unit", "no field `EPOCH` of TIMESTAMP"),
        ("EXTRACT(MONTH FROM i)", "bad-unit", "no field `MONTH` of INTERVAL"),
        ("current_timestamp()", "not-deterministic", "arrival_ts is when a row came in"),
        ("rand()", "not-deterministic", "a replay would answer otherwise"),
        ("s LIKE 'a\\\\'", "bad-pattern", "stands before neither %, _ nor itself"),
        ("s RLIKE s", "not-constant", "`rlike` wants the pattern as a literal"),
        ("regexp_extract(s, 'a(b)', 2)", "bad-pattern", "the pattern has 1 groups, so none with number 2"),
        ("regexp_replace(s, 'a', '$1')", "bad-pattern", "does not name a group of the pattern"),
        ("regexp_replace(s, 'a*', 'b')", "bad-pattern", "matches the empty text"),
    ],
)
def test_what_has_no_type_is_refused_with_a_reason(text, code, message, parse):
    with pytest.raises(QueryError) as caught:
        parse(text, COLUMNS)
    assert caught.value.code == code
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (INT, FLOAT, DOUBLE),
        (FLOAT, FLOAT, FLOAT),
        (BIGINT, decimal(5, 2), decimal(22, 2)),
        (FLOAT, decimal(5, 2), DOUBLE),
        (DATE, TIMESTAMP, TIMESTAMP),
        (NULL, STRING, STRING),
        (INT, STRING, None),
        (INTERVAL, BIGINT, None),
    ],
)
def test_two_types_have_one_that_holds_both(left, right, expected):
    assert common_type(left, right) == expected
    assert common_type(right, left) == expected


def test_a_literal_takes_the_type_of_its_neighbour(parse):
    assert not [node for node in parse("b + 1 > 2", COLUMNS).walk() if isinstance(node, Cast)]


def test_names_are_found_in_any_case():
    assert lookup("Date_Part") is lookup("extract")
    assert lookup("MOD") is lookup("%")


def test_functions_tell_what_can_fail_and_what_null_does():
    assert lookup("+").can_fail
    assert lookup("+").try_form == "try_add"
    assert lookup("+").null_propagating
    assert not lookup("coalesce").null_propagating
    assert not lookup("now").deterministic


def test_casts_that_do_not_exist():
    assert castable(STRING, INTERVAL)
    assert not castable(BOOLEAN, TIMESTAMP)
    assert not castable(array(INT), STRING)
    column = ColumnRef("n", INT)
    assert explicit_cast(column, INT) is column


def test_arrays_can_be_compared_and_chosen():
    names = ColumnRef("names", array(STRING))
    assert call("=", (names, names)).type == BOOLEAN
    assert call("coalesce", (names, names)).type == array(STRING)
