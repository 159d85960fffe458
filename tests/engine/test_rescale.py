"""Another number of shards changes no answer: state is routed anew by key, and one commit switches."""

from __future__ import annotations

from contextlib import redirect_stdout, suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.relational.more_plans import cases
from tests.kernels.relational.scripts import Step, cuts, scripts
from tests.spark.test_relational import any_plans, assert_executor_agrees
from tests.spark.test_shards import compiled, histories, queries
from tests.support.crashes import Crash, crashing_at
from tests.support.history import BATCHES, MEDIANS, NESTED, STREAM, SUMS, as_rows
from tests.support.life import Life
from tests.support.oracle import oracle
from tests.support.two_streams import assert_each_by_itself, random_batches, random_queries
from tests.support.world import World

from windrow.cli.main import main
from windrow.engine.explain import declared
from windrow.engine.rescale import rescale
from windrow.errors import StateError
from windrow.language.compile import compile_query
from windrow.physical.partitioning import placement_of
from windrow.state.history import History
from windrow.state.log import CommitLog
from windrow.state.store import LocalStore
from windrow.testing.spark_executor import SparkExecutor

if TYPE_CHECKING:
    from pathlib import Path

    from windrow.algebra.plan import Emit

MOST = 5
#: what was refused by name
REFUSED: list[str] = []


class Rescaled(SparkExecutor):
    """At every restart it goes on with another number of shards."""

    def __init__(self, emit: Emit, seed: int) -> None:
        self._random = Random(seed)
        super().__init__(emit, spark=False, shards=self._random.randint(1, MOST))

    def restart(self, shards: int | None = None) -> None:
        shards = self._random.randint(1, MOST)
        try:
            super().restart(shards)
        except StateError as refusal:
            if refusal.code != "cannot-rescale":
                raise
            REFUSED.append(refusal.message)
            super().restart()
        else:
            assert self.engine.shards == shards


def assert_rescaled_agrees(emit: Emit, script: list[Step], seed: int) -> int:
    """All changes of a history, cut into shards anew between any two steps."""
    return assert_executor_agrees(Rescaled(emit, seed), script, Random(seed))


seeds = st.integers(0, 1 << 16)


@pytest.mark.thorough
@given(plan=any_plans, script=st.one_of(scripts(), cuts()), seed=seeds)
@settings(max_examples=30)
def test_states_of_random_plans_are_routed_anew(plan: Emit, script: list[Step], seed: int) -> None:
    assert_rescaled_agrees(plan, script, seed)


@pytest.mark.thorough
@given(case=st.one_of(cases(), cases(union=True)), seed=seeds)
@settings(max_examples=30)
def test_policies_kept_rows_unions_and_the_rest(case: tuple[Emit, list[Step]], seed: int) -> None:
    assert_rescaled_agrees(*case, seed)


@given(plan=queries(), script=histories(), seed=seeds)
@settings(max_examples=8)
def test_plans_that_are_cut_into_shards(plan: Emit, script: list[Any], seed: int) -> None:
    assert_rescaled_agrees(plan, script, seed)


#: windows of few panes and of many, counts of values, totals, several levels, no key
PANES = [
    "SELECT k, COUNT(*) AS n, MAX(v) AS most FROM r [RANGE {} SLIDE {}] GROUP BY k",
    "SELECT k, v, COUNT(*) AS n, SUM(v) AS total FROM r [RANGE {} SLIDE {}] GROUP BY k, v",
    "SELECT k, MEDIAN(v) AS middle FROM r [RANGE {} SLIDE {}] GROUP BY k",
    "SELECT k, MAX(v) AS most FROM r [LANDMARK SLIDE {1}] GROUP BY k",
    "SELECT MAX(n) AS top FROM (SELECT k, COUNT(*) AS n FROM r [RANGE {} SLIDE {}] GROUP BY k)"
    " [RANGE 12 SLIDE 6]",
    "SELECT MAX(v) AS most FROM r [RANGE {} SLIDE {}]",
]
some_rows = st.tuples(st.sampled_from([None, 0, 1, 2, 3, 4, 5]), st.integers(0, 4), st.integers(-3, 3))


@given(
    text=st.sampled_from(PANES),
    slide=st.integers(1, 3),
    slides=st.sampled_from([1, 2, 5, 40, 50]),
    batches=st.lists(
        st.tuples(st.sampled_from([0, 1, 3, 5, 20, 60]), st.lists(some_rows, min_size=1, max_size=6)),
        max_size=12,
    ),
    seed=seeds,
)
@settings(max_examples=8)
def test_panes_are_routed_anew(text: str, slide: int, slides: int, batches: list[Any], seed: int) -> None:
    script: list[Any] = []
    now = 0
    for later, rows in batches:
        now += later
        script += [("push", ("r", [(k, v, now + t) for k, v, t in rows])), ("take", ())]
    plan = compiled(text.format(slides * slide, slide))
    refused = len(REFUSED)
    assert_rescaled_agrees(plan, [*script, ("finish", ()), ("take", ())], seed)
    assert len(REFUSED) == refused, REFUSED[-1]


#: results that are known by numbers of rows, by values of tables and groups, and by when these came
STAYING = [
    "SELECT ISTREAM(x.k, y.v) FROM r [RANGE 5 INTERNAL] x, relation y WHERE x.k = y.k",
    "SELECT x.k, x.v, y.v FROM r [RANGE 5 INTERNAL] x, s [RANGE 4] y WHERE x.k = y.k",
    "SELECT ISTREAM(x.k, COUNT(*) AS n) FROM r [RANGE 6 INTERNAL] x, s [RANGE 4] y WHERE x.k = y.k"
    " GROUP BY x.k",
    "SELECT k, v FROM (SELECT k, v FROM r [RANGE 6 INTERNAL] UNION ALL SELECT k, v FROM s [RANGE 5])",
    # results wait for their reports without the column that they were routed by
    "SELECT y.v AS other FROM r [RANGE 6 SLIDE 4] x, s [RANGE 12 SLIDE 2] y WHERE x.k = y.k",
]


@pytest.mark.part(5)
@pytest.mark.parametrize("text", STAYING)
def test_results_that_stay_are_routed_anew(text: str) -> None:
    """Keys are strings: what tells rows apart is not all numbers."""
    columns = "k STRING, v BIGINT"
    streams = dict.fromkeys("rs", (f"{columns}, t BIGINT", "WATTR t SLACK 2"))
    plan = compile_query(text, declared(streams, dict.fromkeys(("relation", "nrr"), columns)))
    chance, refused = Random(8), len(REFUSED)
    used = [name for name in ("r", "s") if f"FROM {name} " in text or f", {name} " in text]
    script: list[Any] = []
    if "relation" in text:
        script.append(("change", ("relation", -5, [(f"k{n}", n) for n in range(4)], [])))
    for around in range(0, 30, 5):
        for name in used:
            picked = [(chance.choice([None, *"012345"]), chance.randint(0, 2)) for _ in range(5)]
            rows = [(k and f"k{k}", v, around + chance.randint(-2, 2)) for k, v in picked]
            script.append(("push", (name, rows)))
        script.append(("take", ()))
    assert placement_of(plan)
    assert assert_rescaled_agrees(plan, [*script, ("finish", ()), ("take", ())], 8)
    assert len(REFUSED) == refused, REFUSED[-1]


# ------------------------------------------------------------ what queries share, and crashes


@pytest.mark.part(8)
@pytest.mark.parametrize("seed", range(16))
def test_what_queries_share_is_routed_anew(tmp_path: Path, seed: int) -> None:
    """Common subplans, shared state, and what one query leaves behind, over other shards in every life."""
    random, shards = Random(seed), Random(seed)

    def between(folder: Path) -> None:
        with CommitLog.open(LocalStore(folder)) as log:
            rescale(log, shards.randint(1, MOST))

    queries = random_queries(random)
    assert_each_by_itself(tmp_path, random, queries, random_batches(random, 10), between=between)


#: one that shares its state, and one of two levels
FEW = {"memory": MEDIANS, "callback": NESTED}


def begun(world: World, batches: int) -> None:
    """A life with some batches, that just ends."""
    with redirect_stdout(world.printed):
        life = world.open()
        life.follow(BATCHES[:batches])
        life.engine.deliver()
        world.listen(life)
        life.vanish()


def route(world: World, shards: int) -> None:
    with CommitLog.open(LocalStore(world.state)) as log:
        rescale(log, shards)


def shards_of(world: World) -> int:
    return History(LocalStore(world.state)).latest().shards


@pytest.mark.part(5)
@pytest.mark.parametrize(("shards", "batches"), [(1, 1), (3, 3), (4, 4), (1, 5), (5, 7)])
def test_queries_that_share_and_rows_that_wait(tmp_path: Path, shards: int, batches: int) -> None:
    world = World(tmp_path)
    begun(world, batches)
    route(world, shards)
    assert shards_of(world) == shards
    world.live()
    world.check()


@pytest.mark.part(4)
@pytest.mark.parametrize(
    "point",
    [
        *("chunk-partly-written", "chunk-written", "before-commit", "manifest-temp-written"),
        *("manifest-linked", "before-directory-sync", "after-directory-sync", "after-commit"),
    ],
)
def test_a_crash_leaves_the_old_number_or_the_new_one(tmp_path: Path, point: str) -> None:
    for passage in (1, 4) if point == "chunk-written" else (1,):
        world = World(tmp_path / str(passage), FEW)
        begun(world, 4)
        with crashing_at(point, passage, world.copy) as crash, suppress(Crash):
            route(world, 3)
        assert crash.happened or passage > 1
        if crash.happened:
            world.go_back()
        assert shards_of(world) in ((2, 3) if crash.happened else (3,))
        world.live()
        world.check()


# ------------------------------------------------------------ at a start, and from the command line


def test_a_start_with_another_number(tmp_path: Path) -> None:
    queries = {"sums": SUMS, "medians": MEDIANS}
    declared = "; ".join([STREAM, *(f"CREATE QUERY {name} AS {text}" for name, text in queries.items())])
    found: dict[str, list[Any]] = {name: [] for name in queries}
    for number, batch in enumerate(BATCHES):
        with Life(tmp_path, shards=1 + number % 4) as w:
            assert w.engine.shards == 1 + number % 4
            w.sql(declared)
            w.push(*batch)
            if number == len(BATCHES) - 1:
                w.end()
            for name in queries:
                found[name] += w.rows(name)
    for name, text in queries.items():
        assert sorted(found[name]) == as_rows(oracle(text)), name


def test_the_command_line_changes_the_number_of_shards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World(tmp_path, FEW)
    begun(world, 3)
    state = str(world.state)
    command = ["rescale", "--state", state, "--shards"]
    code, told, _ = _told(capsys, *command, "5")
    assert (code, told.startswith(f"{state} has 5 shards instead of 2, from commit ")) == (0, True)
    assert _told(capsys, *command, "5")[1] == f"{state} has 5 shards already\n"
    code, _, refusal = _told(capsys, *command, "0")
    assert code == 2
    assert "--shards" in refusal
    with CommitLog.open(LocalStore(world.state)):
        assert "error[two-owners]" in _told(capsys, *command, "2")[2]
    (tmp_path / "empty").mkdir()
    for folder, refusal in (("empty", "no-state"), ("nowhere", "directory-missing")):
        asked = _told(capsys, "rescale", "--state", str(tmp_path / folder), "--shards", "2")
        assert f"error[{refusal}]" in asked[2]
    assert shards_of(world) == 5
    world.live()
    world.check()


def _told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[Any, str, str]:
    capsys.readouterr()
    with pytest.raises(SystemExit) as left:
        main(list(arguments))
    out, err = capsys.readouterr()
    return left.value.code, out, err


def test_a_number_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="there cannot be 0 shards"):
        Life(tmp_path, shards=0)
