"""Queries with parts of their plans in common: a part runs once, and nobody can tell from the answers."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from time import sleep
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.support import oracle as support

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.engine.engine import Arrival, Engine
from windrow.engine.explain import explain_script
from windrow.engine.views import observed
from windrow.execution.local import HereJobs
from windrow.kernels.aggregates.measures import Argument
from windrow.kernels.relational.aggregate.totals import Running
from windrow.kernels.relational.join.multiway import Joined
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.compile import compile_query, compile_script
from windrow.sinks import MemorySink
from windrow.state.log import CommitLog
from windrow.state.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, w BIGINT, t BIGINT", "WATTR t SLACK 3"
SCHEMA = pa.schema([(name, pa.int64()) for name in ("k", "v", "w", "t")])
SCRIPT = f"CREATE STREAM a ({COLUMNS}) {OPTIONS}; CREATE STREAM b ({COLUMNS}) {OPTIONS}"
JOIN = "FROM a [RANGE 12 SLIDE 4], b [RANGE 12 SLIDE 4] WHERE a.k = b.k"
Rows = list[tuple[Any, ...]]


class Life:
    """An engine on a state directory, and what its queries have answered in this life and those before."""

    def __init__(self, folder: Path, heard: dict[str, MemorySink]) -> None:
        self.engine = Engine(HereJobs(), CommitLog.open(LocalStore(folder)), shards=2, now=lambda: 0)
        self.catalog, self.heard = Catalog(), heard
        compile_script(SCRIPT, self.catalog)
        for stream in self.catalog.streams.values():
            self.engine.add_stream(stream)

    def add(self, name: str, text: str, **how: Any) -> None:
        query = StandingQuery(name, compile_query(text, self.catalog), **how)
        self.engine.add_query(query, self.heard.setdefault(name, MemorySink()))

    def push(self, *batches: tuple[str, Rows]) -> None:
        tables = [(s, pa.table(list(zip(*rows, strict=True)), schema=SCHEMA)) for s, rows in batches if rows]
        self.engine.epoch([Arrival(stream, table) for stream, table in tables])

    def end(self) -> None:
        self.engine.epoch(seals=["a", "b"])

    def parts(self, name: str) -> set[str]:
        query_group = self.engine.queries[name].bundle.query_group
        return set() if query_group is None else {part for _, part in query_group.parts}

    def kept(self) -> set[str]:
        """The names under which state is kept."""
        files = [each for refs in self.engine.last.chunks.values() for each in refs]
        return {name.partition("\0")[0] for each in files for name in each.operators if isinstance(name, str)}


def answers(sink: MemorySink) -> Counter[Any]:
    return Counter(tuple(row.values()) for row in sink.table().to_pylist())


def oracle(text: str, batches: list[tuple[str, Rows]]) -> Counter[Any]:
    return support.oracle(text, dict.fromkeys("ab", (COLUMNS, OPTIONS)), batches)


def assert_answers(life: Life, queries: dict[str, str]) -> None:
    """All queries have answered as the oracle does over the rows below."""
    life.engine.deliver()
    for name, text in queries.items():
        assert answers(life.heard[name]) == oracle(text, BATCHES)


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


@pytest.mark.part(40)
@pytest.mark.parametrize("seed", range(40))
def test_any_queries_at_once_are_each_by_itself(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    assert_each_by_itself(tmp_path, random, random_queries(random), random_batches(random, 10))


def assert_each_by_itself(
    folder: Path,
    random: Random,
    queries: dict[str, str],
    batches: list[tuple[str, Rows]],
    begun: Callable[[Life], None] = lambda _: None,
    between: Callable[[Path], None] = lambda _: None,
) -> None:
    """One query goes, and lives end without a word; each answers as the oracle does. `begun` looks at the
    first life when the first rows have come, `between` is called between two lives."""
    heard: dict[str, MemorySink] = {}
    life = Life(folder, heard)
    for name, text in queries.items():
        life.add(name, text)
    gone = random.choice([*queries, None])
    for place, batch in enumerate(batches):
        life.push(batch)
        if place == 0:
            begun(life)
        if place == len(batches) // 2 and gone is not None:
            life.engine.drop_query(gone)
            queries.pop(gone)
        if random.random() < 0.3:
            life.engine.log._lock.release()  # type: ignore[union-attr]
            between(folder)
            life = Life(folder, heard)
            for name, text in queries.items():
                life.add(name, text)
    life.end()
    life.engine.deliver()
    for name, text in queries.items():
        assert life.engine.queries[name].is_running, life.engine.queries[name].error
        assert answers(heard[name]) == oracle(text, batches), text


def runs(monkeypatch: pytest.MonkeyPatch, kind: type) -> list[Any]:
    """Every run of an operator of this kind."""
    found: list[Any] = []
    plain = kind.advance  # type: ignore[attr-defined]

    def advance(self: Any, *args: Any) -> Any:
        found.append(self)
        return plain(self, *args)

    monkeypatch.setattr(kind, "advance", advance)
    return found


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


def test_a_join_runs_once_for_all_queries_that_are_routed_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = Life(tmp_path, {})
    for name, text in FOUR.items():
        life.add(name, text)
    joins, sums = runs(monkeypatch, Joined), runs(monkeypatch, Running)
    life.push(*BATCHES[:2])
    life.push(*BATCHES[2:])
    assert len(joins) == len({id(each) for each in joins}) * 2 * 2, "each in two steps of two shards"
    assert len({id(each) for each in joins}) == 2, "`kinds` has its rows in one shard, the others in two"
    together = life.parts("sums") & life.parts("tops") & life.parts("many")
    assert len(together) == 1, "the join, with the columns that any of the three reads"
    assert len(life.parts("sums") & life.parts("many") - together) == 1, (
        "the sums, of which HAVING leaves some"
    )
    assert len({id(each) for each in sums}) == 2, "of `sums` and `many` together, and of `kinds`"
    assert life.parts("kinds") == set()
    assert all(part in life.kept() for part in life.parts("sums"))
    life.end()
    assert_answers(life, FOUR)


def test_a_join_over_the_longest_windows_serves_shorter_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RANGE 10 is as good as RANGE 12 for it only with other slides."""
    life = Life(tmp_path, {})
    queries = {f"last{r}": FOUR["sums"].replace("RANGE 12", f"RANGE {r}") for r in (4, 12, 12, 20, 400, 10)}
    for name, text in queries.items():
        life.add(name, text)
    joins = runs(monkeypatch, Joined)
    for batch in BATCHES:
        life.push(batch)
    alike = [life.parts(name) for name in queries if name != "last10"]
    assert len(set.intersection(*alike)) == 1
    assert life.parts("last10") == set()
    assert len({id(each) for each in joins}) == 2
    assert [life.engine.queries[name].bundle.query_group.sooner for name in ("last4", "last400")] == [
        (396,),
        (),
    ]
    life.end()
    assert_answers(life, queries)


def test_a_join_serves_windows_of_which_some_are_shorter_than_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as no window of it is more than twice as long as theirs, or all are by the same time."""
    life = Life(tmp_path, {})
    lengths = {"even": (12, 12), "left": (8, 12), "right": (12, 8), "short": (8, 8), "far": (4, 12)}
    queries = {
        name: FOUR["sums"].replace("a [RANGE 12", f"a [RANGE {one}").replace("b [RANGE 12", f"b [RANGE {two}")
        for name, (one, two) in lengths.items()
    }
    for name, text in queries.items():
        life.add(name, text)
    joins = runs(monkeypatch, Joined)
    for batch in BATCHES:
        life.push(batch)
    assert len(set.intersection(*(life.parts(name) for name in queries if name != "far"))) == 1
    assert life.parts("far") == set()
    assert len({id(each) for each in joins}) == 2
    sooner = [life.engine.queries[name].bundle.query_group.sooner for name in queries]
    assert sooner == [(), (4, 0), (0, 4), (4,), ()]
    life.end()
    assert_answers(life, queries)


def test_states_of_a_join_are_combined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever aggregates share a state, over whichever length of windows, with whatever else they read."""
    life, lifted = Life(tmp_path, {}), list[Argument]()
    values = ("SUM(b.v) AS x", "AVG(b.v) AS x, MAX(a.w) AS y", "MAX(a.w) AS x", "COUNT(*) AS x")
    texts = {
        f"q{number}": f"SELECT a.k, {each} {JOIN.replace('RANGE 12', f'RANGE {length}')} GROUP BY a.k"
        for number, (each, length) in enumerate(product(values, (12, 8)))
    }
    for name, text in texts.items():
        life.add(name, text)
    rows = Argument.rows

    def counted(self: Argument, frame: Any, *more: Any) -> Any:
        lifted.extend([self] if frame.height else [])
        return rows(self, frame, *more)

    monkeypatch.setattr(Argument, "rows", counted)
    life.push(*BATCHES[:2])
    life.push(*BATCHES[2:])
    life.end()
    times = Counter(lifted)
    assert len(times) == 3, "values to sum up and values to compare, for four queries each, and rows to count"
    assert max(times.values()) <= 6, "at most once in each of three steps in each of two shards"
    monkeypatch.undo()
    assert_answers(life, texts)


def test_a_part_stays_as_long_as_anybody_has_it(tmp_path: Path) -> None:
    life = Life(tmp_path, {})
    for name in ("sums", "tops"):
        life.add(name, FOUR[name])
    life.push(*BATCHES[:2])
    (join,) = life.parts("sums")
    life.engine.drop_query("sums")
    life.push(*BATCHES[2:3])
    assert join in life.kept()
    life.engine.drop_query("tops")
    life.add("alone", "SELECT a.k FROM a [RANGE 5]")
    life.push(*BATCHES[3:])
    life.push(("a", [(1, 1, 1, 30)]))
    assert join not in life.kept()


def test_who_sees_something_else_or_finds_no_join_is_by_itself(tmp_path: Path) -> None:
    life = Life(tmp_path, {})
    life.add("sums", FOUR["sums"])
    life.add("kinds", FOUR["kinds"])
    life.push(*BATCHES[:1])
    life.add("tops", FOUR["tops"])
    life.push(*BATCHES[1:])
    assert all(life.engine.queries[name].member is None for name in ("sums", "kinds", "tops"))


def test_a_query_that_fails_leaves_the_part_to_the_others(tmp_path: Path) -> None:
    life = Life(tmp_path, {})
    life.add("fails", f"SELECT a.k, SUM(1 / (a.v - 2)) AS ratio {JOIN} GROUP BY a.k")
    life.add("tops", FOUR["tops"])
    for batch in BATCHES:
        life.push(batch)
    life.end()
    life.engine.deliver()
    assert not life.engine.queries["fails"].is_running
    assert answers(life.heard["tops"]) == oracle(FOUR["tops"], BATCHES)


@pytest.mark.parametrize(
    ("values", "condition"),
    [
        ("SUM(10 % (b.t - a.t - 8)) AS x", ""),
        ("MAX(10 % (b.t - a.t - 8)) AS x, COUNT(*) AS n", ""),
        ("COUNT(*) AS n", " AND 10 % (b.t - a.t - 8) < 20"),
    ],
)
def test_a_query_does_not_fail_for_rows_of_longer_windows(
    tmp_path: Path, values: str, condition: str
) -> None:
    """Rows that are 8 apart meet in the longer windows only, and stop the query that divides by 0 there."""
    life = Life(tmp_path, {})
    ratio = f"SELECT a.k, {values} {JOIN}{condition} GROUP BY a.k"
    for length in (12, 4):
        life.add(f"last{length}", ratio.replace("RANGE 12", f"RANGE {length}"))
    batches: list[tuple[str, Rows]] = [
        ("a", [(1, 0, 0, 0)]),
        ("b", [(1, 0, 0, 1), (1, 0, 0, 8), (2, 0, 0, 20)]),
    ]
    life.push(*batches)
    life.push(("a", [(2, 0, 0, 20)]))
    life.end()
    life.engine.deliver()
    assert life.engine.queries["last4"].bundle.query_group.sooner == (() if condition else (8,))
    assert [life.engine.queries[name].is_running for name in ("last12", "last4")] == [False, True]
    text = ratio.replace("RANGE 12", "RANGE 4")
    assert answers(life.heard["last4"]) == oracle(text, [*batches, ("a", [(2, 0, 0, 20)])])


def test_what_a_part_took_is_shared_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Joined.advance

    def slow(self: Any, *args: Any) -> Any:
        sleep(0.2)
        return plain(self, *args)

    monkeypatch.setattr(Joined, "advance", slow)
    life = Life(tmp_path, {})
    for name in ("sums", "tops"):
        life.add(name, FOUR[name])
    life.push(*BATCHES[:2])
    one, other = (life.engine.seconds[life.engine.queries[name].id] for name in ("sums", "tops"))
    assert one > 0.18
    assert other > 0.18


def test_what_is_in_common_is_told(tmp_path: Path) -> None:
    life = Life(tmp_path, {})
    for name in ("sums", "many", "tops"):
        life.add(name, FOUR[name])
    # the same windows and nothing else
    life.add(
        "pairs",
        f"SELECT a.k, COUNT(*) AS n {JOIN.replace('a.k = b.k', 'a.k = b.k AND a.v = 1')} GROUP BY a.k",
    )
    life.push(*BATCHES[:2])
    engine = life.engine
    told = {name: record.physical.sharing.brief for name, record in engine.queries.items()}
    assert told == {
        "sums": "γ, running with 1; ⋈ with 2; states of ⋈ with 2 by SS3, CS4",
        "many": "γ, running with 1; ⋈ with 2; states of ⋈ with 2 by SS3, CS4",
        "tops": "⋈ with 2; states of ⋈ with 2 by SS3, CS4",
        "pairs": "rows with 3",
    }
    sizes = observed(engine.store, engine.last, engine.queries["tops"])
    assert any(line.startswith("window: 3 rows") for line in sizes), sizes
    engine.drop_query("many")
    engine.drop_query("tops")
    engine.note_sharing()
    assert engine.queries["sums"].physical.sharing.brief == "rows with 1"
    engine.drop_query("pairs")
    engine.note_sharing()
    assert engine.queries["sums"].physical.sharing.brief is None


def test_queries_that_group_otherwise_have_the_join_in_common(tmp_path: Path) -> None:
    life = Life(tmp_path, {})
    texts = {
        "one": f"SELECT a.k, COUNT(*) AS n {JOIN} GROUP BY a.k",
        "two": f"SELECT a.k, a.w, COUNT(*) AS n {JOIN} GROUP BY a.k, a.w",
        "none": f"SELECT RSTREAM(a.k, b.v) {JOIN}",
        "other": f"SELECT b.w, COUNT(*) AS n {JOIN} GROUP BY b.w",  # whose groups are not in one shard
        "all": f"SELECT COUNT(*) AS n {JOIN}",
    }
    for name, text in texts.items():
        life.add(name, text)
    life.push(*BATCHES[:2])
    told = {name: record.physical.sharing.brief for name, record in life.engine.queries.items()}
    assert told == {
        **dict.fromkeys(("one", "two", "none"), "⋈ with 2"),
        **dict.fromkeys(("other", "all"), "⋈ with 1"),
    }
    life.push(*BATCHES[2:])
    life.end()
    assert_answers(life, texts)


def test_rules_are_told_by_groups_and_lengths(tmp_path: Path) -> None:
    def text(what: str, one: int, other: int, by: str = "GROUP BY a.k") -> str:
        windows = f"a [RANGE {one} SLIDE 2], b [RANGE {other} SLIDE 2]"
        return f"SELECT {what} FROM {windows} WHERE a.k = b.k {by}"

    life = Life(tmp_path, {})
    for name, query in {
        "long": text("a.k, SUM(b.v) AS total", 12, 12),
        "least": text("a.k, MIN(b.v) AS least", 12, 12),
        "short": text("a.k, SUM(b.v) AS total", 8, 8),
        "uneven": text("a.k, SUM(b.v) AS total", 8, 12),
        "other": text("a.w, COUNT(*) AS n", 12, 12, "GROUP BY a.w"),
        "listed": text("a.k, MEDIAN(b.v) AS middle", 12, 12),
    }.items():
        life.add(name, query)
    life.push(*BATCHES[:2])
    told = {
        name: [str(each) for each in record.physical.sharing.parts if each.what.endswith("⋈")]
        for name, record in life.engine.queries.items()
    }
    assert told == {
        "long": ["⋈ with 4", "states of ⋈ with 3 by SS3, CS4, CS5"],
        "least": ["⋈ with 4", "states of ⋈ with 3 by SS3, CS4, CS5"],
        "short": ["⋈ with 4", "states of ⋈ with 3 by SS3, CS5"],
        "uneven": ["⋈ with 4", "states of ⋈ with 3 by SS3"],  # its results end one by one
        "listed": ["⋈ with 4"],
        "other": [],  # its rows go elsewhere
    }


def test_a_query_with_an_archive_has_ends_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "kept": "SELECT a.k, b.v AS other FROM a [RANGE 9], b [RANGE 9] WHERE a.k = b.k",
        "plain": "SELECT b.w AS kind, a.k FROM a [RANGE 9], b [RANGE 9] WHERE a.k = b.k",
    }
    joins = runs(monkeypatch, Joined)
    life = Life(tmp_path / "one", {})
    for name, text in texts.items():
        life.add(name, text)
    life.push(*BATCHES[:2])
    assert len({id(each) for each in joins}) == 1
    joins.clear()
    life = Life(tmp_path / "two", {})
    for name, text in texts.items():
        life.add(name, text)
    life.engine.epoch()  # they are a query group before anything comes
    record = life.engine.queries["kept"]
    life.engine.queries["kept"] = record.carrying()
    for batch in BATCHES:
        life.push(batch)
    assert len({id(each) for each in joins}) == 2
    life.end()
    assert_answers(life, texts)


def test_a_script_is_told_what_its_queries_will_share() -> None:
    texts = {name: FOUR[name] for name in ("sums", "tops", "kinds")}
    script = ";\n".join([SCRIPT, *(f"CREATE QUERY {name} AS {text}" for name, text in texts.items())])
    found = {
        each.name: [line for line in each.runs if line.startswith("share")]
        for each in explain_script(script, Catalog())
    }
    told = [
        "share   runs ⋈ once, for it and 1 other query: the same part of their plans",
        "share   shares states of ⋈ with 1 query by SS3, CS4",
    ]
    assert found == {"sums": told, "tops": told, "kinds": []}


def test_aggregates_of_users_are_told_to_be_by_themselves() -> None:
    parts = {"init": lambda: 0, "step": max, "merge": max, "final": lambda state: state}
    wr.aggregate(name="topmost", returns="BIGINT", takes="BIGINT", **parts)
    try:
        mine = f"SELECT a.k, topmost(b.v) AS top {JOIN} GROUP BY a.k"
        script = f"{SCRIPT}; CREATE QUERY sums AS {FOUR['sums']}; CREATE QUERY mine AS {mine}"
        runs = [line for each in explain_script(script, Catalog()) for line in each.runs]
    finally:
        user.forget("topmost")
    assert not any(line.startswith("share") for line in runs)
