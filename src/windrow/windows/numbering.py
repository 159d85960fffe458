"""Rows numbered from 1, by partition: the *rank* function of WID 3.3.

The order is that of the attribute, ties by all columns, so that it depends on no arrival; or, over
`row_num`, that of arrival. Without partitions the position in arrival order is `row_num` itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from windrow.errors import DataError
from windrow.windows.element import Element


@dataclass(frozen=True)
class Partition:
    """The rows of one key in window order: their places in the input, their positions, their instants u.

    u is the attribute value, in arrival order its running maximum.
    """

    key: tuple[Any, ...]
    places: Sequence[int]
    positions: Sequence[int]
    times: Sequence[int]

    def reached(self, position: int) -> int | None:
        """When the position was reached; None if it was not."""
        index = bisect_left(self.positions, position)
        return self.times[index] if index < len(self.times) else None


def number(rows: Sequence[Element], *, by_key: bool, by_arrival: bool = False) -> list[Partition]:
    """The rows numbered, one partition per key (or a single one).

    >>> late = [Element(7, 1), Element(3, 2), Element(9, 3)]
    >>> [(p.places, p.times) for p in number(late, by_key=False)]
    [([1, 0, 2], [3, 7, 9])]
    >>> [(p.places, p.times) for p in number(late, by_key=False, by_arrival=True)]
    [([0, 1, 2], [7, 7, 9])]
    """
    if by_arrival and len({row.row_num for row in rows if row.row_num > 0}) < len(rows):
        raise DataError(
            "windows in arrival order need the position of every row",
            code="row-num",
            hint="row_num counts the rows of the stream from 1",
        )
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row.key if by_key else (), []).append(place)
    return [_partition(key, places, rows, by_key, by_arrival) for key, places in groups.items()]


def _partition(
    key: tuple[Any, ...], places: list[int], rows: Sequence[Element], by_key: bool, by_arrival: bool
) -> Partition:
    if by_arrival:
        places.sort(key=lambda place: rows[place].row_num)
    else:
        places.sort(key=lambda place: (rows[place].t, rows[place].order, rows[place].row_num))
    own = by_arrival and not by_key
    positions = [rows[place].row_num for place in places] if own else range(1, len(places) + 1)
    return Partition(key, places, positions, list(accumulate((rows[place].t for place in places), max)))
