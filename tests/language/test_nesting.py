"""How deep a query may go does not depend on how deep its caller is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from windrow.errors import QueryError
from windrow.language.compile import Catalog, compile_query, declare_stream, parse_query
from windrow.language.printer import print_query
from windrow.language.shape import MAX_DEPTH, MAX_NESTING

T = TypeVar("T")
CATALOG = Catalog(declare_stream("t", "a BOOLEAN, i INT, s STRING, ts TIMESTAMP"))
#: queries with something inside itself: how they begin, and what stands before, in and behind the middle
FORMS = {
    "parentheses": ("SELECT i FROM t WHERE ", "(", "a", ")"),
    "sums": ("SELECT i FROM t WHERE i > ", "(1 + ", "i", ")"),
    "calls": ("SELECT i FROM t WHERE ", "isnull(", "a", ")"),
    "casts": ("SELECT i FROM t WHERE i = ", "CAST(", "i", " AS INT)"),
    "CASE": ("SELECT i FROM t WHERE ", "CASE WHEN a THEN a ELSE ", "a", " END"),
    "conditions in CASE": ("SELECT i FROM t WHERE ", "CASE WHEN ", "a", " THEN a END"),
    "lists": ("SELECT i FROM t WHERE ", "a IN (FALSE, ", "a", ")"),
    "NOT": ("SELECT i FROM t WHERE ", "NOT ", "a", ""),
    "signs": ("SELECT i FROM t WHERE i = ", "- ", "i", ""),
    "queries": ("SELECT i FROM ", "(SELECT i FROM ", "t", ")"),
    "EXISTS": ("SELECT i FROM t WHERE ", "a AND EXISTS (SELECT i FROM t WHERE ", "a", ")"),
    "queries with WITH": ("SELECT i FROM ", "(WITH w AS (SELECT 1) SELECT i FROM ", "t", ")"),
}
CHAINS = {
    "+": ("SELECT i FROM t WHERE i = i", " + i"),
    "||": ("SELECT i FROM t WHERE s = s", " || s"),
    "::": ("SELECT i FROM t WHERE i = i", "::INT"),
    "UNION ALL": ("SELECT i FROM t", " UNION ALL SELECT i FROM t"),
    "EXCEPT ALL": ("SELECT i FROM t", " EXCEPT ALL SELECT i FROM t"),
}


def below(calls: int, work: Callable[[], T]) -> T:
    """The same, that many calls further down the stack."""
    return below(calls - 1, work) if calls else work()


def nested(form: str, times: int) -> str:
    begin, before, middle, after = FORMS[form]
    return begin + before * times + middle + after * times


@pytest.mark.parametrize("calls", [0, 400, 800])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_nested_within_the_limit_is_read(form: str, calls: int) -> None:
    text = nested(form, MAX_NESTING - (form == "queries with WITH"))
    plan = below(calls, lambda: compile_query(text, CATALOG))
    printed = below(calls, lambda: print_query(plan))
    assert printed == print_query(compile_query(printed, CATALOG))


@pytest.mark.parametrize("calls", [0, 400, 800])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_nested_deeper_is_refused(form: str, calls: int) -> None:
    with pytest.raises(QueryError) as refused:
        below(calls, lambda: parse_query(nested(form, MAX_NESTING + 1)))
    assert refused.value.code == "too-deep"
    assert refused.value.text


@pytest.mark.parametrize("calls", [0, 400, 800])
@pytest.mark.parametrize("chain", CHAINS)
def test_chains_are_read_up_to_the_limit(chain: str, calls: int) -> None:
    first, more = CHAINS[chain]
    short = 2 if chain in ("+", "||", "::") else 1
    plan = below(calls, lambda: compile_query(first + more * (MAX_DEPTH - short), CATALOG))
    below(calls, lambda: print_query(plan))
    with pytest.raises(QueryError) as refused:
        below(calls, lambda: parse_query(first + more * (MAX_DEPTH + 1)))
    assert refused.value.code == "too-deep"


@pytest.mark.part(4)
@pytest.mark.parametrize("calls", [0, 800])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("SELECT a" + " = NOT a" * 3_000, id="NOT in a row, but not beside each other"),
        pytest.param("SELECT " + "(" * 30 + "a" + ("::INT" * 99 + ")") * 30, id="casts of casts"),
        pytest.param("SELECT " + "a OR b AND NOT c = d + e * (" * 31 + "a" + ")" * 31, id="all operators"),
    ],
)
def test_what_no_count_sees_is_refused_all_the_same(text: str, calls: int) -> None:
    with pytest.raises(QueryError) as refused:
        below(calls, lambda: parse_query(text))
    assert refused.value.code == "too-deep"
