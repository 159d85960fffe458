"""FREQUENT on tables of counts: lists of the most frequent values, thresholds, and what exceeds them.

A table has, besides its own columns, the value `v0`, the sub-window `v1` and how often the one occurs in the
other. What is kept of a sub-window that is over has no `v1` any more: its k most frequent values, and under
no value the count of the last of them. Both add up over sub-windows as counts do, so they slide as counts do:

    v0    v1    rows.0
    a     7     3          open: counted
    a     NULL  12         what lists say of a value
    NULL  NULL  5          the threshold

Card: frequent items
    requirements  sub-windows leave as a whole, in the order they came
    time          sorting the counts of a sub-window once, when it is over; then as counts of at most k values
    space         counts of the open sub-windows, at most k + 1 counts of each one that is over
    source        Golab's thesis, 6.2 (Algorithm 6)
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

VALUE, SUB_WINDOW, COUNT = "v0", "v1", "rows.0"
_PLACE = "#rank"


def ranked(counts: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Counts of open sub-windows in order, with the place of each in its list, from 0 on as `#rank`."""
    parts = [*by, SUB_WINDOW]
    ordered = counts.sort([*parts, COUNT, VALUE], descending=[False] * len(parts) + [True, False])
    return ordered.with_columns(pl.int_range(pl.len()).over(parts).alias(_PLACE))


def listed(ordered: pl.DataFrame, by: Sequence[str], k: int) -> pl.DataFrame:
    """What is kept of ranked sub-windows when they are over: a count per value, and the threshold."""
    total = pl.col(COUNT).sum()
    lists = ordered.filter(pl.col(_PLACE) < k).group_by([*by, VALUE]).agg(total)
    limits = ordered.filter(pl.col(_PLACE) == k - 1).group_by(by).agg(total)
    nothing = [pl.lit(None, ordered.schema[name]).alias(name) for name in (VALUE, SUB_WINDOW)]
    return pl.concat(
        part.with_columns(nothing[n:]).select(*by, VALUE, SUB_WINDOW, COUNT)
        for n, part in enumerate((limits, lists))
    )


def closed(frame: pl.DataFrame, by: Sequence[str], k: int) -> pl.DataFrame:
    """The table after all its sub-windows are over.

    >>> seen = pl.DataFrame({"pane": [0, 0, 0], "v0": ["a", "b", "c"], "v1": [0, 0, 0], "rows.0": [5, 3, 1]})
    >>> closed(seen, ["pane"], 2).sort("v0").rows()
    [(0, None, None, 3), (0, 'a', None, 5), (0, 'b', None, 3)]
    >>> again = closed(closed(seen, ["pane"], 2), ["pane"], 2)
    >>> again.sort("v0").equals(closed(seen, ["pane"], 2).sort("v0"))
    True
    """
    still_open = pl.col(SUB_WINDOW).is_not_null()
    counted, kept = frame.filter(still_open), frame.filter(~still_open)
    if not counted.height:
        return frame
    found = listed(ranked(counted, by), by, k).select(frame.columns)
    if not kept.height:
        return found
    keys = [*by, VALUE, SUB_WINDOW]
    return pl.concat([kept, found]).group_by(keys).agg(pl.col(COUNT).sum()).select(frame.columns)


def thresholds(kept: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """δ of each combination of `by` that has one, under its name."""
    return kept.filter(pl.col(VALUE).is_null()).select(*by, pl.col(COUNT).alias("δ"))


def exceeding(kept: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The values whose lists say more than the threshold, with what they say."""
    values = kept.filter(pl.col(VALUE).is_not_null())
    limited = values.join(thresholds(kept, by), on=list(by), how="left", nulls_equal=True)
    return limited.filter(pl.col(COUNT) > pl.col("δ").fill_null(0)).drop("δ")
