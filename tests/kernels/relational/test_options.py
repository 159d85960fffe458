"""Every physical choice says what the oracle says: on random plans, histories, cuts and restarts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, strategies as st
from tests.kernels.relational.more_plans import Drawer, cases
from tests.kernels.relational.scripts import Step, assert_agree
from tests.kernels.relational.test_choices import cut_small
from tests.kernels.relational.test_random_plans import reload_state, some

from windrow.algebra.expressions import ColumnRef, Expression
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Distinct, Except, Exists, Filter, Join, Union
from windrow.algebra.plan import Emit, Plan, StreamWord
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.kernels.executor import GeneralExecutor
from windrow.kernels.relational.expiry_layouts import (
    Counted,
    Ends,
    Evaluation,
    Negation,
    Options,
    Strategy,
    Tables,
)
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import RangeWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

pytestmark = pytest.mark.deep


def options(random: Random) -> Options:
    """Any combination of choices."""
    return Options(
        strategy=random.choice([Strategy.UPA, Strategy.UPA, Strategy.UPA, Strategy.NT, Strategy.DIRECT]),
        buckets=random.choice([1, 2, 3, 10, 60]),
        evaluation=random.choice([None, *Evaluation]),
        expire_every=random.choice([None, 0, 1, 7]),
        tables=random.choice([None, *Tables]),
        negation=random.choice([None, *Negation]),
        ends=random.choice([None, *Ends]),
        counted=random.choice([None, *Counted]),
        reorder=random.random() < 0.7,
        bins=random.random() < 0.7,
    )


class Relations(Drawer):
    """Draws the plans in which there is most to choose."""

    def leaf_of(self, spec: WindowSpec) -> Plan:
        self.spec = lambda alias: spec  # type: ignore[method-assign]
        return self.leaf() if self.random.random() < 0.7 else self.shaped(self.leaf())

    def window(self, *, periodic: bool, counted: bool) -> WindowSpec:
        r, s = self.random.randint(1, 9), self.random.randint(1, 6)
        choices: list[WindowSpec] = [RangeWindow(r, s)] if periodic else [RangeWindow(r), RangeWindow(r, s)]
        if counted and periodic:
            choices = [RowsWindow(r, slide_time=s), RowsWindow(r, s), SlideByTupleWindow(r, s)]
        elif counted:
            choices = [RowsWindow(r), RowsWindow(r, partition_by=("k",)), SessionWindow(s)]
        return self.pick(choices)  # type: ignore[no-any-return]

    def join(self) -> Emit:
        """Of two or three windows: periodic or not, restored or not, counted or not."""
        periodic, restores = self.random.random() < 0.6, self.random.random() < 0.3
        slide = self.random.randint(2, 7)
        parts = []
        for _ in range(self.pick([2, 2, 3])):
            spec = self.window(periodic=periodic, counted=self.random.random() < 0.4 and not restores)
            spec = RangeWindow(self.random.randint(1, 9), slide) if restores else spec
            parts.append(self.leaf_of(spec))
        tests = [self.condition(parts[0], other) for other in parts[1:]]
        words = [StreamWord.ISTREAM_RESTORE, StreamWord.RSTREAM_RESTORE] if restores else [StreamWord.AUTO]
        predicate: Expression = tests[0] if len(tests) == 1 else call("and", tests)
        return Emit(Join(tuple(parts), predicate), self.pick(words))

    def negation(self) -> Emit:
        """EXCEPT ALL or NOT EXISTS, perhaps with something above that keeps its result."""
        periodic = self.random.random() < 0.3
        left, right = (
            self.leaf_of(self.window(periodic=periodic, counted=self.random.random() < 0.2)) for _ in range(2)
        )
        if self.random.random() < 0.5:
            plan: Plan = Except(self.shaped(left), self.shaped(right))
        else:
            plan = Exists(left, right, self.condition(left, right), negated=True)
        above = self.random.random()
        if above < 0.2:
            plan = self.grouped(plan)
        elif above < 0.4:
            plan = self.joined(plan, 1)
        return Emit(plan, self.pick([StreamWord.AUTO, StreamWord.AUTO, StreamWord.RSTREAM]))

    def changes_only(self) -> Emit:
        """What only changes read: ⋈, δ and matches below σ, π and ∪, over windows that end and others."""
        parts = [self._read(self.random.randint(0, 2)) for _ in range(self.pick([1, 1, 2]))]
        plan = parts[0] if len(parts) == 1 else Union(tuple(map(self.shaped, parts)))
        if self.random.random() < 0.3:
            plan = Filter(plan, call("is_not_null", [plan.schema.column(self.pick(self.columns(plan)))]))
        words = [StreamWord.AUTO, StreamWord.AUTO, StreamWord.ISTREAM, StreamWord.DSTREAM]
        return Emit(plan, self.pick(words))

    def _read(self, kind: int) -> Plan:
        specs = [self.window(periodic=self.random.random() < 0.2, counted=self.random.random() < 0.1)]
        specs.append(self.pick([*specs, RangeWindow(self.random.randint(1, 9)), LandmarkWindow(start=0)]))
        left, right = map(self.leaf_of, specs)
        if kind == 0:
            return Distinct(self.shaped(left))
        if kind == 1:
            return Join((left, right), self.condition(left, right))
        negated = self.random.random() < 0.7
        match = Exists(left, right, self.condition(left, right), negated=negated)
        if self.random.random() < 0.7:
            return match
        third = self.leaf_of(RangeWindow(self.random.randint(1, 9)))
        return Join((match, third), self.condition(left, third))

    def grouped_by_tuple(self) -> Emit:
        spec = SlideByTupleWindow(
            self.random.randint(1, 9), self.random.randint(1, 4), None, self.pick([True, False])
        )
        return Emit(self.grouped(self.leaf_of(spec)), self.pick([StreamWord.AUTO, StreamWord.ISTREAM]))

    def extremes(self) -> Emit:
        """Extremes of rows that expire in another order than they come."""
        alias = f"r{self.count + 1}"
        part = self.leaf_of(LifetimeWindow(ColumnRef(f"{alias}.e", BIGINT)))
        plan = self.grouped(part)
        assert isinstance(plan, Aggregate)
        names = self.random.sample(["min", "max", "first", "last", "any_value"], 2)
        value = part.schema.column(self.pick(self.columns(part)))
        calls = tuple((name, AggregateCall(name, (value,), BIGINT)) for name in names)
        return Emit(replace(plan, aggregates=calls))


KINDS = ("join", "negation", "changes_only", "grouped_by_tuple", "extremes")


def drawn(kind: str, seed: int) -> tuple[Emit, list[Step], Options]:
    drawer = Relations(seed)
    drawer.internal = False
    emit: Emit = getattr(drawer, kind)()
    return emit, drawer.script(own=False), options(drawer.random)


@pytest.mark.part(2)
@pytest.mark.parametrize("kind", KINDS)
@some(5)
@given(st.integers(0, 1 << 48))
def test_choices_say_the_same(kind: str, seed: int) -> None:
    try:
        emit, script, chosen = drawn(kind, seed)
    except QueryError:
        assume(False)
        raise
    between = reload_state if seed % 3 == 0 else None
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            cut_small(patch)
        assert_agree(emit, script, lambda plan: GeneralExecutor(plan, chosen), between=between)


@some(6)
@given(cases(), st.integers(0, 1 << 32))
def test_choices_for_any_plan_say_the_same(case: tuple[Emit, list[Step]], seed: int) -> None:
    plan, script = case
    chosen = options(Random(seed))
    assert_agree(plan, script, lambda emit: GeneralExecutor(emit, chosen), between=reload_state)


def test_the_drawn_plans_use_every_choice() -> None:
    seen = set()
    for seed in range(150):
        for kind in KINDS:
            try:
                emit, _, chosen = drawn(kind, seed)
                executor = GeneralExecutor(emit, chosen)
            except QueryError:
                continue
            seen |= {operator.name for _, operator in executor.program.operators()}
            seen.add("lazy" if executor.program.why_not_lazy is None else "step by step")
    assert {
        "⋈",
        "⋈, catalogued",
        "results held",
        "lazy",
        "step by step",
        "restore",
        "−",
        "NOT EXISTS",
    } <= seen
    assert {"δ, told", "δ*", "counting δ", "EXISTS"} <= seen
    assert {"γ, bins", "γ, running", "γ, candidates", "negative rows"} <= seen
