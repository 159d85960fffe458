"""Records of network connections: a few sources make most of them, in the protocols of an old campus."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from windrow.spark.sources.generators.generator import (
    Floats,
    Generator,
    Integers,
    Settings,
    below,
    exponential,
    normal,
    uniform,
    weighted,
)

#: protocol: share of the connections, typical bytes, mean duration in seconds; telnet is ten times ftp
PROTOCOLS = {
    "http": (0.50, 8_000, 2.0),
    "dns": (0.20, 200, 0.05),
    "smtp": (0.15, 4_000, 3.0),
    "telnet": (0.10, 1_000, 90.0),
    "ssh": (0.04, 20_000, 120.0),
    "ftp": (0.01, 200_000, 20.0),
}
_SHARES, _TYPICAL_BYTES, _MEAN_SECONDS = (
    np.array(column) for column in zip(*PROTOCOLS.values(), strict=True)
)
_DESTINATIONS_PER_SOURCE = 4


def src(settings: Settings, events: Integers) -> Integers:
    """Source n, counted from 0, makes connections in proportion to 1/(n + 1) (Zipf's law)."""
    bounds = _zipf_bounds(settings.keys or 1)
    return np.searchsorted(bounds, uniform(settings.seed, "src", events), side="right").astype(np.int64)


@lru_cache(maxsize=4)
def _zipf_bounds(sources: int) -> Floats:
    weights = np.cumsum(1.0 / np.arange(1, sources + 1))
    return np.asarray(weights / weights[-1])


def dst(settings: Settings, events: Integers) -> Integers:
    """Any of the destinations, each as often as any other."""
    return below(settings.seed, "dst", events, (settings.keys or 1) * _DESTINATIONS_PER_SOURCE)


def _protocol_number(settings: Settings, events: Integers) -> Integers:
    return weighted(settings.seed, "protocol", events, _SHARES)


def protocol(settings: Settings, events: Integers) -> pa.Array:
    """The protocol's name."""
    return pa.array(list(PROTOCOLS)).take(pa.array(_protocol_number(settings, events)))


def size(settings: Settings, events: Integers) -> Integers:
    """Bytes sent: log-normal around what is typical of the protocol."""
    typical = _TYPICAL_BYTES[_protocol_number(settings, events)]
    return np.asarray(np.rint(typical * np.exp(normal(settings.seed, "bytes", events))), np.int64)


def duration(settings: Settings, events: Integers) -> Floats:
    """Seconds: exponential around the protocol's mean."""
    mean = _MEAN_SECONDS[_protocol_number(settings, events)]
    return np.asarray(np.round(mean * exponential(settings.seed, "duration", events), 3))


NETWORK = Generator(
    "network",
    default_keys=1650,
    columns={
        "src": (pa.int64(), src),
        "dst": (pa.int64(), dst),
        "protocol": (pa.string(), protocol),
        "bytes": (pa.int64(), size),
        "duration": (pa.float64(), duration),
    },
    sorted_by=src,
)
