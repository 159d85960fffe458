"""Queries inside conditions of WHERE: IN, NOT IN, and comparison with the one row of a query.

All are semi- and anti-joins. `x IN (SELECT y …)` has a partner with x = y. `x NOT IN (SELECT y …)` is true
only where x = y is false for every y: no partner with x = y, no y that is NULL, and no y at all where x is
NULL. A comparison with a query of one row holds where that row is a partner; without a row it is not true.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from windrow.algebra.expressions import TRUE, Call, conjunction, conjuncts
from windrow.algebra.functions import call
from windrow.algebra.operators import Distinct, Exists, Join, Project
from windrow.language.binder.aggregates import Groups, is_grouped
from windrow.language.binder.expressions import Values, has_aggregate
from windrow.language.binder.places import at, mistake, refuse, walk
from windrow.language.binder.select_list import expand
from windrow.language.binder.sources import NESTED, renamed
from windrow.language.syntax import Apply, InTest, Node, ScalarQuery, Select

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Plan
    from windrow.language.binder.context import Context
    from windrow.language.binder.from_where import Rows
    from windrow.language.binder.scope import Scope
    from windrow.language.syntax import Query

    BindRows = Callable[[Select, Context], Rows]

#: functions of which one NULL argument makes the value NULL, so that a missing row decides the comparison
_STRICT = frozenset({"=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "neg", "not", "between"})


def scalar_queries(node: Node) -> list[ScalarQuery]:
    """The queries that stand for values in a condition."""
    return [part for part in walk(node) if isinstance(part, ScalarQuery)]


@dataclass(frozen=True)
class Selected:
    """The rows a nested query gives, the values it selects, and its conditions on the query around."""

    plan: Plan
    columns: tuple[Expression, ...]
    foreign: tuple[Expression, ...] = ()


class Membership:
    """Binds the conditions of one WHERE that hold queries; `inside` is the context of those."""

    def __init__(self, scope: Scope, inside: Context, bind_rows: BindRows) -> None:
        self.scope = scope
        self.inside = inside
        self.bind_rows = bind_rows

    # IN.

    def is_in(self, left: Plan, test: InTest) -> Plan:
        """The rows of `left` for which a [NOT] IN holds."""
        values = [Values(self.scope, "WHERE").bind(arg) for arg in test.args]
        found = self._selected(test.query)
        if len(found.columns) != len(values):
            message = f"IN compares {len(values)} with the {len(found.columns)} columns of this query"
            refuse(test.query, message, "set-columns", "select as many columns as stand before IN")
        with at(test):
            pairs = zip(values, found.columns, strict=True)
            equal = tuple(call("=", [value, column]) for value, column in pairs)
            if not test.negated:
                return Exists(left, found.plan, conjunction(found.foreign + equal))
            if len(values) == 1 and not found.foreign:
                return self._not_in(left, found, values[0], equal[0])
            possible = call("coalesce", [conjunction(equal), TRUE])
            return Exists(left, found.plan, conjunction((*found.foreign, possible)), negated=True)

    def _not_in(self, left: Plan, found: Selected, value: Expression, equal: Expression) -> Plan:
        """Anti-joins by value, and with what is known of the whole set: has it rows, is one of them NULL."""
        without_partner = Exists(left, found.plan, equal, negated=True)
        facts = Distinct(Project(found.plan, (("unknown", call("is_null", [found.columns[0]])),)))
        known = renamed(facts, self.inside.free(NESTED))
        unknown = known.schema.column(known.schema.names[0])
        undecided = call("or", [unknown, call("is_null", [value])])
        return Exists(without_partner, known, undecided, negated=True)

    def _selected(self, query: Query) -> Selected:
        """What a query selects: of plain rows their values, else the columns of its answer."""
        plain = isinstance(query, Select) and query.limit is None and not is_grouped(query)
        if not plain:
            plan = renamed(self.inside.bind(query, self.inside.nested()).plan, self.inside.free(NESTED))
            return Selected(plan, tuple(plan.schema.column(name) for name in plan.schema.names))
        assert isinstance(query, Select)
        rows = self.bind_rows(query, self.inside)
        values = Values(rows.scope, "the select list")
        listed = expand(query.items, replace(rows.scope, outer=None))
        return Selected(rows.plan, tuple(values.bind(item.node) for item in listed.items), rows.foreign)

    # Comparison with one row.

    def compared(self, left: Plan, condition: Node) -> Plan:
        """The rows of `left` for which a condition with queries in it holds."""
        _refuse_lenient(condition)
        rows: list[Selected] = []
        columns: dict[ScalarQuery, Expression] = {}
        for query in scalar_queries(condition):
            with at(query):
                rows.append(self._one_row(query, len(rows)))
            columns[query] = rows[-1].columns[0]
        predicate = _WithRows(self.scope, "WHERE", columns).condition(condition)
        plans = tuple(each.plan for each in rows)
        right = plans[0] if len(plans) == 1 else Join(plans)
        foreign = tuple(part for each in rows for part in each.foreign)
        return Exists(left, right, conjunction((*foreign, predicate)))

    def _one_row(self, scalar: ScalarQuery, number: int) -> Selected:
        query = scalar.query
        _refuse_many_rows(query)
        alias = self.inside.free(NESTED, (f"{NESTED}_{n + 1}" if n else NESTED for n in range(number)))
        assert isinstance(query, Select)
        if not is_grouped(query):
            plan = renamed(self.inside.bind(query, self.inside.nested()).plan, alias)
            return Selected(plan, _only_column(query, plan))
        rows = self.bind_rows(query, self.inside)
        if not rows.foreign:
            plan = renamed(self.inside.bind(query, self.inside.nested()).plan, alias)
            return Selected(plan, _only_column(query, plan))
        return self._by_partner(query, rows, alias)

    def _by_partner(self, query: Select, rows: Rows, alias: str) -> Selected:
        """An aggregate of the rows that equal a row around: one for each value they are compared by."""
        own = replace(rows.scope, outer=None)
        listed = expand(query.items, own)
        groups = Groups(query, rows.plan, own, listed)
        pairs = [_sides(part, own, query) for part in conjuncts(conjunction(rows.foreign))]
        names = [groups.add_key(inner) for inner, _ in pairs]
        value = groups.bind(listed.items[0].node)
        having = groups.having(query)
        with at(query):
            grouped = groups.plan(having)
            keys = [(f"key{n}", grouped.schema.column(name)) for n, name in enumerate(names, 1)]
            plan = renamed(Project(grouped, (("value", value), *keys)), alias)
        columns = [plan.schema.column(f"{alias}.{name}") for name, _ in keys]
        same = tuple(call("=", [column, outer]) for column, (_, outer) in zip(columns, pairs, strict=True))
        return Selected(plan, (plan.schema.column(f"{alias}.value"),), same)


class _WithRows(Values):
    """Values of which some come from the rows of queries."""

    def __init__(self, scope: Scope, clause: str, columns: dict[ScalarQuery, Expression]) -> None:
        super().__init__(scope, clause)
        self.columns = columns

    def bind(self, node: Node) -> Expression:
        return self.columns[node] if isinstance(node, ScalarQuery) else super().bind(node)


def _only_column(query: Select, plan: Plan) -> tuple[Expression, ...]:
    if len(plan.schema) != 1:
        message = f"a value is compared with the {len(plan.schema)} columns of this query"
        refuse(query, message, "set-columns", "select one column")
    return (plan.schema.column(plan.schema.names[0]),)


def _sides(part: Expression, own: Scope, query: Select) -> tuple[Expression, Expression]:
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


def _refuse_lenient(condition: Node) -> None:
    """A query stands where its missing row makes the condition unknown, and nothing else."""

    def check(node: Node) -> None:
        if not isinstance(node, Apply) or not scalar_queries(node):
            return
        if node.function not in _STRICT:
            refuse(
                node,
                f"a query cannot stand inside `{node.function}`: it may have no row",
                "misplaced",
                "compare with the query itself, as in price > (SELECT AVG(price) FROM bids [RANGE 1 HOUR])",
            )
        for arg in node.args:
            check(arg)

    check(condition)


def _refuse_many_rows(query: Query) -> None:
    if isinstance(query, Select) and _has_one_row(query):
        return
    refuse(
        query,
        "a value is compared with a query that may have many rows",
        "many-rows",
        "take an aggregate without GROUP BY, as in (SELECT MAX(price) …), or write IN (SELECT …)",
    )


def _has_one_row(query: Select) -> bool:
    if len(query.items) != 1:
        refuse(query, "a value is compared with a query of several columns", "set-columns", "select one")
    if has_aggregate(query.items[0].expression):
        return not query.group_by
    window = query.sources[0].window if len(query.sources) == 1 else None
    last = window is not None and window.clause.kind == "ROWS" and not window.clause.partition_by
    one = last and window is not None and window.clause.range is not None and window.clause.range.value == 1
    return bool(one) or (query.limit is not None and str(getattr(query.limit, "value", "")) == "1")
