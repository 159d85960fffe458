"""`console:`: answers are printed, as a table for people or as lines for programs."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, TextIO

import pyarrow as pa

from windrow.sinks.delivery import Delivery, Opening, Sink, SinkUrl, explained
from windrow.sinks.json_rows import is_number, json_line, json_rows
from windrow.sinks.legible import column_values, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


SHOWN = 20
_NULL = "NULL"
#: that of a terminal on which every table fits
_ANY_WIDTH = 1_000_000


class ConsoleSink(Sink):
    """Prints to standard output: on a terminal a table per commit, elsewhere a JSON object per row.

    >>> import pyarrow as pa
    >>> from windrow.sinks.delivery import Delivery
    >>> table = pa.table({"at": [5], "k": ["a"]})
    >>> ConsoleSink().deliver(Delivery("top", 42, table.schema, lambda: iter([table])))
    {"query":"top","commit":42,"row":0,"values":{"at":5,"k":"a"}}
    """

    guarantee = "at least once: a restart may print the last commit again, with the same number"

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit

    @classmethod
    def of(cls, url: SinkUrl) -> Callable[[Opening], Self]:
        url.nowhere()
        url.allow(("limit",))
        limit = url.count("limit", SHOWN) if "limit" in url.options else None
        return lambda opening: cls(limit)

    def deliver(self, delivery: Delivery) -> None:
        out = sys.stdout
        with explained("write to", "standard output"):
            if out.isatty():
                _print_table(out, delivery, self._limit or SHOWN)
            else:
                ascii_only = not (out.encoding or "utf-8").lower().startswith("utf")
                for number, row in enumerate(islice(_rows(delivery), self._limit)):
                    line = {"query": delivery.query, "commit": delivery.commit, "row": number, "values": row}
                    out.write(json_line(line, ascii_only=ascii_only) + "\n")
            out.flush()


def _rows(delivery: Delivery) -> Iterator[dict[str, Any]]:
    return (row for piece in delivery.pieces() for row in json_rows(piece))


def _print_table(out: TextIO, delivery: Delivery, limit: int) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    total = sum(piece.num_rows for piece in delivery.pieces())
    if total == 0:
        return
    shown = f"{limit} of {total} rows" if total > limit else "1 row" if total == 1 else f"{total} rows"
    title = Text(printable(f"{delivery.query}, commit {delivery.commit}: {shown}"), style="italic")
    names = [printable(name) for name in delivery.schema.names]
    kinds = delivery.schema.types
    columns = [*zip(*(row.values() for row in islice(_rows(delivery), limit)), strict=True)]
    rows = [*map(list, zip(*map(_cells, columns, kinds), strict=True))]
    console = Console(file=out)
    table = Table(box=SIMPLE_HEAD)
    for name, kind in zip(names, kinds, strict=True):
        table.add_column(Text(name), justify="right" if is_number(kind) else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell, style="dim" if cell == _NULL else "") for cell in row))
    console.print(title)
    if console.measure(table, options=console.options.update(width=_ANY_WIDTH)).maximum <= console.width:
        console.print(table)
    else:  # in columns too narrow for them, values would be cut or broken
        console.print(Text("\n".join(["", *_records(names, rows, console.width), ""])), soft_wrap=True)
    if total > limit:
        more = f"… {total - limit} more: INTO 'console:?limit={total}' prints all, and so does a pipe\n"
        console.print(Text(more, style="dim"), soft_wrap=True)


def _records(names: list[str], rows: list[list[str]], width: int) -> Iterator[str]:
    """Each row as its values behind their names, on as few lines as they need.

    >>> print(*_records(["at", "airport"], [["2013-01-01 05:22:00", "EWR"]], 30), sep="\\n")
      at 2013-01-01 05:22:00
        airport EWR
    """
    from rich.cells import cell_len

    for row in rows:
        line = " "
        for name, cell in zip(names, row, strict=True):
            if line.strip() and cell_len(f"{line}  {name} {cell}") > width:
                yield line
                line = "   "
            line += f" {name} {cell}" if not line.strip() else f"  {name} {cell}"
        yield line


def _cells(values: Sequence[Any], kind: pa.DataType) -> list[str]:
    """The values of a column as people read them: fractions in few digits, points below points."""
    if pa.types.is_floating(kind):
        return column_values(values)
    return [_cell(value, kind) for value in values]


def _cell(value: Any, kind: pa.DataType) -> str:
    """A value as people read it.

    >>> _cell("2026-01-01T00:05:00.250000Z", pa.timestamp("us", "UTC")), _cell(None, pa.int64())
    ('2026-01-01 00:05:00.25', 'NULL')
    """
    if value is None:
        return _NULL
    if pa.types.is_timestamp(kind):
        return str(value).replace("T", " ").removesuffix("Z").rstrip("0").removesuffix(".")
    return printable(value if isinstance(value, str) else json_line(value))
