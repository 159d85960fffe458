"""CREATE ARCHIVE, read and refused."""

from __future__ import annotations

import pytest

from windrow.archive.partitioning import DoublyPartitioned
from windrow.archive.upkeep import Upkeep
from windrow.errors import QueryError
from windrow.language.archives import CreateArchive, read_create_archive
from windrow.language.cursor import Cursor
from windrow.language.scanner import scan
from windrow.windows.domain import Domain
from windrow.windows.units import Quantity


def read(text: str) -> CreateArchive:
    cursor = Cursor(scan(text))
    cursor.expect("CREATE", "ARCHIVE")
    return read_create_archive(cursor)


def test_all_of_it() -> None:
    found = read("CREATE ARCHIVE past ON top_bids KEY item PARTITIONS 3 x 5 REBUILD KEEP 7 DAYS")
    assert (found.name, found.source, found.key) == ("past", "top_bids", "item")
    assert (found.partitions, found.rebuild, found.keep) == ((3, 5), True, Quantity(7, "DAYS"))


@pytest.mark.parametrize("shape", ["2 x 3", "2x3", "2 X 3", "2x 3"])
def test_partitions_with_and_without_spaces(shape: str) -> None:
    assert read(f"CREATE ARCHIVE a ON s KEY k PARTITIONS {shape} KEEP 1 HOUR").partitions == (2, 3)


def test_what_is_not_said_is_two_by_two_and_not_rebuilt() -> None:
    for text in ("KEEP 64 SECONDS", "NOREBUILD KEEP 64 SECONDS"):
        told = read(f"CREATE ARCHIVE a ON s KEY k {text}").declaration(Domain.TIME)
        assert told.partitioning == DoublyPartitioned(2, 2, span=32)
        assert (told.upkeep, told.keep, told.period) == (Upkeep(), 64_000_000, 2_000_000)


def test_numbers_are_kept_by_number() -> None:
    assert read("CREATE ARCHIVE a ON s KEY k KEEP 640").declaration(Domain.NUMBER).keep == 640
    with pytest.raises(QueryError):
        read("CREATE ARCHIVE a ON s KEY k KEEP 640").declaration(Domain.TIME)


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("CREATE ARCHIVE a ON s KEY k", "KEEP should follow", "k"),
        ("CREATE ARCHIVE a ON s KEY k KEPE 1 DAY", "not `KEPE`", "KEPE"),
        ("CREATE ARCHIVE a ON s KEY k PARTITIONS 0 x 4 KEEP 1 DAY", "`0x4` are no partitions", "0 x 4"),
        ("CREATE ARCHIVE a ON s KEY k PARTITIONS 4 KEEP 1 DAY", "`4` are no partitions", "4"),
        ("CREATE ARCHIVE a ON s KEY k PARTITIONS KEEP 1 DAY", "how many partitions should follow", "KEEP"),
        ("CREATE ARCHIVE a ON s KEY k REBUILD NOREBUILD KEEP 1 DAY", "KEEP should follow", "NOREBUILD"),
        ("CREATE ARCHIVE a ON s KEY k KEEP 1 DAY PLEASE", "unexpected `PLEASE`", "PLEASE"),
        ("CREATE ARCHIVE a OF s KEY k KEEP 1 DAY", "`ON` should follow", "OF"),
    ],
)
def test_what_is_wrong_is_said_and_marked(text: str, message: str, marked: str) -> None:
    with pytest.raises(QueryError, match=message) as error:
        read(text)
    span = error.value.span
    assert span is not None
    assert text[span.start : span.end] == marked
