"""The kernel of a ledger: takes in what is new, and answers all queries that are due together.

An epoch merges the intervals that close, makes matrices of what is kept, block of groups by block of groups,
and asks them for the windows of one query after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from windrow.kernels.layout import gathered
from windrow.kernels.shared.answering import Answering
from windrow.kernels.shared.book import page_of
from windrow.kernels.shared.keeping import Moved, lowest
from windrow.kernels.state import Chunk, State

if TYPE_CHECKING:
    import polars as pl

    from windrow.kernels.shared.answering import Pack
    from windrow.kernels.shared.turn import Turn


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
    for sheet in turn.ledger.tables:
        moved = Moved.of(sheet, keys, state, delta.get(sheet.name), turn.clock)
        chunks |= moved.kept(turn.clock)
        tables[sheet.name] = moved.frames(lowest(due, sheet, turn.clock)) if due else []
    found = Answered(State({name: some for name, some in chunks.items() if some}), iter(()))
    if any(frame.height for sheet in turn.ledger.sheets for frame in tables[sheet.name]):
        pages = [page_of(sheet, tables[sheet.name], turn.ledger) for sheet in turn.ledger.sheets]
        tallies = [(tally, gathered(tables[tally.name])) for tally in turn.ledger.tallies]
        answering = Answering(turn, due, pages, found.faults, tallies)
        found.cells, found.packs = answering.book.cells, answering.run()
    return found
