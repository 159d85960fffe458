"""From a plan over INTERNAL windows to operators over runs: what stays needs more than pieces tell.

INTERNAL windows in any plan: results from the runs they are made of, and only what is new about them.

In each step the plan is computed again over the runs that still matter. A result is there from the first
instant at which its parts meet until they are let go of. Its values and what it is made of tell who it is, so
that one that comes again is the same one. What has been said of it is kept: a step gives only what differs.

Card: results computed again
    requirements  runs of windows, tables, groups
    time          the plan over all runs that still matter
    space         these runs; what was said of results that may come again, or leave at a time not yet known
    source        Golab's thesis, 3.3.2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra import Emit, Plan, Window, operators as ops
from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import emission, expiry_layouts, signed_rows as signed, tables
from windrow.kernels.relational.internal import operators as over_runs
from windrow.kernels.relational.join.multiway import Joined
from windrow.kernels.relational.operator import Filtered, Operator, Projected, Step, United, composed, part
from windrow.kernels.relational.signed_rows import FOREVER, INT, SIGNED, VE, VS, Columns, N
from windrow.kernels.relational.windows.leaf import NegativeRows
from windrow.kernels.state import State
from windrow.windows.spec import OwnInterval

RUNS, SAID, SLIDES, CHANGED, SINCE = "runs", "said", "slides", "changed", "since"
#: what is kept of a result: what was said of it, and what is sure
LANE = "#lane"
GIVEN, SURE, HOPED = 0, 1, 2
MOVED: Columns = {"#at": INT}


class Outliving(Operator):
    """All results of a plan over INTERNAL windows."""

    name = "results that stay"

    def __init__(self, emit: Emit, results: Operator, sources: Sequence[over_runs.Runs]) -> None:
        self.results = results
        self.sources = tuple(sources)
        self.inputs = tuple(source.below for source in sources)
        self.periodic = emit.is_periodic
        self.grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]
        self.values: Columns = {name: results.columns[name] for name in emit.input.schema.names}
        ids = sorted(name for name in results.columns if name.startswith(signed.ID))
        self.who: Columns = self.values | {name: results.columns[name] for name in ids}
        self.said: Columns = self.who | {VS: INT, VE: INT, LANE: pl.Int8()}
        self.columns = self.values | SIGNED

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop = step.slice.stop
        runs = {
            source.number: source.collected(
                expiry_layouts.frame_of(state.of(f"{RUNS}.{source.number}"), source.kept),
                new.select(name for name in new.columns if name in source.kept),
            )
            for source, new in zip(self.sources, inputs, strict=True)
        }
        shown = {source.number: source.shown(runs[source.number], stop) for source in self.sources}
        moment = self._moment(state, step)
        looked: dict[str, State] = {}
        found = over_runs.let_go(self._computed(self.results, "", state, shown, moment, looked))
        said = expiry_layouts.frame_of(state.of(SAID), self.said)
        pieces, said, unsettled = self._differences(said, self._born(found, moment), stop)
        since = min([self._since(shown, stop), *moment.held])
        kept = {number: frame.filter(pl.col(VE) > since) for number, frame in runs.items()}
        said = said.filter(unsettled | self._may_come_again(said, kept, since))
        slides = emission.moved_by_rows(moment)
        chunks = {f"{RUNS}.{number}": expiry_layouts.chunks_of(frame) for number, frame in kept.items()}
        chunks |= {
            SAID: expiry_layouts.chunks_of(said),
            CHANGED: self._changes(expiry_layouts.frame_of(state.of(CHANGED), MOVED), inputs, step),
            SLIDES: expiry_layouts.chunks_of(
                pl.DataFrame({"#at": slides[slides >= since]}, schema=dict(MOVED))
            ),
        }
        tables = composed(looked)
        return State({**chunks, **tables.chunks}, {SINCE: since, **tables.meta}), pieces

    def _changes(
        self, waiting: pl.DataFrame, inputs: Sequence[pl.DataFrame], step: Step
    ) -> expiry_layouts.Chunks:
        """The first report after a table changed is made whether or not windows have rows; those to come."""
        tables = [
            new[VS]
            for source, new in zip(self.sources, inputs, strict=True)
            if isinstance(source, over_runs.TableRuns)
        ]
        if not tables or not self.periodic:
            return ()
        reports = emission.first_report(self.grids, step, pl.concat(tables).unique().to_numpy())
        at = np.unique(np.concatenate([waiting["#at"].to_numpy(), reports]))
        due = pl.Series(at[at < step.slice.stop], dtype=pl.Int64)
        nothing = pl.repeat(0, len(due), dtype=pl.Int64, eager=True)
        step.entered.append(pl.DataFrame({VS: due, VE: due, N: nothing}))
        return expiry_layouts.chunks_of(pl.DataFrame({"#at": at[at >= step.slice.stop]}, schema=dict(MOVED)))

    def _moment(self, state: State, step: Step) -> over_runs.Moment:
        known: dict[str, Any] = {field.name: getattr(step, field.name) for field in fields(Step)}
        moved = expiry_layouts.frame_of(state.of(SLIDES), MOVED)["#at"].to_numpy()
        known["slides"] = [*step.slides, moved]
        until = step.slice.stop
        if step.slice.ended and self.periodic:
            until = min(until, emission.last_report(self.grids, step) + 1)
        return over_runs.Moment(**known, since=state.meta.get(SINCE, -FOREVER), until_report=until)

    def _computed(
        self,
        operator: Operator,
        path: str,
        state: State,
        shown: dict[str, pl.DataFrame],
        moment: over_runs.Moment,
        looked: dict[str, State],
    ) -> pl.DataFrame:
        """The result of an operator over all runs; only tables remember what they were."""
        if isinstance(operator, over_runs.Runs):
            return shown[operator.number]
        inputs = [
            self._computed(below, f"{path}.{place}", state, shown, moment, looked)
            for place, below in enumerate(operator.inputs)
        ]
        if not isinstance(operator, tables.LookedUp):
            return operator.advance(State(), inputs, moment)[1]
        looked[path], found = operator.advance(part(state, path), inputs, moment)
        return found

    def _born(self, found: pl.DataFrame, moment: over_runs.Moment) -> pl.DataFrame:
        """When each result of the step is there; of a periodic plan, from a reporting instant on."""
        found = found.filter(pl.col(VS) < moment.slice.stop)
        if self.periodic and found.height:
            limit = FOREVER // 2
            at = np.clip(np.maximum(found[VS].to_numpy(), moment.since), -limit, limit)
            at = emission.first_report(self.grids, moment, at)
            found = found.with_columns(pl.Series(VS, at, dtype=pl.Int64))
            found = found.filter((pl.col(VS) < pl.col(VE)) & (pl.col(VS) < moment.until_report))
        hoped = (pl.col(over_runs.MAYBE) > 0) & (pl.col(over_runs.LEAST) > moment.slice.stop)
        born = found.with_columns(
            pl.max_horizontal(VS, pl.lit(moment.slice.start, pl.Int64)).alias(VS),
            pl.col(over_runs.LEAST).alias(VE),
            pl.when(hoped).then(HOPED).otherwise(SURE).cast(pl.Int8).alias(LANE),
        )
        return born.filter(pl.col(VS) < pl.col(VE)).select(list(self.said))

    def _differences(
        self, said: pl.DataFrame, born: pl.DataFrame, stop: int
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.Series]:
        """The pieces to give, what is then said of each result, and of which more is to be said later."""
        rows = signed.together([said, born], self.said)
        if not rows.height:
            return signed.blank(self.columns), signed.blank(self.said), pl.Series([], dtype=pl.Boolean)
        code, lane = signed.codes(rows, list(self.who)), rows[LANE].to_numpy()
        at = np.concatenate([rows[VS].to_numpy(), rows[VE].to_numpy()])
        turns = [np.where(lane == one, 1, 0) for one in (GIVEN, SURE, HOPED)]
        lanes = [np.concatenate([turn, -turn]) for turn in turns]
        swept = signed.sweep(np.concatenate([code, code]), at, lanes)
        given, sure, hoped = (total > 0 for total in swept.totals)
        until, there = swept.until(), sure | hoped
        inside, begins = swept.at < FOREVER, swept.at < stop
        told = inside & begins & (given != there)
        signs = np.where(there[told], 1, -1)
        pieces = signed.pieces(
            picked(rows, swept.code[told]), self.columns, swept.at[told], until[told], signs
        )
        more = np.isin(swept.code, swept.code[inside & ((~begins & (given != there)) | hoped)])
        after, waiting = [], []
        for lane_number, holds in ((GIVEN, np.where(begins, there, given)), (SURE, sure)):
            kept = inside & holds & (until > stop)
            begin = np.maximum(swept.at[kept], min(stop, FOREVER))
            spans = signed.spanning(picked(rows, swept.code[kept]), begin, until[kept])
            after.append(spans.with_columns(pl.lit(lane_number, pl.Int8).alias(LANE)).select(list(self.said)))
            waiting.append(more[kept])
        return pieces, pl.concat(after), pl.Series(np.concatenate(waiting), dtype=pl.Boolean)

    def _since(self, shown: dict[str, pl.DataFrame], stop: int) -> int:
        """From when on instants are looked at again: results of rows that may leave at any time are there."""
        since = stop
        for source in self.sources:
            frame = shown[source.number]
            begins = frame.filter((pl.col(source.open) > 0) & (pl.col(VE) > stop))[VS].to_numpy()
            since = min(since, int(begins.min(initial=FOREVER)))
        return since

    def _may_come_again(self, said: pl.DataFrame, kept: dict[str, pl.DataFrame], since: int) -> pl.Series:
        found = pl.repeat(True, said.height, dtype=pl.Boolean, eager=True)
        for source in self.sources:
            found &= source.has_all(said, kept[source.number], since)
        return found


class OutlivingBuilder:
    """Builds the operators of one query. `pieces` gives the operator of a window, whose rows have numbers, or
    that of a plan as it would be with external windows."""

    def __init__(
        self, emit: Emit, choice: expiry_layouts.Choice, lag: int, pieces: Callable[[Plan], Operator]
    ) -> None:
        self.emit = emit
        self.choice = choice
        self.lag = lag
        self.pieces = pieces
        self.sources: list[over_runs.Runs] = []
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

    def _source(self, runs: over_runs.Runs) -> over_runs.Runs:
        self.sources.append(runs)
        return runs

    def _build(self, plan: Plan) -> Operator:
        match plan:
            case Window():
                return self._window(plan)
            case ops.Filter():
                return Filtered(plan, self.of(plan.input))
            case ops.Project():
                return Projected(plan, self.of(plan.input))
            case ops.Union():
                number = self._number()
                below = (over_runs.Branch(self.of(part), number, n) for n, part in enumerate(plan.inputs, 1))
                return United(plan, list(below))
            case ops.Join():
                parts = [self.of(part) for part in plan.inputs]
                return Joined(parts, plan.predicate, [part.schema.names for part in plan.inputs], self.choice)
            case ops.TableJoin():
                return self._table_join(plan)
            case ops.Exists():
                return self._exists(plan)
            case ops.Distinct() | ops.Except() | ops.Limit():
                stamped = isinstance(plan, ops.Limit)
                below_ = self.pieces(plan)
                return self._source(
                    over_runs.ValueRuns(below_, self._number(), plan.schema.names, stamped=stamped)
                )
            case ops.Aggregate():
                return self._aggregate(plan)
        raise TypeError(f"no operator over runs is defined for {type(plan).__name__}")

    def _window(self, plan: Window) -> Operator:
        leaf = self.pieces(plan)
        below = leaf.inputs[0] if isinstance(leaf, NegativeRows) else leaf
        known = isinstance(plan.spec, OwnInterval)
        internal = plan.spec.internal
        return self._source(
            over_runs.WindowRuns(
                below, self._number(), plan.schema.names, internal=internal, ends_known=known
            )
        )

    def _table_join(self, plan: ops.TableJoin) -> Operator:
        below = self.of(plan.input)
        names = [plan.input.schema.names, plan.table.schema.names]
        if not plan.is_retroactive:
            return over_runs.Copies(tables.LookedUp(plan, below), self._number(), names[1])
        table = self._source(
            over_runs.TableRuns(tables.TablePieces(plan.table, self.lag), self._number(), names[1])
        )
        return Joined([below, table], plan.predicate, names, self.choice)

    def _exists(self, plan: ops.Exists) -> Operator:
        number = self._number()
        left, right = self.of(plan.left), self.of(plan.right)
        names = [plan.left.schema.names, plan.right.schema.names]
        pairs = Joined([over_runs.Stamped(left), right], plan.predicate, names, self.choice)
        if plan.negated:
            return over_runs.Unmatched(left, pairs, number)
        return over_runs.Witnessed(pairs, left, number, internal=plan.is_internal)

    def _aggregate(self, plan: ops.Aggregate) -> Operator:
        runs = over_runs.GroupRuns(self.pieces(plan), self._number(), plan)
        self._source(runs)
        if not plan.is_internal:
            return runs
        grids = [leaf.spec.grid for leaf in self.emit.leaves if leaf.spec.grid is not None]
        return over_runs.Valued(plan, self.of(plan.input), runs, grids if self.emit.is_periodic else None)
