"""CREATE ARCHIVE, read and refused."""

from __future__ import annotations

import pytest

from windrow.archive.layout import Mix, SaidOfLayout
from windrow.errors import QueryError
from windrow.language.binder.bound_statements import DeclareArchive
from windrow.language.catalog import Catalog, StandingArchive
from windrow.language.compile import compile_script
from windrow.language.lift_literals import Cursor
from windrow.language.statements import CreateArchive, read_create_archive
from windrow.language.tokens import scan
from windrow.windows.domain import Domain, Quantity


def read(text: str) -> CreateArchive:
    cursor = Cursor(scan(text))
    cursor.expect("CREATE", "ARCHIVE")
    return read_create_archive(cursor)


def test_create_archive_is_read_with_all_its_clauses() -> None:
    found = read("CREATE ARCHIVE past ON top_bids KEY item PARTITIONS 3 x 5 REBUILD KEEP 7 DAYS")
    assert (found.name, found.source, found.key) == ("past", "top_bids", "item")
    assert (found.layout, found.keep) == (SaidOfLayout((3, 5), rebuild=True), Quantity(7, "DAYS"))


@pytest.mark.parametrize(
    "shape",
    ["PARTITIONS 2 x 3", "PARTITIONS 2x3", "LAYOUT 2 X 3", "LAYOUT 2x 3", "LAYOUT 2 BY 3", "layout 2 by 3"],
)
def test_a_grid_with_and_without_spaces(shape: str) -> None:
    assert read(f"CREATE ARCHIVE a ON s KEY k {shape} KEEP 1 HOUR").layout == SaidOfLayout((2, 3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", SaidOfLayout()),
        ("NOREBUILD LAYOUT 1 BY 4", SaidOfLayout((1, 4), rebuild=False)),
        ("ALLOCATION SHUFFLED", SaidOfLayout(allocation="shuffled")),
        ("ALLOCATION ROUND_ROBIN REBUILD", SaidOfLayout(rebuild=True, allocation="round-robin")),
        ("EXPECT 40 PROBES PER UPDATE", SaidOfLayout(mix=Mix(probes=40))),
        ("EXPECT 1 SCAN, 3 PROBES PER 10 UPDATES REBUILD", SaidOfLayout(rebuild=True, mix=Mix(3, 1, 10))),
        ("EXPECT 0 PROBES PER UPDATE", SaidOfLayout(mix=Mix())),
    ],
)
def test_what_is_said_of_the_layout(text: str, said: SaidOfLayout) -> None:
    assert read(f"CREATE ARCHIVE a ON s KEY k {text} KEEP 64 SECONDS").layout == said


@pytest.mark.parametrize("mix", [Mix(), Mix(1), Mix(2, 1, 7), Mix(scans=3)])
def test_a_mix_is_written_as_it_is_read(mix: Mix) -> None:
    assert read(f"CREATE ARCHIVE a ON s KEY k {mix} KEEP 1 HOUR").layout.mix == mix


def test_numbers_are_kept_by_number() -> None:
    assert read("CREATE ARCHIVE a ON s KEY k KEEP 640").ticks(Domain.NUMBER) == 640
    with pytest.raises(QueryError):
        read("CREATE ARCHIVE a ON s KEY k KEEP 640").ticks(Domain.TIME)


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("CREATE ARCHIVE a ON s KEY k", "KEEP should follow", "k"),
        ("CREATE ARCHIVE a ON s KEY k KEPE 1 DAY", "not `KEPE`", "KEPE"),
        ("CREATE ARCHIVE a ON s KEY k PARTITIONS 0 x 4 KEEP 1 DAY", "`0x4` are no partitions", "0 x 4"),
        ("CREATE ARCHIVE a ON s KEY k PARTITIONS 4 KEEP 1 DAY", "`4` are no partitions", "4"),
        ("CREATE ARCHIVE a ON s KEY k PARTITIONS KEEP 1 DAY", "how many partitions should follow", "KEEP"),
        ("CREATE ARCHIVE a ON s KEY k REBUILD NOREBUILD KEEP 1 DAY", "KEEP should follow", "NOREBUILD"),
        ("CREATE ARCHIVE a ON s KEY k ALLOCATION RANDOM KEEP 1 DAY", "SHUFFLED should follow", "RANDOM"),
        ("CREATE ARCHIVE a ON s KEY k EXPECT 3 READS PER UPDATE KEEP 1 DAY", "PROBES or SCANS", "READS"),
        ("CREATE ARCHIVE a ON s KEY k EXPECT 3 PROBES KEEP 1 DAY", "how many, as in", "KEEP"),
        ("CREATE ARCHIVE a ON s KEY k EXPECT 3 PROBES 3 PROBE PER UPDATE KEEP 1 DAY", "twice", "3 PROBE"),
        ("CREATE ARCHIVE a ON s KEY k EXPECT 3 PROBES PER 0 UPDATES KEEP 1 DAY", "is no rate", "0"),
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
            StandingArchive("a", "counts", "n", 7, SaidOfLayout((1, 4), rebuild=True)),
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
        ("ALTER ARCHIVE gone LAYOUT 4 BY 4", "unknown-source", "no archive `gone`", None),
        ("EXPLAIN ARCHIVE pas", "unknown-source", "no archive `pas`", None),
        ("ALTER ARCHIVE past", "syntax", "should follow", "past"),
        ("ALTER ARCHIVE past KEEP 9", "syntax", "LAYOUT, REBUILD", "KEEP"),
        ("ALTER ARCHIVE past REBUILD NOREBUILD", "syntax", "LAYOUT, REBUILD", "NOREBUILD"),
        ("ALTER STREAM s LAYOUT 4 BY 4", "syntax", "ARCHIVE should follow", "STREAM"),
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
