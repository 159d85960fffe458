"""Random workloads: queries over one stream, with windows, conditions and groupings that can be shared."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from tests.kernels.queries import COLUMNS, MEASURES, Measured, row_of

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import TRUE, Expression, Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import Aggregate, Filter
from windrow.algebra.plan import Emit, Plan, Scan, Window
from windrow.algebra.types import BIGINT, DOUBLE, STRING
from windrow.windows.ranges import RangeWindow

STREAM = Stream("s", COLUMNS, "ts")
_COMMON = [
    Measured("count", ()),
    Measured("count", ("v",)),
    Measured("sum", ("d",)),
    Measured("avg", ("d",)),
    Measured("max", ("x",)),
    Measured("min", ("s",)),
    Measured("median", ("d",)),
    Measured("count", ("s",), distinct=True),
    Measured("frequent", ("s",), (2,)),
]


def atoms(plan: Plan) -> list[Expression]:
    """Comparisons, of which some are disjoint, some overlap, and some hold for NULL."""
    k, x, s, b = (plan.schema.column(f"s.{name}") for name in ("k", "x", "s", "b"))
    return [
        *(call("=", [k, Literal(value, BIGINT)]) for value in (0, 1, 2)),
        *(call("=", [s, Literal(value, STRING)]) for value in ("a", "b")),
        call("is_null", [k]),
        call("<", [x, Literal(1.0, DOUBLE)]),
        call(">=", [x, Literal(1.0, DOUBLE)]),
        b,
        call("not", [b]),
    ]


@st.composite
def conditions(draw: st.DrawFn, plan: Plan) -> Expression:
    """TRUE, an atom, an OR of atoms, or one with an AND inside."""
    found = draw(st.lists(st.sampled_from(atoms(plan)), max_size=3, unique_by=repr))
    if not found:
        return TRUE
    if len(found) == 3 and draw(st.booleans()):
        return call("or", [found[0], call("and", found[1:])])
    result = found[0]
    for part in found[1:]:
        result = call("or", [result, part])
    return result


@st.composite
def queries(draw: st.DrawFn, measures: list[Measured] | None = None) -> Emit:
    """An aggregate over [RANGE r SLIDE s]; few choices, so that many can share."""
    slide = draw(st.sampled_from([1, 2, 3, 4]))
    length = draw(st.sampled_from([1, 2, 3, 4, 6, 7, 12]))
    origin = draw(st.sampled_from([0, 0, 0, 1]))
    plan: Plan = Window(Scan(STREAM, "s"), RangeWindow(length, slide, origin))
    where = draw(conditions(plan))
    if where != TRUE:
        plan = Filter(plan, where)
    keys = draw(st.sampled_from([(), ("k",), ("s",), ("k", "x")]))
    kinds = st.sampled_from(measures or [*_COMMON, *_COMMON, *_COMMON, *MEASURES])
    calls = []
    for place, measured in enumerate(draw(st.lists(kinds, min_size=1, max_size=3))):
        chosen = draw(conditions(plan)) if draw(st.integers(0, 4)) == 0 else TRUE
        calls.append((f"a{place}", measured.call(plan, chosen)))
    by = tuple((key, plan.schema.column(f"s.{key}")) for key in keys)
    return Emit(Aggregate(plan, by, tuple(calls)))


@st.composite
def batches(draw: st.DrawFn) -> list[tuple[list[tuple[Any, ...]], int]]:
    """Rows, and the progress after them: disorder, but never a late row; at times a long gap."""
    found, clock = [], 0
    for _ in range(draw(st.integers(2, 6))):
        moments = draw(st.lists(st.integers(clock, clock + 8), max_size=8))
        codes = draw(st.lists(st.integers(0, 2_000_000_000), min_size=len(moments), max_size=len(moments)))
        clock += draw(st.sampled_from([0, 1, 2, 5, 9, 30]))
        found.append(([row_of(code, t) for code, t in zip(codes, moments, strict=True)], clock))
    return found
