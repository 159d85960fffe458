"""The kernel of a ledger: takes in what is new, and answers all queries that are due together.

An epoch merges the intervals that close, makes matrices of what is kept, block of groups by block of groups,
and asks them for the windows of one query after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from windrow.kernels.shared.answers import Answering
from windrow.kernels.shared.combination import terms_of
from windrow.kernels.shared.groups import page_of
from windrow.kernels.shared.kept_chunks import Moved, lowest
from windrow.kernels.shared.value_clocks import counted_in
from windrow.kernels.state import Chunk, State

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    from windrow.kernels.clock import Clock
    from windrow.kernels.shared.answers import Pack
    from windrow.kernels.shared.groups import Page
    from windrow.kernels.shared.request import Asker
    from windrow.kernels.shared.step import Turn

    Ints = npt.NDArray[np.int64]


@dataclass
class Answered:
    """What an epoch of a ledger gives: answers as they are made, and the queries that failed."""

    state: State
    packs: Iterator[Pack]
    faults: dict[str, Exception] = field(default_factory=dict)
    #: how many cells its matrices have
    cells: int = 0


def advance(turn: Turn, state: State, delta: Mapping[str, pl.DataFrame]) -> Answered:
    """The next state, and the answers of all that is due."""
    due = [asker for asker in turn.askers if asker.is_due(turn.clock)]
    keys = tuple(turn.ledger.key_types)
    chunks: dict[str, tuple[Chunk, ...]] = {}
    tables: dict[str, list[pl.DataFrame]] = {}
    for sheet in turn.ledger.sheets:
        moved = Moved.of(sheet, keys, state, delta.get(sheet.name), turn.clock)
        chunks |= moved.kept(turn.clock)
        tables[sheet.name] = moved.frames(lowest(due, sheet, turn.clock)) if due else []
    pages: list[Page] = []
    windows: dict[str, Ints] = {}
    if any(frame.height for frames in tables.values() for frame in frames):
        pages = [page_of(sheet, tables[sheet.name], turn.ledger) for sheet in turn.ledger.sheets]
        windows = windows_of(due, pages, turn.clock)
    counted = counted_in(turn, state, delta, due, windows)
    chunks |= counted.chunks
    after = State({name: some for name, some in chunks.items() if some}, counted.meta)
    found = Answered(after, iter(()))
    if pages:
        answering = Answering(turn, due, pages, found.faults, windows, counted)
        found.cells, found.packs = answering.book.cells, answering.run()
    return found


def windows_of(due: Sequence[Asker], pages: Sequence[Page], clock: Clock) -> dict[str, Ints]:
    """The ends of the windows of each query that are to be answered."""
    of = {entry.name: page for page in pages for entry in page.sheet.entries}
    return {asker.query: _windows(asker, of, clock) for asker in due}


def _windows(asker: Asker, pages: Mapping[str, Page], clock: Clock) -> Ints:
    """Those that have rows of any of the entries that its groups are in."""
    mine = [pages[name] for name, is_added in terms_of(asker.exists) if is_added]
    different = {page.sheet.name: page for page in mine}.values()
    found = [asker.windows(page.panes, page.sheet, clock) for page in different]
    ends = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
    return asker.wanted(ends, clock)
