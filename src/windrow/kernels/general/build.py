"""From a plan to operators: one function per node, found by its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any

from windrow.algebra.expressions import WindowBound
from windrow.algebra.finality import group_place, is_final_by_group
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
from windrow.algebra.patterns import Pattern
from windrow.algebra.physical.grouping import function_of
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, Window
from windrow.errors import QueryError
from windrow.kernels.general.by_tuple import ByTuple
from windrow.kernels.general.counted import Counted
from windrow.kernels.general.differences import Difference
from windrow.kernels.general.distinct import distinct
from windrow.kernels.general.emission import Changes, Emission, Reports, Snapshots
from windrow.kernels.general.extents import Extents
from windrow.kernels.general.identity import Identified
from windrow.kernels.general.joins import Joined
from windrow.kernels.general.leaves import Intervals, Leaf
from windrow.kernels.general.limits import Limited
from windrow.kernels.general.matches import Matched
from windrow.kernels.general.negative_rows import NegativeRows
from windrow.kernels.general.operator import Operator
from windrow.kernels.general.reported import ReportedRows, ReportedSessions
from windrow.kernels.general.restore import Restored
from windrow.kernels.general.rows_below import NestedRows, Scanned
from windrow.kernels.general.running import grouped
from windrow.kernels.general.sessions import Sessions
from windrow.kernels.general.stateless import Filtered, Projected, United
from windrow.kernels.general.staying import Births, Staying
from windrow.kernels.general.strategies import Choice, Strategy
from windrow.kernels.general.tables import LookedUp, TablePieces
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow
from windrow.windows.spec import OwnInterval

if TYPE_CHECKING:
    from windrow.algebra.expressions import Expression


def lag_of(emit: Emit) -> int:
    """1 where the answer at E is about the instant before E: half-open extents and ended sessions."""
    if emit.reports_sessions or emit.word.restores:
        return 1
    return int(all(leaf.spec.grid is not None for leaf in emit.leaves))


def reports_alone(emit: Emit) -> bool:
    """Whether extents are reported by themselves: counted rows and sessions, as RSTREAM of one window."""
    if len(emit.leaves) > 1 or emit.is_internal or emit.meaning is not StreamWord.RSTREAM:
        return False
    spec = emit.leaves[0].spec
    return (isinstance(spec, RowsWindow) and spec.reports_positions) or emit.reports_sessions


class Builder:
    """Builds the operators of one query; nested queries have builders of their own.

    `as_relation` builds the query so that its relation can be asked for at any instant, which differs where
    extents are reported by themselves or results restored.
    """

    def __init__(
        self, emit: Emit, choice: Choice, *, as_relation: bool = False, nested: bool = False
    ) -> None:
        self.emit = emit
        self.choice = choice
        self.restores = emit.word.restores and not as_relation
        self.reported = reports_alone(emit) and not as_relation
        self.lag = lag_of(emit)
        self.nested = nested
        self.internal = emit.is_internal
        #: of each stream, the columns by whose values groups may become final one by one
        self.sources: dict[str, list[str]] = {}
        for leaf in () if nested else emit.leaves:
            for stream in leaf.streams:
                names = stream.schema.names
                self.sources[stream.name] = [n for n in names if is_final_by_group(emit, stream, n)]
        self.leaves: list[Window] = []

    # The root.

    def root(self) -> Emission:
        """The whole query."""
        emit, word = self.emit, self.emit.meaning
        below = self.of(emit.input)
        if self.restores:
            self._refuse_merging(emit.input)
            return Restored(emit, below)
        if self.internal:
            below = self._staying(below)
        if self.reported:
            return Reports(emit, below)
        places = self._places()
        if word is StreamWord.RSTREAM:
            return Snapshots(emit, below, places)
        return Changes(emit, StreamWord.AUTO if word.restores else word, below, places)

    def _places(self) -> dict[str, str]:
        found: dict[str, str] = {}
        streams = {stream.name: stream for leaf in self.emit.leaves for stream in leaf.streams}
        for name, columns in self.sources.items():
            for column in columns:
                place = group_place(self.emit, streams[name], column)
                assert place is not None
                found[column] = self.emit.schema.names[place]
        return found

    def _staying(self, below: Operator) -> Operator:
        emit = self.emit
        nodes = list(_own_nodes(emit.input))
        outlasting = all(leaf.spec.internal or leaf.label.pattern is Pattern.MON for leaf in emit.leaves)
        grouped = [node for node in nodes if isinstance(node, Aggregate)]
        for node in nodes:
            late = isinstance(node, Window) and node.keeps_late_rows and emit.is_periodic
            late |= isinstance(node, Window) and len(node.origins) > 1
            if isinstance(node, Limit) or (isinstance(node, TableJoin) and node.is_retroactive) or late:
                raise refusal(f"{type(node).__name__} with INTERNAL windows")
        if grouped:
            plan = emit.input
            while isinstance(plan, Filter | Project):
                plan = plan.input
            if not outlasting or len(grouped) > 1 or plan is not grouped[0]:
                raise refusal(
                    "Aggregate below other operators, or over external windows, with INTERNAL windows"
                )
            return Staying(emit, below, Births.EXTENTS if emit.is_periodic else Births.VALUES, known=False)
        matched = any(isinstance(node, Exists) for node in nodes)
        if not outlasting and (matched or any(_external_str(leaf) for leaf in emit.leaves)):
            raise refusal("Exists or a count-based external window with INTERNAL windows")
        known = self.choice.strategy is not Strategy.NT and all(
            isinstance(leaf.spec, OwnInterval) for leaf in emit.leaves
        )
        return Staying(emit, below, Births.FIRST if matched else Births.RESULTS, known)

    def _refuse_merging(self, plan: Plan) -> None:
        """Restored results are told apart by their values: a projection above γ, δ or − must keep them."""
        if isinstance(plan, Project) and not plan.has_wattr:
            kept = {e.name for _, e in plan.outputs if hasattr(e, "name")}
            source = plan.input
            while isinstance(source, Filter):
                source = source.input
            needed = (
                [name for name, _ in source.keys]
                if isinstance(source, Aggregate)
                else plan.input.schema.names
            )
            if not set(needed) <= kept:
                raise refusal("Project that drops what tells results apart, with RESTORE")
        for child in () if isinstance(plan, Window) else plan.children:
            self._refuse_merging(child)

    # Relations.

    def of(self, plan: Plan) -> Operator:
        """The operator of a plan."""
        built = self._build(plan)
        if id(built) not in self.choice.labels:
            self.choice.label(built, plan.label)
        return built

    @singledispatchmethod
    def _build(self, plan: Plan) -> Operator:
        raise refusal(type(plan).__name__)

    @_build.register
    def _(self, plan: Window) -> Operator:
        self.leaves.append(plan)
        window = self._moving(plan)
        spec = window.spec
        ordered = isinstance(spec, RowsWindow) and not spec.arrival_order and _projects(window.input)
        below = self._stream(window.input, window, ordered)
        if isinstance(spec, RowsWindow):
            kind: type[Leaf] = ReportedRows if self.reported else Counted
        elif isinstance(spec, SlideByTupleWindow):
            kind = ByTuple
        elif isinstance(spec, SessionWindow):
            kind = ReportedSessions if self.reported else Sessions
        else:
            kind = Intervals
        window_operator = kind(window, below, 0 if self.restores else self.lag)
        window_operator.late_lag = self.lag
        leaf: Operator = window_operator
        self.choice.label(leaf, plan.label)
        if self.internal:
            leaf = Identified(window_operator, len(self.leaves), external=not plan.spec.internal)
            self.choice.label(leaf, plan.label)
        # restored results are told apart by when they end, so their windows say so from the start
        told = self.choice.strategy is Strategy.NT and not self.restores
        if told and plan.label.pattern in (Pattern.WKS, Pattern.WK):
            leaf = NegativeRows(leaf)
        return leaf

    def _moving(self, plan: Window) -> Window:
        """RESTORE takes SLIDE for a refresh period of a window that moves at every instant."""
        return replace(plan, spec=replace(plan.spec, slide=None)) if self.restores else plan  # type: ignore[call-arg]

    @_build.register
    def _(self, plan: Filter) -> Operator:
        return Filtered(plan, self._reading([plan.predicate], self.of(plan.input)))

    @_build.register
    def _(self, plan: Project) -> Operator:
        return Projected(plan, self._reading([e for _, e in plan.outputs], self.of(plan.input)))

    @_build.register
    def _(self, plan: Union) -> Operator:
        return United(plan, [self.of(part) for part in plan.inputs])

    @_build.register
    def _(self, plan: Distinct) -> Operator:
        return distinct(self.of(plan.input), self.choice, uniting=self.restores)

    @_build.register
    def _(self, plan: Aggregate) -> Operator:
        ordered = any(function_of(call).ordered for _, call in plan.aggregates)
        if ordered and not plan.input.has_wattr:
            raise refusal("Aggregate that depends on the order of rows which have lost their instants")
        reads = [key for _, key in plan.keys]
        reads += [part for _, call in plan.aggregates for part in (*call.args, call.where)]
        return grouped(plan, self._reading(reads, self.of(plan.input)), self.choice, self._keys_of(plan))

    def _keys_of(self, plan: Aggregate) -> dict[str, int]:
        """The key that holds the source, for each column by which groups are final by themselves."""
        streams = {stream.name: stream for leaf in plan.leaves for stream in leaf.streams}
        found: dict[str, int] = {}
        for name, columns in self.sources.items():
            for column in columns if name in streams else ():
                for place, key in enumerate(plan.keys):
                    single = Emit(replace(plan, keys=(key,), aggregates=()))
                    if is_final_by_group(single, streams[name], column):
                        found.setdefault(column, place)
        return found

    @_build.register
    def _(self, plan: Join) -> Operator:
        _refuse_bounds(plan.predicate)
        below = [self.of(part) for part in plan.inputs]
        return Joined(below, plan.predicate, [part.schema.names for part in plan.inputs], self.choice)

    @_build.register
    def _(self, plan: TableJoin) -> Operator:
        _refuse_bounds(plan.predicate)
        below = self.of(plan.input)
        if not plan.is_retroactive:
            return LookedUp(plan, below, self._reach(plan))
        table = TablePieces(plan.table, 0 if self.restores or self.reported else self.lag)
        self.choice.label(table, plan.table.label)
        names = [plan.input.schema.names, plan.table.schema.names]
        return Joined([below, table], plan.predicate, names, self.choice)

    def _reach(self, plan: Plan) -> int | None:
        """How much older than the clock a row can be when it comes; None if there is no limit."""
        leaves = plan.leaves
        told = self.choice.strategy is not Strategy.NT and not any(leaf.keeps_late_rows for leaf in leaves)
        if self.restores or not told or not all(isinstance(leaf.spec, OwnInterval) for leaf in leaves):
            return None
        return max((leaf.spec.grid.period if leaf.spec.grid else 0) for leaf in leaves) + 1

    @_build.register
    def _(self, plan: Except) -> Operator:
        return Difference(plan, self.of(plan.left), self.of(plan.right))

    @_build.register
    def _(self, plan: Exists) -> Operator:
        _refuse_bounds(plan.predicate)
        left, right = self.of(plan.left), self.of(plan.right)
        return Matched(plan, left, right, self.choice, uniting=self.restores)

    @_build.register
    def _(self, plan: Limit) -> Operator:
        return Limited(plan, self._reading([e for e, _ in plan.order], self.of(plan.input)))

    def _reading(self, expressions: Sequence[Expression], below: Operator) -> Operator:
        """With the bounds of extents, if any expression reads them."""
        if not any(isinstance(part, WindowBound) for e in expressions for part in e.walk()):
            return below
        return Extents(below, self.emit.leaves[0].spec, self.reported)

    # Streams below a window.

    def _stream(self, plan: Plan, window: Window, ordered: bool) -> Operator:
        match plan:
            case Scan():
                return Scanned(plan, window, ordered, self.sources.get(plan.stream.name, ()))
            case Subquery(query=inner):
                inside = Builder(inner, Choice(self.choice.strategy, self.choice.buckets), nested=True).root()
                return NestedRows(plan, inside, int(inner.is_periodic and bool(lag_of(inner))), ordered)
            case Filter():
                return Filtered(plan, self._stream(plan.input, window, ordered))
            case Project():
                return Projected(plan, self._stream(plan.input, window, ordered))
            case Union():
                return United(plan, [self._stream(part, window, ordered) for part in plan.inputs])
        raise refusal(f"{type(plan).__name__} below a window")


def _own_nodes(plan: Plan) -> Any:
    """The nodes of this query, down to its windows."""
    yield plan
    for child in () if isinstance(plan, Window) else plan.children:
        yield from _own_nodes(child)


def _projects(plan: Plan) -> bool:
    """Whether columns are changed between the stream and its window."""
    if isinstance(plan, Scan | Subquery):
        return isinstance(plan, Scan) and bool(plan.pseudo)
    return isinstance(plan, Project) or any(_projects(child) for child in plan.children)


def _external_str(leaf: Window) -> bool:
    return not leaf.spec.internal and leaf.label.pattern is Pattern.STR


def _refuse_bounds(predicate: Expression) -> None:
    if any(isinstance(part, WindowBound) for part in predicate.walk()):
        raise refusal("window_start and window_end in the condition of a join")


def refusal(what: str) -> QueryError:
    """What cannot be run yet."""
    return QueryError(
        f"kernels do not run {what} yet", code="unsupported", hint="the reference executor runs every plan"
    )
