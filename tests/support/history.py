"""The history that most tests of the engine run: a stream, its batches, and queries over it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, t BIGINT", "WATTR t SLACK 3"
STREAM = f"CREATE STREAM s ({COLUMNS}) {OPTIONS}"
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("t", pa.int64())])

Row = tuple[int, int, int]
#: every batch moves the clock past something, but for the third; one row is late
BATCHES: tuple[tuple[Row, ...], ...] = (
    ((1, 10, 0), (2, 20, 4), (1, 5, 11)),
    ((2, 7, 16), (3, 1, 12), (1, 2, 25)),
    ((2, 2, 24),),
    ((1, 9, 38), (3, 4, 31), (2, 100, 3)),
    ((2, 6, 47), (1, 8, 51)),
    ((3, 3, 52), (2, 1, 55)),
    ((1, 4, 63), (1, 6, 74)),
)

SUMS = "SELECT k, SUM(v) AS total, COUNT(*) AS n FROM s [RANGE 20 SLIDE 10] GROUP BY k"
MEDIANS = "SELECT k, MEDIAN(v) AS middle FROM s [RANGE 60 SLIDE 30] GROUP BY k"
GREATEST = "SELECT MAX(v) AS greatest FROM s [RANGE 40 SLIDE 20]"
NESTED = (
    "SELECT MAX(total) AS top FROM (SELECT k, SUM(v) AS total FROM s [RANGE 10 SLIDE 10] GROUP BY k)"
    " [RANGE 20 SLIDE 20]"
)
COUNTS = "SELECT COUNT(*) AS n FROM s [RANGE 10 SLIDE 10]"
#: one query for each kind of sink
QUERIES = {"files": SUMS, "delta": MEDIANS, "callback": NESTED, "console": COUNTS, "memory": GREATEST}


def table_of(rows: Iterable[Any], schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows as an Arrow table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """A table's rows as tuples."""
    return [tuple(row.values()) for row in table.to_pylist()]


def rows_in(folder: Path, pattern: str = "[!.]*") -> Counter[Any]:
    """The rows of Parquet files, as a sink leaves them."""
    return Counter(row for path in folder.glob(pattern) for row in rows_of(pq.read_table(path)))


def as_rows(answers: Counter[Any]) -> list[tuple[Any, ...]]:
    """What the oracle says, as a list to compare with."""
    return sorted(answers.elements())
