"""Random plans and random histories to run them on.

Instants are small integers, so that ties, gaps and boundaries are common and every instant of a history
can be looked at. Every relation drawn here has two nullable BIGINT columns, so that any two of them can be
united, joined or subtracted. What the algebra refuses is drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from hypothesis import assume, strategies as st

from windrow.algebra.catalog import Stream, Table, TableKind
from windrow.algebra.expressions import ColumnRef, Field, Literal, Schema, conjunction
from windrow.algebra.functions import call
from windrow.algebra.operators import (
    KINDS,
    Aggregate,
    AggregateCall,
    Distinct,
    Except,
    Exists,
    Filter,
    FramedCall,
    Join,
    Over,
    OverFrame,
    Project,
    Rank,
    TableJoin,
    Union,
    Unnest,
)
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, TableScan, Window
from windrow.algebra.types import BIGINT, array as array_of
from windrow.errors import QueryError
from windrow.language.binder.sources import equal_or_null
from windrow.reference.rows import AcceptedRow, TableChange, World
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import LaggedWindow, NowWindow, RangeWindow, UnboundedWindow
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

COLUMNS = Schema(tuple(Field(name, BIGINT) for name in ("k", "v", "e", "ts")))
STREAMS = tuple(Stream(name, COLUMNS, "ts") for name in ("s1", "s2"))
TABLE_COLUMNS = Schema((Field("k", BIGINT), Field("v", BIGINT)))
TABLES = tuple(Table(kind.value.lower(), TABLE_COLUMNS, kind) for kind in TableKind)
FIRST, LAST = -6, 18
#: no interval of a history drawn here has a finite end outside these instants
HORIZON = range(FIRST - 8, LAST + 30)

small = st.integers(1, 6)
slides = st.integers(1, 5)
origins = st.integers(-3, 3)


def ranges(periodic: bool | None = None) -> st.SearchStrategy[RangeWindow]:
    """[RANGE r], [RANGE r SLIDE s]; SLIDE may divide RANGE or not, or be longer."""
    slide = {None: st.none() | slides, True: slides, False: st.none()}[periodic]
    return st.builds(RangeWindow, small, slide, origins)


def lagged() -> st.SearchStrategy[LaggedWindow]:
    return st.builds(LaggedWindow, small, st.integers(0, 6), st.none() | slides, origins)


def landmarks() -> st.SearchStrategy[LandmarkWindow]:
    bounds = st.tuples(st.none() | st.integers(FIRST, 8), st.none() | st.integers(8, LAST))
    return st.builds(
        lambda between, slide: LandmarkWindow(between[0], between[1], slide), bounds, st.none() | slides
    )


def cumulating() -> st.SearchStrategy[CumulateWindow]:
    return st.builds(
        lambda step, steps, origin: CumulateWindow(step * steps, step, origin), slides, slides, origins
    )


def row_windows(arrival: bool) -> st.SearchStrategy[RowsWindow]:
    return st.builds(
        lambda rows, slide, partition, arrives: RowsWindow(
            rows,
            slide_rows=slide if slide and slide > 0 else None,
            slide_time=-slide if slide and slide < 0 else None,
            partition_by=partition,
            arrival_order=arrives,
        ),
        small,
        st.none() | st.integers(-4, -1) | st.integers(1, 3),
        st.sampled_from([(), ("k",)]),
        st.booleans() if arrival else st.just(False),
    )


def windows(alias: str, arrival: bool) -> st.SearchStrategy[object]:
    """Every kind of window over a scan of the streams above."""
    return st.one_of(
        ranges(),
        ranges(),
        st.builds(NowWindow),
        st.builds(UnboundedWindow),
        landmarks(),
        st.builds(LifetimeWindow, st.just(ColumnRef(f"{alias}.e", BIGINT))),
        row_windows(arrival),
        st.builds(
            SlideByTupleWindow,
            small,
            st.integers(1, 3),
            st.none(),
            st.just(True) | st.just(not arrival),
            st.sampled_from([(), (), ("k",)]),
        ),
        st.builds(
            lambda every, start, until: SlideByTupleWindow(None, every, None, True, (), start, until),
            st.integers(1, 3),
            st.none() | st.integers(FIRST, 8),
            st.none() | st.integers(8, LAST),
        ),
        st.builds(SessionWindow, small, st.sampled_from([(), ("k",)]), st.booleans()),
        cumulating(),
        lagged(),
    )


@dataclass
class Shape:
    """What plans may contain."""

    arrival: bool = True
    tables: bool = True
    nested: bool = True
    ranks: bool = True
    frames: bool = True
    arrays: bool = True
    wholes: bool = False
    depth: int = 3
    names: count = field(default_factory=count)


@st.composite
def relations(draw: st.DrawFn, shape: Shape, depth: int | None = None) -> Plan:
    """A relation of two BIGINT columns, named `rN.k` and `rN.v`."""
    depth = draw(st.integers(0, shape.depth)) if depth is None else depth
    alias = f"r{next(shape.names)}"
    kinds = [_filtered, _united, _distinct, _grouped, _joined, _subtracted, _matched, _padded]
    kinds += [_with_table] if shape.tables else []
    kinds += [_rewindowed] if shape.nested else []
    kinds += [_numbered] if shape.ranks else []
    kinds += [_framed] if shape.frames else []
    kinds += [_unnested] if shape.arrays else []
    kinds += [_beside_groups] * 3 if shape.wholes else []
    make = draw(st.sampled_from(kinds)) if depth > 0 else _leaf
    return refused_is_redrawn(make, draw, shape, depth, alias)


def refused_is_redrawn(make, *arguments) -> Plan:
    try:
        return make(*arguments)
    except QueryError:
        assume(False)
        raise


def named(plan: Plan, alias: str, k: str, v: str) -> Project:
    """Two columns of a plan, under the names the others expect."""
    return Project(plan, ((f"{alias}.k", plan.schema.column(k)), (f"{alias}.v", plan.schema.column(v))))


def _names(plan: Plan) -> tuple[str, str]:
    k, v = plan.schema.names[:2]
    return k, v


def _leaf(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    scan = Scan(draw(st.sampled_from(STREAMS)), alias)
    return named(Window(scan, draw(windows(alias, shape.arrival))), alias, f"{alias}.k", f"{alias}.v")


def _filtered(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    inner = draw(relations(shape, depth - 1))
    k, v = _names(inner)
    tests = [
        call(">", [inner.schema.column(v), Literal(1, BIGINT)]),
        call("=", [inner.schema.column(k), Literal(1, BIGINT)]),
        call("is_null", [inner.schema.column(v)]),
        call("<=", [inner.schema.column(k), inner.schema.column(v)]),
    ]
    return Filter(inner, draw(st.sampled_from(tests)))


def _united(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    return Union((draw(relations(shape, depth - 1)), draw(relations(shape, depth - 1))))


def _distinct(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    return Distinct(draw(relations(shape, depth - 1)))


def _subtracted(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    return Except(draw(relations(shape, depth - 1)), draw(relations(shape, depth - 1)))


def _matched(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    left, right = draw(relations(shape, depth - 1)), draw(relations(shape, depth - 1))
    same = call("=", [left.schema.column(_names(left)[0]), right.schema.column(_names(right)[0])])
    return Exists(left, right, same, negated=draw(st.booleans()))


def _padded(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    """An outer join: the pairs, and the rows of one side or both that have no partner."""
    left, right = draw(relations(shape, depth - 1)), draw(relations(shape, depth - 1))
    (left_key, _), (right_key, right_value) = _names(left), _names(right)
    operator = draw(st.sampled_from(["=", "=", "<"]))
    on = call(operator, [left.schema.column(left_key), right.schema.column(right_key)])
    nothing = Literal(None, BIGINT)
    parts: list[Plan] = [named(Join((left, right), on), alias, left_key, right_value)]
    kind = draw(st.sampled_from(["LEFT", "RIGHT", "FULL"]))
    if kind != "RIGHT":
        alone = Exists(left, right, on, negated=True)
        key = alone.schema.column(left_key)
        parts.append(Project(alone, ((f"{alias}.k", key), (f"{alias}.v", nothing))))
    if kind != "LEFT":
        alone = Exists(right, left, on, negated=True)
        value = alone.schema.column(right_value)
        parts.append(Project(alone, ((f"{alias}.k", nothing), (f"{alias}.v", value))))
    return Union(tuple(parts))


def _joined(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    parts = [draw(relations(shape, depth - 1)) for _ in range(draw(st.integers(2, 3)))]
    operator = draw(st.sampled_from(["=", "=", "<"]))
    first = parts[0].schema.column(_names(parts[0])[0])
    tests = [call(operator, [first, part.schema.column(_names(part)[0])]) for part in parts[1:]]
    predicate = tests[0] if len(tests) == 1 else call("and", tests)
    return named(Join(tuple(parts), predicate), alias, _names(parts[0])[0], _names(parts[-1])[1])


def _with_table(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    inner = draw(relations(shape, depth - 1))
    table = TableScan(draw(st.sampled_from(TABLES)), f"{alias}t")
    same = call("=", [inner.schema.column(_names(inner)[0]), table.schema.column(f"{alias}t.k")])
    outer = table.table.kind is TableKind.NRR and draw(st.booleans())
    return named(TableJoin(inner, table, same, outer), alias, _names(inner)[0], f"{alias}t.v")


def _grouped(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    inner = draw(relations(shape, depth - 1))
    k, v = _names(inner)
    function = draw(st.sampled_from(["count", "sum", "min", "max", "first", "last"]))
    value = AggregateCall(function, (inner.schema.column(v),), BIGINT)
    keys = ((f"{alias}.k", inner.schema.column(k)),)
    if draw(st.booleans()):
        return Aggregate(inner, keys, ((f"{alias}.v", value),))
    both = ((f"{alias}.k", AggregateCall("max", (inner.schema.column(k),), BIGINT)), (f"{alias}.v", value))
    return Aggregate(inner, (), both)


def _numbered(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    inner = draw(relations(shape, depth - 1))
    k, v = (inner.schema.column(name) for name in _names(inner))
    partition = draw(st.sampled_from([(), (k,)]))
    order = draw(st.sampled_from([((v, False),), ((v, True),), ((k, True), (v, False))]))
    ranked = Rank(inner, f"{alias}.n", draw(st.sampled_from(KINDS)), partition, order)
    return named(ranked, alias, _names(inner)[draw(st.integers(0, 1))], f"{alias}.n")


def _beside_groups(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    """Rows with an aggregate of all rows of their partition; a key that is NULL is one, too."""
    inner = draw(relations(shape, depth - 1))
    k, v = (inner.schema.column(name) for name in _names(inner))
    function = draw(st.sampled_from(["count", "sum", "max"]))
    keys = draw(st.sampled_from([(), ((f"{alias}g.k", k),)]))
    groups = Aggregate(inner, keys, ((f"{alias}g.v", AggregateCall(function, (v,), BIGINT)),))
    pairs = ((k, groups.schema.column(name)) for name, _ in keys)
    same = tuple(part for one, other in pairs for part in equal_or_null(one, other))
    return named(Join((inner, groups), conjunction(same)), alias, _names(inner)[0], f"{alias}g.v")


frames = st.builds(
    lambda by_rows, stop, more: OverFrame(by_rows, None if more is None else stop + more, stop),
    st.booleans(),
    st.sampled_from([0, 0, 1, 2]),
    st.none() | st.integers(0, 6),
)


def _framed(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    """All rows of a stream with two values of frames."""
    rows: Plan = Window(Scan(draw(st.sampled_from(STREAMS)), alias), UnboundedWindow())
    k, v, ts = (rows.schema.column(f"{alias}.{name}") for name in ("k", "v", "ts"))
    if draw(st.booleans()):
        rows = Filter(rows, call("<=", [k, v]))

    def value() -> FramedCall:
        function = draw(st.sampled_from(["count", "sum", "min", "max", "first", "last", "mode"]))
        partition = draw(st.sampled_from([(), (k,), (k, v)]))
        return FramedCall(AggregateCall(function, (v,), BIGINT), partition, draw(frames))

    over = Over(rows, ts, ((f"{alias}.x", value()), (f"{alias}.y", value())))
    return named(over, alias, draw(st.sampled_from([f"{alias}.k", f"{alias}.x"])), f"{alias}.y")


def _unnested(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    """Both columns one after the other, with their places."""
    inner = draw(relations(shape, depth - 1))
    k, v = (inner.schema.column(name) for name in _names(inner))
    arrays = [
        call("array", [k, v]),
        call("array", [v]),
        call("if", [call(">", [k, v]), call("array", [k]), NO_ARRAY]),
    ]
    array = draw(st.sampled_from(arrays))
    unnested = Unnest(inner, array, (f"{alias}.e",), None, draw(st.booleans()))
    return named(unnested, alias, draw(st.sampled_from(_names(inner))), f"{alias}.e")


NO_ARRAY = Literal(None, array_of(BIGINT))


def _rewindowed(draw: st.DrawFn, shape: Shape, depth: int, alias: str) -> Plan:
    inner = draw(relations(shape, depth - 1))
    renamed = Project(
        inner, (("k", inner.schema.column(_names(inner)[0])), ("v", inner.schema.column(_names(inner)[1])))
    )
    word = draw(st.sampled_from([StreamWord.AUTO, StreamWord.ISTREAM, StreamWord.RSTREAM]))
    nested = Subquery(Emit(renamed, word), alias)
    spec = draw(ranges() | row_windows(arrival=False))
    return Window(nested, spec)


words = st.sampled_from(
    [StreamWord.AUTO, StreamWord.AUTO, StreamWord.ISTREAM, StreamWord.DSTREAM, StreamWord.RSTREAM]
)


@st.composite
def plans(draw: st.DrawFn, word: StreamWord | None = None, **allowed: object) -> Emit:
    """A whole query."""
    relation = draw(relations(Shape(**allowed)))  # type: ignore[arg-type]
    return refused_is_redrawn(Emit, relation, draw(words) if word is None else word)


rows = st.tuples(
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, 0, 1, 2, 3]),
    st.sampled_from([None, -1, 0, 1, 3, 7]),
    st.integers(FIRST, LAST),
)


@st.composite
def worlds(draw: st.DrawFn, most: int = 9) -> World:
    """Histories of all streams and tables, rows in any order, with ties, duplicates, bursts and gaps."""
    streams = {}
    for stream in STREAMS:
        arrivals = draw(st.lists(rows, max_size=most))
        streams[stream.name] = tuple(AcceptedRow(values, n) for n, values in enumerate(arrivals, start=1))
    return World(streams, {table.name: draw(_histories()) for table in TABLES})


@st.composite
def _histories(draw: st.DrawFn) -> tuple[TableChange, ...]:
    rows_of_table = st.tuples(st.sampled_from([0, 1, 2]), st.integers(0, 3))
    present: list[tuple[int, int]] = []
    changes = []
    for at in sorted(draw(st.lists(st.integers(FIRST, LAST), max_size=4, unique=True))):
        gone = [draw(st.sampled_from(present))] if present and draw(st.booleans()) else []
        new = draw(st.lists(rows_of_table, max_size=2))
        for row in gone:
            present.remove(row)
        present += new
        changes.append(TableChange(at, tuple(new), tuple(gone)))
    return tuple(changes)
