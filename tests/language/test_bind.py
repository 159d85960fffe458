"""What queries mean: which plan each part of a SELECT becomes."""

from __future__ import annotations

import pytest
from tests.language.corpus import market, queries
from tests.language.paper_queries import PAPER_QUERIES, PaperQuery

from windrow.algebra.expressions import ColumnRef, Literal, WindowBound, conjuncts
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.operators import Aggregate, Exists, Filter, Join, Limit, Project, TableJoin, Union
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.algebra.types import BIGINT, BINARY, DOUBLE, TIMESTAMP
from windrow.language.compile import Catalog, compile_query, declare_stream, declare_table
from windrow.windows.ranges import UnboundedWindow


def plan_of(query: str) -> Emit:
    return compile_query(query, market())


def outline(plan: Plan) -> str:
    """The operators, without their details: `Emit(Project(Window(Scan)))`."""
    inner = ", ".join(outline(child) for child in plan.children)
    return f"{type(plan).__name__}({inner})" if inner else type(plan).__name__


def only(plan: Plan, kind: type) -> Plan:
    (found,) = [node for node in plan.walk() if isinstance(node, kind)]
    return found


def sql(expression: object) -> str:
    return to_sql(expression, str)  # type: ignore[arg-type]


# ---------------------------------------------------------------- the papers


@pytest.mark.parametrize("query", PAPER_QUERIES, ids=lambda query: query.name)
def test_queries_of_the_papers_have_plans(query: PaperQuery) -> None:
    catalog = Catalog(*(declare_stream(name, columns) for name, columns in query.streams.items()))
    assert isinstance(compile_query(query.sql, catalog), Emit)


@pytest.mark.parametrize("query", queries())
def test_queries_of_the_market_have_plans(query: str) -> None:
    assert isinstance(plan_of(query), Emit)


# ---------------------------------------------------------------- FROM and WHERE


def test_one_stream_has_no_join() -> None:
    assert outline(plan_of("SELECT item FROM bids [NOW]")) == "Emit(Project(Window(Scan)))"


def test_a_stream_without_a_bracket_is_unbounded() -> None:
    assert plan_of("SELECT item FROM bids").leaves[0].spec == UnboundedWindow()


def test_columns_are_called_after_their_alias() -> None:
    assert plan_of("SELECT item FROM bids [NOW] AS b").leaves[0].schema.names[0] == "b.item"


def test_names_and_sources_are_found_in_any_case() -> None:
    assert plan_of("SELECT ITEM FROM Bids [NOW]") == plan_of("SELECT bids.item FROM BIDS [NOW]")


def test_conditions_on_several_sources_belong_to_the_join() -> None:
    plan = plan_of("SELECT 1 FROM bids [NOW] b, asks [NOW] a WHERE a.item = b.item AND a.qty > 3")
    assert outline(plan) == "Emit(Project(Filter(Join(Window(Scan), Window(Scan)))))"
    assert sql(only(plan, Join).predicate) == "a.item = b.item"
    assert sql(only(plan, Filter).predicate) == "a.qty > 3"


def test_conditions_of_on_belong_to_the_join_even_on_one_source() -> None:
    plan = plan_of("SELECT 1 FROM bids [NOW] b JOIN asks [NOW] a ON a.item = b.item AND a.qty > 3")
    assert sql(only(plan, Join).predicate) == "a.item = b.item AND a.qty > 3"


def test_tables_are_joined_after_the_streams_and_relations_last() -> None:
    plan = plan_of(
        "SELECT 1 FROM owners o, items i, bids [RANGE 1 DAY] b, asks [RANGE 1 DAY] a"
        " WHERE o.item = i.item AND i.item = b.item AND a.item = b.item"
    )
    assert (
        outline(plan)
        == "Emit(Project(TableJoin(TableJoin(Join(Window(Scan), Window(Scan)), TableScan), TableScan)))"
    )
    owners, items = [node for node in plan.walk() if isinstance(node, TableJoin)]
    assert (owners.table.alias, sql(owners.predicate)) == ("o", "o.item = i.item")
    assert (items.table.alias, sql(items.predicate)) == ("i", "i.item = b.item")


def test_a_condition_on_one_stream_in_on_goes_to_the_only_join_there_is() -> None:
    plan = plan_of("SELECT 1 FROM bids [NOW] b JOIN items i ON i.item = b.item AND b.price > 1")
    assert sql(only(plan, TableJoin).predicate) == "i.item = b.item AND b.price > 1.0D"


def test_a_nested_query_is_a_relation_with_renamed_columns() -> None:
    plan = plan_of("SELECT q.n FROM (SELECT COUNT(*) AS n FROM bids [NOW]) q")
    assert outline(plan) == "Emit(Project(Project(Project(Aggregate(Window(Scan))))))"
    assert plan.input.children[0].schema.names == ("q.n",)


def test_a_nested_query_under_a_window_is_a_leaf() -> None:
    plan = plan_of("SELECT n FROM (SELECT COUNT(*) AS n FROM bids [RANGE 1 MIN SLIDE 1 MIN]) [ROWS 3] q")
    (leaf,) = plan.leaves
    assert isinstance(leaf.input, Subquery)
    assert leaf.input.query.meaning is StreamWord.RSTREAM


def test_a_registered_query_is_read_like_a_nested_one() -> None:
    nested = "(SELECT item, MAX(price) AS price FROM bids [RANGE 1 HOUR SLIDE 1 MINUTE] GROUP BY item)"
    assert plan_of("SELECT item FROM top") == plan_of(f"SELECT item FROM {nested} AS top")
    assert plan_of("SELECT item FROM top [ROWS 2]") == plan_of(f"SELECT item FROM {nested} [ROWS 2] AS top")


def test_pseudo_columns_are_scanned_only_where_they_are_named() -> None:
    assert only(plan_of("SELECT * FROM bids [NOW]"), Scan).pseudo == ()
    assert only(plan_of("SELECT item FROM bids [NOW] WHERE ROW_NUM > 3"), Scan).pseudo == ("row_num",)
    both = plan_of("SELECT b.arrival_ts FROM bids [NOW] b, asks [NOW] a WHERE a.row_num = 1")
    assert [scan.pseudo for scan in both.walk() if isinstance(scan, Scan)] == [("arrival_ts",), ("row_num",)]


# ---------------------------------------------------------------- EXISTS


def test_conditions_on_the_query_around_are_the_predicate_of_exists() -> None:
    plan = plan_of(
        "SELECT item FROM bids [NOW] WHERE price > 1"
        " AND NOT EXISTS (SELECT ISTREAM(qty) FROM asks [NOW] WHERE asks.item = bids.item AND qty > 2)"
    )
    assert outline(plan) == "Emit(Project(Exists(Filter(Window(Scan)), Filter(Window(Scan)))))"
    exists = only(plan, Exists)
    assert exists.negated
    assert sql(exists.predicate) == "asks.item = bids.item"
    assert sql(exists.right.predicate) == "asks.qty > 2"


def test_several_exists_nest_to_the_left() -> None:
    test = "EXISTS (SELECT 1 FROM asks [NOW] WHERE asks.item = bids.item)"
    plan = plan_of(f"SELECT item FROM bids [NOW] WHERE {test} AND NOT {test}")
    assert outline(plan) == "Emit(Project(Exists(Exists(Window(Scan), Window(Scan)), Window(Scan))))"


def test_an_alias_of_the_query_around_is_hidden_and_renamed() -> None:
    plan = plan_of("SELECT item FROM bids [NOW] WHERE EXISTS (SELECT 1 FROM bids [NOW] WHERE bids.item = 3)")
    exists = only(plan, Exists)
    assert exists.right.schema.names[0] == "bids_2.item"
    assert exists.predicate.columns == frozenset()


# ---------------------------------------------------------------- the select list


def test_columns_of_a_star_that_meet_are_called_after_their_source() -> None:
    plan = plan_of("SELECT * FROM bids [NOW] b, asks [NOW] a")
    assert plan.schema.names == (
        *("b_item", "b_price", "bidder", "b_ts"),
        *("a_item", "a_price", "qty", "ttl", "a_ts"),
    )


def test_a_written_name_wins_over_a_star() -> None:
    assert plan_of("SELECT price AS item, late.* FROM late [NOW], bids [NOW] b").schema.names == (
        *("item", "late_item", "ts"),
    )


def test_written_columns_that_meet_are_called_after_their_source() -> None:
    plan = plan_of("SELECT b.item, a.item, a.qty FROM bids [NOW] b, asks [NOW] a")
    assert plan.schema.names == ("b_item", "a_item", "qty")


def test_outputs_without_an_alias_are_called_by_their_text() -> None:
    plan = plan_of(
        "SELECT item+1, count( distinct Item ), max(price)-MIN(price) FROM bids [NOW] GROUP BY item+1"
    )
    assert plan.schema.names == ("item + 1", "COUNT(DISTINCT Item)", "MAX(price) - MIN(price)")


def test_window_bounds_have_the_type_of_what_the_window_moves_along() -> None:
    def bound(query: str) -> WindowBound:
        ((_, expression),) = only(plan_of(query), Project).outputs
        assert isinstance(expression, WindowBound)
        return expression

    assert bound("SELECT window_end FROM bids [RANGE 1 MIN SLIDE 1 MIN]").type == TIMESTAMP
    assert bound("SELECT window_end FROM ticks [RANGE 10 SLIDE 10]").type == BIGINT
    assert bound("SELECT window_end FROM bids [ROWS 10 SLIDE 10 ROWS]").type == BIGINT


def test_distinct_is_above_the_projection() -> None:
    assert outline(plan_of("SELECT DISTINCT item FROM bids [NOW]")) == "Emit(Distinct(Project(Window(Scan))))"


# ---------------------------------------------------------------- groups


def test_having_filters_groups_and_equal_calls_are_computed_once() -> None:
    plan = plan_of("SELECT item, COUNT(*) AS n FROM bids [NOW] GROUP BY item HAVING COUNT(*) > 2 AND n < 9")
    assert outline(plan) == "Emit(Project(Filter(Aggregate(Window(Scan)))))"
    aggregate = only(plan, Aggregate)
    assert [name for name, _ in aggregate.keys] == ["bids.item"]
    assert [call.function for _, call in aggregate.aggregates] == ["count"]


def test_aggregates_without_group_by_have_no_keys() -> None:
    assert only(plan_of("SELECT COUNT(*) FROM bids [NOW] GROUP BY ()"), Aggregate).keys == ()
    assert only(plan_of("SELECT COUNT(*) FROM bids [NOW]"), Aggregate).keys == ()


def test_keys_by_position_alias_and_expression_are_the_same() -> None:
    plans = {
        plan_of(f"SELECT item % 10 AS bucket, COUNT(*) FROM bids [NOW] GROUP BY {key}")
        for key in ("1", "bucket", "bids.item % 10")
    }
    assert len(plans) == 1


def test_columns_win_over_aliases_in_group_by_and_aliases_in_order_by() -> None:
    window = "[RANGE 1 MIN SLIDE 1 MIN]"
    grouped = plan_of(f"SELECT MAX(price) AS item FROM bids {window} GROUP BY item")
    assert [sql(key) for _, key in only(grouped, Aggregate).keys] == ["bids.item"]
    ordered = only(plan_of(f"SELECT price AS item FROM bids {window} ORDER BY item LIMIT 1"), Limit)
    assert ordered.input.outputs == (("item", ColumnRef("bids.price", DOUBLE)),)
    assert ordered.order == ((ColumnRef("item", DOUBLE), False),)


def test_window_bounds_as_keys_change_nothing() -> None:
    query = "SELECT item, window_end, COUNT(*) FROM bids [RANGE 1 MIN SLIDE 1 MIN] GROUP BY"
    assert plan_of(f"{query} window_start, window_end, item") == plan_of(f"{query} item")


def test_parameters_of_aggregates_are_constants() -> None:
    aggregate = only(plan_of("SELECT PERCENTILE(price, 0.95), TOP_K(bidder, 5) FROM bids [NOW]"), Aggregate)
    calls = [call for _, call in aggregate.aggregates]
    assert [(call.function, call.params, len(call.args)) for call in calls] == [
        ("quantile", (0.95,), 1),
        ("top_k", (5,), 1),
    ]


def test_distinct_is_dropped_where_it_changes_nothing() -> None:
    aggregate = only(plan_of("SELECT MAX(DISTINCT price), SUM(DISTINCT price) FROM bids [NOW]"), Aggregate)
    assert [call.distinct for _, call in aggregate.aggregates] == [False, True]


# ---------------------------------------------------------------- LIMIT, sets, WSTREAM


def test_keys_of_order_by_that_are_not_selected_are_hidden() -> None:
    plan = plan_of(
        "SELECT item FROM bids [RANGE 1 MIN SLIDE 1 MIN] GROUP BY item ORDER BY COUNT(*) DESC LIMIT 3"
    )
    assert outline(plan) == "Emit(Project(Limit(Project(Aggregate(Window(Scan))))))"
    assert plan.schema.names == ("item",)
    assert [descending for _, descending in only(plan, Limit).order] == [True]


def test_limit_alone_orders_by_all_columns() -> None:
    limit = only(plan_of("SELECT item, price FROM bids [RANGE 1 MIN SLIDE 1 MIN] LIMIT 3"), Limit)
    assert [(sql(key), descending) for key, descending in limit.order] == [("item", False), ("price", False)]


def test_unions_are_one_and_their_sides_get_a_common_type() -> None:
    plan = plan_of(
        "SELECT item FROM bids [NOW] UNION ALL SELECT qty FROM asks [NOW]"
        " UNION ALL SELECT price FROM asks [NOW]"
    )
    union = only(plan, Union)
    assert len(union.inputs) == 3
    assert {part.schema.types for part in union.inputs} == {(DOUBLE,)}
    assert plan.schema.names == ("item",)


def test_the_same_word_on_both_sides_of_except_is_the_word_of_the_whole() -> None:
    plan = plan_of("SELECT ISTREAM(item) FROM bids [NOW] EXCEPT ALL SELECT ISTREAM(item) FROM asks [NOW]")
    assert plan.word is StreamWord.ISTREAM
    assert outline(plan).startswith("Emit(Except(")


def test_a_word_on_each_side_of_union_makes_each_a_stream() -> None:
    plan = plan_of("SELECT ISTREAM(item) FROM bids [NOW] UNION ALL SELECT DSTREAM(item) FROM asks [NOW]")
    assert [branch.word for branch in plan.branches] == [StreamWord.ISTREAM, StreamWord.DSTREAM]
    assert outline(plan).startswith("Emit(StreamUnion(Emit(")


def test_wstream_windows_the_output_of_a_periodic_query_per_extent() -> None:
    plan = plan_of("SELECT SUM(WSTREAM(SUM(price))[ROWS 10]) FROM bids [RANGE 6 SEC SLIDE 6 SEC]")
    assert (
        outline(plan) == "Emit(Project(Aggregate(Window(Subquery(Emit(Project(Aggregate(Window(Scan)))))))))"
    )
    subquery = only(plan, Subquery)
    assert (subquery.alias, subquery.query.word) == ("wstream", StreamWord.AUTO)


def test_wstream_windows_the_insertions_of_any_other_query() -> None:
    plan = plan_of("SELECT WSTREAM(*)[ROWS 10] FROM bids [RANGE 1 MIN]")
    assert only(plan, Subquery).query.word is StreamWord.ISTREAM
    assert plan.schema.names == ("item", "price", "bidder", "ts")


def test_wstream_is_a_nested_query_under_a_window() -> None:
    stream = "FROM bids [RANGE 6 SEC SLIDE 6 SEC]"
    assert plan_of(f"SELECT SUM(WSTREAM(SUM(price) AS x)[ROWS 10]) AS s {stream}") == plan_of(
        f"SELECT SUM(x) AS s FROM (SELECT SUM(price) AS x {stream}) [ROWS 10] AS wstream"
    )


# ---------------------------------------------------------------- windows


def test_partition_columns_are_spelled_as_declared() -> None:
    (leaf,) = plan_of("SELECT item FROM bids [ROWS 5 PARTITION BY ITEM]").leaves
    assert leaf.spec.partition_by == ("item",)


def test_a_lifetime_reads_the_columns_of_its_own_stream() -> None:
    (leaf,) = plan_of("SELECT item FROM asks [LIFETIME ttl * qty] AS a").leaves
    assert sql(leaf.spec.expression) == "a.ttl * a.qty"


def test_conditions_are_kept_one_by_one() -> None:
    plan = plan_of("SELECT item FROM bids [NOW] WHERE price BETWEEN 1 AND 2 AND TRUE AND bidder = 'x'")
    assert [sql(part) for part in conjuncts(only(plan, Filter).predicate)] == [
        "bids.price >= 1.0D",
        "bids.price <= 2.0D",
        "bids.bidder = 'x'",
    ]


def test_a_thousand_conditions_make_no_deep_plan() -> None:
    written = " AND ".join(f"item <> {number}" for number in range(1000))
    plan = plan_of(f"SELECT item FROM bids [NOW] WHERE {written}")
    assert len(conjuncts(only(plan, Filter).predicate)) == 1000


def test_tables_and_streams_can_be_declared_in_python() -> None:
    catalog = Catalog(declare_stream("s", "a BIGINT, ts TIMESTAMP"), declare_table("t", "a BIGINT, b STRING"))
    plan = compile_query("SELECT b FROM s [NOW], t WHERE s.a = t.a", catalog)
    assert outline(plan) == "Emit(Project(TableJoin(Window(Scan), TableScan)))"
    assert isinstance(plan.leaves[0], Window)


def test_the_arguments_of_trim_have_the_order_of_spark() -> None:
    forms = ("trim('k', bidder)", "btrim(bidder, 'k')", "TRIM(BOTH 'k' FROM bidder)", "TRIM('k' FROM bidder)")
    outputs = ", ".join(f"{form} AS c{number}" for number, form in enumerate(forms))
    plan = plan_of(f"SELECT {outputs} FROM bids [NOW]")
    assert isinstance(plan.input, Project)
    assert {to_sql(value, str) for _, value in plan.input.outputs} == {"TRIM('k' FROM bids.bidder)"}
    plan = plan_of("SELECT ltrim('k', bidder), TRIM(LEADING 'k' FROM bidder) AS b FROM bids [NOW]")
    assert isinstance(plan.input, Project)
    assert {to_sql(value, str) for _, value in plan.input.outputs} == {"ltrim('k', bids.bidder)"}


def test_constants_of_different_types_have_different_names() -> None:
    names = plan_of("SELECT 1.5, 1.5D, 1.5f, 1, 1L, -1l, 1e3, X'f' FROM bids [NOW]").schema.names
    assert names == ("1.5", "1.5D", "1.5F", "1", "1L", "-1L", "1e3", "X'0F'")


def test_bytes_are_read_as_in_spark() -> None:
    plan = plan_of("SELECT X'616', X '' AS nothing FROM bids [NOW]")
    assert isinstance(plan.input, Project)
    assert [value for _, value in plan.input.outputs] == [Literal(b"\x06\x16", BINARY), Literal(b"", BINARY)]


def test_ilike_compares_in_lower_case() -> None:
    plan = plan_of("SELECT bidder ILIKE 'K%' FROM bids [NOW]")
    assert plan.schema.names == ("bidder ILIKE 'K%'",)
    assert (
        plan.input
        == plan_of("SELECT lower(bidder) LIKE lower('K%') AS `bidder ILIKE 'K%'` FROM bids [NOW]").input
    )


def test_intervals_are_of_one_type_however_it_is_written() -> None:
    stream = declare_stream(
        "s", "a INTERVAL, b INTERVAL DAY TO SECOND, c interval day to second, ts TIMESTAMP"
    )
    assert [str(kind) for kind in stream.schema.types] == ["INTERVAL"] * 3 + ["TIMESTAMP"]
