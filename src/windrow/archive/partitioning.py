"""Into which sub-index a row goes, and which sub-indices an update has to touch.

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

from dataclasses import dataclass
from typing import Any, Protocol

from windrow.archive.allocation import ALLOCATIONS
from windrow.errors import QueryError, nearest


class Partitioning(Protocol):
    """A way to cut an archive into sub-indices. Periods are those of updates, numbered through."""

    @property
    def count(self) -> int:
        """How many sub-indices there are."""

    def place(self, inserted: int, expires: int) -> int:
        """The sub-index of rows that came in one period and expire in another."""

    def inserting(self, period: int) -> frozenset[int]:
        """The sub-indices that rows which come in a period can go to."""

    def expiring(self, period: int) -> frozenset[int]:
        """The sub-indices that rows which expire in a period can be in."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""


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
                hint="write PARTITIONS 4 x 4, or leave it out",
            )
        if self.allocation not in ALLOCATIONS:
            hint = nearest(self.allocation, ALLOCATIONS)
            raise QueryError(f"no allocation `{self.allocation}`", code="partitions", hint=hint)

    @property
    def count(self) -> int:
        return self.insertions * self.expiries

    def place(self, inserted: int, expires: int) -> int:
        return self._row(inserted) * self.expiries + self._column(expires)

    def inserting(self, period: int) -> frozenset[int]:
        first = self._row(period) * self.expiries
        return frozenset(range(first, first + self.expiries))

    def expiring(self, period: int) -> frozenset[int]:
        return frozenset(range(self._column(period), self.count, self.expiries))

    def touched(self, period: int) -> frozenset[int]:
        """All that the update of a period may change: G + E - 1 sub-indices."""
        return self.inserting(period) | self.expiring(period)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "doubly",
            "insertions": self.insertions,
            "expiries": self.expiries,
            "span": self.span,
            "allocation": self.allocation,
        }

    def _row(self, period: int) -> int:
        return ALLOCATIONS[self.allocation](period, self.insertions, self.span)

    def _column(self, period: int) -> int:
        return ALLOCATIONS[self.allocation](period, self.expiries, self.span)


@dataclass(frozen=True, slots=True)
class Wave:
    """Cut by insertion, for rows that all live equally long: those that expire are in one sub-index too.

    >>> wave = Wave(4, span=16)
    >>> wave.inserting(17), wave.expiring(17)
    (frozenset({0}), frozenset({0}))
    """

    parts: int
    #: how many periods every row lives
    span: int

    @property
    def count(self) -> int:
        return self.parts

    def place(self, inserted: int, expires: int) -> int:
        if expires - inserted != self.span:
            raise QueryError(
                f"a row that comes in period {inserted} expires in {expires}, not in {inserted + self.span}",
                code="lifetimes",
                hint="a wave index needs equal lifetimes; use a doubly partitioned one",
            )
        return self._part(inserted)

    def inserting(self, period: int) -> frozenset[int]:
        return frozenset({self._part(period)})

    def expiring(self, period: int) -> frozenset[int]:
        return frozenset({self._part(period - self.span)})

    def to_json(self) -> dict[str, Any]:
        return {"kind": "wave", "parts": self.parts, "span": self.span}

    def _part(self, period: int) -> int:
        return ALLOCATIONS["chronological"](period, self.parts, self.span)


def partitioning_from_json(stored: dict[str, Any]) -> Partitioning:
    """What `to_json` wrote.

    >>> partitioning_from_json(Wave(4, 16).to_json())
    Wave(parts=4, span=16)
    """
    kind, rest = stored["kind"], {name: value for name, value in stored.items() if name != "kind"}
    return Wave(**rest) if kind == "wave" else DoublyPartitioned(**rest)
