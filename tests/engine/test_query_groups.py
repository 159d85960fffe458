"""Queries with parts of their plans in common: a part runs once, and nobody can tell from the answers."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.oracle import oracle
from tests.support.two_streams import (
    BATCHES,
    COLUMNS,
    FOUR,
    JOIN,
    OPTIONS,
    STREAMS,
    Rows,
    assert_answers,
    assert_each_by_itself,
    kept,
    open_life,
    parts,
    random_batches,
    random_queries,
    runs,
)

import windrow as wr
from windrow.algebra.aggregates import user
from windrow.engine.explain import explain_script
from windrow.engine.views import observed
from windrow.kernels.aggregates.measures import Argument
from windrow.kernels.relational.aggregate.totals import Running
from windrow.kernels.relational.join.multiway import Joined
from windrow.language.catalog import Catalog

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = "; ".join(f"CREATE STREAM {name} ({COLUMNS}) {OPTIONS}" for name in STREAMS)


@pytest.mark.part(40)
@pytest.mark.parametrize("seed", range(40))
def test_any_queries_at_once_are_each_by_itself(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    assert_each_by_itself(tmp_path, random, random_queries(random), random_batches(random, 10))


def test_a_join_runs_once_for_all_queries_that_are_routed_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = open_life(tmp_path, FOUR)
    joins, sums = runs(monkeypatch, Joined), runs(monkeypatch, Running)
    life.take(*BATCHES[:2])
    life.take(*BATCHES[2:])
    assert len(joins) == len({id(each) for each in joins}) * 2 * 2, "each in two steps of two shards"
    assert len({id(each) for each in joins}) == 2, "`kinds` has its rows in one shard, the others in two"
    together = parts(life, "sums") & parts(life, "tops") & parts(life, "many")
    assert len(together) == 1, "the join, with the columns that any of the three reads"
    assert len(parts(life, "sums") & parts(life, "many") - together) == 1, (
        "the sums, of which HAVING leaves some"
    )
    assert len({id(each) for each in sums}) == 2, "of `sums` and `many` together, and of `kinds`"
    assert parts(life, "kinds") == set()
    assert all(part in kept(life) for part in parts(life, "sums"))
    life.end()
    assert_answers(life, FOUR)


def test_a_join_over_the_longest_windows_serves_shorter_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RANGE 10 is as good as RANGE 12 for it only with other slides."""
    life = open_life(tmp_path)
    queries = {f"last{r}": FOUR["sums"].replace("RANGE 12", f"RANGE {r}") for r in (4, 12, 12, 20, 400, 10)}
    for name, text in queries.items():
        life.add(name, text)
    joins = runs(monkeypatch, Joined)
    for batch in BATCHES:
        life.take(batch)
    alike = [parts(life, name) for name in queries if name != "last10"]
    assert len(set.intersection(*alike)) == 1
    assert parts(life, "last10") == set()
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
    life = open_life(tmp_path)
    lengths = {"even": (12, 12), "left": (8, 12), "right": (12, 8), "short": (8, 8), "far": (4, 12)}
    queries = {
        name: FOUR["sums"].replace("a [RANGE 12", f"a [RANGE {one}").replace("b [RANGE 12", f"b [RANGE {two}")
        for name, (one, two) in lengths.items()
    }
    for name, text in queries.items():
        life.add(name, text)
    joins = runs(monkeypatch, Joined)
    for batch in BATCHES:
        life.take(batch)
    assert len(set.intersection(*(parts(life, name) for name in queries if name != "far"))) == 1
    assert parts(life, "far") == set()
    assert len({id(each) for each in joins}) == 2
    sooner = [life.engine.queries[name].bundle.query_group.sooner for name in queries]
    assert sooner == [(), (4, 0), (0, 4), (4,), ()]
    life.end()
    assert_answers(life, queries)


def test_states_of_a_join_are_combined_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever aggregates share a state, over whichever length of windows, with whatever else they read."""
    life, lifted = open_life(tmp_path), list[Argument]()
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
    life.take(*BATCHES[:2])
    life.take(*BATCHES[2:])
    life.end()
    times = Counter(lifted)
    assert len(times) == 3, "values to sum up and values to compare, for four queries each, and rows to count"
    assert max(times.values()) <= 6, "at most once in each of three steps in each of two shards"
    monkeypatch.undo()
    assert_answers(life, texts)


def test_a_part_stays_as_long_as_anybody_has_it(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    for name in ("sums", "tops"):
        life.add(name, FOUR[name])
    life.take(*BATCHES[:2])
    (join,) = parts(life, "sums")
    life.engine.drop("QUERY", "sums")
    life.take(*BATCHES[2:3])
    assert join in kept(life)
    life.engine.drop("QUERY", "tops")
    life.add("alone", "SELECT a.k FROM a [RANGE 5]")
    life.take(*BATCHES[3:])
    life.take(("a", [(1, 1, 1, 30)]))
    assert join not in kept(life)


def test_who_sees_something_else_or_finds_no_join_is_by_itself(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    life.add("sums", FOUR["sums"])
    life.add("kinds", FOUR["kinds"])
    life.take(*BATCHES[:1])
    life.add("tops", FOUR["tops"])
    life.take(*BATCHES[1:])
    assert all(life.engine.queries[name].member is None for name in ("sums", "kinds", "tops"))


def test_a_query_that_fails_leaves_the_part_to_the_others(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    life.add("fails", f"SELECT a.k, SUM(1 / (a.v - 2)) AS ratio {JOIN} GROUP BY a.k")
    life.add("tops", FOUR["tops"])
    for batch in BATCHES:
        life.take(batch)
    life.end()
    life.engine.deliver()
    assert not life.engine.queries["fails"].is_running
    assert life.answers("tops") == oracle(FOUR["tops"], BATCHES, STREAMS)


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
    life = open_life(tmp_path)
    ratio = f"SELECT a.k, {values} {JOIN}{condition} GROUP BY a.k"
    for length in (12, 4):
        life.add(f"last{length}", ratio.replace("RANGE 12", f"RANGE {length}"))
    batches: list[tuple[str, Rows]] = [
        ("a", [(1, 0, 0, 0)]),
        ("b", [(1, 0, 0, 1), (1, 0, 0, 8), (2, 0, 0, 20)]),
    ]
    life.take(*batches)
    life.take(("a", [(2, 0, 0, 20)]))
    life.end()
    life.engine.deliver()
    assert life.engine.queries["last4"].bundle.query_group.sooner == (() if condition else (8,))
    assert [life.engine.queries[name].is_running for name in ("last12", "last4")] == [False, True]
    text = ratio.replace("RANGE 12", "RANGE 4")
    assert life.answers("last4") == oracle(text, [*batches, ("a", [(2, 0, 0, 20)])], STREAMS)


def test_what_a_part_took_is_shared_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Joined.advance

    def slow(self: Any, *args: Any) -> Any:
        sleep(0.2)
        return plain(self, *args)

    monkeypatch.setattr(Joined, "advance", slow)
    life = open_life(tmp_path)
    for name in ("sums", "tops"):
        life.add(name, FOUR[name])
    life.take(*BATCHES[:2])
    one, other = (life.engine.seconds[life.engine.queries[name].id] for name in ("sums", "tops"))
    assert one > 0.18
    assert other > 0.18


def test_what_is_in_common_is_told(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    for name in ("sums", "many", "tops"):
        life.add(name, FOUR[name])
    # the same windows and nothing else
    life.add(
        "pairs",
        f"SELECT a.k, COUNT(*) AS n {JOIN.replace('a.k = b.k', 'a.k = b.k AND a.v = 1')} GROUP BY a.k",
    )
    life.take(*BATCHES[:2])
    engine = life.engine
    told = {name: record.physical.sharing.brief for name, record in engine.queries.items()}
    assert told == {
        "sums": "γ, running with 1; ⋈ with 2; states of ⋈ with 2 by SS3, CS4",
        "many": "γ, running with 1; ⋈ with 2; states of ⋈ with 2 by SS3, CS4",
        "tops": "⋈ with 2; states of ⋈ with 2 by SS3, CS4",
        "pairs": "rows with 3",
    }
    sizes = observed(engine.store, engine.last, engine.queries["tops"], engine.common)
    assert any(line.startswith("window: 3 rows") for line in sizes), sizes
    engine.drop("QUERY", "many")
    engine.drop("QUERY", "tops")
    engine.note_sharing()
    assert engine.queries["sums"].physical.sharing.brief == "rows with 1"
    engine.drop("QUERY", "pairs")
    engine.note_sharing()
    assert engine.queries["sums"].physical.sharing.brief is None


def test_queries_that_group_otherwise_have_the_join_in_common(tmp_path: Path) -> None:
    life = open_life(tmp_path)
    texts = {
        "one": f"SELECT a.k, COUNT(*) AS n {JOIN} GROUP BY a.k",
        "two": f"SELECT a.k, a.w, COUNT(*) AS n {JOIN} GROUP BY a.k, a.w",
        "none": f"SELECT RSTREAM(a.k, b.v) {JOIN}",
        "other": f"SELECT b.w, COUNT(*) AS n {JOIN} GROUP BY b.w",  # whose groups are not in one shard
        "all": f"SELECT COUNT(*) AS n {JOIN}",
    }
    for name, text in texts.items():
        life.add(name, text)
    life.take(*BATCHES[:2])
    told = {name: record.physical.sharing.brief for name, record in life.engine.queries.items()}
    assert told == {
        **dict.fromkeys(("one", "two", "none"), "⋈ with 2"),
        **dict.fromkeys(("other", "all"), "⋈ with 1"),
    }
    life.take(*BATCHES[2:])
    life.end()
    assert_answers(life, texts)


def test_rules_are_told_by_groups_and_lengths(tmp_path: Path) -> None:
    def text(what: str, one: int, other: int, by: str = "GROUP BY a.k") -> str:
        windows = f"a [RANGE {one} SLIDE 2], b [RANGE {other} SLIDE 2]"
        return f"SELECT {what} FROM {windows} WHERE a.k = b.k {by}"

    life = open_life(tmp_path)
    for name, query in {
        "long": text("a.k, SUM(b.v) AS total", 12, 12),
        "least": text("a.k, MIN(b.v) AS least", 12, 12),
        "short": text("a.k, SUM(b.v) AS total", 8, 8),
        "uneven": text("a.k, SUM(b.v) AS total", 8, 12),
        "other": text("a.w, COUNT(*) AS n", 12, 12, "GROUP BY a.w"),
        "listed": text("a.k, MEDIAN(b.v) AS middle", 12, 12),
    }.items():
        life.add(name, query)
    life.take(*BATCHES[:2])
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
    life = open_life(tmp_path / "one", texts)
    life.take(*BATCHES[:2])
    assert len({id(each) for each in joins}) == 1
    joins.clear()
    life = open_life(tmp_path / "two", texts)
    life.engine.epoch()  # they are a query group before anything comes
    record = life.engine.queries["kept"]
    life.engine.queries["kept"] = record.carrying()
    for batch in BATCHES:
        life.take(batch)
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
