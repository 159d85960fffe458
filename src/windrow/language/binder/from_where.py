"""FROM and WHERE: the rows a SELECT is about.

EXISTS tests are conditions of WHERE, joined to the rest by AND; each becomes a semi-join or, negated,
an anti-join above what the other conditions leave. The conditions inside that read the query around
are its predicate; the rest filters inside. What such a query selects does not matter, nor does its
stream word.

Outer joins: the pairs, and with NULL in place of a partner the rows that have none.

    L LEFT JOIN R ON p   =   L ⋈ R on p   ∪   L without a match on p, padded
    L FULL JOIN R ON p   =   that          ∪   R without a match on p, padded

At every instant this is the outer join of what the windows hold. Joins are taken in the order they are
written in: sources that are joined without padding make one n-way join, each outer join has all before it on
its left.

Queries inside conditions of WHERE: IN, NOT IN, and comparison with the one row of a query.

All are semi- and anti-joins, with tables too: what a join with the table leaves over has no partner there.
`x IN (SELECT y …)` has a partner with x = y. `x NOT IN (SELECT y …)` is true
only where x = y is false for every y: no partner with x = y, no y that is NULL, and no y at all where x is
NULL. A comparison with a query of one row holds where that row is a partner; without a row it is not true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from windrow.algebra import Table, TableKind, aggregates, checks, expressions, operators as ops, types
from windrow.algebra.expressions import TRUE, Call, ColumnRef, Expression, Literal, conjunction, conjuncts
from windrow.algebra.functions import call
from windrow.algebra.plan import Plan, TableScan, Window
from windrow.errors import QueryError
from windrow.language import syntax
from windrow.language.binder import select_list, sources, ways_out
from windrow.language.binder.aggregates import Groups, group_rows, is_grouped
from windrow.language.binder.context import Context, Leaves, bounds_over, pseudo_reads
from windrow.language.binder.expressions import ExpressionBinder, conditions, has_aggregate
from windrow.language.binder.scope import NamedColumn, Scope
from windrow.language.binder.sources import NESTED, Conditions, FromItem, renamed, table_at_its_rows
from windrow.language.syntax import walk
from windrow.language.tokens import at, mistake, refuse
from windrow.optimizer.trees import can_ever_fail
from windrow.windows import landmark, ranges, spec

_MIRRORED = {"LEFT": "RIGHT", "RIGHT": "LEFT", "FULL": "FULL"}


class OuterJoins:
    """The sources of a FROM with outer joins, on their way to one plan."""

    def __init__(self, items: list[FromItem], scope: Scope) -> None:
        self.scope = scope
        self.items = items
        self.foreign: list[Expression] = []
        #: the tables that are joined already, on their conditions
        self.tables: list[tuple[FromItem, Expression]] = []

    def plan(self, where: list[Expression]) -> Plan:
        """All sources joined, and filtered by the conditions of WHERE."""
        own, above = self._split([part for predicate in where for part in conjuncts(predicate)])
        joined = self.items[:1]
        placed = list(own)
        for item in self.items[1:]:
            if item.node.join:
                with at(item.node):
                    left = self._inner(joined, placed)
                    joined, placed = [self._outer(left, item)], []
            else:
                joined.append(item)
                placed += self._on(item)
        plan = self._inner(joined, placed).plan
        return ops.Filter(plan, conjunction(tuple(above))) if above else plan

    def _split(self, where: list[Expression]) -> tuple[list[Expression], list[Expression]]:
        """The conditions on rows that are kept anyhow, which may come before all joins, and the others."""
        first = next(place for place, item in enumerate(self.items) if item.node.join)
        kept = frozenset[str]().union(*(item.names for item in self.items[:first]))
        known = frozenset[str]().union(*(item.names for item in self.items))
        self.foreign = [part for part in where if part.columns - known]
        own = [part for part in where if part not in self.foreign]
        if any(item.node.join not in ("", "LEFT") for item in self.items):
            return [], own
        early: list[Expression] = []
        above: list[Expression] = []
        for part in own:
            is_early = part.columns and part.columns <= kept and not (above and can_ever_fail(part))
            (early if is_early else above).append(part)
        return early, above

    def _on(self, item: FromItem) -> list[Expression]:
        written = [part for each in item.node.on for part in conditions(each)]
        return [ExpressionBinder(self.scope, "ON").condition(part) for part in written]

    def _inner(self, items: list[FromItem], placed: list[Expression]) -> FromItem:
        if len(items) == 1 and not placed:
            return items[0]
        sorted_conditions = Conditions(items)
        for predicate in placed:
            sorted_conditions.add(predicate, on=False)
        if sorted_conditions.foreign:
            refuse(
                items[-1].node,
                "ON reads a query around this one",
                "grouped-correlation",
                "put the condition into WHERE",
            )
        return _together(items, sorted_conditions.plan())

    def _outer(self, left: FromItem, right: FromItem) -> FromItem:
        kind = right.node.join
        predicate = conjunction(tuple(part for each in self._on(right) for part in conjuncts(each)))
        if predicate.columns - left.names - right.names:
            refuse(
                right.node,
                "ON reads a source that is not joined yet",
                "unknown-column",
                "join it before, or put the condition into WHERE",
            )
        if left.table is not None:
            swapped = replace(right, node=replace(right.node, join=_MIRRORED[kind]))
            with table_at_its_rows(left, self.items, predicate, outer=True):
                return _together([left, right], _with_table(swapped, left, _MIRRORED[kind], predicate))
        if right.table is not None:
            self.tables.append((right, predicate))
            with table_at_its_rows(right, self.items, predicate, outer=True):
                return _together([left, right], _with_table(left, right, kind, predicate))
        if not self.tables:
            return _together([left, right], _of_streams(left.plan, right.plan, kind, predicate))
        table, condition = self.tables[0]
        with table_at_its_rows(table, self.items, condition, outer=True):
            return _together([left, right], _of_streams(left.plan, right.plan, kind, predicate))


def _of_streams(left: Plan, right: Plan, kind: str, predicate: Expression) -> Plan:
    for side in (left, right):
        checks.no_internal_windows(side, "an outer join")
    names = (*left.schema.names, *right.schema.names)
    parts = [_padded(ops.Join((left, right), predicate), names)]
    if kind in ("LEFT", "FULL"):
        parts.append(_padded(ops.Exists(left, right, predicate, negated=True), names, right.schema))
    if kind in ("RIGHT", "FULL"):
        parts.append(_padded(ops.Exists(right, left, predicate, negated=True), names, left.schema))
    return ops.Union(tuple(parts))


def _padded(plan: Plan, names: tuple[str, ...], missing: Iterable[expressions.Field] = ()) -> ops.Project:
    """The columns in their order, NULL for those that are missing."""
    null = Literal(None, types.NULL)
    gone = {field.name: expressions.cast(null, field.type) for field in missing}
    return ops.Project(plan, tuple((name, gone.get(name) or plan.schema.column(name)) for name in names))


def _with_table(stream: FromItem, table: FromItem, kind: str, predicate: Expression) -> Plan:
    scan = table.table
    assert scan is not None
    if kind != "LEFT" and scan.table.kind is TableKind.NRR:
        names_of = (stream.node.name, stream.alias), (table.node.name, table.alias)
        left, right = (alias if alias == (name or alias) else f"{name} {alias}" for name, alias in names_of)
        refuse(
            table.node,
            f"rows of NRR table `{scan.table.name}` have no time at which they could be there by themselves",
            "table-preserved",
            f"declare `{scan.table.name}` as a RELATION, or keep the rows of the stream:"
            f" FROM {left} LEFT JOIN {right} ON …",
        )
    if scan.table.kind is TableKind.NRR:
        return ops.TableJoin(stream.plan, scan, predicate, outer=True)
    names = (*stream.plan.schema.names, *scan.schema.names)
    parts = [_padded(ops.TableJoin(stream.plan, scan, predicate), names)]
    if kind in ("LEFT", "FULL"):
        alone = _without_partner(stream.plan, scan, predicate)
        parts.append(_padded(alone, names, scan.schema))
    if kind in ("RIGHT", "FULL"):
        checks.no_internal_windows(stream.plan, "an outer join")
        kept = ops.Exists(_rows_by_themselves(stream.plan, scan), stream.plan, predicate, negated=True)
        parts.append(_padded(kept, names, stream.plan.schema))
    return ops.Union(tuple(parts))


def _rows_by_themselves(stream: Plan, scan: TableScan) -> Plan:
    """The rows of a RELATION from the first instant at which a window of the query has had a row."""
    seen = []
    for leaf in stream.leaves:
        grid = leaf.spec.grid if isinstance(leaf.spec, ranges.RangeWindow) else None
        if leaf.spec.is_periodic and grid is None:
            raise QueryError(
                f"rows of RELATION `{scan.table.name}` are kept beside windows that move by time",
                code="table-preserved",
                hint="write [RANGE r] or [RANGE r SLIDE s]",
            )
        since: spec.WindowSpec = ranges.UnboundedWindow(wattr=leaf.spec.wattr)
        if isinstance(leaf.spec, ranges.RangeWindow) and leaf.spec.slide is not None:
            since = landmark.LandmarkWindow(
                None, None, leaf.spec.slide, leaf.spec.origin, wattr=leaf.spec.wattr
            )
        seen.append(ops.Project(Window(leaf.input, since), (("seen", Literal(1, types.INT)),)))
    once = ops.Distinct(seen[0] if len(seen) == 1 else ops.Union(tuple(seen)))
    return _padded(ops.TableJoin(once, scan, TRUE), scan.schema.names)


def _met(left: Plan, scan: TableScan, predicate: Expression) -> Plan:
    """The rows of the left side, each as often as it has partners in a table."""
    return _padded(ops.TableJoin(left, scan, predicate), left.schema.names)


def _without_partner(left: Plan, scan: TableScan, predicate: Expression) -> Plan:
    """The rows without a partner in a table.

    Equal rows have equally many partners in a RELATION, so EXCEPT ALL takes all of them away, or none. In an
    NRR they may differ by their instants; there the padded ones are those whose equal column is NULL.
    """
    checks.no_internal_windows(left, "NOT EXISTS")
    if scan.table.kind is TableKind.RELATION:
        return ops.Except(left, _met(left, scan, predicate))
    compared = next((pair[1] for pair in _equalities(predicate, scan)), None)
    if compared is None:
        raise QueryError(
            f"that a row has no partner in NRR table `{scan.table.name}` is told by an equality with one of"
            " its columns",
            code="outer-relation",
            hint=f"compare a column of `{scan.table.name}` with `=`, or declare the table RELATION",
        )
    padded = ops.TableJoin(left, scan, predicate, outer=True)
    return _padded(ops.Filter(padded, call("is_null", [compared])), left.schema.names)


def _with_partner(left: Plan, scan: TableScan, predicate: Expression) -> Plan:
    """The rows with a partner in a table, each once; by its KEY it has no more than one."""
    keys = {f"{scan.alias}.{name}" for name in scan.table.key}
    compared = {name for _, column in _equalities(predicate, scan) for name in column.columns}
    if keys and keys <= compared:
        return _met(left, scan, predicate)
    return ops.Except(left, _without_partner(left, scan, predicate))


def _equalities(predicate: Expression, scan: TableScan) -> Iterator[tuple[Expression, ColumnRef]]:
    """The columns of a table that are compared by equality, and what they are compared with."""
    own = set(scan.schema.names)
    for part in conjuncts(predicate):
        if isinstance(part, Call) and part.function == "=":
            for other, column in (part.args, part.args[::-1]):
                if isinstance(column, ColumnRef) and column.name in own and not other.columns & own:
                    yield other, column


def _together(items: list[FromItem], plan: Plan) -> FromItem:
    """Several sources as one, under the names of each."""
    entries = tuple(entry for item in items for entry in item.entries)
    return replace(items[0], plan=plan, entries=entries)


#: functions of which one NULL argument makes the value NULL, so that a missing row decides the comparison
_STRICT = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "neg", "not", "between"})


def scalar_queries(node: syntax.Node) -> list[syntax.ScalarQuery]:
    """The queries that stand for values in a condition."""
    return [part for part in walk(node) if isinstance(part, syntax.ScalarQuery)]


@dataclass(frozen=True)
class NestedSelection:
    """The rows a nested query gives, the values it selects, and its conditions on the query around."""

    plan: Plan
    columns: tuple[Expression, ...]
    foreign: tuple[Expression, ...] = ()


class MembershipBinder:
    """Binds the conditions of one WHERE that hold queries; `inside` is the context of those."""

    def __init__(self, scope: Scope, inside: Context) -> None:
        self.scope = scope
        self.inside = inside

    # IN.

    def is_in(self, left: Plan, test: syntax.InTest) -> Plan:
        """The rows of `left` for which a [NOT] IN holds."""
        values = [ExpressionBinder(self.scope, "WHERE").bind(arg) for arg in test.args]
        table = TableRows.of(test.query, self.inside)
        found = table.selected(test.query) if table is not None else self._selected(test.query)
        if len(found.columns) != len(values):
            message = f"IN compares {len(values)} with the {len(found.columns)} columns of this query"
            refuse(test.query, message, "set-columns", "select as many columns as stand before IN")
        with at(test):
            pairs = zip(values, found.columns, strict=True)
            equal = tuple(call("=", [value, column]) for value, column in pairs)
            possible = call("coalesce", [conjunction(equal), TRUE])
            if table is not None:
                _refuse_not_in_nrr(test, table)
                same = possible if test.negated else conjunction(equal)
                return table.matching(left, (same,), negated=test.negated)
            if not test.negated:
                return ops.Exists(left, found.plan, conjunction(found.foreign + equal))
            if len(values) == 1 and not found.foreign:
                return self._not_in(left, found, values[0], equal[0])
            return ops.Exists(left, found.plan, conjunction((*found.foreign, possible)), negated=True)

    def _not_in(self, left: Plan, found: NestedSelection, value: Expression, equal: Expression) -> Plan:
        """Anti-joins by value, and with what is known of the whole set: has it rows, is one of them NULL."""
        without_partner = ops.Exists(left, found.plan, equal, negated=True)
        facts = ops.Distinct(ops.Project(found.plan, (("unknown", call("is_null", [found.columns[0]])),)))
        known = renamed(facts, self.inside.free(NESTED))
        unknown = known.schema.column(known.schema.names[0])
        undecided = call("or", [unknown, call("is_null", [value])])
        return ops.Exists(without_partner, known, undecided, negated=True)

    def _selected(self, query: syntax.QueryExpression) -> NestedSelection:
        """What a query selects: of plain rows their values, else the columns of its answer."""
        plain = isinstance(query, syntax.Select) and query.limit is None and not is_grouped(query)
        if not plain:
            plan = renamed(self.inside.bind(query, self.inside.nested()).plan, self.inside.free(NESTED))
            return NestedSelection(plan, tuple(plan.schema.column(name) for name in plan.schema.names))
        assert isinstance(query, syntax.Select)
        rows = bind_rows(query, self.inside)
        values = ExpressionBinder(rows.scope, "the select list")
        listed = select_list.expand(query.items, replace(rows.scope, outer=None))
        return NestedSelection(
            rows.plan, tuple(values.bind(item.node) for item in listed.items), rows.foreign
        )

    # Comparison with one row.

    def compared(self, left: Plan, condition: syntax.Node) -> Plan:
        """The rows of `left` for which a condition with queries in it holds."""
        _refuse_lenient(condition)
        rows: list[NestedSelection] = []
        columns: dict[syntax.ScalarQuery, Expression] = {}
        for query in scalar_queries(condition):
            with at(query):
                rows.append(self._one_row(query, len(rows)))
            columns[query] = rows[-1].columns[0]
        predicate = _WithRows(self.scope, "WHERE", columns).condition(condition)
        plans = tuple(each.plan for each in rows)
        right = plans[0] if len(plans) == 1 else ops.Join(plans)
        foreign = tuple(part for each in rows for part in each.foreign)
        return ops.Exists(left, right, conjunction((*foreign, predicate)))

    def _one_row(self, scalar: syntax.ScalarQuery, number: int) -> NestedSelection:
        query = scalar.query
        _refuse_many_rows(query)
        alias = self.inside.free(NESTED, (f"{NESTED}_{n + 1}" if n else NESTED for n in range(number)))
        assert isinstance(query, syntax.Select)
        rows = bind_rows(query, self.inside) if is_grouped(query) else None
        if rows is not None and rows.foreign:
            return self._by_partner(query, rows, alias)
        plan = renamed(self.inside.bind(query, self.inside.nested()).plan, alias)
        if len(plan.schema) != 1:
            message = f"a value is compared with the {len(plan.schema)} columns of this query"
            refuse(query, message, "set-columns", "select one column")
        return NestedSelection(plan, (plan.schema.column(plan.schema.names[0]),))

    def _by_partner(self, query: syntax.Select, rows: BoundRows, alias: str) -> NestedSelection:
        """An aggregate of the rows that equal a row around: one for each value they are compared by."""
        own = replace(rows.scope, outer=None)
        listed = select_list.expand(query.items, own)
        groups = Groups(query, rows.plan, own, listed)
        pairs = [_sides(part, own, query) for part in conjuncts(conjunction(rows.foreign))]
        names = [groups.add_key(inner) for inner, _ in pairs]
        value = groups.bind(listed.items[0].node)
        having = groups.having(query)
        with at(query):
            grouped = groups.plan(having)
            keys = [(f"key{n}", grouped.schema.column(name)) for n, name in enumerate(names, 1)]
            plan = renamed(ops.Project(grouped, (("value", value), *keys)), alias)
        columns = [plan.schema.column(f"{alias}.{name}") for name, _ in keys]
        same = tuple(call("=", [column, outer]) for column, (_, outer) in zip(columns, pairs, strict=True))
        return NestedSelection(plan, (plan.schema.column(f"{alias}.value"),), same)


class _WithRows(ExpressionBinder):
    """Values of which some come from the rows of queries."""

    def __init__(self, scope: Scope, clause: str, columns: dict[syntax.ScalarQuery, Expression]) -> None:
        super().__init__(scope, clause)
        self.columns = columns

    def bind(self, node: syntax.Node) -> Expression:
        return self.columns[node] if isinstance(node, syntax.ScalarQuery) else super().bind(node)


def _refuse_not_in_nrr(test: syntax.InTest, table: TableRows) -> None:
    if not test.negated or table.scan.table.kind is not TableKind.NRR:
        return
    assert isinstance(test.query, syntax.Select)
    name = table.scan.table.name
    columns, values = (
        [node.parts if isinstance(node, syntax.Name) else ("…",) for node in nodes]
        for nodes in ([item.expression for item in test.query.items], test.args)
    )
    pairs = zip(columns, values, strict=False)
    equal = " AND ".join(f"{name}.{column[-1]} = {'.'.join(value)}" for column, value in pairs)
    refuse(
        test,
        f"NOT IN holds for no row if `{name}` has a NULL, which differs by row in an NRR table",
        "misplaced",
        f"write NOT EXISTS (SELECT 1 FROM {name} WHERE {equal})",
    )


def _sides(part: Expression, own: Scope, query: syntax.Select) -> tuple[Expression, Expression]:
    """Of an equality with the query around, the side inside and the side outside."""
    if isinstance(part, Call) and part.function == "=":
        for inner, outer in (part.args, part.args[::-1]):
            if inner.columns <= own.plan_names and not outer.columns & own.plan_names:
                return inner, outer
    raise mistake(
        query,
        "this query is about other rows for each row around it, and not by equality",
        "grouped-correlation",
        "join the streams on the condition, and group by the columns of the outer one",
    )


def _refuse_lenient(node: syntax.Node) -> None:
    """A query stands where its missing row makes the condition unknown, and nothing else."""
    if not isinstance(node, syntax.Apply) or not scalar_queries(node):
        return
    if node.function not in _STRICT:
        refuse(
            node,
            f"a query cannot stand inside `{node.function}`: it may have no row",
            "misplaced",
            "compare with the query itself, as in price > (SELECT AVG(price) FROM bids [RANGE 1 HOUR])",
        )
    for arg in node.args:
        _refuse_lenient(arg)


def _refuse_many_rows(query: syntax.QueryExpression) -> None:
    if isinstance(query, syntax.Select) and _has_one_row(query):
        return
    hint = ways_out.one_row(query)
    refuse(query, "a value is compared with a query that may have many rows", "many-rows", hint)


def _has_one_row(query: syntax.Select) -> bool:
    if len(query.items) != 1:
        refuse(query, "a value is compared with a query of several columns", "set-columns", "select one")
    if has_aggregate(query.items[0].expression):
        return not query.group_by
    if query.limit is not None and str(getattr(query.limit, "value", "")) == "1":
        return True
    if len(query.sources) != 1 or query.sources[0].window is None:
        return False
    clause = query.sources[0].window.clause
    by_rows = clause.kind == "ROWS" and not clause.partition_by
    return by_rows and clause.range is not None and clause.range.value == 1


@dataclass(frozen=True)
class BoundRows:
    """The rows of FROM and WHERE, their names, and the conditions that read the query around."""

    plan: Plan
    scope: Scope
    foreign: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class TableRows:
    """The rows of a query over one table by itself: a partner of the rows around it, and nothing else."""

    scan: TableScan
    scope: Scope
    conditions: tuple[Expression, ...]

    @classmethod
    def of(cls, query: syntax.QueryExpression, inside: Context) -> TableRows | None:
        """None if the query is over streams, or does more than pick rows."""
        if not isinstance(query, syntax.Select) or len(query.sources) != 1 or query.sources[0].name is None:
            return None
        if not isinstance(inside.catalog.entry(query.sources[0].name), Table) or is_grouped(query):
            return None
        (item,) = sources.bind_sources(query.sources, pseudo_reads(query), inside)
        if item.table is None:
            return None
        scope = Scope(item.entries, inside.outer)
        where = ExpressionBinder(scope, "WHERE")
        return cls(item.table, scope, tuple(where.condition(part) for part in conditions(query.where)))

    def selected(self, query: syntax.QueryExpression) -> NestedSelection:
        """What the query selects of them."""
        assert isinstance(query, syntax.Select)
        inner = ExpressionBinder(self.scope, "the select list")
        items = select_list.expand(query.items, self.scope).items
        return NestedSelection(self.scan, tuple(inner.bind(item.node) for item in items))

    def matching(self, left: Plan, more: tuple[Expression, ...], *, negated: bool) -> Plan:
        predicate = conjunction((*self.conditions, *more))
        return (_without_partner if negated else _with_partner)(left, self.scan, predicate)


def bind_rows(select: syntax.Select, context: Context) -> BoundRows:
    items = sources.bind_sources(
        select.sources, pseudo_reads(select), context, growing=_asks_for_frames(select)
    )
    scope = Scope(tuple(entry for item in items for entry in item.entries), context.outer)
    for item in items:
        if item.node.as_of is not None:
            _check_as_of(item, items, scope)
    foreign: list[Expression]
    if any(source.join for source in select.sources):
        outer = OuterJoins(items, scope)
        with at(select):
            plan, foreign = outer.plan(_where(select, items, scope)), outer.foreign
    else:
        placed, on = Conditions(items), ExpressionBinder(scope, "ON")
        for part in (part for written in select.on for part in conditions(written)):
            placed.add(on.condition(part), on=True)
        for predicate in _where(select, items, scope):
            placed.add(predicate, on=False)
        with at(select):
            plan, foreign = placed.plan(), placed.foreign
    if select.unnests:
        plan, scope = _unnested(select, plan, scope, context, [item.plan_alias for item in items])
    inside = context.inside(scope, [item.plan_alias for item in items])
    membership = MembershipBinder(scope, inside)
    tests = conditions(select.where)
    for test in sorted(tests, key=lambda test: not _asks_table(test, inside)):  # tables take no negative rows
        with at(test):
            if isinstance(test, syntax.ExistsTest):
                plan = _exists(plan, test, inside)
            elif isinstance(test, syntax.InTest):
                plan = membership.is_in(plan, test)
            elif scalar_queries(test):
                plan = membership.compared(plan, test)
    return BoundRows(plan, scope, tuple(foreign))


def _check_as_of(item: FromItem, items: list[FromItem], scope: Scope) -> None:
    """`t FOR SYSTEM_TIME AS OF s.ts` is what a join with an NRR table means; nothing else has such a past."""
    time, name = item.node.as_of, item.node.name or item.alias
    assert time is not None
    streams = [other for other in items if other.table is None]
    known = {column for other in streams for column in ops.instant_columns(other.plan)}
    rows = next((f"{o.alias}.{e.name}" for o in streams for e in o.entries if e.column.columns & known), "ts")
    if item.table is None:
        refuse(
            item.node,
            f"`{name}` is no table: it is not looked up as of a time",
            "as-of",
            f"declare it with CREATE TABLE, or join what its window holds: JOIN {name} [ROWS 1] ON …",
        )
    if item.table.table.kind is not TableKind.NRR:
        refuse(
            item.node,
            f"a change of RELATION `{name}` reaches back to rows that came before it",
            "as-of",
            f"declare `{name}` as an NRR table, or leave FOR SYSTEM_TIME out",
        )
    if len(streams) > 1:
        refuse(
            time,
            "beside several streams a table is looked up as of the latest of the rows that are joined",
            "as-of",
            f"leave FOR SYSTEM_TIME out, or join `{name}` to {streams[0].alias} in a nested query",
        )
    called = isinstance(time, syntax.Apply)
    bound = None if called else ExpressionBinder(scope, "FOR SYSTEM_TIME AS OF").bind(time)
    if not isinstance(bound, ColumnRef) or bound.name not in known:
        message = "a table is looked up as of the time of the row it is joined to"
        message += ", not as of the clock on the wall" if called else ""
        refuse(time, message, "as-of", f"write FOR SYSTEM_TIME AS OF {rows}")


def _asks_table(test: syntax.Node, inside: Context) -> bool:
    """Whether a condition looks for partners in a table."""
    query = test.query if isinstance(test, syntax.ExistsTest | syntax.InTest) else None
    names = [source.name for source in query.sources] if isinstance(query, syntax.Select) else []
    return any(name is not None and isinstance(inside.catalog.entry(name), Table) for name in names)


def _asks_for_frames(select: syntax.Select) -> bool:
    """Whether OVER looks back from each row, instead of numbering the rows of an answer, or adding all up."""
    written = [*(item.expression for item in select.items), *filter(None, [select.qualify])]
    parts = (part for each in written for part in walk(each))
    overs = (part for part in parts if isinstance(part, syntax.OverCall) and part.function not in ops.KINDS)
    return any(over.order or over.frame is not None for over in overs)


def _unnested(
    select: syntax.Select, plan: Plan, scope: Scope, context: Context, used: list[str]
) -> tuple[Plan, Scope]:
    """The rows with the elements of their arrays, and what WHERE asks of them."""
    for written in select.unnests:
        with at(written):
            array = ExpressionBinder(scope, written.function).bind(written.array)
            alias = context.free(written.alias or "unnested", used)
            used.append(alias)
            position, names = _unnested_names(written, array.type)
            place = f"{alias}.{position}" if position else None
            plan = ops.Unnest(plan, array, tuple(f"{alias}.{n}" for n in names), place, written.outer)
            shown = written.alias or alias
            columns = [position, *names] if position else names
            own = [NamedColumn(shown, n, plan.schema.column(f"{alias}.{n}")) for n in columns]
            if position and written.ordinality:  # counted from 1, and behind the elements
                place_from_1 = call("+", [own[0].column, Literal(1, types.INT)])
                own = [*own[1:], NamedColumn(shown, position, place_from_1)]
            scope = replace(scope, entries=(*scope.entries, *own))
    for part in _plain_conditions(select):
        plan = ops.Filter(plan, ExpressionBinder(scope, "WHERE", bounds_over(plan)).condition(part))
    return plan, scope


def _plain_conditions(select: syntax.Select) -> list[syntax.Node]:
    return [
        part
        for part in conditions(select.where)
        if not isinstance(part, syntax.ExistsTest | syntax.InTest) and not scalar_queries(part)
    ]


def _unnested_names(written: syntax.Unnesting, kind: types.DataType) -> tuple[str | None, list[str]]:
    """The columns: as they are named, or as the fields are; explode makes one column of a struct."""
    names = list(written.columns)
    position = None
    if written.ordinality:
        if written.function == "POSEXPLODE":
            refuse(written, "POSEXPLODE counts already", "not-supported", "leave WITH ORDINALITY out")
        position, names = (names[-1], names[:-1]) if names else ("ordinality", names)
    if written.function == "POSEXPLODE":
        position, names = (names[0], names[1:]) if names else ("pos", names)
    if names or kind.kind is not types.Kind.ARRAY:
        return position, names or ["col"]
    fields = [name for name, _ in kind.element.fields]
    if fields and (kind.is_map or written.function == "UNNEST"):
        return position, fields
    return position, ["col" if written.function != "UNNEST" else written.alias or "unnest"]


def _where(select: syntax.Select, items: list[FromItem], scope: Scope) -> list[Expression]:
    """The conditions of WHERE without queries in them; those about elements of arrays come later."""
    if select.unnests:
        return []
    plain = _plain_conditions(select)
    for part in plain:
        _refuse_about_answers(part)
    bound = bounds_over(Leaves(tuple(leaf for item in items for leaf in item.plan.leaves)))
    return [ExpressionBinder(scope, "WHERE", bound).condition(part) for part in plain]


def _refuse_about_answers(part: syntax.Node) -> None:
    """Numbers, frames and aggregates come after WHERE."""
    over = next((each for each in walk(part) if isinstance(each, syntax.OverCall)), None)
    if over is not None:
        refuse(
            over,
            f"{over.function} OVER is about the rows that WHERE leaves, and stands behind it",
            "misplaced",
            f"write QUALIFY {part.span.quoted}, behind WHERE, GROUP BY and HAVING",
        )
    if has_aggregate(part):
        calls = (each.function for each in walk(part) if isinstance(each, syntax.Apply))
        called = next(name for name in calls if aggregates.is_aggregate(name)).upper()
        message = f"{called} is about a group of rows, but WHERE is about one row"
        hint = f"put it in HAVING, which is about groups: HAVING {part.span.quoted}"
        refuse(part, message, "misplaced-aggregate", hint)


def _exists(left: Plan, test: syntax.ExistsTest, context: Context) -> Plan:
    query = test.query
    table = TableRows.of(query, context)
    if table is not None:
        return table.matching(left, (), negated=test.negated)
    if not isinstance(query, syntax.Select):
        right = context.bind(query, context.nested()).plan
        return ops.Exists(left, right, negated=test.negated)
    rows = bind_rows(query, context)
    right = rows.plan
    if is_grouped(query, of_items=False):
        if rows.foreign:
            refuse(
                query,
                "this EXISTS groups its rows, so its WHERE cannot read the query around it",
                "grouped-correlation",
                "leave GROUP BY and HAVING out, or join with a nested query that groups",
            )
        right = group_rows(query, rows.plan, replace(rows.scope, outer=None))
    return ops.Exists(left, right, conjunction(tuple(rows.foreign)), test.negated)
