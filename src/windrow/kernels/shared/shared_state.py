"""Ledgers: what is kept once, of one stream and one grouping, for all queries over them.

A *sheet* has intervals of one width, all windows of its queries being whole numbers of them. For each
interval and group it has *entries*: counts, totals, extremes of the rows that satisfy a condition, each of
them once, however many queries ask for it.

    pane | k0 … (the grouping) | p1.0 | p2.0 | p3.0 p3.1 …

A group that has no rows for an entry has the state of no rows there, or NULL, where the entry came later than
the interval did.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.aggregates.partials import Part, Partial, Rows
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.layouts import PANE, Layout

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.catalog import Stream
    from windrow.algebra.types import DataType
    from windrow.kernels.shared.value_counts import Tally


@dataclass(frozen=True)
class Entry:
    """A state by interval and group, of the rows for which `where` holds; its shape bears its name."""

    shape: Partial
    args: tuple[Expression, ...]
    where: Expression
    #: what rows of one instant are ordered by, where that matters
    order: tuple[Expression, ...] = ()

    @property
    def name(self) -> str:
        return self.shape.label

    def is_something(self) -> pl.Expr:
        """Whether a state differs from that of no rows. Parts of states may have no count of their own."""
        if not isinstance(self.shape, Part):
            return pl.col(f"{self.name}.0") > 0
        return pl.any_horizontal(pl.col(column.name) != 0 for column in self.nothing())

    def nothing(self) -> list[pl.Series]:
        """The columns of the state of no rows: that of one row which does not count."""
        args = tuple(pl.Series([None], dtype=polars_type(arg.type)) for arg in self.args)
        order = [pl.Series("#t", [0], dtype=pl.Int64)]
        order += [
            pl.Series(f"o{n}", [None], dtype=polars_type(part.type)) for n, part in enumerate(self.order)
        ]
        return self.shape.lift(Rows(args, pl.Series([False]), pl.DataFrame(order)))


@dataclass(frozen=True)
class Sheet:
    """Intervals [phase + i·width, phase + (i+1)·width), the last `length` of which are kept."""

    width: int
    phase: int
    length: int
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """Its grid, for which a ledger has one sheet."""
        return f"{self.width}+{self.phase}"

    def index(self, instant: int) -> int:
        """The interval that an instant is in."""
        return (instant - self.phase) // self.width

    def panes_of(self, instants: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The interval of each instant."""
        return np.asarray((instants - self.phase) // self.width)

    @cached_property
    def nothing(self) -> dict[str, pl.Series]:
        """The columns of all entries, with the state of no rows."""
        return {column.name: column for entry in self.entries for column in entry.nothing()}

    def layout(self, keys: int) -> Layout:
        """The columns of its table."""
        return Layout(tuple(f"k{place}" for place in range(keys)), tuple(e.shape for e in self.entries))

    def some(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Without the rows that say nothing."""
        return frame.filter(pl.any_horizontal(entry.is_something() for entry in self.entries))

    def parts(self, frame: pl.DataFrame) -> list[pl.DataFrame]:
        """How intervals that are over are put away, if there are many chunks: all are read together."""
        return [frame]

    def fitted(self, frame: pl.DataFrame, keys: tuple[str, ...]) -> pl.DataFrame:
        """A table of an earlier time with the entries of today: others go, new ones are empty."""
        columns = [frame[name] for name in (PANE, *keys)]
        for name, nothing in self.nothing.items():
            if name in frame.columns:
                columns.append(frame[name])
            else:
                columns.append(nothing.new_from_index(0, frame.height))
        return pl.DataFrame(columns)


@dataclass(frozen=True)
class Ledger:
    """All sheets of one stream and one grouping, and tallies of what has no constant size."""

    name: str
    stream: Stream
    keys: tuple[Expression, ...]
    sheets: tuple[Sheet, ...]
    tallies: tuple[Tally, ...] = ()

    @property
    def tables(self) -> tuple[Sheet, ...]:
        """All that is kept."""
        return (*self.sheets, *self.tallies)

    @property
    def key_types(self) -> dict[str, DataType]:
        """The key columns and their types."""
        return {f"k{place}": key.type for place, key in enumerate(self.keys)}
