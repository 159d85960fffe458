"""Intervals of synopses: as long as they can be for all queries that are there before the first row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.engine.test_sharing_covers import lived
from tests.support.history import BATCHES, STREAM, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

from windrow.sharing.questions import MOST_INTERVALS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def text(length: int, slide: int, what: str = "k, SUM(v) AS total", where: str = "") -> str:
    by = " GROUP BY k" if what.startswith("k") else ""
    return f"SELECT {what} FROM s [RANGE {length} SLIDE {slide}]{where}{by}"


#: windows of four and of six ticks, which two divides, and some that only one divides
EVEN = {"four": text(20, 4), "six": text(12, 6), "twelve": text(24, 12)}
ODD = {"three": text(9, 3)}


def widths(w: Life) -> set[int]:
    return {held.grid.width for held in w.engine.common.planner.held.values()}


def declared(w: Life, queries: Mapping[str, str]) -> None:
    w.sql(STREAM)
    for name, query in queries.items():
        w.query(name, query)


def test_queries_before_the_first_row_share_intervals_that_divide_all_their_windows(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        declared(w, EVEN)
        assert widths(w) == {4, 6}, "as they came"
        for batch in BATCHES:
            w.push(*batch)
            assert widths(w) == {2}
        w.end()
        for name, query in EVEN.items():
            assert w.rows(name) == as_rows(oracle(query)), name
        assert "with 2 queries by SS1" in str(w.queries["six"].explain())


def test_a_finer_query_that_comes_later_does_not_make_others_finer(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        declared(w, EVEN)
        w.push(*BATCHES[0])
        w.query("three", ODD["three"])
        for batch in BATCHES[1:]:
            w.push(*batch)
            assert widths(w) == {2, 3}
        w.end()
        for name, query in EVEN.items():
            assert w.rows(name) == as_rows(oracle(query)), name
        begin = w.queries["three"].progress.complete_from
        assert begin == 12
        assert w.rows("three") == [row for row in as_rows(oracle(ODD["three"])) if row[0] - 9 >= begin]


def test_what_has_no_rows_yet_is_planned_anew_after_a_restart(tmp_path: Path) -> None:
    queries = {**EVEN, "late": text(10, 10)}
    with Life(tmp_path / "state") as w:
        declared(w, {"six": EVEN["six"]})
        w.engine.commit()
    with Life(tmp_path / "state") as w:
        declared(w, {"four": EVEN["four"], "late": queries["late"]})
        w.push()  # nothing was read: `six`, which is not declared again, does not bind them
        assert widths(w) == {2}
    told: dict[str, list[object]] = {}
    with Life(tmp_path / "state") as w:
        declared(w, queries)
        for batch in BATCHES[:3]:
            w.push(*batch)
        assert widths(w) == {2}
        told = {name: w.rows(name) for name in queries}
    with Life(tmp_path / "state") as w:
        declared(w, dict(reversed(queries.items())))
        for batch in BATCHES[3:]:
            w.push(*batch)
        assert widths(w) == {2}
        w.end()
        for name, query in queries.items():
            assert sorted(told[name] + w.rows(name)) == as_rows(oracle(query)), name


def test_windows_that_have_closed_without_rows_keep_their_intervals(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        declared(w, {"four": EVEN["four"]})
        w.promise(100)
        w.query("six", EVEN["six"])
        w.push((1, 5, 101), (2, 7, 104))
        assert widths(w) == {4, 6}
        w.end()
        assert (102, 1, 5) in w.rows("six")
        assert (104, 1, 5) in w.rows("four")


def test_covers_of_conditions_stay_with_finer_intervals(tmp_path: Path) -> None:
    counts = "COUNT(*) AS n, SUM(v) AS total"
    queries = {
        "one": text(12, 6, counts, " WHERE k = 1"),
        "two": text(12, 6, counts, " WHERE k = 2"),
        "both": text(12, 6, counts, " WHERE k IN (1, 2)"),
        "other": text(20, 4, counts, " WHERE k = 1"),
        "more": text(20, 4, counts, " WHERE k = 2"),
    }
    with Life(tmp_path / "state") as w:
        declared(w, queries)
        assert widths(w) == {4, 6}
        lived(w, queries)
        assert widths(w) == {2}
        assert "by SS4" in str(w.queries["both"].explain())


def test_a_cover_that_would_be_lost_keeps_its_intervals(tmp_path: Path) -> None:
    counts = "COUNT(*) AS n"
    queries = {
        "one": text(12, 6, counts, " WHERE k = 1"),
        "two": text(12, 6, counts, " WHERE k = 2"),
        "both": text(12, 6, counts, " WHERE k IN (1, 2)"),
        "other": text(20, 4, counts, " WHERE k = 1"),
    }
    with Life(tmp_path / "state") as w:
        declared(w, queries)
        w.drop("two")
        del queries["two"]
        lived(w, queries)
        assert widths(w) == {4, 6}, "`both` still needs what `two` has brought"


def test_a_query_that_is_no_longer_combined_can_be_dropped(tmp_path: Path) -> None:
    both = " FILTER (WHERE k IN (1, 2))"
    with Life(tmp_path / "state") as w:
        queries = {
            "one": text(12, 6, "COUNT(*) AS n", " WHERE k = 1"),
            "two": text(12, 6, "COUNT(*) AS n", " WHERE k = 2"),
            "both": text(12, 6, "COUNT(*) AS n", " WHERE k IN (1, 2)"),
            "all": text(12, 6, f"COUNT(*) AS m, COUNT(*){both} AS n"),
            "other": text(20, 4, "COUNT(*) AS n", " WHERE k = 1"),
        }
        declared(w, queries)
        assert "SS4" in str(w.queries["both"].progress.shares)
        w.push(*BATCHES[0])
        assert "SS4" not in str(w.queries["both"].progress.shares)
        w.drop("both")
        del queries["both"]
        lived(w, queries, BATCHES[1:])


def test_no_window_is_cut_into_too_many_intervals_for_others(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        declared(w, {"long": text(2 * MOST_INTERVALS - 2, 2), "short": text(9, 3)})
        w.push(*BATCHES[0])
        assert widths(w) == {1, 2}
