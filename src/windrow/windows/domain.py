"""What a windowing attribute measures, and its instants (WID 3.2: any totally ordered attribute).

An instant is one tick of the attribute: a microsecond of a TIMESTAMP or DATE, one of an integer. Every
stream also has two attributes it did not declare: `row_num` counts its rows from 1, `arrival_ts` is
when each was stored.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TypeAlias

from windrow.errors import DataError

ROW_NUM = "row_num"
ARRIVAL_TS = "arrival_ts"

#: an integer tick, or one of the two infinities
Instant: TypeAlias = int | float
INFINITY = math.inf

MAX_INT64 = 2**63 - 1
#: one past the last instant that exists: ids of windows that never close end here
FOREVER = MAX_INT64 + 1
#: instants lie within ±FARTHEST, and no window is longer: sums of an instant and some sizes are still far
#: from what stands for infinity in 64-bit integers. In microseconds that is beyond the year 38000.
FARTHEST = 1 << 60


def check_instant(instant: Instant | None, whose: str) -> None:
    """Refuse an instant that windows cannot be told about.

    >>> check_instant(12, "`ts` of stream `s`")
    """
    if instant is not None and abs(instant) > FARTHEST and abs(instant) != INFINITY:
        raise too_far(int(instant), whose)


def too_far(instant: int, whose: str) -> DataError:
    """The error about an instant that is out of reach."""
    return DataError(
        f"{whose} is {instant}: instants lie between -2^60 and 2^60 ({-FARTHEST} and {FARTHEST})",
        code="instant-range",
        hint="filter such rows out before, or order the stream by another attribute",
    )


class Domain(Enum):
    """What one tick of an attribute is."""

    TIME = "time"
    NUMBER = "number"


#: the attributes every stream has besides its columns
IMPLICIT = {ROW_NUM: Domain.NUMBER, ARRIVAL_TS: Domain.TIME}
