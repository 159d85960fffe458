"""The states of user-defined aggregates as columns: the number of rows, and the state as bytes.

Calls of the user's code cannot be made on arrays; they are made one by one, and only where both states have
rows. A single row is not a state yet: it is kept as it is until the rows of its pane and group are gathered,
and these are then folded by `step`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.aggregates import Definition
from windrow.algebra.aggregates.plain_values import decoded, encoded
from windrow.algebra.types import DataType
from windrow.kernels.aggregates.partials import LiftedRows, Partial
from windrow.kernels.columnar.columns import values_of
from windrow.kernels.columnar.combiners import TOTAL, Combiner, Lanes, scanned

if TYPE_CHECKING:
    import numpy.typing as npt

#: what the bytes of a row that is not stepped yet begin with; no plain value begins so
_ROW = b"r"
_NOTHING = b""


@dataclass(frozen=True)
class Merging:
    """States as bytes, merged by the user's code; empty bytes are the state of no rows."""

    definition: Definition
    invertible: bool = False
    chooses: bool = False

    def identity(self, shape: tuple[int, ...]) -> Lanes:
        return (np.full(shape, _NOTHING, dtype=object),)

    def combine(self, a: Lanes, b: Lanes) -> Lanes:
        left, right = np.broadcast_arrays(a[0], b[0])
        found = np.where(left == _NOTHING, right, left)
        both = (left != _NOTHING) & (right != _NOTHING)
        for place in zip(*np.nonzero(both), strict=True):
            found[place] = self.definition.merged(left[place], right[place])
        return (found,)

    def scan(self, lanes: Lanes, axis: int) -> Lanes:
        return scanned(self, lanes, axis)

    def merged(self, names: Sequence[str]) -> list[pl.Expr]:
        return [pl.col(names[0])]

    def collected(self, columns: Sequence[pl.Series]) -> Lanes:
        """The lists of each group, which `merged` has gathered, made one state each."""
        return (_objects([self._reduced(states) for states in columns[0].to_list()]),)

    def _reduced(self, states: list[bytes]) -> bytes:
        own = self.definition
        rows = [decoded(state[1:]) for state in states if state.startswith(_ROW)]
        found = own.stored(own.stepped(own.started(), rows), "step") if rows else _NOTHING
        for state in states:
            if state and not state.startswith(_ROW):
                found = own.merged(found, state) if found else state
        return found


@dataclass(frozen=True)
class UserState(Partial):
    """The state of a user-defined aggregate with `merge`."""

    definition: Definition
    kinds: tuple[DataType, ...]

    @property
    def combiners(self) -> tuple[Combiner, ...]:
        return TOTAL, Merging(self.definition)

    def lift(self, rows: LiftedRows) -> list[pl.Series]:
        chosen = rows.chosen.to_numpy()
        columns = [values_of(arg, kind) for arg, kind in zip(rows.args, self.kinds, strict=True)]
        states = np.full(len(chosen), _NOTHING, dtype=object)
        for place, args in enumerate(zip(*columns, strict=True)):
            if chosen[place]:
                states[place] = _ROW + encoded(args)
        return self._columns([(chosen.astype(np.int64),), (states,)])

    def _columns(self, lanes: Sequence[Lanes]) -> list[pl.Series]:
        (count,), (states,) = lanes
        return [
            pl.Series(self._name(0), count),
            pl.Series(self._name(1), states.tolist(), dtype=pl.Binary),
        ]


def finals(definition: Definition, states: Sequence[bytes]) -> list[Any]:
    """The value of each state."""
    return [
        definition.result(definition.loaded(state) if state else definition.started()) for state in states
    ]


def _objects(values: list[bytes]) -> npt.NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
