"""What the tests of archives share: rows, and the plainest archive there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from tests.archive.conftest import MEMORY

from windrow.archive import read_archive

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string()), ("valid_to", pa.int64())])

#: key, value, expiry
Row = tuple[int | None, str, int]


def table(rows: Iterable[Row]) -> pa.Table:
    """Rows as an archive takes them."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def rows_of(found: pa.Table) -> Counter[tuple[Any, ...]]:
    """What was found, in no order."""
    return Counter(tuple(row[name] for name in SCHEMA.names) for row in found.to_pylist())


def rows_on_disk(folder: Path) -> dict[int, int]:
    """How many rows each sub-index of an archive has on the disk, expired ones too."""
    snapshot = read_archive(folder)
    chunks = snapshot.manifest.chunks
    count = snapshot.declaration.partitioning.count
    return {number: sum(ref.rows for ref in chunks.get(number, ())) for number in range(count)}


def temporary() -> TemporaryDirectory[str]:
    """For examples of property tests, which cannot share a fixture."""
    return TemporaryDirectory(dir=MEMORY, prefix="windrow-")


@dataclass
class PlainArchive:
    """A list of rows with lifetimes."""

    keep: int
    now: int = -(2**63)
    rows: list[Row] = field(default_factory=list)

    def update(self, now: int, rows: Iterable[Row]) -> None:
        self.now = now
        self.rows += [(k, v, min(ends, now + self.keep)) for k, v, ends in rows]

    def live(self, at: int | None = None) -> list[Row]:
        return [row for row in self.rows if row[2] > (self.now if at is None else at)]

    def find(self, low: int | None, high: int | None, at: int | None = None) -> Counter[Row]:
        return Counter(
            row
            for row in self.live(at)
            if row[0] is not None and (low is None or row[0] >= low) and (high is None or row[0] <= high)
        )


def names_by_sub_index(folder: Path) -> dict[int, set[str]]:
    """The Parquet files that are there, by the sub-index in their names."""
    found: dict[int, set[str]] = {}
    for path in (folder / "chunks").iterdir():
        number = int(path.name.split("-")[2].removeprefix("s"))
        found.setdefault(number, set()).add(path.name)
    return found
