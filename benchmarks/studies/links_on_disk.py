"""The links of the connection log as files that Spark reads: Parquet, a second for each unit of time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.studies.connections import links
from benchmarks.workload import BEGIN, SECOND

if TYPE_CHECKING:
    from pathlib import Path

#: of both links in SQL, Spark's and ours
LINK_COLUMNS = "ts TIMESTAMP, src BIGINT, dst BIGINT, protocol STRING"
_NAMES = ("link1", "link2", "link3")
#: as many micro-batches, since each takes one of each link
FILES = 10


@dataclass(frozen=True)
class LinksOnDisk:
    """A folder for each of the first two links, with as many files of as much time each."""

    folder: Path
    #: the instant of the last row of that link which ends first, in microseconds
    end: int

    @property
    def folders(self) -> dict[str, Path]:
        """By link."""
        return {name: self.folder / name for name in _NAMES[:2]}


def links_on_disk(folder: Path, units: int) -> LinksOnDisk:
    """So many units of time, written anew."""
    log = links(_NAMES, units)
    last = min(int(log.rows[name]["ts"][-1]) for name in _NAMES[:2])
    found = LinksOnDisk(folder, BEGIN + last * SECOND)
    for name, into in found.folders.items():
        into.mkdir(parents=True)
        for number in range(FILES):
            begin, end = (units * n // FILES for n in (number, number + 1))
            rows = log.batch(begin, end).rows[name]
            at = (pl.lit(BEGIN) + pl.col("ts") * SECOND).cast(pl.Datetime("us", "UTC"))
            path = into / f"{number:06}.parquet"
            rows.select(at.alias("ts"), "src", "dst", "protocol").write_parquet(path)
            # Spark takes files by their age: one second apart, so that the order is that of the names
            os.utime(path, (BEGIN // SECOND + number,) * 2)
    return found
