"""INTERNAL windows: results need their parts to meet, but outlive them (thesis, 3.3.2).

Inside the plan everything is as with external windows; only the final result stays, until the first
of its external windows lets go of it, or for ever.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.reference.pieces import Piece, Pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windrow.algebra.plan import Emit, Window
    from windrow.reference.rows import LeafRows
    from windrow.reference.world import Values, World


def results(
    emit: Emit, leaves: Mapping[Window, LeafRows], world: World, lag: int, extents: Iterable[int]
) -> list[Piece]:
    """All results, with how long they stay.

    Every extent of a periodic aggregate is a result of its own, also when its value is the last one's; and
    only what is there at the end of some extent is a result of a periodic plan, from then on.
    """
    reports = sorted(extents)
    pieces = Pieces(leaves, world, lag=lag, breaks=reports, uniting=True).of(emit.input)
    if not emit.is_periodic:
        return pieces
    births = [(piece, next((at for at in reports if at in piece), None)) for piece in pieces]
    return [replace(piece, vs=birth) for piece, birth in births if birth is not None]


def staying(pieces: Iterable[Piece], at: int) -> Counter[Values]:
    """The results produced so far that still stay; one made of the same rows again is the same one."""
    found = {(piece.origin, piece.fact.values) for piece in pieces if piece.vs <= at < piece.stays}
    return Counter(values for _, values in found)
