"""Restore: periodic refreshes that lose nothing which came and went between two of them (thesis, 3.3.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.algebra.changes import Change
from windrow.algebra.plan import Emit, Plan, StreamWord, Window
from windrow.reference.pieces import Piece, Pieces, counted
from windrow.windows.ranges import RangeWindow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from windrow.reference.rows import LeafRows
    from windrow.reference.world import World


def continuous(plan: Plan) -> Plan:
    """The plan with windows that move at every instant: SLIDE is only the refresh period."""
    return (
        _moving(plan)
        if isinstance(plan, Window)
        else plan.with_children(tuple(map(continuous, plan.children)))
    )


def _moving(leaf: Window) -> Window:
    assert isinstance(leaf.spec, RangeWindow)
    return replace(leaf, spec=replace(leaf.spec, slide=None))


def changes(emit: Emit, leaves: Mapping[Window, LeafRows], world: World) -> Iterator[Change]:
    """What each refresh reports: results born since the last one; with RSTREAM also those alive before E.

    Results not made of certain rows, and those that negative rows take back, are told apart by their values.
    """
    moving = {_moving(leaf): rows for leaf, rows in leaves.items()}
    pieces = Pieces(moving, world, uniting=True).of(continuous(emit.input))
    for piece in counted(pieces) if emit.restores_by_value else pieces:
        for end in _refreshes(emit, piece):
            yield Change("+", piece.fact.values, end)


def _refreshes(emit: Emit, piece: Piece) -> Sequence[int]:
    spec = emit.leaves[0].spec
    born = spec.first_after(int(piece.vs))
    if emit.word is StreamWord.ISTREAM_RESTORE:
        return [born]
    return spec.slide_instants(int(piece.vs), int(piece.ve)) or [born]
