"""Tables of files, read by Spark: what is new in them becomes a change, what is wrong with them is told."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.history import rows_of
from tests.support.patience import wait_until

import windrow as wr
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

QUERY = "SELECT ISTREAM(s.k, name) FROM s [RANGE 5], items WHERE s.k = items.k"


class Shop:
    """A stream of JSON files, and a table of CSV files."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        (folder / "in").mkdir()

    def bids(self, number: int, *rows: tuple[int, int]) -> None:
        lines = [json.dumps({"k": k, "t": t}) + "\n" for k, t in rows]
        self._place(self.folder / "in" / f"{number}.json", "".join(lines))

    def items(self, text: str) -> None:
        self._place(self.folder / "items.csv", text)

    def _place(self, path: Path, text: str) -> None:
        beside = path.with_name(f".{path.name}")
        beside.write_text(text)
        beside.rename(path)

    def connect(self) -> wr.Windrow:
        w = wr.connect(self.spark, self.folder / "state")
        w.sql(f"""
            CREATE STREAM s (k BIGINT, t BIGINT) WATTR t ORDERED FROM 'files://{self.folder}/in/*.json';
            CREATE TABLE items (k BIGINT, name STRING) FROM 'files://{self.folder}/items.csv';
        """)
        w.query("names", QUERY)
        return w

    def run(self, *, flush: bool = False) -> list[tuple[Any, ...]]:
        with self.connect() as w:
            w.run(once=True, flush=flush)
            return sorted(rows_of(w.queries["names"].results()))


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Iterator[Shop]:
    shop = Shop(spark, tmp_path)
    shop.items("k,name\n1,one\n2,two\n")
    return shop


def test_a_change_of_the_file_is_for_rows_that_come_later(shop: Shop) -> None:
    shop.bids(0, (1, 0), (2, 10))
    assert shop.run() == [(0, 1, "one")]
    os.utime(shop.folder / "items.csv")  # as good as new, with the same rows
    shop.items("name,k,extra\none,1,x\nzwei,2,y\n")
    shop.bids(1, (2, 20), (1, 30))
    assert shop.run(flush=True) == [(10, 2, "two"), (20, 2, "zwei"), (30, 1, "one")]


@pytest.mark.thorough
def test_what_is_wrong_with_the_file_is_told_and_nothing_is_lost(shop: Shop) -> None:
    shop.bids(0, (1, 0), (2, 10))
    assert shop.run() == [(0, 1, "one")]
    shop.bids(1, (2, 20))
    with shop.connect() as w:
        for text, code in [
            ("k,name\n1,one\nzwei,2\n", "malformed-row"),
            ("k,title\n1,one\n", "missing-column"),
            ("", "empty-file"),
            (None, "no-files"),
        ]:
            shop.items(text or "")
            if text is None:
                (shop.folder / "items.csv").unlink()
            with pytest.raises(WindrowError) as refused:
                w.run(once=True)
            assert refused.value.code == code
            assert "items" in refused.value.message
            assert refused.value.hint
        assert len(w.tables["items"]) == 2
    shop.items("k,name\n1,one\n2,two\n")
    assert shop.run(flush=True) == [(10, 2, "two"), (20, 2, "two")]


def test_tables_change_while_a_run_is_under_way(spark: SparkSession, shop: Shop) -> None:
    """A file that is replaced, and rows from Python, both in the background of one run."""
    shop.bids(0, (1, 0), (3, 10))
    with shop.connect() as w:
        w.table(
            "owners", spark.createDataFrame([(1, "ann")], "k INT, owner STRING"), kind="relation", key=["k"]
        )
        w.query("owned", "SELECT s.k, owner FROM s [RANGE 100], owners WHERE s.k = owners.k")
        w.start()
        wait_until(lambda: w.queries["names"].results().num_rows == 1)
        shop.items("k,name\n1,one\n3,three\n")
        w.update("owners", insert=[{"k": 3, "owner": "cyd"}], delete=[(1, "ann")])
        wait_until(lambda: len(w.tables["items"].rows()) and 3 in w.tables["items"].rows()["k"].to_pylist())
        shop.bids(1, (3, 20), (1, 30))
        wait_until(lambda: w.queries["names"].results().num_rows == 2)
        w.stop()
        assert sorted(rows_of(w.queries["names"].results())) == [(0, 1, "one"), (20, 3, "three")]
        assert sorted(rows_of(w.queries["owned"].results())) == [
            (0, "+", 1, "ann"),
            (10, "+", 3, "cyd"),
            (10, "-", 1, "ann"),
            (20, "+", 3, "cyd"),
        ]
