"""Disorder: punctuation is right, slack is right once it is long enough, and latency is what it costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from benchmarks.rounds import Measured
from benchmarks.studies import disorder
from benchmarks.studies.arrivals import (
    Arrivals,
    Extent,
    Told,
    block_sorted,
    delayed,
    stalling,
    told,
    truth,
)
from benchmarks.studies.extents import Buffered, Paned, batches_of, greatest_by_key, readings
from benchmarks.suite.disorder import QUICK

_AVERAGE, _COUNT = Extent("AVG(speed)", 6000, 1000), Extent("COUNT(*)", 6000, 1000)


@pytest.mark.parametrize(
    "arrivals", [stalling(40, 20, 3000, 2000), delayed(40, 20, 2000), block_sorted(4, 20, 9000)]
)
def test_disorder_moves_rows_and_loses_none(arrivals: Arrivals) -> None:
    times = arrivals.rows["ts"].to_numpy()
    assert (np.diff(times) < 0).any()
    assert (np.diff(arrivals.moments) >= 0).all()
    assert sorted(times) == [n * 50 for n in range(len(times))]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000))
def test_marks_are_kept_and_could_not_be_greater(seed: int) -> None:
    arrivals = delayed(5, 20, 1500, seed)
    times, marks = arrivals.rows["ts"].to_list(), arrivals.marks.tolist()
    assert marks[:-1] == [min(times[n + 1 :]) for n in range(len(times) - 1)]
    assert marks[-1] == max(times) + 1


@pytest.mark.parametrize("extent", [_AVERAGE, _COUNT])
def test_punctuation_tells_the_truth(extent: Extent) -> None:
    arrivals = delayed(20, 20, 1500)
    found, right = told(arrivals, extent, 7, ""), truth(arrivals, extent)
    until = max(found.moments)
    assert until >= 18_000
    rows = arrivals.rows.rows()
    inside = [speed for segment, speed, ts in rows if segment == 3 and until - extent.range <= ts < until]
    expected = len(inside) if extent is _COUNT else sum(inside) / len(inside)
    assert found.values[until, 3] == right[until, 3] == expected
    assert found.incorrect(right, until) == 0
    assert found.error(right, until) == 0


@pytest.mark.thorough
@pytest.mark.slow
def test_more_slack_is_later_and_less_wrong() -> None:
    arrivals = delayed(25, 20, 1500)
    right = truth(arrivals, _COUNT)
    runs = [told(arrivals, _COUNT, 4, f"SLACK {slack} LATE DROP") for slack in (100, 700, 1600)]
    until = min(max(run.moments) for run in runs)
    errors = [run.error(right, until) for run in runs]
    waits = [run.latency(until) for run in runs]
    assert errors[0] > errors[1] > errors[2] == 0
    assert waits[0] < waits[1] < waits[2]
    generous = told(arrivals, _COUNT, 4, "SLACK 100 LATE KEEP")
    assert generous.error(right, until) < errors[0]
    assert generous.latency(until) == waits[0]


@pytest.mark.thorough
@pytest.mark.slow
def test_where_rows_stall_now_and_then_punctuation_beats_every_slack() -> None:
    trial = disorder.trials(QUICK)[0]
    best, *others = disorder.tried(trial).measurements
    assert best.contestant == "punctuation"
    assert len(others) == 2 * len(QUICK.slacks)
    assert all(each.figures["latency"] > best.figures["latency"] for each in others)
    assert best.figures["error"] == 0 < max(each.figures["error"] for each in others)
    assert disorder.dominance(trial, Measured([best, *others])).is_reached


def test_what_is_missing_is_wrong() -> None:
    found = Told({(10, 1): 5.0}, {10: 12})
    right = {(10, 1): 5.0, (10, 2): 4.0, (20, 1): 1.0}
    assert found.incorrect(right, 10) == found.error(right, 10) == 50
    assert found.latency(10) == 0.002


def test_windows_keep_states_and_a_buffer_keeps_rows() -> None:
    """The paper's claim about memory, where rows are many to a slide and a key."""
    batches = batches_of(readings(4000, 5), 1000)
    paned = Paned(greatest_by_key("RANGE 1000 SLIDE 100")).run(batches)
    buffered = Buffered(1000, 100).run(batches)
    assert paned.figures["state rows"] <= (1000 // 100 + 1) * 5
    assert buffered.figures["state rows"] >= 900
