"""A SELECT by itself: what may follow it, and what stands for what in FROM."""

from __future__ import annotations

import pytest

from windrow.algebra.expressions import Literal
from windrow.algebra.operators import Project
from windrow.algebra.plan import StreamWord
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import ExplainQuery, RunOnce
from windrow.language.binder.once import Once, bind_once
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import (
    compile_once,
    compile_query,
    compile_script,
    declare_stream,
    declare_table,
    parse_script,
)
from windrow.language.syntax import SelectOnce


@pytest.fixture
def catalog() -> Catalog:
    found = Catalog(
        declare_stream("bids", "item BIGINT, price DOUBLE, priority BIGINT, ts TIMESTAMP"),
        declare_table("items", "item BIGINT, name STRING"),
    )
    top = "SELECT item, MAX(price) AS at FROM bids [RANGE 1 HOUR SLIDE 1 MINUTE] GROUP BY item"
    found.add(StandingQuery("top", compile_query(top, found)))
    found.add(StandingQuery("live", compile_query("SELECT item FROM bids [RANGE 1 HOUR]", found)))
    return found


@pytest.mark.parametrize(
    ("tail", "isolation", "priority"),
    [
        ("", None, 0),
        (" WITH ISOLATION LATEST", "LATEST", 0),
        (" with isolation window", "WINDOW", 0),
        (" PRIORITY -2", None, -2),
        (" PRIORITY 7 WITH ISOLATION WINDOW;", "WINDOW", 7),
    ],
)
def test_what_may_follow(catalog: Catalog, tail: str, isolation: str | None, priority: int) -> None:
    once = compile_once(f"SELECT priority FROM bids [NOW] WHERE priority > 1{tail}", catalog)
    assert (once.isolation, once.priority) == (isolation, priority)
    assert once.plan.word is StreamWord.RSTREAM


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("SELECT item FROM bids [NOW] WITH ISOLATION SNAPSHOT", "LATEST or WINDOW should follow", 43),
        ("SELECT item FROM bids [NOW] PRIORITY 1 PRIORITY 2", "PRIORITY is there twice", 48),
        ("SELECT DSTREAM(item) FROM bids [NOW]", "DSTREAM is about changes", 0),
        ("SELECT item FROM bid [NOW]", "no stream, table or query `bid`", 17),
        ("SHOW STREAMS", "one SELECT is expected", None),
        ("SELECT 1 AS a FROM items; SELECT 2 AS b FROM items", "one SELECT is expected", None),
    ],
)
def test_mistakes_have_a_place(catalog: Catalog, text: str, message: str, place: int | None) -> None:
    with pytest.raises(QueryError, match=message) as error:
        compile_once(text, catalog)
    if place is not None:
        assert error.value.span is not None
        assert error.value.span.start == place


def stands(once: Once) -> tuple[dict[str, str], dict[str, str]]:
    return dict(once.answers), dict(once.tables)


def test_the_last_answer_of_a_query_has_an_instant(catalog: Catalog) -> None:
    once = compile_once("SELECT * FROM top", catalog)
    assert once.plan.schema.names == ("at", "item", "at_")
    assert stands(once) == ({"answers of top": "top"}, {})


def test_a_query_under_a_window_or_of_changes_is_evaluated_anew(catalog: Catalog) -> None:
    assert stands(compile_once("SELECT MAX(item) AS m FROM top [RANGE 1 HOUR]", catalog)) == ({}, {})
    assert stands(compile_once("SELECT item FROM live", catalog)) == ({}, {})


def test_tables_stand_for_their_rows_only_where_there_is_no_stream(catalog: Catalog) -> None:
    alone = compile_once("SELECT name FROM items WHERE item = 3", catalog)
    assert stands(alone) == ({}, {"rows of items": "items"})
    joined = compile_once("SELECT name FROM items, bids [NOW] WHERE items.item = bids.item", catalog)
    assert stands(joined) == ({}, {})


def test_order_by_needs_no_limit(catalog: Catalog) -> None:
    assert compile_once("SELECT item FROM bids [NOW] ORDER BY price", catalog).plan.schema.names == ("item",)
    with pytest.raises(QueryError, match="ORDER BY without LIMIT"):
        compile_query("SELECT item FROM bids [NOW] ORDER BY price", catalog)


def test_what_only_a_standing_query_says_still_has_a_plan_to_show(catalog: Catalog) -> None:
    (asked,) = compile_script("SELECT ISTREAM(item) FROM bids [NOW]", catalog)
    assert isinstance(asked, RunOnce)
    assert asked.plan.word is StreamWord.ISTREAM
    assert asked.once is None
    assert asked.refusal is not None
    (explained,) = compile_script("EXPLAIN SELECT item FROM bids [NOW] WITH ISOLATION WINDOW", catalog)
    assert isinstance(explained, ExplainQuery)
    assert explained.plan.word is StreamWord.AUTO
    assert explained.once is not None


def test_the_time_at_which_it_is_asked(catalog: Catalog) -> None:
    """A SELECT by itself may ask for it; a standing query would answer otherwise when it is replayed."""
    text = "SELECT now() AS a, current_timestamp AS b, current_date AS c FROM bids [RANGE 1 HOUR]"
    (statement,) = parse_script(text)
    assert isinstance(statement, SelectOnce)
    day = 86_400_000_000
    plan = bind_once(statement, catalog, now=20_000 * day + 5).plan
    project = next(node for node in plan.walk() if isinstance(node, Project))
    values = [value.value for _, value in project.outputs if isinstance(value, Literal)]
    assert values == [20_000 * day + 5, 20_000 * day + 5, 20_000 * day]
    with pytest.raises(QueryError, match="a replay would answer otherwise"):
        compile_query(text, catalog)
