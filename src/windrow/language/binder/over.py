"""OVER in a select list, and QUALIFY: numbers within partitions, and aggregates of the rows before each row.

Both are computed above FROM … WHERE; numbers also above groups and HAVING. QUALIFY filters by them, below
DISTINCT. Equal calls are one. What is the same for all rows of an answer, as the bounds of its window, parts
nothing.

An aggregate OVER without an order is about all rows of the partition that the windows hold: the rows are
joined with the groups of the same rows.

LAG is the first of one row so far back, and ROW_NUMBER in the order of a stream without a window counts the
rows up to each: both are frames, whose answers never change.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from windrow.algebra import aggregates
from windrow.algebra.estimates import settled, with_lists
from windrow.algebra.expressions import ColumnRef, Expression, Literal, conjunction
from windrow.algebra.functions import call as function_call
from windrow.algebra.functions import catalogue
from windrow.algebra.operators import KINDS, Aggregate, AggregateCall, Join, Rank
from windrow.algebra.over import FramedCall, Over, OverFrame, instant_columns, is_over_stream
from windrow.algebra.types import BIGINT
from windrow.language.binder.aggregates import bound_call
from windrow.language.binder.constants import whole_number
from windrow.language.binder.names import describe
from windrow.language.binder.places import at, refuse
from windrow.language.binder.sources import equal_or_null, renamed
from windrow.language.syntax import Apply, Name, Star
from windrow.language.syntax import OverCall as Written

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.algebra.plan import Plan
    from windrow.language.binder.scope import Scope
    from windrow.language.syntax import FrameSyntax, Node
    from windrow.windows.units import Quantity

_Rank = tuple[str, tuple[Expression, ...], tuple[tuple[Expression, bool], ...]]
_SO_FAR = OverFrame(by_rows=True, start=None)
#: what the groups beside the rows are called, before their number
WHOLE = "whole"


class Overs:
    """What one SELECT asks for with OVER. `rows` is what it is about, None if that are groups."""

    def __init__(self, rows: Plan | None, scope: Scope) -> None:
        self.rows = rows
        self.scope = scope
        self.ranks: dict[_Rank, str] = {}
        self.frames: dict[FramedCall, str] = {}
        self.wholes: dict[tuple[Expression, ...], dict[AggregateCall, str]] = {}
        self.order: Expression | None = None
        self.nodes: list[Written] = []

    def column(self, node: Written, bind: Callable[[Node], Expression]) -> Expression:
        """What a call stands for."""
        self.nodes.append(node)
        partition = tuple(value for part in node.partition if (value := bind(part)).columns)
        order = tuple((bind(key), descending) for key, descending in node.order)
        if node.function in KINDS and not self._is_append_only(node, order):
            return self._rank(node, partition, order)
        if self.rows is None:
            refuse(
                node,
                f"{node.function} OVER is about rows, and this SELECT is about groups",
                "bad-over",
                "group in a nested query under [UNBOUNDED], and write OVER around it",
            )
        if not order and node.frame is None and not is_over_stream(self.rows) and _is_whole(node):
            return self._whole(node, partition)
        return self._framed(node, partition, self._in_order(node, order))

    def over(self, plan: Plan) -> Plan:
        """The plan with all that was asked for."""
        for node in self.nodes[:1]:
            with at(node):
                rows = plan
                for number, (keys, asked) in enumerate(self.wholes.items(), 1):
                    plan = _beside_groups(plan, rows, f"{WHOLE} {number}", keys, asked)
                if self.frames:
                    assert self.order is not None
                    calls = tuple((name, framed) for framed, name in self.frames.items())
                    plan = Over(plan, self.order, calls)
                for (kind, partition, order), name in self.ranks.items():
                    plan = Rank(plan, name, kind, partition, order)
        return plan

    # All rows of a partition.

    def _whole(self, node: Written, partition: tuple[Expression, ...]) -> Expression:
        assert self.rows is not None
        if node.call.order or node.ignores_null:
            hint = f"leave it out, or write {node.function} OVER (ORDER BY …)"
            refuse(node, f"{node.function} OVER takes no order of its own", "bad-over", hint)
        found = with_lists(self.rows, bound_call(node.call, self.scope))
        call = settled(self.rows, [("", found)])[0][1]
        calls = self.wholes.setdefault(partition, {})
        name = calls.setdefault(call, f"{node.function.lower()} {len(calls) + 1}")
        return ColumnRef(f"{WHOLE} {list(self.wholes).index(partition) + 1}.{name}", call.data_type)

    # Numbers.

    def _rank(
        self,
        node: Written,
        partition: tuple[Expression, ...],
        order: tuple[tuple[Expression, bool], ...],
    ) -> Expression:
        name = node.function
        if node.call.args or node.call.distinct or node.call.where is not None or node.ignores_null:
            refuse(node, f"{name} takes no arguments", "bad-over", f"write {name}() OVER (ORDER BY …)")
        if not order:
            hint = f"write {name}() OVER ({_apart(node)}ORDER BY {self._another_column(node)})"
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
        return ColumnRef(found, BIGINT)

    def _another_column(self, node: Written) -> str:
        """A column that does not part the rows, to show an order by."""
        parted = {part.parts[-1].lower() for part in node.partition if isinstance(part, Name)}
        names = [entry.name for entry in self.scope.entries if entry.name.lower() not in parted]
        return f"{names[-1]} DESC" if names else "…"

    def _is_append_only(self, node: Written, order: tuple[tuple[Expression, bool], ...]) -> bool:
        """Whether the numbers of rows stay as they are when others come."""
        if node.function != "ROW_NUMBER" or self.rows is None or len(order) != 1 or order[0][1]:
            return False
        key = order[0][0]
        named = isinstance(key, ColumnRef) and key.name in instant_columns(self.rows)
        return named and is_over_stream(self.rows) and node.frame is None and not node.call.args

    # Frames.

    def _in_order(self, node: Written, order: tuple[tuple[Expression, bool], ...]) -> Expression:
        assert self.rows is not None
        known = sorted(name.rsplit(".", 1)[-1] for name in instant_columns(self.rows))
        hint = f"write ORDER BY {known[0]}" if known else "order by the windowing attribute of the stream"
        if not order:
            message = f"{node.function} OVER does not say by which order rows come before a row"
            source = self.scope.sources[0] if self.scope.sources else "s"
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
            Over(self.rows, key, ())
        self.order = key
        return key

    def _framed(self, node: Written, partition: tuple[Expression, ...], order: Expression) -> Expression:
        if node.function == "LAG":
            return self._lag(node, partition)
        if node.function == "ROW_NUMBER":
            counted = replace(node, call=Apply(node.span, "count", (Star(node.span),)))
            return self._call(counted, partition, _SO_FAR)
        if not aggregates.is_aggregate(node.call.function):
            refuse(node, f"{node.function} cannot stand before OVER", "bad-over", _meant(node.function))
        if node.call.order:
            hint = f"leave it out: OVER (… ORDER BY {describe(node.order[0][0])}) says the order"
            refuse(node.call.order[0][0], f"{node.function} OVER takes no ORDER BY inside", "bad-over", hint)
        if node.ignores_null:
            node = replace(node, call=_without_null(node))
        return self._call(node, partition, self._frame(node.frame))

    def _call(self, node: Written, partition: tuple[Expression, ...], frame: OverFrame) -> ColumnRef:
        assert self.rows is not None
        found = with_lists(self.rows, bound_call(node.call, self.scope))
        return self._value(settled(self.rows, [("", found)])[0][1], partition, frame, node)

    def _value(
        self, call: AggregateCall, partition: tuple[Expression, ...], frame: OverFrame, node: Written
    ) -> ColumnRef:
        name = f"{node.function.lower()} {len(self.frames) + len(self.ranks) + 1}"
        found = self.frames.setdefault(FramedCall(call, partition, frame), name)
        return ColumnRef(found, call.data_type)

    def _lag(self, node: Written, partition: tuple[Expression, ...]) -> Expression:
        """The value so many rows before; the default where there is no such row."""
        written = node.call
        if not 1 <= len(written.args) <= 3 or written.distinct or written.where is not None:
            refuse(
                node, "LAG takes a value, how many rows back, and a default", "bad-over", "write LAG(x, 1)"
            )
        if node.frame is not None:
            refuse(node.frame, "LAG is about one row and has no frame", "bad-over", "leave the frame out")
        back = whole_number(written.args[1]) if len(written.args) > 1 else 1
        if back is None or back < 0:
            refuse(written.args[1], "LAG looks back a whole number of rows", "bad-over", "write LAG(x, 1)")
        one = OverFrame(by_rows=True, start=back, stop=back)
        what, counted = Apply(written.span, "first", written.args[:1]), Apply(written.span, "count", ())
        if node.ignores_null:
            if back != 1:
                hint = f"write LAG({describe(written.args[0])}) IGNORE NULLS: the last value that is there"
                refuse(written.args[1], "LAG … IGNORE NULLS looks back to one value", "bad-over", hint)
            one = OverFrame(by_rows=True, start=None, stop=1)
            there = Apply(written.span, "is_not_null", written.args[:1])
            what = Apply(written.span, "last", written.args[:1], where=there)
            counted = Apply(written.span, "count", written.args[:1])
        value = self._call(replace(node, call=what), partition, one)
        if len(written.args) < 3:
            return value
        rows = (
            self._call(replace(node, call=counted), partition, one)
            if node.ignores_null
            else self._value(AggregateCall("count", (), BIGINT), partition, one, node)
        )
        default = bound_call(Apply(written.span, "first", written.args[2:]), self.scope).args[0]
        with at(written.args[2]):
            return function_call("if", [function_call("=", [rows, Literal(0, BIGINT)]), default, value])

    def _frame(self, written: FrameSyntax | None) -> OverFrame:
        if written is None:
            return OverFrame(by_rows=False, start=None)
        with at(written):
            start = None if written.start is None else self._amount(written, written.start)
            stop = self._amount(written, written.stop)
        if start is not None and stop > start:
            refuse(
                written, "this frame ends before it starts", "bad-over", "the greater distance comes first"
            )
        return OverFrame(written.by_rows, start, stop)

    def _amount(self, written: FrameSyntax, amount: Quantity) -> int:
        assert self.rows is not None
        if amount.value == 0 and amount.unit is None:
            return 0
        found = amount.count() if written.by_rows else amount.ticks(self.rows.leaves[0].domain)
        if found < 0:
            refuse(written, f"{amount} is no distance", "bad-over", "write a number that is not negative")
        return found


def _is_whole(node: Written) -> bool:
    return aggregates.is_aggregate(node.call.function) and node.function not in KINDS


def _apart(node: Written) -> str:
    """The PARTITION BY of a call, as it is written, with a blank behind it."""
    keys = ", ".join(part.span.quoted for part in node.partition)
    return f"PARTITION BY {keys} " if keys else ""


def _beside_groups(
    plan: Plan, rows: Plan, alias: str, partition: tuple[Expression, ...], calls: dict[AggregateCall, str]
) -> Plan:
    """The rows with what is true of their groups; every row has one, also where a key is NULL."""
    keys = tuple((f"key {number}", key) for number, key in enumerate(partition, 1))
    groups = renamed(Aggregate(rows, keys, tuple((name, call) for call, name in calls.items())), alias)
    pairs = ((key, groups.schema.column(f"{alias}.{name}")) for name, key in keys)
    same = tuple(part for key, column in pairs for part in equal_or_null(key, column))
    return Join((plan, groups), conjunction(same))


def _without_null(node: Written) -> Apply:
    """The call, of rows in which its value is not NULL."""
    call = node.call
    if node.function not in ("FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE") or len(call.args) != 1:
        refuse(
            node,
            f"{node.function} has no IGNORE NULLS",
            "bad-over",
            "FIRST_VALUE and LAST_VALUE have; other aggregates leave NULL out anyway",
        )
    there = Apply(call.span, "is_not_null", call.args)
    where = there if call.where is None else Apply(call.span, "and", (call.where, there))
    return replace(call, where=where)


def _meant(name: str) -> str:
    """What may have been meant by a name that cannot stand before OVER, unless it is another function's."""
    others = ("LAG", *KINDS)
    is_function = any(name.lower() in (each.name, *each.aliases) for each in catalogue())
    close = [] if is_function else get_close_matches(name, [*aggregates.names(), *others], n=1)
    if close:
        return f"did you mean `{close[0]}`?"
    return f"aggregates, {', '.join(others[:-1])} and {others[-1]} can"
