"""The same query less often: it runs at the pace of the other, and reports at its own instants (CS8)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.archived import Archiving, values_of
from tests.engine.driven import STREAM
from tests.engine.test_teams import BATCHES, Life, answers, assert_answers, oracle, random_batches, runs
from tests.engine.world import BATCHES as ROWS

from windrow.kernels.general.joins import Joined

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from windrow.spark.sinks import MemorySink

#: a query at any pace, and one that the first two always are
TEXTS = (
    "SELECT a.k, SUM(b.v) AS total FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k GROUP BY a.k",
    "SELECT a.k, MAX(b.v) AS top FROM a [RANGE 6 {s}], b [RANGE 14 {s}] WHERE a.k = b.k GROUP BY a.k",
    "SELECT COUNT(*) AS n FROM a [RANGE 10 {s}], b [RANGE 10 {s}] WHERE a.k = b.k",
    "SELECT a.k, MEDIAN(b.v) AS m FROM a [RANGE 9 {s}], b [RANGE 9 {s}] WHERE a.k = b.k GROUP BY a.k",
    "SELECT RSTREAM(a.k, b.v) FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k",
    "SELECT ISTREAM(a.k, b.v) FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k",
    "SELECT a.k, b.w FROM a [RANGE 7 {s}], b [RANGE 8 {s}] WHERE a.k = b.k AND a.v < b.v",
    "SELECT DISTINCT a.k FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k",
    "SELECT a.k, a.v FROM a [RANGE 9 {s}] WHERE EXISTS (SELECT * FROM b [RANGE 9 {s}] WHERE a.k = b.k)",
    "SELECT a.k, a.v FROM a [RANGE 9 {s}] WHERE NOT EXISTS (SELECT * FROM b [RANGE 9 {s}] WHERE a.k = b.k)",
    "SELECT a.k, a.v FROM a [RANGE 10 {s}]",
    "SELECT ISTREAM(a.w) FROM a [RANGE 10 {s}]",
)
PACES = tuple(f"SLIDE {slide}" for slide in (2, 4, 3, 6, 8, 12, "4 ORIGIN 2", "6 ORIGIN 1"))


def followers(life: Life) -> set[str]:
    teams = {name: record.bundle.team for name, record in life.engine.queries.items()}
    return {name for name, team in teams.items() if team is not None and team.reports}


@pytest.mark.parametrize("seed", range(36))
def test_queries_of_any_pace_answer_as_by_themselves(tmp_path: Path, seed: int) -> None:
    """Queries go, and lives end without a word."""
    random = Random(seed)
    mine = [TEXTS[seed % len(TEXTS)], random.choice(TEXTS)]
    texts = [mine[0].format(s=pace) for pace in PACES[:2]]
    texts += [random.choice(mine).format(s=random.choice(PACES)) for _ in range(random.randint(0, 4))]
    random.shuffle(texts)
    queries, batches = {f"q{place}": text for place, text in enumerate(texts)}, random_batches(random, 9)
    heard: dict[str, MemorySink] = {}
    life = Life(tmp_path, heard)
    for name, text in queries.items():
        life.add(name, text)
    gone = random.choice([*queries, None])
    for place, batch in enumerate(batches):
        life.push(batch)
        assert place or followers(life)
        if place == 4 and gone is not None:
            life.engine.drop_query(gone)
            queries.pop(gone)
        if random.random() < 0.3:
            life.engine.log._lock.release()  # type: ignore[union-attr]
            life = Life(tmp_path, heard)
            for name, text in queries.items():
                life.add(name, text)
    life.end()
    life.engine.deliver()
    for name, text in queries.items():
        assert life.engine.queries[name].is_running, life.engine.queries[name].error
        assert answers(heard[name]) == oracle(text, batches), text


def added(life: Life, **paces: str) -> dict[str, str]:
    texts = {name: TEXTS[0].format(s=pace) for name, pace in paces.items()}
    for name, text in texts.items():
        life.add(name, text)
    return texts


def test_a_join_runs_once_at_the_pace_of_the_fastest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(tmp_path, {})
    texts = added(life, slow="SLIDE 8", fast="SLIDE 2", middle="SLIDE 4 ORIGIN 2", odd="SLIDE 5")
    joins = runs(monkeypatch, Joined)
    life.push(*BATCHES[:2])
    assert len({id(each) for each in joins}) == 2, "that of `odd` is another one"
    told = {name: life.engine.shared_with(record) for name, record in life.engine.queries.items()}
    assert told == {
        **dict.fromkeys(
            ("slow", "fast", "middle"),
            "γ, running with 2; states of ⋈ with 2 by SS3, CS4; results with 2 by CS8",
        ),
        "odd": None,
    }
    life.push(*BATCHES[2:])
    life.end()
    assert_answers(life, texts)


def test_the_slow_goes_on_when_the_fast_is_gone(tmp_path: Path) -> None:
    heard: dict[str, Any] = {}
    life = Life(tmp_path, heard)
    texts = added(life, slow="SLIDE 8", fast="SLIDE 2")
    life.push(*BATCHES[:2])
    life.engine.drop_query("fast")
    life.engine.commit()
    del texts["fast"]
    life.engine.log._lock.release()  # type: ignore[union-attr]
    life = Life(tmp_path, heard)
    added(life, slow="SLIDE 8")
    life.push(*BATCHES[2:])
    assert life.engine.shared_with(life.engine.queries["slow"]) is None
    life.end()
    assert_answers(life, texts)


@pytest.mark.parametrize("selected", ["k, v", "RSTREAM(k, v)", "ISTREAM(k, v)", "DISTINCT k"])
def test_an_archive_of_the_slow_one_holds_what_it_would_by_itself(tmp_path: Path, selected: str) -> None:
    def archived(folder: str, *slides: int) -> Iterator[Any]:
        with Archiving(tmp_path / folder) as w:
            w.sql(STREAM)
            for slide in slides:
                w.query(f"by{slide}", f"SELECT {selected} FROM s [RANGE 10 SLIDE {slide}]")
            w.sql("CREATE ARCHIVE kept ON by8 KEY k KEEP 20")
            for batch in ROWS:
                w.push(*batch)
                team = w.engine.queries["by8"].bundle.team
                assert bool(team and team.reports) == (len(slides) > 1)
                yield values_of(w.archives["kept"].scan())

    found = [*archived("one", 8, 2)]
    assert found == [*archived("other", 8)]
    assert any(found)
