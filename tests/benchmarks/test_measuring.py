"""How a run is made: the same rows, alternating rounds, answers that agree. No Spark, no times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from benchmarks.checks import Agreement, condensed, difference
from benchmarks.contestant import Outcome, UnfinishedError, out_of_patience
from benchmarks.feed import Feed
from benchmarks.live import LiveJob, Visible, latencies
from benchmarks.rounds import Case, Measured, Measurement, measure
from benchmarks.suite.keys import live_pairs
from benchmarks.suite.overlap import targets
from benchmarks.suite.queries import random_jobs
from benchmarks.times import times_table
from benchmarks.workload import BEGIN, SECOND, readings
from windrow.errors import WindrowError


def answers(**changed: list[float]) -> pl.LazyFrame:
    at = pl.Series([BEGIN + 10 * SECOND, BEGIN + 10 * SECOND], dtype=pl.Int64).cast(pl.Datetime("us", "UTC"))
    columns = {"at": at, "k": [2, 1], "m": [5.0, 7.0], "t": [0.1 + 0.2, 9.0], "n": [2, 3]}
    return pl.LazyFrame({**columns, **changed})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------ rows


def test_rows_are_made_once_and_end_exactly_at_the_end(tmp_path: Path) -> None:
    made = readings(tmp_path, rows=100, keys=5, seconds=10, rows_per_file=30)
    before = [path.stat().st_mtime_ns for path in made.files]
    assert readings(tmp_path, rows=100, keys=5, seconds=10, rows_per_file=30) == made
    assert [path.stat().st_mtime_ns for path in made.files] == before == sorted(set(before))
    frame = pl.read_parquet(made.folder / "*.parquet")
    times = frame["ts"].dt.epoch("us")
    assert frame.height == 100
    assert times.is_sorted()
    assert (times[0], times[-1]) == (BEGIN + SECOND // 10, made.end)
    assert frame["k"].is_between(0, 4).all()


def test_rows_that_were_not_finished_are_made_again(tmp_path: Path) -> None:
    make = partial(readings, tmp_path, rows=20, keys=5, seconds=10, rows_per_file=10)
    made = make()
    (made.folder / "_complete.json").unlink()
    made.files[0].unlink()
    assert len(make().files) == 2


def test_other_rows_have_another_place(tmp_path: Path) -> None:
    make = partial(readings, tmp_path, rows=20, seconds=10, rows_per_file=10)
    assert make(keys=5).folder != make(keys=6).folder


def test_live_pairs_are_those_of_the_last_window(tmp_path: Path) -> None:
    made = readings(tmp_path, rows=40, keys=1, seconds=40, rows_per_file=40)
    # rows at 20…39 are in two panes of 10 s; the row at 40 opens the next
    assert live_pairs(made, range_seconds=20, slide_seconds=10) == 3


def test_fewer_queries_are_the_first_of_more(tmp_path: Path) -> None:
    made = readings(tmp_path, rows=10, keys=1, seconds=10, rows_per_file=10)
    many = random_jobs(made, 50, 4)
    assert random_jobs(made, 5, 4) == many[:5]
    assert len({job.grouping for job in many}) == 4
    assert len({job.grouping for job in random_jobs(made, 200, 50)}) == 50
    assert all(job.range_seconds % job.slide_seconds == 0 for job in many)
    assert len({(job.range_seconds, job.slide_seconds) for job in many}) > 10


# ------------------------------------------------------------ answers


def test_the_last_digits_and_the_order_of_rows_do_not_matter() -> None:
    agreement = Agreement()
    assert agreement.check("q", "a", answers()) == 2
    assert agreement.check("q", "b", answers(t=[0.3, 9.0]).reverse()) == 2


@pytest.mark.parametrize(
    "changed",
    [{"k": [2, 3]}, {"m": [5.0, 7.1]}, {"t": [0.3001, 9.0]}, {"n": [2, 4]}, {"m": [5.0, float("nan")]}],
)
def test_other_answers_are_an_error(changed: dict[str, list[float]]) -> None:
    agreement = Agreement()
    agreement.check("q", "a", answers())
    with pytest.raises(WindrowError, match="b and a answer differently"):
        agreement.check("q", "b", answers(**changed))


def test_missing_answers_are_an_error() -> None:
    agreement = Agreement()
    agreement.check("q", "a", answers())
    with pytest.raises(WindrowError, match=r"2 rows .* and 1 rows"):
        agreement.check("q", "b", answers().head(1))
    agreement.check("another question", "b", answers().head(1))


def test_many_answers_are_compared_by_instant() -> None:
    _, expected = condensed(answers(), most=1)
    count, found = condensed(answers(n=[3, 2]), most=1)
    assert (count, found.height) == (2, 1)
    problem = difference(expected, found)
    assert problem is not None
    assert problem.startswith("1 rows")
    assert difference(expected, condensed(answers().reverse(), most=1)[1]) is None


# ------------------------------------------------------------ rounds


def test_rounds_alternate_after_one_that_is_discarded() -> None:
    ran: list[str] = []

    def work(name: str) -> Outcome:
        ran.append(name)
        return Outcome(float(len(ran)), None, {"size": float(-len(ran))}, (1.0,))

    cases = [
        Case("a", {"x": 1}, lambda: work("a1")),
        Case("a", {"x": 2}, lambda: work("a2")),
        Case("b", {"x": 1}, lambda: work("b1"), rounds=1),
    ]
    found = measure(cases, 3, lambda text: None)
    assert ran == ["a1", "b1", "a1", "a2", "b1", "a2", "a1", "a1", "a2"]
    first, second = found.find("a", x=1), found.find("b", x=1)
    assert first is not None
    assert second is not None
    assert first.seconds == [3.0, 7.0, 8.0]
    assert second.seconds == [5.0]
    assert first.figures == {"size": -3.0}
    assert first.samples == [1.0] * 3
    assert found.find("b", x=2) is None


def test_times_are_not_given_if_answers_differ() -> None:
    cases = [
        Case("a", {"x": 1}, lambda: Outcome(1.0, answers())),
        Case("b", {"x": 1}, lambda: Outcome(1.0, answers(n=[9, 9]))),
    ]
    with pytest.raises(WindrowError, match="answer differently"):
        measure(cases, 1, lambda text: None)


def test_the_others_go_on_without_one_that_does_not_finish() -> None:
    tried: list[str] = []

    def stopped() -> Outcome:
        tried.append("b")
        if len(tried) > 1:
            raise out_of_patience(60.0)
        return Outcome(1.0)

    def case(name: str, run: Callable[[], Outcome]) -> Case:
        return Case(name, {"x": 1}, run)

    said: list[str] = []
    found = measure([case("a", lambda: Outcome(2.0)), case("b", stopped)], 3, said.append)
    assert [each.contestant for each in found.measurements] == ["a"]
    assert [each.contestant for each in found.unfinished] == ["b"]
    assert tried == ["b", "b"]  # once to warm up, once in the first round, never again
    assert "round 1 of 3: b x=1: stopped after 60 s" in said
    table = times_table("Times", found, ["a", "b", "c"], [{"x": 1}])
    assert table.rows == (("1", "–", "2.00 s (2.00–2.00)", "stopped after 60 s"),)


def test_what_was_measured_before_a_run_that_failed_stays() -> None:
    tried: list[str] = []

    def failing() -> Outcome:
        tried.append("b")
        if len(tried) > 2:
            raise UnfinishedError("failed after 3 s")
        return Outcome(1.0)

    found = measure([Case("b", {"x": 1}, failing)], 3, lambda text: None)
    assert [each.seconds for each in found.measurements] == [[1.0]]
    assert not found.unfinished


def test_the_targets_of_overlap() -> None:
    def case(name: str, overlap: int, seconds: float) -> Measurement:
        return Measurement(name, {"rows per batch": 200_000, "overlap": overlap}, [seconds] * 3)

    found = targets(
        Measured(
            [
                case("windrow", 1, 4.0),
                case("windrow", 60, 5.0),
                case("spark rocksdb", 60, 50.0),
                case("spark hdfs", 60, 20.0),
                case("scan", 1, 5.0),
            ]
        ),
        (1, 60),
    )
    medians = [target.found.median if target.found else None for target in found]
    # 200,000 rows: overlaps 1, 60 and 360 against the faster store, the scan, 3600 to 1, PyFlink
    assert medians[:6] == [None, 4.0, None, 1.0, None, None]
    assert [target.is_reached for target in found[:4]] == [None, False, None, True]
    assert not any(medians[6:])


# ------------------------------------------------------------ rows by the clock


def test_a_feed_puts_whole_files_in_order(tmp_path: Path) -> None:
    made = readings(tmp_path / "cache", rows=10, keys=1, seconds=1, rows_per_file=2)
    feed = Feed(made, tmp_path / "into")
    feed.put_first()
    assert names(tmp_path / "into") == ["000000.parquet"]
    feed.run()
    assert names(tmp_path / "into") == [path.name for path in made.files]
    assert feed.written == sorted(feed.written)
    assert len(feed.written) == 5


def test_latency_is_from_the_row_that_completes_a_window(tmp_path: Path) -> None:
    made = readings(tmp_path, rows=8, keys=1, seconds=4, rows_per_file=2)
    job = LiveJob(made, range_ms=2000, slide_ms=1000, trigger="0 seconds", left_out=1)
    visible = {BEGIN + second * SECOND: 10.0 + second for second in (1, 2, 4)}
    assert latencies(job, [1.0, 2.0, 3.0, 4.0], visible) == [12.0 - 2.0, 14.0 - 4.0]


def test_answers_are_visible_from_their_first_row_on() -> None:
    visible = Visible()
    table = pa.table(
        {
            "at": pa.array([BEGIN, BEGIN], pa.timestamp("us", "UTC")),
            "k": [1, 2],
            "m": [1.0, 2.0],
            "t": [1.0, 2.0],
            "n": [1, 1],
        }
    )
    visible.take(table)
    first = dict(visible.times)
    visible.take(table)
    assert list(visible.times) == [BEGIN]
    assert visible.times == first
