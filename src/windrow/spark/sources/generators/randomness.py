"""Random numbers by position: the same seed, channel and position always give the same number.

A generator with a hidden state would have to be run from its beginning to give row 10⁹ again. Hashing the
position (the finaliser of SplitMix64; Steele, Lea, Flood 2014) gives any range of rows at once, so that a
replay is exact wherever it is cut. Each column draws from a channel of its own.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def bits(seed: int, channel: str, positions: Integers) -> NDArray[np.uint64]:
    """64 random bits for each position."""
    mixed = positions.astype(np.uint64)
    mixed *= _GOLDEN  # wraps around, as it should
    mixed += _salt(seed, channel)
    mixed ^= mixed >> np.uint64(30)
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed


@lru_cache(maxsize=256)
def _salt(seed: int, channel: str) -> np.uint64:
    digest = blake2b(f"{seed}/{channel}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def below(seed: int, channel: str, positions: Integers, limit: int) -> Integers:
    """A number from 0 up to, not including, `limit`."""
    return (bits(seed, channel, positions) % np.uint64(limit)).astype(np.int64)


def uniform(seed: int, channel: str, positions: Integers) -> Floats:
    """A number in [0, 1), of 53 bits."""
    return (bits(seed, channel, positions) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(seed: int, channel: str, positions: Integers) -> Floats:
    """A number from the normal distribution with mean 0 and deviation 1 (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log1p(-uniform(seed, channel + " radius", positions)))
    return np.asarray(radius * np.cos(2.0 * np.pi * uniform(seed, channel + " angle", positions)))


def exponential(seed: int, channel: str, positions: Integers) -> Floats:
    """A number from the exponential distribution with mean 1."""
    return np.asarray(-np.log1p(-uniform(seed, channel, positions)))


def weighted(seed: int, channel: str, positions: Integers, shares: Floats) -> Integers:
    """An index into `shares`, which add up to 1, as often as its share says."""
    bounds = np.cumsum(shares)
    drawn = np.searchsorted(bounds, uniform(seed, channel, positions) * bounds[-1], side="right")
    return np.asarray(np.minimum(drawn, len(shares) - 1), np.int64)
