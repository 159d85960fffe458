"""Rows on disk: readings `(ts, k, v)` in Parquet files, the same ones every time, made once and kept.

Row i comes at (i + 1) · seconds / rows, so that the last one comes exactly at the end and completes the
windows that end there. Keys and values are random, from a fixed seed.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

#: when the streams begin, a whole number of days, in microseconds
BEGIN = 1_700_006_400_000_000
SECOND = 1_000_000
#: of the stream in SQL, Spark's and ours
COLUMNS = "ts TIMESTAMP, k INT, v DOUBLE"
#: Spark passes over names that begin so
_COMPLETE = "_complete.json"


@dataclass(frozen=True)
class Readings:
    """A directory of files with as many rows each, in the order of their names."""

    folder: Path
    rows: int
    keys: int
    seconds: int
    rows_per_file: int

    @property
    def files(self) -> list[Path]:
        """All files, first to last."""
        return sorted(self.folder.glob("*.parquet"))

    @property
    def end(self) -> int:
        """When the last row comes, in microseconds."""
        return BEGIN + self.seconds * SECOND

    def file_of(self, instant: int) -> int:
        """The number of the file with the first row that is not before an instant.

        >>> from pathlib import Path
        >>> readings = Readings(Path(), rows=100, keys=5, seconds=10, rows_per_file=10)
        >>> [readings.file_of(BEGIN + s) for s in (0, 100_000, 1_000_000, 1_000_001, 10_000_000)]
        [0, 0, 0, 1, 9]
        """
        step = self.seconds * SECOND // self.rows
        return max(0, -(-(instant - BEGIN) // step) - 1) // self.rows_per_file


def readings(
    cache: Path, *, rows: int, keys: int, seconds: int, rows_per_file: int, seed: int = 1
) -> Readings:
    """The rows asked for, from the cache or made now."""
    name = f"readings-{rows}-{keys}-{seconds}-{rows_per_file}-{seed}"
    made = Readings(cache / name, rows, keys, seconds, rows_per_file)
    if not (made.folder / _COMPLETE).exists():
        _make(made, seed)
    return made


def _make(made: Readings, seed: int) -> None:
    """Into a directory beside, which then takes its place: a cache is whole or not there."""
    import numpy as np
    import pyarrow.parquet as pq

    beside = made.folder.with_name(f".{made.folder.name}.{os.getpid()}")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for number, first in enumerate(range(0, made.rows, made.rows_per_file)):
        path = beside / f"{number:06}.parquet"
        pq.write_table(_rows(made, random, first), path)
        # Spark takes files by their age: one second apart, so that the order is that of the names
        os.utime(path, (BEGIN // SECOND + number,) * 2)
    facts = {name: value for name, value in asdict(made).items() if name != "folder"}
    (beside / _COMPLETE).write_text(json.dumps({**facts, "seed": seed}), encoding="utf-8")
    shutil.rmtree(made.folder, ignore_errors=True)
    beside.rename(made.folder)


def _rows(made: Readings, random: object, first: int) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    assert isinstance(random, np.random.Generator)
    count = min(made.rows_per_file, made.rows - first)
    step = made.seconds * SECOND // made.rows
    times = BEGIN + (np.arange(first, first + count, dtype=np.int64) + 1) * step
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "k": pa.array(random.integers(0, made.keys, count), pa.int32()),
            "v": pa.array(random.random(count) * 100),
        }
    )
