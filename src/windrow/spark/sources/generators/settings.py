"""What the rows of a generator depend on, besides the row number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MICROS = 1_000_000
#: 2026-01-01T00:00:00 UTC
_NEW_YEAR = 1_767_225_600 * MICROS


class Disorder(StrEnum):
    """In which order rows arrive, compared with their event time."""

    NONE = "none"
    BOUNDED = "bounded"
    BLOCK = "block"


@dataclass(frozen=True)
class Settings:
    """The settings of one stream. Times are microseconds.

    Row n, in event order, happens at `start + n / event_rate` seconds. `keys` is how many values the main
    attribute has, None for the generator's own default; `rows` is how many rows there are, None for no end.
    """

    seed: int = 1
    keys: int | None = None
    event_rate: int = 1000
    start: int = _NEW_YEAR
    disorder: Disorder = Disorder.NONE
    disorder_by: int = 5 * MICROS
    block: int = 60 * MICROS
    rows: int | None = None

    @property
    def rows_per_block(self) -> int:
        return max(1, self.block * self.event_rate // MICROS)

    @property
    def rows_displaced(self) -> int:
        """How many rows a row of bounded disorder may be overtaken by."""
        return self.disorder_by * self.event_rate // MICROS
