"""Answers of many queries that lie in the same packs, put in order once for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.engine.output.delivery import sorted_rows
from windrow.engine.output.schema import published
from windrow.kernels.columnar.columns import to_frame

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.state.chunk import Key
    from windrow.state.reader import Chunk


class Packed:
    """Some packs, of several files, whose rows are asked for key by key."""

    def __init__(self, packs: Sequence[tuple[Chunk, int]], schema: pa.Schema) -> None:
        numbers: dict[Key, int] = {}
        frames = []
        for chunk, pack in packs:
            mine = [part for part in chunk.slices if part.section == pack]
            codes = [numbers.setdefault(part.key, len(numbers)) for part in mine]
            who = np.repeat(np.array(codes, dtype=np.int64), [part.rows for part in mine])
            frames.append(to_frame(chunk.pack(pack)).insert_column(0, pl.Series("#who", who)))
        rows = sorted_rows(frames)
        whose = rows.to_series(0).to_numpy()
        self._places = {key: np.searchsorted(whose, [n, n + 1]).tolist() for key, n in numbers.items()}
        self._table = published(rows.drop("#who").to_arrow(), schema)

    @property
    def rows(self) -> int:
        """How many there are of all keys."""
        return int(self._table.num_rows)

    def table(self, key: Key, schema: pa.Schema) -> pa.Table | None:
        """The rows of one key in order, under the names of a schema; None if its types are others."""
        begin, stop = self._places[key]
        rows = self._table.slice(begin, stop - begin)
        if rows.schema.equals(schema):
            return rows
        return rows.rename_columns(schema.names) if rows.schema.types == schema.types else None
