"""The physical choices: layout by update pattern, implementation by what the inputs allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from tests.algebra.explain.cases import planned
from tests.support.plans import plans

from windrow.algebra.operators import Aggregate, Distinct, Except, Exists, Join, TableJoin
from windrow.algebra.patterns import Pattern
from windrow.algebra.physical import Implementation, Layout, choose, panes_of
from windrow.algebra.plan import Emit, TableScan, Window

GROUPED = "SELECT item, {} AS x FROM bids [{}] GROUP BY item"


def layouts(query: str, kind: type) -> list[Layout]:
    """The layouts of all operators of a kind, parents first."""
    return [part.physical.layout for part in choose(planned(query)).walk() if isinstance(part.node, kind)]


def implementations(query: str, kind: type) -> list[Implementation]:
    return [
        part.physical.implementation for part in choose(planned(query)).walk() if isinstance(part.node, kind)
    ]


@pytest.mark.parametrize(
    ("window", "layout"),
    [
        ("RANGE 5 MINUTES", Layout.FIFO),
        ("RANGE 5 MINUTES SLIDE 1 MINUTE", Layout.FIFO),
        ("RANGE 5 MINUTES SLIDE 2 MINUTES", Layout.FIFO),  # WK, but in order
        ("NOW", Layout.FIFO),
        ("LIFETIME ttl SECONDS", Layout.CALENDAR),
        ("ROWS 10", Layout.POSITIONS),
        ("ROWS 10 PARTITION BY item", Layout.HASH),
        ("SESSION 1 MINUTE", Layout.HASH),
        ("UNBOUNDED", Layout.NONE),  # answers are never withdrawn
        ("LANDMARK SLIDE 1 HOUR", Layout.APPEND),  # the whole answer is reported every hour
    ],
)
def test_a_window_is_kept_as_its_rows_expire(window: str, layout: Layout) -> None:
    assert layouts(f"SELECT item FROM bids [{window}]", Window) == [layout]


@pytest.mark.parametrize(
    ("window", "implementation", "layout", "kept_below"),
    [
        ("RANGE 5 MINUTES", Implementation.DELTA_STAR, Layout.YOUNGEST, Layout.NONE),
        ("LIFETIME ttl SECONDS", Implementation.DELTA_STAR, Layout.YOUNGEST, Layout.NONE),
        ("ROWS 10", Implementation.COUNTING, Layout.COUNTS, Layout.POSITIONS),
        ("UNBOUNDED", Implementation.FIRST_SEEN, Layout.VALUES, Layout.NONE),
    ],
)
def test_distinct(window: str, implementation: Implementation, layout: Layout, kept_below: Layout) -> None:
    query = f"SELECT DISTINCT item FROM bids [{window}]"
    assert implementations(query, Distinct) == [implementation]
    assert layouts(query, Distinct) == [layout]
    assert layouts(query, Window) == [kept_below]


@pytest.mark.parametrize(
    ("aggregate", "window", "layout", "kept_below"),
    [
        ("MAX(price)", "RANGE 5 MINUTES SLIDE 1 MINUTE", Layout.PANES, Layout.NONE),
        ("MEDIAN(price)", "RANGE 5 MINUTES SLIDE 2 MINUTES", Layout.PANES, Layout.NONE),
        ("COUNT(*)", "ROWS 100 SLIDE 10 ROWS", Layout.PANES, Layout.NONE),
        ("COUNT(*)", "ROWS 100 SLIDE 10 ROWS PARTITION BY item", Layout.GROUPS, Layout.HASH),
        ("COUNT(*)", "ROWS 100 SLIDE 1 MINUTE", Layout.GROUPS, Layout.POSITIONS),
        ("MAX(price)", "RANGE 5 MINUTES", Layout.CANDIDATES, Layout.NONE),
        ("MAX(price)", "ROWS 10", Layout.CANDIDATES, Layout.NONE),
        ("MAX(price)", "ROWS 10 PARTITION BY item", Layout.GROUPS, Layout.HASH),
        ("SUM(price)", "RANGE 5 MINUTES", Layout.GROUPS, Layout.FIFO),
        ("SUM(price)", "UNBOUNDED", Layout.GROUPS, Layout.NONE),
        ("SUM(price)", "SESSION 1 MINUTE", Layout.SESSIONS, Layout.NONE),
    ],
)
def test_grouping(aggregate: str, window: str, layout: Layout, kept_below: Layout) -> None:
    query = GROUPED.format(aggregate, window)
    assert layouts(query, Aggregate) == [layout]
    assert layouts(query, Window) == [kept_below]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            "SELECT RSTREAM_RESTORE(COUNT(*) AS n) FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE]",
            "SLIDE only refreshes",
        ),
        (
            "SELECT COUNT(*) AS n FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE] b"
            " JOIN sales [RANGE 5 MINUTES SLIDE 1 MINUTE] s ON b.item = s.item",
            "results of a join are not rows of a pane",
        ),
        (
            "SELECT age, COUNT(*) AS n FROM"
            " (SELECT window_end - ts AS age FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE]) b GROUP BY age",
            "a row is in another group in each extent",
        ),
    ],
)
def test_no_panes(query: str, why: str) -> None:
    assert Implementation.PANES not in implementations(query, Aggregate), why


def test_panes_through_filters_lookups_and_unions() -> None:
    query = (
        "SELECT COUNT(*) AS n FROM (SELECT item FROM bids [RANGE 6 MINUTES SLIDE 4 MINUTES] WHERE price > 1"
        " UNION ALL SELECT item FROM sales [RANGE 6 MINUTES SLIDE 4 MINUTES]) u"
    )
    emit = planned(query)
    (node,) = (node for node in emit.walk() if isinstance(node, Aggregate))
    panes = panes_of(node, emit)
    assert panes is not None
    assert (panes.per_window, panes.per_slide) == (3, 2)
    assert layouts(query, Window) == [Layout.NONE, Layout.NONE]


@pytest.mark.parametrize(
    ("windows", "condition", "implementation", "layout"),
    [
        (("RANGE 1 MINUTE", "RANGE 1 MINUTE"), "b.item = s.item", Implementation.HASH_JOIN, Layout.CALENDAR),
        (
            ("RANGE 1 MINUTE", "RANGE 1 MINUTE"),
            "b.price < s.price",
            Implementation.LOOP_JOIN,
            Layout.CALENDAR,
        ),
        (("RANGE 1 MINUTE", "RANGE 1 MINUTE"), "b.item = 1", Implementation.LOOP_JOIN, Layout.CALENDAR),
        (("ROWS 9", "ROWS 9"), "b.item = s.item", Implementation.HASH_JOIN, Layout.CATALOGUES),
        (("UNBOUNDED", "UNBOUNDED"), "b.item = s.item", Implementation.HASH_JOIN, Layout.NONE),
    ],
)
def test_joins(
    windows: tuple[str, str], condition: str, implementation: Implementation, layout: Layout
) -> None:
    query = f"SELECT b.price FROM bids [{windows[0]}] b JOIN sales [{windows[1]}] s ON {condition}"
    assert implementations(query, Join) == [implementation]
    assert layouts(query, Join) == [layout]


def test_what_a_join_probes_is_kept_even_if_its_results_are_not() -> None:
    query = "SELECT b.price FROM bids [UNBOUNDED] b JOIN sales [UNBOUNDED] s ON b.item = s.item"
    assert layouts(query, Window) == [Layout.APPEND, Layout.APPEND]


@pytest.mark.parametrize(
    ("window", "layout"), [("RANGE 1 MINUTE", Layout.CALENDAR_NEGATIVE), ("ROWS 10", Layout.HASH)]
)
def test_negation_keeps_a_calendar_unless_expiry_is_unpredictable(window: str, layout: Layout) -> None:
    other = "SELECT item FROM sales [RANGE 1 MINUTE]"
    assert layouts(f"SELECT item FROM bids [{window}] EXCEPT ALL {other}", Except) == [layout]
    query = f"SELECT item FROM bids [{window}] b WHERE NOT EXISTS ({other} s WHERE s.item = b.item)"
    assert layouts(query, Exists) == [layout]


def test_tables() -> None:
    lookup = "SELECT name FROM bids [RANGE 1 MINUTE] b JOIN items i ON b.item = i.item"
    assert implementations(lookup, TableJoin) == [Implementation.LOOKUP]
    assert layouts(lookup, TableJoin) == [Layout.FIFO]
    assert layouts(lookup, TableScan) == [Layout.TABLE]
    joined = "SELECT least FROM bids [RANGE 1 MINUTE] b JOIN watched w ON b.item = w.item"
    assert implementations(joined, TableJoin) == [Implementation.RELATION_JOIN]
    assert layouts(joined, TableJoin) == [Layout.HASH]
    assert layouts(joined, Window) == [Layout.FIFO]


@given(plans())
def test_every_operator_of_every_plan_has_a_choice(emit: Emit) -> None:
    parts = list(choose(emit).walk())
    assert [part.node for part in parts] == list(emit.walk())
    assert all(part.physical.reason for part in parts)


@given(plans())
def test_only_unpredictable_expiry_needs_negative_rows(emit: Emit) -> None:
    for part in choose(emit).walk():
        if "negative" in part.physical.layout.value:
            assert part.node.label.pattern is Pattern.STR
