"""Windows whose extents depend on other rows: ROWS, slide-by-tuple and SESSION; and pieces cut at extents.

ROWS windows: rows are numbered as they become final, and leave when others have come.

Card: numbering
    requirements  the order of rows below the clock is final
    time          sorting the new rows; looking up the positions that are reached
    space         the rows of the window (of each partition), one count per partition, rows not yet final
    source        WID (Li et al. 2005), 3.3; Patroumpas and Sellis 2011, 3 (count-based windows)

A row at position i enters when position E1, the first multiple of SLIDE at or after i, is reached, and leaves
when E2, the first at or after i + n, is. Both are positions of new rows, so a step looks only at these and at
the rows of the window.

Slide-by-tuple windows: every n-th row moves the window, whose length is in the attribute.

Card: moving values
    requirements  all rows below the clock are known, hence all values w that move the window
    time          a binary search for each row of the window, when the window moves
    space         the rows of the window, those not yet final, a count of ranks
    source        WID (Li et al. 2005), 3.3 and 6 (a row is in the extents with t ≤ w < t + RANGE)
Card: chains
    requirements  all rows below the clock are known
    time          sorting the new rows; rows of the sessions that end
    space         the rows of open sessions, rows not yet final, the last instant of each open session
    source        SESSION as defined: [t, last t + gap)
Card: cut by extents
    requirements  windows with one common period, or extents that are reported by themselves
    time          one piece per extent a row is in
    space         the rows alive
    source        WID (Li et al. 2005), 5: rows tagged with window ids, where the id itself is asked for

With SLIDE n ROWS, and of sessions that have ended, each report is evaluated on its own rows only. So reports
are numbered, and the number takes the place of the instant: a row is in the pieces [r, r+1) of the reports r
it belongs to. `at` and the bounds of each report are told to the root.

Card: rows by report
    requirements  one window, RSTREAM
    time          RANGE / SLIDE entries per row
    space         the rows of extents not yet reported
    source        WID (Li et al. 2005), 5 (rows tagged with window ids)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.plan import Window
from windrow.kernels.columnar.columns import picked, row_order
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.emission import last_report
from windrow.kernels.relational.expiry_layouts import Chunks, Hashed, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import BOUNDS, FOREVER, INT, TS, VE, VS, Columns
from windrow.kernels.relational.windows.leaf import NUMBER, PENDING, Leaf
from windrow.kernels.state import State
from windrow.windows import Ints, covered

INSIDE, COUNTS, ROWS = "inside", "counts", "rows"
#: the position of a row, the instant at which it was reached, when it enters and leaves (infinity while that
#: is not known), and whether it was passed on
POSITION, MOMENT, ENTERS, LEAVES, ENTERED = "#position", "#moment", "#enters", "#leaves", "#entered"


class Numbering(Leaf):
    """Rows numbered from 1 as they become final, by partition."""

    #: whether they are pieces for an operator above; else that numbers them itself
    passes_on = True

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        numbers = {POSITION: INT, MOMENT: INT}
        self.numbered = self.rows | numbers
        keys = {name: self.rows[name] for name in self.keys}
        self.counted: Columns = keys | {"count": INT, "moment": INT}
        self.arrivals = getattr(self.spec, "arrival_order", False)
        #: in arrival order without partitions the position of a row is its row_num, with gaps where WHERE is
        self.own_numbers = self.arrivals and not self.keys

    def numbered_rows(
        self, state: State, rows: pl.DataFrame, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, Chunks]]:
        """New rows with positions and moments, the counts before them, and what is kept of others."""
        waiting = self.waiting(state, rows, self.rows)
        before = counts = frame_of(state.of(COUNTS), self.counted)
        new = signed.blank(self.numbered)
        if waiting.height:
            new, waiting, counts = self._number(waiting, counts, step)
        return new, before, {PENDING: chunks_of(waiting), COUNTS: chunks_of(counts)}

    def _number(
        self, waiting: pl.DataFrame, counts: pl.DataFrame, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """New rows with positions and moments, the rows that are not final, and the counts after that."""
        mine, theirs = signed.codes_of([waiting, counts], self.keys)
        order = self._sorted(waiting, mine)
        mine, ordered = mine[order], waiting.select(pl.all().gather(pl.Series(order)))
        base = np.zeros(len(mine) + len(theirs) + 1, dtype=np.int64)
        latest = np.full(len(base), -FOREVER, dtype=np.int64)
        base[theirs], latest[theirs] = counts["count"].to_numpy(), counts["moment"].to_numpy()
        rank = _places(mine)
        times = ordered[TS].to_numpy()
        times = np.where(rank == 0, np.maximum(times, latest[mine]), times)
        moments = signed.running(mine, times, pl.Expr.cum_max)
        final = moments < self.known(ordered, step)
        positions = ordered[NUMBER].to_numpy() if self.own_numbers else base[mine] + rank + 1
        numbered = ordered.with_columns(
            pl.Series(POSITION, positions, dtype=pl.Int64), pl.Series(MOMENT, moments, dtype=pl.Int64)
        )
        new = numbered.filter(pl.Series(final)).select(list(self.numbered))
        # rows that are not final wait in the order they came
        pending = waiting.filter(pl.Series(~final[np.argsort(order)]))
        return new, pending, self._counted(counts, new)

    def _sorted(self, rows: pl.DataFrame, part: Ints) -> Ints:
        if self.arrivals:
            return np.lexsort((rows[NUMBER].to_numpy(), part))
        columns = [row_order(rows[name]).alias(f"c{i}") for i, name in enumerate(self.order)]
        frame = pl.DataFrame(
            [pl.Series("part", part), rows[TS].alias("t"), *columns, rows[NUMBER].alias("r")]
        )
        return frame.select(pl.arg_sort_by(frame.columns)).to_series().cast(pl.Int64).to_numpy()

    def _counted(self, counts: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        if not new.height:
            return counts
        latest = new.select(*self.keys, pl.col(POSITION).alias("count"), pl.col(MOMENT).alias("moment"))
        both = signed.together([counts, latest], self.counted)
        most = [pl.col("count").max(), pl.col("moment").max()]
        found = both.group_by(self.keys).agg(most) if self.keys else both.select(most)
        return found.select(list(self.counted))


class RowsNumbering(Numbering):
    """[ROWS n [SLIDE m ROWS | SLIDE d] [PARTITION BY k]], in order of the attribute or of arrival."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        stay = {ENTERS: INT, LEAVES: INT, ENTERED: pl.Boolean()}
        self.inside: Columns = self.numbered | stay
        self.step = self.spec.slide_rows or 1

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        new, _, chunks = self.numbered_rows(state, rows, step)
        unknown = {ENTERS: FOREVER, LEAVES: FOREVER, ENTERED: False}
        new = new.with_columns(pl.lit(v).cast(self.inside[name]).alias(name) for name, v in unknown.items())
        inside = frame_of(state.of(INSIDE), self.inside, new)
        found = signed.blank(self.columns)
        if inside.height and (new.height or self.spec.grid is not None):
            found, inside = self._moved(self._timed(inside, new.height), step)
        return State({**chunks, INSIDE: chunks_of(inside)}), found

    def _timed(self, inside: pl.DataFrame, new: int) -> pl.DataFrame:
        """With the instants that have become known as the last `new` rows came."""
        if not new:
            return inside
        part, place = signed.codes(inside, self.keys), inside[POSITION].to_numpy()
        moments = inside[MOMENT].to_numpy()
        reach = ReachedPositions(part[-new:], place[-new:], moments[-new:])
        grid = self.spec.grid
        if grid is not None:
            enters = grid.nexts(moments)
            gone = reach.moment(part, place + self.spec.rows)
            after = grid.nexts(np.where(gone < FOREVER, gone, 0))
            leaves = np.where(gone < FOREVER, after, FOREVER)
        else:
            enters = reach.moment(part, self._first_end(place))
            leaves = reach.moment(part, self._first_end(place + self.spec.rows))
        enters = np.minimum(enters, inside[ENTERS].to_numpy())
        leaves = np.minimum(leaves, inside[LEAVES].to_numpy())
        return inside.with_columns(pl.Series(ENTERS, enters), pl.Series(LEAVES, leaves))

    def _moved(self, inside: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The pieces that begin and end in the step, and the rows that stay."""
        enters, leaves, entered = (inside[name].to_numpy() for name in (ENTERS, LEAVES, ENTERED))
        stop = self.stop(inside, step)
        here = ~entered & (enters < stop)
        if self.spec.slide_rows:
            step.slides.append(np.unique(enters[here]))
        over = entered & (leaves < stop)
        stays = ~over & ~(here & (leaves < FOREVER))
        stay = inside.with_columns(pl.Series(ENTERED, entered | here)).filter(pl.Series(stays))
        return self.turned(inside, here, enters, over, leaves), stay

    def _first_end(self, position: Ints) -> Ints:
        return np.asarray(-(-position // self.step) * self.step)


class ReachedPositions:
    """When positions of partitions are reached by new rows: infinity if they are not."""

    def __init__(self, part: Ints, position: Ints, moment: Ints) -> None:
        order = np.lexsort((position, part))
        self.part, self.position, self.times = part[order], position[order], moment[order]
        self.least = int(self.position.min())
        self.width = int(self.position.max()) - self.least + 2

    def moment(self, part: Ints, position: Ints) -> Ints:
        """The moment of the first new row at or after the position."""
        key = self.part * self.width + (self.position - self.least)
        asked = np.clip(position - self.least, 0, self.width - 1)
        place = np.searchsorted(key, part * self.width + asked)
        found = np.minimum(place, len(key) - 1)
        reached = (place < len(key)) & (self.part[found] == part)
        return np.asarray(np.where(reached, self.times[found], FOREVER))


def _places(part: Ints) -> Ints:
    """The place of each row in its run of equal parts, from 0 on."""
    starts = np.flatnonzero(signed.heads(part))
    return np.asarray(np.arange(len(part)) - np.repeat(starts, np.diff(np.append(starts, len(part)))))


RANKED, RANK = "ranked", "#rank"


class ByTuple(Leaf):
    """[RANGE r RATTR a SLIDE n ROWS SATTR row_num | rank(a) PARTITION BY k], [LANDMARK SLIDE n ROWS]."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.inside: Columns = self.rows | {ENTERED: pl.Boolean()}
        keys = {name: self.rows[name] for name in self.keys}
        #: by arrival in partitions, rows are counted as they come; else as they become final
        self.ranks = bool(keys) and not self.spec.by_rank
        self.held = self.rows | ({RANK: INT} if self.ranks else {})
        self.counted: Columns = keys | {"count": INT}

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        first, last = self.spec.start, self.spec.until
        rows = rows if first is None else rows.filter(pl.col(TS) >= first)
        rows = rows if last is None else rows.filter(pl.col(TS) <= last)
        counts = frame_of(state.of(COUNTS), self.counted)
        if self.ranks and rows.height:
            rows, counts = self._ranked(rows, counts, NUMBER)
        waiting = self.waiting(state, rows, self.held)
        if not waiting.height:
            return state, signed.blank(self.columns)
        new, pending = signed.parted(waiting, waiting[TS].to_numpy() < self.known(waiting, step))
        ranked = state.meta.get(RANKED, 0)
        meta, chunks = {RANKED: ranked + new.height}, {PENDING: chunks_of(pending)}
        if not new.height:
            chunks |= {COUNTS: chunks_of(counts)} if self.keys else {}
            return State({**chunks, INSIDE: state.of(INSIDE)}, meta), signed.blank(self.columns)
        if self.keys and not self.ranks:
            new, counts = self._ranked(new, counts, TS)
        chunks |= {COUNTS: chunks_of(counts)} if self.keys else {}
        fresh = new.with_columns(pl.lit(False).alias(ENTERED)).select(list(self.inside))
        moves = self._moving(new, ranked)
        step.slides.append(np.unique(moves[TS].to_numpy()))
        found, stay = self._moved(frame_of(state.of(INSIDE), self.inside, fresh), moves)
        return State({**chunks, INSIDE: chunks_of(stay)}, meta), found

    def _ranked(self, rows: pl.DataFrame, counts: pl.DataFrame, by: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Rows with their places in their partitions, in an order, and how many there are after them."""
        mine, theirs = signed.codes_of([rows, counts], self.keys)
        base = np.zeros(len(mine) + len(theirs) + 1, dtype=np.int64)
        base[theirs] = counts["count"].to_numpy()
        order = np.lexsort((rows[by].to_numpy(), mine))
        sorted_ = mine[order]
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = base[sorted_] + _places(sorted_) + 1
        rows = rows.with_columns(pl.Series(RANK, rank))
        latest = rows.select(*self.keys, pl.col(RANK).alias("count"))
        after = signed.together([counts, latest], self.counted).group_by(self.keys).agg(pl.col("count").max())
        return rows, after.select(list(self.counted))

    def _moving(self, new: pl.DataFrame, ranked: int) -> pl.DataFrame:
        """The attribute values of every n-th row, of each partition in order."""
        every = self.spec.every
        if self.keys:
            moving = new.filter(pl.col(RANK) % every == 0)
        elif self.spec.by_rank:
            moving = new.sort(TS)[every - 1 - ranked % every :: every]
        else:
            moving = new.filter(pl.col(NUMBER) % every == 0)
        return moving.select(*self.keys, TS).unique().sort(TS)

    def _next(self, inside: pl.DataFrame, moves: pl.DataFrame, t: pl.Series) -> Ints:
        """The first value at or after each instant that moves the row's partition; infinity if none does."""
        if not self.keys:
            values = np.append(moves[TS].to_numpy(), FOREVER)
            return np.asarray(values[np.searchsorted(values, t.to_numpy())])
        mine, theirs = signed.codes_of([inside, moves], self.keys)
        asked = pl.DataFrame({"part": mine, "t": t}).with_row_index("row").sort("t")
        known = pl.DataFrame({"part": theirs, "t": moves[TS], "w": moves[TS]})
        found = asked.join_asof(known, on="t", by="part", strategy="forward", check_sortedness=False)
        return found.sort("row")["w"].fill_null(FOREVER).to_numpy()

    def _moved(self, inside: pl.DataFrame, moves: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        t, entered = inside[TS], inside[ENTERED].to_numpy()
        enters = self._next(inside, moves, t)
        if self.spec.range is None:
            here = ~entered & (enters < FOREVER)
            born = self.pieces(inside.filter(pl.Series(here)), enters[here], FOREVER)
            return born, inside.filter(pl.Series(~here))
        leaves = self._next(inside, moves, t + self.spec.range)
        here, over = ~entered & (enters < FOREVER), entered & (leaves < FOREVER)
        stay = inside.with_columns(pl.Series(ENTERED, entered | here)).filter(pl.Series(leaves == FOREVER))
        return self.turned(inside, here, enters, over, leaves), stay


class Sessions(Leaf):
    """[SESSION gap [PARTITION BY k]]."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.inside: Columns = self.rows | {ENTERED: pl.Boolean()}

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        inside, waiting = self.final(state, rows, step)
        if not inside.height:
            return State({PENDING: chunks_of(waiting)}), signed.blank(self.columns)
        found, stay = self.closed(chained(inside, self.keys, self.spec.reach), step)
        return State({PENDING: chunks_of(waiting), INSIDE: chunks_of(stay)}), found

    def final(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows of open sessions with those that are final now, and those that are not."""
        waiting = self.waiting(state, rows, self.rows)
        new = waiting
        if waiting.height:
            new, waiting = signed.parted(waiting, waiting[TS].to_numpy() < self.known(waiting, step))
        fresh = new.with_columns(pl.lit(False).alias(ENTERED))
        return frame_of(state.of(INSIDE), self.inside, fresh), waiting

    def closed(self, inside: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The pieces that begin and end, and the rows of sessions that go on."""
        stop = self.stop(inside, step)
        ends, entered = inside["#end"].to_numpy(), inside[ENTERED].to_numpy()
        over = ends < stop
        leaves = np.where(over, ends, FOREVER)
        found = self.turned(inside, ~entered, inside[TS].to_numpy(), entered & over, leaves)
        stay = inside.with_columns(pl.lit(True).alias(ENTERED)).filter(pl.Series(~over))
        return found, stay.select(list(self.inside))


def chained(rows: pl.DataFrame, keys: list[str], gap: int) -> pl.DataFrame:
    """Rows with their session: its number `#session`, and where it begins and would end.

    >>> chained(pl.DataFrame({TS: [13, 1, 3, 7]}), [], 5).sort(TS)["#end"].to_list()
    [12, 12, 12, 18]
    """
    part, t = signed.codes(rows, keys), rows[TS].to_numpy()
    order = np.lexsort((t, part))
    part, t = part[order], t[order]
    new = signed.heads(part) | np.append(True, t[1:] - t[:-1] >= gap)
    session = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    ends = t[np.append(starts[1:], len(t)) - 1] + gap
    place = np.empty_like(order)
    place[order] = session
    return rows.with_columns(
        pl.Series("#session", place), pl.Series("#start", t[starts][place]), pl.Series("#end", ends[place])
    )


NUMBER_OF_REPORTS = "reports"


class ReportedRows(Numbering):
    """[ROWS n SLIDE m ROWS], an extent at a time."""

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        new, before, chunks = self.numbered_rows(state, rows, step)
        first = state.meta.get(NUMBER_OF_REPORTS, 0)
        if not new.height:
            begin_reports(step, first, _no_reports())
            chunks[INSIDE] = state.of(INSIDE)
            return State(chunks, {NUMBER_OF_REPORTS: first}), signed.blank(self.columns)
        inside = frame_of(state.of(INSIDE), self.numbered, new)
        found, stay, reports = self._reported(inside, new.height, before, first)
        begin_reports(step, first, reports)
        meta = {NUMBER_OF_REPORTS: first + reports.height}
        return State({**chunks, INSIDE: chunks_of(stay)}, meta), found

    def _reported(
        self, inside: pl.DataFrame, new: int, before: pl.DataFrame, first: int
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Members of the extents that new rows complete, the rows that stay, and the reports."""
        n, m = self.spec.rows, self.spec.slide_rows
        part, theirs = signed.codes_of([inside, before], self.keys)
        place, moments = inside[POSITION].to_numpy(), inside[MOMENT].to_numpy()
        done = np.zeros(len(part) + len(theirs) + 1, dtype=np.int64)
        done[theirs] = before["count"].to_numpy()
        reached = np.zeros_like(done)
        np.maximum.at(reached, part, place)
        low = -(-np.maximum(place, done[part] + 1) // m)
        high = np.minimum(reached[part], place + n - 1) // m + 1
        row, number = covered(low, high)
        end, owner = number * m, part[row]
        at = ReachedPositions(part[-new:], place[-new:], moments[-new:]).moment(owner, end)
        reports = pl.DataFrame({"at": at, "end": end, "part": owner}).unique().sort("at", "end", "part")
        numbered = reports.with_columns(pl.Series("r", np.arange(reports.height) + first))
        members = pl.DataFrame({"at": at, "end": end, "part": owner}).join(
            numbered, on=["at", "end", "part"], how="left", maintain_order="left"
        )
        found = self.pieces(picked(inside, row), members["r"], members["r"] + 1)
        stay = inside.filter(pl.Series(place + n > reached[part]))
        return found, stay, reports.select("at", (pl.col("end") - n).alias("start"), "end")


class ReportedSessions(Sessions):
    """[SESSION gap], a session at a time, when it has ended."""

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        inside, waiting = self.final(state, rows, step)
        first = state.meta.get(NUMBER_OF_REPORTS, 0)
        found, stay, reports = self._ended(inside, first, step)
        begin_reports(step, first, reports)
        chunks = {PENDING: chunks_of(waiting), INSIDE: chunks_of(stay)}
        return State(chunks, {NUMBER_OF_REPORTS: first + reports.height}), found

    def _ended(
        self, inside: pl.DataFrame, first: int, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        if not inside.height:
            return signed.blank(self.columns), inside, _no_reports()
        rows = chained(inside, self.keys, self.spec.reach)
        if self.spec.inclusive:
            rows = rows.with_columns(pl.col("#end") - 1)
        stop = self.stop(rows, step)
        done, stay = signed.parted(rows, rows["#end"].to_numpy() < stop)
        reports = done.select("#session", "#start", "#end").unique().sort("#end", "#session")
        reports = reports.with_columns(pl.int_range(first, pl.len() + first, dtype=pl.Int64).alias("#r"))
        r = done.select("#session").join(reports, on="#session", how="left", maintain_order="left")["#r"]
        bounds = reports.select(at=pl.col("#end"), start=pl.col("#start"), end=pl.col("#end"))
        return self.pieces(done, r, r + 1), stay.select(list(self.inside)), bounds


def begin_reports(step: Step, first: int, reports: pl.DataFrame) -> None:
    """From here on, the instants of the step are the numbers of its reports."""
    step.reports, step.first_report = reports, first
    step.clock = step.clock.plain
    stop = first + reports.height
    step.slice = replace(step.slice, start=first, stop=stop, floor=stop)


def _no_reports() -> pl.DataFrame:
    return pl.DataFrame(schema={"at": INT, "start": INT, "end": INT})


class Extents(Operator):
    """Each piece once for every extent it is in, with the extent's bounds."""

    name = "extents"

    def __init__(self, below: Operator, spec: Any, reported: bool) -> None:
        self.inputs = (below,)
        self.spec = spec
        self.reported = reported
        self.layout = Hashed()
        self.columns = below.columns | BOUNDS
        self.rows = signed.without(below.columns, VS)
        self.pieces = below.columns

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.pieces))
        rows = signed.together([signed.begun(frame_of(state.of(ROWS), self.rows)), new], self.pieces)
        chunks = self.layout.forget(state.of(ROWS), step.slice.floor)
        chunks = self.layout.add(chunks, new.select(list(self.rows)).filter(pl.col(VE) > step.slice.floor))
        found = signed.blank(self.columns)
        if rows.height:
            found = self._by_report(rows, step) if self.reported else self._by_grid(rows, step)
        return State({ROWS: chunks}), found

    def _by_report(self, rows: pl.DataFrame, step: Step) -> pl.DataFrame:
        """Every instant is a report of its own."""
        if step.reports is None or not step.reports.height:
            return signed.blank(self.columns)
        rows = signed.positive(rows)
        low = np.maximum(rows[VS].to_numpy(), step.slice.start)
        row, at = covered(low, np.minimum(rows[VE].to_numpy(), step.slice.stop))
        bounds = picked(step.reports.select("start", "end"), at - step.first_report)
        columns = [pl.Series(VS, at), pl.Series(VE, at + 1)]
        columns += [bounds["start"].alias("#window_start"), bounds["end"].alias("#window_end")]
        return picked(rows, row).with_columns(columns).select(list(self.columns))

    def _by_grid(self, rows: pl.DataFrame, step: Step) -> pl.DataFrame:
        """What was there gets pieces for the extents that begin now, what is new also for the current one."""
        grid = self.spec.grid
        stop = step.slice.stop
        if step.slice.ended:
            stop = min(stop, max(last_report([grid], step), step.until) + 1)
        vs, ve = rows[VS].to_numpy(), rows[VE].to_numpy()
        new = vs > -FOREVER
        begins, ends = np.where(new, vs, step.slice.start), np.minimum(ve, stop)
        begins, ends = (np.clip(each, -(FOREVER // 2), FOREVER // 2) for each in (begins, ends))
        # from the extent that is current when a new one begins: that of the last slide at or before it
        row, end = grid.within(np.where(new, grid.lasts(begins), begins), ends)
        start, stop_at = self.spec.bounds_of(end)
        columns = [
            pl.Series(VS, np.maximum(end, begins[row])),
            pl.Series(VE, np.minimum(grid.nexts(end), ve[row])),
            pl.Series("#window_start", [None] * len(end) if start is None else start, pl.Int64),
            pl.Series("#window_end", stop_at),
        ]
        found = picked(rows, row).with_columns(columns).select(list(self.columns))
        return found.filter(pl.col(VS) < pl.col(VE))
