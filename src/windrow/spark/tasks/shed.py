"""Rows that no query needs, told as a handful of intervals [begin, end) of WATTR.

They are left out before anything is computed from them, but after progress and lateness were judged: what is
late, and how far a stream is, must not depend on what is shed.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

Intervals = Sequence[tuple[int, int]]


def without(rows: pl.DataFrame, wattr: str, shed: Intervals) -> pl.DataFrame:
    """The rows outside of all intervals.

    >>> without(pl.DataFrame({"t": [1, 5, 9, 10]}), "t", [(5, 10)])["t"].to_list()
    [1, 10]
    """
    if not shed or not rows.height:
        return rows
    moment = pl.col(wattr).cast(pl.Int64)
    return rows.filter(~pl.any_horizontal([(moment >= begin) & (moment < end) for begin, end in shed]))


def shed_sql(shed: Intervals, moment: str) -> str:
    """The condition that a row is in one of the intervals; nothing if there are none.

    The bounds are new in every epoch. As elements of an array they are no part of the generated code, which
    would have to be compiled anew; and there are as many of them as the next power of two.

    >>> shed_sql([], "t")
    ''
    >>> shed_sql([(5, 10)], "t").partition(" AND ")[0]
    '(t >= element_at(array(5L, 0L), IF(t IS NULL, 2, 1))'
    """
    if not shed:
        return ""

    def bound(value: int) -> str:
        return f"element_at(array({value}L, 0L), IF({moment} IS NULL, 2, 1))"

    padded = [*shed, *[(0, 0)] * (_power(len(shed)) - len(shed))]
    tests = [f"({moment} >= {bound(begin)} AND {moment} < {bound(end)})" for begin, end in padded]
    return tests[0] if len(tests) == 1 else f"({' OR '.join(tests)})"


def _power(count: int) -> int:
    return 1 << (count - 1).bit_length()
