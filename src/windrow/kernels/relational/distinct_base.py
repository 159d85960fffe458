"""What all forms of δ have in common: values, and the pieces in which they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.relational.operator import Operator
from windrow.kernels.relational.signed_rows import FOREVER, SIGNED, TS, TURN, VE, VS, Columns, N
from windrow.kernels.relational.sweep import codes

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class Delta(Operator):
    """What all forms have in common."""

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.values: Columns = {n: d for n, d in below.columns.items() if n not in (*SIGNED, TURN)}
        self.columns = dict(self.values) | dict(SIGNED)

    def _pieces(self, rows: pl.DataFrame, vs: Ints, ve: Ints, n: Ints) -> pl.DataFrame:
        frame = rows.select(list(self.values)).with_columns(
            pl.Series(VS, vs, dtype=pl.Int64),
            pl.Series(VE, ve, dtype=pl.Int64),
            pl.Series(N, n, dtype=pl.Int64),
            pl.lit(-FOREVER, pl.Int64).alias(TS),
        )
        return frame.select(list(self.columns))


def found_in(rows: pl.DataFrame, others: pl.DataFrame, names: list[str]) -> pl.Series:
    """Whether each row's values occur in other rows."""
    both = pl.concat([others.select(names), rows.select(names)])
    return pl.Series(codes(both, names)[others.height :] < others.height, dtype=pl.Boolean)
