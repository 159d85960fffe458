"""Which update pattern a plan really shows on a history: what labels are held against.

A pattern is a promise about all histories, so one history can only refute it: `refutes` tells whether this
one does. The definitions are those of Golab's thesis, section 3.2.1, on the pieces of a plan.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from windrow.reference.interval_rows import IntervalRow, IntervalRows
from windrow.reference.rows import World
from windrow.reference.streams import QueryEvaluation, lag_of
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.patterns import Label, Pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

    from windrow.algebra.plan import Emit, Plan


def refutes(emit: Emit, node: Plan, label: Label, world: World) -> bool:
    """Whether this history contradicts the label of a node of the query."""
    pieces = pieces_of(emit, node, world)
    match label.pattern:
        case Pattern.MON:
            return any(piece.ve != INFINITY for piece in pieces)
        case Pattern.WKS:
            return any(piece.ve - piece.vs != label.lifetime for piece in pieces)
        case Pattern.WK:
            return not _known_at_birth(emit, node, world, pieces)
        case Pattern.STR:
            return False


def is_fifo(pieces: Iterable[IntervalRow]) -> bool:
    """Whether of two rows the one that came first never leaves last."""
    ends = [piece.ve for piece in sorted(pieces, key=lambda piece: (piece.vs, piece.ve))]
    return ends == sorted(ends)


def pieces_of(emit: Emit, node: Plan, world: World) -> list[IntervalRow]:
    """The pieces of a node of the query."""
    return IntervalRows(QueryEvaluation(emit, world).leaves, world, lag=lag_of(emit)).of(node)


def _known_at_birth(emit: Emit, node: Plan, world: World, pieces: list[IntervalRow]) -> bool:
    """Seen at any instant, the rows born so far expire as they will have expired in the end."""
    births = sorted({piece.vs for piece in pieces})
    return all(
        _spans(pieces_of(emit, node, until(world, birth)), birth) == _spans(pieces, birth) for birth in births
    )


def _spans(pieces: Iterable[IntervalRow], birth: Instant) -> Counter[tuple[object, ...]]:
    return Counter((piece.fact.values, piece.vs, piece.ve) for piece in pieces if piece.vs <= birth)


def until(world: World, instant: Instant) -> World:
    """What had happened up to an instant; the last column of a row is taken to be its windowing attribute."""
    return World(
        {
            name: tuple(row for row in arrivals if row.values[-1] <= instant)
            for name, arrivals in world.streams.items()
        },
        {name: tuple(change for change in log if change.at <= instant) for name, log in world.tables.items()},
    )
