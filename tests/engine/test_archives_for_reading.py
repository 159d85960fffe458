"""Which archive answers for a window: only one that has all its rows, and the one that reads the fewest."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from tests.archive.support import temporary
from tests.engine.archived import values_of
from tests.support.history import COLUMNS, OPTIONS, STREAM
from tests.support.life import Life

from windrow.algebra.operators import Filter
from windrow.engine.adhoc.question import ArchivePath, archive_for, key_bounds, oldest_row
from windrow.engine.engine import Arrival
from windrow.language.compile import Catalog, compile_query, declare_stream

CATALOG = Catalog(declare_stream("s", COLUMNS, OPTIONS))
WINDOWS = ["RANGE 5", "RANGE 20", "RANGE 12 SLIDE 4", "RANGE 3 SLIDE 9", "NOW", "UNBOUNDED", "ROWS 4"]
CONDITIONS = {
    "k = 2": lambda k, v: k == 2,
    "v BETWEEN 2 AND 5": lambda k, v: 2 <= v <= 5,
    "v > 3 AND 8 >= v AND k <> 1": lambda k, v: 3 < v <= 8 and k != 1,
    "k IN (1, 3) AND v < 6": lambda k, v: k in (1, 3) and v < 6,
    "v = 1 OR k = 1": lambda k, v: v == 1 or k == 1,
    "k = NULL": lambda k, v: False,
}


def asked(window: str, condition: str) -> tuple[Any, Any]:
    """The window and the predicate of a query."""
    plan = compile_query(f"SELECT * FROM s [{window}] AS x WHERE {condition}", CATALOG)
    (predicate,) = [node.predicate for node in plan.walk() if isinstance(node, Filter)]
    return plan.leaves[0].spec, predicate


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 3),
    st.sampled_from(WINDOWS),
    st.sampled_from(list(CONDITIONS)),
    st.integers(4, 30),
)
@settings(max_examples=25)
def test_what_an_archive_gives_is_the_window(
    batches: list[Any], late: int, window: str, condition: str, keep: int
) -> None:
    """Where an archive is offered, its rows, cut to the window and sifted, are all there ever were."""
    spec, predicate = asked(window, condition)
    with temporary() as folder:
        w = Life(Path(folder))
        w.sql(STREAM)
        for number, batch in enumerate(batches):
            if number == late:
                w.sql(f"CREATE ARCHIVE by_k ON s KEY k KEEP {keep}; CREATE ARCHIVE by_v ON s KEY v KEEP 17")
            new = [(k, v, 5 * number + t) for k, v, t in batch]
            w.push(*new)
        archives = w.engine.archives
        rows = _accepted(batches)
        way = archive_for(archives, "s", spec, predicate, "x")
        if way is not None:
            with archives.reading(way.archive) as reading:
                found = reading.find_between(way.bounds.low, way.bounds.high)
                first, holds = oldest_row(spec, reading.now), CONDITIONS[condition]
                assert first is not None
                assert found.num_rows <= way.rows
                sifted = [r for r in values_of(found, "valid_to").elements() if holds(r[0], r[1])]
                inside = Counter(r for r in sifted if first <= r[2] <= reading.now)
                expected = Counter(r for r in rows if first <= r[2] <= reading.now and holds(r[0], r[1]))
                assert inside == expected
        w.close()


def _accepted(batches: list[Any]) -> list[Any]:
    progress, rows = float("-inf"), []
    for number, batch in enumerate(batches):
        new = [(k, v, 5 * number + t) for k, v, t in batch]
        rows += [row for row in new if row[2] >= progress]
        progress = max([progress, *(row[2] - 3 for row in new)])
    return rows


def test_the_one_that_reads_the_fewest_rows_is_taken(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(
            f"{STREAM}; CREATE ARCHIVE by_k ON s KEY k KEEP 50000; CREATE ARCHIVE by_v ON s KEY v KEEP 50000"
        )
        table = pa.table({"k": [1] * 20_000, "v": list(range(20_000)), "t": [n // 2 for n in range(20_000)]})
        w.engine.epoch([Arrival("s", table)])
        archives = w.engine.archives
        narrow = archive_for(archives, "s", *asked("RANGE 9000", "v = 77 AND k = 1"), alias="x")
        assert narrow is not None
        assert (narrow.archive, narrow.bounds.low, narrow.bounds.high) == ("by_v", 77, 77)
        assert narrow.rows < 20_000
        assert "by_v, v = 77" in narrow.text
        wide = archive_for(archives, "s", *asked("RANGE 9000", "v + 1 = 78"), alias="x")
        assert wide is not None
        assert (wide.bounds.is_open, wide.rows) == (True, 20_000)
        assert archive_for(archives, "s", asked("RANGE 60000", "v = 7")[0]) is None


@pytest.mark.parametrize("condition", ["v = 1 OR v = 2", "v + 1 = 2", "v <> 3", "k = 5"])
def test_what_says_nothing_of_the_key_bounds_nothing(condition: str) -> None:
    assert key_bounds(asked("NOW", condition)[1], "x.v").is_open


def test_times_and_dates_are_asked_for_as_such() -> None:
    catalog = Catalog(declare_stream("s", "d DATE, ts TIMESTAMP", "WATTR ts"))
    text = "SELECT * FROM s [NOW] AS x WHERE d = DATE '2020-01-02' AND ts < TIMESTAMP '2020-01-03 00:00:00'"
    (chosen,) = [node for node in compile_query(text, catalog).walk() if isinstance(node, Filter)]
    assert str(key_bounds(chosen.predicate, "x.d").low) == "2020-01-02"
    assert str(key_bounds(chosen.predicate, "x.ts").high) == "2020-01-03 00:00:00+00:00"
    assert ArchivePath("a", "d", key_bounds(chosen.predicate, "x.d"), 3).text.startswith(
        "archive a, d = 2020-01-02"
    )
