"""Oracle tests: every query, answered from shared synopses, gives what it gives alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernels.agreement import alike
from tests.kernels.queries import Measured, row_of
from tests.sharing.workloads import STREAM, batches, queries

from windrow.algebra.aggregates import user
from windrow.algebra.aggregates.declare import aggregate
from windrow.algebra.expressions import Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, Filter
from windrow.algebra.plan import Emit, Scan, Window
from windrow.algebra.types import BIGINT
from windrow.algebra.values import canonical_rows
from windrow.errors import DataError
from windrow.kernels.columns import frame_of, rows_of, to_frame
from windrow.reference.executor import ReferenceExecutor
from windrow.sharing.pool import Answer, Pool
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.ranges import RangeWindow

pytestmark = pytest.mark.deep

Found = dict[str, list[tuple[int, tuple[Any, ...]]]]


@dataclass
class Registered:
    """A query while it is there: the clock when it came, and when it went."""

    emit: Emit
    came: Instant
    complete_from: int | None
    went: Instant = INFINITY


@dataclass
class Run:
    """A pool, what it has answered, and all rows there were."""

    pool: Pool = field(default_factory=Pool)
    found: Found = field(default_factory=lambda: defaultdict(list))
    steps: list[tuple[list[tuple[Any, ...]], Instant]] = field(default_factory=list)
    clock: Instant = -INFINITY
    known: dict[str, Registered] = field(default_factory=dict)

    def come(self, emits: dict[str, Emit]) -> None:
        self.pool.add(emits)
        for name in emits.keys() & self.pool.plan.questions.keys():
            emit = emits[name]
            self.known[name] = Registered(emit, self.clock, self.pool.complete_from(name))

    def go(self, name: str) -> None:
        self.pool.drop(name)
        if name in self.known:
            self.known[name].went = self.clock

    def step(self, rows: list[tuple[Any, ...]], clock: Instant) -> None:
        self.steps.append((rows, clock))
        frame = frame_of(STREAM.schema, canonical_rows(STREAM.schema, rows, "s"))
        self.pool.push("s", frame, "ts")
        self.clock = clock
        for each in self.pool.advance("s", clock):
            self.found[each.query] += self._rows(each)

    def _rows(self, each: Answer) -> list[tuple[int, tuple[Any, ...]]]:
        frame: pl.DataFrame = to_frame(each.table)
        rows = rows_of(frame, self.known[each.query].emit.schema)
        return list(zip(frame["#at"].to_list(), rows, strict=True))

    def expected(self, name: str) -> list[tuple[int, tuple[Any, ...]]]:
        """What the oracle says, given all rows from the beginning, about the time the query was there."""
        mine = self.known[name]
        oracle = ReferenceExecutor(mine.emit)
        for rows, clock in self.steps:
            oracle.push("s", rows)
            if clock == INFINITY:
                oracle.finish()
            else:
                oracle.punctuate("s", int(clock))
        length = mine.emit.leaves[0].spec.range  # type: ignore[attr-defined]
        begin = -INFINITY if mine.complete_from is None else mine.complete_from
        return [
            (change.at, change.row)
            for change in oracle.take()
            if mine.came < change.at <= mine.went and change.at - length >= begin
        ]


def check(run: Run) -> int:
    compared = 0
    for name in run.known:
        try:
            expected = sorted(run.expected(name), key=repr)
        except DataError:
            continue  # the oracle fails for sums that overflow before the query came, or after it went
        found = sorted(run.found[name], key=repr)
        assert len(found) == len(expected), (name, found, expected)
        assert all(map(alike, found, expected)), (name, found, expected)
        compared += len(found)
    return compared


@settings(max_examples=20)
@given(st.lists(queries(), min_size=1, max_size=5), batches(), st.sampled_from([1, 2, 4]))
def test_shared_answers_are_those_of_the_oracle(
    emits: list[Emit], steps: list[Any], most_probed: int
) -> None:
    run = Run(Pool(most_probed))
    run.come({f"q{n}": emit for n, emit in enumerate(emits)})
    try:
        for rows, clock in [*steps, ([], INFINITY)]:
            run.step(rows, clock)
    except DataError:
        return  # a sum that overflows fails alone as well
    check(run)


@settings(max_examples=20)
@given(st.data())
def test_queries_come_and_go(data: st.DataObject) -> None:
    run, there, number = Run(), [], 0
    try:
        for rows, clock in [*data.draw(batches()), ([], INFINITY)]:
            for _ in range(data.draw(st.integers(0, 2))):
                if there and data.draw(st.booleans()):
                    run.go(there.pop(data.draw(st.integers(0, len(there) - 1))))
                else:
                    run.come({f"q{number}": data.draw(queries())})
                    there.append(f"q{number}")
                    number += 1
            run.step(rows, clock)
    except DataError:
        return
    check(run)


@pytest.fixture
def user_aggregates() -> Iterator[None]:
    aggregate(
        name="range_of",
        returns="BIGINT",
        init=lambda: None,
        step=lambda s, x: s if x is None else (x, x) if s is None else (min(s[0], x), max(s[1], x)),
        merge=lambda a, b: b if a is None else a if b is None else (min(a[0], b[0]), max(a[1], b[1])),
        final=lambda s: None if s is None else (s[1] - s[0]) % 1000,
    )
    aggregate(
        name="joined",
        returns="STRING",
        init=lambda: "",
        step=lambda s, x: s + (x or "-"),
        final=lambda s: s,
    )
    yield
    user.forget("range_of")
    user.forget("joined")


@pytest.mark.usefixtures("user_aggregates")
@pytest.mark.parametrize("measured", [Measured("range_of", ("v",)), Measured("joined", ("s",))])
def test_user_defined_aggregates_are_shared(measured: Measured) -> None:
    def asked(length: int, slide: int, *keys: str) -> Emit:
        rows = Window(Scan(STREAM, "s"), RangeWindow(length, slide))
        odd = call("=", [rows.schema.column("s.k"), Literal(1, BIGINT)])
        by = tuple((key, rows.schema.column(f"s.{key}")) for key in keys)
        return Emit(Aggregate(rows, by, (("a", measured.call(rows)), ("b", measured.call(rows, odd)))))

    run = Run()
    run.come({"q0": asked(4, 2, "k"), "q1": asked(6, 3, "k"), "q2": asked(6, 6), "q3": asked(12, 1, "k")})
    for start in (0, 8):
        run.step([row_of(n * 7919, start + n % 7) for n in range(12)], start + 5)
    run.step([], INFINITY)
    assert check(run) > 50
    assert max(map(len, run.pool.plan.users.values())) == 3


def _asked_where(
    places: tuple[int, ...], length: int, measures: list[Measured], keys: tuple[str, ...]
) -> Emit:
    """A query over rows that satisfy any of some conditions; the last of these overlaps with the others."""
    plan: Any = Window(Scan(STREAM, "s"), RangeWindow(length, 2))
    k, b = plan.schema.column("s.k"), plan.schema.column("s.b")
    atoms = [*(call("=", [k, Literal(value, BIGINT)]) for value in (0, 1, 2)), b]
    where = atoms[places[0]]
    for place in places[1:]:
        where = call("or", [where, atoms[place]])
    plan = Filter(plan, where)
    by = tuple((key, plan.schema.column(f"s.{key}")) for key in keys)
    return Emit(Aggregate(plan, by, tuple((f"a{n}", m.call(plan)) for n, m in enumerate(measures))))


_SUMS = [Measured("count", ()), Measured("sum", ("d",)), Measured("avg", ("d",)), Measured("median", ("d",))]
_EXTREMES = [Measured("max", ("x",)), Measured("min", ("s",)), Measured("count", ("s",), distinct=True)]


@settings(max_examples=12)
@given(
    st.sampled_from(
        [
            ([(0,), (1,)], (0, 1), _SUMS),
            ([(0, 1, 2), (1,), (2,)], (0,), _SUMS),
            ([(0, 1, 2), (1,)], (0, 2), _SUMS),
            ([(0,), (3,)], (0, 3), _EXTREMES),
            ([(0, 1), (1, 3)], (0, 1, 3), _EXTREMES),
        ]
    ),
    st.sampled_from([(), ("k",), ("s", "x")]),
    batches(),
)
def test_what_is_combined_from_synopses_of_others(
    case: tuple[list[tuple[int, ...]], tuple[int, ...], list[Measured]],
    keys: tuple[str, ...],
    steps: list[Any],
) -> None:
    held, asked, measures = case
    run = Run()
    for number, places in enumerate(held):
        run.come({f"q{number}": _asked_where(places, 8, measures, keys)})
    before = set(run.pool.plan.synopses)
    run.come({"last": _asked_where(asked, 6, measures, keys)})
    assert set(run.pool.plan.synopses) == before
    assert {rule[0] for rule in run.pool.plan.shares["last"].rules.values()} <= {"SS2", "SS4"}
    for rows, clock in [*steps, ([], INFINITY)]:
        run.step(rows, clock)
    check(run)
