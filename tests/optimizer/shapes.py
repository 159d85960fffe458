"""Random plans in which one rule or one alternative has something to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from tests.optimizer.strategies import (
    Draw,
    Kit,
    Specs,
    any_window,
    calls,
    columns,
    conditions,
    joining,
    logical,
    number,
    relations,
    tried,
)
from tests.support.plans import STREAMS, TABLES, landmarks, named, ranges, words

from windrow.algebra.catalog import Late, TableKind
from windrow.algebra.expressions import TRUE, Literal
from windrow.algebra.functions import call
from windrow.algebra.operators import (
    Aggregate,
    AggregateCall,
    Distinct,
    Exists,
    Filter,
    Join,
    Project,
    TableJoin,
    Union,
)
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, TableScan, Window
from windrow.algebra.types import BIGINT
from windrow.windows.ranges import RangeWindow


@st.composite
def with_constants(draw: Draw) -> Emit:
    """A query with conditions that are in part, or in whole, constant."""
    below = draw(relations(Kit(), draw(st.integers(0, 1))))
    k, v = columns(below)
    two = call("+", [number(1), number(1)])
    constant = draw(
        st.sampled_from(
            [
                call("<", [number(1), two]),
                call("=", [two, number(3)]),
                call("is_null", [call("+", [number(1), Literal(None, BIGINT)])]),
                call(">", [Literal(None, BIGINT), k]),
                call("not", [call("in", [k, two, number(1)])]),
                call("=", [call("coalesce", [Literal(None, BIGINT), k, v]), two]),
                call("=", [call("case", [call(">", [two, number(1)]), v, k]), number(1)]),
            ]
        )
    )
    connective = draw(st.sampled_from(["and", "or"]))
    predicate = call(connective, [constant, draw(conditions(k, v))])
    outputs = ((below.schema.names[0], k), (below.schema.names[1], call("if", [constant, v, two])))
    return Emit(Project(Filter(below, predicate), outputs), draw(words))


@st.composite
def roundabout(draw: Draw) -> Emit:
    """A query with a condition that could be said more simply."""
    below = draw(relations(Kit(), draw(st.integers(0, 1))))
    k, v = columns(below)
    part = draw(conditions(k, v))
    said = draw(
        st.sampled_from(
            [
                call("not", [call("or", [call("<", [v, k]), call("is_null", [v])])]),
                call("and", [call("<", [number(1), v]), call("not", [call("<=", [v, number(1)])])]),
                call("and", [part, part]),
                call("not", [call("not", [part])]),
            ]
        )
    )
    return Emit(Filter(below, said), draw(words))


@st.composite
def nested_joins(draw: Draw, specs: Specs = any_window) -> Emit:
    """A join of joins, in either nesting."""
    kit = Kit(specs)
    a, b, c = (draw(relations(kit, 0)) for _ in range(3))
    inner = Join((a, b), joining((a, b)))
    parts = draw(st.sampled_from([(inner, c), (c, inner)]))
    joined = tried(lambda: Emit(Join(parts, joining(parts, draw(st.sampled_from(["=", "<="])))), draw(words)))
    assert isinstance(joined, Emit)
    return joined


def keeping_late_rows(emit: Emit) -> Emit:
    """The same query over streams declared LATE KEEP."""

    def keep(node: Plan) -> Plan:
        return replace(node, stream=replace(node.stream, late=Late.KEEP)) if isinstance(node, Scan) else node

    kept = emit.rewrite(keep)
    assert isinstance(kept, Emit)
    return kept


@st.composite
def negations(draw: Draw, low: bool, word: StreamWord | None = None, specs: Specs = logical) -> Emit:
    """(NOT) EXISTS on a part of a join: below it, or above it."""
    kit = Kit(specs)
    a, b, r = (draw(relations(kit, 0)) for _ in range(3))
    negated = draw(st.booleans())
    matched = call("=", [columns(a)[draw(st.integers(0, 1))], columns(r)[0]])

    def make() -> Plan:
        if low:
            inner = Exists(a, r, matched, negated)
            return Join((inner, b) if draw(st.booleans()) else (b, inner), joining((a, b)))
        return Exists(Join((a, b) if draw(st.booleans()) else (b, a), joining((a, b))), r, matched, negated)

    return _emitted(draw, make, word)


@st.composite
def table_joins(draw: Draw, low: bool) -> Emit:
    """A join with a table, below or above a join of streams."""
    kit = Kit(logical)
    a, b = (draw(relations(kit, 0)) for _ in range(2))
    relation = next(table for table in TABLES if table.kind is TableKind.RELATION)
    table = TableScan(draw(st.sampled_from([relation, relation, *TABLES])), "t")
    matched = call("=", [columns(a)[0], table.schema.column("t.k")])
    on_table = call("<=", [table.schema.column("t.v"), columns(b)[1]])

    def make() -> Plan:
        if low:
            parts = (TableJoin(a, table, matched), b)
            return Join(parts, call("and", [joining((a, b)), on_table]))
        return TableJoin(Join((b, a), joining((a, b))), table, matched)

    return _emitted(draw, make)


@st.composite
def distinct_joins(draw: Draw, word: StreamWord | None = None, specs: Specs = any_window) -> Emit:
    """Duplicates dropped above a join; sometimes columns are dropped in between."""
    kit = Kit(specs)
    parts = tuple(draw(relations(kit, 0)) for _ in range(2))
    joined: Plan = Join(parts, joining(parts, draw(st.sampled_from(["=", "<="]))))
    if draw(st.booleans()):
        joined = named(
            Filter(joined, call("is_not_null", [columns(parts[0])[1]])), "d", *joined.schema.names[1:3]
        )
    return _emitted(draw, lambda: Distinct(joined), word)


@st.composite
def three_way_joins(draw: Draw) -> Emit:
    """Three windows joined on one attribute."""
    kit = Kit()
    parts = tuple(draw(relations(kit, 0)) for _ in range(3))
    return _emitted(draw, lambda: Join(parts, joining(parts)))


@st.composite
def sliding_aggregates(draw: Draw) -> Emit:
    """Aggregates over extents that overlap, or leave gaps, or neither."""
    scan = Scan(draw(st.sampled_from(STREAMS)), "s")
    size, slide = draw(st.sampled_from([(6, 4), (4, 2), (5, 2), (3, 1), (4, 6), (6, 1), (3, 3)]))
    below: Plan = Window(scan, RangeWindow(size, slide, draw(st.integers(-3, 3))))
    k, v = scan.schema.column("s.k"), scan.schema.column("s.v")
    if draw(st.booleans()):
        below = Filter(below, draw(conditions(k, v)))
    keys = (("k", k),) if draw(st.booleans()) else ()
    values = tuple(
        (f"v{n}", draw(calls(v, distinct=True))) for n in range(draw(st.integers(0 if keys else 1, 2)))
    )
    return _emitted(draw, lambda: Aggregate(below, keys, values))


@st.composite
def united_streams(draw: Draw) -> Emit:
    """One window over a union of streams."""
    scans = tuple(Scan(draw(st.sampled_from(STREAMS)), alias) for alias in "ab")
    return _emitted(draw, lambda: Window(Union(scans), draw(ranges() | landmarks())))


def _emitted(draw: Draw, make: Callable[[], Plan], word: StreamWord | None = None) -> Emit:
    emit = tried(lambda: Emit(make(), draw(words) if word is None else word))
    assert isinstance(emit, Emit)
    return emit


@st.composite
def trivial(draw: Draw) -> Emit:
    """A query with an operator that does nothing."""
    below = draw(relations(Kit(), draw(st.integers(0, 1))))
    same = Project(below, tuple((name, below.schema.column(name)) for name in below.schema.names))
    k, v = columns(below)
    grouped = Aggregate(below, (("k", k),), (("v", AggregateCall("max", (v,), BIGINT)),))
    plan = draw(st.sampled_from([Filter(below, TRUE), same, Distinct(grouped), Distinct(Distinct(same))]))
    return _emitted(draw, lambda: plan)
