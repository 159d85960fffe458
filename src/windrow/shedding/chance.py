"""Chance that can be repeated: a number in [0, 1) for each (seed, place), the same wherever and whenever it
is asked.
"""

from __future__ import annotations

from hashlib import blake2b

_STEPS = 1 << 53
#: so many bits of a place decide how it is spread: 16 places in a row are spread evenly
_BITS = 4


def chance(seed: int, place: int) -> float:
    """Evenly spread over [0, 1), and independent from place to place.

    >>> chance(7, 1) == chance(7, 1), chance(7, 1) == chance(7, 2)
    (True, False)
    """
    digest = blake2b(f"{seed},{place}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> 11) / _STEPS


def spread(seed: int, place: int) -> float:
    """As `chance`, but places that follow each other differ: of two one is below a half, of four one is
    below a quarter, and so on, from places that are a multiple of 2, of 4, up to 16.

    These are the bits of the place in reverse (van der Corput's sequence), turned over by chance anew for
    each 16.

    >>> sorted(int(4 * spread(7, place)) for place in range(8, 12))
    [0, 1, 2, 3]
    """
    size = 1 << _BITS
    turned = int(chance(seed + 1, place >> _BITS) * size)
    reverse = int(f"{place % size:0{_BITS}b}"[::-1], 2)
    return ((reverse ^ turned) + chance(seed, place)) / size
