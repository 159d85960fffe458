"""A small, disordered stream of speed sensors along a freeway, the same for the same seed.

Each segment's sensor reports about once every few seconds; reports reach us late by up to `disorder`
seconds, so neighbouring rows are often out of order, but never by more than that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SECOND = 1_000_000
COLUMNS = "segment STRING, speed DOUBLE, ts TIMESTAMP"
SEGMENTS = ("s1", "s2", "s3", "s4")
_FREE_FLOW = 65.0


def readings(
    seconds: int, rate: int, start: int, disorder: int = 5, seed: int = 7
) -> list[tuple[str, float, int]]:
    """`rate` readings a second for `seconds` seconds, in the order in which they arrive.

    >>> rows = readings(seconds=60, rate=2, start=0)
    >>> len(rows), rows == sorted(rows, key=lambda row: row[2])
    (120, False)
    """
    dice = random.Random(seed)
    stamped = [(start + n * SECOND // rate, dice.randrange(disorder * SECOND)) for n in range(seconds * rate)]
    arriving = sorted(stamped, key=lambda moment: sum(moment))
    return [_reading(dice, ts, (ts - start) // SECOND) for ts, _ in arriving]


def _reading(dice: random.Random, ts: int, second: int) -> tuple[str, float, int]:
    """Segment s3 has a jam in the middle of every ten minutes."""
    segment = dice.choice(SEGMENTS)
    jam = 40.0 if segment == "s3" and 180 <= second % 600 < 360 else 0.0
    return segment, round(max(3.0, dice.gauss(_FREE_FLOW - jam, 6.0)), 1), ts


def batches(rows: list[tuple[str, float, int]], size: int) -> Iterator[list[tuple[str, float, int]]]:
    """The rows as micro-batches."""
    for first in range(0, len(rows), size):
        yield rows[first : first + size]
