"""What a manifest knows of a chunk without opening it: enough to find it, to trust it, and to drop it.

A chunk file holds sections of several operators. Each operator's part has its own facts, so that a part can
expire while the file stays for the others; a file of which no part is left is named no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isinf
from typing import TYPE_CHECKING, Any

from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True)
class Facts:
    """How much there is, and about which instants, both ends included.

    What the instants are (of insertion, of expiry) is the layout's business. Where they are unknown they are
    infinite, which is always safe: such a part is always needed and never expires.

    >>> Facts(10, 640, 3, 8).merged(Facts(5, 320, 7, 12))
    Facts(rows=15, bytes=960, lowest=3, highest=12, tombstones=0)
    """

    rows: int
    bytes: int
    lowest: Instant = -INFINITY
    highest: Instant = INFINITY
    #: how many of the rows take back others
    tombstones: int = 0

    def merged(self, other: Facts) -> Facts:
        """Of both together."""
        return Facts(
            self.rows + other.rows,
            self.bytes + other.bytes,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.tombstones + other.tombstones,
        )

    def to_json(self) -> list[Any]:
        """Plain JSON values, shortly: a manifest holds many."""
        ends = [write_instant(self.lowest), write_instant(self.highest)]
        return [self.rows, self.bytes, *ends, self.tombstones]

    @classmethod
    def from_json(cls, stored: list[Any]) -> Facts:
        """What `to_json` wrote.

        >>> Facts.from_json(Facts(10, 640).to_json()) == Facts(10, 640)
        True
        """
        rows, size, lowest, highest, tombstones = stored
        return cls(rows, size, read_instant(lowest), read_instant(highest), tombstones)


@dataclass(frozen=True)
class ChunkRef:
    """A chunk file, as a manifest names it; `operators` are the parts that are still live."""

    name: str
    bytes: int
    #: the root of the file's checksums; see `windrow.state.chunk`
    checksum: str
    rows: int
    operators: Mapping[str, Facts] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def without(self, operators: Collection[str]) -> ChunkRef | None:
        """The same file for the other operators, or None if there are none.

        >>> ref = ChunkRef("chunks/a", 99, "", 3, {"join": Facts(1, 40), "sum": Facts(2, 59)})
        >>> sorted(ref.without({"sum"}).operators), ref.without({"sum", "join"})
        (['join'], None)
        """
        left = {operator: facts for operator, facts in self.operators.items() if operator not in operators}
        return replace(self, operators=left) if left else None

    @property
    def live_bytes(self) -> int:
        """How much of the file is still live."""
        return sum(facts.bytes for facts in self.operators.values())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "name": self.name,
            "bytes": self.bytes,
            "checksum": self.checksum,
            "rows": self.rows,
            "operators": {operator: facts.to_json() for operator, facts in self.operators.items()},
            "metadata": dict(self.metadata),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ChunkRef:
        """What `to_json` wrote."""
        operators = {operator: Facts.from_json(facts) for operator, facts in stored["operators"].items()}
        return cls(**{**stored, "operators": operators})


def write_instant(instant: Instant) -> int | str:
    """An instant as JSON, which has no word for infinity."""
    return str(instant) if isinf(instant) else int(instant)


def read_instant(stored: int | str) -> Instant:
    """What `write_instant` wrote.

    >>> read_instant(write_instant(-INFINITY)), read_instant(write_instant(2**63))
    (-inf, 9223372036854775808)
    """
    return float(stored) if isinstance(stored, str) else stored
