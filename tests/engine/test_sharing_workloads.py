"""Random workloads on an engine whose queries share: they come and go, and lives end anywhere.

What each query answers is compared with the oracle, which gets the same rows and knows nothing of sharing.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.world import World

from windrow.engine import engine as core, epoch as draft
from windrow.engine.sharing import shared_state as common
from windrow.kernels.shared import kernel as answering, shared_state as keeping
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.life import Life

COLUMNS, OPTIONS = "k BIGINT, s STRING, v BIGINT, x DOUBLE, t BIGINT", "WATTR t SLACK 4"
STREAMS = {"s": (COLUMNS, OPTIONS)}
MEASURES = (
    "COUNT(*)",
    "COUNT(v)",
    "SUM(v)",
    "SUM(x)",
    "AVG(v)",
    "AVG(x)",
    "MIN(v)",
    "MAX(x)",
    "MIN(s)",
    "MAX(s)",
    "VAR_POP(v)",
    "STDDEV_SAMP(x)",
    "FIRST(v)",
    "LAST(s)",
    "MAX(v) FILTER (WHERE s = 'a')",
    "SUM(v) FILTER (WHERE x > 0)",
    "MEDIAN(v)",
    "COUNT(DISTINCT s)",
)
CONDITIONS = (
    "v > 2",
    "NOT (v <= 2)",
    "k = 1",
    "k IN (1, 2)",
    "k IS NULL OR s = 'a'",
    "x < 1 AND v <> 3",
    "s LIKE 'b%'",
)
#: each is the others together, or what they leave of one of them; those with `s` may hold for one row
COVERING = ("k = 1", "k = 2", "k IN (1, 2)", "k = 1", "k = 2", "k IN (1, 2)", "k = 1 OR s = 'a'", "s = 'a'")
GROUPINGS = ("", "k", "k", "s", "k, s", "v % 3", "x")
PERIODS = (
    (1, 1),
    (4, 2),
    (6, 2),
    (6, 4),
    (12, 4),
    (12, 2),
    (12, 6),
    (3, 3),
    (2, 5),
    (24, 2),
    (40, 8),
    (7, 3),
    (10, 10),
    (30, 6),
)


def random_query(random: Random) -> str:
    keys = random.choice(GROUPINGS)
    length, slide = random.choice(PERIODS)
    chosen = random.sample(MEASURES, random.randint(1, 3))
    selected = [*([f"{keys.split(', ')[0]} AS g"] if keys and random.random() < 0.8 else [])]
    selected += [f"{each} AS a{place}" for place, each in enumerate(chosen)]
    if random.random() < 0.1:
        selected.append("window_start AS begun")
    text = f"SELECT {', '.join(selected)} FROM s [RANGE {length} SLIDE {slide}]"
    if random.random() < 0.6:
        text += f" WHERE {random.choice(CONDITIONS if random.random() < 0.5 else COVERING)}"
    text += f" GROUP BY {keys}" if keys else ""
    return text + (" HAVING COUNT(*) > 1" if random.random() < 0.2 else "")


def related_query(random: Random) -> str:
    """A query that others cover, or that is another one less often, more often than not."""
    keys = "" if random.random() < 0.8 else "s"
    length, slide = random.choice(((12, 2), (6, 2), (12, 2), (24, 2), (12, 6)))
    exact, others = ("COUNT(*)", "SUM(v)"), (("MAX(v)", "MIN(s)"), ("SUM(x)", "LAST(s)"), ("AVG(v)",))
    measured = exact if random.random() < 0.7 else random.choice(others)
    chosen = [f"{each} AS a{place}" for place, each in enumerate(measured)]
    selected = ", ".join([*([f"{keys} AS g"] if keys else []), *chosen])
    text = f"SELECT {selected} FROM s [RANGE {length} SLIDE {slide}] WHERE {random.choice(COVERING)}"
    return text + (f" GROUP BY {keys}" if keys else "")


@dataclass
class Lived:
    """What became of a life: how many queries shared, were combined from others' synopses, or read another
    query's answers, how many went, how often it began anew, and how many answers there were."""

    shared: int = 0
    combined: int = 0
    followed: int = 0
    dropped: int = 0
    restarts: int = 0
    answers: int = 0


def random_batches(random: Random) -> list[list[tuple[Any, ...]]]:
    now, found = 0, []
    for _ in range(random.randint(4, 9)):
        batch = []
        for _ in range(random.randint(0, 14)):
            now += random.choice((0, 0, 1, 1, 2, 5)) + (90 if random.random() < 0.01 else 0)
            x = random.choice((None, 0.5, -2.25, 3.0, 1.75, 0.0, math.nan, math.inf, -math.inf))
            v = random.choice((None, *range(6)))
            k = random.choice((None, 1, 2, 3))
            batch.append(
                (k, random.choice((None, "a", "b", "bc")), v, x, max(0, now - random.choice((0, 1, 3))))
            )
        found.append(batch)
    return found


class Sharing(World):
    """A world in which no query fails."""

    def reopen(self, random: Random) -> Life:
        """The next life, with queries declared in another order."""
        names = random.sample(sorted(self.queries), len(self.queries))
        self.queries = {name: self.queries[name] for name in names}
        life = self.open()
        life.engine.deliver()
        return life

    def listen(self, life: Life) -> None:
        for name, record in life.engine.queries.items():
            assert record.error is None, (self.queries[name], record.error)
        super().listen(life)


@dataclass(frozen=True)
class Span:
    """When a query was there: from the clock it came at, with complete answers from an instant on."""

    text: str
    clock: float
    complete_from: int | None


def of_span(span: Span, rows: Counter[Any]) -> Counter[Any]:
    length = int(span.text.partition("RANGE ")[2].split()[0])
    begin = -INFINITY if span.complete_from is None else span.complete_from
    return Counter(row for row in rows.elements() if row[0] > span.clock and row[0] - length >= begin)


def _plain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_value(value) for value in row)


def _value(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else round(value, 9) + 0.0
    return value


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that happens rarely happens all the time."""
    monkeypatch.setattr(core, "SWEEP_EVERY", 3)
    monkeypatch.setattr(core, "PATIENCE", 0)
    monkeypatch.setattr(core, "KEEP", 2)
    monkeypatch.setattr(draft, "MOST_WAITING", 2)
    monkeypatch.setattr(keeping, "MOST_CHUNKS", 2)
    monkeypatch.setattr(answering, "CELLS", 24)
    monkeypatch.setattr(answering, "ROWS", 8)
    monkeypatch.setattr(common, "MOST_CONDITIONS", 2)
    monkeypatch.setattr(keeping, "LEAST_ROWS", 5)
    monkeypatch.setattr(keeping, "MOST_STATES", 20)


def live(folder: Path, seed: int, most: int, query: Callable[[Random], str] = random_query) -> Lived:
    """A life with up to `most` queries."""
    random, pushed, found = Random(seed), list[Any](), Lived()
    world = Sharing(folder, {}, STREAMS, script=pushed, plain=_plain)
    life = world.open()
    spans: dict[str, Span] = {}
    texts = [query(random) for _ in range(most)]

    def come(number: int) -> None:
        name, text = (
            f"q{number}",
            random.choice(texts[:number]) if number and random.random() < 0.2 else texts[number],
        )
        stream = life.engine.streams["s"]
        clock = stream.known.progress_on(stream.stream, "t")
        world.queries[name] = text
        life.query(name, text)
        record = life.engine.queries[name]
        found.shared += bool(record.shares)
        found.combined += any("+" in each or "-" in each for each in record.shares)
        found.followed += life.engine.leader_of(record) is not None
        if record.complete_from is not None:
            assert stream.greatest is not None
            assert record.complete_from <= stream.greatest + 1
        spans[name] = Span(text, clock, record.complete_from)

    first = random.randint(0, most)
    for number in range(first):
        come(number)
    coming = iter(range(first, most))
    rows: dict[tuple[str, int, bool], Counter[Any]] = {}

    def check(name: str, *, ended: bool) -> int:
        span = spans.pop(name)
        key = span.text, len(pushed), ended
        if key not in rows:
            rows[key] = world.expected(span.text, ended=ended)
        wanted = of_span(span, rows[key])
        assert world.answers(name) == wanted, (seed, name, span, life.engine.queries.get(name))
        return sum(wanted.values())

    for batch in random_batches(random):
        life.push(*batch)
        pushed.append(batch)
        for _ in range(random.randint(0, 2)):
            for number in islice(coming, 1):
                come(number)
        if spans and random.random() < 0.4:
            name = random.choice(sorted(spans))
            world.listen(life)
            del world.queries[name]
            life.drop(name)
            found.dropped += 1
            found.answers += check(name, ended=False)
        if random.random() < 0.25:
            world.listen(life)
            life.vanish() if random.random() < 0.5 else life.close()
            found.restarts += 1
            life = world.reopen(random)
    life.end()
    world.listen(life)
    for name in list(spans):
        found.answers += check(name, ended=True)
    assert bool(life.engine.common.left) == (draft.MOST_CELLS < 100)
    life.close()
    return found


@pytest.mark.part(3)
@pytest.mark.parametrize("seed", range(6))
def test_queries_that_share_answer_as_each_would_by_itself(tmp_path: Path, seed: int) -> None:
    found = live(tmp_path / "state", seed, 12)
    assert found.shared > 1
    assert found.answers


@pytest.mark.part(3)
@pytest.mark.parametrize("seed", [20, 21, 27])
def test_queries_that_are_made_of_others_answer_as_each_would_by_itself(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "MOST_CONDITIONS", 8)
    found = live(tmp_path / "state", seed, 16, related_query)
    assert found.combined
    assert found.followed
    assert found.answers


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 13))
def test_what_grows_too_large_is_kept_by_each_query_for_itself(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_CELLS", 3)
    found = live(tmp_path / "state", seed, 12)
    assert found.shared > 1
    assert found.answers


def test_what_was_combined_is_taken_along_when_it_grows_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draft, "MOST_CELLS", 3)
    monkeypatch.setattr(common, "MOST_CONDITIONS", 8)
    assert live(tmp_path / "state", 30, 14, related_query).combined


@pytest.mark.thorough
@pytest.mark.slow
def test_fifty_queries_answer_as_each_would_by_itself(tmp_path: Path) -> None:
    found = live(tmp_path / "state", 50, 50)
    assert found.shared > 20
    assert found.answers > 1000
    assert found.dropped
    assert found.restarts
