"""Differential: a query built in code has the plan of the one written as SQL, and the same errors."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from tests.support.history import STREAM
from tests.support.life import Life

import windrow as wr
from windrow import functions as fn
from windrow.algebra.canonical import canonical_text
from windrow.frame import Frame, from_
from windrow.functions import Column, col, count, count_distinct, lit
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_query, compile_script

if TYPE_CHECKING:
    from pathlib import Path

DECLARED = """
CREATE STREAM bids (item BIGINT, price DOUBLE, bidder STRING, `bid day` DATE, life BIGINT, ts TIMESTAMP)
  WATTR ts SLACK 5 SECONDS FROM 'generator:auction?rate=10';
CREATE STREAM asks (item BIGINT, price DOUBLE, ts TIMESTAMP)
  WATTR ts ORDERED FROM 'generator:auction?rate=10';
CREATE STREAM ticks (k BIGINT, v BIGINT, n BIGINT) WATTR n ORDERED FROM 'generator:auction?rate=10';
CREATE TABLE items (item BIGINT, name STRING, KEY (item)) NRR;
"""

BIDS = from_("bids").range("5 minutes", slide="1 minute")
LAST = from_("bids", alias="b").range("5 minutes")

PAIRS: list[tuple[Frame, str]] = [
    (
        BIDS.group_by("item").agg(best=fn.max_("price"), n=count()),
        "SELECT item, MAX(price) AS best, COUNT(*) AS n FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE]"
        " GROUP BY item",
    ),
    (
        BIDS.where(col("price") > 1.5).where("bidder LIKE 'a%'").agg(fn.avg("price").alias("mean")),
        "SELECT AVG(price) AS mean FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE]"
        " WHERE price > 1.5D AND bidder LIKE 'a%'",
    ),
    (
        BIDS.group_by("item").agg(best=fn.max_("price")).where("MAX(price) > 10"),
        "SELECT item, MAX(price) AS best FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE]"
        " GROUP BY item HAVING MAX(price) > 10",
    ),
    (
        BIDS.group_by(col("bid day")).agg(n=count_distinct("bidder"), big=count().filter(col("price") >= 9)),
        "SELECT `bid day`, COUNT(DISTINCT bidder) AS n, COUNT(*) FILTER (WHERE price >= 9) AS big"
        " FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY `bid day`",
    ),
    (
        BIDS.group_by("item").agg(n=count()).order_by(col("n").desc()).limit(3).rstream(),
        "SELECT RSTREAM(item, COUNT(*) AS n) FROM bids [RANGE 5 MINUTES SLIDE 1 MINUTE] GROUP BY item"
        " ORDER BY n DESC LIMIT 3",
    ),
    (LAST.select("b.bidder").distinct(), "SELECT DISTINCT b.bidder FROM bids [RANGE 5 MINUTES] AS b"),
    (LAST.select("item").istream(), "SELECT ISTREAM(item) FROM bids [RANGE 5 MINUTES] AS b"),
    (LAST.select("item").dstream(), "SELECT DSTREAM(item) FROM bids [RANGE 5 MINUTES] AS b"),
    (
        LAST.join(from_("asks", "a").rows(10, partition_by="item"), on=["item"]).select(
            "b.item", ask="a.price"
        ),
        "SELECT b.item, a.price AS ask FROM bids [RANGE 5 MINUTES] AS b"
        " JOIN asks [ROWS 10 PARTITION BY item] AS a ON b.item = a.item",
    ),
    (
        LAST.join(
            from_("asks", "a").range(dt.timedelta(minutes=1)), col("b.item") == col("a.item"), "left"
        ).select("b.item", "a.price"),
        "SELECT b.item, a.price FROM bids [RANGE 5 MINUTES] AS b"
        " LEFT JOIN asks [RANGE 1 MINUTE] AS a ON b.item = a.item",
    ),
    (
        LAST.join(from_("items", "i"), on="b.item = i.item").select("i.name", "b.price"),
        "SELECT i.name, b.price FROM bids [RANGE 5 MINUTES] AS b JOIN items AS i ON b.item = i.item",
    ),
    (
        LAST.not_exists(from_("asks", "a").range("1 minute"), on="a.item = b.item").select("b.item"),
        "SELECT b.item FROM bids [RANGE 5 MINUTES] AS b"
        " WHERE NOT EXISTS (SELECT * FROM asks [RANGE 1 MINUTE] AS a WHERE a.item = b.item)",
    ),
    (
        LAST.exists(from_("asks", "a").now(), on=col("a.item") == col("b.item")).select("b.item"),
        "SELECT b.item FROM bids [RANGE 5 MINUTES] AS b"
        " WHERE EXISTS (SELECT * FROM asks [NOW] AS a WHERE a.item = b.item)",
    ),
    (
        from_("bids")
        .tumble("1 minute")
        .agg(best=fn.max_("price"))
        .alias("m")
        .range("1 hour", slide="1 minute")
        .agg(mean=fn.avg("best")),
        "SELECT AVG(best) AS mean FROM"
        " (SELECT MAX(price) AS best FROM bids [RANGE 1 MINUTE SLIDE 1 MINUTE])"
        " [RANGE 1 HOUR SLIDE 1 MINUTE] AS m",
    ),
    (
        from_("bids").session_window("10 minutes", partition_by=["bidder"]).group_by("bidder").agg(n=count()),
        "SELECT bidder, COUNT(*) AS n FROM bids [SESSION 10 MINUTES PARTITION BY bidder] GROUP BY bidder",
    ),
    (from_("bids").lifetime("life").select("item"), "SELECT item FROM bids [LIFETIME life]"),
    (from_("bids").unbounded().select("item"), "SELECT item FROM bids [UNBOUNDED]"),
    (
        from_("ticks").landmark(3, until=90, slide=10).agg(s=fn.sum_("v")),
        "SELECT SUM(v) AS s FROM ticks [LANDMARK FROM 3 UNTIL 90 SLIDE 10]",
    ),
    (
        from_("ticks").rows(12, slide=4).agg(s=fn.sum_("v")),
        "SELECT SUM(v) AS s FROM ticks [ROWS 12 SLIDE 4 ROWS]",
    ),
    (
        from_("ticks")
        .range(10, slide=5, origin=2)
        .select("k")
        .union_all(from_("ticks").range(4, 2).select("k")),
        "SELECT k FROM ticks [RANGE 10 SLIDE 5 ORIGIN 2] UNION ALL SELECT k FROM ticks [RANGE 4 SLIDE 2]",
    ),
    (
        from_("ticks").range(9).select("k").except_all(from_("ticks").range(4).select("k")),
        "SELECT k FROM ticks [RANGE 9] EXCEPT ALL SELECT k FROM ticks [RANGE 4]",
    ),
    (
        from_("ticks").range(9).select("k").intersect(from_("ticks").range(4).select("k")),
        "SELECT k FROM ticks [RANGE 9] INTERSECT SELECT k FROM ticks [RANGE 4]",
    ),
    (
        from_("ticks")
        .range(9)
        .where(~((col("k") % 2 == 0) | col("v").isin(1, 2)) & (-col("v") < 3))
        .select("*"),
        "SELECT * FROM ticks [RANGE 9] WHERE NOT (k % 2 = 0 OR v IN (1, 2)) AND (- v) < 3",
    ),
    (
        from_("bids")
        .now()
        .where((col("bidder") == "o'hara\\") & col("price").is_not_null())
        .select(fn.upper("bidder").alias("who"), low=col("price").between(1, 2), d=lit(dt.date(2026, 3, 2))),
        "SELECT UPPER(bidder) AS who, price BETWEEN 1 AND 2 AS low, DATE '2026-03-02' AS d FROM bids [NOW]"
        " WHERE bidder = 'o\\'hara\\\\' AND price IS NOT NULL",
    ),
]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    catalog = Catalog()
    compile_script(DECLARED, catalog)
    return catalog


@pytest.mark.parametrize(("frame", "text"), PAIRS, ids=[text[:60] for _, text in PAIRS])
def test_a_frame_has_the_plan_of_its_sql(frame: Frame, text: str, catalog: Catalog) -> None:
    built, written = compile_query(frame.sql(), catalog), compile_query(text, catalog)
    assert canonical_text(built) == canonical_text(written)


def test_every_function_of_the_language_has_a_name_here() -> None:
    names = set(dir(fn))
    assert {"max_", "avg", "upper", "median", "approx_count_distinct", "coalesce", "if_"} <= names
    assert isinstance(fn.upper("a"), Column)
    assert repr(col("tags")[0]) == "Column(tags[0])"
    for name in names - {"Column", "col", "count", "count_distinct", "expr", "lit"}:
        assert isinstance(getattr(fn, name)("a"), Column)


def test_a_function_that_is_not_there_is_told_with_the_nearest() -> None:
    with pytest.raises(AttributeError, match="did you mean `upper`"):
        _ = fn.uper


def test_the_error_of_a_frame_points_into_its_sql(catalog: Catalog) -> None:
    with pytest.raises(wr.QueryError) as told:
        compile_query(BIDS.agg(best=fn.max_("prise")).sql(), catalog)
    assert told.value.hint == "did you mean `price`?"
    assert "^^^^^" in str(told.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: BIDS.join(LAST, on=["item"], how="lef"), "no join `lef`"),
        (lambda: bool(col("a") == 1), "is not known before there are rows"),
        (lambda: lit(object()), "has no form in SQL"),
        (lambda: BIDS.agg(n=count()).query("q"), "belongs to no engine"),
    ],
)
def test_what_is_wrong_with_a_frame(wrong: object, message: str) -> None:
    with pytest.raises(wr.QueryError, match=message) as told:
        wrong()  # type: ignore[operator]
    assert told.value.hint


def test_a_frame_is_registered_asked_and_explained(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(f"{STREAM} KEEP 100")
        sums = w.from_("s").range(10, slide=10).group_by("k").agg(total=fn.sum_("v"))
        query = sums.query("sums")
        assert query.text == w.query("written", sums).text
        w.push((1, 10, 0), (1, 5, 4), (2, 1, 25))
        assert w.rows("sums") == w.rows("written") == [(10, 1, 15)]
        assert w.from_("s").range(100).agg(n=count()).results().to_pylist() == [{"n": 2}]
        assert w.select(w.from_("s").range(100).agg(n=count())).to_pylist() == [{"n": 2}]
        assert "SUM" in str(sums.explain())
