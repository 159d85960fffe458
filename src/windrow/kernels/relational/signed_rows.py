"""Signed pieces: what travels between operators.

A row of a frame says: `#n` more copies of these values in the instants [`#vs`, `#ve`). Added up over all
rows, past and present, this is the changing relation. So one form holds every way in which a row can expire:

    known when it is born      one piece, [t, t + RANGE)
    known only later           [u, ∞) first, and -1 copies in [w, ∞) when it leaves: a negative row

σ, π, ∪ and ⋈ are linear (in each input): they need not know which of the two they are given. Everything an
operator gives in a step lies in instants that the clock has not passed before, and begins before the clock.

`#ts` is the greatest windowing attribute of the stream rows a row is made of, and `#turn` its turn where the
window counts arrivals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.columnar.columns import polars_type, without_negative_zero
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from windrow.algebra.expressions import Schema

VS, VE, N, TS, TURN = "#vs", "#ve", "#n", "#ts", "#turn"
#: prefixes of columns that tell, with INTERNAL windows, what a result is made of and how long its parts last
ID, STAYS = "#id.", "#stays."
#: the bounds of the extent a piece is about, for the operator that reads them and no other
BOUNDS = {"#window_start": pl.Int64(), "#window_end": pl.Int64()}
#: stands for infinity; begins and ends of what was there before are at its negative
FOREVER = 1 << 62
#: how far answers had been given when a row came that is kept although it is late; of other rows, never
KEPT, NEVER_LATE = "#kept", -FOREVER

Columns = Mapping[str, pl.DataType]

SIGNED: Columns = {VS: pl.Int64(), VE: pl.Int64(), N: pl.Int64(), TS: pl.Int64()}


def columns_of(schema: Schema, extra: Columns = SIGNED) -> dict[str, pl.DataType]:
    """The columns of a frame of pieces."""
    return {field.name: polars_type(field.type) for field in schema} | dict(extra)


def blank(columns: Columns) -> pl.DataFrame:
    """No rows."""
    return pl.DataFrame(schema=dict(columns))


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
    if frame.height < 2:
        return frame.filter(pl.col(N) != 0)
    by = [name for name in frame.columns if name != N]
    return frame.group_by(by).agg(pl.col(N).sum()).filter(pl.col(N) != 0).select(frame.columns)


def grouped(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The frame with these columns as grouping sees them: -0.0 is 0.0."""
    floats = [name for name in names if frame[name].dtype.is_float()]
    return frame.with_columns(without_negative_zero(frame[name]).alias(name) for name in floats)


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
