"""`windrow.algebra.aggregates.order` on whole columns: the same hash of the same value.

Text and bytes are read eight bytes at a time, the first eight of all rows, then the next eight of those that
have them, and so on.

>>> from windrow.algebra.aggregates.order import hash64
>>> from windrow.algebra.types import STRING
>>> hashed(pl.Series(["item", "a longer text"]), STRING).tolist() == [hash64("item"), hash64("a longer text")]
True

Which shard a group belongs to: the same one in every process, for ever.

>>> frame = pl.DataFrame({"k0": ["a", None, "b", "a"]})
>>> found = shards_of(frame, {"k0": STRING}, 2)
>>> bool(found[0] == found[3]), set(found.tolist()) <= {0, 1}
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from windrow.algebra.aggregates.order import FIRST, GOLDEN, SECOND
from windrow.algebra.types import DataType, Kind
from windrow.kernels.columnar import decimals
from windrow.windows.domain import Ints

Words = npt.NDArray[np.uint64]
_LOW = (1 << 64) - 1
_NULL = np.uint64(0x5BD1E995)


def hashed(column: pl.Series, kind: DataType) -> Words:
    """The hash of each value; anything for NULL."""
    if kind.is_fractional:
        values = column.cast(pl.Float64).fill_null(0.0).to_numpy() + 0.0
        return mixed(np.where(np.isnan(values), np.nan, values).view(np.uint64))
    if kind.kind is Kind.DECIMAL:
        whole = decimals.unscaled(column.fill_null(0).cast(pl.Decimal(kind.precision, kind.scale)))
        if whole.dtype != object:
            return mixed(mixed(whole.view(np.uint64)) ^ (whole >> 63).view(np.uint64))
        return mixed(mixed((whole & _LOW).astype(np.uint64)) ^ ((whole >> 64) & _LOW).astype(np.uint64))
    if kind.kind in (Kind.STRING, Kind.BINARY):
        return _of_bytes(column)
    whole = column.cast(pl.Int64).fill_null(0).to_numpy()
    return mixed(whole.view(np.uint64))


def mixed(words: Words) -> Words:
    """The finaliser of SplitMix64."""
    words = words + np.uint64(GOLDEN)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(FIRST)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(SECOND)
    return words ^ (words >> np.uint64(31))


def _of_bytes(column: pl.Series) -> Words:
    array = column.rechunk().to_arrow().cast(pa.large_binary())
    _, offsets, data = array.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    starts, lengths = places[:-1], np.diff(places)
    padded = np.concatenate([np.frombuffer(data or b"", dtype=np.uint8), np.zeros(8, dtype=np.uint8)])
    eights = np.lib.stride_tricks.sliding_window_view(padded, 8)
    found = mixed(lengths.astype(np.uint64))
    active = np.flatnonzero(lengths > 0)
    read = 0
    while len(active):
        words = np.ascontiguousarray(eights[starts[active] + read]).view("<u8")[:, 0]
        missing = np.clip(8 - (lengths[active] - read), 0, 8).astype(np.uint64)
        mask = np.uint64(_LOW) >> (missing * np.uint64(8))
        found[active] = mixed(found[active] ^ (words & mask))
        read += 8
        active = active[lengths[active] > read]
    return found


def shards_of(frame: pl.DataFrame, keys: Mapping[str, DataType], count: int) -> Ints:
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
