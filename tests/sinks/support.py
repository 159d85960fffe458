"""Deliveries to try sinks with, and how to read back what they wrote."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.sinks import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

#: where a sink can be killed, in the order of its work
HOOKS = ("sink-before-write", "sink-written", "sink-after-rename")
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
TOP_K = pa.list_(pa.struct([("value", pa.float64()), ("count", pa.int64())]))

#: a column of every type that a query can have: a common value, a strange one, and NULL
EVERY_TYPE: dict[str, tuple[pa.DataType, list[Any]]] = {
    "flag": (pa.bool_(), [True, False, None]),
    "tiny": (pa.int8(), [1, -128, None]),
    "small": (pa.int16(), [1, -32768, None]),
    "whole": (pa.int32(), [1, -(2**31), None]),
    "big": (pa.int64(), [1, -(2**63), None]),
    "real": (pa.float32(), [0.1, math.inf, None]),
    "double": (pa.float64(), [0.1, math.nan, None]),
    "negative": (pa.float64(), [-0.0, -math.inf, None]),
    "money": (
        pa.decimal128(38, 10),
        [Decimal("12.5"), Decimal("-9999999999999999999999999999.9999999999"), None],
    ),
    "text": (pa.string(), ["plain", 'a "quoted", line\nand\ttab, naïve Ω 🌾', None]),
    "empty": (pa.string(), ["", "NULL", None]),
    "bytes": (pa.binary(), [b"hi", b"\x00\xff\n", None]),
    "day": (
        pa.timestamp("us", "UTC"),
        [datetime(2024, 5, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC), None],
    ),
    "moment": (pa.timestamp("us", "UTC"), [NOON, NOON + timedelta(microseconds=1), None]),
    "date": (pa.date32(), [date(2024, 5, 1), date(1969, 12, 31), None]),
    "top": (TOP_K, [[{"value": 1.5, "count": 2}], [{"value": math.nan, "count": None}, None], None]),
    "words": (pa.list_(pa.string()), [["a", "b"], [], None]),
    "pair": (
        pa.struct([("k", pa.string()), ("v", pa.float32())]),
        [{"k": "a", "v": 0.1}, {"k": None, "v": None}, None],
    ),
}


def every_type() -> pa.Table:
    """Three rows of all types, as a query that both adds and removes would give them."""
    schema = pa.schema(
        [
            ("at", pa.timestamp("us", "UTC")),
            ("op", pa.string()),
            *((name, kind) for name, (kind, _) in EVERY_TYPE.items()),
        ]
    )
    columns = [values for _, values in EVERY_TYPE.values()]
    return pa.table([[NOON] * 3, ["+", "+", "-"], *columns], schema=schema)


def numbers(first: int, rows: int = 3) -> pa.Table:
    """A small table that tells its commits apart."""
    values = list(range(first * 10, first * 10 + rows))
    return pa.table({"at": pa.array(values, pa.int64()), "k": [f"key {value}" for value in values]})


def delivery_of(table: pa.Table, commit: int = 42, query: str = "top", cut: int = 2) -> Delivery:
    """A delivery of the table, cut into pieces, with an empty piece between them."""

    def tables() -> Iterator[pa.Table]:
        for start in range(0, table.num_rows, cut):
            yield table.slice(start, cut)
            yield table.slice(0, 0)

    return Delivery(query, commit, table.schema, tables)


def nothing(commit: int = 42, query: str = "top") -> Delivery:
    """A delivery without rows."""
    return delivery_of(numbers(0).slice(0, 0), commit, query)


def rows_of(table: pa.Table) -> list[str]:
    """The rows in a form in which NaN equals NaN."""
    return [repr(row) for row in table.to_pylist()]


def visible(directory: Path) -> list[str]:
    """The names that a reader of a directory looks at."""
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith((".", "_")))


def hidden(directory: Path) -> list[str]:
    """The names that it does not."""
    return sorted(path.name for path in directory.iterdir() if path.name.startswith("."))


def delta_rows(table: Path, by: str = "at") -> pa.Table:
    """All rows of a Delta table, in the order of a column."""
    from deltalake import DeltaTable

    # Read here, by their names: reading through the library's own file system can end the process badly.
    paths = [
        table / name
        for name in DeltaTable(str(table)).get_add_actions(flatten=True).column("path").to_pylist()
    ]
    return pa.concat_tables([pq.ParquetFile(path).read() for path in paths]).sort_by(by)
