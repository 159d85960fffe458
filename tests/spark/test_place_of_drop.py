"""Where needless rows may be dropped: by Spark, or only by workers, and what EXPLAIN says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.driven import Driven
from tests.engine.world import COLUMNS

from windrow.engine.engine import Arrival
from windrow.spark.jobs import drops_early

if TYPE_CHECKING:
    from pathlib import Path

MEDIAN = "SELECT MEDIAN(v) AS v FROM s [RANGE 10 SLIDE 10]"
IN_SPARK = "in Spark, before they go to workers"
JUDGED = "after they came to workers: progress and late rows of `s` are judged row by row"
CASES = [
    ("SLACK 3", MEDIAN, IN_SPARK),
    ("SLACK 3 LATE TO 'console:'", MEDIAN, IN_SPARK),
    ("", "SELECT DISTINCT k FROM s [RANGE 10 SLIDE 10]", IN_SPARK),
    ("SLACK 3 ROWS", MEDIAN, JUDGED),
    ("ORDERED PER k", MEDIAN, JUDGED),
    ("PUNCTUATED BY v", MEDIAN, JUDGED),
    ("SLACK 3 LATE KEEP", MEDIAN, JUDGED),
    ("SLACK 3 KEEP 50", MEDIAN, "after they came to workers: rows of `s` are kept"),
    (
        *("ORDERED", "SELECT MAX(row_num) AS n FROM s [RANGE 10 SLIDE 10]"),
        "after they came to workers: rows of `s` are numbered as they come",
    ),
]


def arrived(w: Driven) -> Any:
    """A batch on its way in, of which some rows are needless."""
    engine = w.engine
    batch = engine._arrived(engine.draft(), Arrival("s", None))
    return replace(batch, shed=((10, 20),))


@pytest.mark.parametrize(("policy", "text", "where"), CASES)
def test_it_is_up_to_the_stream_and_its_queries(tmp_path: Path, policy: str, text: str, where: str):
    w = Driven(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t {policy} SHEDDABLE")
    w.query("q", text, max_gap=3)
    told = " ".join(" ".join(w.queries["q"].explain().runs).split())
    assert f"Shed rows are dropped {where}. " in told
    assert drops_early(arrived(w)) == (where == IN_SPARK)
    assert not drops_early(replace(arrived(w), shed=()))
    assert not drops_early(replace(arrived(w), archived=True))


def test_one_query_that_numbers_rows_is_enough(tmp_path: Path):
    w = Driven(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED SHEDDABLE")
    w.query("q", MEDIAN, max_gap=3)
    assert drops_early(arrived(w))
    w.query("n", "SELECT MAX(row_num) AS n FROM s [RANGE 10 SLIDE 10]", max_gap=3)
    assert not drops_early(arrived(w))


def test_promises_of_single_sources_are_looked_up_in_workers(tmp_path: Path):
    w = Driven(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED SHEDDABLE")
    w.query("q", "SELECT DISTINCT k FROM s [RANGE 10 SLIDE 10]", max_gap=3)
    assert drops_early(arrived(w))
    w.promise(50, {"k": 1})
    assert not drops_early(arrived(w))


@pytest.mark.parametrize("name", ["__t", "__dropped", "__T"])
def test_columns_with_names_that_spark_would_mix_up(tmp_path: Path, name: str):
    w = Driven(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}, {name} BIGINT) WATTR t ORDERED SHEDDABLE")
    w.query("q", MEDIAN, max_gap=3)
    assert not drops_early(arrived(w))


def test_what_spark_aggregates_is_counted_there(tmp_path: Path):
    w = Driven(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED SHEDDABLE")
    w.query("q", "SELECT SUM(v) AS v FROM s [RANGE 10 SLIDE 10]", max_gap=3)
    told = " ".join(" ".join(w.queries["q"].explain().runs).split())
    assert "Shed rows are counted by Spark as it aggregates, in no pane. " in told
