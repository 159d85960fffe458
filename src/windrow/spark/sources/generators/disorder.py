"""In which order rows arrive: a permutation of the event order, computable for any range of arrivals.

Three patterns, after section 8.1 of Li et al., "Semantics and Evaluation Techniques for Window Aggregates in
Data Streams" (SIGMOD 2005): no disorder, bounded disorder, and block-sorted disorder. Whatever the pattern,
the rows are the same; only their order differs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from windrow.spark.sources.generators.randomness import Integers, bits
from windrow.spark.sources.generators.settings import Disorder, Settings

#: gives the attribute that rows of a block are sorted by
SortedBy = Callable[[Settings, Integers], Integers]

_SUBROWS = 10  # delays are drawn in 1/1024 of the time between two rows


def arrivals(settings: Settings, first: int, last: int, sorted_by: SortedBy) -> Integers:
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
        case Disorder.BLOCK:
            return _block_sorted(settings, first, last, sorted_by)


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
        moments = _moments(settings.seed, reach, events)
        arrived = moments < early << _SUBROWS
        between = ~arrived & (moments < late << _SUBROWS)
        before = int(events[0]) + int(np.count_nonzero(arrived)) if len(events) else 0
        if before <= first and before + np.count_nonzero(between) >= last:
            order = np.argsort(moments[between], kind="stable")
            return np.asarray(events[between][order][first - before : last - before])
        margin *= 2


def _moments(seed: int, reach: int, events: Integers) -> Integers:
    delays = bits(seed, "delay", events) % np.uint64((reach << _SUBROWS) + 1)
    return (events << _SUBROWS) + delays.astype(np.int64)


def _block_sorted(settings: Settings, first: int, last: int, sorted_by: SortedBy) -> Integers:
    """Time is cut into blocks of equal length; the rows of a block arrive sorted by another attribute."""
    size = settings.rows_per_block
    blocks = range(first // size, (last - 1) // size + 1)
    events = np.concatenate([_sorted_block(settings, block, sorted_by) for block in blocks])
    base = blocks.start * size
    return events[first - base : last - base]


@lru_cache(maxsize=2)  # a block is usually read in several micro-batches
def _sorted_block(settings: Settings, block: int, sorted_by: SortedBy) -> Integers:
    size = settings.rows_per_block
    end = (block + 1) * size if settings.rows is None else min((block + 1) * size, settings.rows)
    events = np.arange(block * size, end, dtype=np.int64)
    return np.asarray(events[np.argsort(sorted_by(settings, events), kind="stable")])
