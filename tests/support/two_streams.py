"""Queries over two streams, which may have a join in common; and random lives of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.oracle import oracle
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from random import Random

    import pytest
    from tests.support.life import Life

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, w BIGINT, t BIGINT", "WATTR t SLACK 3"
STREAMS = dict.fromkeys("ab", (COLUMNS, OPTIONS))
JOIN = "FROM a [RANGE 12 SLIDE 4], b [RANGE 12 SLIDE 4] WHERE a.k = b.k"
Rows = list[tuple[Any, ...]]

FOUR = {
    "sums": f"SELECT a.k, SUM(b.v) AS total {JOIN} GROUP BY a.k",
    "tops": f"SELECT a.k, MAX(a.w) AS top {JOIN} GROUP BY a.k",
    "many": f"SELECT a.k, SUM(b.v) AS total {JOIN} GROUP BY a.k HAVING SUM(b.v) > 2",
    "kinds": f"SELECT b.w, COUNT(*) AS n {JOIN} GROUP BY b.w",
}
BATCHES: list[tuple[str, Rows]] = [
    ("a", [(1, 2, 0, 0), (2, 1, 1, 3), (1, 4, 1, 5)]),
    ("b", [(1, 3, 2, 1), (2, 2, 0, 4), (1, 1, 1, 9)]),
    ("a", [(3, 2, 0, 11), (1, 1, 1, 17)]),
    ("b", [(3, 3, 2, 12), (1, 2, 0, 18)]),
]


def open_life(folder: Path, queries: Mapping[str, str] | None = None) -> Life:
    """A life over both streams."""
    return World(folder, dict(queries or {}), STREAMS).open()


def assert_answers(life: Life, queries: Mapping[str, str], history: Any = BATCHES) -> None:
    """All queries have answered as the oracle does over the rows above."""
    life.engine.deliver()
    for name, text in queries.items():
        assert life.answers(name) == oracle(text, history, STREAMS), name


def random_batches(random: Random, count: int) -> list[tuple[str, Rows]]:
    now, found = 0, []
    for _ in range(count):
        rows: Rows = []
        for _ in range(random.randint(0, 9)):
            now += random.choice((0, 0, 1, 1, 2, 5)) + (60 if random.random() < 0.01 else 0)
            key = random.choice((None, 1, 1, 2, 3))
            value = random.choice((None, *range(5)))
            rows.append((key, value, random.randint(0, 3), max(0, now - random.choice((0, 1, 2, 7)))))
        found.append((random.choice("ab"), rows))
    return found


#: what queries have below, and what they may have above it
JOINS = {
    "FROM a [RANGE 12 SLIDE 4], b [RANGE 12 SLIDE 4] WHERE a.k = b.k": "join",
    "FROM a [RANGE 8 SLIDE 4], b [RANGE 12 SLIDE 4] WHERE a.k = b.k AND a.v > 1": "join",
    "FROM a [RANGE 10], b [RANGE 6] WHERE a.k = b.k": "join",
    # each query has a RANGE of its own; a RANGE below SLIDE leaves rows out
    "FROM a [RANGE {r} SLIDE 4], b [RANGE {r} SLIDE 4] WHERE a.k = b.k": "join",
    "FROM a [RANGE {r} SLIDE 4], b [RANGE {r}2 SLIDE 2] WHERE a.k = b.k": "join",
    "FROM a [RANGE {r}], b [RANGE {r}] WHERE a.k = b.k": "join",
    "FROM a [RANGE {r}], b [RANGE {q}] WHERE a.k = b.k": "join",
    "FROM a [RANGE {r} SLIDE 4], b [RANGE {q} SLIDE 4] WHERE a.k = b.k": "join",
    "FROM a [RANGE 9], b [RANGE 9] WHERE a.v < b.v": "join",
    "FROM a [ROWS 4], b [RANGE 9] WHERE a.k = b.k": "join",
    "FROM a [RANGE 9] WHERE EXISTS (SELECT * FROM b [RANGE 9] WHERE a.k = b.k)": "one",
    "FROM a [RANGE 9] WHERE NOT EXISTS (SELECT * FROM b [RANGE 9] WHERE a.k = b.k)": "one",
    "FROM a [ROWS 5 SLIDE 2]": "one",
    "FROM a [PARTITION BY k ROWS 3]": "one",
    "FROM a [RANGE 11]": "one",
}
ABOVE = {
    "join": (
        ("SELECT a.k, a.v, b.w", ""),
        ("SELECT b.v AS other", ""),
        ("SELECT DISTINCT a.k, b.v AS other", ""),
        ("SELECT a.k, SUM(b.v) AS total", "GROUP BY a.k"),
        ("SELECT a.k, SUM(b.v) AS total", "GROUP BY a.k HAVING COUNT(*) > 1"),
        ("SELECT a.k, MAX(a.w) AS top, COUNT(*) AS n", "GROUP BY a.k"),
        ("SELECT a.k, MIN(b.v) AS least, MAX(b.v) FILTER (WHERE a.w > 0) AS top", "GROUP BY a.k"),
        ("SELECT a.k, AVG(CAST(b.v AS DOUBLE)) AS mean, SUM(a.v) AS total", "GROUP BY a.k"),
        ("SELECT COUNT(*) AS n", ""),
        ("SELECT b.w AS kind, MIN(a.v) AS least", "GROUP BY b.w"),
    ),
    "one": (
        ("SELECT a.k, a.v", ""),
        ("SELECT DISTINCT a.w", ""),
        ("SELECT a.k, SUM(a.v) AS total", "GROUP BY a.k"),
        ("SELECT a.k, COUNT(*) AS n", "GROUP BY a.k"),
        ("SELECT COUNT(DISTINCT a.v) AS n", ""),
        ("SELECT a.v, MEDIAN(a.w) AS middle", "GROUP BY a.v"),
    ),
}
WORDS = ("", "", "", "ISTREAM", "RSTREAM")


def random_queries(random: Random) -> dict[str, str]:
    below = random.sample(list(JOINS), 2)
    found = {}
    for number in range(random.randint(2, 8)):
        subplan = random.choice(below)
        first, last = random.choice(ABOVE[JOINS[subplan]])
        for length in ("{r}", "{q}"):
            subplan = subplan.replace(length, str(random.choice((2, 6, 10, 14, 20))))
        word = random.choice(WORDS)
        if word and "DISTINCT a" not in first and "DISTINCT b" not in first:
            first = f"{first.replace('SELECT ', f'SELECT {word}(', 1)})"
        found[f"q{number}"] = f"{first} {subplan} {last}".strip()
    return found


def assert_each_by_itself(
    folder: Path,
    random: Random,
    queries: dict[str, str],
    batches: list[tuple[str, Rows]],
    begun: Callable[[Life], None] = lambda _: None,
    between: Callable[[Path], None] = lambda _: None,
) -> None:
    """One query goes, and lives end without a word; each answers as the oracle does. `begun` looks at the
    first life when the first rows have come, `between` is told the state between two lives."""
    world = World(folder, queries, STREAMS, script=batches)
    life, gone = world.open(), random.choice([*queries, None])
    for place, batch in enumerate(batches):
        life.take(batch)
        if place == 0:
            begun(life)
        if place == len(batches) // 2 and gone is not None:
            life.engine.drop("QUERY", gone)
            queries.pop(gone)
        if random.random() < 0.3:
            world.listen(life)
            life.vanish()
            between(world.state)
            life = world.open()
    life.end()
    life.engine.deliver()
    world.listen(life)
    for name in queries:
        assert life.engine.queries[name].is_running, life.engine.queries[name].error
    world.check()


def runs(monkeypatch: pytest.MonkeyPatch, kind: type) -> list[Any]:
    """Every run of an operator of this kind."""
    found: list[Any] = []
    plain = kind.advance  # type: ignore[attr-defined]

    def advance(self: Any, *args: Any) -> Any:
        found.append(self)
        return plain(self, *args)

    monkeypatch.setattr(kind, "advance", advance)
    return found


def parts(life: Life, name: str) -> set[str]:
    """The names of what a query has in common with others."""
    query_group = life.engine.queries[name].bundle.query_group
    return set() if query_group is None else {part for _, part in query_group.parts}


def kept(life: Life) -> set[str]:
    """The names under which state is kept."""
    files = [each for refs in life.engine.last.chunks.values() for each in refs]
    return {name.partition("\0")[0] for each in files for name in each.operators if isinstance(name, str)}
