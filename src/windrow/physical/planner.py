"""The planner: from a query to the plan that runs, the only place where that is decided.

The rules make one form of it; alternatives are tried as long as one is cheaper by the cost model. Of all that
were costed the cheapest runs that kernels can run.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Distinct
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> stream = Stream("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts")
>>> plan = plan_query(Emit(Distinct(Window(Scan(stream, "s"), RangeWindow(60)))))
>>> [(operator.place, operator.kind) for operator in plan.walk()][:2]
[('0', 'changes.1'), ('0.0', 'distinct-told.1')]

What a query has in common with others, and by which rules, is recorded in its physical plan. It is decided
for all registered queries together (`windrow.engine.sharing.arrangement`). A state depends on it no more
than on a cost: it is recorded, and not part of what operators are recognised by.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from windrow.algebra.aggregates import Size, function_of
from windrow.algebra.explain import Alternative
from windrow.algebra.operators import Aggregate, AggregateCall, Filter, Project, Union
from windrow.algebra.plan import Emit, Plan, Scan, Subquery, Window
from windrow.errors import QueryError
from windrow.kernels.panes import live_panes, query, subtract_on_evict, two_stacks
from windrow.kernels.panes.program import Level, PaneProgram
from windrow.kernels.relational.implementations import kind_of, placed, report
from windrow.kernels.relational.operator import Stateless
from windrow.kernels.relational.program import RelationalProgram
from windrow.kernels.relational.windows.leaf import NestedRows, Scanned
from windrow.optimizer import flows, optimizer
from windrow.physical import native_sql, units

Path = tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """Something that a query has in common with so many others, and the rules that allow it."""

    what: str
    others: int
    rules: tuple[str, ...] = ()

    def __str__(self) -> str:
        """In a few words.

        >>> str(Shared("⋈", 2)), str(Shared("states of ⋈", 1, ("SS3", "CS4")))
        ('⋈ with 2', 'states of ⋈ with 1 by SS3, CS4')
        """
        return f"{self.what} with {self.others:,}" + self._by

    @property
    def _by(self) -> str:
        return f" by {', '.join(self.rules)}" if self.rules else ""

    @property
    def of_synopsis(self) -> str:
        """A synopsis, as a sentence."""
        if not self.others:
            return f"keeps synopsis {self.what} for itself" + (f",{self._by}" if self.rules else "")
        return f"shares synopsis {self.what} with {_counted(self.others)}{self._by}"

    @property
    def of_part(self) -> str:
        """A part of a plan, as a sentence."""
        if self.rules:
            return f"shares {self.what} with {_counted(self.others)}{self._by}"
        others = _counted(self.others, "other ")
        if self.what == "rows":
            return f"its rows are filed once, for it and {others} with the same windows"
        return f"runs {self.what} once, for it and {others}: the same part of their plans"


@dataclass(frozen=True)
class Sharing:
    """All that a query has in common with others."""

    #: the synopses that it is answered from, one by one
    synopses: tuple[Shared, ...] = ()
    #: how many queries are answered from those of its stream and grouping, with itself
    queries: int = 0
    #: whether values are counted there
    counts_values: bool = False
    #: the parts of its plan that run once for others too
    parts: tuple[Shared, ...] = ()
    #: why it keeps a state of its own, if it has nothing in common with others
    alone: str = ""

    @property
    def lines(self) -> list[str]:
        """For EXPLAIN."""
        found = [*(each.of_synopsis for each in self.synopses), *(each.of_part for each in self.parts)]
        return found or ([f"keeps a state of its own: {self.alone}"] if self.alone else [])

    @property
    def close(self) -> str:
        """How a query is answered from synopses."""
        found = f"matrices of intervals and groups, made once for {_counted(self.queries)}"
        found += " of this stream and grouping"
        more = "; values are counted once for all of them, with a sum for each length of windows"
        return found + (more if self.counts_values else "")

    @property
    def others(self) -> int:
        """With how many other queries it has something in common, at most."""
        return max((each.others for each in (*self.synopses, *self.parts)), default=0)

    @property
    def brief(self) -> str | None:
        """In a few words, for SHOW QUERIES; None if a query is alone.

        >>> Sharing((Shared("p1", 2, ("SS1",)), Shared("p2", 2, ("SS1",)), Shared("p3", 0)), 3).brief
        'p1, p2 with 2 by SS1; p3'
        """
        alike: dict[tuple[int, tuple[str, ...]], list[str]] = {}
        for each in self.synopses:
            alike.setdefault((each.others, each.rules), []).append(each.what)
        together = [Shared(", ".join(names), *known) for known, names in alike.items()]
        found = [str(each) if each.others else each.what for each in together]
        return "; ".join([*found, *map(str, self.parts)]) or None

    def to_json(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            **({"synopses": list(map(_written, self.synopses))} if self.synopses else {}),
            **({"queries": self.queries} if self.queries else {}),
            **({"counts_values": True} if self.counts_values else {}),
            **({"parts": list(map(_written, self.parts))} if self.parts else {}),
            **({"alone": self.alone} if self.alone else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Sharing:
        """What `to_json` wrote."""
        lists = {name: tuple(map(_read, stored.get(name, ()))) for name in ("synopses", "parts")}
        return cls(**{**stored, **lists})


def _written(shared: Shared) -> list[Any]:
    return [shared.what, shared.others, list(shared.rules)]


def _read(stored: list[Any]) -> Shared:
    what, others, rules = stored
    return Shared(what, others, tuple(rules))


def _counted(queries: int, which: str = "") -> str:
    return f"1 {which}query" if queries == 1 else f"{queries:,} {which}queries"


#: the durable name of the state that queries of one stream and grouping share
SHARED = "shared-intervals.1"
_SIZES = {
    Size.BOUNDED: "of constant size for",
    Size.SKETCH: "sketches for",
    Size.LISTS: "lists of the most frequent values for",
    Size.HOLISTIC: "counts of values for",
}


@dataclass(frozen=True)
class PhysicalOperator:
    """A node of the logical form, and the operator that it became; one whose work another operator does has
    no place."""

    node: Plan
    method: str
    reason: str = ""
    #: what it keeps from one step to the next; empty: nothing
    state: str = ""
    #: its durable name; None: its work is done by another operator
    kind: str | None = None
    place: str | None = None
    #: it looks at each row by itself
    passes_on: bool = False
    inputs: tuple[PhysicalOperator, ...] = ()

    def walk(self) -> Iterator[PhysicalOperator]:
        """This operator and all below it, parents first; nested queries included."""
        yield self
        for part in self.inputs:
            yield from part.walk()


def operators_of(unit: units.Unit, *, is_shared: bool = False) -> PhysicalOperator:
    """The operators of a unit, from the root down; `is_shared`: its state is that of others, too."""
    if isinstance(unit, units.UnionUnit):
        return _united(unit)
    if isinstance(unit, units.GeneralUnit):
        return _tree(unit.program.emit, (), _general(unit.program))
    return _paned(unit.program, len(unit.program.levels) - 1, is_shared)


def _united(unit: units.UnionUnit) -> PhysicalOperator:
    """Branches beside each other; their operators have the numbers of their branches before their places."""
    emit = unit.program.emit
    branches = tuple(_numbered(operators_of(branch), number) for number, branch in enumerate(unit.branches))
    why = "answers of one branch never meet those of another"
    below = PhysicalOperator(emit.input, "merge", why, passes_on=True, inputs=branches)
    return PhysicalOperator(emit, "merge", why, passes_on=True, inputs=(below,))


def _numbered(operator: PhysicalOperator, branch: int) -> PhysicalOperator:
    place = None if operator.place is None else f"{branch}:{operator.place}"
    return replace(operator, place=place, inputs=tuple(_numbered(each, branch) for each in operator.inputs))


def _tree(node: Plan, path: Path, found: dict[Path, PhysicalOperator]) -> PhysicalOperator:
    below = tuple(_tree(child, (*path, place), found) for place, child in enumerate(node.children))
    return replace(found[path], inputs=below)


def _general(program: RelationalProgram) -> dict[Path, PhysicalOperator]:
    found: dict[Path, PhysicalOperator] = {}
    for path, node, place, operator in placed(program):
        if place is None or operator is None:
            found[path] = PhysicalOperator(
                node, "taken in", "the operator above does its work", passes_on=True
            )
            continue
        told = report(program, node, operator)
        plain = isinstance(operator, Stateless | Scanned | NestedRows) or isinstance(node, Emit)
        found[path] = PhysicalOperator(
            node, told.name, told.reason, told.state, told.kind, place, plain and not told.state
        )
    return found


def _paned(program: PaneProgram, number: int, is_shared: bool) -> PhysicalOperator:
    """One level: everything but its γ looks at single rows, or is arithmetic of panes."""
    level = program.levels[number]

    def built(node: Plan) -> PhysicalOperator:
        if isinstance(node, Subquery):
            inner = (_paned(program, number - 1, is_shared),)
            return PhysicalOperator(
                node, "nested query", "its answers are rows", passes_on=True, inputs=inner
            )
        below = tuple(map(built, node.children))
        if isinstance(node, Aggregate) and is_shared:
            why = f"{_sizes(node)}; matrices of intervals and groups, made once for all queries of them"
            kept = "a state per interval and group, of the stream and this grouping"
            return PhysicalOperator(node, "shared state", why, kept, SHARED, inputs=below)
        if isinstance(node, Aggregate):
            kept = "a state per group" if level.query.cut.range is None else "a state per pane and group"
            kind = kind_of(level.kernel)
            told = f"{_sizes(node)}; {_kernel(level)}"
            return PhysicalOperator(node, _METHODS[kind], told, kept, kind, str(number), inputs=below)
        if isinstance(node, Window):
            why = "a row is added to the state of its pane, and forgotten"
            return PhysicalOperator(node, "panes of each row", why, inputs=below)
        assert isinstance(node, Emit | Filter | Project | Union | Scan)
        return PhysicalOperator(node, "row by row", passes_on=True, inputs=below)

    return built(level.query.emit)


_METHODS = {
    "running-totals.1": "running totals",
    "two-stacks.1": "persisted two stacks",
    "running-counts.1": "running counts of values",
    "live-panes.1": "live panes",
}


def _kernel(level: Level) -> str:
    cut = level.query.cut
    if isinstance(level.kernel, live_panes.RunningTotals):
        return "one state per group"
    panes = f"{cut.per_window} panes per window" if cut.per_window > 1 else "1 pane per window"
    if isinstance(level.kernel, two_stacks.TwoStacks):
        return f"an epoch reads what it answers, whatever RANGE/SLIDE is ({panes})"
    if isinstance(level.kernel, subtract_on_evict.Differences):
        return (
            f"panes are added as they close and subtracted as they leave ({panes});"
            " where values are seen to recur hardly ever, panes are a buffer of them"
        )
    return f"an epoch combines those of the windows it answers ({panes})"


def _sizes(node: Aggregate) -> str:
    sizes: dict[Size, list[AggregateCall]] = {size: [] for size in _SIZES}
    for _, call in node.aggregates:
        sizes[function_of(call).size].append(call)
    parts = [f"{_SIZES[size]} {_listed(calls)}" for size, calls in sizes.items() if calls]
    return "; ".join(parts) or "one mark per pane and group"


def _listed(calls: list[AggregateCall]) -> str:
    names = (("DISTINCT " if call.distinct else "") + call.function.upper() for call in calls)
    return ", ".join(dict.fromkeys(names))


# ------------------------------------------------------------ physical plan


#: where rows are dropped that nobody needs
DROPS = {
    "panes": "Shed rows are counted by Spark as it aggregates, in no pane.",
    "workers": "Shed rows are counted by workers, and nothing is computed from them.",
}


@dataclass(frozen=True)
class PhysicalPlan:
    """How one query runs: everything that is decided about it, in one object that never changes.

    The operators are read off those that run, so that a plan cannot say anything else.
    """

    #: the query as it was written
    asked: Emit
    #: the form of it that runs
    emit: Emit
    #: the rules and alternatives that made the one of the other
    fired: tuple[str, ...] = ()
    #: the plans that were costed, one of them chosen; none if there was no choice
    considered: tuple[Alternative, ...] = ()
    #: what it was chosen by
    statistics: flows.Statistics = field(default_factory=flows.Statistics)
    #: since when it is in the place of another plan, and why; empty: the query began with it
    changed: str = ""
    #: promises about single groups may come from outside
    by_group: bool | None = None
    #: its results come with their ends, which an archive wants to know
    carries_ends: bool = False
    #: what it has in common with other queries, and by which rules
    sharing: Sharing = field(default_factory=Sharing)

    @cached_property
    def unit(self) -> units.Unit:
        """What runs it, compiled."""
        return units.unit_of(self.emit, by_group=self.by_group, carries_ends=self.carries_ends)

    @cached_property
    def root(self) -> PhysicalOperator:
        """The operators, from the root down, each at its node of the logical form."""
        return operators_of(self.unit, is_shared=bool(self.sharing.synopses))

    @cached_property
    def drops(self) -> str:
        """Where shedding drops its rows, one of `DROPS`; empty if none of its streams may be shed."""
        if not any(stream.sheddable for stream in self.unit.streams.values()):
            return ""
        is_native = (
            isinstance(self.unit, units.SlidingUnit) and native_sql.why_from_rows(self.unit.program) is None
        )
        return "panes" if is_native else "workers"

    def walk(self) -> Iterator[PhysicalOperator]:
        """All operators, parents first."""
        return self.root.walk()

    @property
    def chosen(self) -> Alternative | None:
        """The alternative that was taken; None if there was no choice."""
        return next((each for each in self.considered if each.chosen), None)

    def among(self, sharing: Sharing) -> PhysicalPlan:
        """The same, with what it has in common with others."""
        found = replace(self, sharing=sharing)
        found.__dict__.update((name, self.__dict__[name]) for name in ("unit",) if name in self.__dict__)
        return found

    def running(self, unit: units.Unit) -> PhysicalPlan:
        """The same decisions, in the form that a query has among others: a unit that is compiled already."""
        carries_ends = isinstance(unit, units.GeneralUnit) and unit.carries_ends
        found = replace(self, emit=unit.program.emit, carries_ends=carries_ends)
        found.__dict__["unit"] = unit
        return found

    @property
    def is_paned(self) -> bool:
        """Whether it is answered from states of panes."""
        return isinstance(self.unit, units.SlidingUnit)


# ------------------------------------------------------------ planner


def plan_query(
    plan: Emit,
    statistics: flows.Statistics | None = None,
    *,
    by_group: bool | None = None,
    disabled: Collection[str] = (),
) -> PhysicalPlan:
    """How a query runs; a QueryError if no kernel runs it. What is `disabled` is not tried."""
    streams = (node.stream for node in plan.walk() if isinstance(node, Scan))
    known = (statistics or flows.Statistics()).with_declared(streams)
    found = optimizer.candidates(plan, known, disabled, _is_settled)
    for each in optimizer.by_preference(found):
        try:
            return _built(plan, each, found, known, by_group)
        except QueryError:
            continue
    return _built(plan, optimizer.Candidate("as written", plan, 0.0), [], known, by_group)


def _is_settled(plan: Emit) -> bool:
    """Whether there is nothing to choose: an aggregate whose kernel has panes built in does each row once."""
    try:
        query.SlidingQuery.of(plan)
    except QueryError:
        return False
    return True


def _built(
    plan: Emit,
    chosen: optimizer.Candidate,
    found: list[optimizer.Candidate],
    known: flows.Statistics,
    by_group: bool | None,
) -> PhysicalPlan:
    considered = [Alternative(each.name, each.cost, each is chosen) for each in found] if found[1:] else []
    built = PhysicalPlan(plan, chosen.plan, chosen.fired, tuple(considered), known, by_group=by_group)
    assert built.unit is not None  # a QueryError if no kernel runs it
    return built
