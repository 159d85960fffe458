"""Archives of streams and queries hold, at any time, what the definition and the oracle say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.archive.support import temporary
from tests.engine.archived import Definition, values_of
from tests.support.history import STREAM
from tests.support.life import Life

from windrow.engine import archives

pytestmark = pytest.mark.deep

#: one query for each way to have a lifetime
RELATIONS = {
    "joined": "SELECT a.k, a.v, b.v AS w FROM s [RANGE 12] a, s [RANGE 5] b WHERE a.k = b.k",
    "brought": "SELECT k, v, t FROM s [LIFETIME v]",
    "windowed": "SELECT v, k FROM s [RANGE 9] WHERE v > 2",
    "distinct_": "SELECT DISTINCT k FROM s [RANGE 7]",
}
EMITTED = {
    "counts": "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SLIDE 5] GROUP BY k",
    "born": "SELECT ISTREAM(k, SUM(v) AS total) FROM s [RANGE 8] GROUP BY k",
}
QUERIES = RELATIONS | EMITTED
#: long enough for everything that a relation shows
LONG = 400

#: what may be said of a running archive
ALTERED = (
    "LAYOUT 3 BY 2 ALLOCATION SHUFFLED",
    "REBUILD",
    "NOREBUILD LAYOUT 1 BY 4",
    "ALLOCATION CHRONOLOGICAL",
    "EXPECT 9 PROBES PER UPDATE",
)

batches = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=6
)
steps = st.lists(
    st.one_of(
        batches,
        batches,
        batches,
        st.sampled_from(["restart", "vanish"]),
        st.integers(0, 6),
        st.sampled_from([f"ALTER ARCHIVE of_s {how}" for how in ALTERED]),
    ),
    min_size=3,
    max_size=9,
)
shapes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.sampled_from(["REBUILD", "NOREBUILD"]))


def script(names: list[str], keep: int, shape: tuple[int, int, str]) -> str:
    """A stream, queries, and an archive of each."""
    made, expired, rebuild = shape
    how = f"PARTITIONS {made} x {expired} {rebuild}"
    parts = [STREAM, f"CREATE ARCHIVE of_s ON s KEY v {how} KEEP {keep}"]
    for name in names:
        parts.append(f"CREATE QUERY {name} AS {QUERIES[name]}")
        kept = keep if name in EMITTED else LONG
        parts.append(f"CREATE ARCHIVE of_{name} ON {name} KEY k {how} KEEP {kept}")
    return ";".join(parts)


def check(w: Life, known: Definition, keep: int) -> None:
    """Scans, probes and ranges of every archive."""
    for name, archive in w.archives.items():
        source = name.removeprefix("of_")
        found, hidden = archive.scan(), ("valid_to",)
        if source == "s":
            expected = known.rows(keep)
        elif source in EMITTED:
            expected = known.emitted(source, keep)
        else:
            expected, hidden = known.answer(source), ("at", "valid_to")
        assert values_of(found, *hidden) == expected, name
        place = [each for each in found.column_names if each not in hidden].index(archive.key)
        for low, high in ((1, 1), (2, 5), (None, 2), (3, None)):
            chosen = Counter(
                {
                    row: n
                    for row, n in expected.items()
                    if (low is None or row[place] >= low) and (high is None or row[place] <= high)
                }
            )
            searched = archive.probe(low) if low == high else archive.range(low, high)
            assert values_of(searched, *hidden) == chosen, (name, low, high)


@given(
    steps,
    st.lists(st.sampled_from(list(QUERIES)), min_size=1, max_size=3, unique=True),
    st.integers(1, 40),
    shapes,
    st.sampled_from([1, 3, 16]),
)
@settings(max_examples=12)
def test_archives_hold_what_is_alive(
    todo: list[Any], names: list[str], keep: int, shape: tuple[int, int, str], most_waiting: int
) -> None:
    text = script(names, keep, shape)
    known, clock = Definition({name: QUERIES[name] for name in names}), 0
    before, archives.MOST_WAITING = archives.MOST_WAITING, most_waiting
    try:
        with temporary() as folder:
            w = Life(Path(folder))
            w.sql(text)
            for step in [*todo, "end", "restart"]:
                if step in ("restart", "vanish"):
                    w.close() if step == "restart" else w.vanish()
                    w = Life(Path(folder))
                    w.sql(text)
                elif step == "end":
                    w.end()
                    known.end()
                elif isinstance(step, str):
                    w.sql(step)
                    assert not w.engine.archives.kept["of_s"].is_to_be_rearranged
                elif isinstance(step, int):
                    clock += step
                    w.promise(clock)
                    known.promise(clock)
                else:
                    rows = [(k, v, clock + t) for k, v, t in step]
                    w.push(*rows)
                    known.push(rows)
                    clock += 4
                check(w, known, keep)
            w.close()
    finally:
        archives.MOST_WAITING = before


def test_a_row_of_an_answer_is_kept_no_longer_than_told(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; CREATE QUERY q AS SELECT k FROM s [RANGE 50]; CREATE ARCHIVE a ON q KEY k KEEP 10")
        w.push((1, 0, 0), (2, 0, 4), (3, 0, 15))
        assert w.archives["a"].now == 11
        assert values_of(w.archives["a"].scan()) == {(4, 2, 14): 1}


def test_an_archive_that_comes_late_has_what_comes_after_it(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        w.push((1, 0, 5))
        w.sql("CREATE ARCHIVE a ON s KEY k KEEP 100")
        assert w.archives["a"].complete_from == 6
        w.push((2, 0, 7))
        w.sql("CREATE ARCHIVE b ON s KEY k KEEP 100")
        w.push((3, 0, 9))
        assert sorted(w.archives["a"].scan()["k"].to_pylist()) == [2, 3]
        assert w.archives["b"].scan()["k"].to_pylist() == [3]


def test_rows_wait_no_longer_than_told(tmp_path: Path) -> None:
    """A period of 100: what waits is seen, and goes to the disk when many commits wait."""
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; CREATE ARCHIVE a ON s KEY k KEEP 3200")
        seen = []
        for number in range(40):
            w.push((1, 0, number))
            seen.append(len(w.engine.last.outbox))
            assert len(w.archives["a"]) == number + 1
        assert max(seen) <= archives.MOST_WAITING + 1
        w.engine.deliver()
        assert w.archives["a"]._kept.reached == w.commit


def test_without_archives_nothing_is_filed(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(STREAM)
        w.push((1, 0, 0), (1, 0, 30))
        assert not w.engine.last.outbox
        assert not (tmp_path / "archives").exists()


def test_time_alone_empties_the_disk(tmp_path: Path) -> None:
    with Life(tmp_path) as w:
        w.sql(f"{STREAM}; CREATE ARCHIVE a ON s KEY k REBUILD KEEP 32")
        w.push((1, 0, 0), (2, 0, 3))
        w.engine.deliver()
        assert w.archives["a"].files
        w.promise(60)
        assert not w.archives["a"].files
        assert not w.archives["a"].scan().num_rows
