"""From measured epochs to losses: who loses, who is suspended, and what is not given up for nothing."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest
from tests.support.history import COLUMNS
from tests.support.life import Life

from windrow.engine.load_shedding import Effort, Overload
from windrow.shedding.agreement import Agreed, Reach, SheddingGroup, SheddingGroups
from windrow.shedding.rules import CannotShed
from windrow.windows.spec import SlideGrid


def agreed(name: str, max_gap: int, priority: int = 0, stream: str = "s") -> Agreed:
    """Tumbling windows of ten ticks."""
    return Agreed(name, SlideGrid(10), (Reach(stream, 10),), max_gap, priority, frozenset({stream}))


def loaded(sharing: SheddingGroups, times: float, by_query: dict[str, float], epochs: int = 16) -> Overload:
    """After epochs of one second that need `times` as long, if nothing is shed."""
    overload = Overload()
    for rows, _ in zip(cycle([900, 1100]), range(epochs), strict=False):
        took = 0.1 + times * rows / 1000
        overload = overload.after(Effort(rows, 0, took, 0.0, 0, 1.0, 0.0, by_query), 1.0, sharing, ())
    return overload


def test_the_dearest_is_suspended_first():
    sharing = SheddingGroups((SheddingGroup((agreed("cheap", 1), agreed("dear", 1), agreed("other", 1))),))
    overload = loaded(sharing, 8.0, {"cheap": 0.5, "dear": 5.0, "other": 1.0}, epochs=8)
    assert overload.admission.suspended[0] == "dear"


def test_the_least_important_is_suspended_first_however_cheap():
    sharing = SheddingGroups((SheddingGroup((agreed("cheap", 1), agreed("dear", 1, priority=1))),))
    overload = loaded(sharing, 8.0, {"cheap": 0.5, "dear": 5.0}, epochs=8)
    assert overload.admission.suspended[0] == "cheap"


def test_losses_halve_with_each_step_of_priority():
    """Rows go only where all drop, so the one that loses least decides; what is left is shared."""
    sharing = SheddingGroups((SheddingGroup((agreed("low", 19), agreed("high", 19, priority=1))),))
    losses = loaded(sharing, 1.5, {"low": 1.0, "high": 1.0}).losses or {}
    assert losses["low"] == pytest.approx(min(0.95, 2 * losses["high"]), abs=1e-3)
    assert losses["high"] > 0.2


def test_what_others_cost_cannot_be_saved():
    """A query that keeps all makes most of the work, on another stream: it is not the fault of this one."""
    refused = (("kept", CannotShed("no-max-gap", "it has no MAX GAP")),)
    sharing = SheddingGroups((SheddingGroup((agreed("q", 9),)),), refused)
    alone = loaded(SheddingGroups((SheddingGroup((agreed("q", 9),)),)), 1.6, {"q": 1.0}).losses or {}
    beside = loaded(sharing, 1.6, {"q": 0.01, "kept": 10.0}).losses or {}
    assert alone["q"] > 0.3
    assert beside.get("q", 0.0) == 0.0


def test_an_epoch_tells_what_each_query_cost_and_gave(tmp_path: Path):
    w = Life(tmp_path)
    w.sql(f"CREATE STREAM s ({COLUMNS}) WATTR t ORDERED SHEDDABLE")
    w.query("some", "SELECT MEDIAN(v) AS m FROM s [RANGE 10 SLIDE 10]", max_gap=3)
    w.query("all", "SELECT k, v FROM s [RANGE 10 SLIDE 10]", max_gap=3)
    w.push(*((0, t, t) for t in range(25)))
    work = {name.partition("@")[0]: each for (name, _), each in w.engine.costs.work.items()}
    assert {name: (each.rows_in, each.rows_out) for name, each in work.items()} == {
        "some": (25, 2),
        "all": (25, 20),
    }
    assert all(each.cost > 0 for each in work.values())
    assert work["all"].selectivity == 0.8
