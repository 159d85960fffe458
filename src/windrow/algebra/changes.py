"""A change of an answer, the unit in which every executor delivers and every test compares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from windrow.errors import DataError
from windrow.windows.domain import Instant
from windrow.windows.element import sort_key


@dataclass(frozen=True)
class Change:
    """A row that joins (`+`) or leaves (`-`) the answer, and the instant this is about."""

    op: str
    row: tuple[Any, ...]
    at: int

    @property
    def place(self) -> tuple[Any, ...]:
        """The order of delivery: (at, op, row), NULL first, NaN last.

        >>> later, null = Change("+", (1,), 5), Change("+", (None,), 5)
        >>> sorted([later, null], key=lambda change: change.place)
        [Change(op='+', row=(None,), at=5), Change(op='+', row=(1,), at=5)]
        """
        return (self.at, self.op, sort_key(self.row))


def not_final(at: int, clock: Instant) -> DataError:
    """An answer was asked for before it is final."""
    return DataError(
        f"the answer at {at} is not final yet: the clock is at {clock}",
        code="not-final",
        hint="push, punctuate() or finish() first",
    )
