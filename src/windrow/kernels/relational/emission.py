"""Emission: from the changing relation to streams. Which changes an answer brings, and when it is reported.

Answers leave as frames with `#at`, the instant, and `#op`, '+' or '-', besides the query's columns. They are
reported at the slides of all windows together, along the attribute and as rows move them; results of INTERNAL
windows outlive their rows, but are reported only while windows have any.

Card: changes
    requirements  any signed pieces
    time          events of the step, added up by value and instant
    space         pieces whose expiry is known and still to come; changes before the next reporting instant
Card: snapshots
    requirements  any signed pieces
    time          rows reported; without a report only the new pieces are put away
    space         the rows alive
source: Arasu, Babu and Widom 2006 (ISTREAM, DSTREAM, RSTREAM)

A window with a SLIDE lets a row in at the end of its extent. Evaluated eagerly, rows are joined when they
arrive, so that a report is there when it falls due.

Card: results held
    requirements  rows whose intervals are known when they come
    time          new results, and those that begin
    space         the results of the reports to come
    source        Golab's thesis, 5.2 (Algorithm 2 for a query that is answered periodically)

Evaluated lazily, rows wait until a report is due, and are then looked at all at once: answers do not depend
on the cut into micro-batches. With RESTORE, results that come and go between two refreshes are found as well.

Card: rows waiting
    requirements  every window slides along the attribute; what a step brings says itself how late it is
    time          an arrival is put away; each re-evaluation is one step
    space         the rows since the last report
    source        Golab's thesis, 5.2.2 (Algorithms 4 and 5: lazy multi-way join, new rows taken in groups)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra import Emit, StreamWord, TableJoin
from windrow.kernels.clock import Clock
from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import expiry_layouts as layouts, signed_rows as signed
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import AT, FOREVER, INT, SIGNED, VE, VS, Columns, N, together
from windrow.kernels.state import Chunk, State
from windrow.windows import Flags, Grid, Ints, covered

Test = Callable[[Ints], Flags]


#: any row is as good as another
ROW = "#any"
KEPT: Columns = {ROW: pl.Int8(), VE: INT, N: INT}


def occupation(chunks: layouts.Chunks, step: Step) -> tuple[layouts.Chunks, Test]:
    """What to keep, and a test: has any window rows at an instant, or just lost or got some?"""
    pieces = KEPT | {VS: INT}
    new = signed.together([f.with_columns(pl.lit(1, pl.Int8).alias(ROW)) for f in step.entered], pieces)
    everything = signed.together([signed.begun(layouts.frame_of(chunks, KEPT)), new], pieces)
    runs = signed.positive(everything).sort(VS)
    begins, ends = runs[VS].to_numpy(), runs[VE].to_numpy()
    turns = np.unique(np.concatenate([everything[VS].to_numpy(), everything[VE].to_numpy()]))

    def occupied(at: Ints) -> Flags:
        run = np.searchsorted(begins, at, side="right") - 1
        inside = (run >= 0) & (at < ends[run]) if len(ends) else np.zeros(len(at), dtype=bool)
        return np.asarray(inside | np.isin(at, turns))

    kept = layouts.Hashed().add(layouts.Hashed().forget(chunks, step.slice.floor), new.select(list(KEPT)))
    return kept, occupied


def last_report(grids: Sequence[Grid], step: Step) -> int:
    """At the end of input: the first reporting instant at or after the last endpoint, and no earlier than the
    clock had come before."""
    if step.last_end == -FOREVER:
        return -FOREVER
    last = min((grid.first_after(step.last_end - 1) for grid in grids), default=step.last_end)
    return max(last, step.clock.reached)


def moved_by_rows(step: Step) -> Ints:
    """The instants of the step at which rows moved a window, in order."""
    return np.unique(np.concatenate([*step.slides, np.zeros(0, dtype=np.int64)]))


def first_report(grids: Sequence[Grid], step: Step, at: Ints) -> Ints:
    """The first reporting instant at or after each of some instants; infinity if the step knows none."""
    found = np.full(len(at), FOREVER)
    for grid in grids:
        found = np.minimum(found, grid.nexts(at - 1))
    slides = np.append(moved_by_rows(step), FOREVER)
    return np.asarray(np.minimum(found, slides[np.searchsorted(slides, at)]))


def clipped(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Ranges of instants, none of which ends before it begins, as far as grids can be computed with."""
    limit = FOREVER // 2
    return np.clip(low, -limit, limit), np.clip(np.maximum(high, low), -limit, limit)


def reports_within(grids: Sequence[Grid], step: Step, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """(row, at) for each reporting instant in [low, high) of each row."""
    found = []
    for place, grid in enumerate(grids):
        row, at = grid.within(low, high)
        fresh = ~_on_grids(at, grids[:place])
        found.append((row[fresh], at[fresh]))
    slides = moved_by_rows(step)
    slides = slides[~_on_grids(slides, grids)]
    row, number = covered(np.searchsorted(slides, low), np.searchsorted(slides, high))
    found.append((row, slides[number]))
    return np.concatenate([row for row, _ in found]), np.concatenate([at for _, at in found])


def _on_grids(at: Ints, grids: Sequence[Grid]) -> Flags:
    found = np.zeros(len(at), dtype=bool)
    for grid in grids:
        found |= grid.lasts(at) == at
    return found


OP, PLUS = "#op", pl.lit("+")
ENDS, WAITING, ROWS, OCCUPIED = "ends", "waiting", "rows", "occupied"


class Emission(Operator):
    """The root of a query."""

    #: whether operators ask at the end of input for the last endpoint of windows that come after them
    needs_last_end = False

    def __init__(self, emit: Emit, below: Operator, places: dict[str, str] | None = None) -> None:
        self.emit = emit
        self.inputs = (below,)
        #: the answer's column that holds the source, for each column by which groups are final by themselves
        self.places = places or {}
        self.grids = [leaf.spec.grid for leaf in emit.leaves if leaf.spec.grid is not None]
        self.values: Columns = signed.columns_of(emit.schema, {})
        self.pieces: Columns = self.values | {VS: INT, VE: INT, N: INT}
        self.columns = self.values | {AT: INT, OP: pl.String()}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        return self.report(state, inputs[0].select(list(self.pieces)), step)

    @abstractmethod
    def report(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """The next state, and the changes that are final."""

    def reported_on(self, step: Step) -> Sequence[Grid]:
        """The instants at which it reports."""
        return step.grids or self.grids

    def stops(self, frame: pl.DataFrame, step: Step) -> Ints | int:
        """Up to where each row is answered."""
        stop = step.stops(frame, self.places)
        if self.emit.is_periodic and step.slice.ended:
            stop = np.minimum(stop, last_report(self.reported_on(step), step) + 1)
        return stop

    def copies(self, rows: pl.DataFrame, at: Any, op: pl.Expr = PLUS) -> pl.DataFrame:
        """Answers, each as often as it occurs."""
        told = rows.with_columns(pl.Series(AT, at, dtype=pl.Int64), op.alias(OP), pl.col(N).abs())
        return signed.copies(told).select(list(self.columns))


class Changes(Emission):
    """ISTREAM, DSTREAM, or both: what comes and goes at one instant cancels out."""

    name = "changes"

    def __init__(
        self,
        emit: Emit,
        word: StreamWord,
        below: Operator,
        places: dict[str, str] | None = None,
        layout: layouts.ExpiryLayout | None = None,
    ) -> None:
        super().__init__(emit, below, places)
        self.word = word
        self.layout = layout or layouts.Calendar()
        self.ending: Columns = self.values | {VE: INT, N: INT}
        self.moved: Columns = self.values | {AT: INT, N: INT}

    def report(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        over, later = self.layout.ended(state.of(ENDS), new, step.slice.stop, self.ending)
        events = signed.events(new, over, list(self.values))
        moves = layouts.frame_of(state.of(WAITING), self.moved, events)
        if not moves.height:
            return State({ENDS: later}), signed.blank(self.columns)
        if self.emit.is_periodic:
            moves = moves.with_columns(pl.Series(AT, self._reported(moves[AT].to_numpy(), step)))
        moves = signed.consolidated(moves)
        due, waiting = signed.parted(moves, moves[AT].to_numpy() < self.stops(moves, step))
        return State({ENDS: later, WAITING: layouts.chunks_of(waiting)}), self._told(due)

    def _reported(self, at: Ints, step: Step) -> Ints:
        """The first reporting instant at or after each change; what has none yet stays where it is."""
        found = first_report(self.reported_on(step), step, at)
        # a change that waits is looked at again when another row moves a window
        waits = found >= step.slice.stop
        return np.asarray(np.where(waits, np.maximum(at, step.slice.stop), found))

    def _told(self, moves: pl.DataFrame) -> pl.DataFrame:
        came = pl.col(N) > 0
        if self.word is StreamWord.AUTO:
            return self.copies(moves, moves[AT], pl.when(came).then(PLUS).otherwise(pl.lit("-")))
        rows = moves.filter(came if self.word is StreamWord.ISTREAM else ~came)
        return self.copies(rows, rows[AT])


class Snapshots(Emission):
    """RSTREAM: the whole relation at each reporting instant; without a SLIDE at each instant it changed."""

    name = "snapshots"

    def __init__(
        self,
        emit: Emit,
        below: Operator,
        places: dict[str, str] | None = None,
        layout: layouts.ExpiryLayout | None = None,
    ) -> None:
        super().__init__(emit, below, places)
        #: what is there has begun; where sources have clocks of their own, not for those that are behind
        self.alive = self.pieces if self.places else signed.without(self.pieces, VS)
        self.layout = layout or layouts.Hashed()
        self.lag = int(all(leaf.spec.grid is not None for leaf in emit.leaves))

    def report(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        found = signed.blank(self.columns)
        if not self._is_silent(step):
            runs = signed.positive(signed.together([self._old(state), new], self.pieces))
            found = self._reported(runs, step) if runs.height else found
        after = {ROWS: self.layout.alive(state.of(ROWS), new, step.slice.floor, self.alive)}
        if self.emit.is_periodic and self.emit.is_internal:
            after[OCCUPIED], occupied = occupation(state.of(OCCUPIED), step)
            found = found.filter(pl.Series(occupied(found[AT].to_numpy()), dtype=pl.Boolean))
        return State(after), found

    def _old(self, state: State) -> pl.DataFrame:
        old = layouts.frame_of(state.of(ROWS), self.alive)
        return old if VS in self.alive else signed.begun(old)

    def _is_silent(self, step: Step) -> bool:
        """Whether no instant of the step is reported, whatever the rows are."""
        by_time = self.emit.is_periodic and step.clock.column is None and not moved_by_rows(step).size
        reports = (grid.first_after(step.slice.start - 1) for grid in self.reported_on(step))
        first = min(reports, default=FOREVER)
        return by_time and first >= step.slice.stop

    def _reported(self, runs: pl.DataFrame, step: Step) -> pl.DataFrame:
        """The rows at each reporting instant; without a SLIDE, at each at which some count changes."""
        low, high = self._span(runs, step)
        if self.emit.is_periodic:
            row, at = reports_within(self.reported_on(step), step, low, high)
            return self.copies(picked(runs, row), at)
        moves = signed.events(runs, runs, list(self.values))
        moves = moves.filter((pl.col(AT) >= step.slice.start) & (pl.col(AT) < step.slice.stop))
        instants = np.unique(signed.consolidated(moves)[AT].to_numpy())
        row, number = covered(np.searchsorted(instants, low), np.searchsorted(instants, high))
        return self.copies(picked(runs, row), instants[number])

    def _span(self, runs: pl.DataFrame, step: Step) -> tuple[Ints, Ints]:
        """The instants of each run that are answered now."""
        start: Any = step.slice.start
        column = step.clock.column
        if column is not None and column in self.places:
            before, _ = step.clock.of(runs[self.places[column]])
            lag = step.slice.stop - step.slice.now if step.slice.now < FOREVER else self.lag
            start = np.where(before > -FOREVER, before + lag, before)
        low = np.maximum(runs[VS].to_numpy(), start)
        return clipped(low, np.minimum(runs[VE].to_numpy(), self.stops(runs, step)))


class Reports(Snapshots):
    """Extents that are reported by themselves: instants here are numbers of reports."""

    name = "reports"

    def report(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        if step.reports is None or not step.reports.height:
            return state, signed.blank(self.columns)
        runs = signed.positive(signed.together([self._old(state), new], self.pieces))
        low = np.maximum(runs[VS].to_numpy(), step.slice.start)
        row, number = covered(low, np.minimum(runs[VE].to_numpy(), step.slice.stop))
        at = step.reports["at"].to_numpy()[number - step.first_report]
        kept = self.layout.alive(state.of(ROWS), new, step.slice.stop, self.alive)
        return State({ROWS: kept}), self.copies(picked(runs, row), at)


# ------------------------------------------------------------ restore
#
# Restore: periodic refreshes that lose nothing which came and went between two of them.
#
# Results are put together again from signed pieces: a negative row ends the youngest result of its values
# that was to end when it would have. So each result has its own birth and end, and is reported at the first
# refresh after its birth, and with RSTREAM_RESTORE at every refresh that finds it alive.
#
# Card: results put together
#     requirements  negative rows end with the row they take back
#     time          rows of the results that are open, and new ones, sorted
#     space         results that are alive or not yet reported
#     source        Golab's thesis, 3.3.4 (restore semantics), 5.3 (Algorithms 4 and 5)


RESULTS, END = "results", "#end"


class ByCount(Operator):
    """Rows told apart by nothing but their values: the i-th copy of a row is one as long as there are i.

    So a result of γ, δ or − begins when there are more copies of its values, and ends when there are less.
    """

    name = "results by count"

    def __init__(self, below: Operator, buckets: int) -> None:
        self.inputs = (below,)
        values = {n: d for n, d in below.columns.items() if not n.startswith("#")}
        self.values = list(values)
        self.calendar = layouts.Calendar(buckets)
        self.ending = values | {VE: INT, N: INT}
        self.columns = values | SIGNED

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (new,) = inputs
        over, later = self.calendar.ended(state.of(ENDS), new, step.slice.stop, self.ending)
        moves = signed.consolidated(signed.events(new, over, self.values))
        return State({ENDS: later}), signed.pieces(moves, self.columns, moves[AT], n=moves[N])


class Restored(Emission):
    """ISTREAM_RESTORE and RSTREAM_RESTORE."""

    name = "restore"

    def __init__(self, emit: Emit, below: Operator) -> None:
        super().__init__(emit, below)
        self.results: Columns = self.pieces | {END: INT}

    def report(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        fresh = signed.consolidated(new).with_columns(pl.col(VE).alias(END))
        open_ = layouts.frame_of(state.of(RESULTS), self.results, fresh)
        rows = ended(open_, list(self.values))
        row, at = self._refreshes(rows, step)
        grid: Any = self.grids[0]
        over = (rows[END].to_numpy() <= step.slice.now) & (grid.nexts(rows[VS].to_numpy()) <= step.slice.now)
        kept = layouts.chunks_of(rows.filter(pl.Series(~over)))
        return State({RESULTS: kept}), self.copies(picked(rows, row), at)

    def _refreshes(self, rows: pl.DataFrame, step: Step) -> tuple[Any, Any]:
        """(row, E) for each refresh E of the step that reports the row."""
        grid: Any = self.grids[0]
        vs, end = rows[VS].to_numpy(), rows[END].to_numpy()
        born = grid.nexts(vs)
        missed = born > end
        last = np.where(missed | (self.emit.word is StreamWord.ISTREAM_RESTORE), born, end)
        low = np.maximum(born, grid.nexts(np.full(len(vs), step.slice.before)))
        stop = step.slice.now
        if step.slice.ended:  # results that stay are told once more after the last endpoint
            stop = max(grid.first_after(step.last_end), step.clock.reached)
            last = np.where(last < FOREVER, np.maximum(last, born), stop)
        row, at = grid.within(low, np.minimum(last, step.slice.now) + 1)
        return row, at


def ended(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Results one by one, each with its end, from signed pieces that may take some of them back.

    >>> signed = {"k": [1, 1], VS: [3, 5], VE: [9, 9], N: [1, -1], END: [9, 9]}
    >>> ended(pl.DataFrame(signed), ["k"]).select("k", VS, END).rows()
    [(1, 3, 5)]
    """
    rows = signed.copies(rows.with_columns(pl.col(N).abs(), pl.col(N).sign().alias("#sign")))
    rows = rows.with_columns(pl.col("#sign").alias(N)).drop("#sign")
    if not (rows[N].to_numpy() < 0).any():
        return rows
    done, rows = signed.parted(rows, rows[END] < rows[VE])
    code = signed.codes(rows, [*names, VE])
    order = np.lexsort((rows[VS].to_numpy(), code))
    rows, code = picked(rows, order), code[order]
    n = rows[N].to_numpy()
    pair, new = signed.levels(code, n)
    same = ~np.append(new[1:], True)
    following = np.append(rows[VS].to_numpy()[pair][1:], 0)
    end = rows[END].to_numpy().copy()
    end[pair] = np.where(same & (n[pair] > 0), following, end[pair])
    found = rows.with_columns(pl.Series(END, end)).filter(pl.Series(n > 0))
    return pl.concat([done, found])


HELD = "held"
#: chunks are put together before there are more of them
MOST_CHUNKS = 32


class HeldRows(Operator):
    """Pieces from the step on in which they begin."""

    name = "results held"

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.columns = below.columns

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        stop = step.slice.stop
        begun = pl.col(VS) < stop
        found, kept = [inputs[0].filter(begun)], list[Chunk]()
        for chunk in state.of(HELD):
            if chunk.first >= stop:
                kept.append(chunk)
                continue
            frame = layouts.frame_of([chunk], self.columns)
            found.append(frame.filter(begun))
            kept += _by_beginning(frame.filter(~begun))
        if len(kept) >= MOST_CHUNKS:
            kept = list(_by_beginning(layouts.frame_of(kept, self.columns)))
        kept += _by_beginning(inputs[0].filter(~begun))
        return State({HELD: tuple(kept)}), together(found, self.columns)


def _by_beginning(frame: pl.DataFrame) -> layouts.Chunks:
    """One chunk that knows when the first of its rows begins."""
    return tuple(
        Chunk(int(frame[VS].min()), int(frame[VS].max()), chunk.table)  # type: ignore[arg-type]
        for chunk in layouts.chunks_of(frame)
    )


#: how far answers were computed
RAN = "ran"


def why_not_lazy(emit: Emit, options: layouts.Options, sources: Mapping[str, Sequence[str]]) -> str | None:
    """Why a query is evaluated step by step; None if it waits for its reports."""
    if options.evaluation is layouts.Evaluation.EAGER:
        return "as asked for"
    if not emit.is_periodic:
        return "every instant is answered"
    if any(leaf.spec.grid is None for leaf in emit.leaves):
        return "rows move a window, so each may be due to report"
    if any(isinstance(node, TableJoin) for node in emit.walk()):
        return "tables change between reports"
    if any(leaf.keeps_late_rows for leaf in emit.leaves):
        return "late rows show between reports"
    return "groups become final one by one" if any(sources.values()) else None


def is_due(grids: Sequence[Grid], state: State, clock: Clock) -> bool:
    """Whether a report lies between what was computed and what is known."""
    if clock.now >= FOREVER or clock.now <= -FOREVER:
        return clock.now >= FOREVER
    before = state.meta.get(RAN, -FOREVER)
    if before <= -FOREVER:
        return True
    return any(grid.first_after(before) <= clock.now for grid in grids)


def put_away(state: State, rows: Mapping[str, pl.DataFrame]) -> State:
    """With the rows of a step."""
    chunks = dict(state.chunks)
    for name, frame in rows.items():
        if frame.height:
            chunks[name] = (*chunks.get(name, ()), Chunk(0, 0, frame.to_arrow()))
    return State(chunks, state.meta)


def taken(state: State, rows: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """All rows that waited, and those of the step."""
    found = {name: [chunk.frame for chunk in chunks] for name, chunks in state.chunks.items()}
    for name, frame in rows.items():
        found.setdefault(name, []).append(frame)
    return {name: pl.concat(frames) for name, frames in found.items()}
