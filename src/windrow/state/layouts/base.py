"""What every layout can do, on the facts that manifests hold of chunks and chunks of their sections.

Facts are conservative: the instants of a part lie between its lowest and its highest. So whatever is needed
is always among what `needed` gives, and whatever `expire` drops is never needed again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from windrow.state.chunk import Key, Section
    from windrow.state.refs import ChunkRef, Facts
    from windrow.windows.domain import Instant


@dataclass(frozen=True)
class Layout:
    """The layout of one operator's state; `operator` is the first part of its sections' keys."""

    operator: str

    def needed(self, chunks: Iterable[ChunkRef], low: Instant, high: Instant) -> list[ChunkRef]:
        """The chunks that may hold state about instants in [low, high), in the order given."""
        mine = [(ref, ref.operators[self.operator]) for ref in chunks if self.operator in ref.operators]
        return [ref for ref, facts in mine if touches(facts, low, high)]

    def sections(self, sections: Iterable[Section], low: Instant, high: Instant) -> list[Key]:
        """Of an open chunk, the keys that may hold such state, each once."""
        mine = (section for section in sections if section.key[0] == self.operator)
        return list(dict.fromkeys(section.key for section in mine if touches(section.facts, low, high)))


def touches(facts: Facts, low: Instant, high: Instant) -> bool:
    """Whether something may lie in [low, high).

    >>> from windrow.state.refs import Facts
    >>> [touches(Facts(1, 64, 10, 19), low, low + 10) for low in (0, 1, 19, 20)]
    [False, True, True, False]
    """
    return facts.lowest < high and low <= facts.highest


def expire(chunks: Iterable[ChunkRef], bounds: Mapping[str, Instant]) -> tuple[ChunkRef, ...]:
    """What stays live when each operator needs only instants from its bound on.

    Parts that lie wholly below are dropped; files without parts too. Operators without a bound keep all.

    >>> from windrow.state.refs import ChunkRef, Facts
    >>> old = ChunkRef("chunks/old", 1, "", 1, {"sum": Facts(1, 64, 0, 9), "join": Facts(1, 64, 0, 9)})
    >>> young = ChunkRef("chunks/young", 1, "", 1, {"sum": Facts(1, 64, 10, 19)})
    >>> [(ref.name, sorted(ref.operators)) for ref in expire([old, young], {"sum": 10})]
    [('chunks/old', ['join']), ('chunks/young', ['sum'])]
    >>> [ref.name for ref in expire([old, young], {"sum": 10, "join": 10})]
    ['chunks/young']
    """
    kept = (_without_expired(ref, bounds) for ref in chunks)
    return tuple(ref for ref in kept if ref is not None)


def _without_expired(ref: ChunkRef, bounds: Mapping[str, Instant]) -> ChunkRef | None:
    gone = {name for name, facts in ref.operators.items() if name in bounds and facts.highest < bounds[name]}
    return ref.without(gone) if gone else ref
