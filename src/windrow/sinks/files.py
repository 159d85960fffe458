"""`files:`: one file per commit, in a directory.

A file is written under a temporary name, made durable, and renamed: readers see it whole or not at all. Its
name is that of the query and the number of the commit, so a repetition meets its own file, and leaves it: the
same rows give the same bytes, however they were cut into pieces.

CSV is after RFC 4180 with line feeds, its values are written as in JSON. Strings, and arrays and structs as
their JSON text, stand in quotes; all else does not. So a NULL, which is nothing at all, differs from "".
"""

from __future__ import annotations

import errno
import filecmp
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import types

from windrow.errors import SinkError
from windrow.sinks.delivery import KEPT, Delivery, Opening, Sink, SinkUrl, explained, make_directory
from windrow.sinks.json_rows import is_text, json_column, json_line, json_rows
from windrow.state.names import file_name
from windrow.state.store import sync, write_through


def csv_header(schema: pa.Schema) -> str:
    return ",".join(map(_quoted, schema.names))


def csv_lines(table: pa.Table) -> Iterator[str]:
    """The rows, each without its line feed.

    >>> import pyarrow as pa
    >>> table = pa.table({"at": [1, 2], "k": ['a "b" c', None], "v": [float("nan"), 0.5], "a": [[1], []]})
    >>> csv_header(table.schema), list(csv_lines(table))
    ('"at","k","v","a"', ['1,"a ""b"" c",NaN,"[1]"', '2,,0.5,"[]"'])
    """
    columns = [_cells(column) for column in table.columns]
    return (",".join(cells) for cells in zip(*columns, strict=True))


def _cells(column: pa.ChunkedArray) -> list[str]:
    quoted = is_text(column.type) or types.is_nested(column.type)
    return [_cell(value, quoted) for value in json_column(column)]


def _cell(value: Any, quoted: bool) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json_line(value)
    return _quoted(text) if quoted else text


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


#: writes all tables, which have this schema, into a new file
Writer: TypeAlias = Callable[[BinaryIO, pa.Schema, Iterator[pa.Table]], None]

ROW_GROUP = 1 << 17


def write_parquet(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(file, schema) as writer:
        for table in regrouped(tables, ROW_GROUP):
            writer.write_table(table, row_group_size=ROW_GROUP)


def write_csv(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
    file.write(f"{csv_header(schema)}\n".encode())
    for table in tables:
        file.write("".join(f"{line}\n" for line in csv_lines(table)).encode())


def write_json(file: BinaryIO, schema: pa.Schema, tables: Iterator[pa.Table]) -> None:
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
        if rows >= size:
            joined = pa.concat_tables(waiting)
            for start in range(0, rows - size + 1, size):
                yield joined.slice(start, size).combine_chunks()
            waiting, rows = [joined.slice(rows - rows % size)], rows % size
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


class FilesSink(Sink):
    """Writes into one directory, which other queries may share."""

    is_slow = True
    guarantee = "exactly once: each commit is one file, which appears whole or not at all"

    def __init__(self, directory: Path, form: str, opening: Opening) -> None:
        self._directory, self._form = directory, form
        self._stem = file_name(opening.query)
        self._hook = opening.hook
        with explained("use the directory", directory):
            make_directory(directory)
            self._clear()

    @classmethod
    def of(cls, url: SinkUrl) -> Callable[[Opening], Self]:
        directory = url.path()
        url.allow(("format",))
        form = url.choice("format", FORMATS, "parquet")
        return lambda opening: cls(directory.absolute(), form, opening)

    def deliver(self, delivery: Delivery) -> None:
        if next(delivery.pieces(), None) is None:
            return
        path = self._directory / f"{self._stem}-{delivery.commit:012d}.{self._form}"
        self._hook("sink-before-write")
        with explained("write", path):
            try:
                self._write(path, delivery)
            except pa.ArrowException as error:
                hint = "CAST the column that does not fit, or choose another format"
                raise SinkError(f"cannot write {path}: {error}", code="no-such-type", hint=hint) from error
            sync(self._directory)

    def _write(self, path: Path, delivery: Delivery) -> None:
        # readers of directories skip names with a dot
        temporary = path.with_name(f".{path.name}.{token_hex(8)}.tmp")
        try:
            with temporary.open("xb") as file:
                FORMATS[self._form](file, delivery.schema, delivery.pieces())
                write_through(file)
            self._hook("sink-written")
            if not path.exists():
                temporary.replace(path)
            elif path.is_dir():
                raise IsADirectoryError(errno.EISDIR, "it is a directory")
            elif not self._is_repetition(temporary, path, delivery):
                raise SinkError(
                    f"{path} is there already, with other rows than commit {delivery.commit} of"
                    f" `{delivery.query}` has",
                    code="place-taken",
                    hint="if an earlier state of the engine wrote it, choose another directory or move its"
                    f" files away; {KEPT}",
                )
        finally:
            with suppress(OSError):  # the error that led here says more
                temporary.unlink(missing_ok=True)
        self._hook("sink-after-rename")

    def _is_repetition(self, temporary: Path, path: Path, delivery: Delivery) -> bool:
        if filecmp.cmp(temporary, path, shallow=False):
            return True
        if self._form != "parquet":
            return False
        try:
            return same_rows(path, delivery.schema, delivery.pieces())
        except pa.ArrowException:  # not Parquet at all
            return False

    def _clear(self) -> None:
        """Remove what this query's interrupted deliveries have left."""
        left = re.compile(rf"\.{re.escape(self._stem)}-\d{{12,}}\.\w+\.[0-9a-f]+\.tmp")
        for path in self._directory.iterdir():
            if left.fullmatch(path.name):
                path.unlink(missing_ok=True)
