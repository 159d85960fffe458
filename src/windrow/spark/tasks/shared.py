"""Ledgers in the two jobs of an epoch: rows become states of their sheets, and all their queries are answered.

In delta files a sheet lies under the ledger's name, as the tables of a query do under the query's; where
Spark has aggregated, its states are columns of the feed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.columns import to_frame
from windrow.kernels.layout import PANE
from windrow.kernels.panes import merge_panes
from windrow.kernels.shards import split
from windrow.kernels.shared.lifting import Lifting
from windrow.spark.native import native_ledger
from windrow.spark.tasks.delta_file import FEED, QUERY
from windrow.spark.tasks.reports import Fault, fault_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.kernels.shared.kernel import Turn
    from windrow.kernels.shared.ledger import Ledger
    from windrow.spark.tasks.place import Spool
    from windrow.state.reading import Chunk
    from windrow.state.refs import ChunkRef

#: states waiting in memory are merged when there are this many
_MANY_ROWS = 1 << 20


@dataclass(frozen=True)
class SharedWork:
    """A ledger to move, and the delta files it has not taken in yet."""

    turn: Turn
    deltas: tuple[ChunkRef, ...] = ()
    #: for some queries, whether the windows that end at an instant are left out
    drops: Mapping[str, Callable[[int], bool]] | None = None

    @property
    def name(self) -> str:
        return self.turn.ledger.name


class LedgerGathering:
    """The states of a ledger, growing with each piece of a batch."""

    def __init__(self, ledger: Ledger) -> None:
        self.name = ledger.name
        self.fault: Fault | None = None
        self._ledger, self._lifting = ledger, Lifting(ledger)
        self._waiting: dict[str, list[pl.DataFrame]] = {}

    def take(self, accepted: pl.DataFrame) -> None:
        """Some accepted rows. After an error nothing is computed any more."""
        if self.fault is not None or not accepted.height:
            return
        try:
            for name, frame in self._lifting.tables(accepted).items():
                waiting = self._waiting.setdefault(name, [])
                waiting.append(frame)
                if len(waiting) > 1 and sum(each.height for each in waiting) > _MANY_ROWS:
                    self._waiting[name] = [self._merged(name)]
        except Exception as error:  # noqa: BLE001  whatever is wrong here must not stop other queries
            self.fault = fault_of(error, self.name)

    def put(self, spool: Spool, shards: int) -> None:
        """Write what was gathered."""
        for name in self._waiting if self.fault is None else ():
            for shard, rows in split(self._merged(name), self._ledger.key_types, shards):
                spool.writer.add((QUERY, self.name, name, shard), rows.to_arrow())

    def _merged(self, name: str) -> pl.DataFrame:
        sheet = next(sheet for sheet in self._ledger.sheets if sheet.name == name)
        return merge_panes(self._waiting[name], sheet.layout(len(self._ledger.keys)))


def sheets_of(files: Iterable[Chunk], ledger: Ledger, shard: int) -> dict[str, pl.DataFrame]:
    """What some delta files hold for a ledger in a shard: one table for each sheet that has rows."""
    found: dict[str, list[pl.DataFrame]] = {}
    native, keys = native_ledger(ledger), tuple(ledger.key_types)
    for file in files:
        there = set(file.keys)
        feed = None
        if native is not None and (FEED, native.feed, shard) in there:
            feed = to_frame(file.read((FEED, native.feed, shard)))
        for sheet in ledger.sheets:
            tables = found.setdefault(sheet.name, [])
            if (QUERY, ledger.name, sheet.name, shard) in there:
                own = to_frame(file.read((QUERY, ledger.name, sheet.name, shard)))
                tables.append(sheet.fitted(own, keys))
            if feed is not None and native is not None:
                layout = sheet.layout(len(keys))
                tables.append(layout.merge(native.panes(feed, sheet), [PANE, *keys]))
    merged = {
        sheet.name: merge_panes(found.get(sheet.name, []), sheet.layout(len(keys))) for sheet in ledger.sheets
    }
    return {name: frame for name, frame in merged.items() if frame.height}
