"""How a sub-index takes in new rows and lets go of expired ones.

A sub-index is one or more pieces, files that never change. Rebuilding writes all of it anew, as one piece:
rows of a key lie together, and what has expired is gone from the disk. Not rebuilding adds a piece for what
is new and forgets pieces of which all has expired; so rows of a key lie in several places, and expired rows
stay on the disk, unseen, until they are too large a part of their piece. Which rows expire when is noted with
each piece, so that nothing has to be read to decide.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from windrow.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Stock:
    """A piece: how many rows expire in which period."""

    name: str
    expiries: Mapping[int, int]

    def share_expired(self, period: int) -> float:
        """The part of the rows that has expired after the update of a period.

        >>> Stock("a", {3: 1, 5: 3}).share_expired(4)
        0.25
        """
        expired = sum(rows for expires, rows in self.expiries.items() if expires <= period)
        return expired / max(1, sum(self.expiries.values()))


@dataclass(frozen=True, slots=True)
class NewPiece:
    """A piece to write: what is left of others, and perhaps the new rows."""

    sources: tuple[str, ...]
    has_new_rows: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What becomes of a sub-index; pieces that are neither kept nor sources are gone."""

    kept: tuple[str, ...]
    written: tuple[NewPiece, ...]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """`reclaim`: a piece is written anew when more than this part of it has expired; 0 leaves nothing expired
    on the disk. `most_pieces`: a sub-index with more is put together into one. 1 is rebuilding.

    >>> old, dead = Stock("old", {3: 1, 9: 3}), Stock("dead", {4: 7})
    >>> Upkeep().plan([old, dead], has_new_rows=True, period=4)
    Plan(kept=('old',), written=(NewPiece(sources=(), has_new_rows=True),))
    >>> Upkeep.rebuilding().plan([old, dead], has_new_rows=True, period=4)
    Plan(kept=(), written=(NewPiece(sources=('old',), has_new_rows=True),))
    """

    reclaim: float = 0.5
    most_pieces: int = 8

    def __post_init__(self) -> None:
        if not 0 <= self.reclaim < 1 or self.most_pieces < 1:
            hint = "reclaim is a part of a whole, from 0 to below 1, and there is at least one piece"
            raise QueryError("an archive cannot be kept up like that", code="upkeep", hint=hint)

    @classmethod
    def rebuilding(cls) -> Upkeep:
        """Write everything anew that changes at all."""
        return cls(reclaim=0.0, most_pieces=1)

    def plan(self, pieces: Sequence[Stock], *, has_new_rows: bool, period: int) -> Plan:
        """What to do with a sub-index at the update of a period."""
        shares = {piece.name: piece.share_expired(period) for piece in pieces}
        live = tuple(name for name, share in shares.items() if share < 1)
        if len(live) + has_new_rows > self.most_pieces:
            return Plan((), (NewPiece(live, has_new_rows),))
        anew = tuple(name for name in live if shares[name] > self.reclaim)
        written = [NewPiece((name,), has_new_rows=False) for name in anew]
        if has_new_rows:
            written.append(NewPiece((), has_new_rows=True))
        return Plan(tuple(name for name in live if name not in anew), tuple(written))

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)
