"""How the clock of a query moves, from what is known of its streams and tables before and after.

It has no state: what is known goes in. `reached` is how far the clock had come before the input ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.catalog import Late
from windrow.algebra.plan import Scan, TableScan, Window
from windrow.kernels.relational.clock import Clock
from windrow.kernels.relational.signed_rows import finite
from windrow.kernels.relational.windows.input_rows import KEPT, NEVER_LATE
from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Instant

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.intake import Known

    Knowns = Mapping[str, Known]
    #: how far each table is
    Held = Mapping[str, Instant]


class Timing:
    """The clock of one query. Groups are final by `sources`: of each stream, the columns that may tell them
    apart."""

    def __init__(self, emit: Emit, sources: Mapping[str, Sequence[str]]) -> None:
        self.emit = emit
        self.sources = sources
        self.windows = [node for node in emit.walk() if isinstance(node, Window)]
        self.streams = {stream.name: stream for window in self.windows for stream in window.streams}
        self.tables = {node.table.name for node in emit.walk() if isinstance(node, TableScan)}

    def moved(self, before: Knowns, held: Held, now: Knowns, now_held: Held, reached: Instant) -> Clock:
        """How the clock moves: of all sources together, or of each."""
        own = self._own(now)
        others = finite(self._clock(before, held)), finite(self._clock(now, now_held))
        if own is None:
            return Clock(*others, finite(reached))
        sources = {
            source: (
                finite(self._clock(before, held, own, source)),
                finite(self._clock(now, now_held, own, source)),
            )
            for source in now[own].progress.sources
        }
        moves = [others, *sources.values()]
        furthest = max(b for b, _ in moves), max(n for _, n in moves)
        return Clock(*furthest, finite(reached), now[own].per, sources, others)

    def furthest(self, known: Knowns, held: Held) -> Instant:
        """How far any answer is given."""
        clocks = [self._clock(known, held)]
        for name in known:
            if self._by_group(name, known):
                clocks += [self._clock(known, held, name, source) for source in known[name].progress.sources]
        return max(clocks)

    def clock(self, known: Knowns, held: Held) -> Instant:
        """The least P of all inputs."""
        return self._clock(known, held)

    def kept(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> list[pl.Series]:
        """How far answers were given for each row that is kept although it is late, as a column."""
        stream = self.streams[name]
        if stream.late is not Late.KEEP or not rows.height:
            return [pl.Series(KEPT, [NEVER_LATE], dtype=pl.Int64).new_from_index(0, rows.height)]
        promised, clock = self._promised(name, known, held, rows)
        moment = {ROW_NUM: f"#{ROW_NUM}", ARRIVAL_TS: f"#{ARRIVAL_TS}"}.get(stream.wattr, stream.wattr)
        late = rows[moment].cast(pl.Int64).to_numpy() < promised
        return [pl.Series(KEPT, np.where(late, clock, NEVER_LATE), dtype=pl.Int64)]

    def _promised(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> tuple[Any, Any]:
        """P and the clock that held for each row, by its source."""
        mine = known[name]
        others = finite(mine.progress.progress), finite(self._clock(known, held))
        if mine.per is None or not mine.progress.sources:
            return np.full(rows.height, others[0]), np.full(rows.height, others[1])
        own = name if self._by_group(name, known) else None
        sources = {
            source: (
                finite(mine.progress.progress_of(source)),
                finite(self._clock(known, held, own, source)),
            )
            for source in mine.progress.sources
        }
        return Clock(0, 0, column=mine.per, sources=sources, others=others).of(rows[mine.per])

    def _own(self, known: Knowns) -> str | None:
        """The stream whose sources have clocks of their own."""
        return next((name for name in known if self._by_group(name, known)), None)

    def _by_group(self, name: str, known: Knowns) -> bool:
        return known[name].per in self.sources.get(name, ())

    def _clock(self, known: Knowns, held: Held, own: str | None = None, source: Any = None) -> Instant:
        """The least P of all inputs; of `own`, only what this source promises counts."""
        found: list[Instant] = [progress for name, progress in held.items() if name in self.tables]
        for window in self.windows:
            for scan in (origin for origin in window.origins if isinstance(origin, Scan)):
                each, attribute = known[scan.stream.name], window.attribute_of(scan)
                by_source = scan.stream.name == own and attribute == scan.stream.wattr and not each.sealed
                promised = each.progress.progress_of(source) if by_source else None
                found.append(each.progress_on(scan.stream, attribute) if promised is None else promised)
        return min(found, default=INFINITY)
