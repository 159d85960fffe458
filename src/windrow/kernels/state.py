"""What a kernel keeps between epochs: chunks of Arrow tables, and a few numbers.

A chunk is never changed; it knows the panes its rows are about, so that a kernel opens only what an epoch
needs, and an engine that keeps chunks as files passes the others through unread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl
import pyarrow as pa

from windrow.kernels.aggregates.partials import CountPartial, Partial
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.columnar.combiners import Combiner, Lanes

PANE = "pane"
ROWS = CountPartial("rows")


@dataclass(frozen=True)
class Encoded:
    """A table's states as lanes, one group of lanes for each combiner of the layout, and the way back."""

    lanes: list[Lanes]
    decode: Callable[[Sequence[Lanes]], list[pl.Series]]


@dataclass(frozen=True)
class TableLayout:
    """The columns of a table of states, and what can be done with any such table.

        pane | k0 … (what it is grouped by) | rows.0 | p0.0 p0.1 … (the partials)

    The first partial, `rows`, counts all rows: a group exists as long as it is not zero. A table of cells
    (`windrow.kernels.aggregates.value_tables`) has the cell among its keys, `v0 …`, and may keep less of a
    pane that is over.
    """

    keys: tuple[str, ...]
    partials: tuple[Partial, ...] = (ROWS,)
    #: what is left of a pane's rows when no more can come, by pane and group
    close: Callable[[pl.DataFrame, Sequence[str]], pl.DataFrame] | None = None

    @cached_property
    def combiners(self) -> tuple[Combiner, ...]:
        """How the lanes are combined; the first counts rows."""
        return tuple(combiner for partial in self.partials for combiner in partial.combiners)

    @property
    def subtracts(self) -> bool:
        """Whether all that is kept can be subtracted exactly."""
        return all(combiner.invertible for combiner in self.combiners)

    def encode(self, frame: pl.DataFrame) -> Encoded:
        """All partials as lanes."""
        parts = [partial.encode(frame) for partial in self.partials]
        widths = [len(partial.combiners) for partial in self.partials]

        def decode(lanes: Sequence[Lanes]) -> list[pl.Series]:
            left, columns = list(lanes), []
            for width, (_, back) in zip(widths, parts, strict=True):
                columns += back(left[:width])
                left = left[width:]
            return columns

        return Encoded([lane for lanes, _ in parts for lane in lanes], decode)

    def merge(self, frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
        """One row per value of `by`, the states of its rows combined."""
        if frame.height == 0:
            return frame
        encoded = self.encode(frame)
        names = [[f"{i}.{j}" for j in range(len(group))] for i, group in enumerate(encoded.lanes)]
        columns = {
            name: pl.Series(lane)
            for group, lanes in zip(names, encoded.lanes, strict=True)
            for name, lane in zip(group, lanes, strict=True)
        }
        merged = [expr for c, group in zip(self.combiners, names, strict=True) for expr in c.merged(group)]
        states = frame.select(by).with_columns(**columns)
        result = states.group_by(by).agg(merged)
        pairs = zip(self.combiners, names, strict=True)
        lanes = [combiner.collected([result[name] for name in group]) for combiner, group in pairs]
        return pl.DataFrame([*result.select(by).get_columns(), *encoded.decode(lanes)])

    def closed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """What is kept of panes that are over."""
        if self.close is None or not frame.height:
            return frame
        return self.close(frame, [PANE, *(name for name in self.keys if not name.startswith("v"))])


def gathered(frames: Iterable[pl.DataFrame]) -> pl.DataFrame | None:
    """All rows of some tables of one layout; None if there are none."""
    found = [frame for frame in frames if frame.height]
    return pl.concat(found) if found else None


@dataclass(frozen=True)
class Chunk:
    """An immutable table of states whose panes lie between `first` and `last`."""

    first: int
    last: int
    table: pa.Table

    @property
    def frame(self) -> pl.DataFrame:
        return to_frame(self.table)


@dataclass(frozen=True)
class State:
    """Chunks by name, and numbers that JSON can hold."""

    chunks: Mapping[str, tuple[Chunk, ...]] = field(default_factory=dict)
    meta: Mapping[str, int] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Chunk, ...]:
        """The chunks of one name."""
        return self.chunks.get(name, ())


@dataclass(frozen=True)
class Delta:
    """What an epoch brings: a table of pane states for each table of the query, and the last pane in which
    any row of the window is first seen, whether or not it passes WHERE."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    latest: int | None = None


def joined(states: Iterable[State]) -> dict[str, tuple[Chunk, ...]]:
    """The chunks of some states, those of one name together."""
    found: dict[str, tuple[Chunk, ...]] = {}
    for state in states:
        for name, chunks in state.chunks.items():
            found[name] = (*found.get(name, ()), *chunks)
    return found


def chunked(frames: Iterable[pl.DataFrame]) -> tuple[Chunk, ...]:
    """Frames as chunks; empty ones vanish.

    >>> [(chunk.first, chunk.last) for chunk in chunked([pl.DataFrame({"pane": [4, 2]}), pl.DataFrame()])]
    [(2, 4)]
    """
    return tuple(
        Chunk(frame[PANE].min(), frame[PANE].max(), frame.to_arrow())  # type: ignore[arg-type]
        for frame in frames
        if frame.height
    )


def split_at(chunks: Iterable[Chunk], pane: int) -> tuple[list[pl.DataFrame], list[Chunk]]:
    """The rows before a pane, and the chunks of the rest; chunks all of which comes later are not opened."""
    before: list[pl.DataFrame] = []
    after: list[Chunk] = []
    for chunk in chunks:
        if chunk.first >= pane:
            after.append(chunk)
        elif chunk.last < pane:
            before.append(chunk.frame)
        else:
            frame = chunk.frame
            before.append(frame.filter(pl.col(PANE) < pane))
            after += chunked([frame.filter(pl.col(PANE) >= pane)])
    return before, after
