"""User-defined aggregates: kernels and the oracle agree, whatever the code does to its states."""

from __future__ import annotations

import math
import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pyspark import cloudpickle
from tests.kernels.agreement import assert_agree
from tests.kernels.queries import COLUMNS, Measured, histories, row_of
from tests.kernels.test_executor import SPECS, grouped, scripted

import windrow as wr
from windrow.algebra import aggregates
from windrow.algebra.aggregates import Definition, make, user
from windrow.algebra.aggregates.definition import VersionedName
from windrow.algebra.catalog import Late, ProgressRule, Stream
from windrow.algebra.plan import Emit
from windrow.algebra.types import BIGINT, DOUBLE
from windrow.engine.explain import declared
from windrow.errors import DataError, QueryError
from windrow.kernels.executor import KernelExecutor
from windrow.language.compile import compile_query
from windrow.testing import Harness
from windrow.windows.progress import Slack

KERNELS = ("reference", "kernels")


@pytest.fixture(autouse=True)
def own_names() -> Iterator[None]:
    """What a test defines is gone after it."""
    _define()
    yield
    for name in user.names():
        user.forget(name)


def _define() -> None:
    @wr.aggregate(returns="DOUBLE", takes="DOUBLE")
    class geometric_mean:  # noqa: N801 - it is a name of SQL
        def init(self) -> Any:
            return 0.0, 0

        def step(self, state: Any, x: Any) -> Any:
            if x is None or not math.isfinite(x) or x <= 0:
                return state
            return state[0] + math.log(x), state[1] + 1

        def merge(self, a: Any, b: Any) -> Any:
            return a[0] + b[0], a[1] + b[1]

        def final(self, state: Any) -> Any:
            return math.exp(state[0] / state[1]) if state[1] else None

    @wr.aggregate(returns="STRING")
    class spelled:  # noqa: N801 - it is a name of SQL
        """Without merge: what was seen, in row order. It changes its state in place."""

        def init(self) -> Any:
            return []

        def step(self, state: Any, *values: Any) -> Any:
            state.append(repr(values))
            return state

        def final(self, state: Any) -> Any:
            state.reverse()
            return "|".join(state)

    shared: list[Any] = []

    def noted(state: Any, x: Any, y: Any = None) -> Any:
        state.append((repr(x), repr(y)))
        return state

    def joined(a: Any, b: Any) -> Any:
        a.extend(b)
        b.clear()
        return a

    wr.aggregate(
        name="bagged",
        returns="STRING",
        init=lambda: shared,
        step=noted,
        merge=joined,
        final=lambda state: str(sorted(state)),
    )
    wr.aggregate(
        name="nulls",
        returns="BIGINT",
        init=lambda: 0,
        step=lambda state, x: state + (x is None),
        merge=lambda a, b: a + b,
        inverse=lambda a, b: a - b,
        final=lambda state: state,
    )


def measures() -> list[Measured]:
    return [
        Measured("geometric_mean", ("x",)),
        Measured("spelled", ("x", "s")),
        Measured("spelled", ("d",)),
        Measured("bagged", ("v", "x")),
        Measured("nulls", ("b",)),
        Measured("bagged", ("w",), distinct=True),
        Measured("spelled", ("v",), distinct=True),
        Measured("nulls", ("s",), distinct=True),
        Measured("max", ("v",)),
    ]


@pytest.mark.part(5)
@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("persisted", [True, False])
@pytest.mark.parametrize("keys", [(), ("k",), ("x", "s")])
def test_kernels_agree_with_the_oracle_over_every_window(
    kind: str, persisted: bool, keys: tuple[str, ...]
) -> None:
    stream = Stream("s", COLUMNS, "ts", ProgressRule(Slack(2)))
    emit = grouped(stream, SPECS[kind], measures(), *keys)
    assert assert_agree(emit, scripted(len(kind) + len(keys)), persisted=persisted)


@settings(max_examples=25)
@given(data=st.data())
def test_any_history_and_any_late_rows(data: st.DataObject) -> None:
    late = data.draw(st.sampled_from(list(Late)))
    stream = Stream("s", COLUMNS, "ts", ProgressRule(Slack(1)), late)
    spec = SPECS[data.draw(st.sampled_from(["sliding", "uneven", "landmark"]))]
    emit = grouped(stream, spec, measures()[:5], *data.draw(st.sampled_from([(), ("k",)])))
    assert_agree(emit, data.draw(histories(stream)), persisted=data.draw(st.booleans()))


@pytest.mark.parametrize("kind", ["sliding", "landmark"])
def test_the_cut_into_micro_batches_does_not_matter(kind: str) -> None:
    chance = random.Random(5)
    rows = [row_of(chance.randrange(10**6), chance.randint(0, 20)) for _ in range(60)]
    emit = grouped(Stream("s", COLUMNS, "ts"), SPECS[kind], measures(), "k")
    answers = []
    for size in (60, 7, 1):
        chance.shuffle(rows)
        executor = KernelExecutor(emit)
        for begin in range(0, len(rows), size):
            executor.push("s", rows[begin : begin + size])
        executor.finish()
        answers.append(
            [(c.at, *(round(v, 9) if isinstance(v, float) else v for v in c.row)) for c in executor.take()]
        )
    assert repr(answers[0]) == repr(answers[1]) == repr(answers[2])


def run(query: str, rows: list[tuple[Any, ...]]) -> list[Any]:
    """The answers, the same on both executors."""
    expected, found = (answered(query, rows, executor) for executor in KERNELS)
    assert found == expected
    return found


def answered(query: str, rows: list[tuple[Any, ...]], executor: str) -> list[Any]:
    harness = Harness(query, streams={"s": "k BIGINT, x DOUBLE, ts BIGINT"}, executor=executor)
    harness.push("s", rows)
    harness.finish()
    return [change.row for change in harness.take()]


ROWS = [(1, 2.0, 0), (1, 8.0, 1), (2, 3.0, 1), (1, None, 2), (2, 3.0, 3)]


def test_in_sql_with_filter_distinct_having_and_beside_others() -> None:
    query = (
        "SELECT k, Geometric_Mean(x) AS g, geometric_mean(k) FILTER (WHERE x > 2) AS f, nulls(x) AS n,"
        " spelled(DISTINCT x) AS d, COUNT(*) AS c FROM s [RANGE 4 SLIDE 4] GROUP BY k HAVING nulls(x) > 0"
    )
    assert run(query, ROWS) == [(1, pytest.approx(4.0), 1.0, 1, "(8.0,)|(2.0,)", 3)]


def test_rows_without_merge_are_folded_in_row_order() -> None:
    rows = [(3, 1.0, 5), (1, None, 2), (2, -0.0, 2), (2, 0.0, 2), (1, math.nan, 2), (1, 7.0, 2)]
    (answer,) = run("SELECT spelled(k, x) AS w FROM s [RANGE 8 SLIDE 8]", rows)
    assert answer[0].split("|")[::-1] == [
        "(1, None)", "(1, 7.0)", "(1, nan)", "(2, -0.0)", "(2, 0.0)", "(3, 1.0)"
    ]  # fmt: skip


def test_a_filter_that_leaves_nothing_asks_final_about_init() -> None:
    query = (
        "SELECT k, nulls(x) FILTER (WHERE k = 1) AS n, spelled(x) FILTER (WHERE k = 1) AS w"
        " FROM s [RANGE 4 SLIDE 4] GROUP BY k"
    )
    assert run(query, ROWS) == [(1, 1, "(None,)|(8.0,)|(2.0,)"), (2, 0, "")]


def test_final_is_not_asked_about_nothing_without_need() -> None:
    for extra in ({}, {"merge": lambda a, b: a + b}):
        wr.aggregate(
            name="mean_of", returns="DOUBLE", init=list, step=lambda s, x: [*s, x],
            final=lambda s: sum(s) / len(s), **extra,
        )  # fmt: skip
        assert run("SELECT mean_of(k) AS m FROM s [RANGE 4 SLIDE 4]", ROWS) == [(1.4,)]


def test_none_is_a_value_like_others() -> None:
    wr.aggregate(
        name="quiet",
        returns="BIGINT",
        init=lambda: 0,
        step=lambda s, x: s + 1,
        final=lambda s: None if s else 7,
    )
    assert run("SELECT quiet(k) AS m FROM s [RANGE 4 SLIDE 4]", ROWS) == [(None,)]


# ------------------------------------------------------------------ errors

FAILING = {
    "init": {"init": lambda: 1 // 0},
    "step": {"step": lambda state, x: 1 // 0},
    "merge": {"merge": lambda a, b: 1 // 0},
    "final": {"final": lambda state: 1 // 0},
}


@pytest.mark.parametrize("phase", FAILING)
@pytest.mark.parametrize("executor", KERNELS)
def test_an_error_in_user_code_names_the_aggregate_and_the_phase(phase: str, executor: str) -> None:
    parts = {"init": lambda: 0, "step": lambda s, x: s, "merge": lambda a, b: a, "final": lambda s: s}
    wr.aggregate(name="broken", returns="BIGINT", **(parts | FAILING[phase]))
    if phase == "merge" and executor == "reference":
        return  # the oracle never merges
    with pytest.raises(DataError) as caught:
        answered("SELECT broken(k) AS b FROM s [RANGE 4 SLIDE 2]", ROWS, executor)
    assert caught.value.code == "user-aggregate"
    assert caught.value.message.startswith(f"broken failed in {phase}: ZeroDivisionError: ")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("value", ["text", 1.5, True, 1 << 63])
@pytest.mark.parametrize("executor", KERNELS)
@pytest.mark.parametrize("merges", [True, False])
def test_a_result_must_be_of_its_type(value: Any, executor: str, merges: bool) -> None:
    extra = {"merge": lambda a, b: a} if merges else {}
    wr.aggregate(
        name="odd", returns="BIGINT", init=lambda: 0, step=lambda s, x: s, final=lambda s: value, **extra
    )
    with pytest.raises(DataError, match=r"odd failed in final: it returned .*, which is no BIGINT"):
        answered("SELECT odd(k) AS b FROM s [RANGE 4 SLIDE 2]", ROWS, executor)


def test_numbers_of_numpy_are_results_too() -> None:
    np = pytest.importorskip("numpy")
    wr.aggregate(
        name="counted", returns="BIGINT", init=lambda: np.int64(0), step=lambda s, x: s + 1, final=lambda s: s
    )
    assert run("SELECT counted(k) AS m FROM s [RANGE 4 SLIDE 4]", ROWS) == [(5,)]


def test_a_state_that_cannot_be_kept_is_an_error_of_its_phase() -> None:
    wr.aggregate(
        name="local", returns="BIGINT", init=lambda: 0, step=lambda s, x: (lambda: 0), merge=lambda a, b: a,
        final=lambda s: 0,
    )  # fmt: skip
    aggregate = make("local", types=(BIGINT,))
    with pytest.raises(DataError) as caught:
        aggregate.lift((1,))
    assert caught.value.code == "user-aggregate"
    assert caught.value.message == (
        "the state of local after step cannot be kept: it holds a value of type function"
    )
    assert "or leave out merge: its rows are kept then" in str(caught.value.hint)


def test_without_merge_a_state_may_be_anything() -> None:
    wr.aggregate(
        name="last_letter", returns="STRING", init=Counter, step=lambda s, x: s + Counter({str(x): 1}),
        final=lambda s: max(s),
    )  # fmt: skip
    assert run("SELECT last_letter(k) AS m FROM s [RANGE 4 SLIDE 4]", ROWS) == [("2",)]


# ------------------------------------------------------------------ names, versions, processes


def plan_of(name: str) -> Emit:
    streams = {"s": ("k BIGINT, x DOUBLE, ts BIGINT", "WATTR ts")}
    return compile_query(f"SELECT {name}(x) AS a FROM s [RANGE 4 SLIDE 4]", declared(streams, {}))


def test_a_new_definition_is_a_new_plan_and_the_old_plan_keeps_its_own() -> None:
    def define(result: int) -> Definition:
        made: Definition = wr.aggregate(
            name="Fixed", returns="BIGINT", init=lambda: 0, step=lambda s, x: s, final=lambda s: result
        )
        return made

    first = define(1)
    old = plan_of("fixed")
    assert define(1).fingerprint == first.fingerprint
    assert plan_of("FIXED") == old
    define(2)
    new = plan_of("fixed")
    assert new != old
    for plan, result in ((old, 1), (new, 2)):
        executor = KernelExecutor(pickle.loads(pickle.dumps(plan)))
        executor.push("s", [(1, 1.0, 0)])
        executor.finish()
        assert [change.row for change in executor.take()] == [(result,)]


@pytest.mark.parametrize("name", ["sum", "Median", "upper", "istream", "and", "approx_top_k"])
def test_built_in_names_are_taken(name: str) -> None:
    with pytest.raises(QueryError, match="built-in"):
        wr.aggregate(name=name, returns="INT", init=int, step=lambda s, x: s, final=lambda s: s)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": "two words"}, "cannot be called 'two words'"),
        ({"name": ""}, "cannot be called ''"),
        ({"final": None}, "has no final"),
        ({"inverse": lambda a, b: a}, "has an inverse, but no merge"),
        ({"step": lambda s: s}, "cannot take a state and 1 values"),
        ({"takes": "INT, INT"}, "cannot take a state and 2 values"),
        ({"returns": "MONEY"}, "no type `MONEY`"),
        ({"finish": int}, "no part `finish`"),
    ],
)
def test_definitions_that_make_no_sense(parts: dict[str, Any], message: str) -> None:
    good = {"name": "fine", "returns": "INT", "init": int, "step": lambda s, x: s, "final": lambda s: s}
    with pytest.raises(QueryError, match=message):
        wr.aggregate(**(good | parts))


def test_arguments_are_widened_to_what_is_taken_and_refused_otherwise() -> None:
    streams = {"s": "k INT, t STRING, ts BIGINT"}
    assert "geometric_mean" in user.names()
    assert wr.explain("SELECT geometric_mean(k) AS g FROM s [RANGE 4 SLIDE 4]", streams=streams)
    for call, message in {
        "geometric_mean(t)": "geometric_mean takes DOUBLE, not STRING",
        "geometric_mean(k, k)": "GEOMETRIC_MEAN got 2 arguments",
        "nulls()": "NULLS of nothing",
        "nulls(*)": r"NULLS cannot take `\*` here",
        "nulls(k, 1)": "NULLS got 2 arguments",
    }.items():
        with pytest.raises(QueryError, match=message):
            wr.explain(f"SELECT {call} AS g FROM s [RANGE 4 SLIDE 4]", streams=streams)


def test_an_inverse_takes_states_out_again() -> None:
    nulls = make("nulls", types=(DOUBLE,))
    assert nulls.invertible
    a, b = nulls.fold(map(nulls.lift, [(None,), (1.0,)])), nulls.lift((None,))
    assert nulls.subtract(nulls.combine(a, b), b) == a
    assert nulls.subtract(b, b) == nulls.identity()
    assert not make("bagged").invertible


@given(
    st.lists(
        st.lists(st.sampled_from([None, 0.0, -0.0, 0.5, math.inf, math.nan]), max_size=4),
        min_size=3,
        max_size=3,
    )
)
def test_states_of_nested_values_are_merged_and_taken_out_exactly(parts: list[list[Any]]) -> None:
    """A state with big numbers, dicts, sets and tuples in it: whatever way rows are split, and back again."""
    weight = 1 << 70

    def add(state: Any, x: Any, sign: int = 1) -> Any:
        state["bag"][repr(x)] = state["bag"].get(repr(x), (0, 0))[0] + sign, weight
        return {
            "bag": {k: n for k, n in sorted(state["bag"].items()) if n[0]},
            "big": state["big"] + sign * weight,
        }

    def moved(a: Any, b: Any, sign: int) -> Any:
        for key, (count, _) in b["bag"].items():
            a["bag"][key] = a["bag"].get(key, (0, 0))[0] + sign * count, weight
        return {
            "bag": {k: n for k, n in sorted(a["bag"].items()) if n[0]}, "big": a["big"] + sign * b["big"]
        }  # fmt: skip

    wr.aggregate(
        name="weighed", returns="STRING", init=lambda: {"bag": {}, "big": 0}, step=add, final=repr,
        merge=lambda a, b: moved(a, b, 1), inverse=lambda a, b: moved(a, b, -1),
    )  # fmt: skip
    weighed = make("weighed", types=(DOUBLE,))
    a, b, c = (weighed.fold(weighed.lift((x,)) for x in part) for part in parts)
    whole = weighed.fold(weighed.lift((x,)) for part in parts for x in part)
    assert weighed.combine(weighed.combine(a, b), c) == weighed.combine(a, weighed.combine(b, c)) == whole
    assert weighed.subtract(whole, weighed.combine(b, c)) == a
    assert weighed.subtract(whole, weighed.identity()) == whole


def test_definitions_travel_to_other_processes(tmp_path: Any) -> None:
    """As a worker does it: the definitions first, then the plan with calls of them."""
    plan = plan_of("bagged")
    call = VersionedName("bagged", user.definitions(["bagged"])[0].fingerprint)
    shipped = cloudpickle.dumps((user.definitions([call, "sum"]), plan))
    assert len(user.definitions([call, "sum", "BAGGED"])) == 1
    (tmp_path / "shipped").write_bytes(shipped)
    script = (
        "import pickle, pathlib\n"
        "from windrow.algebra.aggregates import user\n"
        f"definitions, plan = pickle.loads(pathlib.Path({str(tmp_path / 'shipped')!r}).read_bytes())\n"
        "user.install(definitions); user.install(definitions)\n"
        "from windrow.kernels.executor import KernelExecutor\n"
        "e = KernelExecutor(plan); e.push('s', [(1, 2.5, 0)]); e.finish(); print(e.take()[0].row)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "(\"[('2.5', 'None')]\",)\n", done.stderr


def test_fingerprints_are_the_same_in_every_process() -> None:
    """Also of a set of texts, whose order is not the same."""
    script = (
        "import windrow as wr\n"
        "made = wr.aggregate(name='chosen', returns='BIGINT', init=int, final=lambda s: s,\n"
        "    step=lambda s, x, only=frozenset('abcdef'): s + (x in {'v', 'w', 'x', 'y', 'z'}))\n"
        "print(made.fingerprint)\n"
    )
    marks = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(marks) == 1


def test_bound_aggregates_can_be_shipped_themselves() -> None:
    for name in ("nulls", "spelled"):
        aggregate = make(name, types=(DOUBLE,))
        assert pickle.loads(cloudpickle.dumps(aggregate)) == aggregate


def test_names_are_found_in_any_case_and_can_be_taken_back() -> None:
    assert aggregates.is_aggregate("SPELLED")
    user.forget("Spelled")
    assert not aggregates.is_aggregate("spelled")
    assert "SPELLED" not in aggregates.names()


def test_a_misspelt_one_is_named() -> None:
    streams = {"s": "x DOUBLE, ts BIGINT"}
    with pytest.raises(QueryError) as refused:
        Harness("SELECT geometric_maen(x) FROM s [RANGE 10 SLIDE 10]", streams=streams)
    assert refused.value.hint == "did you mean `geometric_mean`?"
