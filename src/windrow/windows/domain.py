"""What a windowing attribute measures, and its instants (WID 3.2: any totally ordered attribute).

An instant is one tick of the attribute: a microsecond of a TIMESTAMP or DATE, one of an integer. Every
stream also has two attributes it did not declare: `row_num` counts its rows from 1, `arrival_ts` is
when each was stored.
"""

from __future__ import annotations

import math
from enum import Enum
from typing import TypeAlias

ROW_NUM = "row_num"
ARRIVAL_TS = "arrival_ts"

#: an integer tick, or one of the two infinities
Instant: TypeAlias = int | float
INFINITY = math.inf

MAX_INT64 = 2**63 - 1
#: one past the last instant that exists: ids of windows that never close end here
FOREVER = MAX_INT64 + 1


class Domain(Enum):
    """What one tick of an attribute is."""

    TIME = "time"
    NUMBER = "number"


#: the attributes every stream has besides its columns
IMPLICIT = {ROW_NUM: Domain.NUMBER, ARRIVAL_TS: Domain.TIME}
