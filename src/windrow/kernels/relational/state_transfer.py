"""States of one plan from those of another that means the same: rows that are held are given to it anew.

Joins and negations hold the rows of the windows below them. If every window of a query is held by one of
them, another order of the same joins and negations can be started from these rows: they are all given to it
in one step up to the clock, whose answers are known already and are not told. Windows themselves, rows that
wait in them, and the keys on the right of a negation are taken over as they are.

What keeps less than rows (δ, γ), sees tables, counts rows, or keeps late ones, cannot be rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from windrow.algebra import Exists, Filter, Join, Plan, Project, Scan, Window
from windrow.algebra.canonical import canonical_text
from windrow.kernels.clock import Clock, Slice
from windrow.kernels.relational import (
    build,
    emission,
    expiry_layouts as layouts,
    negation,
    signed_rows,
    signed_rows as signed,
)
from windrow.kernels.relational.aggregate.by_expiry import Lifts
from windrow.kernels.relational.join.multiway import Joined
from windrow.kernels.relational.operator import Operator, Step, composed, part
from windrow.kernels.relational.program import LAST_END, RelationalProgram, States, SubplanStep, SubplanView
from windrow.kernels.relational.windows.leaf import Intervals
from windrow.kernels.state import State

#: the parts of a match that are about its right side
_PRESENT, _KEPT, _RIGHT = "present", "kept", "1"


@dataclass(frozen=True)
class _Source:
    """A window with what looks at single rows above it; `side` is its place below the holder."""

    node: Plan
    path: str
    operator: Operator
    holder: Operator
    holder_path: str
    side: int

    @property
    def is_right(self) -> bool:
        """Whether only its keys are held, by a negation."""
        return isinstance(self.holder, negation.Matched) and self.side == 1

    def held(self, states: States) -> pl.DataFrame:
        """Its rows, as they are held."""
        state = states.get(self.holder_path, State())
        if isinstance(self.holder, negation.Matched):
            state, sides = part(state, _KEPT), self.holder.kept.sides
        else:
            assert isinstance(self.holder, Joined)
            sides = self.holder.sides
        return layouts.frame_of(state.of(str(self.side)), sides[self.side])


def why_not_rebuilt(old: RelationalProgram, new: RelationalProgram) -> str | None:
    """Why the states of one plan cannot be made of those of another; None if they can."""
    why = _why_not(old) or _why_not(new)
    if why is not None:
        return why
    before, after = _sources(old), _sources(new)
    if before.keys() != after.keys():
        return "its windows keep other columns or conditions"
    for name, mine in after.items():
        if mine.is_right != before[name].is_right:
            return "only the keys of one of its windows are kept"
        if mine.is_right and not _same_right(before[name], mine):
            return "its negation looks at other keys"
    return None


def rebuilt(old: RelationalProgram, states: States, new: RelationalProgram, now: int) -> States:
    """The states of a plan at a clock, from those of another at the same clock."""
    before, after = _sources(old), _sources(new)
    clock = Clock(-signed_rows.FOREVER, now)
    step = Step(clock, Slice.of(clock, build.lag_of(new.emit)))
    found: dict[str, State] = {}
    fed: dict[str, pl.DataFrame] = {}
    seeds: dict[str, State] = {}
    for name, mine in after.items():
        theirs = before[name]
        found |= {
            f"{mine.path}{path.removeprefix(theirs.path)}": state
            for path, state in states.items()
            if path == theirs.path or path.startswith(f"{theirs.path}.")
        }
        if mine.is_right:
            fed[mine.path] = signed_rows.blank(mine.operator.columns)
            seeds[mine.holder_path] = _right_side(states.get(theirs.holder_path, State()))
        else:
            fed[mine.path] = _begun(theirs.held(states), mine.operator.columns, step)
    last = states.get("0", State()).meta.get(LAST_END, -signed_rows.FOREVER)
    pieces = _run(new.root.inputs[0], "0.0", fed, seeds, found, step)
    own, _ = new.root.advance(State(), [pieces], step)
    found["0"] = State(own.chunks, {**own.meta, LAST_END: last})
    return found


def why_not_joined(program: RelationalProgram, path: str) -> str | None:
    """Why a query that comes later cannot see what the join at a place holds; None if it can."""
    join = dict(program.operators()).get(path)
    if type(join) is not Joined:
        return "it is no join that holds the rows of its windows"
    if any(program.builder.sources.values()):
        return "its groups become final one by one"
    plain = [type(program.builder.built.get(id(leaf))) is Intervals for leaf in program.emit.leaves]
    if not all(plain) or any(leaf.keeps_late_rows for leaf in program.emit.leaves):
        return "it counts rows, or keeps late ones"
    return None


def begun_over(
    states: States, program: RelationalProgram, join: tuple[str, str], view: SubplanView, now: int
) -> States:
    """The states of a query that begins over a join that runs, without those of the join: as if it had seen
    all rows that the join holds.

    `states` are those of a query that has the join; `join` is its place there, and here. All results that are
    there are given to what is above it in one step, whose answers are not told.
    """
    theirs, mine = join
    operator = dict(program.operators())[mine]
    assert isinstance(operator, Joined)
    ran = states[emission.WAITING].meta.get(emission.RAN, now) if emission.WAITING in states else now
    clock, lag = Clock(-signed_rows.FOREVER, ran), build.lag_of(program.emit)
    step = Step(clock, Slice.of(clock, lag))
    # the last instant at which anything can have begun
    grids = program.grids if program.emit.is_periodic else []
    ends = (grid.end(grid.last_ending(step.slice.stop - 1)) for grid in grids)
    last = max(ends, default=step.slice.stop - 1)
    held = states.get(theirs, State())
    sides = [layouts.frame_of(held.of(str(side)), columns) for side, columns in enumerate(operator.sides)]
    both = zip(sides, operator.inputs, strict=True)
    rows = [_begun(frame, below.columns, step, last) for frame, below in both]
    _, results = operator.advance(State(), rows, step)
    told = replace(
        step, entered=rows, last_end=max(map(signed_rows.greatest_end, rows), default=-signed_rows.FOREVER)
    )
    part = SubplanStep(results, Lifts(results), {}, 0.0, told).as_seen(view, operator)
    found: dict[str, State] = {}
    pieces = _run(program.root.inputs[0], "0.0", {mine: part.pieces}, {}, found, replace(step, lifts=None))
    silent = Clock(ran, ran)
    own, _ = program.root.advance(State(), [pieces], replace(step, clock=silent, slice=Slice.of(silent, lag)))
    found["0"] = State(own.chunks, {**own.meta, LAST_END: part.told.last_end})
    return found


def _run(
    operator: Operator,
    path: str,
    fed: Mapping[str, pl.DataFrame],
    seeds: Mapping[str, State],
    found: dict[str, State],
    step: Step,
) -> pl.DataFrame:
    if path in fed:
        return fed[path]
    inputs = [
        _run(below, f"{path}.{place}", fed, seeds, found, step) for place, below in enumerate(operator.inputs)
    ]
    found[path], pieces = operator.advance(seeds.get(path, State()), inputs, step)
    return pieces


def _begun(
    held: pl.DataFrame, columns: signed_rows.Columns, step: Step, since: int = -signed_rows.FOREVER
) -> pl.DataFrame:
    """Held rows that are not over, as if they had been there since an instant, or from the beginning."""
    return signed.begun(held.filter(pl.col(signed_rows.VE) >= step.slice.stop), since).select(list(columns))


def _right_side(state: State) -> State:
    """Of a match, what it knows of its right side."""
    kept = part(state, _KEPT)
    right = {name: chunks for name, chunks in kept.chunks.items() if name == _RIGHT}
    return composed({_PRESENT: part(state, _PRESENT), _KEPT: State(right)})


def _why_not(program: RelationalProgram) -> str | None:
    emit = program.emit
    if not isinstance(program.root, emission.Changes) or emit.is_periodic:
        return "it reports windows, not changes"
    if emit.is_internal or emit.word.restores:
        return "its results outlive their rows"
    if any(program.builder.sources.values()):
        return "its groups become final one by one"
    for node in emit.input.own_nodes:
        if not isinstance(node, Join | Exists | Filter | Project | Window):
            return "it keeps less than the rows of its windows, or sees a table"
    for leaf in emit.leaves:
        built = program.builder.built.get(id(leaf))
        if type(built) is not Intervals or leaf.keeps_late_rows:
            return "it counts rows, or keeps late ones"
        if not all(isinstance(origin, Scan) for origin in leaf.origins):
            return "it has a query within"
    if len(_sources(program)) < len(emit.leaves):
        return "the rows of a window are held by nobody, or it is read twice"
    for source in _sources(program).values():
        match = source.holder.condition.is_equality if isinstance(source.holder, negation.Matched) else None
        if match is False or (match is None and type(source.holder) is not Joined):
            return "the rows of a window are held by nobody"
    return None


def _same_right(old: _Source, new: _Source) -> bool:
    """Whether two negations keep the same of their right sides."""
    one, other = old.holder, new.holder
    assert isinstance(one, negation.Matched)
    assert isinstance(other, negation.Matched)
    keys = [[canonical_text(each.side(1)) for each in m.condition.equalities] for m in (one, other)]
    kept = [type(m.present) for m in (one, other)]
    return keys[0] == keys[1] and kept[0] is kept[1]


def _sources(program: RelationalProgram) -> dict[str, _Source]:
    """The windows of a query that joins and negations read, by canonical text."""
    built = program.builder.built
    paths = {id(operator): path for path, operator in program.operators()}
    found = {}
    for node in program.emit.input.own_nodes:
        holder = built.get(id(node))
        if not isinstance(node, Join | Exists) or holder is None:
            continue
        for side, child in enumerate(node.children):
            operator = built.get(id(child))
            if build.window_of(child) is not None and operator is not None and id(operator) in paths:
                mine, its = paths[id(operator)], paths[id(holder)]
                found[canonical_text(child)] = _Source(child, mine, operator, holder, its, side)
    return found


def held_rows(program: RelationalProgram, states: States) -> Iterator[tuple[Plan, pl.DataFrame]]:
    """The windows of a query whose rows are held by joins and negations, each with these rows."""
    for source in _sources(program).values():
        if not source.is_right and type(source.holder) in (Joined, negation.Matched):
            yield source.node, source.held(states)
