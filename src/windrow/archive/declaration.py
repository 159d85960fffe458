"""What an archive is told when it is made, and remembers: its key, how it is cut, how it is kept up.

An update inserts what has come in one period and removes what expires in one. Cut by insertion alone, all
that expires is scattered over all sub-indices; cut by expiry alone, all that comes is. Cut by both, into
G × E, insertions are in one row of the grid and expiries in one column (Golab's thesis, chapter 4):

>>> grid = DoublyPartitioned(4, 4, span=16)
>>> sorted(grid.inserting(5)), sorted(grid.expiring(5))
([4, 5, 6, 7], [1, 5, 9, 13])
>>> len(grid.touched(5)) == 4 + 4 - 1
True
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from windrow.errors import QueryError, nearest

# ------------------------------------------------------------ upkeep
#
# How a sub-index takes in new rows and lets go of expired ones.
#
# A sub-index is one or more pieces, files that never change. Rebuilding writes all of it anew, as one piece:
# rows of a key lie together, and what has expired is gone from the disk. Not rebuilding adds a piece for what
# is new and forgets pieces of which all has expired; expired rows stay on the disk, unseen, until they are
# too large a part of their piece. Which rows expire when is noted with each piece, so that nothing has to be
# read to decide. Too many pieces are put together, the small ones first, and those of about the same size
# with them: a row is written anew a few times while its piece grows, and not each time rows come.


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


# ------------------------------------------------------------ partitions
#
# Time is cut into periods, one per update, numbered through. An axis (of insertions, or of expiries) has so
# many parts, and `span` is how many periods a row can live.


#: (period, number of parts, periods a row can live) → the part
Allocation: TypeAlias = Callable[[int, int, int], int]


def round_robin(period: int, parts: int, span: int) -> int:
    """By turns: parts stay of similar size, as each gets its share of every time of day."""
    return period % parts


def chronological(period: int, parts: int, span: int) -> int:
    """Neighbouring periods together: the part that is being filled differs from the one that runs dry."""
    return period * parts // span % parts


def shuffled(period: int, parts: int, span: int) -> int:
    """By turns whose order is drawn anew each time all parts had theirs: where the rate of rows goes up and
    down in step with the turns, that breaks the step."""
    turn, place = divmod(period, parts)
    order = list(range(parts))
    random.Random(f"0/{turn}").shuffle(order)
    return order[place]


#: by the names under which archives remember them
ALLOCATIONS: dict[str, Allocation] = {
    "round-robin": round_robin,
    "chronological": chronological,
    "shuffled": shuffled,
}


@dataclass(frozen=True, slots=True)
class DoublyPartitioned:
    """G parts by insertion times E parts by expiry. One of them 1 is an index cut in one way only."""

    insertions: int
    expiries: int
    #: how many periods a row can live; only chronological parts have to know
    span: int
    allocation: str = "round-robin"

    def __post_init__(self) -> None:
        if self.insertions < 1 or self.expiries < 1 or self.span < 1:
            shape = f"{self.insertions} x {self.expiries}"
            raise QueryError(
                f"an archive cannot have {shape} partitions",
                code="partitions",
                hint="write LAYOUT 4 BY 4, or leave it out",
            )
        if self.allocation not in ALLOCATIONS:
            hint = nearest(self.allocation, ALLOCATIONS)
            raise QueryError(f"no allocation `{self.allocation}`", code="partitions", hint=hint)

    @property
    def count(self) -> int:
        """How many sub-indices there are."""
        return self.insertions * self.expiries

    def place(self, inserted: int, expires: int) -> int:
        """The sub-index of rows that came in one period and expire in another."""
        return self._part(inserted, self.insertions) * self.expiries + self._part(expires, self.expiries)

    def inserting(self, period: int) -> frozenset[int]:
        """The sub-indices that rows which come in a period can go to."""
        first = self._part(period, self.insertions) * self.expiries
        return frozenset(range(first, first + self.expiries))

    def expiring(self, period: int) -> frozenset[int]:
        """The sub-indices that rows which expire in a period can be in."""
        return frozenset(range(self._part(period, self.expiries), self.count, self.expiries))

    def touched(self, period: int) -> frozenset[int]:
        """All that the update of a period may change: G + E - 1 sub-indices."""
        return self.inserting(period) | self.expiring(period)

    def _part(self, period: int, parts: int) -> int:
        return ALLOCATIONS[self.allocation](period, parts, self.span)


#: periods in the longest life of a row, where nothing else is said
PERIODS = 32


@dataclass(frozen=True, slots=True)
class Declaration:
    """The key rows are found by, how long they are kept at most, and how that is arranged.

    Instants and durations are whole numbers: microseconds of a TIMESTAMP, or the ticks of an integer
    attribute. `expires` names the column that says until when a row is valid; an archive adds it to rows that
    do not have it, `keep` from the update on.
    """

    key: str
    keep: int
    period: int
    partitioning: DoublyPartitioned
    upkeep: Upkeep = field(default_factory=Upkeep)
    expires: str = "valid_to"

    def __post_init__(self) -> None:
        if self.keep < 1 or self.period < 1:
            hint = "say how long rows are kept, as in KEEP 7 DAYS"
            raise QueryError(f"rows cannot be kept for {self.keep} ticks", code="keep", hint=hint)
        if self.key == self.expires:
            hint = "choose another key: rows are arranged by their expiry in any case"
            raise QueryError(f"`{self.key}` cannot be the key and the expiry", code="key", hint=hint)

    @classmethod
    def of(
        cls,
        key: str,
        keep: int,
        *,
        partitions: tuple[int, int] = (2, 2),
        rebuild: bool = False,
        period: int | None = None,
        allocation: str = "round-robin",
        expires: str = "valid_to",
    ) -> Declaration:
        """As CREATE ARCHIVE says it.

        >>> Declaration.of("item", keep=64).partitioning
        DoublyPartitioned(insertions=2, expiries=2, span=32, allocation='round-robin')
        """
        period = max(1, keep // PERIODS) if period is None else period
        span = max(1, -(-keep // max(1, period)))
        cut = DoublyPartitioned(*partitions, span=span, allocation=allocation)
        return cls(key, keep, period, cut, Upkeep.rebuilding() if rebuild else Upkeep(), expires)

    def number(self, now: int) -> int:
        """The period that an update at this instant ends, or falls into.

        >>> told = Declaration.of("item", keep=64, period=10)
        >>> [told.number(now) for now in (0, 9, 10, 11)]
        [0, 0, 1, 1]
        """
        return now // self.period

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "key": self.key,
            "keep": self.keep,
            "period": self.period,
            "partitioning": {"kind": "doubly", **asdict(self.partitioning)},
            "upkeep": asdict(self.upkeep),
            "expires": self.expires,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Declaration:
        """What `to_json` wrote.

        >>> told = Declaration.of("item", keep=64, rebuild=True)
        >>> Declaration.from_json(told.to_json()) == told
        True
        """
        cut = {name: value for name, value in stored["partitioning"].items() if name != "kind"}
        parts = {"partitioning": DoublyPartitioned(**cut), "upkeep": Upkeep(**stored["upkeep"])}
        return cls(**{**stored, **parts})
