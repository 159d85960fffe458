"""The entries of FROM: streams under windows, tables, nested and registered queries.

A nested query without a window is a relation: its columns are renamed `alias.column` and that is all.
With a window it is a stream, and its window is a leaf of the plan like any other.

Where each condition goes once the sources are known.

Streams are joined first, in one n-way join, then the tables in the order of FROM: the NRR tables before
the RELATION ones, since an NRR table cannot stand above rows that expire unpredictably. A condition that
reads several sources belongs to the join that first has them all, a condition on one source of WHERE to
the filter above. Rules may push it down later. What can fail on some row (division by zero, overflow) is
tested after all that stands before it, which may be there to protect it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, NoReturn

from windrow.algebra import Filter, Join, Project, Stream, Table, TableJoin, TableKind, Union
from windrow.algebra.expressions import Call, ColumnRef, Expression, Literal, Schema, conjunction, conjuncts
from windrow.algebra.functions import call
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.plan import Plan, Scan, StreamWord, Subquery, TableScan, Window
from windrow.algebra.types import BIGINT, INTERVAL, TIMESTAMP, Kind
from windrow.errors import QueryError, nearest
from windrow.language import syntax
from windrow.language.binder.context import Context, Reads, Relation, bounds_over, parts, pseudo_of
from windrow.language.binder.expressions import ExpressionBinder
from windrow.language.binder.scope import NamedColumn, Scope
from windrow.language.catalog import Catalog, StandingQuery
from windrow.language.syntax import ExistsTest, FromEntry, InTest, QueryExpression, Select, WindowSyntax, walk
from windrow.language.tokens import at, refuse
from windrow.optimizer.trees import can_ever_fail
from windrow.windows.clause import WindowClause, resolve
from windrow.windows.domain import ROW_NUM, Domain, refuse_resolution
from windrow.windows.ranges import UnboundedWindow

# ------------------------------------------------------------ windows
#
# Window brackets: the clause as written, with its columns found and its LIFETIME typed.
#
# A stream without a bracket has the window UNBOUNDED, as in CQL. A nested query's rows have no attribute
# of their own: they are windowed by the instants they are about, called `at`.


#: what the instants of a nested query's rows are called
INSTANT = "at"


def window(input: Scan | Subquery | Union, written: WindowSyntax | None, scope: Scope) -> Window:
    """The input under its window; `scope` holds the input's columns, for LIFETIME."""
    if written is None:
        return Window(input, UnboundedWindow())
    with at(written):
        if isinstance(input, Scan):
            stream = input.stream
            schema, owner = stream.schema, f"stream `{stream.name}`"
            attributes, wattr = stream.attributes, stream.wattr
            domain = attributes.get(written.clause.wattr or wattr, stream.domain)
        else:
            _refuse_attribute(written.clause)
            query = next(node for node in input.walk() if isinstance(node, Subquery)).query
            schema, owner = query.schema, "the nested query"
            domain = query.leaves[0].domain
            attributes, wattr = {INSTANT: domain}, INSTANT
        clause = _with_columns(written.clause, schema, owner)
        clause = replace(clause, lifetime=_lifetime(written, scope, domain))
        found = Window(input, resolve(clause, attributes, wattr))
    for point in written.points:
        if point.is_time and found.domain is not Domain.TIME:
            message = f"{point.word} is a time, but the window is on a number"
            refuse(point, message, "window-origin", f"write a number, as in {point.word} 100")
        if not point.is_time and found.domain is Domain.TIME:
            message = f"{point.word} is a number, but the window is on time"
            refuse(point, message, "window-origin", f"write a time, as in {point.word} '2024-01-31 07:00:00'")
    return found


def _refuse_attribute(clause: WindowClause) -> None:
    wattr = clause.wattr or clause.rattr
    if wattr is not None and wattr.lower() not in (ROW_NUM, INSTANT):
        raise QueryError(
            f"rows of a nested query are windowed by the instants they are about, not by `{wattr}`",
            code="window-attribute",
            hint="leave it out, or window the stream inside by it",
        )


def _with_columns(clause: WindowClause, schema: Schema, owner: str) -> WindowClause:
    """PARTITION BY, spelled as declared."""
    known = {name.lower(): name for name in schema.names}
    for name in clause.partition_by:
        if name.lower() not in known:
            raise QueryError(
                f"{owner} has no column `{name}` to partition by",
                code="unknown-column",
                hint=nearest(name, schema.names),
            )
    return replace(clause, partition_by=tuple(known[name.lower()] for name in clause.partition_by))


def _lifetime(written: WindowSyntax, scope: Scope, domain: Domain) -> Expression | None:
    if written.lifetime is None:
        return None
    refuse_resolution(domain, "LIFETIME")
    bound = ExpressionBinder(scope, "LIFETIME").bind(written.lifetime)
    timed = bound.type == INTERVAL and domain is Domain.TIME
    if not (timed or bound.type.is_integer):
        wanted = "an INTERVAL or an integer" if domain is Domain.TIME else "an integer, as the attribute is"
        refuse(
            written.lifetime,
            f"LIFETIME is {wanted}, but this is {bound.type}",
            "bad-lifetime",
            "for example LIFETIME INTERVAL '5' MINUTES, or a column of that type",
        )
    if timed and written.clause.lifetime_scale != 1:
        refuse(written.lifetime, "an INTERVAL has its unit already", "bad-lifetime", "leave the unit out")
    return bound


# ------------------------------------------------------------ sources


#: the alias of a nested query that has none
NESTED = "nested"


@dataclass(frozen=True)
class FromItem:
    """A source: what the query calls it, its plan, and its columns."""

    node: FromEntry
    alias: str
    #: the alias in the plan, where an EXISTS must not reuse one of the query around it
    plan_alias: str
    plan: Plan
    entries: tuple[NamedColumn, ...]

    @property
    def table(self) -> TableScan | None:
        return self.plan if isinstance(self.plan, TableScan) else None

    @property
    def names(self) -> frozenset[str]:
        return frozenset(entry.column.name for entry in self.entries if isinstance(entry.column, ColumnRef))


#: windows and tables of one FROM, those of nested queries that are joined with them included
MAX_SOURCES = 64


def bind_sources(
    sources: tuple[FromEntry, ...], reads: Reads, context: Context, growing: bool = False
) -> list[FromItem]:
    """All of FROM, each under an alias of its own; `growing` if the query is about rows that only come."""
    items: list[FromItem] = []
    if context.moves or growing:
        sources = tuple(_staying(source, context) for source in sources)
    for source in sources[:MAX_SOURCES]:
        with at(source):
            item = _Binding(source, reads, context, tuple(item.plan_alias for item in items)).bind()
        if any(other.alias.lower() == item.alias.lower() for other in items):
            refuse(
                item.node,
                f"two sources are called `{item.alias}`",
                "duplicate-alias",
                "give one of them another name with AS",
            )
        items.append(item)
    if len(sources) > MAX_SOURCES or sum(len(item.plan.leaves) for item in items) > MAX_SOURCES:
        refuse(
            sources[MAX_SOURCES if len(sources) > MAX_SOURCES else -1],
            f"this joins more than {MAX_SOURCES} windows and tables",
            "too-many-sources",
            "put what is alike into one stream, with a column that tells it apart",
        )
    moving = any(not leaf.spec.is_periodic for item in items for leaf in item.plan.leaves)
    return with_bounds(_accumulated(items, reads, context) if moving else items)


def _staying(source: FromEntry, context: Context) -> FromEntry:
    """A nested query over window functions beside windows that move, and below OVER: it only grows, as rows
    of closed windows stay, as in the systems it comes from."""
    query = source.query
    if query is None or source.window is not None or not is_over_functions(query):
        return source
    if moves(query, context.catalog):
        return source
    return replace(source, window=WindowSyntax(source.span, WindowClause("UNBOUNDED")))


def _accumulated(items: list[FromItem], reads: Reads, context: Context) -> list[FromItem]:
    """The sources beside windows of which it is known only now that they move."""
    changed: list[FromItem] = []
    for item in items:
        source, used = _staying(item.node, context), tuple(other.plan_alias for other in changed)
        if source is not item.node:
            with at(source):
                item = _Binding(source, reads, context, used).bind()
        changed.append(item)
    return changed


def moves(query: QueryExpression, catalog: Catalog) -> bool:
    """Whether any window of a plan moves without a SLIDE; those below a window are of plans of their own."""
    if isinstance(query, syntax.SetOperation):
        return moves(query.left, catalog) or moves(query.right, catalog)
    assert isinstance(query, Select)
    nodes = (node for part in parts(query) for node in walk(part))
    conditions = ExistsTest | InTest | syntax.ScalarQuery
    inside = [node.query for node in nodes if isinstance(node, conditions)]
    inside += [each.query for each in query.sources if each.query is not None and each.window is None]
    return any(_source_moves(source, catalog) for source in query.sources) or any(
        moves(each, catalog) for each in inside
    )


def _source_moves(source: FromEntry, catalog: Catalog) -> bool:
    if source.window is not None:
        slide = source.window.clause.slide
        return source.function is None and (slide is None or slide.in_rows)
    entry = catalog.entry(source.name) if source.name is not None else None
    return isinstance(entry, Stream) or (isinstance(entry, StandingQuery) and not entry.plan.is_periodic)


def is_over_functions(query: QueryExpression) -> bool:
    """Whether all that a query reads is under TUMBLE, HOP, CUMULATE or SESSION."""
    if isinstance(query, syntax.SetOperation):
        return is_over_functions(query.left) and is_over_functions(query.right)
    assert isinstance(query, Select)
    return all(
        source.function is not None
        or (source.query is not None and source.window is None and is_over_functions(source.query))
        for source in query.sources
    )


def entries_of(plan: Plan, plan_alias: str, alias: str) -> tuple[NamedColumn, ...]:
    """The columns of a plan, called `plan_alias.column` there, under an alias of the query."""
    scan = next((node for node in (plan, *plan.children) if isinstance(node, Scan | TableScan)), None)
    pseudo = scan.pseudo if isinstance(scan, Scan) else ()
    found = []
    for full in plan.schema.names:
        name = full.removeprefix(plan_alias + ".")
        found.append(NamedColumn(alias, name, plan.schema.column(full), name in pseudo))
    if scan is None:
        return tuple(found)

    def own(part: Expression) -> Expression:
        return ColumnRef(f"{plan_alias}.{part.name}", part.data_type) if isinstance(part, ColumnRef) else part

    computed = (scan.stream if isinstance(scan, Scan) else scan.table).computed
    return (*found, *(NamedColumn(alias, name, value.rewrite(own)) for name, value in computed))


def with_bounds(items: list[FromItem]) -> list[FromItem]:
    """The window functions with `window_start`, `window_end` and `window_time` as columns of theirs.

    Where all windows move together these are facts of the answer. Else each such window is a query by itself,
    whose rows carry the bounds of their extents.
    """
    if not any(item.node.function for item in items):
        return items
    leaves = [leaf for item in items for leaf in item.plan.leaves]
    together = len({leaf.spec.period for leaf in leaves}) == 1 and not any(item.node.join for item in items)
    if not together and any(leaf.spec.grid is None for leaf in leaves):
        _refuse_beside_moving(next(item for item in items if item.node.function))
    return [_with_bounds(item, together) if item.node.function else item for item in items]


def _refuse_beside_moving(item: FromItem) -> NoReturn:
    """A window function by itself has the bounds of its windows, and here answers are about no one window."""
    assert item.node.window is not None
    call = item.node.window.span.quoted
    refuse(
        item.node,
        f"{item.node.function} stands beside a window that moves otherwise, where answers are about no one of"
        " its windows",
        "window-function",
        f"make it a nested query, whose rows stay when their window is over: (SELECT * FROM {call})"
        f" AS {item.alias}; or give the stream a bracket",
    )


def _with_bounds(item: FromItem, together: bool) -> FromItem:
    known = {entry.name.lower() for entry in item.entries}
    made = bounds_over(item.plan)
    start, end = made("window_start"), made("window_end")
    tick = Literal(1, INTERVAL if end.type == TIMESTAMP else BIGINT)
    bounds: dict[str, Expression] = {"window_start": start, "window_end": end}
    if end.step is None:
        bounds["window_time"] = call("-", [end, tick])
    bounds = {name: bound for name, bound in bounds.items() if name not in known}
    if together:
        entries = tuple(NamedColumn(item.alias, name, bound) for name, bound in bounds.items())
        return replace(item, entries=item.entries + entries)
    columns = [(entry.name, entry.column) for entry in item.entries]
    plan = renamed(Project(item.plan, (*columns, *bounds.items())), item.plan_alias)
    pseudo = {entry.name for entry in item.entries if entry.pseudo}
    found = entries_of(plan, item.plan_alias, item.alias)
    return replace(item, plan=plan, entries=tuple(replace(e, pseudo=e.name in pseudo) for e in found))


def renamed(plan: Plan, alias: str) -> Project:
    """A relation whose columns are called `alias.column`."""
    schema = plan.schema
    return Project(plan, tuple((f"{alias}.{name}", schema.column(name)) for name in schema.names))


@dataclass(frozen=True)
class _Binding:
    source: FromEntry
    reads: Reads
    context: Context
    used: tuple[str, ...]

    def bind(self) -> FromItem:
        if self.source.query is not None:
            inner = self.context.nested()
            if self.source.window is not None:
                apart = moves(self.source.query, self.context.catalog)
                inner = replace(self.context.nested(as_stream=True), moves=apart)
            relation = self.context.bind(self.source.query, inner)
            return self._query(relation, self.source.alias or self._free(NESTED))
        assert self.source.name is not None
        match self.context.catalog.find(self.source.name):
            case Stream() as stream:
                alias = self.source.alias or stream.name
                pseudo = pseudo_of(self.source, alias, self.reads)
                return self._windowed(Scan(stream, self._free(alias), pseudo), alias)
            case Table() as table:
                return self._table(table, self.source.alias or table.name)
            case query:
                return self._query(Relation.of(query.plan), self.source.alias or query.name)

    def _table(self, table: Table, alias: str) -> FromItem:
        if self.source.window is not None:
            refuse(
                self.source.window,
                f"`{table.name}` is a table: it has no order in which a window could move",
                "table-window",
                "leave the window out; a table is joined as it is",
            )
        return self._item(TableScan(table, self._free(alias)), alias)

    def _query(self, relation: Relation, alias: str) -> FromItem:
        if self.source.window is not None:
            inner = [Subquery(stream, self._free(alias)) for stream in relation.streams]
            return self._windowed(inner[0] if len(inner) == 1 else Union(tuple(inner)), alias)
        if relation.word is not StreamWord.AUTO:
            word = relation.word.value
            refuse(
                self.source,
                f"{word} makes this nested query a stream, and no window makes it a relation again",
                "stream-without-window",
                f"drop {word} inside, or add a window such as [UNBOUNDED] behind it",
            )
        return self._item(renamed(relation.plan, self._free(alias)), alias)

    def _windowed(self, input: Scan | Subquery | Union, alias: str) -> FromItem:
        scope = Scope(entries_of(input, self._free(alias), alias))
        return self._item(window(input, self.source.window, scope), alias)

    def _item(self, plan: Plan, alias: str) -> FromItem:
        plan_alias = self._free(alias)
        return FromItem(self.source, alias, plan_alias, plan, entries_of(plan, plan_alias, alias))

    def _free(self, alias: str) -> str:
        return self.context.free(alias, self.used)


@dataclass
class Conditions:
    """The conditions of ON and WHERE, sorted by where they go; those on other queries are `foreign`."""

    items: list[FromItem]
    #: of the join of streams
    join: list[Expression] = field(default_factory=list)
    #: of the join with each table, by its alias
    tables: dict[str, list[Expression]] = field(default_factory=dict)
    filter: list[Expression] = field(default_factory=list)
    foreign: list[Expression] = field(default_factory=list)

    def __post_init__(self) -> None:
        scans = [(item, item.table) for item in self.items if item.table is not None]
        last = sorted(scans, key=lambda scan: scan[1].table.kind is TableKind.RELATION)
        self.order = [item for item, _ in last]
        self.tables = {item.alias: [] for item in self.order}
        self.streams = [item for item in self.items if item.table is None]

    def add(self, predicate: Expression, on: bool) -> None:
        for part in conjuncts(predicate):
            place = self._place(part, on)
            (self._protected(place) if can_ever_fail(part) else place).append(part)

    def _protected(self, place: list[Expression]) -> list[Expression]:
        """Where a part that can fail goes at the earliest: what came before it goes along."""
        read = frozenset[str]().union(*(item.names for item in self.streams))
        stages = [(self.join, read)]
        for item in self.order:
            read |= item.names
            stages.append((self.tables[item.alias], read))
        first = next((number for number, (stage, _) in enumerate(stages) if stage is place), None)
        if first is None:
            return place
        for number in range(first, len(stages)):
            stage, read = stages[number]
            later = [*(parts for parts, _ in stages[number + 1 :]), self.filter]
            before = [part for parts in later for part in parts]
            if all(part.columns <= read and not part.reads_window_bounds for part in before):
                for parts in later:
                    parts.clear()
                stage += before
                return stage
        return self.filter

    def _place(self, part: Expression, on: bool) -> list[Expression]:
        if part.reads_window_bounds:
            # `L.window_start = R.window_start` of windows that move together
            same = isinstance(part, Call) and part.function in ("=", "<=>") and part.args[0] == part.args[1]
            return [] if same else self.filter
        read = [item for item in self.items if item.names & part.columns]
        if part.columns - frozenset().union(*(item.names for item in self.items)):
            return self.foreign
        if not on and len(read) < 2:
            return self.filter
        tables = [item for item in self.order if item in read]
        if tables:
            return self.tables[tables[-1].alias]
        if len(self.streams) > 1:
            return self.join
        return self.tables[self.order[0].alias] if self.order else self.filter

    def plan(self) -> Plan:
        plan = self._joined_streams()
        for item in self.order:
            assert item.table is not None
            predicate = conjunction(tuple(self.tables[item.alias]))
            with at(item.node), table_at_its_rows(item, self.items, predicate):
                plan = TableJoin(plan, item.table, predicate)
        return Filter(plan, conjunction(tuple(self.filter))) if self.filter else plan

    def _joined_streams(self) -> Plan:
        plans = tuple(item.plan for item in self.streams)
        if not self.items:
            raise QueryError(
                "this query has no FROM", code="no-stream", hint="name a stream, as in FROM bids [NOW]"
            )
        if not plans:
            raise QueryError(
                "this query reads tables only: nothing would ever arrive",
                code="no-stream",
                hint="a query, also one in EXISTS, needs a stream in FROM; tables are joined to it",
            )
        return Join(plans, conjunction(tuple(self.join))) if len(plans) > 1 else plans[0]


@contextmanager
def table_at_its_rows(
    table: FromItem, items: list[FromItem], predicate: Expression, *, outer: bool = False
) -> Iterator[None]:
    """Where a table cannot be joined to what is there: the query in which it is joined to the rows as they
    come, before what makes them expire unpredictably, or what gives them other instants."""
    try:
        yield
    except QueryError as error:
        if error.code in ("table-over-str", "table-below-join", "no-order"):
            error.hint = _joined_as_they_come(table, items, predicate, outer) or error.hint
        raise


def _joined_as_they_come(
    table: FromItem, items: list[FromItem], predicate: Expression, outer: bool
) -> str | None:
    streams = [item for item in items if item.table is None and item.names & predicate.columns]
    rows = streams[0] if len(streams) == 1 else None
    if rows is None or rows.node.name is None or rows.node.window is None or rows.node.function is not None:
        return None
    known = {entry.name for entry in rows.entries}
    more = [entry.name for entry in table.entries if entry.name not in known]
    listed = ", ".join([f"{rows.alias}.*", *(f"{table.alias}.{name}" for name in more)])
    stream, other = (
        _called(item.node.name or "", item.alias, now) for item, now in ((rows, " [NOW]"), (table, ""))
    )
    join = "LEFT JOIN" if outer else "JOIN"
    read = f", and read {rows.alias}.{more[0]}" if more else ""
    return (
        f"join it to the rows as they come: FROM (SELECT ISTREAM({listed}) FROM {stream} {join} {other}"
        f" ON {to_sql(predicate, str)}) {rows.node.window.span.quoted} AS {rows.alias}{read}"
    )


def _called(name: str, alias: str, window: str) -> str:
    return f"{name}{window}" if alias == name else f"{name}{window} {alias}"


def equal_or_null(one: Expression, two: Expression) -> tuple[Expression, ...]:
    """Equality in which NULL equals NULL, as equalities that rows can be found by."""
    if one.type.kind is Kind.NULL:
        return ()
    if one.type.kind not in _FILLERS:  # nested values have none
        return (call("<=>", [one, two]),)
    filler = Literal(_FILLERS[one.type.kind], one.type)
    return (
        call("=", [call("is_null", [one]), call("is_null", [two])]),
        call("=", [call("coalesce", [one, filler]), call("coalesce", [two, filler])]),
    )


_FILLERS: dict[Kind, Any] = {
    Kind.BOOLEAN: False,
    Kind.STRING: "",
    Kind.BINARY: b"",
    Kind.FLOAT: 0.0,
    Kind.DOUBLE: 0.0,
    Kind.DECIMAL: Decimal(0),
    **dict.fromkeys((Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT), 0),
    **dict.fromkeys((Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL), 0),
}
