"""Queries that come after the first rows begin over a join that runs, with the rows that it holds."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.oracle import oracle
from tests.support.two_streams import BATCHES, FOUR, JOIN, STREAMS, open_life, parts, random_batches, runs
from tests.support.world import World

from windrow.engine.sharing.common_subplans import general_unit
from windrow.kernels.relational.join.multiway import Joined

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.life import Life


#: what runs, and what comes later: the same join, other columns of it, shorter windows
WINDOWS = (
    ("a [RANGE 12 SLIDE 4], b [RANGE 12 SLIDE 4]", "a [RANGE {r} SLIDE 4], b [RANGE {q} SLIDE 4]"),
    ("a [RANGE 12], b [RANGE 16]", "a [RANGE {r}], b [RANGE {q}]"),
)
HOSTS = (
    "SELECT a.k, a.v, a.w, a.t, b.v AS o, b.w AS p, b.t AS u FROM {from} WHERE a.k = b.k",
    "SELECT a.k, SUM(b.v) AS total, MAX(a.w) AS top, COUNT(b.w) AS n, MAX(a.v) AS m FROM {from}"
    " WHERE a.k = b.k GROUP BY a.k",
)
LATE = (
    "SELECT a.k, SUM(b.v) AS total FROM {from} WHERE a.k = b.k GROUP BY a.k",
    "SELECT a.k, COUNT(*) AS n, MIN(a.w) AS low FROM {from} WHERE a.k = b.k GROUP BY a.k HAVING COUNT(*) > 1",
    "SELECT a.k, MEDIAN(b.v) AS m FROM {from} WHERE a.k = b.k GROUP BY a.k",
    "SELECT a.k, AVG(CAST(a.v AS DOUBLE)) AS m FROM {from} WHERE a.k = b.k GROUP BY a.k",
    "SELECT a.k, a.w, b.v AS o FROM {from} WHERE a.k = b.k AND a.v < b.v",
    "SELECT a.k, a.w, b.v AS o FROM {from} WHERE a.k = b.k",
    "SELECT ISTREAM(a.k, b.v) FROM {from} WHERE a.k = b.k",
    "SELECT DSTREAM(a.k, a.v) FROM {from} WHERE a.k = b.k",
    "SELECT RSTREAM(a.k, b.w) FROM {from} WHERE a.k = b.k",
    "SELECT DISTINCT a.k, b.w FROM {from} WHERE a.k = b.k",
)


def first_of(life: Life, name: str) -> int:
    """From when on a query answers."""
    record = life.engine.queries[name]
    memory = general_unit(record.bundle).memory
    return -(2**60) if record.complete_from is None else record.complete_from + (memory or 0)


def since(found: Counter[Any], first: int) -> Counter[Any]:
    return Counter({row: n for row, n in found.items() if row[0] >= first})


@pytest.mark.part(60)
@pytest.mark.parametrize("seed", range(60))
def test_a_query_that_comes_later_answers_as_if_it_had_always_been_there(tmp_path: Path, seed: int) -> None:
    """From when it says it is complete, whatever runs before it, in random lives."""
    random = Random(seed)
    long, short = WINDOWS[seed % 2]
    lengths = [(12, 12), (12, 16), (8, 12), (8, 8), (4, 8)]
    r, q = random.choice(lengths if seed % 2 else lengths[:1] + lengths[2:])
    first = [random.choice(HOSTS).replace("{from}", long) for _ in range(random.randint(1, 2))]
    late = [LATE[seed % len(LATE)], random.choice(LATE)][: random.randint(1, 2)]
    texts = [text.replace("{from}", short).format(r=r, q=q) for text in late]
    queries = {f"q{number}": text for number, text in enumerate(first)}
    world = World(tmp_path, queries, STREAMS, script=random_batches(random, 14))
    life, begin = world.open(), dict[str, int]()
    come = sorted(random.sample(range(3, 12), len(texts)))
    for number, batch in enumerate(world.script):
        life.take(batch)
        if number in come:
            name = f"late{number}"
            queries[name] = texts[come.index(number)]
            life.add(name, queries[name])
            alone = first_of(life, name)
            life.engine.epoch()
            begin[name] = first_of(life, name)
            assert begin[name] <= alone
        if random.random() < 0.25:
            world.listen(life)
            life.vanish()
            life = world.open()
    life.end()
    life.engine.deliver()
    world.listen(life)
    for name, text in queries.items():
        assert life.engine.queries[name].is_running, life.engine.queries[name].error
        assert world.answers(name) == since(world.expected(text), begin.get(name, -(2**60))), text


@pytest.mark.parametrize(
    ("windows", "others"), [(WINDOWS[0], ("a.v < b.v",)), (WINDOWS[1], ("a.v < b.v", "RSTREAM"))]
)
def test_these_queries_do_begin_over_the_join(
    tmp_path: Path, windows: tuple[str, str], others: tuple[str, ...]
) -> None:
    """All but the one whose join has another condition, and one that asks a join for more than changes."""
    life = open_life(tmp_path)
    life.add("host", HOSTS[0].replace("{from}", windows[0]))
    life.take(*BATCHES[:2])
    for number, text in enumerate(LATE):
        life.add(f"late{number}", text.replace("{from}", windows[1]).format(r=12, q=12))
    life.engine.epoch()
    apart = [text for number, text in enumerate(LATE) if not parts(life, f"late{number}")]
    assert apart == [text for text in LATE if any(each in text for each in others)]


def test_the_join_runs_once_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = open_life(tmp_path)
    life.add("tops", f"SELECT a.k, MAX(a.w) AS top, SUM(b.v) AS total {JOIN} GROUP BY a.k")
    life.take(*BATCHES[:2])
    life.add("sums", FOUR["sums"])
    life.engine.epoch()
    joins = runs(monkeypatch, Joined)
    life.take(*BATCHES[2:])
    assert len({id(each) for each in joins}) == 1
    assert len(parts(life, "sums") & parts(life, "tops")) == 1
    told = {name: life.engine.queries[name].physical.sharing.brief for name in ("tops", "sums")}
    assert told == dict.fromkeys(told, "⋈ with 1; states of ⋈ with 1 by SS3, CS4")
    life.end()
    life.engine.deliver()
    begin = first_of(life, "sums")
    assert begin <= 7
    assert life.answers("sums") == since(oracle(FOUR["sums"], BATCHES, STREAMS), begin)
    assert life.answers("sums")


@pytest.mark.parametrize(
    "text",
    [
        FOUR["sums"].replace("RANGE 12", "RANGE 20"),
        FOUR["sums"].replace("SLIDE 4", "SLIDE 2"),
        FOUR["kinds"],
        FOUR["sums"].replace("b.v", "b.w"),
    ],
)
def test_where_no_join_fits_a_query_begins_by_itself(tmp_path: Path, text: str) -> None:
    """Longer windows, other instants, rows routed otherwise, columns that the join does not carry."""
    life = open_life(tmp_path)
    life.add("sums", FOUR["sums"])
    life.take(*BATCHES[:2])
    life.add("late", text)
    life.engine.epoch()
    assert life.engine.queries["late"].member is None
    assert life.engine.queries["late"].complete_from == 10
