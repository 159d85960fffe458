"""Windows that rows move: ROWS, and slide-by-tuple.

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
"""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.algebra.plan import Window
from windrow.kernels.columnar.columns import row_order
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.expiry_layouts import Chunks, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, INT, TS, Columns
from windrow.kernels.relational.windows.leaf import NUMBER, PENDING, Leaf
from windrow.kernels.state import State
from windrow.windows.domain import Ints

INSIDE, COUNTS = "inside", "counts"
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
