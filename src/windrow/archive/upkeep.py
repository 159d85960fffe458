"""How a sub-index takes in new rows and lets go of expired ones.

A sub-index is one or more pieces, files that never change. Rebuilding writes all of it anew, as one piece:
rows of a key lie together, and what has expired is gone from the disk. Not rebuilding adds a piece for what
is new and forgets pieces of which all has expired; so rows of a key lie in several places, and expired rows
stay on the disk, unseen, until they are too large a part of their piece. Which rows expire when is noted with
each piece, so that nothing has to be read to decide.

Too many pieces are put together, the small ones first, and those of about the same size with them: so a row
is written anew a few times while its piece grows, and not each time rows come.
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
        total = sum(self.expiries.values())
        return (total - self.rows_left(period)) / max(1, total)

    def rows_left(self, period: int) -> int:
        """How many rows have not expired after the update of a period."""
        return sum(rows for expires, rows in self.expiries.items() if expires > period)


@dataclass(frozen=True, slots=True)
class NewPiece:
    """A piece to write: what is left of others, and perhaps the new rows."""

    sources: tuple[str, ...]
    has_new_rows: bool


@dataclass(frozen=True, slots=True)
class UpkeepPlan:
    """What becomes of a sub-index; pieces that are neither kept nor sources are gone."""

    kept: tuple[str, ...]
    written: tuple[NewPiece, ...]


@dataclass(frozen=True, slots=True)
class Upkeep:
    """`reclaim`: a piece is written anew when more than this part of it has expired; 0 leaves nothing expired
    on the disk. `most_pieces`: of more than these, small ones are put together. 1 is rebuilding.

    >>> old, dead = Stock("old", {3: 1, 9: 3}), Stock("dead", {4: 7})
    >>> Upkeep().plan([old, dead], new_rows=2, period=4)
    UpkeepPlan(kept=('old',), written=(NewPiece(sources=(), has_new_rows=True),))
    >>> Upkeep.rebuilding().plan([old, dead], new_rows=2, period=4)
    UpkeepPlan(kept=(), written=(NewPiece(sources=('old',), has_new_rows=True),))
    >>> large, small = Stock("large", {9: 900}), Stock("small", {9: 3})
    >>> Upkeep(most_pieces=2).plan([large, small], new_rows=2, period=4)
    UpkeepPlan(kept=('large',), written=(NewPiece(sources=('small',), has_new_rows=True),))
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

    def plan(self, pieces: Sequence[Stock], *, new_rows: int, period: int) -> UpkeepPlan:
        """What to do with a sub-index at the update of a period."""
        sizes = {piece.name: left for piece in pieces if (left := piece.rows_left(period))}
        shares = {piece.name: piece.share_expired(period) for piece in pieces}
        merged = self._merged(sizes, new_rows)
        anew = tuple(name for name in sizes if name not in merged and shares[name] > self.reclaim)
        written = [NewPiece((name,), has_new_rows=False) for name in anew]
        if merged or new_rows:
            written.append(NewPiece(merged, has_new_rows=new_rows > 0))
        return UpkeepPlan(tuple(name for name in sizes if name not in (*merged, *anew)), tuple(written))

    def _merged(self, sizes: Mapping[str, int], new_rows: int) -> tuple[str, ...]:
        """The pieces to put together, with the new rows if there are any; in the order they are in."""
        too_many = len(sizes) + (new_rows > 0) - self.most_pieces
        if too_many <= 0:
            return ()
        chosen: set[str] = set()
        size, parts = new_rows, int(new_rows > 0)
        for name, rows in sorted(sizes.items(), key=lambda each: each[1]):
            if parts > too_many and rows > size:
                break
            chosen.add(name)
            size, parts = size + rows, parts + 1
        return tuple(name for name in sizes if name in chosen)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)
