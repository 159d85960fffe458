"""The answer relation at one instant, from scratch: each operator on multisets, by its definition.

Definition 3.1 of Golab's thesis: at each instant a query equals the relational query over the current
states of its windows and tables, and each result sees an NRR table as it was before its own rows came.

APPROX_COUNT and APPROX_SUM by their definition (`windrow.algebra.aggregates.approx_count`), from all rows.

>>> rows = [(t, 1) for t in range(10)]
>>> [estimate(rows, at, length=8, error=0.5) for at in (0, 4, 7, 9, 16, 17)]
[1, 5, 8, 8, 1, None]
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from itertools import product
from typing import Any

from windrow.algebra import Plan, TableScan, Window, catalog, estimates, expressions, operators as ops
from windrow.algebra.aggregates.approx_count import refuse_negative
from windrow.reference import aggregates, scopes
from windrow.reference.expressions import WindowContext, compile_expression
from windrow.reference.rows import Fact, LeafRows, Values, World
from windrow.windows.domain import INFINITY, Instant, sort_key


def estimate(rows: Iterable[tuple[int, int]], at: int, length: int, error: float) -> int | None:
    """The estimate at an instant, from (instant, value) of all rows that ever came; None if none is left."""
    run: list[tuple[int, int]] = []
    for t, value in sorted(rows):
        if value < 0:
            raise refuse_negative(value)
        if t <= at:
            run = [*run, (t, value)] if run and t < run[-1][0] + length else [(t, value)]
    if not run or run[-1][0] + length <= at:
        return None
    last = sum(value for _, value in run)
    gone = sum(value for t, value in run if t + length <= at)
    marked = _marked(last, math.ceil(1 / error) + 1)
    at_least = max(mark for mark in marked if mark <= gone)
    after = [mark for mark in marked if mark > gone]
    at_most = _before_row_of(min(after), run) if after else last
    return last - (at_least + at_most) // 2


def _marked(last: int, most: int) -> set[int]:
    """The first unit, and the greatest `most` multiples of each power of two, none below 0."""
    powers = (1 << level for level in range(last.bit_length() + 1))
    return {0, 1} | {
        number * power
        for power in powers
        for number in range(max(0, last // power - most + 1), last // power + 1)
    }


def _before_row_of(unit: int, run: list[tuple[int, int]]) -> int:
    """How many units come before the row that has this one."""
    before = 0
    for _, value in run:
        if before + value >= unit:
            break
        before += value
    return before


@dataclass(eq=False)
class PlanSnapshot:
    """A plan evaluated at one instant.

    `leaves` are the rows below each window. `instant` picks the window states; `tables_at` is the
    instant at which RELATION tables are read. `states` replaces window states, and `extent` their bounds,
    where an extent is reported by itself; else bounds are those of the windows below whoever reads them.
    """

    leaves: Mapping[Window, LeafRows]
    world: World
    instant: int
    tables_at: Instant
    extent: WindowContext | None = None
    states: Mapping[Window, Sequence[int]] = field(default_factory=dict)

    def bounds(self, plan: Plan) -> WindowContext | None:
        """The bounds of the extent that the windows of a plan show at the instant: all have one period where
        bounds are read. None where they have none."""
        if self.extent is not None or not plan.leaves:
            return self.extent
        spec = plan.leaves[0].spec
        if spec.grid is None:
            return None
        start, end = spec.bounds(scopes.last_slide(spec, self.instant))
        return WindowContext(None if start == -INFINITY else int(start), end)

    def relation(self, plan: Plan) -> Counter[Values]:
        """The multiset of rows of the plan."""
        return Counter(fact.values for fact in self.facts(plan))

    @singledispatchmethod
    def facts(self, plan: Plan) -> list[Fact]:
        """The rows of the plan, one entry per copy."""
        raise TypeError(f"no evaluation is defined for {type(plan).__name__}")

    @facts.register
    def _(self, plan: Window) -> list[Fact]:
        rows = self.leaves[plan]
        inside = self.states.get(plan)
        if inside is None:
            inside = scopes.members(plan.spec, rows.elements, self.instant)
        return [rows.facts[place] for place in inside]

    @facts.register
    def _(self, plan: ops.Filter) -> list[Fact]:
        return [
            fact for fact in self.facts(plan.input) if self._holds(plan.predicate, plan.input, fact.values)
        ]

    @facts.register
    def _(self, plan: ops.Project) -> list[Fact]:
        columns = [self._compiled(expression, plan.input) for _, expression in plan.outputs]
        bounds = self.bounds(plan.input)
        return [
            fact.showing(tuple(column(fact.values, bounds) for column in columns))
            for fact in self.facts(plan.input)
        ]

    @facts.register
    def _(self, plan: ops.Union) -> list[Fact]:
        return [fact for part in plan.inputs for fact in self.facts(part)]

    @facts.register
    def _(self, plan: ops.Distinct) -> list[Fact]:
        values = dict.fromkeys(grouped(fact.values) for fact in self.facts(plan.input))
        return [Fact(value, -INFINITY) for value in values]

    @facts.register
    def _(self, plan: ops.Join) -> list[Fact]:
        return [
            joined
            for parts in product(*(self.facts(part) for part in plan.inputs))
            if self._holds(plan.predicate, plan, (joined := together(parts)).values)
        ]

    @facts.register
    def _(self, plan: ops.TableJoin) -> list[Fact]:
        found = []
        for fact in self.facts(plan.input):
            before = self.tables_at if plan.is_retroactive else fact.ts
            rows = [
                row
                for row in table_rows(self.world, plan.table, before)
                if self._holds(plan.predicate, plan, fact.values + row)
            ]
            if plan.outer and not rows:
                rows = [(None,) * len(plan.table.schema)]
            found += [Fact(fact.values + row, fact.ts, sub_window=fact.sub_window) for row in rows]
        return found

    @facts.register
    def _(self, plan: ops.Except) -> list[Fact]:
        """max(0, k1 - k2) copies; which of equal rows stay is not to be seen."""
        taken = Counter(grouped(fact.values) for fact in self.facts(plan.right))
        left = []
        for fact in self.facts(plan.left):
            if taken[grouped(fact.values)] > 0:
                taken[grouped(fact.values)] -= 1
            else:
                left.append(fact)
        return left

    @facts.register
    def _(self, plan: ops.Exists) -> list[Fact]:
        right = self.facts(plan.right)
        names = plan.left.schema.names + plan.right.schema.names
        test, bounds = compile_expression(plan.predicate, names), self.bounds(plan)
        return [
            fact
            for fact in self.facts(plan.left)
            if any(test(fact.values + other.values, bounds) is True for other in right) != plan.negated
        ]

    @facts.register
    def _(self, plan: ops.Aggregate) -> list[Fact]:
        groups = self._groups(plan)
        known = self._so_far(plan.input)._groups(plan) if any_waved(plan) else groups
        return [
            Fact(group + self.aggregate_row(plan, rows, known[group], self.instant), -INFINITY)
            for group, rows in groups.items()
        ]

    def _groups(self, plan: ops.Aggregate) -> dict[Values, list[Fact]]:
        groups: dict[Values, list[Fact]] = {}
        keys = [self._compiled(key, plan.input) for _, key in plan.keys]
        bounds = self.bounds(plan.input)
        for fact in self.facts(plan.input):
            group = grouped(tuple(key(fact.values, bounds) for key in keys))
            groups.setdefault(group, []).append(fact)
        return groups

    def _so_far(self, rows: Plan) -> PlanSnapshot:
        """The same with windows that forget nothing: what waves are made of."""
        states = {
            leaf: [place for place, row in enumerate(self.leaves[leaf].elements) if row.t <= self.instant]
            for leaf in rows.leaves
        }
        return PlanSnapshot(self.leaves, self.world, self.instant, self.tables_at, self.extent, states)

    def aggregate_row(
        self, plan: ops.Aggregate, rows: Sequence[Fact], so_far: Sequence[Fact] = (), at: Instant = 0
    ) -> Values:
        """The aggregates of one group, its rows in window order; waves go by all rows so far."""
        in_order = sorted(rows, key=lambda fact: (fact.turn, fact.ts, sort_key(fact.values)))
        return tuple(
            self._aggregate(call, plan.input, in_order)
            if estimates.waved(call) is None
            else self._wave(call, plan.input, so_far, at)
            for _, call in plan.aggregates
        )

    def _wave(self, call: ops.AggregateCall, source: Plan, rows: Sequence[Fact], at: Instant) -> int | None:
        window, function = estimates.wave_window(source), estimates.waved(call)
        assert window is not None
        assert function is not None
        args = [self._compiled(arg, source) for arg in call.args]
        chosen = [fact for fact in rows if self._holds(call.where, source, fact.values)]
        bounds = self.bounds(source)
        values = [(int(fact.ts), [arg(fact.values, bounds) for arg in args]) for fact in chosen]
        counts = function.exact == "count"
        units = [(t, 1 if counts else row[0]) for t, row in values if None not in row]
        found = estimate(units, int(at), window.spec.range, function.error)  # type: ignore[attr-defined]
        return 0 if found is None and counts else found

    def _aggregate(self, call: ops.AggregateCall, source: Plan, rows: Sequence[Fact]) -> Any:
        args = [self._compiled(arg, source) for arg in call.args]
        chosen = [fact for fact in rows if self._holds(call.where, source, fact.values)]
        bounds = self.bounds(source)
        values = [tuple(arg(fact.values, bounds) for arg in args) for fact in chosen]
        types = tuple(arg.type for arg in call.args)
        cut = [fact.sub_window for fact in chosen]
        return aggregates.evaluate(call.function, call.params, call.distinct, values, types, cut)

    @facts.register
    def _(self, plan: ops.Limit) -> list[Fact]:
        return self.first_rows(plan, self.facts(plan.input))

    def first_rows(self, plan: ops.Limit, rows: Sequence[Fact]) -> list[Fact]:
        """The rows that stay: by the given order, then the remaining columns; of equal rows the oldest."""
        return self._ranked(plan, rows)[: plan.count]

    def _ranked(self, plan: ops.Limit | ops.Rank, rows: Sequence[Fact]) -> list[Fact]:
        """Rows in the order of a plan; those that are equal in it by all columns, then by their instants.

        -0.0 is 0.0 here: no row goes first by it.
        """
        known = (Fact(fact.values, fact.ts) for fact in rows)
        ranked = sorted(known, key=lambda fact: (_value_key(fact.values), fact.ts))
        for expression, descending in reversed(plan.order):
            read = self._reader(expression, plan.input)
            keyed = [(_value_key((read(fact),)), fact) for fact in ranked]
            ranked = [fact for _, fact in sorted(keyed, key=lambda pair: pair[0], reverse=descending)]
        return ranked

    @facts.register
    def _(self, plan: ops.Rank) -> list[Fact]:
        return self.numbered(plan, self.facts(plan.input))

    def numbered(self, plan: ops.Rank, rows: Sequence[Fact]) -> list[Fact]:
        """Each row with how many of its partition come before it, or before those that are equal to it."""
        parts: dict[Values, list[Fact]] = defaultdict(list)
        readers = [self._reader(part, plan.input) for part in plan.partition]
        for fact in rows:
            parts[grouped(tuple(read(fact) for read in readers))].append(fact)
        found = []
        for part in parts.values():
            ranked = self._ranked(plan, part)
            keys = [self._reader(expression, plan.input) for expression, _ in plan.order]
            placed = [_value_key(tuple(read(fact) for read in keys)) for fact in ranked]
            for place, fact in enumerate(ranked):
                before = {
                    "ROW_NUMBER": place,
                    "RANK": placed.index(placed[place]),
                    "DENSE_RANK": len({str(key) for key in placed[: placed.index(placed[place])]}),
                }[plan.kind]
                found.append(fact.showing((*fact.values, before + 1)))
        return found

    @facts.register
    def _(self, plan: ops.Unnest) -> list[Fact]:
        array = self._reader(plan.array, plan.input)
        return [
            fact.showing(fact.values + more)
            for fact in self.facts(plan.input)
            for more in elements(plan, array(fact))
        ]

    @facts.register
    def _(self, plan: ops.Over) -> list[Fact]:
        ordered = sorted(self.facts(plan.input), key=in_order)
        more = self.framed(plan, ordered)
        pairs = zip(ordered, more, strict=True)
        return [fact.showing(fact.values + values) for fact, values in pairs]

    def framed(self, plan: ops.Over, ordered: Sequence[Fact]) -> list[Values]:
        """For each row, the values of its frames; rows come in their order."""
        columns = [self._framed(framed, plan.input, ordered) for _, framed in plan.calls]
        return [tuple(column[place] for column in columns) for place in range(len(ordered))]

    def _framed(self, framed: ops.FramedCall, source: Plan, ordered: Sequence[Fact]) -> list[Any]:
        readers, frame = [self._reader(part, source) for part in framed.partition], framed.frame
        parts = [grouped(tuple(read(fact) for read in readers)) for fact in ordered]
        found = []
        for place, fact in enumerate(ordered):
            mine = [other for other, part in enumerate(parts) if part == parts[place]]
            before = [
                mine.index(place) - at if frame.by_rows else fact.ts - ordered[other].ts
                for at, other in enumerate(mine)
            ]
            start = INFINITY if frame.start is None else frame.start
            chosen = [
                ordered[other] for other, far in zip(mine, before, strict=True) if frame.stop <= far <= start
            ]
            found.append(self._aggregate(framed.call, source, chosen))
        return found

    def _compiled(self, expression: expressions.Expression, source: Plan) -> Any:
        return compile_expression(expression, source.schema.names)

    def _reader(self, expression: expressions.Expression, source: Plan) -> Callable[[Fact], Any]:
        compiled, bounds = self._compiled(expression, source), self.bounds(source)
        return lambda fact: compiled(fact.values, bounds)

    def _holds(self, predicate: expressions.Expression, source: Plan, values: Values) -> bool:
        return self._compiled(predicate, source)(values, self.bounds(source)) is True


def elements(plan: ops.Unnest, array: tuple[Any, ...] | None) -> list[Values]:
    """The columns of each element."""
    if not array:
        return [(None,) * (len(plan.names) + bool(plan.position))] if plan.outer else []
    none = (None,) * len(plan.names)
    parts = [(each or none) if plan.spreads else (each,) for each in array]
    return [((place,) if plan.position else ()) + part for place, part in enumerate(parts)]


def in_order(fact: Fact) -> Any:
    """The place of a row in its stream: by its instant, ties by all columns."""
    return fact.ts, sort_key(fact.values)


def any_waved(plan: ops.Aggregate) -> bool:
    """Whether an aggregate goes by rows that have left the window."""
    return any(estimates.waved(call) is not None for _, call in plan.aggregates)


def _value_key(values: Iterable[Any]) -> Any:
    return sort_key(value + 0.0 if isinstance(value, float) else value for value in values)


def together(parts: Iterable[Fact]) -> Fact:
    """The concatenation of the parts of a join result."""
    chosen = tuple(parts)
    return Fact(tuple(v for part in chosen for v in part.values), max(part.ts for part in chosen))


def grouped(values: Values) -> Values:
    """Values as grouping sees them: -0.0 and 0.0 are one group (every NaN already is one object)."""
    return tuple(0.0 if isinstance(value, float) and value == 0 else value for value in values)


def table_rows(world: World, scan: TableScan, before: Instant) -> list[Values]:
    """The rows of a table: an NRR counts changes before an instant, a RELATION those up to it."""
    strict = scan.table.kind is catalog.TableKind.NRR
    rows: Counter[Values] = Counter()
    for change in world.tables.get(scan.table.name, ()):
        if change.at < before or (change.at == before and not strict):
            rows.subtract(change.delete)
            rows.update(change.insert)
    return [row for row, copies in rows.items() for _ in range(copies)]


def lives(world: World, scan: TableScan) -> list[tuple[Values, Instant, Instant]]:
    """Each row a RELATION ever had, and when it was inserted and deleted; the oldest copy goes first."""
    present: dict[Values, list[Instant]] = {}
    found: list[tuple[Values, Instant, Instant]] = []
    for change in world.tables.get(scan.table.name, ()):
        for row in change.delete:
            found.append((row, present[row].pop(0), change.at))
        for row in change.insert:
            present.setdefault(row, []).append(change.at)
    return found + [(row, since, INFINITY) for row, copies in present.items() for since in copies]
