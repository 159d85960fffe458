"""Calendar: the instant at which a row leaves is known when it comes (pattern WK). Cut by that instant.

A calendar queue: buckets of equal width, a row in the one of its expiry; a clock that passes the end of a
bucket takes it whole. More buckets mean less to look through at each step, and more sections in every chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isinf
from typing import TYPE_CHECKING

from windrow.state.layouts.base import Layout

if TYPE_CHECKING:
    from windrow.state.chunk import Key
    from windrow.windows.domain import Instant

#: the bucket of rows that never leave
NEVER = "never"


@dataclass(frozen=True)
class Calendar(Layout):
    """Sections (operator, bucket), a bucket for every `width` instants of expiry; the facts are of expiries.

    >>> calendar = Calendar.spread("join", longest=3600, buckets=10)
    >>> calendar.width, calendar.bucket_of(3599), calendar.bucket_of(3600), calendar.bucket_of(float("inf"))
    (360, 9, 10, 'never')
    """

    width: int = 1

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError("a bucket is at least one instant wide")

    @classmethod
    def spread(cls, operator: str, longest: int, buckets: int) -> Calendar:
        """The calendar with about that many buckets in use, when no row stays longer than `longest`."""
        if longest < 1 or buckets < 1:
            raise ValueError("a calendar needs a lifetime and a number of buckets")
        return cls(operator, -(-longest // buckets))

    def bucket_of(self, expiry: Instant) -> int | str:
        """The bucket of a row that leaves at `expiry`."""
        return NEVER if isinf(expiry) else int(expiry) // self.width

    def key_of(self, expiry: Instant) -> Key:
        """The section of a row that leaves at `expiry`."""
        return (self.operator, self.bucket_of(expiry))

    def span_of(self, bucket: int) -> tuple[int, int]:
        """The first and the last expiry of a bucket: facts for its section, where none finer are known.

        >>> Calendar("join", 360).span_of(9)
        (3240, 3599)
        """
        return bucket * self.width, (bucket + 1) * self.width - 1

    def passed(self, before: int, now: int) -> range:
        """The buckets that end, wholly, while the clock goes from `before` to `now`: to be taken and dropped.

        >>> list(Calendar("join", 360).passed(before=700, now=1440))
        [1, 2, 3]
        """
        return range(before // self.width, now // self.width)
