"""What a plan costs per unit of time, and what it keeps: the numbers of EXPLAIN and of every choice.

The unit is one row touched. Three things cost (thesis, 3.5.3): processing what arrives, twice where the
input's pattern is STR, because every row comes again as a negative one (2.3.3); keeping state, by the
pattern of what is kept, since it decides how an expired row is found; and reporting. Joins are costed as
kernels do them, by hash tables where columns are equated, aggregates over sliding extents by panes.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> s = Scan(Stream("s", Schema((Field("ts", BIGINT),)), "ts"), "s")
>>> found = estimate(Emit(Window(s, RangeWindow(60))), Statistics(rates={"s": 5}))
>>> found[()].rate, found[(0,)].rows, found[(0, 0)].rate
(10.0, 300, 5)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import singledispatchmethod
from math import exp, fsum, prod

from windrow.algebra import operators as ops
from windrow.algebra.aggregates import Differential, make
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, StreamWord, Subquery, TableScan, Window
from windrow.optimizer import flows, trees
from windrow.optimizer.flows import Estimate, Path, Statistics, Values, arrivals, growing, upkeep
from windrow.windows import Panes, Pattern, RangeWindow

#: of an array, as long as nobody has counted
_ELEMENTS = 3


class Estimator:
    """Estimates a plan from its leaves up; `found` holds every node by its place."""

    def __init__(self, statistics: Statistics) -> None:
        self.statistics = statistics
        self.found: dict[Path, Estimate] = {}

    def note(self, plan: Plan, path: Path = ()) -> Estimate:
        """The estimate of the plan and, noted in `found`, of all below it."""
        below = tuple(self.note(child, (*path, place)) for place, child in enumerate(plan.children))
        self.found[path] = estimate = self._of(plan, below)
        return estimate

    @singledispatchmethod
    def _of(self, plan: Plan, below: tuple[Estimate, ...]) -> Estimate:
        raise TypeError(f"no cost is declared for {type(plan).__name__}")

    @_of.register
    def _(self, plan: Scan, below: tuple[Estimate, ...]) -> Estimate:
        name = plan.stream.name
        return Estimate(self.statistics.rate(name), 0, values=self._declared(plan, name))

    @_of.register
    def _(self, plan: TableScan, below: tuple[Estimate, ...]) -> Estimate:
        name = plan.table.name
        rows, changes = self.statistics.table(name)
        return Estimate(changes, rows, rows, changes, self._declared(plan, name))

    def _declared(self, plan: Scan | TableScan, name: str) -> Values:
        """The distinct values of `alias.column`, which are known as `name.column`."""
        columns = ((column, name + column.removeprefix(plan.alias)) for column in plan.schema.names)
        return {column: self.statistics.values(known) for column, known in columns}

    @_of.register
    def _(self, plan: Subquery, below: tuple[Estimate, ...]) -> Estimate:
        (query,) = below
        values = dict(zip(plan.schema.names, query.values.values(), strict=True))
        return Estimate(query.rate, 0, values=values)

    @_of.register
    def _(self, plan: Window, below: tuple[Estimate, ...]) -> Estimate:
        """Kept by the operators that need it; by itself only where it has to announce who leaves."""
        (stream,) = below
        arriving = 1.0 if flows.counts_rows(plan) else stream.rate
        rows = flows.rows_within(plan, arriving, stream.values, self.statistics)
        rate = arriving * plan.spec.coverage
        if plan.label.pattern is Pattern.STR:
            return Estimate(rate, rows, rows, upkeep(plan, rate), stream.values)
        return Estimate(rate, rows, values=stream.values)

    @_of.register
    def _(self, plan: ops.Filter, below: tuple[Estimate, ...]) -> Estimate:
        (flow,) = below
        share = flows.selectivity(plan.predicate, flow.values, self.statistics)
        return Estimate(flow.rate * share, flow.rows * share, 0, arrivals(plan.input, flow), flow.values)

    @_of.register
    def _(self, plan: ops.Project, below: tuple[Estimate, ...]) -> Estimate:
        (flow,) = below
        cost = 0 if trees.is_renaming(plan) else arrivals(plan.input, flow)
        values = {name: flows.combinations(value.columns, flow.values) for name, value in plan.outputs}
        return Estimate(flow.rate, flow.rows, 0, cost, values)

    @_of.register(ops.Union)
    @_of.register(StreamUnion)
    def _(self, plan: ops.Union | StreamUnion, below: tuple[Estimate, ...]) -> Estimate:
        columns = zip(*(flow.values.values() for flow in below), strict=True)
        values = dict(zip(plan.schema.names, map(max, columns), strict=True))
        return Estimate(fsum(flow.rate for flow in below), fsum(flow.rows for flow in below), values=values)

    @_of.register
    def _(self, plan: ops.Join, below: tuple[Estimate, ...]) -> Estimate:
        """Each arrival scans the other inputs in order, and again for every partial result."""
        rate = cost = 0.0
        classes = flows.equal_columns(plan.predicate)
        for place, (part, flow) in enumerate(zip(plan.inputs, below, strict=True)):
            others = [*below[:place], *below[place + 1 :]]
            factors = growing([flow, *others], plan.predicate, self.statistics)
            partial, met = 1.0, set(part.schema.names)
            for other, factor in zip(others, factors, strict=True):
                cost += arrivals(part, flow) * partial * self._looked_at(classes, met, other, factor)
                partial *= factor
                met |= other.values.keys()
            rate += flow.rate * partial
        kept = fsum(flow.rows for flow in below)
        cost += fsum(upkeep(part, flow.rate) for part, flow in zip(plan.inputs, below, strict=True))
        rows = below[0].rows * prod(growing(below, plan.predicate, self.statistics))
        return Estimate(rate, rows, kept, cost, _together(below))

    def _looked_at(
        self, classes: list[frozenset[str]], met: Collection[str], other: Estimate, found: float
    ) -> float:
        """How many rows of an input are touched to find the partners of one: by a hash table those alone."""
        linked = any(
            not same.isdisjoint(met) and not same.isdisjoint(other.values.keys()) for same in classes
        )
        return 1 + found if linked else other.rows

    @_of.register
    def _(self, plan: ops.TableJoin, below: tuple[Estimate, ...]) -> Estimate:
        """A change of a RELATION table meets all rows that are valid, so these are kept."""
        flow, table = below
        (matches,) = growing(below, plan.predicate, self.statistics)
        cost = arrivals(plan.input, flow) * max(1.0, matches)
        rate, kept = flow.rate * matches, 0.0
        if plan.is_retroactive:
            cost += upkeep(plan.input, flow.rate) + table.rate * flow.rows
            rate, kept = rate + table.rate * flow.rows * matches / max(1.0, table.rows), flow.rows
        return Estimate(rate, flow.rows * matches, kept, cost, {**flow.values, **table.values})

    @_of.register
    def _(self, plan: ops.Distinct, below: tuple[Estimate, ...]) -> Estimate:
        """δ* keeps each value and its youngest duplicate; over STR input all rows are kept."""
        (flow,) = below
        rows = flows.distinct_of(flow.rows, prod(flow.values.values(), start=1.0))
        rate = flow.rate * (rows / flow.rows if flow.rows else 1.0)
        strict = plan.input.label.pattern is Pattern.STR
        kept = flow.rows + rows if strict else 2 * rows
        cost = arrivals(plan.input, flow) + upkeep(plan, flow.rate if strict else rate)
        return Estimate(rate, rows, kept, cost, flow.values)

    @_of.register
    def _(self, plan: ops.Aggregate, below: tuple[Estimate, ...]) -> Estimate:
        """Extents of a single window take each row once, those that overlap by panes. Extents above joins are
        computed from the extent before, if all aggregates are full-differential (rows that came, rows that
        went; paper 002, 3.3), else from all their rows."""
        (flow,) = below
        keys = {name: flows.combinations(key.columns, flow.values) for name, key in plan.keys}
        groups = flows.distinct_of(flow.rows, prod(keys.values(), start=1.0)) if keys else min(1.0, flow.rows)
        values = keys | {name: groups for name, _ in plan.aggregates}
        made = (make(call.function, call.params, distinct=call.distinct) for _, call in plan.aggregates)
        differential = all(aggregate.differential is Differential.FULL for aggregate in made)
        spec = plan.leaves[0].spec
        same = len({leaf.spec.period for leaf in plan.leaves}) == 1
        if not same or not isinstance(spec, RangeWindow) or spec.slide is None:
            # each row changes its group coming and going, which may mean to look at all its rows
            going = 1.0 if differential else flow.rows / max(groups, 1.0)
            cost = arrivals(plan.input, flow) + flow.rate * going
            kept = flow.rows + groups if differential else flow.rows
            return Estimate(2 * flow.rate, groups, kept, cost, values)
        slide = self.statistics.units(spec.slide, plan.leaves[0].domain)
        if spec.slide >= spec.range:
            kept, work = groups, flow.rows
        elif _is_of_one_window(plan):
            # a new pane is lifted, then goes into a beginning and a rest of a block, of which every extent is
            # put together; slides are cut in two at most, however small the gcd is
            panes = Panes.of(spec)
            work = flow.rows * spec.slide / spec.range + min(panes.per_slide, 2) * 3 * groups + groups
            kept = min(flow.rows, groups * panes.per_window)
        elif differential:
            kept, work = flow.rows + groups, 2 * flow.rows * spec.slide / spec.range
        else:
            kept, work = flow.rows, flow.rows
        return Estimate(groups / slide, groups, kept, work / slide, values)

    @_of.register
    def _(self, plan: ops.Except, below: tuple[Estimate, ...]) -> Estimate:
        """Every row of either side may take one away or give it back."""
        left, right = below
        cost = 2 * (left.rate + right.rate) + upkeep(plan.left, left.rate) + upkeep(plan.right, right.rate)
        kept = left.rows + right.rows
        return Estimate(left.rate + right.rate, left.rows / 2, kept, cost, left.values)

    @_of.register
    def _(self, plan: ops.Exists, below: tuple[Estimate, ...]) -> Estimate:
        """Rows of the left look for a match; keys of the right, coming or going, for whom they concern. A key
        that is there already, or still is there in another row, concerns nobody."""
        left, right = below
        (matches,) = growing(below, plan.predicate, self.statistics)
        without_match = exp(-matches)
        share = without_match if plan.negated else 1 - without_match
        news = right.rate * self._is_news(plan, left, right)
        concerned = left.rows * (matches / right.rows if right.rows else 0.0)
        classes = flows.equal_columns(plan.predicate)
        at_left = self._looked_at(classes, left.values.keys(), right, min(1.0, matches))
        at_right = self._looked_at(classes, right.values.keys(), left, concerned)
        cost = arrivals(plan.left, left) * at_left + 2 * (right.rate + news * at_right)
        cost += upkeep(plan.left, left.rate) + upkeep(plan.right, right.rate)
        rate = left.rate * share + news * concerned
        return Estimate(rate, left.rows * share, left.rows + right.rows, cost, left.values)

    def _is_news(self, plan: ops.Exists, left: Estimate, right: Estimate) -> float:
        """The share of rows of the right whose key no other row has at that time."""
        classes = [same for same in flows.equal_columns(plan.predicate) if same & left.values.keys()]
        keys = [name for same in classes for name in same if name in right.values]
        known = flows.combinations(keys, right.values)
        return exp(-right.rows / known) if keys and known > 0 else 1.0  # with no rows expected, each is news

    @_of.register
    def _(self, plan: ops.Limit, below: tuple[Estimate, ...]) -> Estimate:
        (flow,) = below
        cost = arrivals(plan.input, flow) + upkeep(plan.input, flow.rate)
        return Estimate(flow.rate, min(plan.count, flow.rows), flow.rows, cost, flow.values)

    @_of.register
    def _(self, plan: ops.Rank, below: tuple[Estimate, ...]) -> Estimate:
        (flow,) = below
        cost = arrivals(plan.input, flow) * max(1.0, flow.rows) + upkeep(plan.input, flow.rate)
        return Estimate(flow.rate, flow.rows, flow.rows, cost, {**flow.values, plan.name: flow.rows})

    @_of.register
    def _(self, plan: ops.Unnest, below: tuple[Estimate, ...]) -> Estimate:
        (flow,) = below
        rate, rows = flow.rate * _ELEMENTS, flow.rows * _ELEMENTS
        made = [name for name in (*plan.names, plan.position) if name]
        return Estimate(rate, rows, 0, rate, {**flow.values, **dict.fromkeys(made, rows)})

    @_of.register
    def _(self, plan: ops.Over, below: tuple[Estimate, ...]) -> Estimate:
        (flow,) = below
        cost = arrivals(plan.input, flow) * (1 + len(plan.calls))
        values = {**flow.values, **{name: flow.rows for name, _ in plan.calls}}
        return Estimate(flow.rate, flow.rows, 0, cost, values)

    @_of.register
    def _(self, plan: Emit, below: tuple[Estimate, ...]) -> Estimate:
        """What is delivered: whole answers per extent, or changes; deletions need the answer kept."""
        (flow,) = below
        if plan.is_union:  # what the branches deliver is counted there
            return Estimate(flow.rate, flow.rows, values=flow.values)
        grids = {(leaf.spec.grid, leaf.domain) for leaf in plan.leaves}
        if plan.meaning is StreamWord.RSTREAM and all(grid for grid, _ in grids):
            reports = fsum(1 / self.statistics.units(grid.period, domain) for grid, domain in grids if grid)
            return Estimate(flow.rows * reports, flow.rows, 0, flow.rows * reports, flow.values)
        rate = flow.rate * (2 if plan.emits_deletions else 1)
        keeps = plan.emits_deletions or plan.meaning is StreamWord.DSTREAM
        return Estimate(rate, flow.rows, flow.rows if keeps else 0, rate, flow.values)


def _together(flows: Sequence[Estimate]) -> Values:
    return {name: count for flow in flows for name, count in flow.values.items()}


def _is_of_one_window(plan: ops.Aggregate) -> bool:
    """Whether only σ and π lie between γ and its window."""
    below = plan.input
    while isinstance(below, ops.Filter | ops.Project):
        below = below.input
    return isinstance(below, Window)


def estimate(plan: Plan, statistics: Statistics | None = None) -> Mapping[Path, Estimate]:
    """The estimate of every node, by its place: () is the root, (0, 1) the second child of its first."""
    estimator = Estimator(statistics or Statistics())
    estimator.note(plan)
    return estimator.found


def total_cost(plan: Plan, statistics: Statistics | None = None) -> float:
    """What the whole plan costs per unit of time."""
    return fsum(each.cost for each in estimate(plan, statistics).values())
