"""Move conditions down, as far as rows can be dropped early: into join inputs and below windows.

A condition commutes with a window in which each row's own values say when it is valid (paper 001,
section 5). Where rows are counted or linked (ROWS, SESSION, slide-by-tuple) it would change which rows
are there, unless it reads PARTITION BY columns only and so drops whole partitions.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.expressions import Field, Literal
>>> from windrow.algebra.types import BIGINT
>>> s = Scan(Stream("s", Schema((Field("a", BIGINT), Field("ts", BIGINT))), "ts"), "s")
>>> large = call(">", [s.schema.column("s.a"), Literal(5, BIGINT)])
>>> pushed = push_filters(Emit(ops.Filter(Window(s, RangeWindow(10)), large)))
>>> pushed == Emit(Window(ops.Filter(s, large), RangeWindow(10)))
True

One thing besides the rows can be seen of a window: at the end of bounded input a periodic query that
repeats its whole answer, or has it anew for each report, does so up to the last endpoint of any row. Where
answers outlive the last endpoint (LANDMARK, ROWS) a row dropped too early would end them too early; see
`_Placing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import singledispatchmethod

from windrow.algebra import Emit, Plan, Scan, StreamWord, Subquery, Window, operators as ops
from windrow.algebra.expressions import Expression, Schema, conjunction, conjuncts, substituted
from windrow.optimizer.trees import as_query, filtered, is_movable, renamed, respects_grouping
from windrow.windows import OwnInterval, RangeWindow

Parts = tuple[Expression, ...]


def push_filters(plan: Plan) -> Plan:
    """The query with every condition as far down as it may go; nested queries included."""
    return _placed(as_query(plan), ())


def _placed(emit: Emit, parts: Parts) -> Emit:
    return replace(emit, input=_Placing(emit).place(emit.input, parts))


class _Placing:
    """Conditions on their way down one query. All that travel `is_movable`."""

    def __init__(self, emit: Emit) -> None:
        # each extent of a periodic query over INTERNAL windows adds its results, whatever the word; an answer
        # that has the bounds of its window is another one at each report
        is_new = emit.is_internal or emit.reads_window_bounds
        whole = emit.is_periodic and (emit.meaning is StreamWord.RSTREAM or is_new)
        #: an extent of counted rows is reported by itself, and only once
        self.by_report = emit.meaning is StreamWord.RSTREAM and len(emit.leaves) == 1 and not emit.is_internal
        #: no answer is there to be repeated after the last endpoint
        self.ends = not whole or (
            not emit.is_internal and all(isinstance(leaf.spec, RangeWindow) for leaf in emit.leaves)
        )

    @singledispatchmethod
    def place(self, plan: Plan, parts: Parts) -> Plan:
        """The plan with these conditions on its rows, in it or above it."""
        below = tuple(self.place(child, ()) for child in plan.children)
        return filtered(plan.with_children(below), parts)

    @place.register
    def _(self, plan: ops.Filter, parts: Parts) -> Plan:
        going, staying = _split(conjuncts(plan.predicate), is_movable)
        return filtered(self.place(plan.input, (*going, *parts)), staying)

    @place.register
    def _(self, plan: ops.Project, parts: Parts) -> Plan:
        values = dict(plan.outputs)
        going, staying = _split(parts, lambda part: is_movable(substituted(part, values)))
        below = self.place(plan.input, tuple(substituted(part, values) for part in going))
        return filtered(replace(plan, input=below), staying)

    @place.register
    def _(self, plan: ops.Unnest, parts: Parts) -> Plan:
        """What is not about elements is asked before."""
        going, staying = _split(parts, lambda part: _reads_only(part, plan.input.schema))
        return filtered(replace(plan, input=self.place(plan.input, going)), staying)

    @place.register
    def _(self, plan: ops.Union, parts: Parts) -> Plan:
        inputs = (self.place(part, _renamed(parts, plan.schema, part.schema)) for part in plan.inputs)
        return replace(plan, inputs=tuple(inputs))

    @place.register
    def _(self, plan: ops.Distinct, parts: Parts) -> Plan:
        going, staying = _split(parts, respects_grouping)
        return filtered(ops.Distinct(self.place(plan.input, going)), staying)

    @place.register
    def _(self, plan: ops.Except, parts: Parts) -> Plan:
        going, staying = _split(parts, respects_grouping)
        right = self.place(plan.right, _renamed(going, plan.left.schema, plan.right.schema))
        return filtered(ops.Except(self.place(plan.left, going), right), staying)

    @place.register
    def _(self, plan: ops.Aggregate, parts: Parts) -> Plan:
        """HAVING on keys is WHERE."""
        keys = dict(plan.keys)

        def is_on_keys(part: Expression) -> bool:
            reads_keys = bool(part.columns) and part.columns <= keys.keys()
            return reads_keys and is_movable(substituted(part, keys)) and respects_grouping(part)

        going, staying = _split(parts, is_on_keys)
        below = self.place(plan.input, tuple(substituted(part, keys) for part in going))
        return filtered(replace(plan, input=below), staying)

    @place.register
    def _(self, plan: ops.Join, parts: Parts) -> Plan:
        """Conditions on one input go into it; others join. What can fail is tested last."""
        known, fragile = _split(conjuncts(plan.predicate), is_movable)
        known = tuple(dict.fromkeys((*known, *parts)))
        inputs = tuple(self.place(part, _within(known, part.schema)) for part in plan.inputs)
        between = (part for part in known if not any(_reads_only(part, each.schema) for each in plan.inputs))
        return replace(plan, inputs=inputs, predicate=conjunction((*between, *fragile)))

    @place.register
    def _(self, plan: ops.TableJoin, parts: Parts) -> Plan:
        """Of an outer join only what is asked of its rows goes below; its own condition pads and stays."""
        if plan.outer:
            going, staying = _split(parts, lambda part: _reads_only(part, plan.input.schema))
            return filtered(replace(plan, input=self.place(plan.input, going)), staying)
        known, fragile = _split(conjuncts(plan.predicate), is_movable)
        known = tuple(dict.fromkeys((*known, *parts)))
        going, between = _split(known, lambda part: _reads_only(part, plan.input.schema))
        below = self.place(plan.input, going)
        return replace(plan, input=below, predicate=conjunction((*between, *fragile)))

    @place.register
    def _(self, plan: ops.Exists, parts: Parts) -> Plan:
        """What is asked of the right side only is asked there; of the left only, if a match is wanted."""
        known, fragile = _split(conjuncts(plan.predicate), is_movable)
        on_right, known = _split(known, lambda part: _reads_only(part, plan.right.schema))
        on_left, between = _split(known, lambda part: _reads_only(part, plan.left.schema))
        if plan.negated:
            on_left, between = (), known
        left, right = self.place(plan.left, (*parts, *on_left)), self.place(plan.right, on_right)
        return replace(plan, left=left, right=right, predicate=conjunction((*between, *fragile)))

    @place.register
    def _(self, plan: Window, parts: Parts) -> Plan:
        going, staying = _split(parts, lambda part: self._commutes(plan, part))
        return filtered(replace(plan, input=self.place(plan.input, going)), staying)

    def _commutes(self, window: Window, part: Expression) -> bool:
        if isinstance(window.spec, OwnInterval):
            return self.ends
        partition = {f"{window.origins[0].alias}.{name}" for name in getattr(window.spec, "partition_by", ())}
        whole = bool(part.columns) and part.columns <= partition and respects_grouping(part)
        return whole and (self.ends or (self.by_report and window.spec.reports_positions))

    @place.register
    def _(self, plan: Subquery, parts: Parts) -> Plan:
        """Into the nested query, unless it repeats its whole answer whenever any row of it changes."""
        together = plan.query.meaning is StreamWord.RSTREAM and not plan.query.reports_extents
        inside = () if together else _renamed(parts, plan.schema, plan.query.schema)
        return filtered(replace(plan, query=_placed(plan.query, inside)), parts if together else ())

    @place.register
    def _(self, plan: Scan, parts: Parts) -> Plan:
        return filtered(plan, parts)


def _split(parts: Iterable[Expression], holds: Callable[[Expression], bool]) -> tuple[Parts, Parts]:
    everything = tuple(parts)
    return tuple(p for p in everything if holds(p)), tuple(p for p in everything if not holds(p))


def _renamed(parts: Parts, source: Schema, target: Schema) -> Parts:
    return tuple(renamed(part, source, target) for part in parts)


def _reads_only(part: Expression, schema: Schema) -> bool:
    return bool(part.columns) and part.columns <= frozenset(schema.names)


def _within(parts: Parts, schema: Schema) -> Parts:
    return tuple(part for part in parts if _reads_only(part, schema))
