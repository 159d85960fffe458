"""SESSION windows: rows of one key less than a gap apart.

Card: chains
    requirements  all rows below the clock are known
    time          sorting the new rows; rows of the sessions that end
    space         the rows of open sessions, rows not yet final, the last instant of each open session
    source        SESSION as defined: [t, last t + gap)
"""

from __future__ import annotations

import numpy as np
import polars as pl

from windrow.algebra.plan import Window
from windrow.kernels.relational.clock import moved
from windrow.kernels.relational.expiry_layouts import chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, TS, Columns, blank, codes, together
from windrow.kernels.relational.windows.leaf import PENDING, Leaf
from windrow.kernels.state import State

INSIDE, ENTERED = "inside", "#entered"


class Sessions(Leaf):
    """[SESSION gap [PARTITION BY k]]."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.inside: Columns = dict(self.rows) | {ENTERED: pl.Boolean()}

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        waiting = together([frame_of(state.of(PENDING), self.rows), rows], self.rows)
        new = waiting
        if waiting.height:
            final = pl.Series(waiting[TS].to_numpy() < self.known(waiting, step))
            new, waiting = waiting.filter(final), waiting.filter(~final)
        fresh = new.with_columns(pl.lit(False).alias(ENTERED))
        inside = together([frame_of(state.of(INSIDE), self.inside), fresh], self.inside)
        if not inside.height:
            return State({PENDING: chunks_of(waiting)}), blank(self.columns)
        found, stay = self.closed(chained(inside, self.keys, self.spec.reach), step)
        return State({PENDING: chunks_of(waiting), INSIDE: chunks_of(stay)}), found

    def closed(self, inside: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The pieces that begin and end, and the rows of sessions that go on."""
        known = self.known(inside, step)
        stop = moved(known, self.lag) if isinstance(known, int) else known + self.lag
        ends, entered = inside["#end"].to_numpy(), inside[ENTERED].to_numpy()
        over = ends < stop
        leaves = np.where(over, ends, FOREVER)
        born = self.pieces(
            inside.filter(pl.Series(~entered)), inside[TS].to_numpy()[~entered], leaves[~entered]
        )
        gone = entered & over
        ended = self.pieces(inside.filter(pl.Series(gone)), ends[gone], FOREVER, -1)
        stay = inside.with_columns(pl.lit(True).alias(ENTERED)).filter(pl.Series(~over))
        return together([born, ended], self.columns), stay.select(list(self.inside))


def chained(rows: pl.DataFrame, keys: list[str], gap: int) -> pl.DataFrame:
    """Rows with their session: its number `#session`, and where it begins and would end.

    >>> chained(pl.DataFrame({TS: [13, 1, 3, 7]}), [], 5).sort(TS)["#end"].to_list()
    [12, 12, 12, 18]
    """
    part, t = codes(rows, keys), rows[TS].to_numpy()
    order = np.lexsort((t, part))
    part, t = part[order], t[order]
    new = np.append(True, (part[1:] != part[:-1]) | (t[1:] - t[:-1] >= gap))
    session = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    ends = t[np.append(starts[1:], len(t)) - 1] + gap
    place = np.empty_like(order)
    place[order] = session
    return rows.with_columns(
        pl.Series("#session", place), pl.Series("#start", t[starts][place]), pl.Series("#end", ends[place])
    )
