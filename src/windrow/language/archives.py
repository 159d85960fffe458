"""CREATE ARCHIVE: what is kept on disk, under which key, for how long.

    CREATE ARCHIVE name ON query_or_stream KEY column [PARTITIONS g x e] [REBUILD | NOREBUILD] KEEP duration

`read_create_archive` reads what comes after the word ARCHIVE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from windrow.archive.declaration import Declaration
from windrow.errors import QueryError
from windrow.language.syntax import Statement

if TYPE_CHECKING:
    from windrow.errors import Span
    from windrow.language.cursor import Cursor
    from windrow.windows.domain import Domain
    from windrow.windows.units import Quantity

_OPTIONS = ("PARTITIONS", "REBUILD", "NOREBUILD", "KEEP")
_SHAPE = re.compile(r"(\d{1,4})[xX×](\d{1,4})")


@dataclass(frozen=True)
class CreateArchive(Statement):
    """CREATE ARCHIVE; `source` is the query or the stream whose rows are kept. The last three are places."""

    name: str
    source: str
    key: str
    partitions: tuple[int, int]
    rebuild: bool
    keep: Quantity
    source_at: Span
    key_at: Span
    keep_at: Span

    def declaration(self, domain: Domain) -> Declaration:
        """What the archive is told, where the source's time is of this domain."""
        keep = self.keep.ticks(domain)
        return Declaration.of(self.key, keep, partitions=self.partitions, rebuild=self.rebuild)


def read_create_archive(cursor: Cursor) -> CreateArchive:
    """The rest of the statement."""
    name = cursor.name("the name of the archive")
    cursor.expect("ON")
    source = cursor.name("the query or stream to keep")
    source_at = cursor.span_since(cursor.index - 1)
    cursor.expect("KEY")
    key = cursor.name("the column rows are found by")
    key_at = cursor.span_since(cursor.index - 1)
    partitions = _shape(cursor) if cursor.take("PARTITIONS") else (2, 2)
    rebuild = cursor.take("REBUILD")
    if not rebuild:
        cursor.take("NOREBUILD")
    if not cursor.take("KEEP"):
        cursor.fail("KEEP", _OPTIONS, "say how long rows are kept, as in KEEP 7 DAYS")
    begin = cursor.index
    keep = cursor.quantity("how long rows are kept, as in KEEP 7 DAYS,")
    places = source_at, key_at, cursor.span_since(begin)
    cursor.finish()
    return CreateArchive(cursor.tokens.span, name, source, key, partitions, rebuild, keep, *places)


def _shape(cursor: Cursor) -> tuple[int, int]:
    """`4 x 4`, with or without spaces."""
    begin = cursor.index
    while not cursor.done and cursor.word not in _OPTIONS:
        cursor.index += 1
    text = "".join(cursor.tokens[index].text for index in range(begin, cursor.index))
    found = _SHAPE.fullmatch(text)
    if not found or "0" in found.groups():
        if cursor.index == begin:
            cursor.fail("how many partitions", hint="write PARTITIONS 4 x 4")
        raise QueryError(
            f"`{text}` are no partitions",
            code="partitions",
            span=cursor.span_since(begin),
            hint="write how many by insertion and how many by expiry: PARTITIONS 4 x 4",
        )
    return int(found[1]), int(found[2])
