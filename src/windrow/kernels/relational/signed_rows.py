"""Signed rows: what travels between operators, interval rows with a number of copies.

A row of a frame says: `#n` more copies of these values in the instants [`#vs`, `#ve`). Added up over all
rows, past and present, this is the changing relation. So one form holds every way in which a row can expire:

    known when it is born      one row, [t, t + RANGE)
    known only later           [u, ∞) first, and -1 copies in [w, ∞) when it leaves: a negative row

σ, π, ∪ and ⋈ are linear (in each input): they need not know which of the two they are given. Everything an
operator gives in a step lies in instants that the clock has not passed before, and begins before the clock.

`#ts` is the greatest windowing attribute of the stream rows a row is made of, and `#turn` its turn where the
window counts arrivals.

Sweeps: how often each row is there, from event to event, for many rows at once.

Card: sweep
    requirements  events (row, instant, change of a count); counts before the first event are events at -∞
    time          O(e log e) for e events, no loop
    space         one cell per event
    source        interval algebra of windows: counts are constant between neighbouring endpoints
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import polars as pl

from windrow.algebra.expressions import Schema
from windrow.kernels.columnar.columns import picked, polars_type, without_negative_zero
from windrow.windows.domain import INFINITY, NO_END, Flags, Instant, Ints

Columns = dict[str, pl.DataType]
Numbers: TypeAlias = int | Ints | pl.Series
#: the type of counts and instants
INT: pl.DataType = pl.Int64()

VS, VE, N, TS, TURN = "#vs", "#ve", "#n", "#ts", "#turn"
#: the instant of an event
AT = "#at"
#: prefixes of columns that tell, with INTERNAL windows, what a result is made of and how long its parts last
ID, STAYS = "#id.", "#stays."
#: the bounds of the extent a piece is about, for the operator that reads them and no other
BOUNDS: Columns = {"#window_start": INT, "#window_end": INT}
#: stands for infinity; begins and ends of what was there before are at its negative
FOREVER = NO_END
#: how far answers had been given when a row came that is kept although it is late; of other rows, never
KEPT, NEVER_LATE = "#kept", -FOREVER

SIGNED: Columns = {VS: INT, VE: INT, N: INT, TS: INT}


def columns_of(schema: Schema, extra: Columns = SIGNED) -> dict[str, pl.DataType]:
    """The columns of a frame of pieces."""
    return {field.name: polars_type(field.type) for field in schema} | extra


def blank(columns: Columns) -> pl.DataFrame:
    """No rows."""
    return _blank(tuple(columns.items())).clone()


@lru_cache(maxsize=4096)
def _blank(columns: tuple[tuple[str, pl.DataType], ...]) -> pl.DataFrame:
    """Most steps of most operators have nothing to say, and a frame takes long to make."""
    return pl.DataFrame(schema=dict(columns))


def without(columns: Columns, *names: str) -> Columns:
    """Some columns left out."""
    return {name: dtype for name, dtype in columns.items() if name not in names}


def values_of(columns: Columns) -> Columns:
    """The columns of pieces that do not say when they are there."""
    return without(columns, *SIGNED, TURN)


def fitted(frame: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    """The frame with exactly these columns, in their order."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in columns.items())


def together(frames: Iterable[pl.DataFrame], columns: Columns) -> pl.DataFrame:
    """All rows of some frames."""
    names = list(columns)
    found = [f if f.columns == names else f.select(names) for f in frames if f.height]
    if len(found) == 1:
        return found[0]
    return pl.concat(found) if found else blank(columns)


def consolidated(frame: pl.DataFrame) -> pl.DataFrame:
    """Equal pieces added up; what cancels out vanishes.

    >>> rows = pl.DataFrame({"k": [1, 1, 2], VE: [9, 9, 9], N: [1, -1, 1]})
    >>> consolidated(rows).rows()
    [(2, 9, 1)]
    """
    if not frame.height:
        return frame
    if frame.height < 2:
        return frame.filter(pl.col(N) != 0)
    by = [name for name in frame.columns if name != N]
    return frame.group_by(by).agg(pl.col(N).sum()).filter(pl.col(N) != 0).select(frame.columns)


def grouped(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The frame with these columns as grouping sees them: -0.0 is 0.0."""
    floats = [name for name in names if frame[name].dtype.is_float()]
    return frame.with_columns(without_negative_zero(frame[name]).alias(name) for name in floats)


def spanning(rows: pl.DataFrame, vs: Numbers, ve: Numbers = FOREVER, n: Numbers = 1) -> pl.DataFrame:
    """Rows that are there from `vs` to `ve`, `n` times: each is one number, or has one for each row."""
    return rows.with_columns(_number(VS, vs), _number(VE, ve), _number(N, n))


def pieces(
    rows: pl.DataFrame, columns: Columns, vs: Numbers, ve: Numbers = FOREVER, n: Numbers = 1
) -> pl.DataFrame:
    """The same as pieces that are made of no certain rows of streams."""
    return spanning(rows, vs, ve, n).with_columns(_number(TS, -FOREVER)).select(list(columns))


def _number(name: str, value: Numbers) -> pl.Expr | pl.Series:
    if isinstance(value, int):
        return pl.lit(value, pl.Int64).alias(name)
    return pl.Series(name, value, dtype=pl.Int64)


def parted(frame: pl.DataFrame, test: Flags | pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows for which a test is true, and the others."""
    chosen = pl.Series(test, dtype=pl.Boolean)
    return frame.filter(chosen), frame.filter(~chosen)


def begun(frame: pl.DataFrame, since: int = -FOREVER) -> pl.DataFrame:
    """Rows that were there before a step, or since an instant."""
    return frame.with_columns(_number(VS, since))


def copies(frame: pl.DataFrame) -> pl.DataFrame:
    """Each row as often as it is there."""
    n = frame[N].to_numpy()
    return picked(frame, np.repeat(np.arange(frame.height), n)) if (n != 1).any() else frame


def single_copies(frame: pl.DataFrame, level: str) -> pl.DataFrame:
    """Each copy of a row by itself, with its number among them."""
    n = frame[N].to_numpy()
    numbers = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return copies(frame).with_columns(_number(level, numbers), _number(N, 1))


def finite(instant: Instant) -> int:
    """An instant as a 64-bit integer."""
    return int(instant) if abs(instant) != INFINITY else (FOREVER if instant > 0 else -FOREVER)


def negated(frame: pl.DataFrame) -> pl.DataFrame:
    """The same pieces taken away."""
    return frame.with_columns(-pl.col(N))


def greatest_end(frame: pl.DataFrame) -> int:
    """The greatest finite endpoint of some pieces."""
    if not frame.height:
        return -FOREVER
    ends = frame.select(pl.max_horizontal(VS, pl.when(pl.col(VE) < FOREVER).then(VE).otherwise(VS)).max())
    return int(ends.item())


# ------------------------------------------------------------ sweeps


#: before every instant
START = -FOREVER - 1


@dataclass(frozen=True)
class Swept:
    """Per code and instant, in order, the counts from then on; `first` marks the first event of a code."""

    code: Ints
    at: Ints
    totals: list[Ints]
    first: Flags

    def before(self, lane: int = 0) -> Ints:
        """The counts before each event."""
        total = self.totals[lane]
        moved = np.concatenate([[0], total[:-1]]) if len(total) else total
        return np.asarray(np.where(self.first, 0, moved))

    def change(self, lane: int = 0) -> Ints:
        """By how much each event changes the counts."""
        return np.asarray(self.totals[lane] - self.before(lane))

    def until(self) -> Ints:
        """When the next event of the same code is."""
        if not len(self.at):
            return self.at
        following = np.append(self.at[1:], FOREVER)
        last = np.append(self.first[1:], True)
        return np.asarray(np.where(last, FOREVER, following))


def sweep(code: Ints, at: Ints, lanes: Sequence[Ints]) -> Swept:
    """Events of one code and instant added up, then summed over time.

    >>> found = sweep(np.array([7, 7, 7]), np.array([5, 1, 5]), [np.array([1, 1, -2])])
    >>> found.at.tolist(), found.totals[0].tolist(), found.before().tolist()
    ([1, 5], [1, 0], [0, 1])
    """
    if not len(code):
        return Swept(code, at, list(lanes), np.zeros(0, dtype=bool))
    order = np.lexsort((at, code))
    code, at = code[order], at[order]
    starts = np.flatnonzero(heads(code, at))
    code, at = code[starts], at[starts]
    first = heads(code)
    group = np.cumsum(first) - 1
    totals = []
    for lane in lanes:
        total = np.cumsum(np.add.reduceat(lane[order], starts))
        base = np.append(0, total)[first.nonzero()]
        totals.append(np.asarray(total - base[group]))
    return Swept(code, at, totals, first)


def heads(*columns: Ints) -> Flags:
    """Which rows begin a run of rows that are equal in all of some columns.

    >>> heads(np.array([7, 7, 7, 8]), np.array([1, 1, 2, 2])).tolist()
    [True, False, True, True]
    """
    found = np.ones(len(columns[0]), dtype=bool)
    found[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return found


def tails(*columns: Ints) -> Flags:
    """Which rows end such a run."""
    return np.append(heads(*columns)[1:], True)[: len(columns[0])]


def running(code: Ints, values: Ints, fold: Callable[[pl.Expr], pl.Expr]) -> Ints:
    """A cumulative expression of the values of each code.

    >>> running(np.array([0, 1, 0]), np.array([5, 3, 4]), pl.Expr.cum_max).tolist()
    [5, 3, 5]
    """
    frame = pl.DataFrame({"code": code, "value": values})
    return frame.select(fold(pl.col("value")).over("code"))["value"].to_numpy()


def levels(code: Ints, sign: Ints) -> tuple[Ints, Flags]:
    """Copies that come and go, those of a code in order of time: an order in which each one that goes is next
    to the one it takes away, and where the copies of one level begin in it."""
    depth = running(code, sign, pl.Expr.cum_sum)
    level = np.where(sign > 0, depth, depth + 1)
    order = np.lexsort((np.arange(len(code)), level, code))
    return order, heads(code[order], level[order])


def codes(frame: pl.DataFrame, names: Sequence[str]) -> Ints:
    """For each row the place of the first row with the same values, NULL and NaN included.

    >>> codes(pl.DataFrame({"k": [None, 3, None]}), ["k"]).tolist()
    [0, 1, 0]
    """
    if not names:
        return np.zeros(frame.height, dtype=np.int64)
    if frame.height < 2:
        return np.arange(frame.height)
    numbered = frame.select(names).with_row_index("#place")
    place = pl.col("#place").first().over([pl.col(name) for name in names]).cast(pl.Int64)
    return numbered.select(place.alias("#place"))["#place"].to_numpy()


def codes_of(frames: Sequence[pl.DataFrame], names: Sequence[str]) -> list[Ints]:
    """The same over all rows of some frames; without names, all are of one code."""
    if not names:
        return [np.zeros(frame.height, dtype=np.int64) for frame in frames]
    found = codes(pl.concat([frame.select(names) for frame in frames]), names)
    return np.split(found, np.cumsum([frame.height for frame in frames])[:-1])


def found_in(rows: pl.DataFrame, others: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """Whether each row's values occur in other rows."""
    _, mine = codes_of([others, rows], names)
    return pl.Series(mine < others.height, dtype=pl.Boolean)


def events(came: pl.DataFrame, gone: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """What comes when it begins and goes when it ends: `names`, `#at`, and how many more there are then."""
    began = came.select(*names, pl.col(VS).alias(AT), N)
    return pl.concat([began, gone.select(*names, pl.col(VE).alias(AT), -pl.col(N))])


def positive(frame: pl.DataFrame) -> pl.DataFrame:
    """Signed pieces as pieces of positive counts that do not overlap: what is there, and when.

    >>> row = {"k": [1, 1, 1], VS: [0, 4, 2], VE: [FOREVER, FOREVER, 3], N: [1, -1, 1]}
    >>> positive(pl.DataFrame(row)).rows()
    [(1, 0, 2, 1), (1, 2, 3, 2), (1, 3, 4, 1)]
    """
    return _counted(frame, merging=False)


def merged(frame: pl.DataFrame) -> pl.DataFrame:
    """Signed pieces as runs: as long as there are as many copies, it is one.

    >>> rows = {"k": [1, 1], VS: [0, 4], VE: [4, 9], N: [1, 1]}
    >>> merged(pl.DataFrame(rows)).rows()
    [(1, 0, 9, 1)]
    """
    return _counted(frame, merging=True)


def _counted(frame: pl.DataFrame, *, merging: bool) -> pl.DataFrame:
    if not frame.height:
        return frame
    names = [name for name in frame.columns if name not in (VS, VE, N)]
    code, n = codes(frame, names), frame[N].to_numpy()
    at = np.concatenate([frame[VS].to_numpy(), frame[VE].to_numpy()])
    swept = sweep(np.concatenate([code, code]), at, [np.concatenate([n, -n])])
    if merging:
        turns = swept.totals[0] != swept.before()
        code = swept.code[turns]
        swept = Swept(code, swept.at[turns], [swept.totals[0][turns]], heads(code))
    (total,) = swept.totals
    keep = (total > 0) & (swept.at < FOREVER)
    rows = picked(frame.select(names), swept.code[keep])
    return spanning(rows, swept.at[keep], swept.until()[keep], total[keep]).select(frame.columns)
