"""Random queries of the class that sliding-aggregate kernels run, and random histories to run them on.

A history is a list of steps: micro-batches, promises, the passing of time, takes. Values are chosen so that
sums of doubles are exact in any order (dyadic), except for those that shall poison a window: NaN, the
infinities, and numbers so huge that a small one vanishes beside them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from windrow.algebra import aggregates
from windrow.algebra.catalog import Late, ProgressRule, Stream
from windrow.algebra.expressions import TRUE, Expression, Field, Literal, Schema, WindowBound
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, AggregateCall, Filter, Project
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Window
from windrow.algebra.types import BIGINT, BOOLEAN, DOUBLE, STRING, decimal
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.progress import (
    NoPolicy,
    Ordered,
    OrderedPer,
    Punctuated,
    Slack,
    SlackRows,
)
from windrow.windows.ranges import RangeWindow
from windrow.windows.spec import WindowSpec

COLUMNS = Schema(
    (
        Field("k", BIGINT),
        Field("v", BIGINT),
        Field("x", DOUBLE),
        Field("d", decimal(10, 2)),
        Field("w", decimal(38, 1)),
        Field("s", STRING),
        Field("b", BOOLEAN),
        Field("ts", BIGINT),
    )
)
MOST = (1 << 63) - 1
VALUES: dict[str, list[Any]] = {
    "k": [None, 0, 1, 2],
    "v": [1, 2, 3, None, 0, 1, 2, 3, -5, 7, 1 << 40, 4, 5, 6, MOST, -MOST - 1],
    "x": [None, 0.0, -0.0, 0.5, 2.25, -3.0, 4.0, math.nan, math.inf, -math.inf, 2.0**100],
    "d": [None, *map(Decimal, ("0.00", "0.10", "0.20", "-1.25", "99999999.99"))],
    "w": [None, *map(Decimal, ("0.1", "-2.5", "9" * 30, "-" + "9" * 30))],
    "s": [None, "", "a", "b", "é", "a\U0001f600"],
    "b": [None, True, False],
}
FIRST, LAST = -6, 24

#: every window kind of the class, by the relation of RANGE and SLIDE
WINDOW_KINDS: dict[str, st.SearchStrategy[WindowSpec]] = {
    "tumbling": st.builds(lambda r, o: RangeWindow(r, r, o), st.integers(1, 5), st.integers(-3, 3)),
    "sliding": st.builds(
        lambda s, n, o: RangeWindow(s * n, s, o), st.integers(1, 3), st.integers(2, 6), st.integers(-3, 3)
    ),
    "uneven": st.builds(
        RangeWindow, st.sampled_from([5, 7, 11]), st.sampled_from([2, 3, 4]), st.integers(-3, 3)
    ),
    "gaps": st.builds(RangeWindow, st.integers(1, 3), st.integers(4, 7), st.integers(-3, 3)),
    "landmark": st.builds(
        lambda a, b, s, o: LandmarkWindow(a, b, s, o),
        st.none() | st.integers(FIRST, 5),
        st.none() | st.integers(8, LAST),
        st.integers(1, 5),
        st.none() | st.integers(-3, 3),
    ),
}


@dataclass(frozen=True)
class Measured:
    """An aggregate to test: its name, the columns it is over, its constants."""

    function: str
    columns: tuple[str, ...]
    params: tuple[Any, ...] = ()
    distinct: bool = False

    def call(self, rows: Plan, where: Expression = TRUE) -> AggregateCall:
        args = tuple(rows.schema.column(f"s.{column}") for column in self.columns)
        algebra = aggregates.make(
            self.function, self.params, distinct=self.distinct, types=tuple(arg.type for arg in args)
        )
        assert algebra.result is not None
        return AggregateCall(self.function, args, algebra.result, self.params, self.distinct, where)


_ANY = [("v",), ("x",), ("d",), ("w",), ("s",), ("b",), ("ts",)]
_NUMBERS = [("v",), ("x",), ("d",), ("w",), ("ts",)]
MEASURES = [
    Measured("count", ()),
    Measured("count", ("v", "x")),
    *(Measured(name, c) for name in ("min", "max", "any_value", "first", "last", "mode") for c in _ANY),
    *(Measured(name, c) for name in ("sum", "avg", "median") for c in _NUMBERS),
    *(Measured(n, c) for n in ("var_pop", "var_samp", "stddev_pop", "stddev_samp") for c in _NUMBERS),
    *(Measured("quantile", c, (p,)) for c, p in zip(_NUMBERS, (0.0, 0.25, 0.9, 1.0, 0.5), strict=True)),
    Measured("percentile_disc", ("s",), (0.5,)),
    Measured("percentile_disc", ("v",), (0.07,)),
    *(Measured("top_k", c, (2,)) for c in _ANY),
    *(Measured("approx_count_distinct", c, (0.2,)) for c in _ANY),
    *(
        Measured("approx_quantile", c, (p,))
        for c, p in zip(_NUMBERS, (0.5, 0.25, 0.9, 1.0, 0.0), strict=True)
    ),
    *(Measured("approx_top_k", c, (2, 3)) for c in _ANY),
    *(Measured("frequent", c, (k,)) for c in _ANY for k in (1, 2, 3)),
    *(Measured("heavy_hitters", c, (0.3,)) for c in _ANY),
    Measured("heavy_hitters", ("s",), (0.0,), distinct=True),
    Measured("heavy_hitters", ("s",), (0.5, ">=")),
    *(Measured("count", c, distinct=True) for c in [*_ANY, ("v", "s")]),
    *(Measured(name, ("v",), distinct=True) for name in ("sum", "avg", "var_samp", "mode", "median")),
    Measured("sum", ("x",), distinct=True),
    Measured("top_k", ("s",), (1,), distinct=True),
    Measured("approx_quantile", ("v",), (0.5, 0.1), distinct=True),
    Measured("approx_frequency", ("v",), (3, 0.5)),
    Measured("approx_frequency", ("x",), (0.5, 0.9)),
    Measured("approx_frequency", ("s",), ("a", 0.6)),
    Measured("approx_frequency", ("s",), ("b", 0.6)),
    Measured("approx_frequency", ("v",), (1,), distinct=True),
    *(Measured(name, ("b",)) for name in ("bool_and", "bool_or")),
    *(Measured(name, c) for name in ("bit_and", "bit_or", "bit_xor") for c in (("v",), ("ts",))),
    *(Measured(name, (c, by)) for name in ("max_by", "min_by") for c in "vxs" for by in "vxds"),
    *(
        Measured(name, pair)
        for name in ("covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept")
        for pair in (("x", "x"),)
    ),
    *(Measured("array_agg", c) for c in _ANY),
    *(Measured("histogram", c) for c in _ANY),
    Measured("string_agg", ("s",), ("-",)),
    Measured("listagg", ("s",)),
    Measured("array_agg", ("x",), distinct=True),
    Measured("string_agg", ("s",), ("",), distinct=True),
    Measured("bit_xor", ("v",), distinct=True),
    Measured("covar_pop", ("x", "x"), distinct=True),
]


def row_of(code: int, ts: int) -> tuple[Any, ...]:
    """A row by its number: one draw instead of one per column."""
    values = []
    for choices in VALUES.values():
        values.append(choices[code % len(choices)])
        code //= len(choices)
    return (*values, ts)


_COMBINATIONS = math.prod(map(len, VALUES.values()))


def rows() -> st.SearchStrategy[tuple[Any, ...]]:
    return st.builds(row_of, st.integers(0, _COMBINATIONS - 1), st.integers(FIRST, LAST))


def keyed(rows: Plan) -> dict[str, Expression]:
    """What to group by: columns of several types, and an expression."""
    k, x = rows.schema.column("s.k"), rows.schema.column("s.x")
    rest = call("%", [call("coalesce", [k, Literal(0, BIGINT)]), Literal(2, BIGINT)])
    return {
        "k": k,
        "x": x,
        "s": rows.schema.column("s.s"),
        "odd": call("=", [rest, Literal(1, BIGINT)]),
    }


@st.composite
def sliding_plans(
    draw: st.DrawFn,
    stream: Stream,
    spec: WindowSpec | None = None,
    most: int = 4,
    keys: tuple[str, ...] = (),
    measures: Sequence[Measured] = tuple(MEASURES),
) -> Emit:
    """A query: a window, WHERE, GROUP BY, aggregates with FILTERs, HAVING, a select list."""
    scan: Plan = Scan(stream, "s")
    if draw(st.integers(0, 4)) == 0:
        scan = Filter(scan, call("is_not_null", [scan.schema.column("s.v")]))
    spec = spec or draw(st.one_of(*WINDOW_KINDS.values()))
    plan: Plan = Window(scan, spec)
    tests = _tests(plan)
    if draw(st.integers(0, 2)) == 0:
        plan = Filter(plan, draw(st.sampled_from(tests)))
    chosen = draw(st.lists(st.sampled_from(sorted(keyed(plan))), max_size=2, unique=True))
    chosen = [*keys, *(key for key in chosen if key not in keys)]
    if stream.late is Late.KEEP:
        lists = ("frequent", "approx_top_k")
        measures = [measured for measured in measures if measured.function not in lists]
    calls = []
    for place, measured in enumerate(draw(st.lists(st.sampled_from(measures), min_size=1, max_size=most))):
        where = draw(st.sampled_from([TRUE, TRUE, TRUE, *tests]))
        calls.append((f"a{place}", measured.call(plan, where)))
    grouped: Plan = Aggregate(plan, tuple((key, keyed(plan)[key]) for key in chosen), tuple(calls))
    if draw(st.integers(0, 3)) == 0:
        grouped = Filter(grouped, call("is_not_null", [grouped.schema.column("a0")]))
    if draw(st.booleans()):
        bounds = ["window_end"] if spec.has_bounds else []
        bounds += ["window_start"] if spec.has_bounds else []
        outputs = [(name, grouped.schema.column(name)) for name in grouped.schema.names]
        grouped = Project(grouped, (*outputs, *((name, WindowBound(name, BIGINT)) for name in bounds)))
    return Emit(grouped, draw(st.sampled_from([StreamWord.AUTO, StreamWord.RSTREAM])))


def _tests(plan: Plan) -> list[Expression]:
    v, k, x = (plan.schema.column(f"s.{name}") for name in "vkx")
    return [
        call(">", [v, Literal(0, BIGINT)]),
        call("<", [x, Literal(2.0, DOUBLE)]),
        call("or", [call("is_null", [k]), call("<=", [k, Literal(1, BIGINT)])]),
    ]


def policies() -> list[ProgressRule]:
    """Every punctuation policy."""
    k, ts = COLUMNS.column("k"), COLUMNS.column("ts")
    marked = call("-", [ts, Literal(2, BIGINT)])
    some = call("if", [COLUMNS.column("b"), marked, Literal(None, BIGINT)])
    only = call("and", [call("is_null", [COLUMNS.column("s")]), call("=", [k, Literal(2, BIGINT)])])
    return [
        ProgressRule(NoPolicy()),
        ProgressRule(Ordered()),
        ProgressRule(Slack(3)),
        ProgressRule(SlackRows(2)),
        ProgressRule(Punctuated(), mark=some),
        ProgressRule(Punctuated(), mark=some, when=only),
        ProgressRule(OrderedPer(), per="k"),
        ProgressRule(OrderedPer(idle=5), per="k"),
        ProgressRule(Punctuated(per=True), per="k", mark=some),
    ]


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """A declared stream with any policy."""
    late = draw(st.sampled_from(list(Late)))
    rule = draw(st.sampled_from(policies()))
    return Stream("s", COLUMNS, "ts", rule, late)


Step = tuple[str, Any]


@st.composite
def histories(draw: st.DrawFn, stream: Stream, most: int = 6) -> list[Step]:
    """Micro-batches in any order, with promises, waits and takes between them; then the end."""
    own = st.tuples(st.just("own"), st.tuples(st.integers(FIRST, LAST), st.sampled_from(VALUES["k"])))
    steps = st.one_of(
        st.tuples(st.just("push"), st.lists(rows(), min_size=2, max_size=7)),
        st.tuples(st.just("push"), st.lists(rows(), max_size=7)),
        st.tuples(st.just("promise"), st.integers(FIRST, LAST)),
        st.tuples(st.just("wait"), st.integers(1, 6)),
        own,
    )
    found: list[Step] = []
    for step in draw(st.lists(steps, min_size=1, max_size=most)):
        found += [step, ("take", None)] if draw(st.booleans()) else [step]
    return [*found, ("take", None), ("finish", None), ("take", None)]
