"""Streams for multi-way joins whose rates and values are known (Golab's thesis, 5.4.1).

Each row is of a random stream, by the streams' rates, and has a value chosen uniformly from 1 to as many as
the stream has. The defaults are the four streams of Table 5.5, with rate 10 for the first, as its costs in
the text say; windows and numbers of values can be made larger together.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import polars as pl

from benchmarks.studies.connections import Links
from windrow.kernels.relational.join.order import WindowStats

COLUMNS = "k BIGINT, ts BIGINT"
_RATES = (10, 1, 1, 1)
_VALUES = (40, 100, 8, 5)
_LENGTH = 100


def streams(scale: int = 1) -> tuple[WindowStats, ...]:
    """What the cost model knows of the four streams.

    >>> [(each.name, each.tuples, each.distinct) for each in streams()][:2]
    [('s1', 1000, 40), ('s2', 100, 100)]
    """
    return tuple(
        WindowStats(f"s{n}", rate, _LENGTH * scale, values * scale)
        for n, (rate, values) in enumerate(zip(_RATES, _VALUES, strict=True), start=1)
    )


@lru_cache(maxsize=2)
def rows(windows: Sequence[WindowStats], units: int, seed: int = 1) -> Links:
    """The rows of so many units of time."""
    random = np.random.default_rng(seed)
    rates = np.array([each.rate for each in windows])
    count = int(rates.sum()) * units
    home = random.choice(len(windows), count, p=rates / rates.sum())
    times = np.arange(count, dtype=np.int64) // int(rates.sum())
    found = {}
    for n, each in enumerate(windows):
        mine = times[home == n]
        values = random.integers(1, int(each.distinct) + 1, len(mine))
        found[each.name] = pl.DataFrame({"k": values, "ts": mine})
    return Links(found)


def join(order: Sequence[WindowStats], *, slide: int | None = None, word: str = "ISTREAM") -> str:
    """The join in a global order; what it selects does not depend on that."""
    first = order[0].name
    names = sorted(each.name for each in order)
    chosen = ", ".join(f"{name}.k AS k_{name}, {name}.ts AS t_{name}" for name in names)
    moves = "" if slide is None else f" SLIDE {slide}"
    windows = ", ".join(f"{each.name} [RANGE {each.length}{moves}]" for each in order)
    links = " AND ".join(f"{first}.k = {each.name}.k" for each in order[1:])
    return f"SELECT {word}({chosen}) FROM {windows} WHERE {links}"
