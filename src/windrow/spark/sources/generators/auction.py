"""Bids in an auction: most are on a few hot items, and prices rise until the item is sold."""

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
    normal,
    uniform,
)

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
