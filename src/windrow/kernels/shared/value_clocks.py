"""The tallies of a ledger in an epoch: their clocks move, and the windows that are due get their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.layouts import gathered
from windrow.kernels.shared.kept_chunks import Moved, lowest
from windrow.kernels.shared.sums import Sums
from windrow.kernels.shared.value_counts import Summed, Tallied, Tally
from windrow.kernels.state import Chunk, State

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from windrow.kernels.shared.request import Asker
    from windrow.kernels.shared.step import Turn

    Ints = npt.NDArray[np.int64]

#: a tally, and the RANGE of the windows that it is asked for
Key = tuple[str, int]


@dataclass
class Counted:
    """What an epoch makes of the tallies: what is kept, and cells of windows, by sums or from intervals."""

    chunks: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)
    meta: dict[str, int] = field(default_factory=dict)
    sums: dict[Key, tuple[Tally, dict[int, pl.DataFrame]]] = field(default_factory=dict)
    intervals: dict[str, tuple[Tally, pl.DataFrame]] = field(default_factory=dict)
    from_intervals: dict[Key, str] = field(default_factory=dict)

    @property
    def tables(self) -> list[pl.DataFrame]:
        """All tables, for the groups that are in them."""
        sums = [each for _, frames in self.sums.values() for each in frames.values() if each.height]
        return [*sums, *(table for _, table in self.intervals.values())]

    def numbered(self, groups: pl.DataFrame, keys: Sequence[str]) -> dict[Key, Summed | Tallied]:
        """Where queries find their cells, with the groups by their numbers."""
        whole = {label: Tallied(*found, groups, keys) for label, found in self.intervals.items()}
        found: dict[Key, Summed | Tallied] = {
            key: whole[label] for key, label in self.from_intervals.items() if label in whole
        }
        return found | {key: Summed(*each, groups, keys) for key, each in self.sums.items()}


def counted_in(
    turn: Turn,
    state: State,
    delta: Mapping[str, pl.DataFrame],
    due: Sequence[Asker],
    windows: Mapping[str, Ints],
) -> Counted:
    """All tallies of a ledger moved on."""
    found, keys = Counted(), tuple(turn.ledger.key_types)
    for tally in turn.ledger.tallies:
        moved = Moved.of(tally, keys, state, delta.get(tally.name), turn.clock)
        found.chunks |= moved.kept(turn.clock)
        asking = [asker for asker in due if any(label == tally.label for _, label in asker.tallies)]
        sums = Sums(tally, tally.layout(len(keys)), moved.closed, state)
        for span in tally.spans:
            length = span * tally.width
            same = [asker for asker in asking if asker.range == length and asker.query in windows]
            ends = {end for each in same for end in tally.panes_of(windows[each.query]).tolist()}
            frames = sums.moved(span, ends, turn.clock)
            if same and frames is not None:
                found.sums[tally.label, length] = tally, frames
            elif same:
                found.from_intervals[tally.label, length] = tally.label
        found.chunks |= sums.chunks
        found.meta |= sums.meta
        if tally.label in found.from_intervals.values():
            table = gathered(moved.frames(lowest(asking, tally, turn.clock)))
            found.intervals |= {tally.label: (tally, table)} if table is not None else {}
    return found
