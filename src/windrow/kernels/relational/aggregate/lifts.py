"""Lifts: pieces as states of γ, those of a group that come and go together combined into one.

γ does not need the rows of a join, only their states; and of those with the same group, the same beginning
and the same end only what they come to together. There are as many of these as there are groups and slides,
however many rows a join gives. Queries over one join ask for states of the same pieces, so whatever one of
them has had computed, the groups of rows or a state, is there for the others.

Card: states of pieces
    requirements  states of constant size that do not depend on the order of rows
    time          one grouping of the pieces for each GROUP BY, one combination for each state, whoever asks
    space         one state per group, beginning and end
    source        Golab's thesis, 8.3.2: a synopsis over a join by expiry time, shared by its aggregates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from windrow.kernels.aggregates.measures import GROUPS, Argument, Measures
from windrow.kernels.columnar.columns import polars_type, without_negative_zero
from windrow.kernels.columnar.expressions import can_fail, compile_expression
from windrow.kernels.relational.signed_rows import FOREVER, VE, VS, N, codes
from windrow.kernels.state import PANE, ROWS, TableLayout

if TYPE_CHECKING:
    import numpy.typing as npt

    from windrow.algebra.expressions import Expression
    from windrow.kernels.aggregates.partials import Partial

    #: a state, and what it is lifted from; the number of rows is lifted from nothing
    Wanted = tuple[Partial, Argument | None]


@dataclass
class Lifts:
    """The states of some pieces. They may be asked for as if the pieces ended `sooner`."""

    pieces: pl.DataFrame
    sooner: int = 0
    _groupings: dict[tuple[Expression, ...], _Grouping] = field(default_factory=dict)

    def ending(self, sooner: int) -> Lifts:
        """The same over windows that are shorter by so many ticks; what is computed is shared."""
        return Lifts(self.pieces, self.sooner + sooner, self._groupings)

    def states(self, measures: Measures) -> pl.DataFrame:
        """`#k0` …, `#vs`, `#ve`, `#n`, and the states of γ's groups: those of one copy, of which there are
        `#n`."""
        keys = tuple(key for _, key in measures.plan.keys)
        if self.sooner and any(map(can_fail, measures.plan.reads)):
            # pieces that never begin here must not stop a query that does not see them
            return Lifts(ending(self.pieces, self.sooner)).states(measures)
        if keys not in self._groupings:
            self._groupings[keys] = _Grouping(self.pieces, keys)
        grouping = self._groupings[keys]
        wanted = [
            (partial, None if partial == ROWS else Argument(*measures.argument_of(partial)))
            for partial in measures.layouts[GROUPS].partials
        ]
        found = grouping.groups.with_columns(grouping.states(wanted))
        return ending(found, self.sooner) if self.sooner else found


def ending(pieces: pl.DataFrame, sooner: int) -> pl.DataFrame:
    """Pieces that end sooner; some never begin.

    >>> ending(pl.DataFrame({VS: [0, 5], VE: [9, 9]}), 4).rows()
    [(0, 5)]
    """
    ends = pl.when(pl.col(VE) < FOREVER).then(pl.col(VE) - sooner).otherwise(VE)
    return pieces.with_columns(ends.alias(VE)).filter(pl.col(VS) < pl.col(VE))


@dataclass
class _Grouping:
    """Pieces by one GROUP BY."""

    pieces: pl.DataFrame
    keys: tuple[Expression, ...]
    _known: dict[Wanted, list[pl.Series]] = field(default_factory=dict)

    @cached_property
    def _rows(self) -> pl.DataFrame:
        """What tells groups apart, for each piece."""
        keys = [
            without_negative_zero(compile_expression(key)(self.pieces))
            .cast(polars_type(key.type))
            .alias(f"#k{place}")
            for place, key in enumerate(self.keys)
        ]
        return pl.DataFrame([*keys, *(self.pieces[name] for name in (VS, VE, N))])

    @cached_property
    def _first(self) -> npt.NDArray[np.int64]:
        """For each piece, the place of the first of its group."""
        return codes(self._rows, self._rows.columns)

    @cached_property
    def groups(self) -> pl.DataFrame:
        """One row for each group of pieces."""
        return self._rows.filter(pl.Series(self._heads))

    @cached_property
    def _heads(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self._first == np.arange(len(self._first)))

    @cached_property
    def _number(self) -> npt.NDArray[np.int64]:
        """For each piece, the number of its group."""
        return (np.cumsum(self._heads) - 1)[self._first]

    def states(self, wanted: Sequence[Wanted]) -> list[pl.Series]:
        """The columns of states, in the order of the groups; those that are not known yet are computed."""
        asked = [((replace(partial, label=""), argument), partial) for partial, argument in wanted]
        missing = list(dict.fromkeys(key for key, _ in asked if key not in self._known))
        if missing:
            self._known |= self._combined(missing)
        return [
            column.alias(f"{partial.label}.{place}")
            for key, partial in asked
            for place, column in enumerate(self._known[key])
        ]

    def _combined(self, missing: Sequence[Wanted]) -> dict[Wanted, list[pl.Series]]:
        named = [replace(shape, label=f"s{place}") for place, (shape, _) in enumerate(missing)]
        columns = [pl.Series(PANE, self._number)]
        for partial, (_, argument) in zip(named, missing, strict=True):
            if argument is None:
                columns.append(pl.Series(f"{partial.label}.0", [1]).new_from_index(0, self.pieces.height))
            else:
                columns += partial.lift(argument.rows(self.pieces, pl.DataFrame()))
        merged = pl.DataFrame(columns)
        if not self._heads.all():
            merged = TableLayout((), tuple(named)).merge(merged, [PANE]).sort(PANE)
        return {
            key: [merged[name] for name in merged.columns if name.startswith(f"{partial.label}.")]
            for partial, key in zip(named, missing, strict=True)
        }
