"""γ over a join from states by end: what its rows would say, whenever states are put together."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.relational.scripts import Step, assert_agree, cuts, scripts
from tests.kernels.relational.test_random_plans import reload_state, some

from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit
from windrow.engine.explain import declared
from windrow.kernels.aggregates.measures import Argument, Measures
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.aggregate.by_expiry import ByEnd, Lifts
from windrow.kernels.relational.aggregate.group_by import HELD
from windrow.kernels.relational.expiry_layouts import Calendar, condensed
from windrow.kernels.relational.program import RelationalProgram
from windrow.kernels.relational.signed_rows import TS, VE, VS, N
from windrow.language.compile import compile_query

COLUMNS = "k BIGINT, v BIGINT, e BIGINT, ts BIGINT"
CATALOG = declared({"s1": COLUMNS, "s2": COLUMNS}, {})
#: none of these is made of totals alone
VALUES = (
    "SUM(s1.v) AS a, MAX(s2.v) AS b",
    "MIN(s1.v) AS a, MAX(s2.e) AS b",
    "ANY_VALUE(s1.v) AS a",
    "AVG(CAST(s1.v AS DOUBLE)) AS a, COUNT(*) AS b",
    "VAR_POP(CAST(s2.v AS DOUBLE)) AS a, MIN(s1.v) AS b",
    "MAX(s1.v) FILTER (WHERE s2.v > 1) AS a, COUNT(s2.v) AS b",
)
WINDOWS = (
    ("RANGE 5", "RANGE 5"),
    ("RANGE 6 SLIDE 2", "RANGE 6 SLIDE 2"),
    ("RANGE 7", "RANGE 3"),
    ("RANGE 6 SLIDE 3", "RANGE 9 SLIDE 3"),
)
KEYS = ("s1.k", "s2.v", "s1.k, s2.e")


def query(windows: tuple[str, str], values: str, keys: str = "") -> Emit:
    grouped, named = (f" GROUP BY {keys}", f"{keys}, ") if keys else ("", "")
    one, other = windows
    text = f"SELECT {named}{values} FROM s1 [{one}], s2 [{other}] WHERE s1.k = s2.k{grouped}"
    return compile_query(text, CATALOG)


def by_end(emit: Emit) -> ByEnd:
    (found,) = (each for _, each in RelationalProgram(emit).operators() if isinstance(each, ByEnd))
    return found


@pytest.mark.parametrize("values", VALUES)
def test_a_join_whose_ends_are_known_needs_no_rows_of_it(values: str) -> None:
    assert by_end(query(WINDOWS[1], values, "s1.k")).states.partials


@pytest.mark.parametrize("values", ["FIRST(s1.v) AS a", "MEDIAN(s1.v) AS a, COUNT(*) AS b"])
def test_what_depends_on_rows_keeps_them(values: str) -> None:
    operators = [each for _, each in RelationalProgram(query(WINDOWS[0], values, "s1.k")).operators()]
    assert not any(isinstance(each, ByEnd) for each in operators)


histories: st.SearchStrategy[list[Step]] = st.one_of(scripts(), cuts())
queries = st.builds(query, st.sampled_from(WINDOWS), st.sampled_from(VALUES), st.sampled_from(("", *KEYS)))


@pytest.mark.parametrize("few", [0, 1 << 20])
@some(2)
@given(queries, histories)
def test_answers_are_the_oracles(few: int, emit: Emit, script: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("windrow.kernels.relational.expiry_layouts.TINY_CHUNK", few)
        assert_agree(emit, script, GeneralExecutor, between=reload_state)


@pytest.mark.part(4)
@pytest.mark.parametrize("values", ["SUM(s1.v) AS a, MAX(s2.v) AS b", "MAX(s1.v) AS a"])
@pytest.mark.parametrize(("few", "most"), [(512, 512), (0, 6)])
def test_state_does_not_grow_with_the_rows_of_a_join(
    values: str, few: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thousands of results in each step; one group, and windows that end at three instants."""
    monkeypatch.setattr("windrow.kernels.relational.expiry_layouts.TINY_CHUNK", few)
    executor = GeneralExecutor(query(("RANGE 6 SLIDE 2", "RANGE 6 SLIDE 2"), values, "s1.k"))
    (place,) = (at for at, each in executor.program.operators() if isinstance(each, ByEnd))
    for now in range(0, 40, 2):
        for name in ("s1", "s2"):
            executor.push(name, [(1, n, 0, now) for n in range(32)])
            executor.punctuate(name, now + 2)
        assert executor.take()
    kept = executor.states[place].of(HELD)
    assert 0 < sum(chunk.table.num_rows for chunk in kept) <= most


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.part(2)
@pytest.mark.parametrize(
    ("function", "first"), [("MIN", LEAST), ("MAX", MOST), ("MIN", MOST), ("MAX", LEAST)]
)
@pytest.mark.parametrize("join", ["", ", s2 [RANGE 50]"])
def test_the_ends_of_all_integers_are_values_like_others(
    function: str, first: int, join: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.kernels.relational.expiry_layouts.TINY_CHUNK", 0)
    where = " WHERE s1.k = s2.k" if join else ""
    text = f"SELECT s1.k, {function}(s1.v) AS a FROM s1 [RANGE 10]{join}{where} GROUP BY s1.k"
    steps: list[Step] = [
        ("push", ("s2", [(1, 0, 0, 0)])),
        ("push", ("s1", [(1, first, 0, 0)])),
        ("promise both", (1,)),
        ("take", ()),
        ("push", ("s1", [(1, 5, 0, 1), (1, 6, 0, 1), (1, 8, 0, 2), (1, first, 0, 2), (1, 9, 0, 2)])),
        ("promise both", (3,)),
        ("take", ()),
        ("push", ("s1", [(1, 7, 0, 4)])),
        ("finish", ()),
        ("take", ()),
    ]
    assert assert_agree(compile_query(text, CATALOG), steps, GeneralExecutor, between=reload_state) > 2


def test_states_are_put_together_after_a_peak_too() -> None:
    """How many there were at most is forgotten when they are fewer."""
    many = pl.DataFrame({"g": range(3000), VE: range(3000)}, schema={"g": pl.Int64, VE: pl.Int64})
    one = pl.DataFrame({"g": [0] * 5000, VE: [9] * 5000}, schema={"g": pl.Int64, VE: pl.Int64})
    layout, columns = Calendar(), dict(many.schema)

    def step(rows: pl.DataFrame, before: int) -> tuple[int, int]:
        chunks, after = condensed(layout, layout.add((), rows), columns, before, pl.DataFrame.unique)
        return sum(chunk.table.num_rows for chunk in chunks), after

    assert step(many, 0) == (3000, 3000)
    assert step(many.head(10), 3000) == (10, 10)
    assert step(one, 10) == (1, 1)


@st.composite
def pieces(draw: st.DrawFn) -> pl.DataFrame:
    whole = st.integers(0, 2)
    rows = draw(
        st.lists(
            st.tuples(st.none() | whole, st.none() | whole, whole, st.integers(4, 6), st.sampled_from([1, 2]))
        )
    )
    names = ["s1.k", "s1.v", VS, VE, N]
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.Int64), orient="row")
    return frame.with_columns(
        pl.lit(0, pl.Int64).alias(TS), *(pl.col("s1.v").alias(n) for n in ("s2.v", "s2.e"))
    )


def measures(values: str) -> Measures:
    (plan,) = (node for node in query(WINDOWS[0], values, "s1.k").walk() if isinstance(node, Aggregate))
    return Measures(plan)


@settings(max_examples=60)
@given(pieces(), st.sampled_from(VALUES), st.integers(0, 4))
def test_states_that_others_asked_for_are_the_same(frame: pl.DataFrame, values: str, sooner: int) -> None:
    """What was computed for another query, or another length of windows, is what one would get alone."""
    asked, shared = measures(values), Lifts(frame)
    for other in VALUES:
        shared.ending(1).states(measures(other))
    ended = frame.with_columns(pl.col(VE) - sooner).filter(pl.col(VS) < pl.col(VE))
    expected = Lifts(ended).states(asked)
    found = shared.ending(sooner).states(asked)
    names = expected.columns
    assert sorted(found.select(names).rows(), key=repr) == sorted(expected.rows(), key=repr)


def test_a_state_is_computed_once_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame(
        {"s1.k": [1, 1], "s1.v": [3, 4], "s2.v": [5, 6], "s2.e": [0, 0], VS: 0, VE: 9, N: 1, TS: 0}
    )
    lifted: list[Argument] = []
    rows = Argument.rows

    def counted(self: Argument, *args: Any) -> Any:
        lifted.append(self)
        return rows(self, *args)

    monkeypatch.setattr(Argument, "rows", counted)
    shared = Lifts(frame)
    for values in ("SUM(s1.v) AS a, MAX(s2.v) AS b", "MAX(s2.v) AS c", "AVG(s1.v) AS d, MIN(s2.v) AS e"):
        shared.ending(len(lifted)).states(measures(values))
    assert len(lifted) == len(set(lifted)) + 1  # MIN and MAX of s2.v are two states of one argument
