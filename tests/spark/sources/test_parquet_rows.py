"""Few rows of Parquet files, read without Spark: the same as Spark reads, or left to Spark."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow as wr
from windrow.execution import local
from windrow.kernels.columnar.columns import rows_schema
from windrow.language.compile import declare_stream
from windrow.spark.sources.parquet_files import is_same, parquet_rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TIMES = [dt.datetime(2024, 1, 1, 0, 0, second, tzinfo=dt.UTC) for second in range(4)]
#: declared type, and a column of a file that holds such values
COLUMNS: dict[str, pa.Array] = {
    "BIGINT": pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()),
    "bigint": pa.array([1, None, -5, 7], pa.int16()),
    "INT": pa.array([1, None, -5, 7], pa.int32()),
    "DOUBLE": pa.array([0.5, None, float("nan"), -0.0], pa.float64()),
    "double": pa.array([0.5, None, float("inf"), -0.0], pa.float32()),
    "STRING": pa.array(["a", None, "", "ä"], pa.string()),
    "string": pa.array(["a", None, "a", "b"]).dictionary_encode(),
    "BOOLEAN": pa.array([True, None, False, True]),
    "DATE": pa.array([dt.date(2024, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "DECIMAL(9, 2)": pa.array([Decimal("1.50"), None, Decimal("-3.00"), Decimal("9999999.99")]),
    "TIMESTAMP": pa.array(TIMES, pa.timestamp("us", "UTC")),
    "timestamp": pa.array([each.replace(tzinfo=None) for each in TIMES], pa.timestamp("ms")),
}


def _rows(w: Any, query: str) -> list[Any]:
    table = w.queries[query].results()
    return [tuple(map(repr, row.values())) for row in table.to_pylist()]


@pytest.mark.part(5)
@pytest.mark.parametrize("declared", COLUMNS)
def test_a_column_read_here_is_the_one_that_spark_reads(
    declared: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    table = pa.table({"t": range(4), "X": COLUMNS[declared]})
    pq.write_table(table, tmp_path / "in" / "1.parquet")
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(local, "SMALL_ROWS", few)
        monkeypatch.setattr(local, "SMALL_NATIVE", few)
        with wr.connect(spark, state=None) as w:
            w.sql(f"CREATE STREAM s (t BIGINT, x {declared}) WATTR t ORDERED FROM 'files://{tmp_path}/in/*'")
            w.query("q", "SELECT ISTREAM(t, x) FROM s [RANGE 10]")
            w.run(once=True, flush=True)
            found.append(_rows(w, "q"))
    assert found[0] == found[1]
    assert len(found[0]) == 4


def test_rows_of_several_files_are_numbered_as_spark_numbers_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    for number, name in enumerate(("b", "a", "c")):
        table = pa.table({"t": [0, 0, 0], "x": [f"{name}{row}" for row in range(3)]})
        pq.write_table(table, tmp_path / "in" / f"{number}{name}.parquet")
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(local, "SMALL_ROWS", few)
        with wr.connect(spark, state=None) as w:
            w.sql(f"CREATE STREAM s (t BIGINT, x STRING) WATTR t ORDERED FROM 'files://{tmp_path}/in/*'")
            w.query("q", "SELECT ISTREAM(x) FROM s [ROWS 4 WATTR row_num]")
            w.run(once=True, flush=True)
            found.append(_rows(w, "q"))
    assert found[0] == found[1]


def _read(path: Path, table: pa.Table, declared: str, **how: Any) -> pa.Table | None:
    pq.write_table(table, path, **how)
    stream = declare_stream("s", declared, "WATTR x ORDERED")
    return parquet_rows(str(path), table.column_names, rows_schema(stream.schema))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.5]),
        pa.array(["1"]),
        pa.array([1], pa.uint64()),
        pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ns")),
        pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("us", "Europe/Berlin")),
    ],
)
def test_a_column_of_another_type_is_left_to_spark(column: pa.Array, tmp_path: Path) -> None:
    assert not any(is_same(column.type, kind) for kind in (pa.int64(), pa.timestamp("us", "UTC")))
    assert _read(tmp_path / "f", pa.table({"x": column}), "x BIGINT") is None


def test_text_that_is_no_utf_8_is_left_to_spark(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    with pytest.raises(pa.ArrowException):
        _read(tmp_path / "f", pa.table({"x": [1], "y": bad}), "x BIGINT, y STRING")


def test_names_that_differ_by_case_only_are_left_to_spark(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "X": [2]}), tmp_path / "f")
    assert parquet_rows(str(tmp_path / "f"), ["x"], pa.schema([("x", pa.int64())])) is None
