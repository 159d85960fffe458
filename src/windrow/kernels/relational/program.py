"""Program: a query as a tree of operators, advanced step by step. State goes in, state and answers come out.

Parts of plans that several queries have in common: what one query has computed, the others read.

Queries of a query group see the same rows and the same clock. Where the lower part of their plans is the
same, down to its windows, its pieces are the same in each step: the first query that comes to it runs it, and
whoever comes later takes what it found, with all that its windows told. A part has a name, under which its
state is kept for all of them.

A join over longer windows that slide alike has all results of one over shorter windows; they only stay
longer. So a query takes the pieces of such a join, and has them end *sooner*: where every window is longer by
the same time, by that time; else at the first end of their rows, whose instants the join then carries. What
queries aggregate of a part, they have computed once, too (`windrow.kernels.relational.aggregate.by_expiry`).

A query that asks less often has a join run at the slide of another one, and sees its results only at its own
instants; if it asks the same as the other, it has all in common with it, and only reports at its own.

Card: parts in common
    requirements  the same windows over the same streams, the same clock, rows routed alike; a part has all
                  windows of its query below it
    time          one run of the part for all queries that have it
    space         one state
    source        Golab's thesis, 8.3.3: equal sub-plans of different queries; 8.3.2, the generalised synopsis
                  of joins whose windows are not equally long
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

import numpy as np
import polars as pl

from windrow.algebra import Emit, TableJoin
from windrow.kernels.clock import Clock, Held, Knowns, Slice, Timing
from windrow.kernels.relational import build, emission, expiry_layouts as layouts
from windrow.kernels.relational.aggregate.by_expiry import Lifts, ending
from windrow.kernels.relational.operator import Operator, Projected, Step
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, VE, VS, blank, greatest_end
from windrow.kernels.relational.windows.leaf import Intervals
from windrow.kernels.state import State
from windrow.windows import INFINITY, Instant, SlideGrid

Reached = Sequence[int | None]


@dataclass(frozen=True)
class SubplanView:
    """How a query sees a part whose windows are longer, or move more often, than its own."""

    #: its rows end so many ticks sooner: all alike, or by those of each window of the join
    sooner: tuple[int, ...] = ()
    #: nothing changes for it but at these instants
    instants: tuple[SlideGrid, ...] = ()


@dataclass(frozen=True)
class SubplanStep:
    """What a part did in a step."""

    pieces: pl.DataFrame
    #: the states of the pieces, for whoever aggregates them
    lifts: Lifts
    #: the next states of its operators, by their places below its own
    states: Mapping[str, State]
    seconds: float
    #: what its windows tell the root
    told: Step
    #: the same as queries see it, as far as it was asked for
    seen: dict[SubplanView, SubplanStep] = field(default_factory=dict)

    def tell(self, step: Step) -> None:
        """Tell the root of another query what the windows of the part told."""
        step.slides += self.told.slides
        step.entered += self.told.entered
        step.last_end = max(step.last_end, self.told.last_end)
        step.reports, step.first_report = self.told.reports, self.told.first_report
        step.lifts = self.lifts

    def as_seen(self, view: SubplanView, join: Operator) -> SubplanStep:
        """The same as a query sees it."""
        if view == SubplanView():
            return self
        if view not in self.seen:
            self.seen[view] = self._ending(view.sooner, join)._sampled(view.instants)
        return self.seen[view]

    def _ending(self, sooner: tuple[int, ...], join: Operator) -> SubplanStep:
        if not sooner:
            return self
        windows = self.told.entered
        by = sooner if len(sooner) > 1 else sooner * len(windows)
        entered = [ending(frame, each) for frame, each in zip(windows, by, strict=True)]
        if len(sooner) == 1:
            return self._with(ending(self.pieces, *sooner), self.lifts.ending(*sooner), entered)
        pieces = _ending_with_the_first(self.pieces, join, sooner)
        return self._with(pieces, Lifts(pieces), entered)

    def _sampled(self, instants: tuple[SlideGrid, ...]) -> SubplanStep:
        if not instants:
            return self
        pieces = sampled(self.pieces, instants)
        return self._with(pieces, Lifts(pieces), [sampled(each, instants) for each in self.told.entered])

    def _with(self, pieces: pl.DataFrame, lifts: Lifts, entered: list[pl.DataFrame]) -> SubplanStep:
        last = max(map(greatest_end, entered), default=-FOREVER)
        told = replace(self.told, entered=entered, last_end=last)
        return replace(self, pieces=pieces, lifts=lifts, told=told, seen={})


def sampled(pieces: pl.DataFrame, instants: tuple[SlideGrid, ...]) -> pl.DataFrame:
    """Pieces as they are for someone who looks at certain instants only, and sees nothing change between.

    >>> from windrow.windows.spec import SlideGrid
    >>> sampled(pl.DataFrame({VS: [2, 4, 5, 8], VE: [6, 6, 7, 9]}), (SlideGrid(4),)).rows()
    [(4, 8), (4, 8), (8, 12)]
    """
    for grid in instants:
        for name in (VS, VE):
            moments = pieces[name].to_numpy()
            later = np.where(np.abs(moments) < FOREVER, grid.nexts(moments - 1), moments)
            pieces = pieces.with_columns(pl.Series(name, later))
        pieces = pieces.filter(pl.col(VS) < pl.col(VE))
    return pieces


def _ending_with_the_first(pieces: pl.DataFrame, join: Operator, sooner: tuple[int, ...]) -> pl.DataFrame:
    """Results that end with the first of their rows, each of which ends so much sooner than in the join."""
    while len(join.inputs) == 1:
        (join,) = join.inputs
    ends = pieces[VE].to_numpy()
    for below, by in zip(join.inputs, sooner, strict=True):
        leaf = below
        while not isinstance(leaf, Intervals):
            (leaf,) = leaf.inputs
        instants = pieces[leaf.window.instants].cast(pl.Int64).to_numpy()
        ends = np.minimum(ends, leaf.spec.spans(instants)[1] - by)
    return pieces.with_columns(pl.Series(VE, ends)).filter(pl.col(VS) < pl.col(VE))


@dataclass(frozen=True)
class Parts:
    """The parts of one query: their names by their places, and those that have run in this step; how it sees
    some of them; and when it reports, if that is not whenever its windows move."""

    names: Mapping[str, str] = field(default_factory=dict)
    done: dict[str, SubplanStep] = field(default_factory=dict)
    views: Mapping[str, SubplanView] = field(default_factory=dict)
    reports: tuple[SlideGrid, ...] = ()

    def part_of(self, path: str) -> str | None:
        """The place of the smallest part that an operator is in.

        >>> parts = Parts({"0.0": "γ", "0.0.0": "⋈"})
        >>> [parts.part_of(path) for path in ("0", "0.0", "0.0.0", "0.0.0.1")]
        [None, '0.0', '0.0.0', '0.0.0']
        """
        around = (place for place in self.names if f"{path}.".startswith(f"{place}."))
        return max(around, key=len, default=None)

    def states(self, path: str, after: Mapping[str, State]) -> dict[str, State]:
        """Of some states, those of the part at a place, without those of parts within it."""
        return {
            place.removeprefix(path): state for place, state in after.items() if self.part_of(place) == path
        }


#: the states of all operators, by their place in the tree
States = Mapping[str, State]
LAST_END = "last_end"


@dataclass(frozen=True)
class News:
    """What a step brings: accepted rows of streams, changes of tables, and how the clock moves."""

    clock: Clock
    rows: Mapping[str, pl.DataFrame]
    changes: Mapping[str, pl.DataFrame]
    #: after the end of input: up to where bounds of extents are asked for
    until: int = -FOREVER
    #: when each table changed last
    changed: Mapping[str, int] = field(default_factory=dict)
    #: what the query has in common with others that take the same step
    parts: Parts = field(default_factory=Parts)


class RelationalProgram:
    """A query compiled to operators. It has no state: `advance` takes and gives it.

    Groups may become final one by one by the values of any column that allows it, or, unless it is
    `by_group`, of those that are to be expected.
    """

    def __init__(
        self,
        emit: Emit,
        options: layouts.Options | None = None,
        *,
        as_relation: bool = False,
        by_group: bool | None = True,
    ) -> None:
        self.emit = emit
        self.options = options or layouts.Options()
        choice = layouts.Choice(self.options)
        self.builder = build.Builder(emit, choice, as_relation=as_relation, by_group=by_group)
        self.root = self.builder.root()
        self.grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]
        #: why nothing waits for a report; a relation may be asked for at any time
        self.why_not_lazy = emission.why_not_lazy(emit, self.options, self.builder.sources)
        if as_relation:
            self.why_not_lazy = "its relation is asked for at any instant"

    def advance(self, states: States, news: News) -> tuple[States, pl.DataFrame, pl.DataFrame]:
        """The next states, the answers that became final, and the pieces they were made of."""
        if self.why_not_lazy is None:
            return self._lazily(states, news)
        run = _Run(self.root, states, news)
        answers, pieces = run.query(self.root, "0")
        return run.after, answers, pieces

    def _lazily(self, states: States, news: News) -> tuple[States, pl.DataFrame, pl.DataFrame]:
        """Rows wait while no report is due."""
        waiting = states.get(emission.WAITING, State())
        if not emission.is_due(self.grids, waiting, news.clock):
            (below,) = self.root.inputs
            after = {**states, emission.WAITING: emission.put_away(waiting, news.rows)}
            return after, blank(self.root.columns), blank(below.columns)
        ran = waiting.meta.get(emission.RAN, news.clock.before)
        rows = emission.taken(waiting, news.rows)
        run = _Run(self.root, states, replace(news, clock=replace(news.clock, before=ran), rows=rows))
        answers, pieces = run.query(self.root, "0")
        return {emission.WAITING: State({}, {emission.RAN: news.clock.now}), **run.after}, answers, pieces

    def operators(self) -> Iterator[tuple[str, Operator]]:
        """Every operator with its place in the tree, parents first."""
        yield from _walk(self.root, "0")

    def state_rows(self, states: States) -> dict[str, int]:
        """How many rows each operator keeps, by its place and name."""
        found = {
            f"{path} {operator.name}": sum(map(layouts.count_of, states[path].chunks.values()))
            for path, operator in self.operators()
            if path in states
        }
        if emission.WAITING in states:
            waiting = states[emission.WAITING].chunks.values()
            found[emission.WAITING] = sum(chunk.table.num_rows for chunks in waiting for chunk in chunks)
        return found


@dataclass
class _Run:
    """One step of a query: the states before it, and those after it as far as they are known."""

    root: emission.Emission
    states: States
    news: News
    after: dict[str, State] = field(default_factory=dict)

    def query(self, root: emission.Emission, path: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The answers of one query, which may be a nested one: it has instants of its own."""
        state, news, emit = self.states.get(path, State()), self.news, root.emit
        clock = news.clock if root is self.root else news.clock.plain
        lag = 0 if root.name == "restore" else build.lag_of(emit)
        step = Step(clock, Slice.of(clock, lag), news.rows, news.changes)
        if root is self.root:
            step.until, step.grids = news.until, news.parts.reports
        step.last_end = max(state.meta.get(LAST_END, -FOREVER), _last_change(emit, news, build.lag_of(emit)))
        (below,) = root.inputs
        if root.needs_last_end and step.slice.ended:
            asking = replace(step, slides=[], entered=[])
            _Run(self.root, self.states, news).advanced(below, f"{path}.0", asking)
            step.last_end = asking.last_end
        pieces = self.advanced(below, f"{path}.0", step)
        own, answers = root.advance(state, [pieces], step)
        self.after[path] = State(own.chunks, {**own.meta, LAST_END: step.last_end})
        return answers, pieces

    def advanced(self, operator: Operator, path: str, step: Step) -> pl.DataFrame:
        """The pieces of an operator; of a part, as whoever came first has found them."""
        parts = self.news.parts
        name = parts.names.get(path)
        if name is None:
            return self._found(operator, path, step)
        if name not in parts.done:
            began, others = perf_counter(), _seconds(parts)
            inside = replace(step, slides=[], entered=[], last_end=-FOREVER, lifts=None)
            found = self._found(operator, path, inside)
            seconds = perf_counter() - began - (_seconds(parts) - others)
            states = parts.states(path, self.after)
            parts.done[name] = SubplanStep(found, Lifts(found), states, seconds, inside)
        part = parts.done[name].as_seen(parts.views.get(path, SubplanView()), operator)
        part.tell(step)
        return part.pieces

    def _found(self, operator: Operator, path: str, step: Step) -> pl.DataFrame:
        inputs = []
        for place, below in enumerate(operator.inputs):
            step.lifts = None
            if isinstance(below, emission.Emission):
                inputs.append(self.query(below, f"{path}.{place}")[0])
            else:
                inputs.append(self.advanced(below, f"{path}.{place}", step))
        self.after[path], found = operator.advance(self.states.get(path, State()), inputs, step)
        if not (isinstance(operator, Projected) and operator.only_drops):
            step.lifts = None
        return found


def _seconds(parts: Parts) -> float:
    return sum(part.seconds for part in parts.done.values())


def _walk(operator: Operator, path: str) -> Iterator[tuple[str, Operator]]:
    yield path, operator
    for place, below in enumerate(operator.inputs):
        yield from _walk(below, f"{path}.{place}")


def _last_change(emit: Emit, news: News, lag: int) -> int:
    """The last instant at which a RELATION changes: an endpoint like others."""
    joins = [node for node in emit.walk() if isinstance(node, TableJoin) and node.is_retroactive]
    names = {node.table.table.name for node in joins}
    return max((news.changed[name] + lag for name in names if name in news.changed), default=-FOREVER)


# ------------------------------------------------------------ unions of queries
#
# UNION ALL of streams: branches that run beside each other, each with its own states and its own clock.
#
# Rows are filed once for all branches. What differs is how far answers were given when a late row was kept:
# of each branch that is a column of its own.


class UnionProgram:
    """The programs of the branches. States have the number of their branch before their place."""

    def __init__(self, emit: Emit, branches: Sequence[RelationalProgram]) -> None:
        self.emit = emit
        self.branches = tuple(branches)

    def advance(self, states: States, news: News) -> tuple[States, pl.DataFrame, pl.DataFrame]:
        """The next states, and the answers of all branches that became final."""
        after: dict[str, State] = {}
        found: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        for number, (program, clock) in enumerate(zip(self.branches, news.clock.branches, strict=True)):
            own = replace(news, clock=clock, rows=_rows_of(number, news.rows))
            moved, answers, pieces = program.advance(_states_of(number, states), own)
            after |= {f"{number}:{place}": state for place, state in moved.items()}
            names = program.emit.schema.names, self.emit.schema.names
            found.append((_renamed(answers, *names), _renamed(pieces.select(names[0]), *names)))
        answers, pieces = (pl.concat(frames) for frames in zip(*found, strict=True))
        return after, answers, pieces

    def operators(self) -> Iterator[tuple[str, Operator]]:
        """Every operator with its branch and its place there."""
        for number, program in enumerate(self.branches):
            yield from ((f"{number}:{place}", operator) for place, operator in program.operators())


class UnionTiming:
    """The clocks of the branches."""

    def __init__(self, branches: Sequence[Timing]) -> None:
        self.branches = tuple(branches)
        self.windows = [window for branch in branches for window in branch.windows]
        self.streams = {name: stream for branch in branches for name, stream in branch.streams.items()}

    def moved(self, before: Knowns, held: Held, now: Knowns, now_held: Held, reached: Reached) -> Clock:
        """How each clock moves; the whole is as far as the slowest."""
        clocks = tuple(
            branch.moved(before, held, now, now_held, -INFINITY if last is None else last)
            for branch, last in zip(self.branches, reached, strict=True)
        )
        return Clock(min(c.before for c in clocks), min(c.now for c in clocks), branches=clocks)

    def reached(self, known: Knowns, held: Held) -> list[Instant]:
        """How far any answer of each branch is given."""
        return [branch.furthest(known, held) for branch in self.branches]

    def furthest(self, known: Knowns, held: Held) -> Instant:
        """How far any answer is given."""
        return max(self.reached(known, held))

    def clock(self, known: Knowns, held: Held) -> Instant:
        """How far all answers are given."""
        return min(branch.clock(known, held) for branch in self.branches)

    def kept(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> list[pl.Series]:
        """For each branch that reads a stream: how far its answers were given for each row that is late."""
        reading = ((n, branch) for n, branch in enumerate(self.branches) if name in branch.streams)
        return [branch.kept(name, known, held, rows)[0].alias(_kept(number)) for number, branch in reading]


def _renamed(frame: pl.DataFrame, own: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Columns as the first branch calls them, in the same order."""
    hidden = [name for name in frame.columns if name not in own]
    return frame.select(*(pl.col(a).alias(b) for a, b in zip(own, names, strict=True)), *hidden)


def _kept(branch: int) -> str:
    return f"{KEPT}.{branch}"


def _rows_of(branch: int, rows: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The rows of the streams that a branch reads, as if it were by itself."""
    mine, found = _kept(branch), dict[str, pl.DataFrame]()
    for stream, frame in rows.items():
        if mine in frame.columns:
            others = [name for name in frame.columns if name.startswith(f"{KEPT}.") and name != mine]
            found[stream] = frame.drop(others).rename({mine: KEPT})
    return found


def _states_of(branch: int, states: States) -> dict[str, State]:
    """The states of a branch, by their places there."""
    mine = f"{branch}:"
    return {name.removeprefix(mine): state for name, state in states.items() if name.startswith(mine)}
