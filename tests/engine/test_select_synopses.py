"""A SELECT by itself that is answered from what standing queries share: the oracle's answer, without rows."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.engine.test_select_archives import how
from tests.support.history import rows_of
from tests.support.life import Life
from tests.support.oracle import told
from tests.support.world import World

from windrow.engine.explain import declared
from windrow.errors import QueryError
from windrow.language.compile import compile_once
from windrow.state.names import KEPT

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 4"
STREAM = f"CREATE STREAM s ({COLUMNS}) {OPTIONS}"
STANDING = (
    "SELECT k, COUNT(*) AS n, SUM(v) AS total, MAX(v) AS most FROM s [RANGE 12 SLIDE 4] GROUP BY k",
    "SELECT SUM(v) AS total, MIN(v) AS least, LAST(v) AS last FROM s [RANGE 10 SLIDE 2] WHERE v > 1",
    "SELECT k, v, COUNT(*) AS n FROM s [RANGE 24 SLIDE 6] GROUP BY k, v",
    "SELECT k, AVG(v) AS mean, MAX(v) FILTER (WHERE v < 3) AS most FROM s [RANGE 9 SLIDE 3] GROUP BY k",
    "SELECT k % 2 AS half, VAR_POP(v) AS spread FROM s [RANGE 4 SLIDE 2] WHERE k = 1 OR k = 2 GROUP BY half",
)
WINDOWS = (
    "RANGE 4",
    "RANGE 6 SLIDE 2",
    "RANGE 8",
    "RANGE 12",
    "RANGE 12 SLIDE 4",
    "RANGE 3",
    "RANGE 16 SLIDE 1",
)
ASKED = (
    "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [{}] GROUP BY k",
    "SELECT COUNT(*) AS n, AVG(v) AS mean, MAX(v) AS most FROM s [{}] WHERE k = 1",
    "SELECT k, MAX(v) AS most FROM s [{}] WHERE k IS NOT NULL GROUP BY k HAVING COUNT(*) > 1",
    "SELECT k % 2 AS half, SUM(v) AS total FROM s [{}] GROUP BY half ORDER BY total DESC LIMIT 1",
    "SELECT MIN(v) AS least, LAST(v) AS last FROM s [{}] WHERE NOT (v <= 1)",
    "SELECT v, COUNT(*) AS n FROM s [{}] WHERE k > 0 GROUP BY v ORDER BY v",
    "SELECT v, k, COUNT(*) AS n FROM s [{}] GROUP BY v, k",
    "SELECT COUNT(*) AS n, MAX(v) FILTER (WHERE v < 3) AS most FROM s [{}] WHERE k IN (0, 3)",
    "SELECT k % 2 AS half, VAR_POP(v) AS spread FROM s [{}] WHERE k IN (2, 1) GROUP BY half",
)
Step = tuple[str, Any]


def random_script(random: Random, length: int, asked: int) -> Iterator[Step]:
    """Rows and promises, queries that come and go, restarts, and questions in between."""
    first = random.sample(STANDING, random.randint(3, 5))
    yield from (("query", text) for text in first)
    others, clock = [text for text in STANDING if text not in first], 0
    for _ in range(length):
        kind = random.choice([*["rows"] * 5, *["promise"] * 4, "query", "drop", "restart"])
        if kind == "rows":
            clock += random.randint(0, 8)
            times = [random.randint(max(clock - 5, 0), clock + 2) for _ in range(random.randint(0, 9))]
            clock = max([clock, *times])
            yield kind, [(random.choice((None, 0, 1, 2, 3)), random.randint(0, 4), t) for t in times]
        elif kind == "promise":
            clock += -clock % random.choice((1, 2, 4, 12))
            yield kind, clock
        elif kind == "query":
            yield kind, random.choice(others or STANDING)
        else:
            yield kind, None
        yield "look", [random.choice(ASKED).format(random.choice(WINDOWS)) for _ in range(asked)]


class Asked(World):
    """A life that keeps no rows, what has happened in it, and how often it could answer."""

    def __init__(self, folder: Path, keep: str = "") -> None:
        super().__init__(folder, {}, {"s": (COLUMNS, f"{OPTIONS} {keep}")})
        self.happened: list[Any] = []
        self.made = 0
        self.answered: Counter[str] = Counter()
        self.w = self.open()

    def do(self, kind: str, what: Any) -> None:
        if kind == "rows":
            self.w.push(*what)
        elif kind == "promise":
            self.w.promise(what)
        elif kind == "query":
            self.made += 1
            self.queries[f"q{self.made}"] = what
            self.w.query(f"q{self.made}", what)
        elif kind == "drop" and self.queries:
            name = next(iter(self.queries))
            del self.queries[name]
            self.w.drop(name)
        elif kind == "restart":
            self.w.close()
            self.w = self.open()
        elif kind == "look":
            for text in what:
                for isolation in ("latest", "window"):
                    self.look(text, isolation)
        if kind in ("rows", "promise"):
            self.happened.append(("s", what))

    def look(self, text: str, isolation: str) -> str:
        """Ask, and compare with the oracle at the instant that is claimed."""
        try:
            found = self.w.select(text, isolation=isolation)
        except QueryError as error:
            if error.code != "not-kept":
                raise
            self.answered["refused"] += 1
            return "refused"
        at = found.schema.metadata.get(b"windrow.at")
        if at is None:
            assert found.num_rows == 0
            return "nothing"
        streams = {"s": (COLUMNS, OPTIONS)}
        oracle = told(compile_once(text, declared(streams, {})).plan, self.happened, streams)
        assert Counter(rows_of(found)) == oracle.relation(int(at)), (text, at)
        now = self.w.engine.streams["s"].known.progress.progress
        if isolation == "latest" and "SLIDE" not in text:
            assert int(at) == now - 1
        assert int(at) <= now
        self.answered[isolation] += 1
        return "answered"


@pytest.mark.thorough
@pytest.mark.slow
def test_what_synopses_say_is_what_the_oracle_has(tmp_path: Path) -> None:
    answered: Counter[str] = Counter()
    for seed in range(100, 103):
        life = Asked(tmp_path / str(seed))
        for kind, what in random_script(Random(seed), 10, 3):
            life.do(kind, what)
        life.w.close()
        answered += life.answered
    assert answered["latest"] > 8
    assert answered["window"] > answered["latest"], "none was answered about a window before"


@pytest.mark.thorough
def test_with_rows_too_the_answers_are_the_same(tmp_path: Path) -> None:
    life = Asked(tmp_path, "KEEP 30")
    for kind, what in random_script(Random(9), 8, 3):
        life.do(kind, what)
    assert not life.answered["refused"]
    life.w.close()


TOTALS = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 20 SLIDE 10] GROUP BY k"


def with_totals(folder: Path) -> Life:
    w = Life(folder)
    w.sql(STREAM)
    w.query("totals", TOTALS)
    return w


def test_it_is_told_which_synopsis_answers(tmp_path: Path) -> None:
    w = with_totals(tmp_path)
    w.push((1, 5, 3), (2, 7, 12), (1, 1, 18), (2, 2, 27))
    grouped = "SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 10] GROUP BY k"
    assert how(w, grouped).startswith("once    synopsis p1, p2, p3 of query `totals`: ")
    assert rows_of(w.select(grouped)) == [(1, 1), (2, 7)]
    assert rows_of(w.select("SELECT AVG(v) AS mean FROM s [RANGE 20 SLIDE 10] WHERE k <> 2")) == [(3.0,)]
    w.promise(40)
    assert rows_of(w.select("SELECT k % 2 AS odd, COUNT(*) AS n FROM s [RANGE 20] GROUP BY odd")) == [(0, 1)]
    w.close()


def test_nothing_is_kept_for_it(tmp_path: Path) -> None:
    w = with_totals(tmp_path)
    w.push((1, 5, 3), (2, 7, 12), (1, 1, 18), (2, 2, 27))
    assert KEPT not in w.engine.last.chunks
    assert w.select("SELECT COUNT(*) AS n FROM s [RANGE 20 SLIDE 10]").to_pylist() == [{"n": 3}]
    w.close()


def test_what_nearly_fits_is_told(tmp_path: Path) -> None:
    w = with_totals(tmp_path)
    w.push((1, 5, 3), (2, 7, 12), (1, 1, 18), (2, 2, 27))
    asked = "SELECT COUNT(*) AS n FROM s [RANGE 10]"
    with pytest.raises(QueryError, match="intervals of 10 do not begin with this window") as refused:
        w.select(asked)
    assert refused.value.hint is not None
    assert refused.value.hint.endswith("; or ask WITH ISOLATION WINDOW, or with SLIDE 10")
    found = w.select(f"{asked} WITH ISOLATION WINDOW")
    assert (rows_of(found), found.schema.metadata[b"windrow.at"]) == ([(2,)], b"19")
    with pytest.raises(QueryError, match=r"query `totals` does not do: it has 2 × 10"):
        w.select("SELECT COUNT(*) AS n FROM s [RANGE 30 SLIDE 10]")
    with pytest.raises(QueryError, match="keeps no rows to ask about") as other:
        w.select("SELECT MAX(v) AS most FROM s [RANGE 10 SLIDE 10]")
    assert "synopsis" not in other.value.message
    w.close()


def test_after_the_end_the_last_windows_are_there(tmp_path: Path) -> None:
    w = with_totals(tmp_path)
    w.push((1, 5, 3), (2, 7, 12), (1, 1, 18), (2, 2, 27))
    w.end()
    found = w.select("SELECT SUM(v) AS total FROM s [RANGE 20 SLIDE 10]")
    assert (rows_of(found), found.schema.metadata[b"windrow.at"]) == ([(10,)], b"30")
    w.close()


def test_a_synopsis_that_came_late_does_not_answer_for_before(tmp_path: Path) -> None:
    w = Life(tmp_path)
    w.sql(STREAM)
    w.push((1, 5, 3), (2, 7, 12))
    w.query("totals", TOTALS)
    w.push((1, 1, 18), (2, 2, 27))
    asked = "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
    with pytest.raises(QueryError, match="it has not been there for so long"):
        w.select(asked)
    w.push((1, 1, 36))
    assert rows_of(w.select(asked)) == [(1,)]
    w.close()


def test_rows_that_were_shed_are_missed(tmp_path: Path) -> None:
    w = with_totals(tmp_path)
    w.push((1, 5, 3), (2, 7, 12), (1, 1, 18), (2, 2, 27))
    record = w.engine.streams["s"]
    w.engine.streams["s"] = replace(record, shed=1)
    w.push((1, 1, 36))
    with pytest.raises(QueryError, match="keeps no rows"):
        w.select("SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]")
    w.close()


def test_commits_go_on_meanwhile(tmp_path: Path) -> None:
    random = Random(5)
    batches = [
        [(random.randint(0, 3), random.randint(0, 9), 3 * n + random.randint(0, 3)) for _ in range(6)]
        for n in range(25)
    ]
    asked = {
        "latest": "SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 10] GROUP BY k",
        "window": "SELECT COUNT(*) AS n FROM s [RANGE 20]",
    }
    w = with_totals(tmp_path)
    w.push(*batches[0])
    seen: list[tuple[str, int, Any]] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            for isolation, text in asked.items():
                found = w.select(text, isolation=isolation)
                seen.append((isolation, int(found.schema.metadata[b"windrow.at"]), Counter(rows_of(found))))

    reader = threading.Thread(target=ask)
    reader.start()
    for batch in batches[1:]:
        w.push(*batch)
    done.set()
    reader.join()
    for isolation, text in asked.items():
        oracle = told(text, batches, {"s": (COLUMNS, OPTIONS)})
        mine = [(at, rows) for level, at, rows in seen if level == isolation]
        assert len({at for at, _ in mine}) > 1
        assert [at for at, _ in mine] == sorted(at for at, _ in mine)
        assert all(rows == oracle.relation(at) for at, rows in mine)
    w.close()
