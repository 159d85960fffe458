"""From a plan over INTERNAL windows to operators over runs: what stays needs more than pieces tell."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatchmethod
from typing import TYPE_CHECKING

from windrow.algebra.operators import (
    Aggregate,
    Distinct,
    Except,
    Exists,
    Filter,
    Join,
    Limit,
    Project,
    TableJoin,
    Union,
)
from windrow.algebra.plan import Emit, Plan, Window
from windrow.kernels.relational.internal.operators import (
    Branch,
    Copies,
    Stamped,
    Unmatched,
    Valued,
    Witnessed,
)
from windrow.kernels.relational.internal.runs import GroupRuns, Runs, TableRuns, ValueRuns, WindowRuns
from windrow.kernels.relational.internal.runs_plan import Outliving
from windrow.kernels.relational.join.multiway import Joined
from windrow.kernels.relational.operator import Operator
from windrow.kernels.relational.stateless import Filtered, Projected, United
from windrow.kernels.relational.tables import LookedUp, TablePieces
from windrow.kernels.relational.windows.negative_rows import NegativeRows
from windrow.windows.spec import OwnInterval

if TYPE_CHECKING:
    from windrow.kernels.relational.strategy import Choice


class OutlivingBuilder:
    """Builds the operators of one query. `pieces` gives the operator of a window, whose rows have numbers, or
    that of a plan as it would be with external windows."""

    def __init__(self, emit: Emit, choice: Choice, lag: int, pieces: Callable[[Plan], Operator]) -> None:
        self.emit = emit
        self.choice = choice
        self.lag = lag
        self.pieces = pieces
        self.sources: list[Runs] = []
        self.count = 0
        #: the operator of each node
        self.built: dict[int, Operator] = {}

    def root(self) -> Outliving:
        """All results."""
        return Outliving(self.emit, self.of(self.emit.input), self.sources)

    def of(self, plan: Plan) -> Operator:
        """The operator of a plan."""
        built = self._build(plan)
        self.built[id(plan)] = built
        return built

    def _number(self) -> int:
        self.count += 1
        return self.count

    def _source(self, runs: Runs) -> Runs:
        self.sources.append(runs)
        return runs

    @singledispatchmethod
    def _build(self, plan: Plan) -> Operator:
        raise TypeError(f"no operator over runs is defined for {type(plan).__name__}")

    @_build.register
    def _(self, plan: Window) -> Operator:
        leaf = self.pieces(plan)
        below = leaf.inputs[0] if isinstance(leaf, NegativeRows) else leaf
        known = isinstance(plan.spec, OwnInterval)
        internal = plan.spec.internal
        return self._source(
            WindowRuns(below, self._number(), plan.schema.names, internal=internal, ends_known=known)
        )

    @_build.register
    def _(self, plan: Filter) -> Operator:
        return Filtered(plan, self.of(plan.input))

    @_build.register
    def _(self, plan: Project) -> Operator:
        return Projected(plan, self.of(plan.input))

    @_build.register
    def _(self, plan: Union) -> Operator:
        number = self._number()
        return United(
            plan, [Branch(self.of(part), number, branch + 1) for branch, part in enumerate(plan.inputs)]
        )

    @_build.register
    def _(self, plan: Join) -> Operator:
        parts = [self.of(part) for part in plan.inputs]
        return Joined(parts, plan.predicate, [part.schema.names for part in plan.inputs], self.choice)

    @_build.register
    def _(self, plan: TableJoin) -> Operator:
        below = self.of(plan.input)
        names = [plan.input.schema.names, plan.table.schema.names]
        if not plan.is_retroactive:
            return Copies(LookedUp(plan, below), self._number(), names[1])
        table = self._source(TableRuns(TablePieces(plan.table, self.lag), self._number(), names[1]))
        return Joined([below, table], plan.predicate, names, self.choice)

    @_build.register
    def _(self, plan: Exists) -> Operator:
        number = self._number()
        left, right = self.of(plan.left), self.of(plan.right)
        names = [plan.left.schema.names, plan.right.schema.names]
        pairs = Joined([Stamped(left), right], plan.predicate, names, self.choice)
        if plan.negated:
            return Unmatched(left, pairs, number)
        return Witnessed(pairs, left, number, internal=plan.is_internal)

    @_build.register(Distinct)
    @_build.register(Except)
    @_build.register(Limit)
    def _(self, plan: Distinct | Except | Limit) -> Operator:
        stamped = isinstance(plan, Limit)
        return self._source(ValueRuns(self.pieces(plan), self._number(), plan.schema.names, stamped=stamped))

    @_build.register
    def _(self, plan: Aggregate) -> Operator:
        runs = GroupRuns(self.pieces(plan), self._number(), plan)
        self._source(runs)
        if not plan.is_internal:
            return runs
        grids = [leaf.spec.grid for leaf in self.emit.leaves if leaf.spec.grid is not None]
        return Valued(plan, self.of(plan.input), runs, grids if self.emit.is_periodic else None)
