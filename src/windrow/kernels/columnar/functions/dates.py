"""DATEs within 64 bits of microseconds, which end some 290,000 years from 1970; Spark's go on for millions.

A computed date beyond is an error here, in every form of the function, `try_` or not: it is no fault of
the data, and NULL would be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from windrow.algebra.functions.calendar import DAY, date_text
from windrow.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

#: the last day, counted from 1970; the first is as far away
MOST_DAYS = ((1 << 63) - 1) // DAY


def from_days(days: npt.NDArray[Any]) -> pl.Series:
    """Days counted from 1970 as a column of DATEs.

    >>> from_days(np.array([1])).to_list()
    [86400000000]
    """
    out = (days > MOST_DAYS) | (days < -MOST_DAYS)
    if out.any():
        raise _beyond(int(days[np.argmax(out)]) * DAY)
    return pl.Series(days.astype(np.int64) * DAY)


def check(dates: Iterable[int | None]) -> None:
    """Refuse DATEs that do not fit a column."""
    for date in dates:
        if date is not None and abs(date) > MOST_DAYS * DAY:
            raise _beyond(date)


def _beyond(date: int) -> DataError:
    return DataError(f"the date {date_text(date)} is out of range", code="arithmetic-overflow")
