"""Generators: streams of an auction, a network and a freeway, by name.

A generator is named columns, each a function of the settings and the event numbers. The order in which rows
arrive is a permutation of the event order, computable for any range of arrivals. It has three patterns, after
section 8.1 of Li et al., "Semantics and Evaluation Techniques for Window Aggregates in Data Streams" (SIGMOD
2005): no disorder, bounded disorder, and block-sorted disorder. The rows are always the same.

Random numbers go by position: a generator with a hidden state would have to be run from its beginning to give
row 10⁹ again. Hashing seed, channel and position (the finaliser of SplitMix64; Steele, Lea, Flood 2014) gives
any range of rows at once, so that a replay is exact wherever it is cut. Each column draws from a channel of
its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MICROS = 1_000_000
#: 2026-01-01T00:00:00 UTC
_NEW_YEAR = 1_767_225_600 * MICROS


class Disorder(StrEnum):
    """In which order rows arrive, compared with their event time."""

    NONE = "none"
    BOUNDED = "bounded"
    BLOCK = "block"


@dataclass(frozen=True)
class Settings:
    """The settings of one stream. Times are microseconds.

    Row n, in event order, happens at `start + n / event_rate` seconds. `keys` is how many values the main
    attribute has, None for the generator's own default; `rows` is how many rows there are, None for no end.
    """

    seed: int = 1
    keys: int | None = None
    event_rate: int = 1000
    start: int = _NEW_YEAR
    disorder: Disorder = Disorder.NONE
    disorder_by: int = 5 * MICROS
    block: int = 60 * MICROS
    rows: int | None = None

    @property
    def rows_per_block(self) -> int:
        return max(1, self.block * self.event_rate // MICROS)

    @property
    def rows_displaced(self) -> int:
        """How many rows a row of bounded disorder may be overtaken by."""
        return self.disorder_by * self.event_rate // MICROS


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


#: gives a column of events, by their numbers
MakeColumn = Callable[[Settings, Integers], Any]

_SUBROWS = 10  # delays are drawn in 1/1024 of the time between two rows


def arrivals(settings: Settings, first: int, last: int, sorted_by: MakeColumn) -> Integers:
    """The event numbers of the rows that arrive at positions `first` up to, not including, `last`."""
    if settings.rows is not None:
        last = min(last, settings.rows)
    if first >= last:
        return np.empty(0, np.int64)
    match settings.disorder:
        case Disorder.NONE:
            return np.arange(first, last, dtype=np.int64)
        case Disorder.BOUNDED:
            return _bounded(settings, first, last)
    size = settings.rows_per_block
    blocks = range(first // size, (last - 1) // size + 1)
    events = np.concatenate([_sorted_block(settings, block, sorted_by) for block in blocks])
    return events[first - blocks.start * size : last - blocks.start * size]


def _bounded(settings: Settings, first: int, last: int) -> Integers:
    """Every row is delayed by a random time up to `disorder_by`; rows arrive in the order of what results.

    Delays overlap without end, so a range of arrivals is found by guessing two moments around it: how many
    rows have arrived by the earlier one is counted, those between the two are sorted. By moment m all have
    arrived that happened before m − reach, and none that happens after m; only those between are looked at.
    """
    reach = settings.rows_displaced
    margin = 4 * int(reach**0.5) + 8
    while True:
        early = max(0, first + reach // 2 - margin)
        late = last + reach // 2 + margin
        events = np.arange(max(0, early - reach), late if settings.rows is None else min(late, settings.rows))
        delays = bits(settings.seed, "delay", events) % np.uint64((reach << _SUBROWS) + 1)
        moments = (events << _SUBROWS) + delays.astype(np.int64)
        arrived = moments < early << _SUBROWS
        between = ~arrived & (moments < late << _SUBROWS)
        before = int(events[0]) + int(np.count_nonzero(arrived)) if len(events) else 0
        if before <= first and before + np.count_nonzero(between) >= last:
            order = np.argsort(moments[between], kind="stable")
            return np.asarray(events[between][order][first - before : last - before])
        margin *= 2


@lru_cache(maxsize=2)  # a block is usually read in several micro-batches
def _sorted_block(settings: Settings, block: int, sorted_by: MakeColumn) -> Integers:
    """Time is cut into blocks of equal length; the rows of a block arrive sorted by another attribute."""
    size = settings.rows_per_block
    end = (block + 1) * size if settings.rows is None else min((block + 1) * size, settings.rows)
    events = np.arange(block * size, end, dtype=np.int64)
    return np.asarray(events[np.argsort(sorted_by(settings, events), kind="stable")])


TIMESTAMP = pa.timestamp("us", tz="UTC")
#: a column that any generator can give: the position in which a row arrives
ROW = "__row"


@dataclass(frozen=True)
class Generator:
    """A kind of made-up stream.

    `columns` gives the type of each column, and the function that makes it from event numbers, as a NumPy or
    an Arrow array. `ts`, the time of the event, comes by itself as the last column.
    """

    name: str
    default_keys: int
    columns: Mapping[str, tuple[pa.DataType, MakeColumn]]
    #: what rows of a block are sorted by, in block-sorted disorder
    sorted_by: MakeColumn

    @property
    def schema(self) -> pa.Schema:
        """All columns with their types."""
        return pa.schema([*((name, kind) for name, (kind, _) in self.columns.items()), ("ts", TIMESTAMP)])

    def rows(
        self, settings: Settings, first: int, last: int, columns: Sequence[str] | None = None
    ) -> pa.RecordBatch:
        """The rows that arrive at positions `first` up to, not including, `last`; fewer if there are no more.

        `columns` are the names of those wanted, all without it; `__row`, the position itself, is one more.
        """
        settings = settings if settings.keys else replace(settings, keys=self.default_keys)
        events = arrivals(settings, first, last, self.sorted_by)
        names = self.schema.names if columns is None else columns
        arrays = [self._column(name, settings, events, first) for name in names]
        return pa.record_batch(arrays, names=list(names))

    def _column(self, name: str, settings: Settings, events: Integers, first: int) -> pa.Array:
        if name == ROW:
            return pa.array(np.arange(first, first + len(events), dtype=np.int64))
        if name == "ts":
            return pa.array(settings.start + events * MICROS // settings.event_rate).view(TIMESTAMP)
        kind, make = self.columns[name]
        made = make(settings, events)
        return made if isinstance(made, pa.Array) else pa.array(made, type=kind)


# ------------------------------------------------------------ auction
#
# Bids in an auction: most are on a few hot items, and prices rise until the item is sold.


_BIDDERS = pa.array([f"bidder{number}" for number in range(5000)])
_HOT_ITEMS = 5
_HOT_SHARE = 0.5
_ROUND = 600  # seconds for which the same items are hot, and in which prices rise


def item(settings: Settings, events: Integers) -> Integers:
    """Half of the bids are on the few items that are hot now, the others on any item."""
    keys = settings.keys or 1
    chosen = below(settings.seed, "hot item", events, _HOT_ITEMS)
    rounds = events // (settings.event_rate * _ROUND)
    hot = below(settings.seed, "what is hot", rounds * _HOT_ITEMS + chosen, keys)
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
    return _BIDDERS.take(pa.array((keenness * len(_BIDDERS)).astype(np.int64)))


AUCTION = Generator(
    "auction",
    default_keys=1000,
    columns={"item": (pa.int64(), item), "price": (pa.float64(), price), "bidder": (pa.string(), bidder)},
    sorted_by=item,
)


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
    bounds = np.cumsum(_SHARES)
    drawn = np.searchsorted(bounds, uniform(settings.seed, "protocol", events) * bounds[-1], side="right")
    return np.asarray(np.minimum(drawn, len(bounds) - 1), np.int64)


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
    return np.asarray(np.round(mean * -np.log1p(-uniform(settings.seed, "duration", events)), 3))


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
    # in every fourth segment a jam grows for five minutes, and dissolves in five
    phase = uniform(settings.seed, "phase", where)
    wave = np.sin(2.0 * np.pi * (events / settings.event_rate / _JAM_PERIOD + phase))
    is_jammed = where % _JAMMED_ONE_IN == _JAMMED_ONE_IN - 1
    flow = free_flow * (1.0 - 0.8 * np.where(is_jammed, np.maximum(wave, 0.0) ** 2, 0.0))
    noisy = flow + _NOISE * normal(settings.seed, "speed", events)
    return np.asarray(np.round(np.maximum(noisy, _SLOWEST), 1))


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


GENERATORS: dict[str, Generator] = {generator.name: generator for generator in (TRAFFIC, AUCTION, NETWORK)}
