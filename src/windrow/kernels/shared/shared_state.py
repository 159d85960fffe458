"""Shared states: what is kept once, of one stream and one grouping, for all queries over them.

A *pane grid* has intervals of one width, all windows of its queries being whole numbers of them. For each
interval and group it has *entries*: counts, totals, extremes of the rows that satisfy a condition, each of
them once, however many queries ask for it.

    pane | k0 … (the grouping) | p1.0 | p2.0 | p3.0 p3.1 …

A group that has no rows for an entry has the state of no rows there, or NULL, where the entry came later than
the interval did. Between epochs a pane grid keeps closed chunks, oldest first, and the intervals that are
still open. Closed chunks are only read: an interval that is over gets no more rows. A chunk goes when no
window after the clock needs any of its intervals.

A query asks for its windows, and names the entries that its states are made of. States that are combined from
several entries have names such as `p1+p4-p7`: the rows that p1 or p4 counts, less those of p7.

>>> terms_of("p1+p4-p7")
(('p1', True), ('p4', True), ('p7', False))

Queries that differ only in their windows and conditions have the same *form*: what is selected of the same
aggregates. All answers of a form are made of states at once. A query that asks what another one asks, only
less often (CS8), follows it: of the other's windows, as long as its own, it takes those that end at its
instants.

>>> every_third = Follower("f", slide=30, origin=0, begin=60)
>>> every_third.wants(np.array([30, 40, 60, 70, 90])).tolist()
[False, False, True, False, True]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa

from windrow.algebra.expressions import TRUE, Expression
from windrow.kernels.aggregates.partials import LiftedRows, Partial, PartialColumns
from windrow.kernels.columnar import columns, combiners
from windrow.kernels.columnar.expressions import compile_expression, holds
from windrow.kernels.intake import moments_of
from windrow.kernels.panes.pane_tables import merge_panes, merge_tables
from windrow.kernels.panes.query import Cut
from windrow.kernels.state import PANE, Chunk, State, TableLayout, chunked, split_at
from windrow.windows.domain import INFINITY, Flags, Ints

if TYPE_CHECKING:
    from windrow.algebra import DataType, Stream
    from windrow.kernels.clock import PaneClock
    from windrow.kernels.columnar.functions.base import Evaluator
    from windrow.kernels.shared.value_counts import ValueCounter


@dataclass(frozen=True)
class Follower:
    """A query and the instants it answers; windows that end before `begin` are not complete for it."""

    query: str
    slide: int
    origin: int
    begin: int | None = None

    @property
    def instants(self) -> tuple[int, int, int | None]:
        """What decides which rows it takes."""
        return self.slide, self.origin % self.slide, self.begin

    def wants(self, at: Ints) -> Flags:
        """Which of some instants are its own."""
        mine = (at - self.origin) % self.slide == 0
        return np.asarray(mine if self.begin is None else mine & (at >= self.begin))

    def rows(self, table: pa.Table) -> pa.Table:
        """Its rows among those of its leader, whose first column is the instant."""
        return table.filter(pa.array(self.wants(instants(table))))

    def to_json(self) -> list[Any]:
        """For the manifest."""
        return [self.query, self.slide, self.origin, self.begin]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Follower:
        """What `to_json` wrote."""
        return cls(*stored)


def instants(table: pa.Table) -> Ints:
    """The first column of a table of answers, as ticks."""
    return np.asarray(table.column(0).cast(pa.int64()).to_numpy())


@dataclass(frozen=True)
class WindowRequest:
    """A query: its windows [E-range, E), and where its states are."""

    query: str
    #: the number of its form
    form: int
    range: int
    slide: int
    origin: int
    #: the entry, or several combined, that counts the rows of its groups
    exists: str
    #: for each partial of its form, the entries, or several combined, that its columns are in
    parts: tuple[tuple[str, ...], ...]
    #: windows that begin earlier are not answered
    complete_from: int | None = None
    #: of all windows that are due, only the last one is answered
    newest: bool = False
    #: whether the windows that end at an instant are left out; None: none is
    drops: Callable[[int], bool] | None = None
    #: queries whose answers are among its own
    followers: tuple[Follower, ...] = ()
    #: for each table of cells of its form, the value counter that it is in
    value_counters: tuple[tuple[str, str], ...] = ()

    @cached_property
    def cut(self) -> Cut:
        """Where its windows end."""
        return Cut(self.range, self.slide, self.origin)

    @property
    def entries(self) -> tuple[str, ...]:
        """All that it asks for."""
        return (self.exists, *(entry for entries in self.parts for entry in entries))

    def is_due(self, clock: PaneClock) -> bool:
        """Whether the clock passes the end of a window."""
        return clock.is_due(self.cut)

    def windows(self, panes: Ints, pane_grid: PaneGrid, clock: PaneClock) -> Ints:
        """The ends of the windows that are due and have any of these intervals, in order."""
        begins = pane_grid.phase + panes * pane_grid.width - self.origin
        first = -(-(begins + pane_grid.width) // self.slide) - 1
        last = (begins + self.range) // self.slide - 1
        if clock.before != -INFINITY:
            first = np.maximum(first, int(self.cut.due(clock.before)) + 1)
        if self.complete_from is not None:
            first = np.maximum(first, -((self.origin - self.complete_from - self.range) // self.slide) - 1)
        if clock.now != INFINITY:
            last = np.minimum(last, int(self.cut.due(clock.now)))
        first = np.maximum(first, np.append(first[:1], last[:-1] + 1))
        which, since = combiners.spread_out(np.maximum(last - first + 1, 0))
        return np.asarray(self.cut.ends(first[which] + since))

    def wanted(self, ends: Ints, clock: PaneClock) -> Ints:
        """Of the windows that end at some instants, in order, those that are answered."""
        if self.newest and clock.now != INFINITY:
            ends = ends[ends == self.origin + (int(self.cut.due(clock.now)) + 1) * self.slide]
        elif self.newest:
            ends = ends[-1:]
        if self.drops is None:
            return ends
        wanted: Ints = ends[np.array([not self.drops(end) for end in ends.tolist()], dtype=bool)]
        return wanted


@dataclass(frozen=True)
class SharedEpoch:
    """An epoch of a shared state. `forms` are the queries, packed, that the askers' forms are taken from."""

    shared_state: SharedState
    clock: PaneClock
    askers: tuple[WindowRequest, ...]
    forms: tuple[bytes, ...]


_TERM = re.compile(r"([+-]?)([^+-]+)")


@lru_cache(maxsize=4096)
def terms_of(recipe: str) -> tuple[tuple[str, bool], ...]:
    """The entries that are combined, and whether each is added or subtracted."""
    return tuple((name, sign != "-") for sign, name in _TERM.findall(recipe))


def place_of(recipe: str, entry: str) -> str:
    """What the states of an entry are called that are encoded for a recipe."""
    return entry if recipe == entry else f"{recipe}:{entry}"


CLOSED, OPEN = ".closed", ".open"
#: more chunks of a pane grid than these are put together
MOST_CHUNKS = 24
_BEFORE_ALL, _AFTER_ALL = -(1 << 62), 1 << 62


@dataclass(frozen=True)
class Moved:
    """A pane grid whose clock has moved: what was closed before and closes now, and what is still open."""

    pane_grid: PaneGrid
    keys: tuple[str, ...]
    closed: tuple[Chunk, ...]
    open: tuple[Chunk, ...]

    @classmethod
    def of(
        cls,
        pane_grid: PaneGrid,
        keys: tuple[str, ...],
        state: State,
        new: pl.DataFrame | None,
        clock: PaneClock,
    ) -> Moved:
        """What a pane grid has when its clock has moved and new rows are in it."""
        layout = pane_grid.layout(len(keys))
        waiting = (*state.of(pane_grid.name + OPEN), *chunked([] if new is None else [new]))
        closed = state.of(pane_grid.name + CLOSED)
        ended = {-INFINITY: _BEFORE_ALL, INFINITY: _AFTER_ALL}
        stop = ended[clock.now] if clock.now in ended else pane_grid.index(int(clock.now))
        closing, rest = split_at(waiting, stop)
        if closing:
            fitted = [pane_grid.fitted(frame, keys) for frame in closing]
            closed = (*closed, *chunked([layout.closed(merge_panes(fitted, layout))]))
        if len(rest) > MOST_CHUNKS:
            fitted = [pane_grid.fitted(chunk.frame, keys) for chunk in rest]
            rest = list(chunked([merge_panes(fitted, layout)]))
        return cls(pane_grid, keys, closed, tuple(rest))

    def frames(self, first: int, stop: int = _AFTER_ALL) -> list[pl.DataFrame]:
        """What is closed, from an interval up to another one; each interval and group once. Chunks of others
        are not opened."""
        found = []
        for chunk in self.closed:
            if chunk.last >= first and chunk.first < stop:
                frame = self.pane_grid.fitted(chunk.frame, self.keys)
                if chunk.first < first or chunk.last >= stop:
                    frame = frame.filter((pl.col(PANE) >= first) & (pl.col(PANE) < stop))
                if frame.height:
                    found.append(frame)
        return found

    def kept(self, clock: PaneClock) -> dict[str, tuple[Chunk, ...]]:
        """What windows after the clock need; after the end, what the last windows were made of."""
        name = self.pane_grid.name
        closed = self.closed
        if clock.now != -INFINITY:
            last = max((chunk.last for chunk in closed), default=0)
            now = last + 1 if clock.now == INFINITY else self.pane_grid.index(int(clock.now))
            first = now - self.pane_grid.length
            closed = tuple(chunk for chunk in closed if chunk.last >= first)
            if len(closed) > MOST_CHUNKS:
                closed = chunked(self.pane_grid.parts(pl.concat(self.frames(first))))
        return {name + CLOSED: closed, name + OPEN: self.open}


def lowest(due: Sequence[WindowRequest], pane_grid: PaneGrid, clock: PaneClock) -> int:
    """The first interval that any window needs."""
    if clock.before == -INFINITY or not due:
        return _BEFORE_ALL
    return pane_grid.index(int(clock.before) - max(asker.range for asker in due))


@dataclass(frozen=True)
class Entry:
    """A state by interval and group, of the rows for which `where` holds; its shape bears its name."""

    shape: Partial
    args: tuple[Expression, ...]
    where: Expression
    #: what rows of one instant are ordered by, where that matters
    order: tuple[Expression, ...] = ()

    @property
    def name(self) -> str:
        return self.shape.label

    def is_something(self) -> pl.Expr:
        """Whether a state differs from that of no rows. Parts of states may have no count of their own."""
        if not isinstance(self.shape, PartialColumns):
            return pl.col(f"{self.name}.0") > 0
        return pl.any_horizontal(pl.col(column.name) != 0 for column in self.nothing())

    def lift(self, rows: RowValues) -> list[pl.Series]:
        """The columns of single rows."""
        parts = [rows.of(part).alias(f"o{n}") for n, part in enumerate(self.order)]
        order = pl.DataFrame([rows.rows["#t"], *parts] if parts else [])
        return self.shape.lift(LiftedRows(tuple(map(rows.of, self.args)), rows.where(self.where), order))

    def nothing(self) -> list[pl.Series]:
        """The columns of the state of no rows: that of one row which does not count."""
        args = tuple(pl.Series([None], dtype=columns.polars_type(arg.type)) for arg in self.args)
        parts = enumerate(self.order)
        order = [pl.Series(f"o{n}", [None], dtype=columns.polars_type(part.type)) for n, part in parts]
        instant = pl.Series("#t", [0], dtype=pl.Int64)
        return self.shape.lift(LiftedRows(args, pl.Series([False]), pl.DataFrame([instant, *order])))


@dataclass(frozen=True)
class PaneGrid:
    """Intervals [phase + i·width, phase + (i+1)·width), the last `length` of which are kept."""

    width: int
    phase: int
    length: int
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """Its grid, for which a shared state has one pane grid."""
        return f"{self.width}+{self.phase}"

    def index(self, instant: int) -> int:
        """The interval that an instant is in."""
        return (instant - self.phase) // self.width

    def panes_of(self, instants: Ints) -> Ints:
        """The interval of each instant."""
        return np.asarray((instants - self.phase) // self.width)

    @cached_property
    def nothing(self) -> dict[str, pl.Series]:
        """The columns of all entries, with the state of no rows."""
        return {column.name: column for entry in self.entries for column in entry.nothing()}

    def layout(self, keys: int) -> TableLayout:
        """The columns of its table."""
        return TableLayout(tuple(f"k{place}" for place in range(keys)), tuple(e.shape for e in self.entries))

    def lift(self, known: Sequence[pl.Series], rows: RowValues) -> pl.DataFrame:
        """Rows by interval and group, which are `known`. Conditions are no filters: a row is lifted for every
        entry, and counts in those whose condition holds; one that counts nowhere is left out."""
        counts = reduce(or_, (rows.where(where) for where in dict.fromkeys(e.where for e in self.entries)))
        states = [column for entry in self.entries for column in entry.lift(rows)]
        frame = pl.DataFrame([*known, *states])
        by = [column.name for column in known]
        return self.layout(len(known) - 1).merge(frame if counts.all() else frame.filter(counts), by)

    def some(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Without the rows that say nothing."""
        return frame.filter(pl.any_horizontal(entry.is_something() for entry in self.entries))

    def parts(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """How intervals that are over are put away, if there are many chunks: all are read together."""
        return [frame]

    def fitted(self, frame: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
        """A table of an earlier time with the entries of today: others go, new ones are empty."""
        known = set(frame.columns)
        states = [
            frame[name] if name in known else nothing.new_from_index(0, frame.height)
            for name, nothing in self.nothing.items()
        ]
        return pl.DataFrame([*(frame[name] for name in (PANE, *keys)), *states])


@dataclass(frozen=True)
class SharedState:
    """All pane grids of one stream and one grouping, and value counters of what has no constant size."""

    name: str
    stream: Stream
    keys: tuple[Expression, ...]
    pane_grids: tuple[PaneGrid, ...]
    value_counters: tuple[ValueCounter, ...] = ()

    @property
    def tables(self) -> tuple[PaneGrid, ...]:
        """All that is kept."""
        return (*self.pane_grids, *self.value_counters)

    @property
    def key_types(self) -> dict[str, DataType]:
        """The key columns and their types."""
        return {f"k{place}": key.type for place, key in enumerate(self.keys)}


#: so many states of rows are in memory at a time, of at least so many rows
MOST_STATES, LEAST_ROWS = 1 << 23, 1 << 12

_compiled: Callable[[Expression], Evaluator] = lru_cache(maxsize=4096)(compile_expression)


class RowValues:
    """Rows with their instants as `#t`; what expressions are of them is computed once for all that ask."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        self._values: dict[Expression, pl.Series] = {}
        self._conditions: dict[Expression, pl.Series] = {
            TRUE: pl.Series([True]).new_from_index(0, rows.height)
        }

    def of(self, expression: Expression) -> pl.Series:
        """The values of an expression."""
        if expression not in self._values:
            self._values[expression] = _compiled(expression)(self.rows)
        return self._values[expression]

    def where(self, condition: Expression) -> pl.Series:
        """Whether a condition holds."""
        if condition not in self._conditions:
            self._conditions[condition] = holds(_compiled(condition), self.rows)
        return self._conditions[condition]


def lifted(shared_state: SharedState, accepted: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """States by interval and group, for each pane grid that has rows; rows without an instant are in none.

    With many entries, rows are taken in pieces, so that their states are not too many at a time.
    """
    width = max(len(pane_grid.nothing) for pane_grid in shared_state.pane_grids)
    moments = moments_of(accepted, shared_state.stream.wattr)
    rows = accepted.with_columns(moments.alias("#t")).filter(moments.is_not_null())
    found: dict[str, list[pl.DataFrame]] = {}
    for piece in rows.iter_slices(max(LEAST_ROWS, MOST_STATES // width)):
        values = RowValues(piece)
        pairs = zip(shared_state.key_types, shared_state.keys, strict=True)
        keys = [columns.without_negative_zero(values.of(key)).alias(name) for name, key in pairs]
        for pane_grid in shared_state.tables:
            panes = pl.Series(PANE, pane_grid.panes_of(piece["#t"].to_numpy()))
            found.setdefault(pane_grid.name, []).append(pane_grid.lift([panes, *keys], values))
    layouts = {pane_grid.name: pane_grid.layout(len(shared_state.keys)) for pane_grid in shared_state.tables}
    return merge_tables(found, layouts)
