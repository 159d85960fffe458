"""Sliding queries: the class of plans these kernels run, recognised and compiled.

Emit        no stream word, or RSTREAM
  σ π       HAVING and the select list
    γ       any keys, any aggregates
      σ π   WHERE, and projections
        Window   [RANGE r SLIDE s] or [LANDMARK … SLIDE s]
          σ π    on the stream
            Scan, or a nested query of this class

In its normal form an aggregate over a scan has everything as expressions over the stream's own columns:
projections are put into the expressions above them, filters become one condition, aliases go. Queries that
ask the same in other words have equal parts there, and so can share them.

The time axis is cut into panes, so that every extent is a run of whole panes. With SLIDE dividing RANGE a
pane is one slide. Otherwise each slide is cut in two, where extents end and where they begin (paired windows:
Krishnamurthy, Wu and Franklin, "On-the-fly sharing for streamed aggregation", 2006):

    RANGE 6 SLIDE 4    |---:---|---:---|---:---|      :  begins of extents, E-6
    panes                0   1   2   3   4   5        |  ends of extents
    w = 1 ends at 8        [-----------)              3 panes

There are never more than two panes per slide, whatever gcd(RANGE, SLIDE) is; panes of that width would
be microseconds wide for RANGE 1 HOUR SLIDE 7.000001 SECONDS. Where finer panes come from a shared stage,
`pane_of` their beginning is the pane they belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.expressions import ColumnRef, Expression, WindowBound, conjunction, substituted
from windrow.algebra.operators import Aggregate, Filter, Project
from windrow.algebra.plan import Emit, Plan, Scan, StreamUnion, StreamWord, Subquery, Window
from windrow.errors import QueryError
from windrow.kernels.columnar.columns import hidden
from windrow.kernels.columnar.expressions import compile_expression, holds
from windrow.windows import INFINITY, Flags, Instant, Ints, RangeWindow, SlideGrid, WindowSpec
from windrow.windows.landmark import LandmarkWindow


@dataclass(frozen=True)
class Cut:
    """The panes of extents [E-range, E), E = origin + (w+1)*slide; `range` None: all rows before E.

    >>> cut = Cut(range=6, slide=4)
    >>> cut.per_window, cut.per_slide, cut.panes_of(np.array([0, 1, 2, 3, 4])).tolist()
    (3, 2, [0, 0, 1, 1, 2])
    >>> cut.first_pane(1), cut.end_pane(1), cut.first_window(1), cut.last_window(1)
    (1, 4, 0, 1)
    """

    range: int | None
    slide: int
    origin: int = 0
    #: rows outside [start, until] are in no extent
    start: int | None = None
    until: int | None = None

    @property
    def grid(self) -> SlideGrid:
        return SlideGrid(self.slide, self.origin)

    @property
    def is_paired(self) -> bool:
        return self.range is not None and self.range % self.slide != 0

    @property
    def per_slide(self) -> int:
        return 2 if self.is_paired else 1

    @property
    def per_window(self) -> int:
        """How many panes an extent has."""
        assert self.range is not None
        slides = -(-self.range // self.slide)
        return 2 * slides - 1 if self.is_paired else slides

    def panes_of(self, t: Ints) -> Ints:
        """The pane of each instant."""
        since = t - self.origin
        if not self.is_paired:
            return np.asarray(since // self.slide)
        assert self.range is not None
        return np.asarray(2 * (since // self.slide) + (since % self.slide >= -self.range % self.slide))

    def holds(self, t: Ints) -> Flags:
        """Whether an instant lies in any extent at all."""
        inside = np.ones(len(t), dtype=bool)
        if self.start is not None:
            inside &= t >= self.start
        if self.until is not None:
            inside &= t <= self.until
        if self.range is not None and self.range < self.slide:
            inside &= (t - self.origin) % self.slide >= self.slide - self.range
        return inside

    def first_pane(self, w: int) -> int:
        """The first pane of an extent."""
        return self.end_pane(w) - self.per_window

    def end_pane(self, w: int) -> int:
        """One past the last pane of an extent."""
        return (w + 1) * self.per_slide

    def first_window(self, pane: int) -> int:
        """The first extent that ends after a pane."""
        return pane // self.per_slide

    def last_window(self, pane: int) -> int:
        """The last extent that begins with or before a pane."""
        return (pane + self.per_window) // self.per_slide - 1

    def ends(self, w: Any) -> Any:
        """Where extents end: a number, or an array of them."""
        return self.origin + (w + 1) * self.slide

    def due(self, clock: Instant) -> Instant:
        """The last extent that ends by the clock."""
        return clock if abs(clock) == INFINITY else self.grid.last_ending(int(clock))


def cut_of(spec: WindowSpec) -> Cut:
    """The panes of a window that slides in time."""
    if isinstance(spec, RangeWindow) and spec.slide is not None:
        return Cut(spec.range, spec.slide, spec.origin)
    if isinstance(spec, LandmarkWindow) and spec.grid is not None:
        return Cut(None, spec.grid.period, spec.grid.origin, spec.start, spec.until)
    raise QueryError(
        f"kernels for aggregates over {type(spec).__name__} without SLIDE do not exist yet",
        code="unsupported",
        hint="give the window a SLIDE, or use the reference executor",
    )


@dataclass(frozen=True)
class Normal:
    """`enters` decides which rows enter the window, `where` which of them count; `names` is what a column of
    the aggregate's input is."""

    enters: Expression
    where: Expression
    keys: tuple[Expression, ...]
    names: Mapping[str, Expression]

    def of(self, expression: Expression) -> Expression:
        """An expression over the aggregate's input, as one over the stream."""
        return substituted(expression, self.names)


def normal_form(query: SlidingQuery) -> Normal:
    """The normal form of the bottom level of a query."""
    scan = query.scan
    names: dict[str, Expression] = {
        f"{scan.alias}.{field.name}": ColumnRef(field.name, field.type) for field in scan.stream.schema
    }
    below, names = _through(query.below, names)
    between, names = _through(query.between, names)
    keys = tuple(substituted(key, names) for _, key in query.aggregate.keys)
    return Normal(conjunction(below), conjunction((*below, *between)), keys, names)


def _through(
    nodes: tuple[Filter | Project, ...], names: dict[str, Expression]
) -> tuple[tuple[Expression, ...], dict[str, Expression]]:
    conditions: list[Expression] = []
    for node in nodes:
        if isinstance(node, Filter):
            conditions.append(substituted(node.predicate, names))
        else:
            names = {name: substituted(output, names) for name, output in node.outputs}
    return tuple(conditions), names


Stage = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class SlidingQuery:
    """A plan of the class above, taken apart; stateless operators are listed from below."""

    emit: Emit
    above: tuple[Filter | Project, ...]
    aggregate: Aggregate
    between: tuple[Filter | Project, ...]
    window: Window
    below: tuple[Filter | Project, ...]
    origin: Scan | Subquery

    @classmethod
    def of(cls, emit: Emit) -> SlidingQuery:
        """The plan taken apart, or a QueryError that names what is in the way."""
        if emit.meaning is not StreamWord.RSTREAM or emit.is_internal:
            word = "INTERNAL" if emit.is_internal else emit.meaning.value or "'+' and '-' rows"
            raise _refusal(f"answers as {word}")
        above, aggregate = _stateless(emit.input)
        if not isinstance(aggregate, Aggregate):
            raise _refusal(aggregate)
        between, window = _stateless(aggregate.input)
        if not isinstance(window, Window):
            raise _refusal(window, " below an aggregate")
        below, origin = _stateless(window.input)
        if not isinstance(origin, Scan | Subquery):
            raise _refusal(origin, before="a window over ")
        return cls(emit, above, aggregate, between, window, below, origin)

    def __post_init__(self) -> None:
        nodes = (*self.below, *self.between)
        predicates = [node.predicate for node in nodes if isinstance(node, Filter)]
        outputs = [output for node in nodes if isinstance(node, Project) for output in node.outputs]
        args = [arg for _, call in self.aggregate.aggregates for arg in (*call.args, call.where)]
        named = (*outputs, *self.aggregate.keys)
        for expression in (*predicates, *(expression for _, expression in named), *args):
            if any(isinstance(part, WindowBound) for part in expression.walk()):
                raise _refusal("window_start and window_end below an aggregate")
            compile_expression(expression)
        assert isinstance(self.cut, Cut)
        assert self.levels

    @cached_property
    def levels(self) -> tuple[SlidingQuery, ...]:
        """The nested queries, innermost first, and this one."""
        if isinstance(self.origin, Scan):
            return (self,)
        return (*SlidingQuery.of(self.origin.query).levels, self)

    @property
    def scan(self) -> Scan:
        """The stream at the bottom."""
        origin = self.levels[0].origin
        assert isinstance(origin, Scan)
        return origin

    @cached_property
    def cut(self) -> Cut:
        """The panes of the window."""
        return cut_of(self.window.spec)

    @property
    def attribute(self) -> str:
        """The attribute of the stream at the bottom that the innermost window is on."""
        return self.levels[0].window.attribute_of(self.scan)

    @cached_property
    def stages(self) -> tuple[tuple[Stage, ...], tuple[Stage, ...], tuple[Stage, ...]]:
        """The stateless operators compiled: below the window, between window and γ, above γ."""
        below, between, above = (tuple(map(_stage, part)) for part in (self.below, self.between, self.above))
        return below, between, above

    def by_key(self, place: int) -> Emit:
        """The same query grouped by one of its keys only, to ask what holds for that key."""
        return Emit(replace(self.aggregate, keys=(self.aggregate.keys[place],), aggregates=()))


def run_stages(stages: tuple[Stage, ...], frame: pl.DataFrame) -> pl.DataFrame:
    """A frame through stateless operators."""
    for stage in stages:
        frame = stage(frame)
    return frame


def _stateless(plan: Plan) -> tuple[tuple[Filter | Project, ...], Plan]:
    found: list[Filter | Project] = []
    while isinstance(plan, Filter | Project):
        found.insert(0, plan)
        plan = plan.input
    return tuple(found), plan


def _stage(node: Filter | Project) -> Stage:
    if isinstance(node, Filter):
        predicate = compile_expression(node.predicate)
        return lambda frame: frame.filter(holds(predicate, frame))
    outputs = [(name, compile_expression(expression)) for name, expression in node.outputs]

    def project(frame: pl.DataFrame) -> pl.DataFrame:
        columns = [evaluate(frame).alias(name) for name, evaluate in outputs]
        return pl.DataFrame([*columns, *(frame[name] for name in hidden(frame))])

    return project


def _refusal(what: str | Plan, after: str = "", before: str = "") -> QueryError:
    if isinstance(what, Plan):
        what = "UNION ALL of streams" if isinstance(what, StreamUnion) else type(what).__name__
    return QueryError(
        f"kernels do not run {before}{what}{after} yet",
        code="unsupported",
        hint="they run aggregates over [RANGE … SLIDE …] and [LANDMARK … SLIDE …]; the reference runs all",
    )
