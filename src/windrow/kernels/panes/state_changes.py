"""A state of panes while an epoch changes it: chunks by table and kind, until they are a state again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.kernels.state import Chunk, State

if TYPE_CHECKING:
    from windrow.kernels.panes.answers import Answers


@dataclass
class Changing:
    """What kernels that move their panes from kind to kind have in common."""

    answers: Answers
    chunks: dict[str, tuple[Chunk, ...]]
    meta: dict[str, int]

    def __post_init__(self) -> None:
        self.cut = self.answers.query.cut
        self.layouts = self.answers.measures.layouts

    @property
    def state(self) -> State:
        """What is to be kept."""
        return State({name: chunks for name, chunks in self.chunks.items() if chunks}, self.meta)

    def of(self, table: str, kind: str) -> tuple[Chunk, ...]:
        """The chunks of one kind, such as open panes."""
        return self.chunks.get(table + kind, ())
