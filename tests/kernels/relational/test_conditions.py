"""Conditions of any number of parts, some of which can fail, wherever rows are matched; with the oracle."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.relational.scripts import Step, assert_agree, cuts
from tests.support.plans import STREAMS, TABLES, named

from windrow.algebra.expressions import Call, ColumnRef, Expression, Literal, conjunction, disjunction
from windrow.algebra.functions import call
from windrow.algebra.functions.registry import catalogue
from windrow.algebra.operators import Exists, Filter, Join, TableJoin
from windrow.algebra.plan import Emit, Plan, Scan, TableScan, Window
from windrow.algebra.types import BIGINT, BOOLEAN
from windrow.kernels.executor import GeneralExecutor
from windrow.physical import plan_query
from windrow.testing import Harness
from windrow.windows.ranges import RangeWindow

ONE = Literal(1, BIGINT)


def _leaf(place: int) -> Plan:
    alias = f"r{place}"
    window = Window(Scan(STREAMS[place % 2], alias), RangeWindow(4 + place))
    return named(window, alias, f"{alias}.k", f"{alias}.v")


@st.composite
def _parts(draw: st.DrawFn, names: list[str]) -> Expression:
    """A condition on two columns. Sums and products can overflow, a division has no such way out."""
    left, right = (ColumnRef(draw(st.sampled_from(names)), BIGINT) for _ in range(2))
    can_fail = draw(st.booleans())
    operator = draw(st.sampled_from(["+", "*", "-"]))
    value = call(operator, [left, right]) if can_fail else left
    other = draw(st.sampled_from([ONE, right]))
    part = call(draw(st.sampled_from(["=", "<>", "<", ">="])), [value, other])
    either = (part, call("is_null", [left]), call("=", [right, ONE]))
    return draw(st.sampled_from([part, part, disjunction(either)]))


@st.composite
def _conditions(draw: st.DrawFn, names: list[str]) -> Expression:
    return conjunction(tuple(draw(st.lists(_parts(names), min_size=1, max_size=6))))


@st.composite
def _matches(draw: st.DrawFn, kind: str) -> Emit:
    parts = [_leaf(place) for place in range(3 if kind == "join of three" else 2)]
    table = TableScan(TABLES[0], "t")
    read = [*parts[:1], table] if kind == "table" else parts
    condition = draw(_conditions([name for part in read for name in part.schema.names]))
    first = parts[0].schema.names
    plan: Plan
    match kind:
        case "filter":
            plan = Filter(parts[0], draw(_conditions([*first])))
        case "table":
            plan = TableJoin(parts[0], table, condition)
        case "EXISTS" | "NOT EXISTS":
            plan = Exists(parts[0], parts[1], condition, negated=kind == "NOT EXISTS")
        case _:
            plan = Join(tuple(parts), condition)
    return Emit(named(plan, "o", *first))


@pytest.mark.part(3)
@pytest.mark.parametrize("kind", ["filter", "join", "join of three", "EXISTS", "NOT EXISTS", "table"])
@settings(max_examples=25)
@given(st.data())
def test_a_condition_of_any_number_of_parts(kind: str, data: st.DataObject) -> None:
    emit, script = data.draw(_matches(kind)), data.draw(cuts())
    steps: list[Step] = script
    assert_agree(emit, steps, GeneralExecutor)
    plan_query(emit)


FROM = {
    "join": (("r0", "r1"), "a [RANGE 4] r0, b [ROWS 3] r1"),
    "table": (("r0", "t"), "a [RANGE 4] r0, t"),
    "joins": (("r0", "r1", "t", "u"), "a [RANGE 4 SLIDE 2] r0, b [RANGE 4 SLIDE 2] r1, t, u"),
    "outer": (("r0", "r1"), "a [RANGE 4] r0 LEFT JOIN b [RANGE 3] r1 ON r0.k = r1.k"),
}
ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1)), min_size=1, max_size=6)


@st.composite
def _guarded(draw: st.DrawFn, aliases: tuple[str, ...]) -> str:
    """Conditions of WHERE with divisions, each somewhere after the condition that its divisor is not zero."""
    column = st.builds("{}.{}".format, st.sampled_from(aliases), st.sampled_from("kv"))
    divisor = column | column.map("({} + 1)".format)
    parts = draw(st.lists(st.builds("{} {} {}".format, column, st.sampled_from("=<"), column), max_size=2))
    for _ in range(draw(st.integers(1, 2))):
        by = draw(divisor)
        guard = draw(st.integers(0, len(parts)))
        parts.insert(guard, f"{by} <> 0")
        parts.insert(draw(st.integers(guard + 1, len(parts))), f"{draw(column)} / {by} < {draw(column)}")
    return " AND ".join(parts)


@pytest.mark.cases
@pytest.mark.parametrize("executor", ["reference", "engine"])
@pytest.mark.parametrize("kind", FROM)
@settings(max_examples=15)
@given(st.data(), ROWS, ROWS)
def test_what_stands_before_a_part_protects_it(
    kind: str, executor: str, data: st.DataObject, one: list[Any], other: list[Any]
) -> None:
    aliases, sources = FROM[kind]
    where = data.draw(_guarded(aliases))
    told = []
    for divided in (where, re.sub(r"(\S+) / (\(.*?\)|\S+) <", r"try_divide(\1, \2) <", where)):
        query = (
            f"SELECT {', '.join(f'{alias}.v AS {alias}' for alias in aliases)} FROM {sources} WHERE {divided}"
        )
        h = Harness(
            query,
            streams=dict.fromkeys("ab", ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts ORDERED")),
            tables={name: ("k BIGINT, v BIGINT", "NRR") for name in "tu" if name in aliases},
            executor=executor,
        )
        for name in set("tu") & set(aliases):
            h.update(name, 0, insert=other)
        for name, rows in zip("ab", (one, other), strict=True):
            if name == "a" or "r1" in aliases:
                h.push(name, [(*row, 1 + place) for place, row in enumerate(rows)])
        h.finish()
        told.append(h.take())
    assert told[0] == told[1]


@pytest.mark.parametrize("executor", ["reference", "engine"])
@pytest.mark.parametrize(
    "joined",
    [
        ", s [RANGE 4] y WHERE x.v + 1 <> 0 AND 4 / (x.v + 1) > y.v AND x.k < y.k",
        "LEFT JOIN s [RANGE 4] y ON x.k < y.k AND y.v > 0 WHERE y.v IS NOT NULL AND 4 / (x.v + 1) > 1",
    ],
)
def test_a_guard_may_read_less_than_what_it_protects(joined: str, executor: str) -> None:
    h = Harness(
        f"SELECT ISTREAM(x.v, y.v) FROM s [RANGE 4] x {joined}",
        streams={"s": ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts ORDERED")},
        executor=executor,
    )
    h.push("s", [(0, 1, 1), (1, 1, 2), (2, -1, 9), (3, -1, 10)])
    h.finish()
    assert [change.row for change in h.take()] == [(1, 1)]


def test_a_call_has_as_many_arguments_as_its_function_takes() -> None:
    """Whoever makes it: a rule, a kernel or the sharing of predicates."""
    for function in catalogue():
        least, most = function.arity
        wrong = ([least - 1] if least else []) + ([most + 1] if most is not None else [])
        for count in wrong:
            with pytest.raises(ValueError, match="with"):
                Call(function.name, (ONE,) * count, BOOLEAN)


def test_no_condition_and_thousands_are_put_together() -> None:
    assert (conjunction(()), disjunction(())) == (Literal(True, BOOLEAN), Literal(False, BOOLEAN))
    parts = tuple(ColumnRef(f"c{n}", BOOLEAN) for n in range(5000))
    assert [node for node in disjunction(parts).walk() if isinstance(node, ColumnRef)] == [*parts]
