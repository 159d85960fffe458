"""The planner: from a query to the plan that runs, the only place where that is decided.

The rules make one form of it; alternatives are tried as long as one is cheaper by the cost model. Of all that
were costed the cheapest runs that kernels can run.

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.operators import Distinct
>>> from windrow.algebra.plan import Emit, Scan, Window
>>> from windrow.algebra.expressions import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> from windrow.windows.ranges import RangeWindow
>>> stream = Stream("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts")
>>> plan = plan_query(Emit(Distinct(Window(Scan(stream, "s"), RangeWindow(60)))))
>>> [(operator.place, operator.kind) for operator in plan.walk()][:2]
[('0', 'changes.1'), ('0.0', 'distinct-told.1')]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from windrow.algebra.explain import Alternative
from windrow.algebra.plan import Emit, Scan
from windrow.errors import QueryError
from windrow.kernels.panes.query import SlidingQuery
from windrow.optimizer.flows import Statistics
from windrow.optimizer.optimizer import Candidate, by_preference, candidates
from windrow.physical.native_sql import why_from_rows
from windrow.physical.operators import PhysicalOperator, operators_of
from windrow.physical.sharing import Sharing
from windrow.physical.units import GeneralUnit, SlidingUnit, Unit, unit_of

# ------------------------------------------------------------ physical plan
#
# A physical plan: everything that is decided about how a query runs, in one object that never changes.
#
# The logical form after the rules and the cost model, the operators it becomes, each with its kernel, its
# state and its reasons, how rows come in, and how they are kept apart. The operators are read off those
# that run, so that a plan cannot say anything else.


__all__ = ["PhysicalOperator", "PhysicalPlan"]


#: where rows are dropped that nobody needs
DROPS = {
    "panes": "Shed rows are counted by Spark as it aggregates, in no pane.",
    "workers": "Shed rows are counted by workers, and nothing is computed from them.",
}


@dataclass(frozen=True)
class PhysicalPlan:
    """How one query runs."""

    #: the query as it was written
    asked: Emit
    #: the form of it that runs
    emit: Emit
    #: the rules and alternatives that made the one of the other
    fired: tuple[str, ...] = ()
    #: the plans that were costed, one of them chosen; none if there was no choice
    considered: tuple[Alternative, ...] = ()
    #: what it was chosen by
    statistics: Statistics = field(default_factory=Statistics)
    #: since when it is in the place of another plan, and why; empty: the query began with it
    changed: str = ""
    #: promises about single groups may come from outside
    by_group: bool | None = None
    #: its results come with their ends, which an archive wants to know
    carries_ends: bool = False
    #: what it has in common with other queries, and by which rules
    sharing: Sharing = field(default_factory=Sharing)

    @cached_property
    def unit(self) -> Unit:
        """What runs it, compiled."""
        return unit_of(self.emit, by_group=self.by_group, carries_ends=self.carries_ends)

    @cached_property
    def root(self) -> PhysicalOperator:
        """The operators, from the root down, each at its node of the logical form."""
        return operators_of(self.unit, is_shared=bool(self.sharing.synopses))

    @cached_property
    def drops(self) -> str:
        """Where shedding drops its rows, one of `DROPS`; empty if none of its streams may be shed."""
        if not any(stream.sheddable for stream in self.unit.streams.values()):
            return ""
        is_native = isinstance(self.unit, SlidingUnit) and why_from_rows(self.unit.program) is None
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

    def running(self, unit: Unit) -> PhysicalPlan:
        """The same decisions, in the form that a query has among others: a unit that is compiled already."""
        carries_ends = isinstance(unit, GeneralUnit) and unit.carries_ends
        found = replace(self, emit=unit.program.emit, carries_ends=carries_ends)
        found.__dict__["unit"] = unit
        return found

    @property
    def is_paned(self) -> bool:
        """Whether it is answered from states of panes."""
        return isinstance(self.unit, SlidingUnit)


# ------------------------------------------------------------ planner


def plan_query(
    plan: Emit,
    statistics: Statistics | None = None,
    *,
    by_group: bool | None = None,
    disabled: Collection[str] = (),
) -> PhysicalPlan:
    """How a query runs; a QueryError if no kernel runs it. What is `disabled` is not tried."""
    streams = (node.stream for node in plan.walk() if isinstance(node, Scan))
    known = (statistics or Statistics()).with_declared(streams)
    found = candidates(plan, known, disabled, _is_settled)
    for each in by_preference(found):
        try:
            return _built(plan, each, found, known, by_group)
        except QueryError:
            continue
    return _built(plan, Candidate("as written", plan, 0.0), [], known, by_group)


def _is_settled(plan: Emit) -> bool:
    """Whether there is nothing to choose: an aggregate whose kernel has panes built in does each row once."""
    try:
        SlidingQuery.of(plan)
    except QueryError:
        return False
    return True


def _built(
    plan: Emit, chosen: Candidate, found: list[Candidate], known: Statistics, by_group: bool | None
) -> PhysicalPlan:
    considered = [Alternative(each.name, each.cost, each is chosen) for each in found] if found[1:] else []
    built = PhysicalPlan(plan, chosen.plan, chosen.fired, tuple(considered), known, by_group=by_group)
    assert built.unit is not None  # a QueryError if no kernel runs it
    return built
