"""Which instant is now, at a commit.

The clock of a SELECT is that of the same query standing: the least promise of its streams. It is answered
about the last instant that this makes final, so that what it says is never taken back: the instant before the
clock, or, where all windows slide, the last windows that have ended. Of streams that have ended, the instant
of the last row counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit, Window
    from windrow.engine.records import StreamRecord
    from windrow.windows.grid import Grid


@dataclass(frozen=True)
class Present:
    """All rows below `clock` are known; the relation is asked about `at`, which `shown` names for people."""

    clock: int
    at: int
    shown: int


def slides(plan: Emit) -> bool:
    """Whether answers are about windows that have ended."""
    return all(leaf.spec.grid is not None for leaf in plan.leaves)


def present_of(
    plan: Emit, streams: Mapping[str, StreamRecord], held: Sequence[Instant] = ()
) -> Present | None:
    """Now; None as long as nothing is known."""
    promised = [INFINITY if r.known.sealed else r.known.progress.progress for r in streams.values()]
    clock = min([*promised, *held], default=INFINITY)
    if clock == -INFINITY:
        return None
    if clock == INFINITY:
        seen = [record.greatest for record in streams.values() if record.greatest is not None]
        if not seen:
            return None
        clock = max(seen) + 1
        if slides(plan):
            clock = max(_grid(leaf).first_after(max(seen)) for leaf in plan.leaves)
    known = int(clock)
    if not slides(plan):
        return Present(known, known - 1, known - 1)
    ends = [_grid(leaf).end(_grid(leaf).last_ending(known)) for leaf in plan.leaves]
    return Present(known, known, max(ends, default=known))


def _grid(leaf: Window) -> Grid:
    assert leaf.spec.grid is not None
    return leaf.spec.grid
