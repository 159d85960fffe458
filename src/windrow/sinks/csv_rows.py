"""Rows as CSV, after RFC 4180 with line feeds. Values are written as in JSON.

Strings, and arrays and structs as their JSON text, stand in quotes; all else does not. So a NULL, which is
nothing at all, differs from the empty string.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyarrow import types

from windrow.sinks.json_rows import json_column, json_line
from windrow.sinks.kinds import is_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa


def csv_header(schema: pa.Schema) -> str:
    """The names of the columns."""
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
