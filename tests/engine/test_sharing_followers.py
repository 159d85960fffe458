"""CS8 in the engine: a query that is another one, only less often, is read from the other, not computed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.support.history import BATCHES, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle

if TYPE_CHECKING:
    from pathlib import Path

OFTEN = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 5] GROUP BY k"
SELDOM = OFTEN.replace("SLIDE 5", "SLIDE 15")
#: SUM(v) of the window that ends at 5 is too much for a BIGINT, no window that ends at 10 has both rows
HUGE = (1 << 62) + 1


def computed(w: Life) -> set[str]:
    """The queries that took any time."""
    return {name.partition("@")[0] for name in w.engine.seconds}


def test_a_slower_query_is_read_from_a_faster_one(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        for name, text in {"seldom": SELDOM, "often": OFTEN, "tens": SUMS}.items():
            w.query(name, text)
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        assert computed(w) == {"often"}
        for name, text in {"seldom": SELDOM, "often": OFTEN, "tens": SUMS}.items():
            assert w.rows(name) == as_rows(oracle(text)), name
            assert w.queries[name].progress.rows == len(w.rows(name))
        told = str(w.queries["seldom"].explain())
        assert "reads the answers of query `often` at its own instants, by CS8" in told
        assert "reads the answers" not in str(w.queries["often"].explain())
        shown = {row["name"]: row["shares"] for row in w.sql("SHOW QUERIES")[0].to_pylist()}
        assert "CS8" in shown["seldom"]


@pytest.mark.part(2)
@pytest.mark.parametrize(
    "other",
    [
        SELDOM.replace("SLIDE 15", "SLIDE 12"),
        SELDOM.replace("RANGE 20", "RANGE 25"),
        SELDOM.replace("SUM(v)", "MAX(v)"),
        SELDOM.replace("GROUP", "WHERE v > 1 GROUP"),
        SELDOM.replace("SLIDE 15", "SLIDE 15 ORIGIN 2"),
    ],
)
def test_a_query_that_asks_for_anything_else_is_computed(tmp_path: Path, other: str) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("often", OFTEN)
        w.query("other", other)
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        assert computed(w) == {"often", "other"}
        assert w.rows("other") == as_rows(oracle(other))


def test_what_leaves_windows_out_is_not_read_by_others(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.sql(f"CREATE QUERY often AS {OFTEN} EVERY 30; CREATE QUERY gaps AS {OFTEN} MAX GAP 2")
        w.query("seldom", SELDOM)
        for batch in BATCHES:
            w.push(*batch)
        w.end()
        assert computed(w) == {"often", "gaps", "seldom"}
        assert w.rows("seldom") == as_rows(oracle(SELDOM))
        assert "CS8" not in str(w.queries["seldom"].explain())


def test_a_query_that_comes_late_takes_what_is_complete_for_it(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("often", OFTEN)
        for batch in BATCHES[:3]:
            w.push(*batch)
        late = w.query("late", SELDOM)
        assert late.progress.complete_from is None
        for batch in BATCHES[3:]:
            w.push(*batch)
        w.end()
        assert computed(w) == {"often"}
        assert w.rows("late") == [row for row in as_rows(oracle(SELDOM)) if row[0] > 22]


def test_a_faster_query_that_comes_late_is_followed_when_its_windows_are_complete(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("seldom", SELDOM.replace("RANGE 20", "RANGE 15"))
        w.push(*BATCHES[0])
        w.query("often", OFTEN.replace("RANGE 20", "RANGE 15"))
        assert w.queries["often"].progress.complete_from == 12
        for batch in BATCHES[1:4]:
            w.push(*batch)
        assert computed(w) == {"seldom", "often"}
        w.engine.seconds.clear()
        for batch in BATCHES[4:]:
            w.push(*batch)
        w.end()
        assert computed(w) == {"often"}
        assert w.rows("seldom") == as_rows(oracle(SELDOM.replace("RANGE 20", "RANGE 15")))


def test_a_follower_goes_on_when_its_leader_is_dropped_or_the_process_ends(tmp_path: Path) -> None:
    heard: list[object] = []
    for first, last in ((0, 2), (2, 4), (4, len(BATCHES))):
        with Life(tmp_path / "state") as w:
            w.sql(STREAM)
            for name in Random(first).sample(["often", "seldom"][first // 4 :], 2 - first // 4):
                w.query(name, OFTEN if name == "often" else SELDOM)
            for batch in BATCHES[first:last]:
                w.push(*batch)
            if first == 2:
                w.drop("often")
            if last == len(BATCHES):
                w.end()
            heard += w.rows("seldom")
    assert sorted(heard) == as_rows(oracle(SELDOM))


def test_a_leader_that_fails_in_a_window_of_its_own_leaves_its_followers_alone(tmp_path: Path) -> None:
    often = "SELECT k, SUM(v) AS total FROM s [RANGE 5 SLIDE 5] GROUP BY k"
    seldom = often.replace("SLIDE 5", "SLIDE 10")
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("often", often)
        w.query("seldom", seldom)
        batches = [((1, 3, 7), (1, HUGE, 11), (1, HUGE, 12)), ((1, 4, 28), (1, 5, 41))]
        w.push(*batches[0])
        w.push(*batches[1])
        w.end()
        assert w.queries["often"].progress.status == "failed"
        assert w.queries["seldom"].progress.status == "running"
        assert w.rows("seldom") == as_rows(oracle(seldom, batches))


def test_the_last_answer_and_the_archive_of_a_follower_are_its_own(tmp_path: Path) -> None:
    with Life(tmp_path / "state") as w:
        w.sql(STREAM)
        w.query("often", OFTEN)
        w.query("seldom", SELDOM)
        w.sql("CREATE ARCHIVE past ON seldom KEY k KEEP 1000")
        for batch in BATCHES:
            w.push(*batch)
        told = w.rows("seldom")
        last = w.sql("SELECT k, total, n FROM seldom")[0].to_pylist()
        newest = max(row[0] for row in told)
        assert sorted((newest, *row.values()) for row in last) == [row for row in told if row[0] == newest]
        kept = w.archives["past"].scan().to_pylist()
        assert sorted((row["at"], row["k"], row["total"], row["n"]) for row in kept) == told
