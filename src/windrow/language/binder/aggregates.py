"""Groups: the keys of GROUP BY, the aggregate calls, and expressions over both.

An expression about groups reads keys and aggregates only. Whatever part of it equals a key is that key;
whatever is an aggregate call becomes a column of the γ below, one column for equal calls. `window_start`
and `window_end` are the same for all rows of an extent, so as keys they change nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from windrow.algebra import aggregates
from windrow.algebra.aggregates.count import Count
from windrow.algebra.checks import order_is_known, sub_windows_are_known
from windrow.algebra.estimates import settled, with_lists
from windrow.algebra.expressions import TRUE, ColumnRef, Expression, Literal, WindowBound
from windrow.algebra.functions.coercion import cast
from windrow.algebra.functions.sql_text import to_sql
from windrow.algebra.operators import Aggregate, AggregateCall, Filter
from windrow.algebra.over import instant_columns
from windrow.algebra.types import common_type
from windrow.errors import QueryError
from windrow.language.binder.expressions import ExpressionBinder, has_aggregate, is_bound
from windrow.language.binder.names import call_sql, describe
from windrow.language.binder.places import at, mistake, refuse
from windrow.language.binder.pseudo import bounds_over
from windrow.language.binder.select_list import SelectList
from windrow.language.syntax import Apply, Constant, Name, Node, Select, Star, meaning

if TYPE_CHECKING:
    from windrow.algebra.plan import Plan
    from windrow.language.binder.scope import Scope


def is_grouped(select: Select, of_items: bool = True) -> bool:
    """Whether a SELECT is about groups; `of_items` says whether its select list counts."""
    if select.group_by or select.having is not None:
        return True
    written = [item.expression for item in select.items] + [key for key, _ in select.order_by]
    return of_items and any(has_aggregate(node) for node in written)


def group_rows(select: Select, plan: Plan, scope: Scope) -> Plan:
    """GROUP BY and HAVING alone, for a query whose select list does not matter."""
    groups = Groups(select, plan, scope, SelectList())
    having = groups.having(select)
    return groups.plan(having)


class Groups(ExpressionBinder):
    """Binds expressions about groups, and collects what the γ below them must compute."""

    def __init__(self, select: Select, rows: Plan, scope: Scope, outputs: SelectList) -> None:
        super().__init__(scope, "the select list", bounds_over(rows))
        self.rows = rows
        self.outputs = outputs
        self.keys: dict[Expression, str] = {}
        self.calls: dict[AggregateCall, str] = {}
        for key in select.group_by:
            self._add_key(outputs.dereferenced(key, columns_win=scope))
        if not select.group_by and _is_by_rows(select):
            for item in select.items:
                if isinstance(node := self._hyphenated(item.expression), Name) and not is_bound(node):
                    self._add_key(node)

    def having(self, select: Select) -> Expression | None:
        if select.having is None:
            return None
        self.clause = "HAVING"
        return self.condition(self.outputs.without_aliases(select.having, columns_win=self.scope))

    def plan(self, having: Expression | None) -> Plan:
        """The γ with all that was asked of it, and HAVING above."""
        keys = tuple((name, key) for key, name in self.keys.items())
        calls = settled(self.rows, [(name, call) for call, name in self.calls.items()])
        grouped = Aggregate(self.rows, keys, calls)
        return Filter(grouped, having) if having is not None and having != TRUE else grouped

    def bind(self, node: Node) -> Expression:
        return self._as_key(node) or super().bind(node)

    def name(self, node: Name) -> Expression:
        if is_bound(node) and not self.scope.knows(node):
            return self.window_bound(node)
        column = self.scope.resolve(node)
        if not isinstance(column, ColumnRef):
            return column
        raise mistake(
            node,
            f"`{column.name}` is neither grouped nor aggregated, so a group has no one value of it",
            "ungrouped-column",
            f"add it to GROUP BY, or take ANY_VALUE({'.'.join(node.parts)})",
        )

    def aggregate(self, node: Apply) -> Expression:
        if node.order:
            return self.bind(in_written_order(node, self.rows, self.scope))
        call = with_lists(self.rows, bound_call(node, self.scope))
        order_is_known(self.rows, call)
        with at(node):
            sub_windows_are_known(self.rows, call)
        name = self.calls.setdefault(call, self._free(call_sql(call, str)))
        return ColumnRef(name, call.data_type)

    def _add_key(self, node: Node) -> None:
        key = ExpressionBinder(self.scope, "GROUP BY", self.bound).bind(node)
        if not key.columns or key in self.keys:
            return  # the same for all rows, or a key already: it changes nothing
        if any(isinstance(part, WindowBound) for part in key.walk()):
            message = "a key is about rows, and a bound of the window about the answer: this is about both"
            refuse(
                node,
                message,
                "window-bounds",
                "group by the columns alone, and combine them in the select list",
            )
        self.add_key(key)

    def add_key(self, key: Expression) -> str:
        """What a key is called; it is one from now on."""
        name = key.name if isinstance(key, ColumnRef) else to_sql(key, str)
        return self.keys.setdefault(key, self._free(name))

    def _as_key(self, node: Node) -> Expression | None:
        if not self.keys or has_aggregate(node):
            return None
        try:
            key = ExpressionBinder(self.scope, self.clause, self.bound).bind(node)
        except QueryError:
            return None  # binding it as an expression about groups says why
        return ColumnRef(self.keys[key], key.type) if key in self.keys else None

    def _free(self, name: str) -> str:
        used = {*self.keys.values(), *self.calls.values()}
        candidates = [name, *(f"{name} #{number}" for number in range(2, len(used) + 3))]
        return next(candidate for candidate in candidates if candidate not in used)


def _is_by_rows(select: Select) -> bool:
    """Whether windows of a SELECT are moved by rows, or partitioned: WID's queries over these group by the
    columns they select, without saying so."""
    clauses = [source.window.clause for source in select.sources if source.window is not None]
    return any(c.partition_by or c.sattr or (c.slide is not None and c.slide.in_rows) for c in clauses)


def bound_call(node: Apply, scope: Scope) -> AggregateCall:
    """An aggregate of rows, with its arguments bound."""
    kind = aggregates.lookup(node.function)
    written, constants = _arguments(node, kind)
    values = ExpressionBinder(scope, "the argument of an aggregate")
    args = _widened(tuple(values.bind(arg) for arg in written), kind.takes)
    where = ExpressionBinder(scope, "FILTER").condition(node.where) if node.where is not None else TRUE
    with at(node):
        plain = aggregates.make(node.function, tuple(_constant(node, part, scope) for part in constants))
        bound = plain.bind(tuple(arg.type for arg in args))
    assert bound.result is not None
    distinct = node.distinct and not plain.duplicate_insensitive
    return AggregateCall(plain.function, args, bound.result, plain.params, distinct, where)


#: aggregates that go by the order of rows, and what each is in the opposite one
_BACKWARDS = {
    "first": "last",
    "first_value": "last_value",
    "last": "first",
    "last_value": "first_value",
    "earliest_by_offset": "last",
    "latest_by_offset": "first",
}
_LISTS = ("array_agg", "collect_list", "string_agg", "listagg")


def in_written_order(node: Apply, rows: Plan, scope: Scope) -> Apply:
    """An aggregate with ORDER BY inside, by one without: by time it goes anyhow, by values it is sorted."""
    plain, (key, descending) = replace(node, order=()), node.order[0]
    if node.function not in (*_LISTS, *_BACKWARDS):
        name = node.function.upper()
        refuse(key, f"{name} does not depend on an order", "bad-aggregate", "leave ORDER BY out")
    known = instant_columns(rows)
    bound = ExpressionBinder(scope, "ORDER BY").bind(key)
    alone = len(node.order) == 1
    if alone and isinstance(bound, ColumnRef) and bound.name in known and not node.distinct:
        if node.function in _BACKWARDS:
            return replace(plain, function=_BACKWARDS[node.function]) if descending else plain
        if not descending:
            return plain
    if alone and node.args and meaning(key) == meaning(node.args[0]) and node.function in _LISTS:
        return _sorted(plain, descending)
    raise _other_order(node, known)


def _other_order(node: Apply, known: frozenset[str]) -> QueryError:
    name, key = node.function.upper(), node.order[0][0]
    value, by = describe(node.args[0]) if node.args else "x", describe(key)
    time = next((each.rsplit(".", 1)[-1] for each in sorted(known)), "the windowing attribute")
    return mistake(
        key,
        f"{name} goes by the time of rows, or by its own values",
        "bad-aggregate",
        f"write ORDER BY {time} or ORDER BY {value}; the {value} of the least {by} is MIN_BY({value}, {by})",
    )


def _sorted(plain: Apply, descending: bool) -> Apply:
    """The array of the values in their order, or these joined; over no values a text is NULL."""
    values = replace(plain, function="array_agg", args=plain.args[:1])
    ascending = Constant(plain.span, not descending, "BOOLEAN")
    ordered = Apply(plain.span, "sort_array", (values, ascending))
    if plain.function in ("array_agg", "collect_list"):
        return ordered
    separator = plain.args[1] if len(plain.args) > 1 else Constant(plain.span, ",", "STRING")
    there = Apply(
        plain.span, ">", (Apply(plain.span, "size", (values,)), Constant(plain.span, "0", "NUMBER"))
    )
    return Apply(plain.span, "case", (there, Apply(plain.span, "array_join", (ordered, separator))))


def _widened(args: tuple[Expression, ...], takes: aggregates.Types | None) -> tuple[Expression, ...]:
    """The arguments as an aggregate takes them, where no digit is lost; it refuses the others itself."""
    if takes is None or len(takes) != len(args):
        return args
    pairs = zip(args, takes, strict=True)
    return tuple(cast(arg, kind) if common_type(arg.type, kind) == kind else arg for arg, kind in pairs)


def _arguments(
    node: Apply, kind: type[aggregates.AggregateFunction]
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The arguments, and the constant parameters behind them."""
    constants = len(kind.parameters)
    name = node.function.upper()
    qualified = next((arg for arg in node.args if isinstance(arg, Star) and arg.qualifier), None)
    if qualified is not None:
        hint = "COUNT(*) counts rows, COUNT(x) those in which x is not NULL"
        refuse(qualified, f"{name} cannot take `{qualified.qualifier}.*`", "bad-aggregate", hint)
    if any(isinstance(arg, Star) for arg in node.args):
        first, *others = node.args
        counts = issubclass(kind, Count) and isinstance(first, Star) and not node.distinct
        if not counts or len(others) > len(kind.options):
            refuse(node, f"{name} cannot take `*` here", "bad-aggregate", "only COUNT(*) does; name a column")
        return (), tuple(others)
    if constants and len(node.args) <= constants:
        hint = f"for example {name}(x, {'0.95' if kind.parameters == ('fraction',) else '5'})"
        refuse(node, f"{name} takes a value and then a constant", "bad-aggregate", hint)
    if not node.args:
        refuse(node, f"{name} of nothing", "bad-aggregate", "COUNT(*) counts rows; others take a value")
    split = max(1, kind.arity[0]) if kind.options else len(node.args) - constants
    return node.args[:split], node.args[split:]


def _constant(call: Apply, node: Node, scope: Scope) -> Any:
    bound = ExpressionBinder(scope, "an aggregate").bind(node)
    if not isinstance(bound, Literal):
        which = "last" if node is call.args[-1] else "second"
        message = f"the {which} argument of {call.function.upper()} must be a constant"
        refuse(node, message, "not-constant", "write the number itself")
    return bound.value
