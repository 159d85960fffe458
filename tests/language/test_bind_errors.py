"""What a mistake of meaning looks like: the rendered message of each, kept as pairs in `bind_errors.txt`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.language.corpus import market
from tests.support.snapshots import Pair, read_pairs

from windrow.errors import QueryError
from windrow.language.compile import compile_query, compile_script


def message_of(script: str) -> str:
    """Of a SELECT, what is wrong with it as a standing query: asked once, it may say more."""
    with pytest.raises(QueryError) as refused:
        _compile(script)
    return refused.value.render()


def _compile(script: str) -> None:
    compile_script(script, market())
    compile_query(script, market())


PAIRS = read_pairs(Path(__file__).with_name("bind_errors.txt"), message_of)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.title)
def test_mistakes_are_explained(pair: Pair) -> None:
    assert message_of(pair.text) == pair.message


def test_every_mistake_has_a_place_and_a_way_out() -> None:
    for pair in PAIRS:
        assert "  --> " in pair.message, pair.title
        assert "\n  = " in pair.message, pair.title


def test_there_are_many_distinct_mistakes() -> None:
    assert len({pair.title for pair in PAIRS}) == len(PAIRS) >= 60


#: what is refused, a form that its hint names, and a query with just that form
WAYS_OUT = {
    "IN under OR": (
        "SELECT item FROM bids [NOW] WHERE price > 1 OR item IN (SELECT item FROM asks [NOW] WHERE"
        " (qty > 1))",
        "LEFT JOIN (SELECT DISTINCT item FROM asks [NOW] WHERE (qty > 1)) AS q (x) ON q.x = item",
        "SELECT bids.item FROM bids [NOW] {} WHERE price > 1 OR q.x IS NOT NULL",
    ),
    "NOT EXISTS under OR": (
        "SELECT item FROM bids [NOW] b WHERE price > 1 OR NOT EXISTS (SELECT 1 FROM asks [NOW] a"
        " WHERE b.item = a.item)",
        "LEFT JOIN (SELECT DISTINCT a.item FROM asks [NOW] a) AS q (x) ON q.x = b.item",
        "SELECT b.item FROM bids [NOW] b {} WHERE price > 1 OR q.x IS NULL",
    ),
    "a query for each row in the select list": (
        "SELECT (SELECT MAX(qty) FROM asks [NOW] a WHERE a.item = b.item) AS most FROM bids [NOW] b",
        "LEFT JOIN (SELECT a.item, MAX(qty) FROM asks [NOW] a GROUP BY a.item) AS q (k, x) ON q.k = b.item",
        "SELECT q.x AS most FROM bids [NOW] b {}",
    ),
    "a query in the select list": (
        "SELECT item, (SELECT MAX(qty) FROM asks [NOW]) AS most FROM bids [NOW]",
        "LEFT JOIN (SELECT MAX(qty) FROM asks [NOW]) AS q (x) ON TRUE",
        "SELECT item, q.x AS most FROM bids [NOW] {}",
    ),
    "one of many rows": (
        "SELECT item FROM bids [NOW] WHERE price = (SELECT price FROM asks [NOW] WHERE qty > 1)",
        "(SELECT MAX(price) FROM asks [NOW] WHERE qty > 1)",
        "SELECT item FROM bids [NOW] WHERE price = {}",
    ),
    "all of many rows": (
        "SELECT item FROM bids [NOW] WHERE price = (SELECT price FROM asks [NOW] WHERE qty > 1)",
        "IN (SELECT price FROM asks [NOW] WHERE qty > 1)",
        "SELECT item FROM bids [NOW] WHERE price {}",
    ),
    "an NRR table over an outer join": (
        "SELECT b.item FROM bids [ROWS 5] b LEFT JOIN asks [NOW] a ON a.item = b.item LEFT JOIN"
        " items i ON i.item = b.item",
        "FROM (SELECT ISTREAM(b.*, i.name) FROM bids [NOW] b LEFT JOIN items i ON i.item = b.item)"
        " [ROWS 5] AS b",
        "SELECT b.item, b.name {} LEFT JOIN asks [NOW] a ON a.item = b.item",
    ),
    "an NRR table below an outer join": (
        "SELECT b.item FROM bids [NOW] b LEFT JOIN items i ON i.item = b.item LEFT JOIN asks [NOW] a"
        " ON a.item = b.item",
        "FROM (SELECT ISTREAM(b.*, i.name) FROM bids [NOW] b LEFT JOIN items i ON i.item = b.item)"
        " [NOW] AS b",
        "SELECT b.item, b.name {} LEFT JOIN asks [NOW] a ON a.item = b.item",
    ),
    "a RELATION over rows by count": (
        "SELECT owner FROM bids [ROWS 5] JOIN owners ON owners.item = bids.item",
        "FROM (SELECT ISTREAM(bids.*, owners.owner) FROM bids [NOW] JOIN owners ON owners.item = bids.item)"
        " [ROWS 5] AS bids",
        "SELECT bids.owner {}",
    ),
    "a number in WHERE": (
        "SELECT item FROM bids [NOW] WHERE price > 1 AND RANK() OVER (ORDER BY price) < 3",
        "QUALIFY RANK() OVER (ORDER BY price) < 3",
        "SELECT item FROM bids [NOW] WHERE price > 1 {}",
    ),
    "an aggregate in WHERE": (
        "SELECT item FROM bids [NOW] WHERE price > 1 AND SUM(price) > 10 GROUP BY item",
        "HAVING SUM(price) > 10",
        "SELECT item FROM bids [NOW] WHERE price > 1 GROUP BY item {}",
    ),
    "a frame without an order": (
        "SELECT SUM(price) OVER (PARTITION BY item) FROM bids",
        "SUM(price) OVER (PARTITION BY item ORDER BY ts)",
        "SELECT {} FROM bids",
    ),
    "a number without an order": (
        "SELECT RANK() OVER (PARTITION BY item) FROM bids [NOW]",
        "RANK() OVER (PARTITION BY item ORDER BY ts DESC)",
        "SELECT {} FROM bids [NOW]",
    ),
    "a frame that follows": (
        "SELECT SUM(price) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) FROM bids",
        "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
        "SELECT SUM(price) OVER (ORDER BY ts {}) FROM bids",
    ),
    "all frames that follow": (
        "SELECT SUM(price) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM bids",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "SELECT SUM(price) OVER (ORDER BY ts {}) FROM bids",
    ),
    "rows from a place on": (
        "SELECT item FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] ORDER BY price DESC, item LIMIT 10 OFFSET 20",
        "QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC, item) BETWEEN 21 AND 30",
        "SELECT item FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] {}",
    ),
    "all rows from a place on": (
        "SELECT item FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] ORDER BY price OFFSET 20",
        "QUALIFY ROW_NUMBER() OVER (ORDER BY price) > 20",
        "SELECT item FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] {}",
    ),
    "the first rows of changes": (
        "SELECT DISTINCT item, price AS p FROM bids [RANGE 1 HOUR] ORDER BY p LIMIT 3",
        "SELECT RSTREAM(DISTINCT item, price AS p)",
        "{} FROM bids [RANGE 1 HOUR] ORDER BY p LIMIT 3",
    ),
    "the first rows of changes, by a SLIDE": (
        "SELECT item FROM bids [RANGE 1 HOUR] b ORDER BY price LIMIT 3",
        "FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] b",
        "SELECT item {} ORDER BY price LIMIT 3",
    ),
    "bounds without a SLIDE": (
        "SELECT window_end, COUNT(*) FROM bids [RANGE 5 MINUTES]",
        "FROM bids [RANGE 5 MINUTES SLIDE 5 MINUTES]",
        "SELECT window_end, COUNT(*) {}",
    ),
    "window() over a join": (
        "SELECT COUNT(*) FROM bids b JOIN asks a ON a.item = b.item GROUP BY window(b.ts, '1 hour',"
        " '5 minutes')",
        "FROM bids [RANGE 1 HOUR SLIDE 5 MINUTES] b, asks [RANGE 1 HOUR SLIDE 5 MINUTES] a",
        "SELECT COUNT(*) {} WHERE a.item = b.item",
    ),
    "a pivot": (
        "SELECT * FROM bids [NOW] PIVOT (SUM(price) FOR item IN (1, 2))",
        "SUM(price) FILTER (WHERE item = 1) AS item_1, SUM(price) FILTER (WHERE item = 2) AS item_2",
        "SELECT {} FROM bids [NOW]",
    ),
    "a sample": (
        "SELECT item FROM bids TABLESAMPLE (5 PERCENT)",
        "WHERE crc32(string(row_num)) % 100 < 5",
        "SELECT item FROM bids {}",
    ),
    "the first of equal rows": (
        "SELECT DISTINCT ON (item) item, price FROM bids [RANGE 1 HOUR SLIDE 1 HOUR]",
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY item ORDER BY price) = 1",
        "SELECT item, price FROM bids [RANGE 1 HOUR SLIDE 1 HOUR] {}",
    ),
    "changes asked to be final": (
        "SELECT COUNT(*) FROM bids [RANGE 5 MINUTES] EMIT FINAL",
        "FROM bids [RANGE 5 MINUTES SLIDE 5 MINUTES]",
        "SELECT COUNT(*) {} EMIT FINAL",
    ),
    "a window of time over a number": (
        "SELECT COUNT(*) FROM TUMBLE(TABLE bids, DESCRIPTOR(item), INTERVAL '1' HOUR)",
        "`ts`",
        "SELECT COUNT(*) FROM TUMBLE(TABLE bids, DESCRIPTOR({}), INTERVAL '1' HOUR)",
    ),
    "a function beside a window without SLIDE": (
        "SELECT b.item FROM bids [NOW] b JOIN TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '1' HOUR) a"
        " ON a.item = b.item",
        "(SELECT * FROM TUMBLE(TABLE asks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) AS a",
        "SELECT b.item, a.window_start FROM bids [NOW] b JOIN {} ON a.item = b.item",
    ),
    "seconds of a time": (
        "SELECT UNIX_TIMESTAMP(ts) FROM bids [NOW]",
        "unix_seconds(ts)",
        "SELECT {} FROM bids [NOW]",
    ),
    "seconds of a text": (
        "SELECT unix_timestamp(bidder, 'yyyy-MM-dd') FROM bids [NOW]",
        "unix_seconds(to_timestamp(bidder, 'yyyy-MM-dd'))",
        "SELECT {} FROM bids [NOW]",
    ),
    "the hour of BigQuery": (
        "SELECT TIMESTAMP_TRUNC(ts, HOUR) FROM bids [NOW]",
        "date_trunc('HOUR', ts)",
        "SELECT {} FROM bids [NOW]",
    ),
    "none of a list": (
        "SELECT item FROM bids [NOW] WHERE item <> ALL (1, 2)",
        "item NOT IN (1, 2)",
        "SELECT item FROM bids [NOW] WHERE {}",
    ),
    "steps that do not divide": (
        "SELECT COUNT(*) FROM bids [CUMULATE 1 DAY SLIDE 5 HOURS]",
        "4 HOURS",
        "SELECT COUNT(*) FROM bids [CUMULATE 1 DAY SLIDE {}]",
    ),
    "the start of a window that is not there": (
        "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), COUNT(*) FROM bids GROUP BY item",
        "GROUP BY TUMBLE(ts, INTERVAL '1' HOUR)",
        "SELECT TUMBLE_START(ts, INTERVAL '1' HOUR), COUNT(*) FROM bids {}, item",
    ),
}


@pytest.mark.parametrize("what", WAYS_OUT)
def test_the_form_that_a_hint_names_works(what: str) -> None:
    refused, form, works = WAYS_OUT[what]
    assert form in message_of(refused)
    _compile(works.format(form))


@pytest.mark.parametrize("nested", [False, True])
def test_too_many_windows_are_refused_before_they_are_ordered(nested: bool) -> None:
    def joined(name: str, number: int) -> str:
        more = "".join(f" JOIN bids [NOW] {name}{n} ON {name}{n}.item = {name}.item" for n in range(number))
        return f"SELECT {name}.item FROM bids [NOW] {name}{more}"

    _compile(joined("a", 20))
    many = f"SELECT x.item FROM ({joined('a', 40)}) x JOIN ({joined('b', 40)}) y ON x.item = y.item"
    with pytest.raises(QueryError, match="more than 64 windows and tables") as refused:
        _compile(many if nested else joined("a", 500))
    assert refused.value.code == "too-many-sources"
    assert refused.value.span is not None
