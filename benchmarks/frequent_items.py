"""Algorithm 6 over one window of rows, by the state that FREQUENT keeps, held against counting everything.

The traffic is that of the `network` generator: sources by Zipf's law. Which number a source has says nothing
about how frequent it is here, since equal counts are ranked by value. Rows are independent of each other, or
come in trains: each row goes on with the source of the row before it, or begins a train of another source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from windrow.errors import WindrowError
from windrow.kernels.aggregates import value_tables as lists
from windrow.kernels.aggregates.partials import LiftedRows
from windrow.kernels.aggregates.value_tables import Listed
from windrow.kernels.state import PANE, TableLayout
from windrow.spark.sources.generators import Settings, bits, src, uniform

Ints = npt.NDArray[np.int64]

_WINDOW = "w"


@dataclass(frozen=True)
class Trial:
    """What one window came to; shares are of its rows, `found` and `error` are None if nothing is over δ."""

    threshold: float
    over: int
    reported: int
    found: float | None
    pairs: int
    error: float | None


def traffic(settings: Settings, first: int, rows: int, train: int) -> Ints:
    """The sources of some rows, by position; a train has `train` rows on average.

    >>> one = traffic(Settings(keys=9), 1000, 50, train=5)
    >>> one.tolist() == traffic(Settings(keys=9), 1000, 60, train=5)[:50].tolist()
    True
    """
    events = np.arange(first, first + rows)
    begins = uniform(settings.seed, "train", events) * train < 1
    begins[0] = True
    begun = np.maximum.accumulate(np.where(begins, np.arange(rows), 0))
    numbers = np.argsort(bits(settings.seed, "number", np.arange(settings.keys or 1)))
    return np.asarray(numbers[src(settings, events)[begun]])


def trials(values: Ints, b: int, ks: Sequence[int]) -> Iterator[tuple[int, Trial]]:
    """A window of all the rows, cut into sub-windows of `b`, for each k."""
    ordered = lists.ranked(_counted(values, b), [PANE])
    true = np.bincount(values)
    for k in ks:
        kept = lists.listed(ordered, [PANE], k)
        yield k, _judged(kept, true, len(values))


def _counted(values: Ints, b: int) -> pl.DataFrame:
    """The table of counts that FREQUENT keeps of open panes."""
    panes = pl.Series(np.arange(len(values)) // b)
    everyone = pl.Series([True]).new_from_index(0, len(values))
    cells = Listed(k=1)
    lifted = cells.lift(LiftedRows((pl.Series(values),), everyone, pl.DataFrame(), panes))
    ones = everyone.cast(pl.Int64).alias(lists.COUNT)
    layout = TableLayout((lists.VALUE, lists.SUB_WINDOW), cells.partials)
    return layout.merge(pl.DataFrame([panes.alias(PANE), ones, *lifted]), [PANE, *layout.keys])


def _judged(kept: pl.DataFrame, true: Ints, rows: int) -> Trial:
    """The lists of a window added up, and compared with the true counts."""
    layout = TableLayout((lists.VALUE, lists.SUB_WINDOW))
    whole = layout.merge(kept.with_columns(pl.lit(0).alias(_WINDOW)), [_WINDOW, *layout.keys])
    threshold = int(whole.filter(pl.col(lists.VALUE).is_null())[lists.COUNT].sum())
    reported = lists.exceeding(whole, [_WINDOW])
    over = np.flatnonzero(true > threshold)
    counters = whole.filter(pl.col(lists.VALUE).is_not_null())
    said = np.zeros_like(true)
    said[counters[lists.VALUE].to_numpy()] = counters[lists.COUNT].to_numpy()
    found = reported[lists.VALUE].to_numpy()
    if not set(found.tolist()) <= set(over.tolist()) or (said > true).any():
        raise WindrowError("a value was reported that is not frequent, or too often", code="false-positive")
    pairs = kept.filter(pl.col(lists.VALUE).is_not_null()).height + counters.height
    return Trial(
        threshold / rows,
        len(over),
        len(found),
        len(found) / len(over) if len(over) else None,
        pairs,
        float(np.mean((true[over] - said[over]) / true[over])) if len(over) else None,
    )
