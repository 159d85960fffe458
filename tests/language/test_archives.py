"""CREATE ARCHIVE, read and refused."""

from __future__ import annotations

import pytest

from windrow.archive.declaration import DoublyPartitioned
from windrow.archive.upkeep import Upkeep
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import DeclareArchive
from windrow.language.catalog import Catalog, StandingArchive
from windrow.language.compile import compile_script
from windrow.language.lift_literals import Cursor
from windrow.language.statements import CreateArchive, read_create_archive
from windrow.language.tokens import scan
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


SCRIPT = """
CREATE STREAM s (k BIGINT, v DOUBLE, at STRING, t BIGINT) WATTR t;
CREATE STREAM timed (k BIGINT, ts TIMESTAMP);
CREATE TABLE items (k BIGINT);
CREATE QUERY pairs AS SELECT a.k, b.at FROM s [RANGE 9] a, s [RANGE 5] b WHERE a.k = b.k;
CREATE QUERY totals AS SELECT k, SUM(v) AS total FROM s [RANGE 9] GROUP BY k;
CREATE QUERY last AS SELECT k FROM s [ROWS 3];
CREATE QUERY inner AS SELECT a.k FROM s [RANGE 9 INTERNAL] a, s [RANGE 5] b WHERE a.k = b.k;
CREATE QUERY counts AS SELECT k, COUNT(*) AS n FROM s [RANGE 9 SLIDE 3] GROUP BY k;
CREATE ARCHIVE past ON s KEY k KEEP 9;
"""


@pytest.mark.parametrize(
    ("text", "archive"),
    [
        ("CREATE ARCHIVE a ON S KEY K KEEP 7", StandingArchive("a", "s", "k", 7)),
        ("CREATE ARCHIVE a ON pairs KEY at KEEP 7", StandingArchive("a", "pairs", "at", 7)),
        ("CREATE ARCHIVE a ON pairs KEY at_ KEEP 7", StandingArchive("a", "pairs", "at_", 7)),
        (
            "CREATE ARCHIVE a ON counts KEY n PARTITIONS 1 x 4 REBUILD KEEP 7",
            StandingArchive("a", "counts", "n", 7, (1, 4), rebuild=True),
        ),
        ("CREATE ARCHIVE a ON timed KEY k KEEP 2 SECONDS", StandingArchive("a", "timed", "k", 2_000_000)),
    ],
)
def test_what_is_meant(text: str, archive: StandingArchive) -> None:
    catalog = Catalog()
    *_, bound = compile_script(SCRIPT + text, catalog)
    assert bound == DeclareArchive(archive)
    assert catalog.archives["a"] == archive


@pytest.mark.parametrize(
    ("text", "code", "message", "marked"),
    [
        (
            "CREATE ARCHIVE a ON bids KEY k KEEP 7",
            "unknown-source",
            "no stream, table or query `bids`",
            "bids",
        ),
        ("CREATE ARCHIVE a ON items KEY k KEEP 7", "archive-source", "is a table", "items"),
        ("CREATE ARCHIVE a ON past KEY k KEEP 7", "unknown-source", "is an archive", "past"),
        ("CREATE ARCHIVE a ON s KEY kk KEEP 7", "unknown-column", "no column `kk`", "kk"),
        ("CREATE ARCHIVE a ON s KEY v KEEP 7", "key", "`v` is DOUBLE", "v"),
        ("CREATE ARCHIVE a ON s KEY k KEEP 7 DAYS", "window-unit", "7 DAYS does not measure", "7 DAYS"),
        ("CREATE ARCHIVE a ON timed KEY k KEEP 7", "window-unit", "does not measure a time", "7"),
        ("CREATE ARCHIVE a ON s KEY k KEEP 0", "keep", "kept for 0 ticks", "0"),
        ("CREATE ARCHIVE a ON totals KEY k KEEP 7", "archive-source", "nobody knows how long", "totals"),
        ("CREATE ARCHIVE a ON last KEY k KEEP 7", "archive-source", "count-based", "last"),
        ("CREATE ARCHIVE a ON inner KEY k KEEP 7", "archive-source", "outlive INTERNAL", "inner"),
        ("CREATE ARCHIVE PAST ON s KEY k KEEP 7", "duplicate-name", "there is an archive `past`", None),
        ("CREATE ARCHIVE pairs ON s KEY k KEEP 7", "duplicate-name", "there is a query `pairs`", None),
        ("SELECT k FROM past [NOW]", "unknown-source", "`past` is an archive", "past [NOW]"),
        ("DROP ARCHIVE s", "unknown-source", "no archive `s` to drop", None),
        ("DROP TABLE past", "unknown-source", "no table `past` to drop", None),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(
    text: str, code: str, message: str, marked: str | None
) -> None:
    with pytest.raises(QueryError, match=message) as error:
        compile_script(SCRIPT + text, Catalog())
    span = error.value.span
    assert error.value.code == code
    assert error.value.hint
    assert span is not None
    assert (SCRIPT + text)[span.start : span.end] == (marked or text)


def test_what_is_archived_is_not_dropped() -> None:
    catalog = Catalog()
    compile_script("CREATE STREAM s (k BIGINT, t BIGINT); CREATE ARCHIVE a ON s KEY k KEEP 9", catalog)
    with pytest.raises(QueryError, match="kept by archive `a`"):
        compile_script("DROP STREAM s", catalog)
    compile_script("DROP ARCHIVE a; DROP STREAM s", catalog)
    assert not catalog.archives
