"""The workload of the scheduling benchmark: groups of queries at random, and what refreshing them costs.

A group's queries share a basic interval synopsis of counters. What a probe costs is measured on such a
synopsis with random rows: a part that is always there, a part per interval, and a part per answer (the ten
most frequent values, or the median). Times are those of the processor, which others on the machine do not
make longer.
"""

from __future__ import annotations

from random import Random
from time import process_time
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.theory.synopsis import BasicIntervalSynopsis
from windrow.algebra.aggregates import make
from windrow.algebra.types import BIGINT
from windrow.kernels.aggregates.lowering import of_counts
from windrow.kernels.state import PANE, TableLayout
from windrow.sharing.schedule import Costs, ScheduledQuery

if TYPE_CHECKING:
    from collections.abc import Callable

GROUPS = 8
LONGEST, SHORTEST = 100, 20
#: rows per second of the thesis, and how many distinct values they then have
RATES = {1500: 1000, 3000: 2000}
_REPEATS = 5


def random_groups(queries: int, seed: int) -> dict[str, list[ScheduledQuery]]:
    """So many queries in eight groups, with windows of 20 to 100 and periods of up to half of that.

    >>> groups = random_groups(40, seed=1)
    >>> len(groups), {len(each) for each in groups.values()}
    (8, {5})
    """
    random = Random(seed)
    found: dict[str, list[ScheduledQuery]] = {f"G{group}": [] for group in range(GROUPS)}
    for number in range(queries):
        length = random.randint(SHORTEST, LONGEST)
        query = ScheduledQuery(f"Q{number}", length, random.randint(1, length // 2))
        found[f"G{number % GROUPS}"].append(query)
    return found


def measured_costs(rows: int, distinct: int) -> Costs:
    """The costs of a synopsis of so many rows, and different values, per interval, in seconds."""
    synopsis = _filled(rows, distinct)
    times = {length: _time(lambda: synopsis.probe([length])) for length in (SHORTEST, LONGEST)}  # noqa: B023
    read = max(0.0, times[LONGEST] - times[SHORTEST]) / (LONGEST - SHORTEST)
    counts = synopsis.probe([LONGEST])[LONGEST].drop(PANE).rename({"k0": "v0"})
    window = pl.lit(0, pl.Int64)
    counts = counts.select(window.alias("w"), window.alias("g"), pl.all())
    most, middle = make("top_k", (10,), types=(BIGINT,)), make("median", types=(BIGINT,))
    answer = _time(lambda: (of_counts(most, counts), of_counts(middle, counts))) / 2
    return Costs(read, answer, max(0.0, times[SHORTEST] - read * (SHORTEST - 1)))


def _filled(rows: int, distinct: int) -> BasicIntervalSynopsis:
    values = np.random.default_rng(7)
    synopsis = BasicIntervalSynopsis(TableLayout(("k0",)), LONGEST)
    for _ in range(LONGEST):
        found, counts = np.unique(values.integers(0, distinct, rows), return_counts=True)
        zeros = np.zeros(len(found), dtype=np.int64)
        synopsis.update(pl.DataFrame({PANE: zeros, "k0": found, "rows.0": counts.astype(np.int64)}))
    return synopsis


def _time(work: Callable[[], object]) -> float:
    """The least of a few times: what disturbs only makes it longer."""
    work()
    times = []
    for _ in range(_REPEATS):
        began = process_time()
        work()
        times.append(process_time() - began)
    return min(times)
