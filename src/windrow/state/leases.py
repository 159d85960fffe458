"""Readers hold a commit; the sweep asks which commits it must leave alone.

The floor is the oldest commit that must stay. It only rises, and never above a commit that somebody holds.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

from windrow.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator


class Leases:
    """The commits held by readers of this process.

    >>> leases = Leases(floor=1)
    >>> with leases.pin(4):
    ...     leases.raise_floor(9)
    4
    >>> leases.raise_floor(9)
    9
    """

    def __init__(self, floor: int) -> None:
        self._lock = Lock()
        self._pins: Counter[int] = Counter()
        self._floor = floor

    @property
    def floor(self) -> int:
        """The oldest commit that stays."""
        return self._floor

    @contextmanager
    def pin(self, number: int) -> Iterator[None]:
        """Keep a commit, and all after it, to the end of the block."""
        with self._lock:
            if number < self._floor:
                hint = "only the last commits are kept; ask for a later one"
                raise StateError(f"commit {number} is not kept", code="commit-missing", hint=hint)
            self._pins[number] += 1
        try:
            yield
        finally:
            with self._lock:
                self._pins[number] -= 1
                self._pins += Counter()  # drops what is down to zero

    def raise_floor(self, wanted: int) -> int:
        """Let go of what is older than `wanted`, as far as nobody holds it."""
        with self._lock:
            self._floor = max(self._floor, min([wanted, *self._pins]))
            return self._floor
