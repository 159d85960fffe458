"""Groups: the keys of GROUP BY, the aggregate calls, and expressions over both.

An expression about groups reads keys and aggregates only. Whatever part of it equals a key is that key;
whatever is an aggregate call becomes a column of the γ below, one column for equal calls. `window_start`
and `window_end` are the same for all rows of an extent, so as keys they change nothing.

OVER in a select list, and QUALIFY: numbers within partitions, and aggregates of the rows before each row.

Both are computed above FROM … WHERE; numbers also above groups and HAVING. QUALIFY filters by them, below
DISTINCT. Equal calls are one. What is the same for all rows of an answer, as the bounds of its window, parts
nothing.

An aggregate OVER without an order is about all rows of the partition that the windows hold: the rows are
joined with the groups of the same rows.

LAG is the first of one row so far back, and ROW_NUMBER in the order of a stream without a window counts the
rows up to each: both are frames, whose answers never change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from windrow.algebra import Plan, aggregates, checks, estimates, operators as ops, types
from windrow.algebra.aggregates.count import Count
from windrow.algebra.expressions import TRUE, ColumnRef, Expression, Literal, WindowBound, cast, conjunction
from windrow.algebra.functions import call as function_call, catalogue
from windrow.algebra.functions.sql_text import to_sql
from windrow.errors import QueryError
from windrow.language import syntax
from windrow.language.binder import constants, context, names, select_list, sources
from windrow.language.binder.expressions import ExpressionBinder, has_aggregate, is_bound
from windrow.language.binder.scope import Scope
from windrow.language.tokens import at, mistake, refuse
from windrow.windows.domain import Quantity

# ------------------------------------------------------------ GROUP BY


def is_grouped(select: syntax.Select, of_items: bool = True) -> bool:
    """Whether a SELECT is about groups; `of_items` says whether its select list counts."""
    if select.group_by or select.having is not None:
        return True
    written = [item.expression for item in select.items] + [key for key, _ in select.order_by]
    return of_items and any(has_aggregate(node) for node in written)


def group_rows(select: syntax.Select, plan: Plan, scope: Scope) -> Plan:
    """GROUP BY and HAVING alone, for a query whose select list does not matter."""
    groups = Groups(select, plan, scope, select_list.SelectList())
    having = groups.having(select)
    return groups.plan(having)


class Groups(ExpressionBinder):
    """Binds expressions about groups, and collects what the γ below them must compute."""

    def __init__(
        self, select: syntax.Select, rows: Plan, scope: Scope, outputs: select_list.SelectList
    ) -> None:
        super().__init__(scope, "the select list", context.bounds_over(rows))
        self.rows = rows
        self.outputs = outputs
        self.keys: dict[Expression, str] = {}
        self.calls: dict[ops.AggregateCall, str] = {}
        for key in select.group_by:
            self._add_key(outputs.dereferenced(key, columns_win=scope))
        # Of windows moved by rows, or partitioned, WID's queries group by what they select without saying so.
        clauses = [source.window.clause for source in select.sources if source.window is not None]
        by_rows = any(c.partition_by or c.sattr or (c.slide is not None and c.slide.in_rows) for c in clauses)
        if not select.group_by and by_rows:
            for item in select.items:
                if isinstance(node := self._hyphenated(item.expression), syntax.Name) and not is_bound(node):
                    self._add_key(node)

    def having(self, select: syntax.Select) -> Expression | None:
        if select.having is None:
            return None
        self.clause = "HAVING"
        overs, self.overs = self.overs, None
        having = self.condition(self.outputs.without_aliases(select.having, columns_win=self.scope))
        self.overs = overs
        return having

    def plan(self, having: Expression | None) -> Plan:
        keys = tuple((name, key) for key, name in self.keys.items())
        calls = estimates.settled(self.rows, [(name, call) for call, name in self.calls.items()])
        grouped = ops.Aggregate(self.rows, keys, calls)
        return ops.Filter(grouped, having) if having is not None and having != TRUE else grouped

    def bind(self, node: syntax.Node) -> Expression:
        return self._as_key(node) or super().bind(node)

    def name(self, node: syntax.Name) -> Expression:
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

    def aggregate(self, node: syntax.Apply) -> Expression:
        if node.order:
            return self.bind(in_written_order(node, self.rows, self.scope))
        call = estimates.with_lists(self.rows, bound_call(node, self.scope))
        checks.order_is_known(self.rows, call)
        with at(node):
            checks.sub_windows_are_known(self.rows, call)
        name = self.calls.setdefault(call, self._free(names.call_sql(call, str)))
        return ColumnRef(name, call.data_type)

    def _add_key(self, node: syntax.Node) -> None:
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

    def _as_key(self, node: syntax.Node) -> Expression | None:
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


def bound_call(node: syntax.Apply, scope: Scope) -> ops.AggregateCall:
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
    return ops.AggregateCall(plain.function, args, bound.result, plain.params, distinct, where)


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


def in_written_order(node: syntax.Apply, rows: Plan, scope: Scope) -> syntax.Apply:
    """An aggregate with ORDER BY inside, by one without: by time it goes anyhow, by values it is sorted."""
    plain, (key, descending) = replace(node, order=()), node.order[0]
    if node.function not in (*_LISTS, *_BACKWARDS):
        name = node.function.upper()
        refuse(key, f"{name} does not depend on an order", "bad-aggregate", "leave ORDER BY out")
    known = ops.instant_columns(rows)
    bound = ExpressionBinder(scope, "ORDER BY").bind(key)
    alone = len(node.order) == 1
    if alone and isinstance(bound, ColumnRef) and bound.name in known and not node.distinct:
        if node.function in _BACKWARDS:
            return replace(plain, function=_BACKWARDS[node.function]) if descending else plain
        if not descending:
            return plain
    if (
        alone
        and node.args
        and syntax.meaning(key) == syntax.meaning(node.args[0])
        and node.function in _LISTS
    ):
        return _sorted(plain, descending)
    raise _other_order(node, known)


def _other_order(node: syntax.Apply, known: frozenset[str]) -> QueryError:
    name, key = node.function.upper(), node.order[0][0]
    value, by = names.describe(node.args[0]) if node.args else "x", names.describe(key)
    time = next((each.rsplit(".", 1)[-1] for each in sorted(known)), "the windowing attribute")
    return mistake(
        key,
        f"{name} goes by the time of rows, or by its own values",
        "bad-aggregate",
        f"write ORDER BY {time} or ORDER BY {value}; the {value} of the least {by} is MIN_BY({value}, {by})",
    )


def _sorted(plain: syntax.Apply, descending: bool) -> syntax.Apply:
    """The array of the values in their order, or these joined; over no values a text is NULL."""
    values = replace(plain, function="array_agg", args=plain.args[:1])
    ascending = syntax.Constant(plain.span, not descending, "BOOLEAN")
    ordered = syntax.Apply(plain.span, "sort_array", (values, ascending))
    if plain.function in ("array_agg", "collect_list"):
        return ordered
    separator = plain.args[1] if len(plain.args) > 1 else syntax.Constant(plain.span, ",", "STRING")
    there = syntax.Apply(
        plain.span,
        ">",
        (syntax.Apply(plain.span, "size", (values,)), syntax.Constant(plain.span, "0", "NUMBER")),
    )
    return syntax.Apply(
        plain.span, "case", (there, syntax.Apply(plain.span, "array_join", (ordered, separator)))
    )


def _widened(args: tuple[Expression, ...], takes: aggregates.Types | None) -> tuple[Expression, ...]:
    """The arguments as an aggregate takes them, where no digit is lost; it refuses the others itself."""
    if takes is None or len(takes) != len(args):
        return args
    pairs = zip(args, takes, strict=True)
    return tuple(cast(arg, kind) if types.common_type(arg.type, kind) == kind else arg for arg, kind in pairs)


def _arguments(
    node: syntax.Apply, kind: type[aggregates.AggregateFunction]
) -> tuple[tuple[syntax.Node, ...], tuple[syntax.Node, ...]]:
    """The arguments, and the constant parameters behind them."""
    constants = len(kind.parameters)
    name = node.function.upper()
    qualified = next((arg for arg in node.args if isinstance(arg, syntax.Star) and arg.qualifier), None)
    if qualified is not None:
        hint = "COUNT(*) counts rows, COUNT(x) those in which x is not NULL"
        refuse(qualified, f"{name} cannot take `{qualified.qualifier}.*`", "bad-aggregate", hint)
    if any(isinstance(arg, syntax.Star) for arg in node.args):
        first, *others = node.args
        counts = issubclass(kind, Count) and isinstance(first, syntax.Star) and not node.distinct
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


def _constant(call: syntax.Apply, node: syntax.Node, scope: Scope) -> Any:
    bound = ExpressionBinder(scope, "an aggregate").bind(node)
    if not isinstance(bound, Literal):
        which = "last" if node is call.args[-1] else "second"
        message = f"the {which} argument of {call.function.upper()} must be a constant"
        refuse(node, message, "not-constant", "write the number itself")
    return bound.value


# ------------------------------------------------------------ OVER


_Rank = tuple[str, tuple[Expression, ...], tuple[tuple[Expression, bool], ...]]
_SO_FAR = ops.OverFrame(by_rows=True, start=None)
#: what the groups beside the rows are called, before their number
WHOLE = "whole"


class Overs:
    """What one SELECT asks for with OVER. `rows` is what it is about, None if that are groups."""

    def __init__(self, rows: Plan | None, scope: Scope) -> None:
        self.rows = rows
        self.scope = scope
        self.ranks: dict[_Rank, str] = {}
        self.frames: dict[ops.FramedCall, str] = {}
        self.wholes: dict[tuple[Expression, ...], dict[ops.AggregateCall, str]] = {}
        self.order: Expression | None = None
        self.nodes: list[syntax.OverCall] = []

    def column(self, node: syntax.OverCall, bind: Callable[[syntax.Node], Expression]) -> Expression:
        self.nodes.append(node)
        partition = tuple(value for part in node.partition if (value := bind(part)).columns)
        order = tuple((bind(key), descending) for key, descending in node.order)
        if node.function in ops.KINDS and not self._is_append_only(node, order):
            return self._rank(node, partition, order)
        if self.rows is None:
            refuse(
                node,
                f"{node.function} OVER is about rows, and this SELECT is about groups",
                "bad-over",
                "group in a nested query under [UNBOUNDED], and write OVER around it",
            )
        is_aggregate = aggregates.is_aggregate(node.call.function) and node.function not in ops.KINDS
        if is_aggregate and not order and node.frame is None and not ops.is_over_stream(self.rows):
            return self._whole(node, partition)
        return self._framed(node, partition, self._in_order(node, order))

    def over(self, plan: Plan) -> Plan:
        for node in self.nodes[:1]:
            with at(node):
                rows = plan
                for number, (keys, asked) in enumerate(self.wholes.items(), 1):
                    plan = _beside_groups(plan, rows, f"{WHOLE} {number}", keys, asked)
                if self.frames:
                    assert self.order is not None
                    calls = tuple((name, framed) for framed, name in self.frames.items())
                    plan = ops.Over(plan, self.order, calls)
                for (kind, partition, order), name in self.ranks.items():
                    plan = ops.Rank(plan, name, kind, partition, order)
        return plan

    # All rows of a partition.

    def _whole(self, node: syntax.OverCall, partition: tuple[Expression, ...]) -> Expression:
        if node.call.order or node.ignores_null:
            hint = f"leave it out, or write {node.function} OVER (ORDER BY …)"
            refuse(node, f"{node.function} OVER takes no order of its own", "bad-over", hint)
        call = self._settled(node)
        calls = self.wholes.setdefault(partition, {})
        name = calls.setdefault(call, f"{node.function.lower()} {len(calls) + 1}")
        return ColumnRef(f"{WHOLE} {list(self.wholes).index(partition) + 1}.{name}", call.data_type)

    # Numbers.

    def _rank(
        self,
        node: syntax.OverCall,
        partition: tuple[Expression, ...],
        order: tuple[tuple[Expression, bool], ...],
    ) -> Expression:
        name = node.function
        if node.call.args or node.call.distinct or node.call.where is not None or node.ignores_null:
            refuse(node, f"{name} takes no arguments", "bad-over", f"write {name}() OVER (ORDER BY …)")
        if not order:
            parted = {part.parts[-1].lower() for part in node.partition if isinstance(part, syntax.Name)}
            others = [entry.name for entry in self.scope.entries if entry.name.lower() not in parted]
            by = f"{others[-1]} DESC" if others else "…"
            hint = f"write {name}() OVER ({_apart(node)}ORDER BY {by})"
            refuse(node, f"{name} does not say by which order", "bad-over", hint)
        if node.frame is not None:
            refuse(
                node.frame,
                f"{name} numbers all rows and has no frame",
                "bad-over",
                "leave ROWS and RANGE out",
            )
        found = self.ranks.setdefault(
            (name, partition, order), f"{name.lower()} {len(self.ranks) + len(self.frames) + 1}"
        )
        return ColumnRef(found, types.BIGINT)

    def _is_append_only(self, node: syntax.OverCall, order: tuple[tuple[Expression, bool], ...]) -> bool:
        """Whether the numbers of rows stay as they are when others come."""
        if node.function != "ROW_NUMBER" or self.rows is None or len(order) != 1 or order[0][1]:
            return False
        key = order[0][0]
        named = isinstance(key, ColumnRef) and key.name in ops.instant_columns(self.rows)
        return named and ops.is_over_stream(self.rows) and node.frame is None and not node.call.args

    # Frames.

    def _in_order(self, node: syntax.OverCall, order: tuple[tuple[Expression, bool], ...]) -> Expression:
        assert self.rows is not None
        known = sorted(name.rsplit(".", 1)[-1] for name in ops.instant_columns(self.rows))
        hint = f"write ORDER BY {known[0]}" if known else "order by the windowing attribute of the stream"
        if not order:
            message = f"{node.function} OVER does not say by which order rows come before a row"
            streams = self.rows.leaves[0].streams
            source = streams[0].name if len(streams) == 1 else "s"
            window = f"for all rows of a window write one: FROM {source} [RANGE 1 MINUTE SLIDE 1 MINUTE]"
            if known:
                hint = f"write {node.call.span.quoted} OVER ({_apart(node)}ORDER BY {known[0]})"
            refuse(node, message, "bad-over", f"{hint}; {window}")
        if len(order) > 1 or order[0][1]:
            message = "a frame goes through rows in the order in which they become final, and by no other"
            refuse(node.order[0][0], message, "bad-over", hint)
        (key, _), (written, _) = order[0], node.order[0]
        if self.order is not None and key != self.order:
            refuse(written, "all frames of a SELECT go by one column", "bad-over", hint)
        with at(written):
            ops.Over(self.rows, key, ())
        self.order = key
        return key

    def _framed(
        self, node: syntax.OverCall, partition: tuple[Expression, ...], order: Expression
    ) -> Expression:
        if node.function == "LAG":
            return self._lag(node, partition)
        if node.function == "ROW_NUMBER":
            counted = replace(node, call=syntax.Apply(node.span, "count", (syntax.Star(node.span),)))
            return self._call(counted, partition, _SO_FAR)
        if not aggregates.is_aggregate(node.call.function):
            refuse(node, f"{node.function} cannot stand before OVER", "bad-over", _meant(node.function))
        if node.call.order:
            hint = f"leave it out: OVER (… ORDER BY {names.describe(node.order[0][0])}) says the order"
            refuse(node.call.order[0][0], f"{node.function} OVER takes no ORDER BY inside", "bad-over", hint)
        if node.ignores_null:
            node = replace(node, call=_without_null(node))
        return self._call(node, partition, self._frame(node.frame))

    def _call(
        self, node: syntax.OverCall, partition: tuple[Expression, ...], frame: ops.OverFrame
    ) -> ColumnRef:
        return self._value(self._settled(node), partition, frame, node)

    def _settled(self, node: syntax.OverCall) -> ops.AggregateCall:
        assert self.rows is not None
        found = estimates.with_lists(self.rows, bound_call(node.call, self.scope))
        return estimates.settled(self.rows, [("", found)])[0][1]

    def _value(
        self,
        call: ops.AggregateCall,
        partition: tuple[Expression, ...],
        frame: ops.OverFrame,
        node: syntax.OverCall,
    ) -> ColumnRef:
        name = f"{node.function.lower()} {len(self.frames) + len(self.ranks) + 1}"
        found = self.frames.setdefault(ops.FramedCall(call, partition, frame), name)
        return ColumnRef(found, call.data_type)

    def _lag(self, node: syntax.OverCall, partition: tuple[Expression, ...]) -> Expression:
        """The value so many rows before; the default where there is no such row."""
        written = node.call
        if not 1 <= len(written.args) <= 3 or written.distinct or written.where is not None:
            refuse(
                node, "LAG takes a value, how many rows back, and a default", "bad-over", "write LAG(x, 1)"
            )
        if node.frame is not None:
            refuse(node.frame, "LAG is about one row and has no frame", "bad-over", "leave the frame out")
        back = constants.whole_number(written.args[1]) if len(written.args) > 1 else 1
        if back is None or back < 0:
            refuse(written.args[1], "LAG looks back a whole number of rows", "bad-over", "write LAG(x, 1)")
        one = ops.OverFrame(by_rows=True, start=back, stop=back)
        what, counted = (
            syntax.Apply(written.span, "first", written.args[:1]),
            syntax.Apply(written.span, "count", ()),
        )
        if node.ignores_null:
            if back != 1:
                hint = (
                    f"write LAG({names.describe(written.args[0])}) IGNORE NULLS: the last value that is there"
                )
                refuse(written.args[1], "LAG … IGNORE NULLS looks back to one value", "bad-over", hint)
            one = ops.OverFrame(by_rows=True, start=None, stop=1)
            there = syntax.Apply(written.span, "is_not_null", written.args[:1])
            what = syntax.Apply(written.span, "last", written.args[:1], where=there)
            counted = syntax.Apply(written.span, "count", written.args[:1])
        value = self._call(replace(node, call=what), partition, one)
        if len(written.args) < 3:
            return value
        rows = (
            self._call(replace(node, call=counted), partition, one)
            if node.ignores_null
            else self._value(ops.AggregateCall("count", (), types.BIGINT), partition, one, node)
        )
        default = bound_call(syntax.Apply(written.span, "first", written.args[2:]), self.scope).args[0]
        with at(written.args[2]):
            return function_call("if", [function_call("=", [rows, Literal(0, types.BIGINT)]), default, value])

    def _frame(self, written: syntax.FrameSyntax | None) -> ops.OverFrame:
        if written is None:
            return ops.OverFrame(by_rows=False, start=None)
        with at(written):
            start = None if written.start is None else self._amount(written, written.start)
            stop = self._amount(written, written.stop)
        if start is not None and stop > start:
            refuse(
                written, "this frame ends before it starts", "bad-over", "the greater distance comes first"
            )
        return ops.OverFrame(written.by_rows, start, stop)

    def _amount(self, written: syntax.FrameSyntax, amount: Quantity) -> int:
        assert self.rows is not None
        if amount.value == 0 and amount.unit is None:
            return 0
        found = amount.count() if written.by_rows else amount.ticks(self.rows.leaves[0].domain)
        if found < 0:
            refuse(written, f"{amount} is no distance", "bad-over", "write a number that is not negative")
        return found


def _apart(node: syntax.OverCall) -> str:
    """The PARTITION BY of a call, as it is written, with a blank behind it."""
    keys = ", ".join(part.span.quoted for part in node.partition)
    return f"PARTITION BY {keys} " if keys else ""


def _beside_groups(
    plan: Plan, rows: Plan, alias: str, partition: tuple[Expression, ...], calls: dict[ops.AggregateCall, str]
) -> Plan:
    """The rows with what is true of their groups; every row has one, also where a key is NULL."""
    keys = tuple((f"key {number}", key) for number, key in enumerate(partition, 1))
    groups = sources.renamed(
        ops.Aggregate(rows, keys, tuple((name, call) for call, name in calls.items())), alias
    )
    pairs = ((key, groups.schema.column(f"{alias}.{name}")) for name, key in keys)
    same = tuple(part for key, column in pairs for part in sources.equal_or_null(key, column))
    return ops.Join((plan, groups), conjunction(same))


def _without_null(node: syntax.OverCall) -> syntax.Apply:
    """The call, of rows in which its value is not NULL."""
    call = node.call
    if node.function not in ("FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE") or len(call.args) != 1:
        refuse(
            node,
            f"{node.function} has no IGNORE NULLS",
            "bad-over",
            "FIRST_VALUE and LAST_VALUE have; other aggregates leave NULL out anyway",
        )
    there = syntax.Apply(call.span, "is_not_null", call.args)
    where = there if call.where is None else syntax.Apply(call.span, "and", (call.where, there))
    return replace(call, where=where)


def _meant(name: str) -> str:
    """What may have been meant by a name that cannot stand before OVER, unless it is another function's."""
    others = ("LAG", *ops.KINDS)
    is_function = any(name.lower() in (each.name, *each.aliases) for each in catalogue())
    close = [] if is_function else get_close_matches(name, [*aggregates.names(), *others], n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"aggregates, {', '.join(others[:-1])} and {others[-1]} can"
