"""What the random plans of `tests.support.plans` do not have.

Declared policies, late rows that are kept, INTERNAL windows, RESTORE, bounds of extents, LIMIT, aggregates of
every kind, doubles with NaN, windows on other attributes, promises about single groups; and denser histories.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any

from hypothesis import assume, note, strategies as st
from tests.kernels.relational.scripts import Step
from tests.support.plans import TABLES

from windrow.algebra import aggregates
from windrow.algebra.catalog import Late, ProgressRule, Stream
from windrow.algebra.expressions import TRUE, ColumnRef, Expression, Field, Literal, Schema, WindowBound
from windrow.algebra.functions import call
from windrow.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Except,
    Exists,
    Filter,
    Join,
    Limit,
    Project,
    TableJoin,
    Union,
)
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, StreamWord, Subquery, TableScan, Window
from windrow.algebra.types import BIGINT, BOOLEAN, DOUBLE, STRING
from windrow.errors import QueryError
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.progress import NoPolicy, Ordered, OrderedPer, Punctuated, Slack, SlackRows
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

COLUMNS = Schema(
    (
        Field("k", BIGINT),
        Field("v", BIGINT),
        Field("x", DOUBLE),
        Field("s", STRING),
        Field("b", BOOLEAN),
        Field("e", BIGINT),
        Field("u", BIGINT),
        Field("ts", BIGINT),
    )
)
CHOICES: dict[str, list[Any]] = {
    "k": [None, 0, 1, 1, 2],
    "v": [None, 0, 1, 2, 3, -4],
    "x": [None, 0.0, -0.0, 0.5, -2.25, math.nan, math.inf],
    "s": [None, "", "a", "b"],
    "b": [None, True, False],
    "e": [None, -1, 0, 2, 5, 9],
}
SPAN = 30


def policies() -> list[ProgressRule]:
    ts = COLUMNS.column("ts")
    marked = call("-", [ts, Literal(2, BIGINT)])
    some = call("if", [COLUMNS.column("b"), marked, Literal(None, BIGINT)])
    only = call("=", [COLUMNS.column("e"), Literal(9, BIGINT)])
    return [
        ProgressRule(NoPolicy()),
        ProgressRule(Ordered()),
        ProgressRule(Slack(4)),
        ProgressRule(SlackRows(3)),
        ProgressRule(Punctuated(), mark=some, when=only),
        ProgressRule(OrderedPer(), per="k"),
        ProgressRule(OrderedPer(idle=5), per="k"),
        ProgressRule(Punctuated(per=True), per="k", mark=some),
    ]


class Drawer:
    """Draws plans with a generator of random numbers: one draw of Hypothesis instead of hundreds."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        rules, lates = policies(), [Late.DROP, Late.DROP, Late.KEEP, Late.TO]
        self.keeps = self.random.random() < 0.3
        self.streams = [
            Stream(n, COLUMNS, "ts", self.pick(rules), self.pick(lates) if self.keeps else Late.DROP)
            for n in ("s1", "s2")
        ]
        self.count = 0
        self.periodic = self.random.random() < 0.4
        self.internal = self.random.random() < 0.15
        #: all windows have bounds, and several of them are read
        self.bounds = self.random.random() < 0.15

    def pick(self, choices: list[Any]) -> Any:
        return self.random.choice(choices)

    def alias(self) -> str:
        self.count += 1
        return f"r{self.count}"

    # Windows.

    def spec(self, alias: str) -> WindowSpec:
        r, s, o = self.random.randint(1, 9), self.random.randint(1, 6), self.random.randint(-3, 3)
        wattr = self.pick([None] * 12 + ["u", "arrival_ts"])
        common = {"wattr": wattr, "internal": self.internal and self.random.random() < 0.8}
        sliding = [
            lambda: RangeWindow(r, s, o, **common),
            lambda: RangeWindow(r, s, o, **common),
            lambda: LandmarkWindow(self.pick([None, 5]), self.pick([None, 20]), s, **common),
            lambda: RowsWindow(r, slide_time=s, **common),
            lambda: RowsWindow(r, slide_rows=s, partition_by=self.pick([(), ("k",)]), **common),
            lambda: SlideByTupleWindow(r, s, None, self.pick([True, False]), internal=common["internal"]),
        ]
        if self.bounds:
            s = self.pick([2, 3])
            return self.pick([RangeWindow(2 * s, s, o), RangeWindow(r, s, o), LandmarkWindow(None, None, s)])
        if self.periodic:
            return self.pick(sliding)()
        return self.pick(
            [
                *sliding,
                lambda: RangeWindow(r, **common),
                lambda: RangeWindow(r, **common),
                lambda: NowWindow(**common),
                lambda: UnboundedWindow(**common),
                lambda: LandmarkWindow(self.pick([None, 5]), self.pick([None, 20]), None, **common),
                lambda: LifetimeWindow(ColumnRef(f"{alias}.e", BIGINT), **common),
                lambda: RowsWindow(
                    r,
                    partition_by=self.pick([(), ("k",), ("x",)]),
                    arrival_order=wattr is None and self.pick([True, False]),
                    **common,
                ),
                lambda: SessionWindow(s, self.pick([(), ("k",)])),
            ]
        )()

    def leaf(self) -> Plan:
        alias = self.alias()
        stream = self.pick(self.streams)
        scan: Plan = Scan(stream, alias, pseudo=self.pick([(), (), ("row_num",)]))
        spec = self.spec(alias)
        # whether rows that never enter a window in arrival order count in its positions is not settled
        if self.random.random() < 0.2 and not getattr(spec, "arrival_order", False):
            scan = Filter(scan, call("is_not_null", [scan.schema.column(f"{alias}.v")]))
        return Window(scan, spec)

    # Operators.

    def columns(self, plan: Plan, kind: Any = BIGINT) -> list[str]:
        return [field.name for field in plan.schema if field.type == kind]

    def shaped(self, plan: Plan) -> Plan:
        """Three columns: two numbers and a double."""
        alias = self.alias()
        numbers, doubles = self.columns(plan), self.columns(plan, DOUBLE)
        two = [plan.schema.column(self.pick(numbers)) for _ in range(2)]
        third: Expression = plan.schema.column(self.pick(doubles)) if doubles else Literal(0.5, DOUBLE)
        return Project(
            plan, tuple(zip((f"{alias}.k", f"{alias}.v", f"{alias}.x"), (*two, third), strict=True))
        )

    def relation(self, depth: int) -> Plan:
        if self.bounds and self.random.random() < 0.3:
            return self.bounded(self._relation(depth))
        return self._relation(depth)

    def _relation(self, depth: int) -> Plan:
        if depth == 0:
            plan = self.leaf()
            return plan if self.random.random() < 0.5 else self.shaped(plan)
        kind = self.pick(
            [
                "filter",
                "union",
                "distinct",
                "group",
                "group",
                "join",
                "except",
                "exists",
                "table",
                "nested",
                "limit",
            ]
        )
        below = self.relation(depth - 1)
        match kind:
            case "filter":
                return Filter(
                    below,
                    call(">", [below.schema.column(self.pick(self.columns(below))), Literal(0, BIGINT)]),
                )
            case "union":
                return Union((self.shaped(below), self.shaped(self.relation(depth - 1))))
            case "distinct":
                return Distinct(self.shaped(below))
            case "group":
                return self.grouped(below)
            case "join":
                return self.joined(below, depth)
            case "except":
                return Except(self.shaped(below), self.shaped(self.relation(depth - 1)))
            case "exists":
                other = self.relation(depth - 1)
                return Exists(below, other, self.condition(below, other), negated=self.pick([True, False]))
            case "table":
                table = TableScan(self.pick(list(TABLES)), self.alias())
                return TableJoin(below, table, self.condition(below, table))
            case "nested":
                alias = self.alias()
                shaped = self.shaped(below)
                renamed = Project(
                    shaped,
                    tuple(zip("kvx", (shaped.schema.column(n) for n in shaped.schema.names), strict=True)),
                )
                inner = Subquery(
                    Emit(renamed, self.pick([StreamWord.AUTO, StreamWord.ISTREAM, StreamWord.RSTREAM])), alias
                )
                return Window(
                    inner,
                    self.pick(
                        [
                            RangeWindow(4),
                            RangeWindow(6, 3),
                            RowsWindow(3),
                            RowsWindow(4, 2),
                            RowsWindow(2, partition_by=("k",)),
                        ]
                    ),
                )
        order = [
            (below.schema.column(self.pick(list(below.schema.names))), self.pick([True, False]))
            for _ in range(2)
        ]
        return Limit(below, tuple(order), self.random.randint(1, 3))

    def condition(self, left: Plan, right: Plan) -> Expression:
        kind = self.pick([BIGINT, BIGINT, DOUBLE])
        a, b = self.columns(left, kind), self.columns(right, kind)
        if not a or not b:
            a, b = self.columns(left), self.columns(right)
        first = left.schema.column(self.pick(a))
        second = right.schema.column(self.pick(b))
        test = call(self.pick(["=", "=", "=", "<", "<>"]), [first, second])
        return test if self.random.random() < 0.7 else call("and", [test, call("<=", [second, first])])

    def joined(self, below: Plan, depth: int) -> Plan:
        others = [self.relation(depth - 1) for _ in range(self.pick([1, 1, 2]))]
        tests = [self.condition(below, other) for other in others]
        return Join((below, *others), tests[0] if len(tests) == 1 else call("and", tests))

    def grouped(self, below: Plan) -> Plan:
        alias = self.alias()
        names = self.random.sample(list(below.schema.names), self.pick([0, 1, 1, 2]))
        keys = tuple((f"{alias}.g{i}", below.schema.column(name)) for i, name in enumerate(names))
        calls: list[tuple[str, AggregateCall]] = []
        for place in range(self.random.randint(1, 3)):
            name = self.pick(
                [
                    "count",
                    "sum",
                    "min",
                    "max",
                    "avg",
                    "first",
                    "last",
                    "median",
                    "mode",
                    "top_k",
                    "var_pop",
                    "any_value",
                    "approx_count_distinct",
                ]
            )
            column = below.schema.column(self.pick(self.columns(below) + self.columns(below, DOUBLE)[:1]))
            params = {"top_k": (2,), "approx_count_distinct": (0.2,)}.get(name, ())
            distinct = name in ("count", "sum") and self.random.random() < 0.3
            algebra = aggregates.make(name, params, distinct=distinct, types=(column.type,))
            assert algebra.result is not None
            where = self.pick(
                [
                    TRUE,
                    TRUE,
                    call(">", [below.schema.column(self.pick(self.columns(below))), Literal(0, BIGINT)]),
                ]
            )
            calls.append(
                (f"{alias}.a{place}", AggregateCall(name, (column,), algebra.result, params, distinct, where))
            )
        number = (f"{alias}.n", AggregateCall("count", (), BIGINT))
        return Aggregate(below, keys, (number, *calls))

    def query(self) -> Emit:
        plan = self.relation(self.random.randint(0, 3))
        word = self.pick([StreamWord.AUTO] * 3 + list(StreamWord))
        return Emit(self.bounded(plan) if self.random.random() < 0.3 else plan, word)

    def union(self) -> Emit:
        """UNION ALL of streams: branches of the same columns, each with its own windows and word."""
        branches = []
        for _ in range(self.pick([2, 2, 3])):
            self.periodic = self.random.random() < 0.6
            plan = self.shaped(self.relation(self.random.randint(0, 2)))
            word = self.pick(list(StreamWord))
            branch = Emit(plan, word)
            branches.append(Emit(plan, StreamWord.ISTREAM) if branch.emits_deletions else branch)
        return Emit(StreamUnion(tuple(branches)))

    def bounded(self, plan: Plan) -> Plan:
        """With the bounds of its own windows, as columns or in a condition."""
        if not all(leaf.spec.has_bounds for leaf in plan.leaves):
            return plan
        if len({leaf.spec.period for leaf in plan.leaves}) > 1:
            return plan
        alias, bound = self.alias(), WindowBound(self.pick(["window_start", "window_end"]), BIGINT)
        if self.random.random() < 0.2:
            return Filter(plan, call(">", [bound, plan.schema.column(self.pick(self.columns(plan)))]))
        bounds = tuple((f"{alias}.{n}", WindowBound(n, BIGINT)) for n in ("window_start", "window_end"))
        return Project(plan, (*((n, plan.schema.column(n)) for n in plan.schema.names), *bounds))

    # Histories.

    def rows(self, size: int, around: int) -> list[tuple[Any, ...]]:
        found = []
        for _ in range(size):
            values = [self.pick(choices) for choices in CHOICES.values()]
            u = self.pick([None, self.random.randint(0, SPAN)])
            found.append((*values, u, around + self.random.randint(-4, 4)))
        return found

    def script(self, own: bool) -> list[Step]:
        steps: list[Step] = []
        if self.random.random() < 0.7:
            steps += [("hold", (table.name, -20)) for table in TABLES]
        for around in range(0, SPAN, self.random.randint(3, 8)):
            for stream in self.streams:
                if self.random.random() < 0.8:
                    steps.append(("push", (stream.name, self.rows(self.random.randint(0, 7), around))))
            for table in TABLES:
                steps += self.changes(table.name, around)
            steps += self.promises(around, own)
            if self.random.random() < 0.7:
                steps.append(("take", ()))
        return [*steps, ("take", ()), ("finish", ()), ("take", ())]

    def changes(self, table: str, around: int) -> list[Step]:
        steps: list[Step] = []
        if self.random.random() < 0.4:
            size = self.random.randint(0, 2)
            new = [(self.random.randint(0, 2), self.random.randint(0, 3)) for _ in range(size)]
            steps.append(("update", (table, around, new)))
        if self.random.random() < 0.2:
            steps.append(("delete", (table, around)))
        return [*steps, ("hold", (table, around))] if self.random.random() < 0.5 else steps

    def promises(self, around: int, own: bool) -> list[Step]:
        steps: list[Step] = []
        if self.random.random() < 0.6:
            steps.append(("promise both", (around - self.random.randint(-1, 5),)))
        if own and self.random.random() < 0.7:
            known = around + self.random.randint(-4, 3)
            steps.append(("own", (self.pick(["s1", "s2"]), known, self.pick(CHOICES["k"]))))
        return [*steps, ("wait", (self.random.randint(1, 6),))] if self.random.random() < 0.3 else steps


@st.composite
def cases(draw: st.DrawFn, own: bool | None = None, *, union: bool = False) -> tuple[Emit, list[Step]]:
    """A plan and a history; what the algebra refuses is drawn again."""
    seed = draw(st.integers(0, 1 << 48))
    note(f"Drawer({seed})")
    drawer = Drawer(seed)
    try:
        plan = drawer.union() if union else drawer.query()
    except QueryError:
        assume(False)
        raise
    return plan, drawer.script(draw(st.booleans()) if own is None else own)
