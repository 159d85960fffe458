"""`console:`: answers are printed, as a table for people or as lines for programs."""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Self, TextIO

from windrow.sinks.delivery import Delivery, Opening, Sink, SinkUrl, explained
from windrow.sinks.json_rows import is_number, json_line, json_rows

if TYPE_CHECKING:
    from collections.abc import Iterator


SHOWN = 20


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
    def check(cls, url: SinkUrl) -> None:
        url.nowhere()
        url.allow(("limit",))
        url.count("limit", SHOWN)

    @classmethod
    def open(cls, url: SinkUrl, opening: Opening) -> Self:
        return cls(url.count("limit", SHOWN) if "limit" in url.options else None)

    def deliver(self, delivery: Delivery) -> None:
        out = sys.stdout
        with explained("write to", "standard output"):
            if out.isatty():
                _print_table(out, delivery, self._limit or SHOWN)
            else:
                _print_lines(out, delivery, self._limit)
            out.flush()

    def close(self) -> None:
        """Standard output stays open."""


def _rows(delivery: Delivery) -> Iterator[dict[str, Any]]:
    return (row for piece in delivery.pieces() for row in json_rows(piece))


def _print_lines(out: TextIO, delivery: Delivery, limit: int | None) -> None:
    ascii_only = not (out.encoding or "utf-8").lower().startswith("utf")
    for number, row in enumerate(islice(_rows(delivery), limit)):
        line = {"query": delivery.query, "commit": delivery.commit, "row": number, "values": row}
        out.write(json_line(line, ascii_only=ascii_only) + "\n")


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
    table = Table(box=SIMPLE_HEAD)
    for field in delivery.schema:
        justify: Literal["left", "right"] = "right" if is_number(field.type) else "left"
        table.add_column(Text(printable(field.name)), justify=justify, overflow="fold")
    for row in islice(_rows(delivery), limit):
        table.add_row(*(_cell(value) for value in row.values()))
    console = Console(file=out)
    console.print(title)
    console.print(table)
    if total > limit:
        more = f"… {total - limit} more: INTO 'console:?limit={total}' prints all, and so does a pipe\n"
        console.print(Text(more, style="dim"), soft_wrap=True)


def _cell(value: Any) -> Any:
    from rich.text import Text

    if value is None:
        return Text("NULL", style="dim")
    return Text(printable(value if isinstance(value, str) else json_line(value)))


def printable(text: str) -> str:
    r"""The text without characters that would command a terminal.

    >>> printable("naïve \x1b[31m red\n")
    'naïve \\x1b[31m red\\n'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
