"""Chance that can be repeated: a number in [0, 1) for each (seed, place), the same wherever and whenever it
is asked.
"""

from __future__ import annotations

from hashlib import blake2b

_STEPS = 1 << 53


def chance(seed: int, place: int) -> float:
    """Evenly spread over [0, 1), and independent from place to place.

    >>> chance(7, 1) == chance(7, 1), chance(7, 1) == chance(7, 2)
    (True, False)
    """
    digest = blake2b(f"{seed},{place}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / _STEPS
