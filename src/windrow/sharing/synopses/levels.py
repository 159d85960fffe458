"""Tables of intervals of s, 2s, 4s, … by (level, number), few of which make any window."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from windrow.sharing.synopses.states import States


def parts(begin: int, end: int, levels: int) -> Iterator[tuple[int, int]]:
    """The longest intervals that make [begin, end), as (level, number), oldest first.

    >>> list(parts(1, 8, levels=4)), list(parts(-3, 5, levels=4))
    ([(0, 1), (1, 1), (2, 1)], [(0, -3), (1, -1), (2, 0), (0, 4)])
    """
    while begin < end:
        level = min((begin & -begin).bit_length(), levels) - 1 if begin else levels - 1
        while begin + (1 << level) > end:
            level -= 1
        yield level, begin >> level
        begin += 1 << level


class Levels:
    """Number i of level l is [i·2^l, (i+1)·2^l); the longest are as long as b, made a power of two."""

    def __init__(self, b: int) -> None:
        self.longest = 1 << (b - 1).bit_length()
        self.count = self.longest.bit_length()
        self.tables: dict[tuple[int, int], pl.DataFrame] = {}

    def probe(self, states: States, end: int, lengths: Sequence[int]) -> tuple[dict[int, pl.DataFrame], int]:
        """The states over the last n intervals before `end`, for each n, and how many intervals were read."""
        reads, found = 0, {}
        for length in lengths:
            read = list(parts(end - length, end, self.count))
            reads += len(read)
            found[length] = states.merged([self.tables[part] for part in read if part in self.tables])
        return found, reads
