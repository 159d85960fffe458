"""Rows with lifetimes, and archives of every layout to put them into: section 4.4 of Golab's thesis.

Names are the thesis': `R-ins` and `D-ins` are cut by insertion only, one piece of time after the other;
`Rebuild` and `NoRebuild` by insertion and expiry, by turns. What begins with R writes a sub-index anew
whenever it changes, in the order of the key; the others keep it in pieces. `-chr` is cut one piece after the
other, too. `-lazy` leaves expired rows on the disk until they are half of their piece; the others remove them
at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import log
from statistics import fmean, median
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from windrow.archive.archive import Archive, Updated
from windrow.archive.declaration import Declaration, DoublyPartitioned, Upkeep

if TYPE_CHECKING:
    from pathlib import Path

#: instants of a period; lives are drawn to the instant
_PERIOD = 1000
_STRICT, _LAZY, _REBUILD = Upkeep(reclaim=0.0), Upkeep(), Upkeep.rebuilding()
_SWING = 4.0


@dataclass(frozen=True, slots=True)
class Layout:
    """A family of layouts, and how many sub-indices there are."""

    family: str
    shape: str
    sub_indices: int
    kind: str
    upkeep: Upkeep

    @property
    def name(self) -> str:
        """As in `NoRebuild4x4-lazy`."""
        family, dash, rest = self.family.partition("-l" if self.upkeep == _LAZY else "-c")
        return f"{family}{self.shape}{dash}{rest}"

    def partitioning(self, span: int) -> DoublyPartitioned:
        """The cut, for rows that live so many periods at most."""
        side = round(self.sub_indices**0.5)
        match self.kind:
            case "insertion":
                return DoublyPartitioned(self.sub_indices, 1, span, "chronological")
            case "expiry":
                return DoublyPartitioned(1, self.sub_indices, span, "chronological")
            case _:
                return DoublyPartitioned(side, side, span, self.kind)


def layouts(side: int) -> list[Layout]:
    """All layouts with side × side sub-indices."""
    count = side * side
    grid = f"{side}x{side}"
    return [
        Layout("R-ins", f"{count}", count, "insertion", _REBUILD),
        Layout("R-exp", f"{count}", count, "expiry", _REBUILD),
        Layout("Rebuild", grid, count, "round-robin", _REBUILD),
        Layout("Rebuild-chr", grid, count, "chronological", _REBUILD),
        Layout("D-ins", f"{count}", count, "insertion", _STRICT),
        Layout("NoRebuild", grid, count, "round-robin", _STRICT),
        Layout("D-ins-lazy", f"{count}", count, "insertion", _LAZY),
        Layout("NoRebuild-lazy", grid, count, "round-robin", _LAZY),
    ]


def wave(count: int) -> Layout:
    """A wave index, for rows that live equally long: those that expire are in one sub-index, too."""
    return Layout("Wave", f"{count}", count, "insertion", _REBUILD)


@dataclass(frozen=True)
class Rows:
    """Rows of random keys, from a seed. A row lives up to `span` periods; all of them if `is_equal`."""

    per_update: int
    span: int
    keys: int
    width: int
    seed: int
    is_equal: bool = False
    #: the number of rows of an update varies by chance, up to fourfold
    is_fluctuating: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """Key, contents, expiry."""
        return pa.schema([("k", pa.int64()), ("v", pa.binary(self.width)), ("valid_to", pa.int64())])

    def batch(self, period: int) -> pa.Table:
        """What comes in a period."""
        draw = np.random.default_rng((self.seed, period + 10_000))
        rows = self._count(period)
        lives = np.full(rows, self.span * _PERIOD)
        if not self.is_equal:
            lives = draw.integers(1, self.span * _PERIOD + 1, rows)
        contents = draw.integers(0, 256, rows * self.width, dtype=np.uint8).tobytes()
        values = pa.FixedSizeBinaryArray.from_buffers(
            pa.binary(self.width), rows, [None, pa.py_buffer(contents)]
        )
        keys = pa.array(draw.integers(0, self.keys, rows))
        return pa.table([keys, values, pa.array(period * _PERIOD + lives)], self.schema)

    def _count(self, period: int) -> int:
        if not self.is_fluctuating:
            return self.per_update
        exponent = random.Random(f"{self.seed}/{period}").uniform(-1, 1)
        usual = (_SWING - 1 / _SWING) / (2 * log(_SWING))  # of a number whose logarithm is uniform
        return round(self.per_update * float(_SWING**exponent) / usual)


@dataclass(frozen=True, slots=True)
class Times:
    """The median seconds of each operation; what an update writes; what was found, to compare.

    `processor` are the seconds that an update keeps the processor busy: neighbours disturb them less.
    """

    update: float
    processor: float
    probe: float
    scan: float
    rows_written: float
    files_written: float
    bytes: int
    found: tuple[int, int]


def run_archive(folder: Path, layout: Layout, rows: Rows, updates: int, probes: int) -> Times:
    """Build an archive that has been running for long, then update, search and scan it by turns."""
    told = Declaration("k", rows.span * _PERIOD, _PERIOD, layout.partitioning(rows.span), layout.upkeep)
    draw = random.Random(rows.seed)
    spent: dict[str, list[float]] = {"update": [], "processor": [], "probe": [], "scan": []}
    done: list[Updated] = []
    found = [0, 0]
    with Archive.create(folder, rows.schema, told, keep_commits=1) as archive:
        for period in range(1 - rows.span, 1):
            archive.update(period * _PERIOD, rows.batch(period))
        for period in range(1, updates + 1):
            batch = rows.batch(period)
            with _timed(spent["update"]), _timed(spent["processor"], process_time):
                done.append(archive.update(period * _PERIOD, batch))
            for _ in range(probes):
                key = draw.randrange(rows.keys)
                with _timed(spent["probe"]):
                    matched = archive.find(key)
                found[0] += matched.num_rows
            with _timed(spent["scan"]):
                scanned = archive.scan()
            found[1] += scanned.num_rows
        size = sum(_sizes(archive))
    usual = {name: median(times) for name, times in spent.items()}
    return Times(
        **usual,
        rows_written=fmean(each.rows_written for each in done),
        files_written=fmean(each.files_written for each in done),
        bytes=size,
        found=(found[0], found[1]),
    )


def _sizes(archive: Archive) -> Iterator[int]:
    with archive.snapshot() as seen:
        yield from (ref.bytes for ref in seen.manifest.files.values())


@contextmanager
def _timed(into: list[float], clock: Callable[[], float] = perf_counter) -> Iterator[None]:
    """Add the seconds of a block to a list."""
    began = clock()
    yield
    into.append(clock() - began)
