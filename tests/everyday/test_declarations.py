"""CREATE … IF NOT EXISTS, OR REPLACE, DROP … IF EXISTS, DESCRIBE; columns that are computed or inferred."""

from __future__ import annotations

import gzip
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.cli.declarations import Declarations
from windrow.errors import DataError, QueryError
from windrow.language.binder.bound_statements import Dropped, Nothing, RegisterQuery
from windrow.language.compile import Catalog, compile_script, declare_table
from windrow.spark.sources import infer_columns
from windrow.spark.sources.table_source import Folded, table_url
from windrow.spark.sources.tables import given_rows
from windrow.testing import Harness

STREAM = "CREATE STREAM s (a INT, b INT, n BIGINT) WATTR n ORDERED;"


def bound(script: str) -> list[Any]:
    return compile_script(script, Catalog())


def test_what_is_there_is_left_as_it_is() -> None:
    catalog = Catalog()
    compile_script(STREAM, catalog)
    before = catalog.streams["s"]
    again = compile_script("CREATE STREAM IF NOT EXISTS S (x DOUBLE, n BIGINT)", catalog)
    assert again == [Nothing("STREAM", "s")]
    assert catalog.streams["s"] is before
    (new,) = compile_script("CREATE TABLE IF NOT EXISTS t (a INT)", catalog)
    assert new.table.name == "t"
    compile_script("CREATE QUERY IF NOT EXISTS q AS SELECT a FROM s [NOW]", catalog)
    assert compile_script("CREATE QUERY IF NOT EXISTS q AS SELECT b FROM s [NOW]", catalog) == [
        Nothing("QUERY", "q")
    ]


def test_a_name_of_another_kind_is_refused_all_the_same() -> None:
    with pytest.raises(QueryError, match="there is a stream `s` already"):
        bound(STREAM + "CREATE TABLE IF NOT EXISTS s (a INT)")
    with pytest.raises(QueryError, match="no table `s` to drop"):
        bound(STREAM + "DROP TABLE IF EXISTS s")


def test_what_is_not_there_need_not_be_dropped() -> None:
    assert bound("DROP QUERY IF EXISTS q") == [Nothing("QUERY", "q")]
    assert bound(STREAM + "DROP STREAM IF EXISTS s")[-1] == Dropped("STREAM", "s")


def test_a_query_is_replaced_unless_it_is_the_same() -> None:
    create = "CREATE OR REPLACE QUERY q AS SELECT {} FROM s [NOW];"
    first, second, third = bound(STREAM + create.format("a") + create.format("b") + create.format("b"))[1:]
    assert isinstance(first, RegisterQuery)
    assert second.query.plan.schema.names == ("b",)
    assert third == Nothing("QUERY", "q")
    with pytest.raises(QueryError, match="QUERY should follow"):
        bound("CREATE OR REPLACE STREAM s (a INT, n BIGINT)")


def test_an_engine_runs_the_query_that_replaces() -> None:
    declared = Declarations()
    declared.sql(STREAM + "CREATE QUERY q AS SELECT a FROM s [NOW]")
    declared.sql("CREATE OR REPLACE QUERY q AS SELECT b FROM s [RANGE 5]")
    assert declared._engine.queries["q"].query.plan.schema.names == ("b",)
    declared.sql("CREATE STREAM IF NOT EXISTS s (a INT, n BIGINT); DROP QUERY IF EXISTS nothing")


def test_describe_tells_columns_types_and_what_is_said_about_them() -> None:
    declared = Declarations()
    (shown,) = declared.sql(
        "CREATE STREAM s (a INT, at_ms TIMESTAMP FORMAT 'epoch_ms', twice AS a * 2)"
        " WATTR at_ms SLACK 5 SECONDS;"
        "CREATE TABLE t (k BIGINT, v STRING, KEY (k)); CREATE QUERY q AS SELECT twice FROM s [NOW];"
        "DESCRIBE s"
    )
    assert shown.to_pylist() == [
        {"column": "a", "type": "INT", "about": ""},
        {"column": "at_ms", "type": "TIMESTAMP", "about": "FORMAT 'epoch_ms' WATTR SLACK 5 SECONDS"},
        {"column": "twice", "type": "INT", "about": "AS a * 2"},
    ]
    table, query = declared.sql("DESC t; DESCRIBE q")
    assert table.column("about").to_pylist() == ["KEY", ""]
    assert query.column("column").to_pylist() == ["twice"]
    with pytest.raises(QueryError, match="nothing is called `tt`"):
        declared.sql("DESCRIBE tt")


COMPUTED = {"s": ("a INT, b INT, n BIGINT, total AS a + b, even BOOLEAN AS total % 2 = 0", "WATTR n")}
QUERIES = {
    "SELECT * FROM s [RANGE 5]": ("SELECT a, b, n, a + b AS total, (a + b) % 2 = 0 AS even FROM s [RANGE 5]"),
    "SELECT total FROM s [RANGE 5 SLIDE 5] WHERE even": (
        "SELECT a + b AS total FROM s [RANGE 5 SLIDE 5] WHERE (a + b) % 2 = 0"
    ),
    "SELECT even, SUM(total) AS t FROM s [RANGE 5 SLIDE 5] GROUP BY even": (
        "SELECT (a + b) % 2 = 0 AS even, SUM(a + b) AS t FROM s [RANGE 5 SLIDE 5] GROUP BY (a + b) % 2 = 0"
    ),
    "SELECT x.total FROM s [RANGE 5] x JOIN s [RANGE 5] y ON x.total = y.total": (
        "SELECT x.a + x.b AS total FROM s [RANGE 5] x JOIN s [RANGE 5] y ON x.a + x.b = y.a + y.b"
    ),
    "SELECT a FROM s [LIFETIME total]": "SELECT a FROM s [LIFETIME a + b]",
}


@pytest.mark.parametrize("executor", ["reference", "kernels", "engine"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_computed_column_is_its_expression(query: str, executor: str) -> None:
    plain = {"s": ("a INT, b INT, n BIGINT", "WATTR n")}
    found = []
    for text, streams in ((query, COMPUTED), (QUERIES[query], plain)):
        harness = Harness(text, streams, executor=executor)
        harness.push("s", [(1, 2, 0), (3, 3, 2), (None, 1, 3), (2, 1, 9)])
        harness.finish()
        found.append(harness.take())
    assert found[0] == found[1]
    assert found[0]


def test_computed_columns_are_checked() -> None:
    with pytest.raises(QueryError, match="two columns are called `a`"):
        bound("CREATE STREAM s (a INT, n BIGINT, a AS n + 1)")
    with pytest.raises(QueryError, match="no column `c`"):
        bound("CREATE STREAM s (a INT, n BIGINT, b AS c + 1)")
    with pytest.raises(QueryError, match="has no column `b` to partition by"):
        bound("CREATE STREAM s (a INT, n BIGINT, b AS a + 1); SELECT a FROM s [ROWS 2 PARTITION BY b]")


def test_rows_of_tables_with_maps_and_numbers_in_texts() -> None:
    """Entries are in the order of their keys; a text with more digits than the type is refused."""
    table = declare_table("t", "m MAP<STRING, INT>, d DECIMAL(10, 2)")
    maps = pa.array([[("z", 1), ("a", 2)]], pa.map_(pa.string(), pa.int32()))
    assert given_rows(table, pa.table({"m": maps, "d": ["1.50"]})) == [
        ((("a", 2), ("z", 1)), Decimal("1.50"))
    ]
    with pytest.raises(DataError, match=r"table `t`.d"):
        given_rows(table, pa.table({"m": maps, "d": ["1.239"]}))


def inferred(source: Path, options: str = "") -> dict[str, str]:
    return dict(infer_columns("STREAM", "s", f"{source}{options}"))


def test_columns_of_csv_are_what_their_texts_look_like(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(
        "n,x,code,b,day,ts,mixed,none\n"
        "1,1,007,true,2024-01-31,2024-01-31 07:00:00,1,\n"
        ",2.5e3,8,FALSE,2024-02-29,2024-01-31T07:00:00.25+02:00,no,\n"
        "-3,.5,9,,,2024-01-31,2,\n"
    )
    names = ["n", "x", "code", "b", "day", "ts", "mixed", "none"]
    kinds = ["BIGINT", "DOUBLE", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "STRING", "STRING"]
    assert inferred(file) == dict(zip(names, kinds, strict=True))
    assert list(inferred(file, "?header=false")) == [f"_c{n}" for n in range(8)]
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress(b"a;b\n1;x\n"))
    assert inferred(tmp_path / "y.csv.gz", "?delimiter=%3B") == {"a": "BIGINT", "b": "STRING"}


def test_columns_of_json_and_parquet_may_be_nested(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_text('{"a": 1, "b": {"c": [1, 2.5], "d e": null}}\n\nno row\n')
    (tmp_path / "2.jsonl").write_text('{"a": null, "b": {"c": [], "d e": "x"}, "t": "2024-01-31 07:00"}\n')
    assert inferred(tmp_path / "*.jsonl") == {
        "a": "BIGINT",
        "b": "STRUCT<c: ARRAY<DOUBLE>, `d e`: STRING>",
        "t": "TIMESTAMP",
    }
    rows = [{"a": 1, "s": {"x": 1.5, "y": ["p"]}, "m": [("k", 1)]}]
    kinds = pa.schema(
        [
            ("a", pa.int16()),
            ("s", pa.struct([("x", pa.float64()), ("y", pa.list_(pa.string()))])),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, kinds), tmp_path / "3.parquet")
    assert inferred(tmp_path / "3.parquet") == {
        "a": "SMALLINT",
        "s": "STRUCT<x: DOUBLE, y: ARRAY<STRING>>",
        "m": "MAP<STRING, BIGINT>",
    }


def test_columns_are_told_once(tmp_path: Path) -> None:
    """After a commit they are those of the state, whatever the files say by then."""
    file = tmp_path / "x.csv"
    file.write_text("a,n\n1,1\n")
    declared = Declarations()
    declared.sql(
        f"CREATE STREAM s (twice AS a * 2) FROM '{file}' WATTR n ORDERED; CREATE TABLE t FROM '{file}'"
    )
    assert declared.catalog.streams["s"].schema.names == ("a", "n")
    engine = declared._engine
    engine.commit()
    file.write_text("b,n\nx,1\n")
    for kind, name in (("STREAM", "s"), ("TABLE", "t")):
        assert engine.columns_of(kind, name, str(file)) == [("a", "BIGINT"), ("n", "BIGINT")]
    assert engine.columns_of("STREAM", "other", str(file)) == [("b", "STRING"), ("n", "BIGINT")]


def test_columns_that_nothing_tells_are_asked_for(tmp_path: Path) -> None:
    declared = Declarations()
    for text in (
        f"CREATE STREAM s FROM '{tmp_path}/no.csv' ORDERED",
        "CREATE STREAM s FROM 'kafka://host:9092/s' ORDERED",
        "CREATE STREAM s FROM 'files:s3a://bucket/x.csv' ORDERED",
        "CREATE STREAM s FROM 'push:' ORDERED",
    ):
        with pytest.raises(QueryError, match=r"declare them: CREATE STREAM s \(column TYPE"):
            declared.sql(text)
    with pytest.raises(QueryError, match="`s` has no columns"):
        declared.sql("CREATE STREAM s ORDERED")


@pytest.mark.parametrize("executor", ["kernels", "engine"])
@pytest.mark.parametrize("kind", ["NRR", "RELATION"])
def test_tables_have_nested_columns(executor: str, kind: str) -> None:
    found = []
    for each in ("reference", executor):
        harness = Harness(
            "SELECT s.a, t.m['x'] AS x, t.r.y, t.r FROM s [RANGE 5] JOIN t ON t.a = s.a AND t.r.y > 0",
            {"s": ("a INT, n BIGINT", "WATTR n")},
            {"t": ("a INT, r STRUCT<y: INT, z: ARRAY<INT>>, m MAP<STRING, INT>", kind)},
            each,
        )
        harness.update("t", 0, insert=[(1, (2, [3]), {"x": 1}), (2, None, None)])
        harness.update("t", 3, delete=[(1, (2, [3]), {"x": 1})], insert=[(2, (5, None), {"z": None})])
        harness.push("s", [(1, 1), (2, 2), (2, 4), (1, 9)])
        harness.finish()
        found.append(harness.take())
    assert found[0] == found[1]
    assert found[0][0].row == (1, 1, 2, (2, (3,)))


def folded(form: str, changes: list[Any], key: str = "KEY (k)") -> list[Any]:
    found = Folded(declare_table("t", "k BIGINT, v STRING", f"RELATION {key}"), form)
    found.add(changes)
    return sorted(found.rows)


def test_a_changelog_with_a_column_that_says_what_happens() -> None:
    changes = [
        (1, "a", "I"),
        (2, "b", "+I"),
        (1, "a", "-U"),
        (1, "c", "+U"),
        (2, None, "d"),
        (3, "x", "insert"),
    ]
    assert folded("op", changes) == [(1, "c"), (3, "x")]
    assert folded("op", [(1, "a", "+"), (1, "a", "c"), (1, "b", "+"), (1, "a", "-")], "") == [
        (1, "a"),
        (1, "b"),
    ]
    for change, key, message in (
        ((1, "a", "U"), "", "no KEY says which row is replaced"),
        ((1, "a", "D"), "", "leaves and was not there"),
        ((1, "a", "x"), "KEY (k)", "`op` is 'x'"),
        ((1, "a", None), "KEY (k)", "`op` is None"),
    ):
        with pytest.raises(DataError, match=message):
            folded("op", [change], key)
    assert folded("op", [(1, None, "D")]) == []


def test_a_changelog_of_debezium() -> None:
    first, second, moved = (1, "a"), (1, "b"), (2, "b")
    changes = [(None, first, "c", None), (None, second, "u", None), (None, None, None, (None, (3, "x"), "r"))]
    assert folded("debezium", changes) == [second, (3, "x")]
    assert folded("debezium", [*changes, (second, moved, "u", None)]) == [moved, (3, "x")]
    assert folded("debezium", [*changes, (second, None, "d", None), (None, None, None, None)]) == [(3, "x")]
    assert folded("debezium", [*changes, (None, None, "t", None)]) == []
    assert folded("debezium", [(None, first, "c", None), (first, second, "u", None)], "") == [second]
    with pytest.raises(DataError, match="REPLICA IDENTITY FULL"):
        folded("debezium", [(None, first, "u", None)], "")
    with pytest.raises(DataError, match="Debezium writes c, r, u, d or t"):
        folded("debezium", [(None, first, "z", None)])


def test_where_a_changelog_can_be() -> None:
    declared = Declarations()
    declared.sql("CREATE TABLE a (k INT, KEY (k)) RELATION FROM 'kafka://host:9092/a?changelog=debezium'")
    assert table_url(declared.catalog.tables["a"])[1] == "debezium"
    for columns, source, message in (
        ("k INT", "kafka://host:9092/b", r"kafka://host:9092/b\?changelog=debezium"),
        ("k INT", "b.csv?changelog=debezium", "changes of Debezium are JSON"),
        ("k INT, op STRING", "b.csv?changelog=op", "leave `op` out"),
        ("k INT", "b.csv?changelog=oops", "`op`"),
        ("t TIMESTAMP FORMAT 'epoch_ms'", "b.json?changelog=debezium", "declare it BIGINT"),
    ):
        with pytest.raises(QueryError, match=message):
            declared.sql(f"CREATE TABLE b ({columns}) FROM '{source}'")
    with pytest.raises(QueryError, match="no option `changelog`"):
        declared.sql("CREATE STREAM s (k INT, n INT) ORDERED FROM 'b.csv?changelog=op'")


def test_columns_of_a_changelog_are_those_of_its_rows(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k,v,op\n1,a,I\n")
    (tmp_path / "y.json").write_text(
        '{"payload": {"before": null, "after": {"k": 1, "v": "a"}, "op": "c"}}\n'
    )
    for file, form in (("x.csv", "op"), ("y.json", "debezium")):
        found = infer_columns("TABLE", "t", f"{tmp_path}/{file}?changelog={form}")
        assert found == [("k", "BIGINT"), ("v", "STRING")]
