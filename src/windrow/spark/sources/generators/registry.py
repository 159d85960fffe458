"""Generators: streams of an auction, a network and a freeway, by name."""

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

# ------------------------------------------------------------ auction
#
# Bids in an auction: most are on a few hot items, and prices rise until the item is sold.


_BIDDERS = 5000
_HOT_ITEMS = 5
_HOT_SHARE = 0.5
_ROUND = 600  # seconds for which the same items are hot, and in which prices rise


def item(settings: Settings, events: Integers) -> Integers:
    """Half of the bids are on the few items that are hot now, the others on any item."""
    keys = settings.keys or 1
    chosen = below(settings.seed, "hot item", events, _HOT_ITEMS)
    hot = below(settings.seed, "what is hot", _round(settings, events) * _HOT_ITEMS + chosen, keys)
    is_hot = uniform(settings.seed, "hot", events) < _HOT_SHARE
    return np.where(is_hot, hot, below(settings.seed, "any item", events, keys))


def price(settings: Settings, events: Integers) -> Floats:
    """The item's own price level, up to doubled in the course of a round, give or take a little."""
    level = np.exp(3.5 + normal(settings.seed, "price level", item(settings, events)))
    progress = events / settings.event_rate % _ROUND / _ROUND
    rise = 1.0 + progress + 0.05 * normal(settings.seed, "price", events)
    return np.asarray(np.round(np.maximum(level * rise, 0.01), 2))


def bidder(settings: Settings, events: Integers) -> pa.Array:
    """Some bidders bid far more often than others."""
    keenness = uniform(settings.seed, "bidder", events) ** 2
    return _bidder_names().take(pa.array((keenness * _BIDDERS).astype(np.int64)))


@lru_cache(maxsize=1)
def _bidder_names() -> pa.Array:
    return pa.array([f"bidder{number}" for number in range(_BIDDERS)])


def _round(settings: Settings, events: Integers) -> Integers:
    return np.asarray(events // (settings.event_rate * _ROUND))


AUCTION = Generator(
    "auction",
    default_keys=1000,
    columns={
        "item": (pa.int64(), item),
        "price": (pa.float64(), price),
        "bidder": (pa.string(), bidder),
    },
    sorted_by=item,
)


# ------------------------------------------------------------ registry


# ------------------------------------------------------------ network
#
# Records of network connections: a few sources make most of them, in the protocols of an old campus.


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


# ------------------------------------------------------------ registry


# ------------------------------------------------------------ traffic
#
# Speed sensors along a freeway, with jams that build up and dissolve in some of its segments.


_SENSORS_PER_SEGMENT = 5
_JAMMED_ONE_IN = 4
_JAM_PERIOD = 1200.0  # seconds from one jam to the next
_NOISE = 5.0
_SLOWEST = 3.0


def segment(settings: Settings, events: Integers) -> Integers:
    """Which stretch of road the reading is from; all report equally often."""
    return below(settings.seed, "segment", events, settings.keys or 1)


def sensor(settings: Settings, events: Integers) -> Integers:
    """Which of the segment's sensors; numbers of sensors are unique over all segments."""
    within = below(settings.seed, "sensor", events, _SENSORS_PER_SEGMENT)
    return segment(settings, events) * _SENSORS_PER_SEGMENT + within


def speed(settings: Settings, events: Integers) -> Floats:
    """Miles per hour: the segment's free flow, less what its jam takes, give or take a little."""
    where = segment(settings, events)
    free_flow = 58.0 + 12.0 * uniform(settings.seed, "free flow", where)
    flow = free_flow * (1.0 - 0.8 * _congestion(settings, where, events / settings.event_rate))
    noisy = flow + _NOISE * normal(settings.seed, "speed", events)
    return np.asarray(np.round(np.maximum(noisy, _SLOWEST), 1))


def _congestion(settings: Settings, where: Integers, second: Floats) -> Floats:
    """From 0, free, to 1: in every fourth segment a jam grows for five minutes, and dissolves in five."""
    phase = uniform(settings.seed, "phase", where)
    wave = np.sin(2.0 * np.pi * (second / _JAM_PERIOD + phase))
    return np.where(where % _JAMMED_ONE_IN == _JAMMED_ONE_IN - 1, np.maximum(wave, 0.0) ** 2, 0.0)


TRAFFIC = Generator(
    "traffic",
    default_keys=20,
    columns={
        "segment": (pa.int64(), segment),
        "speed": (pa.float64(), speed),
        "sensor": (pa.int64(), sensor),
    },
    sorted_by=segment,
)


# ------------------------------------------------------------ registry


GENERATORS: dict[str, Generator] = {generator.name: generator for generator in (TRAFFIC, AUCTION, NETWORK)}
