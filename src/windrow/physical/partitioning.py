"""Where rows may be processed apart: columns of each stream whose equal values must meet, and no others.

A plan can be cut into shards if every operator that compares rows compares only rows of one shard: joins and
EXISTS on an equality of the routed columns, GROUP BY, DISTINCT and EXCEPT over them, windows that count rows
PARTITION BY them. What the query emits must tell the shards apart as well where a row may leave and an equal
one come at the same instant. Where no such columns exist, one shard does it all.

>>> from windrow.engine.explain import declared
>>> from windrow.language.compile import compile_query
>>> streams = {"a": "k BIGINT, v BIGINT, ts TIMESTAMP", "b": "k BIGINT, w BIGINT, ts TIMESTAMP"}
>>> text = "SELECT a.k, v, w FROM a [RANGE 1 MINUTE], b [RANGE 1 MINUTE] WHERE a.k = b.k"
>>> placement_of(compile_query(text, declared(streams, {})))
{'a': ('k',), 'b': ('k',)}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice, product

from windrow.algebra import Call, ColumnRef, Expression, Schema, conjuncts, operators as ops
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.windows import ROW_NUM, OwnInterval, Pattern

#: routed columns of each stream; empty: everything in one shard
Placement = Mapping[str, tuple[str, ...]]
#: so many ways to route the streams are tried
_MOST_TRIES = 2000


def placement_of(emit: Emit) -> Placement:
    """By which columns the rows of each stream are routed; {} if they must stay together."""
    streams = {node.stream.name: node.stream for node in emit.walk() if isinstance(node, Scan)}
    for branch in emit.branches:
        names = [node.stream.name for node in branch.walk() if isinstance(node, Scan)]
        if len(set(names)) != len(names):  # a stream would have to be routed in two ways
            return {}
    choices = [[column.name for column in stream.schema] for stream in streams.values()]
    for chosen in islice(product(*choices), _MOST_TRIES if streams else 0):
        routed = dict(zip(streams, chosen, strict=True))
        apart = all(_is_apart(branch, routed) for branch in emit.branches)
        kinds = {_hashed_as(stream.schema, routed[name]) for name, stream in streams.items()}
        if apart and len(kinds) == 1:
            return {name: (column,) for name, column in routed.items()}
    return {}


def routed_outputs(emit: Emit, placement: Placement) -> dict[int, str | None]:
    """Of each node of a query, by its `id`, the output column that holds the routed value; None where it is
    lost. The query itself has that of its input.

    >>> from windrow.engine.explain import declared
    >>> from windrow.language.compile import compile_query
    >>> text = "SELECT k AS key, COUNT(*) AS n FROM a [ROWS 3 PARTITION BY k] GROUP BY k"
    >>> plan = compile_query(text, declared({"a": "k BIGINT, ts TIMESTAMP"}, {}))
    >>> list(dict.fromkeys(routed_outputs(plan, placement_of(plan)).values()))
    ['a.k', 'key']
    """
    found = _Apart({name: columns[0] for name, columns in placement.items()})
    placed = found.of(emit.input)
    return {**found.outputs, id(emit): placed}


def table_places(emit: Emit, placement: Placement) -> dict[str, str | None]:
    """By which column the rows of each table are routed; None for a table that every shard needs whole.

    >>> from windrow.engine.explain import declared
    >>> from windrow.language.compile import compile_query
    >>> streams, tables = {"a": "k BIGINT, ts TIMESTAMP"}, {"t": "k BIGINT, name STRING"}
    >>> text = "SELECT a.k, name FROM a [RANGE 1 MINUTE] JOIN t ON a.k = t.k"
    >>> plan = compile_query(text, declared(streams, tables))
    >>> table_places(plan, placement_of(plan))
    {'t': 'k'}
    """
    tables = {
        node.table.table.name: node.table.table for node in emit.walk() if isinstance(node, ops.TableJoin)
    }
    if not placement:
        return dict.fromkeys(tables)
    found = _Apart({name: columns[0] for name, columns in placement.items()})
    for branch in emit.branches:
        found.of(branch.input)
    stream = next(node.stream for node in emit.walk() if isinstance(node, Scan))
    hashed = _hashed_as(stream.schema, found.routed[stream.name])
    places: dict[str, str | None] = {}
    for name, table in tables.items():
        column = found.compared[name].pop() if len(found.compared[name]) == 1 else None
        places[name] = column if column is not None and _hashed_as(table.schema, column) == hashed else None
    return places


def _hashed_as(schema: Schema, column: str) -> str:
    """Equal values must have equal hashes."""
    kind = schema.column(column).type
    return "integer" if kind.is_integer else "fractional" if kind.is_fractional else str(kind)


def _is_apart(emit: Emit, routed: Mapping[str, str]) -> bool:
    """Whether the answers of the shards together are the answer."""
    found = _Apart(routed)
    try:
        placed = found.of(emit.input)
    except _Together:
        return False
    if emit.meaning is StreamWord.RSTREAM and not emit.reports_extents:
        return False
    if emit.is_periodic and not _knows_its_reports(emit):
        return False
    only_grows = emit.label.pattern is Pattern.MON
    repeats = emit.meaning is StreamWord.RSTREAM or emit.word.restores or only_grows
    return repeats or placed is not None


def _knows_its_reports(emit: Emit) -> bool:
    """Whether the rows of a shard are enough to know when a periodic answer of theirs is told.

    Windows of other shards move when rows are counted there, and the rows of all shards together say which
    report is the last. A change is told at an instant that its own rows bring. What is told again and again
    needs all instants for as long as it stays.

    >>> from windrow.engine.explain import declared
    >>> from windrow.language.compile import compile_query
    >>> text = "SELECT {}(k, v) FROM s [ROWS 1 PARTITION BY k SLIDE 1 MINUTE]"
    >>> catalog = declared({"s": "k BIGINT, v BIGINT, ts TIMESTAMP"}, {})
    >>> [_knows_its_reports(compile_query(text.format(word), catalog)) for word in ("ISTREAM", "RSTREAM")]
    [True, False]
    """
    if emit.is_internal and not emit.input.has_wattr:  # every report of a value is a result that stays
        return False
    is_moved = any(leaf.spec.grid is None for leaf in emit.leaves)
    is_repeated = emit.meaning in (StreamWord.RSTREAM, StreamWord.RSTREAM_RESTORE) or emit.reads_window_bounds
    if not is_repeated:
        return not (is_moved and any(isinstance(n, ops.TableJoin) and n.is_retroactive for n in emit.walk()))
    if is_moved:  # the extents of one window that counts rows are each reported by themselves
        by_itself = emit.leaves[0].spec.reports_positions or not _partition(emit.leaves[0].spec)
        return len(emit.leaves) == 1 and not emit.is_internal and by_itself
    return not _stays(emit.input)


def _stays(plan: Plan) -> bool:
    """Whether rows of a plan may be there after the last endpoint of their shard."""
    match plan:
        case Window():
            return plan.spec.internal or plan.label.pattern in (Pattern.MON, Pattern.STR)
        case ops.Join() | ops.Exists(negated=False):
            return all(map(_stays, plan.children))
        case ops.Except(left) | ops.Exists(left):
            return _stays(left)
    return any(map(_stays, plan.children))


class _Together(Exception):  # noqa: N818  a way out of a walk, no error
    """Some operator compares rows of different shards."""


class _Apart:
    """Walks a plan from below; `of` is the output column that holds the routed value, None if it is lost."""

    def __init__(self, routed: Mapping[str, str]) -> None:
        self.routed = routed
        #: of each table, the columns that are compared with routed ones; None where others are
        self.compared: dict[str, set[str | None]] = {}
        #: the routed column in the output of each node, by its `id`
        self.outputs: dict[int, str | None] = {}

    def of(self, plan: Plan) -> str | None:
        """The routed column in the output of a plan; an exception where shards would have to meet."""
        self.outputs[id(plan)] = found = self._of(plan)
        return found

    def _of(self, plan: Plan) -> str | None:
        match plan:
            case Scan():
                return f"{plan.alias}.{self.routed[plan.stream.name]}"
            case Subquery():
                return self._nested(plan)
            case Window():
                return self._window(plan)
            case ops.Filter() | ops.Unnest():
                return self.of(plan.input)
            case ops.TableJoin():
                return self._with_table(plan)
            case ops.Project():
                placed = self.of(plan.input)
                same = (
                    name for name, each in plan.outputs if isinstance(each, ColumnRef) and each.name == placed
                )
                return next(same, None)
            case ops.Distinct():
                return _required(self.of(plan.input))
            case ops.Aggregate():
                return self._group(plan)
        return self._of_several(plan)

    def _of_several(self, plan: Plan) -> str | None:
        match plan:
            case ops.Union(inputs):
                return self._same_place(inputs)
            case ops.Except(left, right):
                return _required(self._same_place((left, right)))
            case ops.Join():
                return self._joined(plan.inputs, plan.predicate)
            case ops.Exists():
                return self._joined((plan.left, plan.right), plan.predicate)
            case ops.Over():
                return self._framed(plan)
        raise _Together

    def _framed(self, plan: ops.Over) -> str | None:
        """Rows look back at those of their own partition."""
        placed = _required(self.of(plan.input))
        for _, framed in plan.calls:
            if not any(isinstance(key, ColumnRef) and key.name == placed for key in framed.partition):
                raise _Together
        return placed

    def _with_table(self, plan: ops.TableJoin) -> str | None:
        """Every row meets its own shard's part of the table, which may be all of it."""
        placed = self.of(plan.input)
        pairs = [pair for pair in _equalities(plan.predicate) if placed in pair]
        others = {name for pair in pairs for name in pair if name in plan.table.schema.names}
        table, alias = plan.table.table, plan.table.alias
        columns = sorted(name.removeprefix(f"{alias}.") for name in others)
        self.compared.setdefault(table.name, set()).add(columns[0] if columns else None)
        return placed

    def _nested(self, plan: Subquery) -> str | None:
        if not _is_apart(plan.query, self.routed):
            raise _Together
        inner = self.of(plan.query.input)
        return None if inner is None else f"{plan.alias}.{inner}"

    def _window(self, window: Window) -> str | None:
        placed = self.of(window.input)
        spec = window.spec
        if isinstance(spec, OwnInterval) and spec.wattr != ROW_NUM:
            return placed
        apart = {f"{origin.alias}.{name}" for origin in window.origins for name in _partition(spec)}
        if placed is None or placed not in apart:
            raise _Together
        return placed

    def _group(self, plan: ops.Aggregate) -> str | None:
        placed = _required(self.of(plan.input))
        for name, key in plan.keys:
            if isinstance(key, ColumnRef) and key.name == placed:
                return name
        raise _Together

    def _same_place(self, inputs: tuple[Plan, ...]) -> str | None:
        """The column of the first input, if all inputs have theirs at the same place."""
        placed = [self.of(part) for part in inputs]
        pairs = zip(inputs, placed, strict=True)
        places = {None if name is None else part.schema.names.index(name) for part, name in pairs}
        return placed[0] if len(places) == 1 else None

    def _joined(self, inputs: tuple[Plan, ...], predicate: Expression) -> str | None:
        placed = [_required(self.of(part)) for part in inputs]
        joined = {placed[0]}
        pairs = list(_equalities(predicate))
        for _ in placed:
            for left, right in pairs:
                if left in joined or right in joined:
                    joined |= {left, right}
        if not set(placed) <= joined:
            raise _Together
        return placed[0]


def _partition(spec: object) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(spec, "partition_by", ())
    return found


def _required(placed: str | None) -> str:
    if placed is None:
        raise _Together
    return placed


def _equalities(predicate: Expression) -> Iterator[tuple[str, str]]:
    for part in conjuncts(predicate):
        if isinstance(part, Call) and part.function == "=":
            left, right = part.args
            if isinstance(left, ColumnRef) and isinstance(right, ColumnRef):
                yield left.name, right.name
