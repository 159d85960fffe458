"""A query as a tree of operators, advanced step by step: state goes in, state and answers come out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.operators import TableJoin
from windrow.kernels.clock import Clock, Slice, Timing
from windrow.kernels.relational.build import Builder, lag_of
from windrow.kernels.relational.common_subplans import Parts, SubplanStep, SubplanView
from windrow.kernels.relational.emit.emission import Emission
from windrow.kernels.relational.emit.evaluation import (
    RAN,
    WAITING,
    is_due,
    put_away,
    since,
    taken,
    why_not_lazy,
)
from windrow.kernels.relational.expiry_layouts import count_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.options import Choice, Options
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, blank
from windrow.kernels.relational.stateless import Projected
from windrow.kernels.state import State
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit

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
    #: when each table changed last; a change of no rows is one too
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
        options: Options | None = None,
        *,
        as_relation: bool = False,
        by_group: bool | None = True,
    ) -> None:
        self.emit = emit
        self.options = options or Options()
        self.builder = Builder(emit, Choice(self.options), as_relation=as_relation, by_group=by_group)
        self.root = self.builder.root()
        self.grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]
        #: why nothing waits for a report; a relation may be asked for at any time
        self.why_not_lazy = (
            "its relation is asked for at any instant"
            if as_relation
            else why_not_lazy(emit, self.options, self.builder.sources)
        )

    def advance(self, states: States, news: News) -> tuple[States, pl.DataFrame, pl.DataFrame]:
        """The next states, the answers that became final, and the pieces they were made of."""
        if self.why_not_lazy is None:
            return self._lazily(states, news)
        after: dict[str, State] = {}
        answers, pieces = self._run(self.root, "0", states, news, after)
        return after, answers, pieces

    def _lazily(self, states: States, news: News) -> tuple[States, pl.DataFrame, pl.DataFrame]:
        """Rows wait while no report is due."""
        waiting = states.get(WAITING, State())
        if not is_due(self.grids, waiting, news.clock):
            (below,) = self.root.inputs
            return (
                {**states, WAITING: put_away(waiting, news.rows)},
                blank(self.root.columns),
                blank(below.columns),
            )
        after = {WAITING: State({}, {RAN: news.clock.now})}
        news = replace(news, clock=since(news.clock, waiting), rows=taken(waiting, news.rows))
        answers, pieces = self._run(self.root, "0", states, news, after)
        return after, answers, pieces

    def _run(
        self, root: Emission, path: str, states: States, news: News, after: dict[str, State]
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """One query, which may be a nested one: it has instants of its own."""
        state = states.get(path, State())
        emit = root.emit
        clock = news.clock if root is self.root else news.clock.plain
        lag = 0 if root.name == "restore" else lag_of(emit)
        step = Step(clock, Slice.of(clock, lag), news.rows, news.changes)
        step.until = news.until if root is self.root else -FOREVER
        step.grids = news.parts.reports if root is self.root else ()
        step.last_end = max(state.meta.get(LAST_END, -FOREVER), _last_change(emit, news, lag_of(emit)))
        (below,) = root.inputs
        if root.needs_last_end and step.slice.ended:
            asking = replace(step, slides=[], entered=[])
            self._advanced(below, f"{path}.0", states, news, {}, asking)
            step.last_end = asking.last_end
        pieces = self._advanced(below, f"{path}.0", states, news, after, step)
        own, answers = root.advance(state, [pieces], step)
        after[path] = State(own.chunks, {**own.meta, LAST_END: step.last_end})
        return answers, pieces

    def _advanced(
        self, operator: Operator, path: str, states: States, news: News, after: dict[str, State], step: Step
    ) -> pl.DataFrame:
        name = news.parts.names.get(path)
        if name is None:
            return self._run_part(operator, path, states, news, after, step)
        if name not in news.parts.done:
            began, others = perf_counter(), _seconds(news.parts)
            inside = replace(step, slides=[], entered=[], last_end=-FOREVER, lifts=None)
            found = self._run_part(operator, path, states, news, after, inside)
            seconds = perf_counter() - began - (_seconds(news.parts) - others)
            news.parts.done[name] = SubplanStep.of(found, news.parts.states(path, after), seconds, inside)
        part = news.parts.done[name].as_seen(news.parts.views.get(path, SubplanView()), operator)
        part.tell(step)
        return part.pieces

    def _run_part(
        self, operator: Operator, path: str, states: States, news: News, after: dict[str, State], step: Step
    ) -> pl.DataFrame:
        inputs = []
        for place, below in enumerate(operator.inputs):
            step.lifts = None
            if isinstance(below, Emission):
                inputs.append(self._run(below, f"{path}.{place}", states, news, after)[0])
            else:
                inputs.append(self._advanced(below, f"{path}.{place}", states, news, after, step))
        after[path], found = operator.advance(states.get(path, State()), inputs, step)
        if not (isinstance(operator, Projected) and operator.only_drops):
            step.lifts = None
        return found

    def operators(self) -> Iterator[tuple[str, Operator]]:
        """Every operator with its place in the tree, parents first."""
        yield from _walk(self.root, "0")

    def state_rows(self, states: States) -> dict[str, int]:
        """How many rows each operator keeps, by its place and name."""
        return {
            f"{path} {operator.name}": sum(map(count_of, states[path].chunks.values()))
            for path, operator in self.operators()
            if path in states
        } | ({WAITING: _waiting(states[WAITING])} if WAITING in states else {})


def _seconds(parts: Parts) -> float:
    return sum(part.seconds for part in parts.done.values())


def _waiting(state: State) -> int:
    return sum(chunk.table.num_rows for chunks in state.chunks.values() for chunk in chunks)


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


if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.intake import Known

    Knowns = Mapping[str, Known]
    #: how far each table is
    Held = Mapping[str, Instant]
    #: how far the clock of each branch had come before the input ended
    Reached = Sequence[int | None]


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
            mine = {place: state for of, place, state in _parted(states) if of == number}
            own = replace(news, clock=clock, rows=_rows_of(number, news.rows))
            moved, answers, pieces = program.advance(mine, own)
            after |= {f"{number}:{place}": state for place, state in moved.items()}
            names = program.emit.schema.names, self.emit.schema.names
            found.append((_renamed(answers, *names), _renamed(pieces.select(names[0]), *names)))
        answers, pieces = (pl.concat(frames) for frames in zip(*found, strict=True))
        return after, answers, pieces

    def operators(self) -> Iterator[tuple[str, Operator]]:
        """Every operator with its branch and its place there."""
        for number, program in enumerate(self.branches):
            yield from ((f"{number}:{place}", operator) for place, operator in program.operators())

    def state_rows(self, states: States) -> dict[str, int]:
        """How many rows each operator keeps, by its branch, its place and its name."""
        found: dict[str, int] = {}
        for number, program in enumerate(self.branches):
            mine = {place: state for of, place, state in _parted(states) if of == number}
            found |= {f"{number}:{name}": rows for name, rows in program.state_rows(mine).items()}
        return found


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


def _parted(states: States) -> Iterator[tuple[int, str, State]]:
    for name, state in states.items():
        number, _, place = name.partition(":")
        yield int(number), place, state
