"""Columns may be called anything: Zeek writes `id.orig_h`, and Spark takes a dot for a field, a backtick for
a quote. From sources of every kind, through both ways of ingestion, to sinks.
"""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.history import rows_of
from tests.support.oracle import oracle

import windrow as wr
from windrow.errors import QueryError
from windrow.language.compile import _quoted
from windrow.session import Windrow

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

#: a key, a number and the WATTR
NAMES = [
    ("id.orig_h", "a`b", "t.s"),
    ("`", "x y.'z\"", "T`.S"),
    ("größe.[0]", "a.b.c", "__t."),
    ("__key0", "__malformed", "__t"),
    ("__pane", "__begin", "__moment"),
]
ROWS = [(f"h{n % 3}", n, 3 * n) for n in range(12)]
#: aggregated by Spark; from rows; and joined
QUERIES = [
    "SELECT {k}, SUM({v}) AS `sum.of`, MAX({t}) AS {t} FROM s [RANGE 10 SLIDE 5] GROUP BY {k}",
    "SELECT {k}, MEDIAN({v}) AS {v} FROM s [RANGE 10 SLIDE 5] WHERE {v} > 1 GROUP BY {k}",
    "SELECT x.{k}, y.{v} FROM s [ROWS 2] x, s [RANGE 6] y WHERE x.{k} = y.{k}",
]


def as_json(path: Path, names: tuple[str, ...]) -> None:
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in ROWS))


def as_csv(path: Path, names: tuple[str, ...]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *ROWS])


def as_parquet(path: Path, names: tuple[str, ...]) -> None:
    pq.write_table(pa.table(dict(zip(names, zip(*ROWS, strict=True), strict=True))), path)


WRITERS: dict[str, Callable[[Path, tuple[str, ...]], None]] = {
    "json": as_json,
    "csv": as_csv,
    "parquet": as_parquet,
}


def expected(text: str, declared: tuple[str, str]) -> list[Any]:
    return sorted(oracle(text, [ROWS], {"s": declared}).elements())


@pytest.mark.part(15)
@pytest.mark.parametrize("names", NAMES, ids=["zeek", "quotes", "brackets", "ours", "more of ours"])
@pytest.mark.parametrize("kind", [*WRITERS, "frame"])
def test_columns_of_any_name(
    spark: SparkSession, tmp_path: Path, names: tuple[str, str, str], kind: str
) -> None:
    k, v, t = map(_quoted, names)
    declared = f"{k} STRING, {v} BIGINT, {t} BIGINT", f"WATTR {t} ORDERED"
    texts = [text.format(k=k, v=v, t=t) for text in QUERIES]
    with Windrow(spark, tmp_path / "state") as w:
        if kind == "frame":
            w.stream("s", spark.createDataFrame(ROWS, list(names)), wattr=names[2], ordered=True)
        else:
            (tmp_path / "in").mkdir()
            WRITERS[kind](tmp_path / "in" / f"a.{kind}", names)
            w.sql(f"CREATE STREAM s ({declared[0]}) {declared[1]} FROM 'files://{tmp_path}/in/*.{kind}'")
        queries = [w.query(f"q{place}", text) for place, text in enumerate(texts)]
        w.query("written", texts[0], sink=f"files://{tmp_path}/out")
        w.run(once=True, flush=True)
        found = [sorted(rows_of(query.results())) for query in queries]
    assert found == [expected(text, declared) for text in texts]
    written = [row for path in (tmp_path / "out").glob("*.parquet") for row in rows_of(pq.read_table(path))]
    assert sorted(written) == found[0]


def test_a_name_that_begins_as_those_of_the_engine_is_refused() -> None:
    with pytest.raises(QueryError, match=r"nobody can read '\\x1f'") as caught:
        wr.explain("SELECT k FROM s [NOW]", streams={"s": "`\x1fmalformed` BIGINT, k BIGINT, ts TIMESTAMP"})
    assert caught.value.code == "bad-name"
