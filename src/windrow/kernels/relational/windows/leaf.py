"""Windows: rows of a stream become pieces. This file has what all windows share, and those in which a row's
own values say when it is valid.

Card: intervals
    requirements  the interval follows from the row (RANGE, NOW, LANDMARK, UNBOUNDED, LIFETIME)
    time          O(1) per row
    space         the rows that are not valid before the clock
    source        SEMANTICS of windows as validity intervals; WID's context-free windows (Li et al. 2005, 4)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.kernels.columnar.expressions import compile_expression
from windrow.kernels.relational.clock import moved
from windrow.kernels.relational.expiry_layouts import chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import (
    FOREVER,
    SIGNED,
    TS,
    TURN,
    VE,
    VS,
    Columns,
    N,
    blank,
    columns_of,
    greatest_end,
    together,
)
from windrow.kernels.relational.windows.input_rows import KEPT, NUMBER, ORDER, PER
from windrow.kernels.state import State
from windrow.windows.cumulate import CumulateWindow
from windrow.windows.domain import FARTHEST, too_far
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.ranges import NowWindow, RangeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.plan import Window
    from windrow.windows.grid import SlideGrid

    Ints = npt.NDArray[np.int64]

PENDING = "pending"


class Leaf(Operator):
    """A window. `lag` is 1 where the answer at E is about the instant before E."""

    name = "window"

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        self.window = window
        self.spec: Any = window.spec
        self.lag = lag
        #: how much later than the clock a row that is kept late may show
        self.late_lag = lag
        #: whether rows are passed on when they come, before they begin
        self.ahead = False
        #: columns of rows that pieces carry under another name
        self.extra: dict[str, str] = {}
        self.inputs = (below,)
        self.counts = window.spec.counts_arrivals
        signed: Columns = dict(SIGNED) | ({TURN: pl.Int64()} if self.counts else {})
        self.columns: Columns = columns_of(window.schema, signed)
        self.rows: Columns = dict(below.columns)

    def carry(self, name: str, source: str) -> None:
        """Let pieces carry a column of whole numbers of their rows, under this name."""
        self.extra = {**self.extra, name: source}
        self.columns = dict(self.columns) | {name: pl.Int64()}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        state, found = self.enter(state, inputs[0], step)
        step.last_end = max(step.last_end, greatest_end(found))
        step.entered.append(found.select(VS, VE, N))
        return state, found

    @abstractmethod
    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """The pieces that begin, or are cut short, in the step."""

    @property
    def keys(self) -> list[str]:
        """The columns of PARTITION BY."""
        alias = self.window.origins[0].alias
        return [f"{alias}.{name}" for name in getattr(self.spec, "partition_by", ())]

    @property
    def order(self) -> list[str]:
        """The columns that settle the order of equal instants."""
        declared = [name for name in self.rows if name.startswith(ORDER)]
        return declared or list(self.window.schema.names)

    def known(self, frame: pl.DataFrame, step: Step) -> Ints | int:
        """Up to which instant all rows are known: of each row's source, if sources have their own clocks."""
        column = None if step.clock.column is None else PER + step.clock.column
        if column is None or column not in frame.columns:
            return step.clock.now
        return step.clock.of(frame[column])[1]

    def pieces(self, rows: pl.DataFrame, vs: Any, ve: Any, n: int = 1) -> pl.DataFrame:
        """Rows as pieces; empty ones vanish."""
        if not rows.height:
            return blank(self.columns)
        frame = rows.with_columns(
            pl.Series(VS, vs, dtype=pl.Int64),
            pl.lit(ve, pl.Int64).alias(VE) if isinstance(ve, int) else pl.Series(VE, ve, dtype=pl.Int64),
            pl.lit(n, pl.Int64).alias(N),
        )
        if self.counts:
            frame = frame.with_columns(pl.col(NUMBER).alias(TURN))
        frame = frame.with_columns(pl.col(source).alias(name) for name, source in self.extra.items())
        return frame.select(list(self.columns)).filter(pl.col(VS) < pl.col(VE))


class Intervals(Leaf):
    """A window in which the interval of a row is known when it comes."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.waiting: Columns = dict(self.rows) | {VS: pl.Int64(), VE: pl.Int64()}
        spec = window.spec
        self.lifetime = compile_expression(spec.expression) if isinstance(spec, LifetimeWindow) else None

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        new = self._stamped(rows) if rows.height else blank(self.waiting)
        frame = together([frame_of(state.of(PENDING), self.waiting), new], self.waiting)
        if not frame.height:
            return state, blank(self.columns)
        if self.ahead:
            return state, self.pieces(frame, frame[VS], frame[VE])
        known = self.known(frame, step)
        stop = moved(known, self.lag) if isinstance(known, int) else known + self.lag
        due = pl.Series(frame[VS].to_numpy() < stop)
        ready, pending = frame.filter(due), frame.filter(~due)
        return State({PENDING: chunks_of(pending)}), self.pieces(ready, ready[VS], ready[VE])

    def _stamped(self, rows: pl.DataFrame) -> pl.DataFrame:
        """With intervals; a late row shows in what is not yet answered only."""
        t = rows[TS].to_numpy()
        vs, ve = self._span(t, rows)
        kept = rows[KEPT].to_numpy()
        vs = np.maximum(vs, np.where(kept > -FOREVER, kept + self.late_lag, -FOREVER))
        frame = rows.with_columns(pl.Series(VS, vs), pl.Series(VE, ve))
        return frame.filter(pl.col(VS) < pl.col(VE)).select(list(self.waiting))

    def ends(self, t: Ints) -> Ints:
        """When rows of some instants leave a window of RANGE."""
        spec = self.spec
        return t + spec.range if spec.grid is None else first_after(spec.grid, t + spec.range)

    def _span(self, t: Ints, rows: pl.DataFrame) -> tuple[Ints, Ints]:
        spec = self.spec
        never = np.full(len(t), FOREVER, dtype=np.int64)
        if isinstance(spec, NowWindow):
            return t, t + 1
        if isinstance(spec, RangeWindow):
            return t if spec.grid is None else first_after(spec.grid, t), self.ends(t)
        if isinstance(spec, CumulateWindow):
            return first_after(spec.grid, t), begins(spec, t) + spec.size + spec.step
        if isinstance(spec, LandmarkWindow):
            vs = t if spec.grid is None else first_after(spec.grid, t)
            inside = np.ones(len(t), dtype=bool)
            inside &= True if spec.start is None else t >= spec.start
            inside &= True if spec.until is None else t <= spec.until
            return vs, np.where(inside, never, vs)
        if self.lifetime is not None:
            lives = self.lifetime(rows).cast(pl.Int64).fill_null(0)
            outside = lives.filter((lives > FARTHEST // spec.scale) | (lives < -FARTHEST // spec.scale))
            if len(outside):
                raise too_far(int(outside[0]) * spec.scale, "a LIFETIME")
            return t, t + lives.to_numpy().clip(0) * spec.scale
        return t, never


def begins(spec: CumulateWindow, t: Ints) -> Ints:
    """Where the windows of some instants begin that grow from a beginning.

    >>> begins(CumulateWindow(6, 2), np.array([-1, 0, 5, 6])).tolist()
    [-6, 0, 0, 6]
    """
    return np.asarray(spec.origin + (t - spec.origin) // spec.size * spec.size)


def first_after(grid: SlideGrid, t: Ints) -> Ints:
    """The first slide instant later than each of some instants.

    >>> from windrow.windows.grid import SlideGrid
    >>> first_after(SlideGrid(60), np.array([-1, 0, 59])).tolist()
    [0, 60, 60]
    """
    return np.asarray(grid.origin + ((t - grid.origin) // grid.period + 1) * grid.period)
