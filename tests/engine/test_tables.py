"""Tables that change while queries run: what is seen of a change, what is kept of it, and what is refused."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from tests.support.history import STREAM
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.refusal import refusal

from windrow.engine import tables as kept

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep

TABLES = {"items": "k BIGINT, name STRING", "owners": "k BIGINT, owner STRING"}
KINDS = {"items": "NRR", "owners": "RELATION"}
BEFORE_ALL = -1_000_000
QUERIES = {
    "names": "SELECT ISTREAM(s.k, name, v) FROM s [RANGE 10], items WHERE s.k = items.k",
    "owned": "SELECT s.k, owner, v FROM s [RANGE 10], owners WHERE s.k = owners.k",
    "both": "SELECT name, owner, SUM(v) AS total FROM s [RANGE 20 SLIDE 10], items, owners"
    " WHERE s.k = items.k AND s.k = owners.k GROUP BY name, owner",
    "pairs": "SELECT x.v, y.v AS w, name FROM s [RANGE 6] x, s [RANGE 6] y, items"
    " WHERE x.k = y.k AND items.k = y.k",
    "any": "SELECT owner, COUNT(*) AS n FROM s [RANGE 10], owners WHERE s.v > owners.k GROUP BY owner",
}


def declare(w: Life, *queries: str) -> Life:
    w.sql(STREAM)
    for name, columns in TABLES.items():
        w.sql(f"CREATE TABLE {name} ({columns}) {KINDS[name]}")
    for query in queries:
        w.query(query, QUERIES[query])
    return w


def heard(w: Life, query: str, into: dict[int, Any]) -> None:
    """What a query has told so far; each commit once, whatever ended in between."""
    for commit, table in w.engine.queries[query].sink._tables.items():
        into[commit] = [tuple(row.values()) for row in table.to_pylist()]


rows = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3), st.integers(0, 30)), min_size=1, max_size=4)
table_rows = st.lists(st.tuples(st.integers(1, 3), st.sampled_from("abc")), max_size=2)
steps = st.one_of(
    st.tuples(st.just("push"), rows),
    st.tuples(st.sampled_from(["items", "owners"]), table_rows),
    st.tuples(st.just("restart"), st.none()),
)


@pytest.mark.part(2)
@pytest.mark.parametrize("query", QUERIES)
@given(script=st.lists(steps, min_size=4, max_size=12))
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_changes_without_an_instant_are_as_changes_at_the_instants_chosen(
    script: list[Any], query: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The oracle is told the instants; restarts lose nothing, and histories are added up all the time."""
    state = tmp_path_factory.mktemp("state")
    happened: list[Any] = []
    found: dict[int, Any] = {}
    held: dict[str, list[Any]] = {name: [] for name in TABLES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept, "MOST_PARTS", 2)
        w = declare(Life(state), query)
        for verb, values in script:
            if verb == "restart":
                heard(w, query, found)
                w.vanish()
                w = declare(Life(state), query)
                w.engine.deliver()
            elif verb == "push":
                w.push(*values)
                happened.append(("s", values))
            else:
                gone = held[verb][: len(values) // 2]
                w.update(verb, insert=values, delete=gone)
                at = w.tables[verb].changed
                held[verb] = held[verb][len(gone) :] + values
                if values or gone:
                    happened.append((verb, at, values, gone))
        for name, rows_left in held.items():
            assert Counter(map(tuple, (r.values() for r in w.tables[name].rows().to_pylist()))) == Counter(
                rows_left
            )
        w.end()
        heard(w, query, found)
    tables = {name: (columns, KINDS[name]) for name, columns in TABLES.items()}
    expected = oracle(QUERIES[query], happened, tables=tables)
    assert Counter(row for told in found.values() for row in told) == expected
    w.close()


@pytest.mark.parametrize("parts", [1, 16])
def test_a_query_that_comes_later_begins_with_what_the_tables_hold_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    """Changes that are still to come are kept apart, also where a history is added up."""
    monkeypatch.setattr(kept, "MOST_PARTS", parts)
    w = declare(Life(tmp_path), "names")
    w.update("items", insert=[(1, "old"), (2, "two")])
    w.push((1, 0, 0), (1, 0, 10))
    w.update("items", insert=[(1, "new")], delete=[(1, "old")])
    w.update("items", insert=[(2, "to come")], at=40)
    w.update("items", insert=[(3, "three")], at=50)
    w.query("later", QUERIES["names"])
    w.push((1, 5, 30), (2, 6, 38), (2, 7, 41))
    w.end()
    expected = [(30, 1, "new", 5), (38, 2, "two", 6), (41, 2, "to come", 7), (41, 2, "two", 7)]
    assert w.rows("later") == expected
    assert [row for row in w.rows("names") if row[0] >= 30] == expected
    w.close()


def test_content_given_again_after_a_restart_is_no_change_and_other_content_is(tmp_path: Path) -> None:
    first, second = [(1, "a"), (2, "b")], [(2, "b"), (3, "c")]
    for content, expected in [(first, [1, 2, 9]), (first, [1, 2, 9]), (second, [2, 3])]:
        w = declare(Life(tmp_path), "owned")
        w.table("owners", content)
        if content is first and 9 not in w.tables["owners"].rows()["k"].to_pylist():
            w.update("owners", insert=[(9, "z")])
        assert sorted(w.tables["owners"].rows()["k"].to_pylist()) == expected
        w.vanish()


def test_content_waits_for_the_queries_that_are_not_declared_yet(tmp_path: Path) -> None:
    """Its instant must not lie in what they have answered."""
    w = declare(Life(tmp_path), "owned")
    w.table("owners", [(1, "a")])
    w.push((1, 0, 0), (1, 0, 10), (1, 0, 20))
    w.vanish()
    w = declare(Life(tmp_path))
    w.table("owners", [(1, "b")])
    assert w.tables["owners"].rows()["owner"].to_pylist() == ["a"]
    w.query("owned", QUERIES["owned"])
    w._refreshing.look_at("owners")
    assert w.tables["owners"].changed == 20
    assert w.tables["owners"].rows()["owner"].to_pylist() == ["b"]
    w.vanish()


def test_a_function_is_asked_for_the_whole_content(tmp_path: Path) -> None:
    contents = [pl.DataFrame({"k": [1], "name": ["one"]})]
    w = Life(tmp_path)
    w.table("items", lambda: contents[-1], key=["k"], every="0 seconds")
    commit = w.commit
    w._refreshing.look_at("items")
    assert w.commit == commit
    contents.append(pl.DataFrame({"k": [1, 2], "name": ["one", "two"]}))
    w._refreshing.look_at("items")
    assert w.tables["items"].rows()["name"].to_pylist() == ["one", "two"]
    refusal(lambda: w.update("items", insert=[(3, "three")]), "table-has-source")
    contents.append("no table")  # type: ignore[arg-type]
    refusal(lambda: w._refreshing.look_at("items"), "bad-source")
    assert len(w.tables["items"]) == 2
    w.close()


def test_a_table_that_is_punctuated_holds_the_clock_and_may_change_behind_the_streams(tmp_path: Path) -> None:
    w = declare(Life(tmp_path), "owned")
    w.punctuate("owners", 5)
    w.push((1, 1, 6), (1, 2, 30))
    assert w.rows("owned") == []
    w.update("owners", insert=[(1, "a")], at=7)
    w.punctuate("owners", 20)
    assert w.rows("owned") == [(7, "+", 1, "a", 1), (16, "-", 1, "a", 1)]
    refusal(lambda: w.update("owners", insert=[(1, "b")], at=19), "late-update")
    w.close()


def test_what_is_refused_leaves_everything_as_it_was(tmp_path: Path) -> None:
    w = declare(Life(tmp_path), "owned")
    w.sql("CREATE TABLE keyed (k BIGINT, name STRING, KEY (k)) NRR")
    w.sql("CREATE TABLE alive (k BIGINT, name STRING, KEY (k)) RELATION")
    w.update("keyed", insert=[(1, "one")])
    w.update("alive", insert=[(1, "one")])
    w.update("keyed", delete=[(1, "one")])
    w.update("owners", insert=[(1, "a")])
    w.push((1, 0, 0), (1, 0, 20))
    w.push((1, 0, 40))
    before = w.commit
    refusal(lambda: w.update("keyed", insert=[(1, "again")]), "key-reused")
    refusal(lambda: w.update("alive", insert=[(1, "again")]), "key-reused")
    refusal(lambda: w.update("alive", insert=[(2, "x"), (2, "y")]), "key-reused")
    refusal(lambda: w.update("alive", delete=[(1, "on")]), "no-such-row")
    refusal(lambda: w.update("owners", insert=[(2, "b")], at=36), "late-update")
    refusal(lambda: w.update("owners", insert=[{"k": 2, "ownr": "b"}]), "unknown-column")
    refusal(lambda: w.update("owners", insert=[{"k": 2}]), "missing-column")
    refusal(
        lambda: w.update("owners", insert=pl.DataFrame({"k": [1], "owner": ["b"], "x": [1]})),
        "unknown-column",
    )
    refusal(lambda: w.update("owners", insert=pl.DataFrame({"k": [1.5], "owner": ["b"]})), "column-type")
    refusal(lambda: w.update("owner", insert=[(1, "b")]), "unknown-source")
    refusal(lambda: w.table("fresh", pl.DataFrame({"k": [1, 1]}), key=["k"]), "key-reused")
    refusal(lambda: w.sql("CREATE TABLE g (k BIGINT) NRR FROM 'generator:traffic'"), "bad-source")
    refusal(lambda: w.sql("DROP TABLE owners"), "still-read")
    assert w.commit == before
    assert {name: len(table) for name, table in w.tables.items()} == {
        "items": 0,
        "owners": 1,
        "keyed": 0,
        "alive": 1,
    }
    w.update("alive", delete=[(1, "one")], insert=[(1, "again")])
    w.vanish()
    w = declare(Life(tmp_path), "owned")
    refusal(lambda: w.sql("CREATE TABLE keyed (k BIGINT, name STRING, KEY (k)) RELATION"), "table-changed")
    w.sql("CREATE TABLE keyed (k BIGINT, name STRING, KEY (k)) NRR")
    refusal(lambda: w.update("keyed", insert=[(1, "again")]), "key-reused")
    w.close()


def test_keys_of_an_nrr_table_are_remembered_when_its_history_is_added_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST_PARTS", 2)
    w = Life(tmp_path)
    w.sql("CREATE TABLE keyed (name STRING, k BIGINT, KEY (k, name)) NRR")
    for k in range(8):
        w.update("keyed", insert=[("x", k)], delete=[("x", k - 1)] if k else [])
    assert len(w.engine.tables["keyed"].history) <= 4
    w.vanish()
    w = Life(tmp_path)
    w.sql("CREATE TABLE keyed (name STRING, k BIGINT, KEY (k, name)) NRR")
    assert w.tables["keyed"].rows().to_pylist() == [{"name": "x", "k": 7}]
    for k in range(8):
        refusal(lambda k=k: w.update("keyed", insert=[("x", k)]), "key-reused")
    w.sql("DROP TABLE keyed; CREATE TABLE keyed (name STRING, k BIGINT, KEY (k)) RELATION")
    w.update("keyed", insert=[("x", 0)])
    assert len(w.tables["keyed"]) == 1
    w.close()


def test_a_table_is_not_read_by_times_and_by_numbers(tmp_path: Path) -> None:
    w = declare(Life(tmp_path), "owned")
    w.sql("CREATE STREAM timed (k BIGINT, ts TIMESTAMP) WATTR ts ORDERED")
    text = "SELECT timed.k, owner FROM timed [NOW], owners WHERE timed.k = owners.k"
    refusal(lambda: w.query("timed_owners", text), "mixed-domains")
    assert set(w.queries) == {"owned"}
    w.close()


def test_tables_are_shown_and_explained(tmp_path: Path) -> None:
    w = declare(Life(tmp_path), "owned", "any")
    w.update("owners", insert=[(1, "a")])
    (shown,) = w.sql("SHOW TABLES")
    assert shown.to_pylist()[1] == {"name": "owners", "kind": "RELATION", "rows": 1, "source": None}
    assert "each shard keeps the rows whose k is routed to it" in str(w.queries["owned"].explain())
    assert "kept in that shard" in str(w.queries["any"].explain())
    w.close()
