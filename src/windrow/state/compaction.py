"""Few files instead of many: which neighbours to merge, and merging them.

Files are merged only with neighbours in age, so that rows that will expire together stay together. Of all
neighbours the smallest pairs go first: a file is rewritten about as often as the state has doubled since, not
once per epoch.
"""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, TypeAlias

from windrow.state.refs import ChunkRef

if TYPE_CHECKING:
    from collections.abc import Sequence


Group: TypeAlias = tuple[ChunkRef, ...]


def plan_compaction(chunks: Sequence[ChunkRef], most_files: int = 64) -> list[Group]:
    """Groups of neighbours to merge, if there are more than `most_files`; three quarters of that remain.

    >>> files = [ChunkRef(f"chunks/{size}", size, "", 1) for size in (90, 80, 5, 6, 7)]
    >>> [[ref.bytes for ref in group] for group in plan_compaction(files, most_files=4)]
    [[5, 6, 7]]
    >>> plan_compaction(files, most_files=5)
    []
    """
    if most_files < 1:
        raise ValueError("there is always at least one file")
    if len(chunks) <= most_files:
        return []
    groups: list[Group] = [(ref,) for ref in chunks]
    sizes = [_cost(ref) for ref in chunks]
    while len(groups) > max(1, most_files * 3 // 4):
        pairs = list(map(add, sizes, sizes[1:]))
        at = pairs.index(min(pairs))
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
        sizes[at : at + 2] = [pairs[at]]
    return [group for group in groups if len(group) > 1]


def _cost(ref: ChunkRef) -> int:
    """What of a file would be written again."""
    return ref.live_bytes or ref.bytes
