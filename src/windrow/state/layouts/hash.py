"""Hash: when a row leaves is not known (pattern STR). Cut by key; a tombstone takes back a row that leaves.

No instant makes a chunk superfluous, so all of an operator's chunks are needed, in order: a tombstone takes
back what came before it. Merging them is what gives room back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.state.layouts.base import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.state.chunk import Key
    from windrow.state.refs import ChunkRef


@dataclass(frozen=True)
class Hash(Layout):
    """Sections (operator, bucket), the bucket being the key's hash modulo `buckets`."""

    buckets: int = 1

    def __post_init__(self) -> None:
        if self.buckets < 1:
            raise ValueError("there is at least one bucket")

    def bucket_of(self, hashed: int) -> int:
        """The bucket of a key with that hash. Works on arrays too."""
        return hashed % self.buckets

    def key_of(self, hashed: int) -> Key:
        """The section of a key with that hash."""
        return (self.operator, self.bucket_of(hashed))

    def worth_merging(self, chunks: Iterable[ChunkRef], share: float = 0.25) -> bool:
        """Whether so many rows are tombstones that reading them costs more than merging once.

        >>> from windrow.state.refs import ChunkRef, Facts
        >>> chunk = ChunkRef("chunks/a", 64, "", 4, {"except": Facts(4, 64, tombstones=1)})
        >>> Hash("except", 16).worth_merging([chunk])
        True
        """
        parts = [ref.operators[self.operator] for ref in chunks if self.operator in ref.operators]
        tombstones = sum(part.tombstones for part in parts)
        return tombstones > 0 and tombstones >= share * sum(part.rows for part in parts)
