"""Declarations and scripts: what they put into the catalog."""

from __future__ import annotations

import pytest
from tests.language.corpus import market

from windrow.algebra.catalog import Late, TableKind
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.plan import Emit
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import (
    DeclareStream,
    Dropped,
    ExplainQuery,
    RegisterQuery,
    RunOnce,
    ShowAll,
)
from windrow.language.compile import Catalog, compile_query, compile_script, declare_stream, declare_table
from windrow.windows.progress import NoPolicy, Ordered, OrderedPer, Punctuated, Slack, SlackRows


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ("", NoPolicy()),
        ("WATTR ts", NoPolicy()),
        ("WATTR ts ORDERED", Ordered()),
        ("WATTR ts SLACK 2 SECONDS", Slack(2_000_000)),
        ("WATTR ts SLACK 100 ROWS", SlackRows(100)),
        ("WATTR ts ORDERED PER host", OrderedPer()),
        ("WATTR ts ORDERED PER Host IDLE 30 SECONDS", OrderedPer(idle=30_000_000)),
        ("WATTR ts PUNCTUATED BY mark", Punctuated()),
        ("WATTR ts PUNCTUATED BY mark PER host", Punctuated(per=True)),
    ],
)
def test_options_of_a_stream_make_its_policy(options: str, policy: object) -> None:
    stream = declare_stream("s", "host STRING, mark DATE, ts TIMESTAMP", options or "WATTR ts")
    assert stream.progress.policy == policy
    assert stream.progress.per in (None, "host")


def test_punctuation_reads_the_columns_of_the_stream() -> None:
    options = (
        "WATTR ts PUNCTUATED BY ts - INTERVAL '1' SECOND WHEN kind = 'mark' LATE TO 'files:///late' SHEDDABLE"
    )
    stream = declare_stream("s", "kind STRING, ts TIMESTAMP", options)
    assert stream.progress.when is not None
    assert stream.progress.mark is not None
    assert to_sql(stream.progress.when, str) == "kind = 'mark'"
    assert stream.progress.mark.columns == {"ts"}
    assert (stream.late, stream.late_sink, stream.sheddable) == (Late.TO, "files:///late", True)


@pytest.mark.parametrize(
    ("columns", "wattr"),
    [
        ("a BIGINT, ts TIMESTAMP", "ts"),
        ("day DATE, n BIGINT", "day"),
        ("n BIGINT, text STRING, m INT, x DOUBLE", "m"),
    ],
)
def test_a_stream_without_wattr_is_ordered_by_what_there_is(columns: str, wattr: str) -> None:
    assert declare_stream("s", columns).wattr == wattr


def test_tables_are_nrr_unless_they_say_otherwise() -> None:
    assert declare_table("t", "a INT, b INT").kind is TableKind.NRR
    assert declare_table("t", "a INT, b INT", "NRR KEY (A, b)").key == ("a", "b")
    assert declare_table("t", "a INT", "RELATION").kind is TableKind.RELATION


def test_times_may_be_numbers_of_a_unit() -> None:
    written = "ts TIMESTAMP FORMAT 'epoch_ms', `seen at` TIMESTAMP FORMAT 'EPOCH_S', until TIMESTAMP"
    forms = (("ts", "epoch_ms"), ("seen at", "epoch_s"))
    assert declare_stream("s", written, "WATTR ts").forms == forms
    assert declare_table("t", written, "KEY (ts)").forms == forms


def test_a_script_sees_what_it_declares() -> None:
    catalog = Catalog()
    bound = compile_script(
        """CREATE STREAM s (a BIGINT, ts TIMESTAMP) WATTR ts ORDERED FROM 'files:///s';
           CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 1 MIN SLIDE 1 MIN]
             INTO 'memory:' PRIORITY 3 MAX GAP 5 EVERY 10 SECONDS;
           CREATE QUERY r AS SELECT n FROM q;
           SHOW QUERIES;
           EXPLAIN SELECT n FROM r;
           SELECT a FROM s [NOW];
           DROP QUERY Q""",
        catalog,
    )
    kinds = [DeclareStream, RegisterQuery, RegisterQuery, ShowAll, ExplainQuery, RunOnce, Dropped]
    assert [type(statement) for statement in bound] == kinds
    query = bound[1].query  # type: ignore[union-attr]
    assert (query.sink, query.priority, query.max_gap, query.every) == ("memory:", 3, 5, 10_000_000)
    assert list(catalog.streams) == ["s"]
    assert list(catalog.queries) == ["r"]


def test_a_script_with_a_mistake_declares_nothing() -> None:
    catalog = Catalog()
    with pytest.raises(QueryError):
        compile_script("CREATE STREAM s (a BIGINT); SELECT b FROM s", catalog)
    assert catalog.streams == {}


def test_a_registered_query_keeps_its_plan_when_another_is_dropped() -> None:
    catalog = market()
    compile_script("CREATE QUERY best AS SELECT MAX(price) FROM top; DROP QUERY top", catalog)
    assert isinstance(compile_query("SELECT * FROM best", catalog), Emit)


def test_dropping_the_readers_frees_a_stream() -> None:
    catalog = market()
    compile_script("DROP QUERY top; DROP QUERY news; DROP STREAM bids; DROP TABLE items", catalog)
    assert "bids" not in catalog.streams
    assert "items" not in catalog.tables


def test_a_bound_on_the_age_of_answers() -> None:
    script = "CREATE QUERY q AS SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR SLIDE 1 MINUTE]"
    catalog = Catalog(declare_stream("s", "v BIGINT, ts TIMESTAMP"))
    compile_script(f"{script} EVERY 1 MINUTE AT MOST 5 MINUTES PRIORITY 2", catalog)
    query = catalog.queries["q"]
    assert (query.every, query.at_most, query.priority) == (60_000_000, 300_000_000, 2)
    catalog = Catalog(declare_stream("s", "v BIGINT, ts TIMESTAMP"))
    with pytest.raises(QueryError, match="AT MOST 30 SECONDS is less than EVERY 1 MINUTE"):
        compile_script(f"{script} EVERY 1 MINUTE AT MOST 30 SECONDS", catalog)
