"""What rules compare: a synopsis that is held, and what a query wants."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from windrow.algebra.expressions import TRUE
from windrow.sharing.grids import Grid
from windrow.sharing.predicates.terms import Predicate, predicate_of
from windrow.sharing.synopses.synopsis import Kind

EVERYTHING = predicate_of(TRUE)


@dataclass(frozen=True)
class Family:
    """What synopses must have in common to be used together, but for their conditions: the input (a stream,
    or a join of several), the grouping, and the data per interval."""

    source: Hashable
    datum: Hashable
    keys: tuple[Hashable, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """Data over windows of these lengths, one for each stream of the input, every `slide`."""

    family: Family
    lengths: tuple[int, ...]
    slide: int
    origin: int = 0
    predicate: Predicate = EVERYTHING
    #: whether a row that is counted twice does harm
    is_sensitive: bool = True
    #: whether what is too much can be subtracted again
    is_subtractable: bool = False
    #: whether states of rows of different conditions may be put together
    adds_up: bool = True

    @property
    def grid(self) -> Grid:
        """The coarsest grid for it."""
        return Grid.of(self.lengths, self.slide, self.origin)


@dataclass(frozen=True)
class Held:
    """A synopsis with its parameters: s (the grid), b, and g for joins of windows of unequal lengths."""

    name: str
    family: Family
    grid: Grid
    b: int
    kind: Kind
    predicate: Predicate = field(default=EVERYTHING)
    g: int = 0

    def is_aligned(self, wanted: Wanted) -> bool:
        """Whether windows begin and end where intervals do."""
        return self.grid.has(wanted.grid)

    def intervals(self, wanted: Wanted) -> tuple[int, ...]:
        """The lengths of the windows, in intervals."""
        return tuple(length // self.grid.width for length in wanted.lengths)

    def is_long_enough(self, wanted: Wanted) -> bool:
        """Whether windows have at most b intervals."""
        return all(n <= self.b for n in self.intervals(wanted))
