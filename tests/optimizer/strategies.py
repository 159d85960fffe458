"""Random plans in the shapes that rules are about, over the streams and tables of `tests.support.plans`.

Every relation has the columns `alias.k` and `alias.v`. `Kit` says which windows and operators occur.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count

from hypothesis import assume, strategies as st
from tests.support.plans import STREAMS, TABLES, landmarks, named, ranges, row_windows, slides, small, words

from windrow.algebra.aggregates import make
from windrow.algebra.expressions import TRUE, ColumnRef, Expression, Literal
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
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, TableScan, Window
from windrow.algebra.types import BIGINT
from windrow.errors import QueryError
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import WindowSpec

Specs = Callable[[str], st.SearchStrategy[WindowSpec]]
Draw = st.DrawFn

SIMPLE = (
    "filter",
    "rename",
    "union",
    "distinct",
    "group",
    "join",
    "exists",
    "except",
    "limit",
    "table",
    "nest",
)


def any_window(alias: str) -> st.SearchStrategy[WindowSpec]:
    return st.one_of(logical(alias), physical(alias))


def logical(alias: str) -> st.SearchStrategy[WindowSpec]:
    lifetime = st.builds(LifetimeWindow, st.just(ColumnRef(f"{alias}.e", BIGINT)))
    return st.one_of(
        ranges(), ranges(), landmarks(), st.builds(NowWindow), st.builds(UnboundedWindow), lifetime
    )


def few(alias: str) -> st.SearchStrategy[WindowSpec]:
    """So few that two of them are often equal."""
    return st.sampled_from([RangeWindow(4), RangeWindow(4, 3), LandmarkWindow(start=0, slide=2)])


def physical(alias: str) -> st.SearchStrategy[WindowSpec]:
    sessions = st.builds(SessionWindow, small, st.sampled_from([(), ("k",)]))
    return st.one_of(row_windows(arrival=True), sessions, st.builds(SlideByTupleWindow, small))


def internal(alias: str) -> st.SearchStrategy[WindowSpec]:
    return st.builds(RangeWindow, small, st.none() | slides, internal=st.booleans())


def one_slide(slide: int) -> Specs:
    return lambda alias: st.builds(RangeWindow, small, st.just(slide))


@dataclass
class Kit:
    """What plans are made of."""

    specs: Specs = any_window
    operators: tuple[str, ...] = SIMPLE
    names: count[int] = field(default_factory=count)


def tried(make: Callable[[], Plan]) -> Plan:
    """What the algebra refuses is drawn again."""
    try:
        return make()
    except QueryError:
        assume(False)
        raise


@st.composite
def relations(draw: Draw, kit: Kit, depth: int) -> Plan:
    """A relation of the columns k and v."""
    alias = f"r{next(kit.names)}"
    if depth == 0:
        window = Window(Scan(draw(st.sampled_from(STREAMS)), alias), draw(kit.specs(alias)))
        return named(window, alias, f"{alias}.k", f"{alias}.v")
    make = _MAKERS[draw(st.sampled_from(kit.operators))]
    return tried(lambda: make(draw, kit, depth - 1, alias))


@st.composite
def queries(
    draw: Draw,
    specs: Specs = any_window,
    operators: tuple[str, ...] = SIMPLE,
    depth: int = 2,
    top: str | None = None,
    word: StreamWord | None = None,
) -> Emit:
    """A query whose topmost operator is `top`, if that is given."""
    kit = Kit(specs, operators)
    if top is None:
        relation = draw(relations(kit, draw(st.integers(1, depth))))
    else:
        below = draw(st.integers(0, depth - 1))
        relation = tried(lambda: _MAKERS[top](draw, kit, below, f"r{next(kit.names)}"))
    emit = tried(lambda: Emit(relation, draw(words) if word is None else word))
    assert isinstance(emit, Emit)
    return emit


def columns(plan: Plan) -> tuple[ColumnRef, ColumnRef]:
    k, v = (plan.schema.column(name) for name in plan.schema.names[:2])
    return k, v


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


def conditions(k: ColumnRef, v: ColumnRef) -> st.SearchStrategy[Expression]:
    """Conditions on two columns; the last ones can fail."""
    simple = [
        call(">", [v, number(1)]),
        call("=", [number(1), k]),
        call("is_null", [v]),
        call("<=", [k, v]),
        call("in", [k, number(0), number(2)]),
        call("not", [call("<", [v, k])]),
        call("=", [call("%", [v, number(2)]), number(0)]),
    ]
    fragile = [
        call(">", [call("div", [v, k]), number(0)]),
        call(">", [call("+", [v, k]), number(2)]),
    ]
    one = st.sampled_from([*simple, *simple, *fragile])
    both, either = (partial(_connected, connective) for connective in ("and", "or"))
    return st.one_of(one, st.builds(both, one, one), st.builds(either, one, one))


def _connected(connective: str, left: Expression, right: Expression) -> Expression:
    return call(connective, [left, right])


def _filter(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    below = draw(relations(kit, depth))
    return Filter(below, draw(conditions(*columns(below))))


def _rename(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    below = draw(relations(kit, depth))
    k, v = columns(below)
    other = draw(st.sampled_from([v, k, call("coalesce", [v, k]), call("if", [call("is_null", [k]), v, k])]))
    return Project(below, ((f"{alias}.k", k), (f"{alias}.v", other)))


def _union(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    return Union(tuple(draw(relations(kit, depth)) for _ in range(draw(st.integers(2, 3)))))


def _distinct(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    return Distinct(draw(relations(kit, depth)))


def _except(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    return Except(draw(relations(kit, depth)), draw(relations(kit, depth)))


def _limit(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    below = draw(relations(kit, depth))
    return Limit(below, ((columns(below)[1], draw(st.booleans())),), draw(st.integers(1, 3)))


def calls(v: ColumnRef, distinct: bool = False) -> st.SearchStrategy[AggregateCall]:
    """Aggregates of a column, some with a FILTER, some DISTINCT."""

    def one(name: str, filtered: bool, once: bool) -> AggregateCall:
        where = call(">", [v, number(0)]) if filtered else TRUE
        kind = make(name).result_type((v.type,))
        return AggregateCall(name, (v,), kind, where=where, distinct=once and name in ("count", "sum"))

    names = st.sampled_from(["count", "sum", "min", "max", "avg", "first", "last"])
    seldom = st.sampled_from([False, False, False, distinct])
    return st.builds(one, names, st.sampled_from([True, False, False]), seldom)


def _group(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    below = draw(relations(kit, depth))
    k, v = columns(below)
    keys = ((f"{alias}.k", k),) if draw(st.booleans()) else ()
    values = tuple((f"{alias}.{n}", draw(calls(v))) for n in range(draw(st.integers(1, 3))))
    grouped = Aggregate(below, keys, values)
    chosen = draw(st.sampled_from([name for name, _ in values]))
    narrow = Project(
        grouped,
        (
            (f"{alias}.k", grouped.schema.column(f"{alias}.k") if keys else number(0)),
            (f"{alias}.v", _as_bigint(grouped.schema.column(chosen))),
        ),
    )
    return narrow if draw(st.booleans()) or not keys else Filter(narrow, draw(conditions(*columns(narrow))))


def _as_bigint(value: ColumnRef) -> Expression:
    if value.type == BIGINT:
        return value
    return call("if", [call(">", [value, number(1)]), number(1), number(0)])


def _join(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    others = range(draw(st.integers(1, 2)))
    parts = (draw(relations(kit, depth)), *(draw(relations(kit, max(0, depth - 1))) for _ in others))
    joined = Join(parts, joining(parts, draw(st.sampled_from(["=", "=", "<="]))))
    if draw(st.booleans()):
        joined = Filter(joined, draw(conditions(columns(parts[0])[0], columns(parts[-1])[1])))
    return named(joined, alias, parts[0].schema.names[0], parts[-1].schema.names[1])


def joining(parts: tuple[Plan, ...], operator: str = "=") -> Expression:
    first = columns(parts[0])[0]
    tests = [call(operator, [first, columns(part)[0]]) for part in parts[1:]]
    return tests[0] if len(tests) == 1 else call("and", tests)


def _exists(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    left, right = draw(relations(kit, depth)), draw(relations(kit, max(0, depth - 1)))
    test: Expression = call("=", [columns(left)[0], columns(right)[0]])
    if draw(st.booleans()):
        test = call("and", [test, draw(conditions(columns(left)[1], columns(right)[1]))])
    return Exists(left, right, test, negated=draw(st.booleans()))


def _table(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    below = draw(relations(kit, depth))
    table = TableScan(draw(st.sampled_from(TABLES)), f"{alias}t")
    joined: Plan = TableJoin(below, table, call("=", [columns(below)[0], table.schema.column(f"{alias}t.k")]))
    if draw(st.booleans()):
        joined = Filter(joined, draw(conditions(columns(below)[1], table.schema.column(f"{alias}t.v"))))
    return named(joined, alias, below.schema.names[0], f"{alias}t.v")


def _nest(draw: Draw, kit: Kit, depth: int, alias: str) -> Plan:
    below = draw(relations(kit, depth))
    k, v = columns(below)
    word = draw(st.sampled_from([StreamWord.AUTO, StreamWord.ISTREAM, StreamWord.RSTREAM]))
    inner = Subquery(Emit(Project(below, (("k", k), ("v", v))), word), alias)
    return Window(inner, draw(ranges() | row_windows(arrival=False)))


_MAKERS: dict[str, Callable[[Draw, Kit, int, str], Plan]] = {
    "filter": _filter,
    "rename": _rename,
    "union": _union,
    "distinct": _distinct,
    "group": _group,
    "join": _join,
    "exists": _exists,
    "except": _except,
    "limit": _limit,
    "table": _table,
    "nest": _nest,
}
