"""Printed SQL binds to the plan it was printed from."""

from __future__ import annotations

import pytest
from hypothesis import event, given, strategies as st
from tests.language.corpus import market, queries
from tests.language.paper_queries import PAPER_QUERIES, PaperQuery

from windrow.algebra.operators import Filter, Join, Project, TableJoin, Union
from windrow.algebra.plan import Emit, StreamWord, Window
from windrow.errors import QueryError
from windrow.language.compile import Catalog, compile_query, declare_stream
from windrow.language.printer import print_query

MARKET = market()


def assert_returns(plan: Emit, catalog: Catalog) -> None:
    text = print_query(plan)
    again = compile_query(text, catalog)
    assert again == plan
    assert print_query(again) == text


@pytest.mark.parametrize("query", queries())
def test_queries_of_the_market_return(query: str) -> None:
    assert_returns(compile_query(query, MARKET), MARKET)


@pytest.mark.parametrize("query", PAPER_QUERIES, ids=lambda query: query.name)
def test_queries_of_the_papers_return(query: PaperQuery) -> None:
    catalog = Catalog(*(declare_stream(name, columns) for name, columns in query.streams.items()))
    assert_returns(compile_query(query.sql, catalog), catalog)


# ---------------------------------------------------------------- random queries

WINDOWS = st.sampled_from(
    [
        *("[NOW]", "[RANGE 90 SECONDS]", "[RANGE 1 HOUR SLIDE 7 MINUTES]", "[RANGE 5 MIN SLIDE 5 MIN]"),
        *("[ROWS 3]", "[ROWS 9 SLIDE 2 ROWS]", "[ROWS 5 PARTITION BY item]", "[UNBOUNDED]", ""),
        *(
            "[LANDMARK SLIDE 1 DAY]",
            "[SESSION 3 SECONDS]",
            "[RANGE 1 MIN INTERNAL]",
            "[RANGE 2 MIN WATTR arrival_ts]",
        ),
    ]
)
VALUES = st.sampled_from(
    [
        *("b.item", "b.price", "b.price + 1", "upper(bidder)", "coalesce(bidder, 'no')", "b.item % 7 - 2"),
        *(
            "CASE WHEN b.price > 2 THEN 1 ELSE b.item END",
            "-b.price",
            "CAST(b.item AS STRING)",
            "2.50",
            "'it''s'",
        ),
        *("b.ts + INTERVAL '90' MINUTE", "row_num", "b.item * (b.item + 3)", "b.price / 2 / b.item", "NULL"),
    ]
)
CONDITIONS = st.sampled_from(
    [
        *(
            "b.price > 1",
            "bidder LIKE 'a%' OR b.price < 3",
            "NOT (b.price > 1 AND b.item = 2)",
            "b.item IN (1, 2, 3)",
        ),
        *("bidder IS NOT NULL", "b.item BETWEEN 1 AND 5", "TRUE", "b.ts > TIMESTAMP '2024-01-01 10:00:00'"),
        "EXISTS (SELECT * FROM asks [NOW] x WHERE x.item = b.item AND x.qty > 2)",
        "NOT EXISTS (SELECT 1 FROM bids [RANGE 5 SECONDS] WHERE bids.price > b.price)",
    ]
)
AGGREGATES = st.sampled_from(
    [
        *(
            "COUNT(*)",
            "SUM(b.price)",
            "AVG(b.price + 1)",
            "COUNT(DISTINCT bidder)",
            "MAX(b.price) - MIN(b.price)",
        ),
        *(
            "SUM(b.price) FILTER (WHERE b.item > 2)",
            "QUANTILE(b.price, 0.5)",
            "TOP_K(bidder, 2)",
            "COUNT(*) * 2 + 1",
        ),
    ]
)
WORDS = st.sampled_from(["", "ISTREAM", "DSTREAM", "RSTREAM"])


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, list[str]]:
    """FROM, and conditions that join what is in it."""
    text, conditions = f"bids {draw(WINDOWS)} AS b", []
    if draw(st.booleans()):
        text += f", asks {draw(WINDOWS)} AS a"
        conditions.append(draw(st.sampled_from(["a.item = b.item", "a.qty > b.item OR a.qty = 3"])))
    if draw(st.integers(0, 4)) == 4:
        text += ", items AS i"
        conditions.append("i.item = b.item")
    return text, conditions


@st.composite
def selects(draw: st.DrawFn) -> str:
    """A SELECT about the market; not all of them have a meaning."""
    text, conditions = draw(sources())
    conditions += draw(st.lists(CONDITIONS, max_size=3))
    keys = draw(st.lists(VALUES, max_size=2, unique=True))
    grouped = draw(st.booleans())
    items = keys + draw(st.lists(AGGREGATES if grouped else VALUES, max_size=2, unique=True)) or ["b.item"]
    listed = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    listed = f"DISTINCT {listed}" if draw(st.integers(0, 3)) == 3 else listed
    limit = draw(
        st.sampled_from(["", "", " LIMIT 3", " ORDER BY c0 DESC LIMIT 2", " ORDER BY b.price + 1 LIMIT 2"])
    )
    word = "RSTREAM" if limit else draw(WORDS)
    query = f"SELECT {word}({listed}) FROM {text}" if word else f"SELECT {listed} FROM {text}"
    query += f" WHERE {' AND '.join(f'({part})' for part in conditions)}" if conditions else ""
    query += f" GROUP BY {', '.join(keys)}" if grouped and keys else ""
    query += " HAVING COUNT(*) > 1 OR MAX(b.price) > 2" if grouped and draw(st.booleans()) else ""
    return query + limit


@st.composite
def nested(draw: st.DrawFn) -> str:
    """A SELECT, or two in one of the ways in which queries are put together."""
    inner = draw(selects())
    form = draw(
        st.sampled_from(
            ["{0}", "SELECT * FROM ({0}) q", "SELECT COUNT(*) FROM ({0}) {1} q", "({0}) {2} ({3})"]
        )
    )
    return form.format(
        inner, draw(WINDOWS), draw(st.sampled_from(["UNION ALL", "EXCEPT ALL"])), draw(selects())
    )


def planned(query: str) -> Emit | None:
    """The plan of a query that has a meaning; of any other the error must have a place and a way out."""
    try:
        return compile_query(query, MARKET)
    except QueryError as refused:
        event(f"refused: {refused.code}")
        if refused.span is None or refused.hint is None:
            raise
        return None


@given(nested())
def test_random_queries_return(query: str) -> None:
    plan = planned(query)
    if plan is not None:
        assert_returns(plan, MARKET)


# ---------------------------------------------------------------- rewritten plans


def test_operators_in_another_order_become_nested_queries() -> None:
    plan = compile_query(
        "SELECT b.item FROM bids [NOW] b, asks [NOW] a WHERE a.item = b.item AND a.qty > 3", MARKET
    )
    projection = plan.input
    assert isinstance(projection, Project)
    assert isinstance(projection.input, Filter)
    join = projection.input.input
    assert isinstance(join, Join)
    pushed = Join((join.inputs[0], Filter(join.inputs[1], projection.input.predicate)), join.predicate)
    text = print_query(Emit(Project(pushed, projection.outputs), StreamWord.AUTO))
    assert compile_query(text, MARKET).schema == plan.schema
    assert "WHERE qty > 3" in text


def test_a_plan_without_projections_is_printed_with_its_own_names() -> None:
    plan = compile_query("SELECT item FROM bids [NOW] UNION ALL SELECT item FROM asks [NOW]", MARKET)
    assert isinstance(plan.input, Union)
    bare = Emit(Union(tuple(part.children[0] for part in (plan.input.inputs[0],) * 2)))
    assert compile_query(print_query(bare), MARKET).schema.names == bare.schema.names


def test_a_window_above_a_filter_has_no_sql() -> None:
    plan = compile_query("SELECT item FROM bids [NOW] WHERE price > 1", MARKET)
    projection = plan.input
    assert isinstance(projection, Project)
    assert isinstance(projection.input, Filter)
    window = projection.input.input
    assert isinstance(window, Window)
    pushed = Window(Filter(window.input, projection.input.predicate), window.spec)
    with pytest.raises(QueryError, match="no SQL form"):
        print_query(Emit(Project(pushed, projection.outputs)))


def test_names_that_are_words_of_the_language_are_quoted() -> None:
    catalog = Catalog(declare_stream("order", "`select` BIGINT, `a b` INT, `x``y` INT, ts TIMESTAMP"))
    plan = compile_query("SELECT *, `a b` + `x``y` AS `from` FROM `order` [NOW] WHERE `select` > 1", catalog)
    assert plan.schema.names == ("select", "a b", "x`y", "ts", "from")
    assert_returns(plan, catalog)


def test_tables_are_printed_after_the_streams() -> None:
    plan = compile_query("SELECT name FROM items i, bids [NOW] b WHERE i.item = b.item", MARKET)
    assert any(isinstance(node, TableJoin) for node in plan.walk())
    assert "FROM bids [NOW] AS b\nJOIN items AS i ON i.item = b.item" in print_query(plan)


@pytest.mark.part(4)
@pytest.mark.parametrize("word", ["AND", "OR"])
@pytest.mark.parametrize("count", [2, 31, 32, 33, 34, 64, 65, 500, 1_000])
def test_chains_of_conditions_return(word: str, count: int) -> None:
    chain = f" {word} ".join(f"item <> {number}" for number in range(count))
    assert_returns(compile_query(f"SELECT {chain} AS x FROM bids [NOW] WHERE {chain}", MARKET), MARKET)


def test_parentheses_inside_a_long_chain_do_not_matter() -> None:
    parts = [f"item = {number}" for number in range(60)]
    flat = " OR ".join(parts)
    grouped = f"({' OR '.join(parts[:5])}) OR ({' OR '.join(parts[5:])})"
    texts = [
        print_query(compile_query(f"SELECT item FROM bids [NOW] WHERE {condition}", MARKET))
        for condition in (flat, grouped)
    ]
    assert texts[0] == texts[1]
    assert texts[0].count("(") == 1


def test_columns_called_like_the_words_of_trim_are_quoted() -> None:
    catalog = Catalog(declare_stream("s", "both STRING, leading STRING, x STRING, ts TIMESTAMP"))
    plan = compile_query(
        "SELECT TRIM(`both` FROM leading) AS a, trim(`leading`, x) AS b FROM s [NOW]", catalog
    )
    assert_returns(plan, catalog)
