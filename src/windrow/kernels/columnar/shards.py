"""Which shard a group belongs to: the same one in every process, for ever.

>>> frame = pl.DataFrame({"k0": ["a", None, "b", "a"]})
>>> found = shards_of(frame, {"k0": STRING}, 2)
>>> bool(found[0] == found[3]), set(found.tolist()) <= {0, 1}
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.types import STRING, DataType
from windrow.kernels.columnar.hashing import hashed, mixed

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["STRING", "shards_of", "split"]

_NULL = np.uint64(0x5BD1E995)


def shards_of(frame: pl.DataFrame, keys: Mapping[str, DataType], count: int) -> npt.NDArray[np.int64]:
    """The shard of each row by the keys of its group; without keys there is one group, in shard 0."""
    found = np.zeros(frame.height, dtype=np.uint64)
    for name, kind in keys.items():
        if kind.fields:  # arrays and structs: rarely grouped by, and equal ones must meet
            continue
        column = frame[name]
        words = np.where(column.is_null().to_numpy(), _NULL, hashed(column, kind))
        found = mixed(found ^ words)
    return (found % np.uint64(count)).astype(np.int64) if keys else np.zeros(frame.height, dtype=np.int64)


def split(
    frame: pl.DataFrame, keys: Mapping[str, DataType], count: int
) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows by shard; shards without rows are left out."""
    if not frame.height:
        return
    shards = shards_of(frame, keys, count)
    for shard in np.unique(shards).tolist():
        yield shard, frame.filter(pl.Series(shards == shard))
