"""What an archive is told when it is made, and remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from windrow.archive.partitioning import DoublyPartitioned, Partitioning, partitioning_from_json
from windrow.archive.upkeep import Upkeep
from windrow.errors import QueryError

#: periods in the longest life of a row, where nothing else is said
_PERIODS = 32


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
    partitioning: Partitioning
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
        period = max(1, keep // _PERIODS) if period is None else period
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
            "partitioning": self.partitioning.to_json(),
            "upkeep": self.upkeep.to_json(),
            "expires": self.expires,
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Declaration:
        """What `to_json` wrote.

        >>> told = Declaration.of("item", keep=64, rebuild=True)
        >>> Declaration.from_json(told.to_json()) == told
        True
        """
        return cls(
            **{
                **stored,
                "partitioning": partitioning_from_json(stored["partitioning"]),
                "upkeep": Upkeep(**stored["upkeep"]),
            }
        )
