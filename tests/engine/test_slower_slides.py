"""Queries over one join that ask at different instants: it moves at the slide of the one that asks most
often, and nobody can tell from the answers."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.engine.archived import values_of
from tests.support.history import BATCHES as ROWS, STREAM
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.two_streams import (
    BATCHES,
    STREAMS,
    assert_answers,
    assert_each_by_itself,
    open_life,
    random_batches,
    runs,
)
from tests.support.world import World

from windrow.engine.sharing.common_subplans import CommonSlide
from windrow.errors import QueryError
from windrow.kernels.relational.aggregate.totals import Running
from windrow.kernels.relational.join.multiway import Joined
from windrow.windows.spec import SlideGrid

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


#: queries at any slide
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
    "SELECT DSTREAM(b.v, a.w) FROM a [RANGE 5 {s}], b [RANGE 12 {s}] WHERE a.k = b.k",
    "SELECT a.k, MODE(b.v) AS often FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k GROUP BY a.k",
    "SELECT a.k, AVG(CAST(b.v AS DOUBLE)) AS m, COUNT(*) AS n FROM a [RANGE 8 {s}], b [RANGE 8 {s}]"
    " WHERE a.k = b.k GROUP BY a.k HAVING COUNT(*) > 1",
    "SELECT a.k, b.v FROM a [RANGE 2 {s}], b [RANGE 3 {s}] WHERE a.k = b.k",
    "SELECT a.k, b.v FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k ORDER BY b.v, a.k LIMIT 2",
)
SLIDES = tuple(f"SLIDE {slide}" for slide in (2, 4, 3, 6, 8, 12, "4 ORIGIN 2", "6 ORIGIN 1"))


def followers(life: Life) -> set[str]:
    query_groups = {name: record.bundle.query_group for name, record in life.engine.queries.items()}
    return {
        name for name, query_group in query_groups.items() if query_group is not None and query_group.reports
    }


@pytest.mark.part(24)
@pytest.mark.parametrize("seed", range(48))
def test_queries_of_any_slide_answer_as_by_themselves(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    mine = [TEXTS[seed % len(TEXTS)], random.choice(TEXTS)]
    texts = [mine[0].format(s=slide) for slide in SLIDES[:2]]
    texts += [random.choice(mine).format(s=random.choice(SLIDES)) for _ in range(random.randint(0, 4))]
    random.shuffle(texts)
    queries = {f"q{place}": text for place, text in enumerate(texts)}

    def begun(life: Life) -> None:
        assert followers(life)

    assert_each_by_itself(tmp_path, random, queries, random_batches(random, 9), begun)


COUNTS = "SELECT a.k, COUNT(*) AS n FROM a [RANGE 12 {s}], b [RANGE 12 {s}] WHERE a.k = b.k GROUP BY a.k"
SUMS = COUNTS.replace("COUNT(*)", "SUM(b.v)")


def added(life: Life, text: str, **slides: str) -> dict[str, str]:
    texts = {name: text.format(s=slide) for name, slide in slides.items()}
    for name, query in texts.items():
        life.add(name, query)
    return texts


def test_what_cannot_fail_has_all_results_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = open_life(tmp_path)
    texts = added(life, COUNTS, slow="SLIDE 8", fast="SLIDE 2", middle="SLIDE 4 ORIGIN 2", odd="SLIDE 5")
    joins, counts = runs(monkeypatch, Joined), runs(monkeypatch, Running)
    life.take(*BATCHES[:2])
    assert len({id(each) for each in joins}) == 2, "that of `odd` is another one"
    assert len({id(each) for each in counts}) == 2
    together = "γ, running with 2; states of ⋈ with 2 by SS3, CS4; results with 2 by CS8"
    told = {name: record.physical.sharing.brief for name, record in life.engine.queries.items()}
    assert told == {**dict.fromkeys(("slow", "fast", "middle"), together), "odd": None}
    life.take(*BATCHES[2:])
    life.end()
    assert_answers(life, texts)


def test_what_can_fail_has_the_join_in_common(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = open_life(tmp_path)
    texts = added(life, SUMS, slow="SLIDE 8", fast="SLIDE 2", slower="SLIDE 8")
    texts |= added(life, SUMS, middle="SLIDE 4")
    texts |= added(life, COUNTS.replace("RANGE 12", "RANGE 6"), short="SLIDE 4")
    joins, sums = runs(monkeypatch, Joined), runs(monkeypatch, Running)
    life.take(*BATCHES[:2])
    assert len(joins) == 2, "once in each shard"
    assert len(sums) == 2 * 4, "the two slow ones have one together"
    told = {name: record.physical.sharing.brief for name, record in life.engine.queries.items()}
    slow = "γ, running with 1; ⋈ with 4; states of ⋈ with 1 by SS3, CS4"
    assert told == {
        **dict.fromkeys(("slow", "slower"), slow),
        "fast": "⋈ with 4",
        # both look at the same instants, at windows of different lengths
        **dict.fromkeys(("middle", "short"), "⋈ with 4; states of ⋈ with 1 by SS3"),
    }
    life.take(*BATCHES[2:])
    life.end()
    assert_answers(life, texts)


def test_a_window_that_a_query_does_not_have_cannot_make_it_fail(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    texts = added(life, SUMS.replace("RANGE 12", "RANGE 5"), fast="SLIDE 5", slow="SLIDE 10")
    most = 2**62 + 1
    batches: list[tuple[str, Any]] = [
        ("a", [(1, 0, 0, 11), (1, 0, 0, 21)]),
        ("b", [(1, most, 0, 11), (1, most, 0, 12), (1, 7, 0, 22)]),
    ]
    life.take(*batches)
    life.take(("a", [(2, 0, 0, 40)]), ("b", [(2, 0, 0, 40)]))
    life.end()
    assert followers(life) == {"slow"}
    assert [life.engine.queries[name].is_running for name in ("fast", "slow")] == [False, True]
    life.engine.deliver()
    more = [("a", [(2, 0, 0, 40)]), ("b", [(2, 0, 0, 40)])]
    assert life.answers("slow") == oracle(texts["slow"], [*batches, *more], STREAMS)


def test_queries_that_ask_the_same_may_both_look_at_a_faster_join(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    texts = added(life, SUMS, fast="SLIDE 2") | added(life, COUNTS, middle="SLIDE 4", slow="SLIDE 8")
    life.take(*BATCHES[:2])
    told = {name: record.physical.sharing.brief for name, record in life.engine.queries.items()}
    both = "γ, running with 1; ⋈ with 2; states of ⋈ with 1 by SS3, CS4; results with 1 by CS8"
    assert told == {"fast": "⋈ with 2", "middle": both, "slow": both}
    life.take(*BATCHES[2:])
    life.end()
    assert_answers(life, texts)


def test_nobody_goes_at_the_slide_of_one_that_has_nothing_in_common(tmp_path: Path) -> None:
    """A join of windows more than twice as long has too many results of no use."""
    life = open_life(tmp_path)
    text = COUNTS.replace("a [RANGE 12", "a [RANGE {r}")
    texts = {"fast": text.format(r=40, s="SLIDE 2"), "slow": text.format(r=10, s="SLIDE 8")}
    texts["middle"] = texts["slow"].replace("SLIDE 8", "SLIDE 4")
    for name, query in texts.items():
        life.add(name, query)
    life.take(*BATCHES[:2])
    life.take(*BATCHES[2:])
    assert followers(life) == {"slow"}
    assert life.engine.queries["slow"].member.common_slide == CommonSlide(SlideGrid(4))
    life.end()
    assert_answers(life, texts)


@pytest.mark.parametrize("text", [COUNTS, SUMS])
@pytest.mark.parametrize("seen", [0, 2])
def test_the_slow_goes_on_when_the_fast_is_gone(tmp_path: Path, text: str, seen: int) -> None:
    texts = {name: text.format(s=slide) for name, slide in (("slow", "SLIDE 8"), ("fast", "SLIDE 2"))}
    world = World(tmp_path, texts, STREAMS, script=BATCHES)
    life = world.open()
    life.take(*BATCHES[:seen])
    assert followers(life) == {"slow"}
    life.engine.drop("QUERY", "fast")
    life.engine.commit()
    world.listen(life)
    life.vanish()
    del world.queries["fast"]
    life = world.open()
    for batch in BATCHES[seen:]:
        life.take(batch)
    assert bool(followers(life)) == (seen > 0), "without rows it begins anew"
    life.end()
    life.engine.deliver()
    world.listen(life)
    world.check()


@pytest.mark.part(2)
@pytest.mark.parametrize("selected", ["k, v", "RSTREAM(k, v)", "ISTREAM(k, v)", "DISTINCT k"])
def test_an_archive_of_the_slow_one_holds_what_it_would_by_itself(tmp_path: Path, selected: str) -> None:
    def archived(folder: str, *slides: int) -> Iterator[Any]:
        with Life(tmp_path / folder) as w:
            w.sql(STREAM)
            for slide in slides:
                w.query(f"by{slide}", f"SELECT {selected} FROM s [RANGE 10 SLIDE {slide}]")
            w.sql("CREATE ARCHIVE kept ON by8 KEY k KEEP 20")
            for batch in ROWS:
                w.push(*batch)
                query_group = w.engine.queries["by8"].bundle.query_group
                assert bool(query_group and query_group.reports) == (len(slides) > 1)
                yield values_of(w.archives["kept"].scan())

    found = [*archived("one", 8, 2)]
    assert found == [*archived("other", 8)]
    assert any(found)


def test_an_archive_that_comes_after_the_first_rows_is_refused(tmp_path: Path) -> None:
    """The slow query has nothing of its own, but what it would archive is already on its way in the query
    group."""
    with Life(tmp_path / "state") as w:
        w.sql(f"{STREAM}; {STREAM.replace('STREAM s', 'STREAM u')}")
        for slide in (2, 8):
            windows = f"s [RANGE 10 SLIDE {slide}], u [RANGE 10 SLIDE {slide}]"
            w.query(f"by{slide}", f"SELECT ISTREAM(s.k, u.v) FROM {windows} WHERE s.k = u.k")
        w.push((1, 2, 3))
        with pytest.raises(QueryError, match="`by8` runs already"):
            w.sql("CREATE ARCHIVE kept ON by8 KEY k KEEP 20")
