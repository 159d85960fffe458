"""When windows have rows: results of INTERNAL windows outlive them, but are reported only while they have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.relational.expiry_layouts import Chunks, Hashed, frame_of
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, Columns, N, together
from windrow.kernels.relational.sweep import positive

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.kernels.relational.operator import Step

    Test = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]

#: any row is as good as another
ROW = "#any"
KEPT: Columns = {ROW: pl.Int8(), VE: pl.Int64(), N: pl.Int64()}


def occupation(chunks: Chunks, step: Step) -> tuple[Chunks, Test]:
    """What to keep, and a test: has any window rows at an instant, or just lost or got some?"""
    pieces: Columns = dict(KEPT) | {VS: pl.Int64()}
    new = together([frame.with_columns(pl.lit(1, pl.Int8).alias(ROW)) for frame in step.entered], pieces)
    old = frame_of(chunks, KEPT).with_columns(pl.lit(-FOREVER, pl.Int64).alias(VS))
    everything = together([old, new], pieces)
    runs = positive(everything).sort(VS)
    begins, ends = runs[VS].to_numpy(), runs[VE].to_numpy()
    turns = np.unique(np.concatenate([everything[VS].to_numpy(), everything[VE].to_numpy()]))

    def occupied(at: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        run = np.searchsorted(begins, at, side="right") - 1
        inside = (run >= 0) & (at < ends[run]) if len(ends) else np.zeros(len(at), dtype=bool)
        return np.asarray(inside | np.isin(at, turns))

    kept = Hashed().add(Hashed().forget(chunks, step.slice.floor), new.select(list(KEPT)))
    return kept, occupied
