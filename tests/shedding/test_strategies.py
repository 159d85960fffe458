"""What each way of shedding promises is kept, and what it does not promise is broken, on the oracle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import TypeVar

from tests.shedding.asked import plan
from tests.shedding.test_phases import longest
from tests.shedding.test_subset import answers

from windrow.shedding.phases import Cycles, Phases
from windrow.shedding.rules import RDROP, ROW_DROP, WINDROP

T = TypeVar("T")
SLIDE = 4
QUERY = plan(f"SELECT COUNT(*) AS n, SUM(v) AS v FROM s [RANGE 12 SLIDE {SLIDE}]")
ROWS = [(0, t % 7, t) for t in range(400)]
EXACT = sorted(answers(QUERY, {"s": ROWS}).elements(), key=lambda change: change.at)
BATCH = 2


def at_random(rows: Sequence[T], p: float, seed: int) -> list[T]:
    """RDrop of answers, or RowDrop of rows: each is dropped with probability p."""
    draw = Random(seed)
    return [row for row in rows if draw.random() >= p]


def gap(kept: set[int]) -> int:
    return longest([change.at not in kept for change in EXACT])


def test_dropped_windows_leave_a_subset_with_bounded_gaps():
    phases = Phases().then(-100, Cycles(0, SLIDE, BATCH), 0.6, seed=2)
    given = [change for change in EXACT if not phases.drops(change.at)]
    assert (Counter(given) <= Counter(EXACT)) is WINDROP.subset
    assert (gap({change.at for change in given}) <= BATCH) is WINDROP.bounded_gaps
    assert 0.2 < len(given) / len(EXACT) < 0.6


def test_answers_dropped_at_random_leave_a_subset_with_any_gaps():
    given = at_random(EXACT, 0.6, seed=2)
    assert (Counter(given) <= Counter(EXACT)) is RDROP.subset
    assert (gap({change.at for change in given}) <= BATCH) is RDROP.bounded_gaps


def test_rows_dropped_at_random_leave_wrong_answers():
    kept = at_random(ROWS, 0.6, seed=2)
    given = answers(QUERY, {"s": kept})
    assert (given <= Counter(EXACT)) is ROW_DROP.subset
    assert len(kept) < len(ROWS)
