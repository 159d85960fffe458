"""A generator: named columns, each a function of the settings and the event numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.spark.sources.generators.disorder import SortedBy, arrivals
from windrow.spark.sources.generators.randomness import Integers
from windrow.spark.sources.generators.settings import MICROS, Settings

TIMESTAMP = pa.timestamp("us", tz="UTC")
#: a column that any generator can give: the position in which a row arrives
ROW = "__row"

MakeColumn = Callable[[Settings, Integers], Any]


def event_micros(settings: Settings, events: Integers) -> Integers:
    """When events happen, in microseconds since the epoch."""
    return settings.start + events * MICROS // settings.event_rate


@dataclass(frozen=True)
class Generator:
    """A kind of made-up stream.

    `columns` gives the type of each column, and the function that makes it from event numbers, as a NumPy or
    an Arrow array. `ts`, the time of the event, comes by itself as the last column.
    """

    name: str
    default_keys: int
    columns: Mapping[str, tuple[pa.DataType, MakeColumn]]
    #: what rows of a block are sorted by, in block-sorted disorder
    sorted_by: SortedBy

    @property
    def schema(self) -> pa.Schema:
        """All columns with their types."""
        return pa.schema([*((name, kind) for name, (kind, _) in self.columns.items()), ("ts", TIMESTAMP)])

    def rows(
        self, settings: Settings, first: int, last: int, columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """The rows that arrive at positions `first` up to, not including, `last`; fewer if there are no more.

        `columns` are the names of those wanted, all without it; `__row`, the position itself, is one more.
        """
        settings = settings if settings.keys else replace(settings, keys=self.default_keys)
        events = arrivals(settings, first, last, self.sorted_by)
        names = self.schema.names if columns is None else columns
        arrays = [self._column(name, settings, events, first) for name in names]
        return pa.record_batch(arrays, names=list(names))

    def _column(self, name: str, settings: Settings, events: Integers, first: int) -> pa.Array:
        if name == ROW:
            return pa.array(np.arange(first, first + len(events), dtype=np.int64))
        if name == "ts":
            return pa.array(event_micros(settings, events)).view(TIMESTAMP)
        kind, make = self.columns[name]
        made = make(settings, events)
        return made if isinstance(made, pa.Array) else pa.array(made, type=kind)
