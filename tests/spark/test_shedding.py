"""Rows are left out inside Spark's own scan, and the answers are exact but for whole windows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.history import COLUMNS, rows_of, table_of
from tests.support.oracle import oracle
from tests.support.patience import wait_until

from windrow.engine.engine import Arrival
from windrow.physical.native_sql import native_query
from windrow.session import Windrow

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

OPTIONS = "WATTR t SLACK 3 SHEDDABLE"
NATIVE = {
    "tumbling": "SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 10 SLIDE 10]",
    "by_key": "SELECT k, MAX(v) AS v FROM s [RANGE 20 SLIDE 10] GROUP BY k",
}
#: this one needs the rows themselves
FROM_ROWS = NATIVE | {"median": "SELECT MEDIAN(v) AS v FROM s [RANGE 20 SLIDE 10]"}
BATCHES = [[(t % 3, t % 7, t + (t % 5 == 0)) for t in range(90 * n, 90 * n + 90)] for n in range(3)]


@pytest.mark.parametrize(("queries", "native"), [(NATIVE, True), (FROM_ROWS, False)], ids=["native", "rows"])
def test_only_whole_windows_are_missing(
    spark: SparkSession, tmp_path: Path, queries: dict[str, str], native: bool
):
    with Windrow(spark, tmp_path) as w:
        w.sql(f"CREATE STREAM s ({COLUMNS}) {OPTIONS}")
        for name, text in queries.items():
            w.query(name, text, max_gap=6)
        w.shed(1.0)
        engine: Any = w._engine
        programs = [query.bundle.program for query in engine.queries.values()]
        assert all(native_query(program) is not None for program in programs) == native
        for batch in BATCHES:
            engine.epoch([Arrival("s", spark.createDataFrame(table_of(batch)))])
        engine.epoch(seals=["s"])
        for name, text in queries.items():
            gaps = w.queries[name].gaps.to_pylist()
            lost = {end for gap in gaps for end in range(gap["first"], gap["last"] + 1, 10)}
            exact = oracle(text, BATCHES, {"s": (COLUMNS, OPTIONS)})
            assert lost
            assert Counter(rows_of(w.queries[name].results())) == Counter(
                row for row in exact.elements() if row[0] not in lost
            )
        progress = w.streams["s"].progress
        assert progress.accepted == sum(map(len, BATCHES))
        # from the second batch on: of 70 ticks, 60 are dropped, less 10 that the window after them needs
        assert progress.shed == pytest.approx((180 - 20) * 50 / 70, abs=35)


def test_rows_that_wait_in_a_source_are_told_to_the_engine(spark: SparkSession, tmp_path: Path):
    """A generator that makes more rows than its batches take."""
    with Windrow(spark, tmp_path) as w:
        w.sql(
            "CREATE STREAM s (ts TIMESTAMP, speed DOUBLE) WATTR ts SLACK 10 SECONDS"
            " FROM 'generator:traffic?rate=1000&rows_per_batch=100'"
        )
        w.query("q", "SELECT COUNT(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]")
        engine: Any = w._engine
        waiting: list[int] = []
        plain = engine.epoch

        def epoch(arrivals: Any = (), *others: Any, **more: Any) -> Any:
            waiting.extend(arrival.waiting for arrival in arrivals)
            return plain(arrivals, *others, **more)

        engine.epoch = epoch
        w.start()
        wait_until(lambda: len(waiting) >= 4)
        w.stop()
        assert waiting[0] >= 900  # of the rows of the first second, a hundred are taken
