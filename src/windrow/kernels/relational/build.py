"""From a plan to operators: one function per node, found by its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatchmethod
from typing import Any

from windrow.algebra import Emit, Expression, Plan, Scan, StreamWord, Subquery, Window, operators as ops
from windrow.algebra.aggregates import Size, function_of
from windrow.algebra.finality import group_place, is_expected_by_group, is_final_by_group
from windrow.algebra.operators import Over
from windrow.errors import QueryError
from windrow.kernels.aggregates.measures import PLACE
from windrow.kernels.columnar.expressions import can_fail
from windrow.kernels.relational import (
    emission,
    expiry_layouts as layouts,
    negation,
    ranks,
    signed_rows,
    tables,
)
from windrow.kernels.relational.aggregate import row_panes, totals
from windrow.kernels.relational.distinct import distinct
from windrow.kernels.relational.internal import build as outliving, operators as internal
from windrow.kernels.relational.join import multiway, partners
from windrow.kernels.relational.operator import Filtered, Operator, Projected, Stateless, United, Unnested
from windrow.kernels.relational.windows import leaf as windowed, rows as row_windows
from windrow.windows import OwnInterval, Pattern, ranges, rows, session, slide_by_tuple


def lag_of(emit: Emit) -> int:
    """1 where the answer at E is about the instant before E: half-open extents and ended sessions."""
    if emit.reports_sessions:
        return int(not getattr(emit.leaves[0].spec, "inclusive", False))
    if emit.word.restores:
        return 1
    return int(all(leaf.spec.grid is not None for leaf in emit.leaves))


def reports_alone(emit: Emit) -> bool:
    """Whether extents are reported by themselves: counted rows and sessions, as RSTREAM of one window."""
    if len(emit.leaves) > 1 or emit.is_internal or emit.meaning is not StreamWord.RSTREAM:
        return False
    spec = emit.leaves[0].spec
    return (isinstance(spec, rows.RowsWindow) and spec.reports_positions) or emit.reports_sessions


class Builder:
    """Builds the operators of one query; nested queries have builders of their own.

    `as_relation` builds the query so that its relation can be asked for at any instant, which differs where
    extents are reported by themselves or results restored.
    """

    def __init__(
        self,
        emit: Emit,
        choice: layouts.Choice,
        *,
        as_relation: bool = False,
        nested: bool = False,
        by_group: bool | None = True,
    ) -> None:
        self.emit = emit
        self.choice = choice
        self.restores = emit.word.restores and not as_relation
        #: the operators that tell of ends themselves
        self.telling = partners.telling(emit, choice.options)
        self.reported = reports_alone(emit) and not as_relation
        self.lag = lag_of(emit)
        self.nested = nested
        self.internal = emit.is_internal
        #: whether the rows of windows are to tell who they are
        self.identifies = emit.is_internal
        #: of each stream, the columns by whose values groups may become final one by one
        self.sources: dict[str, list[str]] = {}
        final = is_final_by_group if by_group else is_expected_by_group
        for leaf in () if nested else emit.leaves:
            for stream in leaf.streams:
                names = stream.schema.names
                self.sources[stream.name] = [n for n in names if final(emit, stream, n)]
        #: whether groups may become final one by one, each by the clock of its source
        self.by_source = any(self.sources.values())
        self.leaves: list[Window] = []
        #: whether pieces are to tell where in its window each row is
        self.placing = False
        #: below a join whose windows pass on rows before they begin, or number those that leave unpredictably
        self.ahead = self.numbers = False
        #: whether rows that stay for ever are cut by extents before every window has told its last endpoint
        self.needs_last_end = False
        #: the operator of each node, as it was built
        self.built: dict[int, Operator] = {}
        #: the same of streams, below windows, and of tables
        self.sources_built: dict[int, Operator] = {}

    # The root.

    def root(self) -> emission.Emission:
        """The whole query."""
        root = self._root()
        root.needs_last_end = self.needs_last_end
        return root

    def _root(self) -> emission.Emission:
        emit, word = self.emit, self.emit.meaning
        below = self._staying() if self.internal and not self.restores else self.of(emit.input)
        if self.restores:
            below = emission.ByCount(below, self.choice.buckets) if emit.restores_by_value else below
            return emission.Restored(emit, below)
        if self.reported:
            return emission.Reports(emit, below)
        places = self._places()
        if word is StreamWord.RSTREAM:
            return emission.Snapshots(emit, below, places, self.choice.layout(below))
        word = StreamWord.AUTO if word.restores else word
        return emission.Changes(emit, word, below, places, self.choice.ending(below))

    def _places(self) -> dict[str, str]:
        found: dict[str, str] = {}
        streams = {stream.name: stream for leaf in self.emit.leaves for stream in leaf.streams}
        for name, columns in self.sources.items():
            for column in columns:
                place = group_place(self.emit, streams[name], column)
                assert place is not None
                found[column] = self.emit.schema.names[place]
        return found

    def _staying(self) -> Operator:
        """Results over INTERNAL windows: rows that meet, or one γ on top, are told by their pieces alone."""
        emit = self.emit
        nodes = list(emit.input.own_nodes)
        plan = _below_rows(emit.input)
        grouped = isinstance(plan, ops.Aggregate)
        outlasting = all(leaf.spec.internal or leaf.label.pattern is Pattern.MON for leaf in emit.leaves)
        above = [node for node in nodes if node is not plan] if grouped else nodes
        late = emit.is_periodic and any(leaf.keeps_late_rows for leaf in emit.leaves)
        if late or not all(map(_is_told_by_pieces, above)):
            return self._outliving()
        matched = any(isinstance(node, ops.Exists) for node in nodes)
        external = [leaf for leaf in emit.leaves if not leaf.spec.internal]
        leaving = any(leaf.label.pattern is Pattern.STR for leaf in external)
        if not outlasting and (grouped or matched or leaving):
            return self._outliving()
        births = internal.Births.FIRST if matched else internal.Births.RESULTS
        if grouped:
            births = internal.Births.EXTENTS if emit.is_periodic else internal.Births.VALUES
        known = not self._is_nt and all(isinstance(leaf.spec, OwnInterval) for leaf in emit.leaves)
        return internal.Staying(emit, self.of(emit.input), births, known and not grouped, self.choice.buckets)

    def _outliving(self) -> Operator:
        def pieces(plan: Plan) -> Operator:
            self.identifies = isinstance(plan, Window)
            built = self.of(plan)
            self.identifies = True
            return built

        builder = outliving.OutlivingBuilder(self.emit, self.choice, self.lag, pieces)
        root = builder.root()
        self.built |= builder.built
        return root

    # Relations.

    def of(self, plan: Plan) -> Operator:
        """The operator of a plan."""
        built = self._build(plan)
        if id(built) not in self.choice.labels:
            self.choice.label(built, plan.label)
        for below in built.inputs:
            self.choice.take_over(below, built)
            if isinstance(plan, ops.Filter | ops.Project | ops.Union | ops.Unnest):
                self.choice.pass_on(below, built)
        self.built[id(plan)] = built
        return built

    def _build(self, plan: Plan) -> Operator:
        match plan:
            case ops.Filter():
                return Filtered(plan, self._reading([plan.predicate], plan, self.of(plan.input)))
            case ops.Project():
                return Projected(plan, self._reading([e for _, e in plan.outputs], plan, self.of(plan.input)))
            case ops.Union():
                return United(plan, [self.of(part) for part in plan.inputs])
            case ops.Unnest():
                return Unnested(plan, self.of(plan.input))
            case ops.Distinct():
                below = self.of(plan.input)
                return distinct(below, self.choice, uniting=self.restores, tells=self._tells(plan))
            case ops.Except():
                left, right = self.of(plan.left), self.of(plan.right)
                return negation.Difference(plan, left, right, self.choice, uniting=self.restores)
            case ops.Limit():
                order = [expression for expression, _ in plan.order]
                return ranks.Limited(plan, self._reading(order, plan, self.of(plan.input)))
            case ops.Rank():
                read = [*plan.partition, *(expression for expression, _ in plan.order)]
                return ranks.Ranked(plan, self._reading(read, plan, self.of(plan.input)))
            case Over():
                return ranks.Framed(plan, self.of(plan.input))
        return self._composed(plan)

    @singledispatchmethod
    def _composed(self, plan: Plan) -> Operator:
        raise refusal(type(plan).__name__)

    @_composed.register
    def _(self, plan: Window) -> Operator:
        self.leaves.append(plan)
        # RESTORE takes SLIDE for a refresh period of a window that moves at every instant
        window = replace(plan, spec=plan.spec.moving()) if self.restores else plan
        spec = window.spec
        ordered = isinstance(spec, rows.RowsWindow) and not spec.arrival_order and _projects(window.input)
        below = self._stream(window.input, window, ordered)
        leaves_unforeseen = self.numbers and not isinstance(spec, OwnInterval)
        if self.identifies or leaves_unforeseen:
            below = windowed.NumberedRows(below)
        if isinstance(spec, rows.RowsWindow):
            kind: type[windowed.Leaf] = (
                row_windows.ReportedRows if self.reported else row_windows.RowsNumbering
            )
        elif isinstance(spec, slide_by_tuple.SlideByTupleWindow):
            kind = row_windows.ByTuple
        elif isinstance(spec, session.SessionWindow):
            kind = row_windows.ReportedSessions if self.reported else row_windows.Sessions
        else:
            kind = windowed.Intervals
        entered = kind(window, below, 0 if self.restores else self.lag)
        entered.late_lag, entered.ahead = self.lag, self.ahead
        if self.placing:
            entered.carry(PLACE, row_windows.POSITION if spec.reports_positions else signed_rows.TS)
        leaf: Operator = entered
        self.choice.label(leaf, plan.label)
        if leaves_unforeseen:
            windowed.tell_apart(entered, len(self.leaves))
        if self.identifies:
            leaf = windowed.Identified(entered, len(self.leaves), external=not plan.spec.internal)
            self.choice.label(leaf, plan.label)
        # restored results are told apart by when they end, so their windows say so from the start
        told = self._is_nt and not self.restores
        if told and plan.label.pattern in (Pattern.WKS, Pattern.WK):
            leaf = windowed.NegativeRows(leaf)
        return leaf

    @_composed.register
    def _(self, plan: ops.Aggregate) -> Operator:
        ordered = any(function_of(call).ordered for _, call in plan.aggregates)
        if ordered and not plan.input.has_wattr:
            raise refusal("Aggregate that depends on the order of rows which have lost their instants")
        placing = self.placing = _asks_for_places(plan)
        below = self.of(plan.input)
        self.placing = False
        reading = self._reading(plan.reads, plan, below)
        found = totals.grouped(plan, reading, self.choice, self._keys_of(plan))
        leaf, between = _chain(below)
        if reading is below and isinstance(leaf, row_windows.ByTuple) and self._is_binned(plan):
            return row_panes.Binned(plan, leaf, between, self.choice)
        if reading is below and isinstance(leaf, row_windows.Numbering) and placing and self._is_paned(plan):
            return row_panes.RowPanes(plan, leaf, between, careful=any(map(can_fail, _read(plan))))
        return found

    def _is_binned(self, plan: ops.Aggregate) -> bool:
        """Whether states by value of the attribute stand for the rows of a slide-by-tuple window."""
        spec: Any = plan.leaves[0].spec
        if spec.partition_by or spec.range is None or not self._is_in_states(plan):
            return False
        listed = any(function_of(call).size is Size.LISTS for _, call in plan.aggregates)
        return not listed and not any(map(can_fail, _read(plan)))

    def _is_paned(self, plan: ops.Aggregate) -> bool:
        """Whether states of panes stand for the rows of a window that is counted in rows."""
        spec = plan.leaves[0].spec
        whole = spec.reports_positions and not getattr(spec, "partition_by", ())
        return whole and self._is_in_states(plan)

    def _is_in_states(self, plan: ops.Aggregate) -> bool:
        """Whether states may stand for the rows of a window that rows move."""
        ordered = any(function_of(call).ordered for _, call in plan.aggregates)
        turns = ordered and plan.leaves[0].spec.counts_arrivals
        plain = not (self.internal or self.restores or turns or self.by_source)
        return self.choice.options.bins and plain

    def _keys_of(self, plan: ops.Aggregate) -> dict[str, int]:
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

    @_composed.register
    def _(self, plan: ops.Join) -> Operator:
        _refuse_bounds(plan.predicate)
        names = [part.schema.names for part in plan.inputs]
        self.ahead, self.numbers = self._is_ahead(plan), self._is_catalogued(plan)
        ahead, catalogued = self.ahead, self.numbers
        below = [self.of(part) for part in plan.inputs]
        self.ahead = self.numbers = False
        if catalogued:
            return multiway.Catalogued(below, plan.predicate, names, self.choice)
        tells = self._tells(plan) and not ahead
        how = {"ahead": ahead, "tells": tells, "by_source": self.by_source}
        joined = multiway.Joined(below, plan.predicate, names, self.choice, **how)
        if not ahead:
            return joined
        self.choice.label(joined, plan.label)
        return emission.HeldRows(joined)

    def _tells(self, plan: Plan) -> bool:
        return id(plan) in self.telling and not self.by_source

    def _is_ahead(self, plan: ops.Join) -> bool:
        """Whether rows are joined as they come although they begin later. Bounds are not known so early: they
        are those of the report."""
        eager = self.choice.options.evaluation is layouts.Evaluation.EAGER and self.emit.is_periodic
        bounds = any(part.reads_window_bounds for part in plan.inputs)
        if not eager or bounds or self.internal or self.restores or self.by_source or self._is_nt:
            return False
        return all(_own_interval(part) for part in plan.inputs)

    @property
    def _is_nt(self) -> bool:
        return self.choice.strategy is layouts.Strategy.NT

    def _is_catalogued(self, plan: ops.Join) -> bool:
        """Whether results are found by the numbers of the rows that leave count-based windows.

        Where only changes read them, to find them again takes half the time, and keeps no results.
        """
        forced = self.choice.options.counted
        wanted = forced is layouts.Counted.CATALOGUES or (forced is None and id(plan) not in self.telling)
        if not wanted or self.internal or self.restores or self.reported or self._is_nt:
            return False
        known = [_own_interval(part) for part in plan.inputs]
        return None not in known and not all(known)

    @_composed.register
    def _(self, plan: ops.TableJoin) -> Operator:
        _refuse_bounds(plan.predicate)
        below = self.of(plan.input)
        if not plan.is_retroactive:
            return tables.LookedUp(plan, below, self._reach(plan))
        table = tables.TablePieces(plan.table, 0 if self.restores or self.reported else self.lag)
        self.choice.label(table, plan.table.label)
        self.sources_built[id(plan.table)] = table
        names = [plan.input.schema.names, plan.table.schema.names]
        return multiway.Joined([below, table], plan.predicate, names, self.choice)

    def _reach(self, plan: Plan) -> int | None:
        """How much older than the clock a row can be when it comes; None if there is no limit."""
        leaves = plan.leaves
        late = any(leaf.keeps_late_rows for leaf in leaves)
        # a row comes again in every extent whose bounds are read
        again = self.restores or self._is_nt or late or plan.reads_window_bounds
        if again or not all(isinstance(leaf.spec, OwnInterval) for leaf in leaves):
            return None
        specs = [leaf.spec for leaf in leaves]
        return max((s.grid.period if s.grid else 0) + getattr(s, "lag", 0) for s in specs) + 1

    @_composed.register
    def _(self, plan: ops.Exists) -> Operator:
        _refuse_bounds(plan.predicate)
        left, right = self.of(plan.left), self.of(plan.right)
        return negation.Matched(
            plan,
            left,
            right,
            self.choice,
            uniting=self.restores,
            lapses=partners.lapses(self.choice.options) and not self.by_source,
            tells=self._tells(plan) and self.choice.options.tables is not layouts.Tables.LOOPS,
        )

    def _reading(self, expressions: Sequence[Expression], plan: Plan, below: Operator) -> Operator:
        """With the bounds of the extents of a plan's own windows, if any expression reads them."""
        if not any(e.reads_window_bounds for e in expressions):
            return below
        spec = plan.leaves[0].spec
        self.needs_last_end |= not isinstance(spec, ranges.RangeWindow) and plan.leaves != self.emit.leaves
        found = row_windows.Extents(below, spec, self.reported)
        if not self.choice.known(below):
            self.choice.mixed.add(id(found))
        return found

    # Streams below a window.

    def _stream(self, plan: Plan, window: Window, ordered: bool) -> Operator:
        built = self._streamed(plan, window, ordered)
        self.sources_built[id(plan)] = built
        return built

    def _streamed(self, plan: Plan, window: Window, ordered: bool) -> Operator:
        match plan:
            case Scan():
                return windowed.Scanned(plan, window, ordered, self.sources.get(plan.stream.name, ()))
            case Subquery(query=inner):
                builder = Builder(inner, layouts.Choice(self.choice.options), nested=True)
                inside = builder.root()
                self.built |= {**builder.built, id(inner): inside}
                self.sources_built |= builder.sources_built
                before = int(inner.is_periodic and bool(lag_of(inner)))
                return windowed.NestedRows(plan, inside, before, ordered)
            case ops.Filter():
                return Filtered(plan, self._stream(plan.input, window, ordered))
            case ops.Project():
                return Projected(plan, self._stream(plan.input, window, ordered))
            case ops.Union():
                return United(plan, [self._stream(part, window, ordered) for part in plan.inputs])
        raise refusal(f"{type(plan).__name__} below a window")


def _below_rows(plan: Plan) -> Plan:
    """What is below operators that look at single rows."""
    while isinstance(plan, ops.Filter | ops.Project):
        plan = plan.input
    return plan


def window_of(plan: Plan) -> Window | None:
    """The one window below operators that look at single rows."""
    below = _below_rows(plan)
    return below if isinstance(below, Window) else None


def _own_interval(plan: Plan) -> bool | None:
    """Whether the rows of one window say themselves when they leave; None if there is no such window."""
    window = window_of(plan)
    return None if window is None else isinstance(window.spec, OwnInterval)


def _chain(operator: Operator) -> tuple[Operator, list[Stateless]]:
    """What is below operators that look at single rows, and these, the lowest first."""
    between: list[Stateless] = []
    while isinstance(operator, Filtered | Projected):
        between.insert(0, operator)
        (operator,) = operator.inputs
    return operator, between


def _asks_for_places(plan: ops.Aggregate) -> bool:
    """Whether states are of the places of rows: lists go by sub-windows, and are not taken of joins; panes
    of rows are cut from the one window there is."""
    sizes = {function_of(call).size for _, call in plan.aggregates}
    window = window_of(plan.input)
    in_panes = window is not None and window.spec.reports_positions
    return Size.LISTS in sizes or (in_panes and bool(sizes & {Size.HOLISTIC, Size.SKETCH}))


def _read(plan: ops.Aggregate) -> list[Expression]:
    """What is computed of single rows between a window and its γ."""
    reads = [*plan.reads]
    below: Plan = plan.input
    while isinstance(below, ops.Filter | ops.Project):
        reads += [below.predicate] if isinstance(below, ops.Filter) else [e for _, e in below.outputs]
        below = below.input
    return reads


def _projects(plan: Plan) -> bool:
    """Whether columns are changed between the stream and its window."""
    if isinstance(plan, Scan | Subquery):
        return isinstance(plan, Scan) and bool(plan.pseudo)
    return isinstance(plan, ops.Project) or any(_projects(child) for child in plan.children)


def _is_told_by_pieces(plan: Plan) -> bool:
    """Whether how long a result stays follows from the pieces of its rows."""
    if isinstance(plan, ops.Exists):
        return not plan.negated
    if isinstance(plan, ops.TableJoin):
        return not plan.is_retroactive
    return isinstance(plan, Window | ops.Filter | ops.Project | ops.Union | ops.Join)


def _refuse_bounds(predicate: Expression) -> None:
    if predicate.reads_window_bounds:
        raise refusal("window_start and window_end in the condition of a join")


def refusal(what: str) -> QueryError:
    """What cannot be run yet."""
    return QueryError(
        f"kernels do not run {what} yet", code="unsupported", hint="the reference executor runs every plan"
    )
