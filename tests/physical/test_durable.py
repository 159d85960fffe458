"""A state knows its plan: it is resumed as recorded, whatever rules and names there are then, or refused."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from tests.support.sample_rows import sample

from windrow.algebra.plan import Emit
from windrow.engine.engine import Engine
from windrow.engine.explain import declared
from windrow.errors import QueryError, StateError
from windrow.execution import bundle
from windrow.kernels.relational import implementations
from windrow.kernels.relational.distinct import DeltaStar
from windrow.kernels.relational.join.multiway import Joined
from windrow.language.compile import compile_query
from windrow.optimizer import optimizer as alternatives, optimizer as optimise
from windrow.optimizer.optimizer import RULES, normalise
from windrow.physical import PhysicalPlan
from windrow.testing.spark_executor import SparkExecutor

COLUMNS = "k BIGINT, v BIGINT, ts BIGINT"
STREAMS = dict.fromkeys(("a", "b", "c"), (COLUMNS, "WATTR ts SLACK 2"))
TABLES = {"t": ("k BIGINT, name STRING", "RELATION KEY (k)")}
#: every rule changes at least one of these
QUERIES = {
    "distinct": "SELECT DISTINCT k FROM a [RANGE 8] WHERE v + 0 > 1 - 1 AND 2 < k + 3",
    "join": "SELECT a.v, b.v AS w FROM a [RANGE 8] JOIN b [RANGE 9] ON a.k = b.k WHERE a.v > 0",
    "three-way join": (
        "SELECT a.v, c.v AS w FROM a [RANGE 8], b [RANGE 5], c [RANGE 8] WHERE a.k = b.k AND b.k = c.k"
    ),
    "negation": (
        "SELECT a.k, c.v FROM a [RANGE 9], c [RANGE 9] WHERE a.k = c.k"
        " AND NOT EXISTS (SELECT * FROM b [RANGE 7] WHERE b.k = a.k)"
    ),
    "joins in a row": (
        "SELECT a.v, c.v AS w FROM a [RANGE 8] JOIN b [RANGE 5] ON a.k = b.k JOIN c [RANGE 8] ON b.k = c.k"
    ),
    "queries within": (
        "SELECT DISTINCT y FROM (SELECT x AS y, v FROM (SELECT k + 1 AS x, v FROM a [RANGE 8] WHERE v > 0) p"
        " WHERE v < 4 AND TRUE) q WHERE y > 0"
    ),
    "window over both": "SELECT k FROM (SELECT k FROM a [RANGE 8] UNION ALL SELECT k FROM b [RANGE 8]) u",
    "union": (
        "SELECT k FROM a [RANGE 8] UNION ALL (SELECT k FROM b [RANGE 8] UNION ALL SELECT k FROM c [RANGE 8])"
    ),
    "except": "SELECT k FROM a [RANGE 8] EXCEPT ALL SELECT k FROM b [RANGE 6]",
    "group": "SELECT k, SUM(v) AS s, MAX(v) AS m FROM a [RANGE 8] WHERE v > 0 GROUP BY k",
    "panes": "SELECT k, SUM(v) AS s FROM a [RANGE 8 SLIDE 4] WHERE v > 0 GROUP BY k",
    "nested": (
        "SELECT MAX(n) AS most FROM (SELECT k, COUNT(*) AS n FROM a [RANGE 4 SLIDE 4] GROUP BY k)"
        " [RANGE 8 SLIDE 4]"
    ),
    "rows": "SELECT k, v FROM a [ROWS 3] WHERE v > 0",
    "session": "SELECT k, COUNT(*) AS n FROM a [SESSION 3 PARTITION BY k] GROUP BY k",
    "table": "SELECT a.k, name FROM a [RANGE 8] JOIN t ON a.k = t.k WHERE a.v > 0",
    "join with a table": (
        "SELECT a.k, name, b.v FROM a [RANGE 8], b [RANGE 8], t WHERE a.k = t.k AND a.k = b.k"
    ),
    "distinct join": "SELECT DISTINCT a.k, b.v FROM a [RANGE 8], b [RANGE 6] WHERE a.k = b.k",
}


def planned(name: str) -> Emit:
    return compile_query(QUERIES[name], declared(STREAMS, TABLES))


def rows(stream: str, begin: int, count: int = 6) -> list[tuple[Any, ...]]:
    """Rows that often meet, and whose windows overlap the cut between two lives."""
    shift = ord(stream) - ord("a")
    return [((n + shift) % 4, (n * 3 + shift) % 5, begin + n) for n in range(count)]


def pushed(executor: SparkExecutor, begin: int) -> None:
    for stream in executor.engine.queries["query"].streams:
        executor.push(stream, rows(stream, begin))


def answers(executor: SparkExecutor) -> Counter[Any]:
    return Counter((c.op, c.row, c.at) for c in executor.take())


def first_life(emit: Emit, folder: Path) -> Counter[Any]:
    """It leaves a state directory."""
    one = SparkExecutor(emit, folder, spark=False)
    for name, table in one.engine.queries["query"].tables.items():
        one.update(name, 0, sample(table.schema, count=2), [])
    pushed(one, 0)
    found = answers(one)
    one.engine.log.close()
    return found


def second_life(emit: Emit, folder: Path) -> Counter[Any]:
    """It goes on from there to the end."""
    two = SparkExecutor(emit, folder, spark=False)
    pushed(two, 6)
    two.finish()
    found = answers(two)
    two.close()
    return found


def both(emit: Emit, folder: Path, between: Any = lambda: None) -> Counter[Any]:
    """The answers of two lives, with something in between."""
    found = first_life(emit, folder)
    between()
    return found + second_life(emit, folder)


@cache
def undisturbed(name: str) -> Counter[Any]:
    """What two lives say that are alike."""
    with TemporaryDirectory() as folder:
        return both(planned(name), Path(folder))


@cache
def changing(name: str) -> list[str]:
    """The rules without which the plan of a query would be another."""
    plan = normalise(planned(name)).plan
    return [rule for rule, _ in RULES if normalise(planned(name), [rule]).plan != plan]


def test_rules_make_a_difference_to_these_queries() -> None:
    # what is written has no nested joins, unions and filters side by side: rules and alternatives make them
    rest = {"flatten_joins", "flatten_unions", "merge_filters"}
    assert {rule for name in QUERIES for rule in changing(name)} | rest == {rule for rule, _ in RULES}


@pytest.mark.part(18)
@pytest.mark.parametrize("name", QUERIES)
def test_without_a_rule_a_state_is_still_read_as_it_was_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = undisturbed(name)
    for removed in changing(name):
        left = tuple((rule, change) for rule, change in RULES if rule != removed)
        with monkeypatch.context() as patch:
            without = partial(patch.setattr, optimise, "RULES", left)
            assert both(planned(name), tmp_path / removed, without) == expected, removed


@pytest.mark.part(3)
@pytest.mark.parametrize("name", QUERIES)
def test_without_any_rule_or_alternative_too(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove() -> None:
        monkeypatch.setattr(optimise, "RULES", ())
        monkeypatch.setattr(alternatives, "ALTERNATIVES", ())

    expected = undisturbed(name)
    assert both(planned(name), tmp_path, remove) == expected


def by_alternative(removed: str) -> tuple[str, Emit]:
    """A query, and a plan of it that only this alternative makes."""
    for name in QUERIES:
        plan = normalise(planned(name)).plan
        steps = [plan, *(normalise(other).plan for _, other in alternatives.alternatives(plan))]
        for each in steps:
            for made, other in alternatives.alternatives(each):
                found = normalise(other).plan
                if made == removed and found not in [normalise(o).plan for m, o in _others(each, removed)]:
                    return name, found
    raise AssertionError(f"no query has an alternative by {removed}")


def _others(plan: Emit, removed: str) -> list[tuple[str, Emit]]:
    return alternatives.alternatives(plan, disabled=[removed])


@pytest.mark.part(8)
@pytest.mark.parametrize("removed", [name for name, _ in alternatives.ALTERNATIVES])
def test_without_the_alternative_that_was_taken_too(
    removed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, taken = by_alternative(removed)

    def planner(plan: Emit, *_: Any, **__: Any) -> PhysicalPlan:
        return PhysicalPlan(plan, taken, by_group=True)

    def remove() -> None:
        left = tuple(each for each in alternatives.ALTERNATIVES if each[0] != removed)
        monkeypatch.setattr(alternatives, "ALTERNATIVES", left)
        monkeypatch.setattr("windrow.engine.engine.Engine", Engine)

    expected = undisturbed(name)
    monkeypatch.setattr("windrow.engine.engine.Engine", partial(Engine, planner=planner))
    assert both(planned(name), tmp_path, remove) == expected


def test_an_operator_that_keeps_something_else_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another_version() -> None:
        monkeypatch.setitem(implementations.OPERATORS, Joined, "join.2")

    with pytest.raises(StateError, match=r"was `join\.1`, and is `join\.2`") as caught:
        both(planned("join"), tmp_path / "join", another_version)
    assert caught.value.code == "plan-changed"
    assert "DROP QUERY query" in str(caught.value.hint)


def test_a_plan_that_no_kernel_runs_any_more_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_kernels() -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise QueryError("kernels do not run it")

        monkeypatch.setattr("windrow.physical.units.unit_of", refuse)

    with pytest.raises(StateError, match=r"no kernel runs it \(kernels do not run it\)") as caught:
        both(planned("join"), tmp_path, without_kernels)
    assert caught.value.code == "plan-changed"


def test_a_query_that_is_built_in_another_way_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another_builder() -> None:
        bundle._compiled.cache_clear()
        monkeypatch.setattr(
            "windrow.kernels.relational.build.distinct", lambda below, choice, **_: DeltaStar(below)
        )

    with pytest.raises(StateError, match="distinct-told") as caught:
        both(planned("distinct"), tmp_path / "distinct", another_builder)
    bundle._compiled.cache_clear()
    assert caught.value.code == "plan-changed"


_RENAMED = """
import gc, importlib, pkgutil, sys, windrow
for found in pkgutil.walk_packages(windrow.__path__, "windrow."):
    if not found.name.startswith(("windrow.cli", "windrow.__main__", "windrow.server")):
        importlib.import_module(found.name)
if {renamed}:
    for module in [each for name, each in sys.modules.items() if name.startswith("windrow")]:
        for name, kind in list(vars(module).items()):
            if isinstance(kind, type) and kind.__module__ == module.__name__ and not name.endswith("Renamed"):
                kind.__name__ = kind.__qualname__ = name + "Renamed"
                setattr(module, name + "Renamed", kind)
sys.path.insert(0, {tests!r})
from pathlib import Path
from tests.physical.test_durable import QUERIES, first_life, planned, second_life
for name in QUERIES:
    folder = Path({folder!r}) / name
    if {renamed}:
        print(name, sorted(second_life(planned(name), folder).elements()))
    else:
        first_life(planned(name), folder)
"""


@pytest.mark.thorough
def test_every_class_of_the_package_is_renamed_between_two_lives(tmp_path: Path) -> None:
    expected = []
    for name in QUERIES:
        folder = tmp_path / "same" / name
        first_life(planned(name), folder)
        expected.append(f"{name} {sorted(second_life(planned(name), folder).elements())}")
    known = {"tests": str(Path(__file__).parents[2]), "folder": str(tmp_path / "renamed")}
    for renamed in (False, True):
        program = _RENAMED.format(renamed=renamed, **known)
        run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr[-2000:]
    assert run.stdout.splitlines() == expected
