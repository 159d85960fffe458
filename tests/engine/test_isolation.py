"""One query at fault is stopped and told of; the others neither stop nor change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.history import BATCHES, COUNTS, NESTED, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WINDOW = "FROM s [RANGE 20 SLIDE 10]"
#: each fails on some row of the second batch or later, and at another place
FAULTY = {
    "where": f"SELECT COUNT(*) AS n {WINDOW} WHERE CAST(IF(v = 1, 'one', '1') AS INT) > 0",
    "argument": f"SELECT SUM(CAST(IF(v = 1, 'one', '1') AS INT)) AS n {WINDOW}",
    "key": f"SELECT CAST(IF(v = 1, 'one', '1') AS INT) AS g, COUNT(*) AS n {WINDOW} GROUP BY g",
    "having": f"SELECT k, COUNT(*) AS n {WINDOW} GROUP BY k HAVING CAST(IF(MIN(v) = 1, 'x', '1') AS INT) > 0",
    "result": f"SELECT k, CAST(IF(MIN(v) = 1, 'x', '1') AS INT) AS n {WINDOW} GROUP BY k",
    "step": f"SELECT touchy_step(v) AS n {WINDOW}",
    "final": f"SELECT touchy_final(v) AS n {WINDOW}",
}


@pytest.fixture(autouse=True)
def own_names() -> Iterator[None]:
    def fail_at_one(state: int, v: int) -> int:
        return state + 1 // (v - 1)

    parts = {"init": lambda: 0, "merge": max}
    wr.aggregate(
        name="touchy_step", returns="BIGINT", takes="BIGINT", step=fail_at_one, final=lambda s: s, **parts
    )
    wr.aggregate(
        name="touchy_final", returns="BIGINT", takes="BIGINT", step=max, final=lambda s: 1 // (s - 7), **parts
    )
    yield
    for name in user.names():
        user.forget(name)


@pytest.mark.part(3)
@pytest.mark.parametrize("kind", FAULTY)
def test_a_faulty_query_is_stopped_and_the_others_go_on(tmp_path: Path, kind: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("sums", SUMS)
        w.query("faulty", FAULTY[kind])
        w.query("nested", NESTED)
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        assert w.queries["faulty"].progress.status == "failed"
        assert [(event.kind, event.name) for event in w.engine.events] == [("query-failed", "faulty")]
        assert w.rows("sums") == as_rows(oracle(SUMS))
        assert w.rows("nested") == as_rows(oracle(NESTED))


@pytest.mark.parametrize("kind", FAULTY)
def test_why_a_query_failed_is_known_after_a_restart(tmp_path: Path, kind: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("counts", COUNTS)
        w.query("faulty", FAULTY[kind])
        for batch in BATCHES[:4]:
            w.push(*batch)
        before = w.queries["faulty"].progress
        assert before.status == "failed"
        assert before.error
    w = Life(tmp_path / "state")
    w.sql(STREAM)
    w.query("counts", COUNTS)
    after = w.query("faulty", FAULTY[kind]).progress
    assert (after.status, after.error) == ("failed", before.error)
    with pytest.raises(DataError) as told:
        w._raise_failure()
    assert "query `faulty` was stopped" in told.value.message
    w.vanish()


def test_answers_given_before_the_fault_stay_given(tmp_path: Path) -> None:
    faulty = f"SELECT k, SUM(CAST(IF(v = 9, 'nine', '1') AS INT)) AS n {WINDOW} GROUP BY k"
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("faulty", faulty)
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        expected = as_rows(oracle(faulty, BATCHES[:3], ended=False))
        assert expected
        assert w.rows("faulty") == expected


def test_a_dropped_faulty_query_may_be_created_anew(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("q", FAULTY["where"])
        for batch in BATCHES[:4]:
            w.push(*batch)
        assert w.queries["q"].progress.status == "failed"
        w.drop("q")
        w.query("q", COUNTS)
        seen = max(t for batch in BATCHES[:4] for _, _, t in batch)
        for batch in BATCHES[4:]:
            w.push(*batch)
        w.end()
        assert w.rows("q") == [row for row in as_rows(oracle(COUNTS)) if row[0] - 10 > seen]
