"""How rows lie in a file. The same rows give the same bytes, however they were cut into pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.sinks.csv_rows import csv_header, csv_lines
from windrow.sinks.json_rows import json_line, json_rows

#: writes all tables, which have this schema, into a new file
Writer: TypeAlias = Callable[[BinaryIO, pa.Schema, Iterator[pa.Table]], None]

ROW_GROUP = 1 << 17


def write_parquet(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    """Row groups of equal size, the last one excepted."""
    with pq.ParquetWriter(file, schema) as writer:
        for table in regrouped(tables, ROW_GROUP):
            writer.write_table(table, row_group_size=ROW_GROUP)


def write_csv(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    """A line of names, then a line per row."""
    file.write(f"{csv_header(schema)}\n".encode())
    for table in tables:
        file.write("".join(f"{line}\n" for line in csv_lines(table)).encode())


def write_json(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    """An object per row, each on a line of its own."""
    for table in tables:
        file.write("".join(f"{json_line(row)}\n" for row in json_rows(table)).encode())


#: every format; its name is also how its files end
FORMATS: dict[str, Writer] = {"parquet": write_parquet, "csv": write_csv, "json": write_json}


def regrouped(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """The same rows in tables of one chunk and this size, the last one excepted.

    >>> table = pa.table({"x": range(5)})
    >>> [piece["x"].to_pylist() for piece in regrouped([table[:1], table[1:]], 2)]
    [[0, 1], [2, 3], [4]]
    """
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows < size:
            continue
        joined = pa.concat_tables(waiting)
        whole = rows - rows % size
        for start in range(0, whole, size):
            yield joined.slice(start, size).combine_chunks()
        rows -= whole
        waiting = [joined.slice(whole)] if rows else []
    if rows:
        yield pa.concat_tables(waiting).combine_chunks()


def same_rows(written: Path, schema: pa.Schema, tables: Iterator[pa.Table]) -> bool:
    """Whether a Parquet file, written perhaps by another version of the writer, has exactly these rows."""
    with pq.ParquetFile(written) as file:
        if not file.schema_arrow.equals(schema):
            return False
        stored = (pa.table(batch) for batch in file.iter_batches())
        theirs, ours = _lines(stored), _lines(tables)
        return all(line == next(ours, None) for line in theirs) and next(ours, None) is None


def _lines(tables: Iterable[pa.Table]) -> Iterator[str]:
    return (json_line(row) for table in tables for row in json_rows(table))
