"""Records of network connections on several outgoing links: what joins and negations are about.

The rows are those of the `network` generator: 1,650 sources by Zipf's law, telnet ten times as frequent as
ftp. They are split into links by destination, and one row comes on each link in one unit of time, on
average. Even sources reach destinations on all links, odd ones on one link only; so that some sources of a
link never occur on another, however long a window is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.studies.steps import Batch
from windrow.engine.explain import declared
from windrow.language.compile import compile_query
from windrow.optimizer.optimizer import normalise
from windrow.spark.sources.generators import NETWORK, Settings

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit

COLUMNS = "src BIGINT, dst BIGINT, protocol STRING, bytes BIGINT, duration DOUBLE, ts BIGINT"
#: windows are filled in this many steps, since only what comes later is timed
_FILLING = 10


@dataclass(frozen=True)
class Links:
    """Rows by link, in order of `ts`."""

    rows: Mapping[str, pl.DataFrame]

    def batch(self, begin: int, end: int) -> Batch:
        """What comes in [begin, end), on all links."""
        found = {}
        for name, frame in self.rows.items():
            first, last = np.searchsorted(frame["ts"].to_numpy(), [begin, end])
            found[name] = frame.slice(int(first), int(last - first))
        return Batch(found, end)

    def batches(self, begin: int, size: int, count: int) -> list[Batch]:
        """Some batches of so many units of time, one after the other."""
        return [self.batch(begin + n * size, begin + (n + 1) * size) for n in range(count)]

    def filling(self, length: int) -> list[Batch]:
        """The first units of time in a few large batches."""
        edges = np.linspace(0, length, _FILLING + 1).astype(int).tolist()
        return [self.batch(begin, end) for begin, end in pairwise(edges)]


@lru_cache(maxsize=2)
def links(names: Sequence[str], length: int, rate: int = 1) -> Links:
    """So many units of time, with `rate` rows on each link in each of them.

    >>> found = links(("a", "b"), 1000)
    >>> sum(frame.height for frame in found.rows.values()), found.rows["a"].columns
    (2000, ['src', 'dst', 'protocol', 'bytes', 'duration', 'ts'])
    """
    count = length * len(names) * rate
    rows = pl.from_arrow(NETWORK.rows(Settings(), 0, count))
    assert isinstance(rows, pl.DataFrame)
    even = pl.col("src") % 2 == 0
    home = pl.when(even).then(pl.col("dst") % len(names)).otherwise(pl.col("src") // 2 % len(names))
    placed = rows.with_columns(ts=pl.int_range(count, dtype=pl.Int64) // (len(names) * rate), link=home)
    return Links({name: placed.filter(pl.col("link") == n).drop("link") for n, name in enumerate(names)})


def query(text: str, names: Sequence[str]) -> Emit:
    """A query over links, with selections where they belong, and nothing else changed."""
    return normalise(compile_query(text, declared(dict.fromkeys(names, COLUMNS), {}))).plan
