"""An archive holds what a plain list of rows with lifetimes holds, and touches only the files it has to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from tests.archive.support import (
    SCHEMA,
    PlainArchive,
    Row,
    names_by_sub_index,
    rows_of,
    rows_on_disk,
    table,
    temporary,
)

from windrow.archive import archive as archiving
from windrow.archive.archive import Archive
from windrow.archive.declaration import Declaration, DoublyPartitioned, Upkeep
from windrow.archive.snapshot import read_archive
from windrow.errors import DataError, QueryError, StateError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.deep

UPKEEPS = {
    "rebuild": Upkeep.rebuilding(),
    "lazy": Upkeep(),
    "strict": Upkeep(reclaim=0.0),
    "two pieces": Upkeep(reclaim=0.9, most_pieces=2),
}


@st.composite
def declarations(draw: st.DrawFn) -> Declaration:
    """Any way to cut and keep an archive."""
    period, span = draw(st.integers(1, 5)), draw(st.integers(1, 8))
    return Declaration(
        key="k",
        keep=period * span,
        period=period,
        partitioning=DoublyPartitioned(
            draw(st.integers(1, 3)),
            draw(st.integers(1, 3)),
            span,
            draw(st.sampled_from(["round-robin", "chronological", "shuffled"])),
        ),
        upkeep=draw(st.sampled_from(list(UPKEEPS.values()))),
    )


def batches(now: int) -> st.SearchStrategy[list[Row]]:
    keys = st.one_of(st.none(), st.integers(0, 5))
    return st.lists(st.tuples(keys, st.text("ab", max_size=1), st.integers(now - 3, now + 60)), max_size=12)


@settings(max_examples=40)
@given(declaration=declarations(), data=st.data())
def test_an_archive_is_a_list_of_rows_with_lifetimes(declaration: Declaration, data: st.DataObject) -> None:
    plain = PlainArchive(declaration.keep)
    with temporary() as folder:
        archive = Archive.create(folder, SCHEMA, declaration, keep_commits=1)
        now = data.draw(st.integers(-5, 5))
        for _ in range(data.draw(st.integers(1, 8))):
            now += data.draw(st.integers(0, 2 * declaration.period))
            rows = data.draw(batches(now))
            archive.update(now, table(rows))
            plain.update(now, rows)
            if data.draw(st.booleans()):
                archive.close()
                archive = Archive.open(folder, keep_commits=1)
            check(archive, plain, data)
        archive.close()


def check(archive: Archive, plain: PlainArchive, data: st.DataObject) -> None:
    at = data.draw(st.one_of(st.none(), st.integers(plain.now, plain.now + 20)))
    low, high = (data.draw(st.one_of(st.none(), st.integers(-1, 6))) for _ in range(2))
    assert archive.now == plain.now
    assert rows_of(archive.scan(at=at)) == Counter(plain.live(at))
    assert rows_of(archive.find_between(low, high, at=at)) == plain.find(low, high, at)
    if low is not None:
        assert rows_of(archive.find(low, at=at)) == plain.find(low, low, at)


@pytest.mark.part(2)
@pytest.mark.parametrize("upkeep", UPKEEPS)
@pytest.mark.parametrize("shape", [(4, 1), (2, 2), (3, 4)])
def test_an_update_touches_one_row_and_one_column_of_the_grid(
    directory: Path, shape: tuple[int, int], upkeep: str
) -> None:
    """In the steady state, rows expiring in every period to come: G + E - 1 sub-indices, no other file."""
    span = 12
    cut = DoublyPartitioned(*shape, span=span)
    told = Declaration("k", span * 10, 10, cut, UPKEEPS[upkeep])
    with Archive.create(directory / "a", SCHEMA, told, keep_commits=1) as archive:
        for period in range(1, 2 * span):
            now = period * 10
            before = names_by_sub_index(directory / "a")
            done = archive.update(now, table([(k, "x", now + 10 * k) for k in range(1, span + 1)]))
            after = names_by_sub_index(directory / "a")
            changed = {n for n in range(cut.count) if before.get(n) != after.get(n)}
            assert changed == done.touched
            assert changed <= cut.touched(period)
            assert len(changed) <= sum(shape) - 1
            if upkeep in ("rebuild", "strict") and period > span:
                assert changed == cut.touched(period)
            if upkeep == "rebuild":
                assert all(len(names) <= 1 for names in after.values())


def test_rebuilding_leaves_nothing_expired_on_the_disk(directory: Path) -> None:
    for name in ("rebuild", "strict"):
        told = Declaration("k", 40, 10, DoublyPartitioned(2, 2, 4), UPKEEPS[name])
        with Archive.create(directory / name, SCHEMA, told) as archive:
            for now in range(10, 120, 10):
                archive.update(now, table([(k, "x", now + 7 * k) for k in range(1, 6)]))
                on_disk = sum(rows_on_disk(directory / name).values())
                assert on_disk == archive.scan().num_rows


def test_not_rebuilding_leaves_no_more_than_agreed(directory: Path) -> None:
    upkeep = Upkeep(reclaim=0.25, most_pieces=100)
    told = Declaration("k", 100, 10, DoublyPartitioned(2, 2, 10), upkeep)
    with Archive.create(directory / "a", SCHEMA, told) as archive:
        hidden = 0
        for now in range(10, 400, 10):
            archive.update(now, table([(k, "x", now + 10 * k) for k in range(1, 11)]))
            on_disk = sum(rows_on_disk(directory / "a").values())
            live = archive.scan().num_rows
            assert on_disk - live <= 0.25 * on_disk
            hidden = max(hidden, on_disk - live)
    assert hidden > 0


def test_cut_by_insertion_one_sub_index_is_touched_if_all_rows_live_equally_long(
    directory: Path,
) -> None:
    told = Declaration("k", 80, 10, DoublyPartitioned(4, 1, 8, "chronological"), Upkeep.rebuilding())
    with Archive.create(directory / "a", SCHEMA, told) as archive:
        for now in range(10, 300, 10):
            assert len(archive.update(now, table([(1, "x", now + 80)])).touched) == 1
            assert archive.scan().num_rows == min(8, now // 10)


@pytest.mark.parametrize("name", ["round-robin", "chronological"])
def test_equal_lives_need_parts_by_expiry_only(directory: Path, name: str) -> None:
    """Insertions are then in one part too; on a grid by turns, only the diagonal would be used."""
    schema = pa.schema([("k", pa.int64())])
    for shape, used in (((1, 4), 4), ((2, 2), 2)):
        told = Declaration.of("k", keep=80, period=10, partitions=shape, rebuild=True, allocation=name)
        folder = directory / f"{shape}"
        with Archive.create(folder, schema, told) as archive:
            for now in range(10, 300, 10):
                touched = archive.update(now, pa.table({"k": [now]})).touched
                assert len(touched) == 1
            held = rows_on_disk(folder)
            if name == "round-robin":
                assert sum(rows > 0 for rows in held.values()) == used
            assert archive.scan().num_rows == 8


def test_time_that_passes_without_updates_expires_all_the_same(directory: Path) -> None:
    told = Declaration.of("k", keep=100, partitions=(2, 2), period=10, rebuild=True)
    with Archive.create(directory / "a", SCHEMA, told) as archive:
        archive.update(0, table([(k, "x", 10 * k) for k in range(1, 9)]))
        assert rows_of(archive.scan(at=35)) == Counter((k, "x", 10 * k) for k in range(4, 9))
        archive.update(10**12)
        assert archive.files == []


def test_rows_without_an_expiry_are_kept_as_long_as_agreed(directory: Path) -> None:
    schema = pa.schema([("k", pa.string())])
    with Archive.create(directory / "a", schema, Declaration.of("k", keep=100)) as archive:
        archive.update(5, pa.table({"k": ["a"]}))
        assert archive.scan().to_pylist() == [{"k": "a", "valid_to": 105}]


@pytest.mark.parametrize(
    ("kind", "values", "wanted"),
    [
        (pa.string(), ["b", "a", "c"], "b"),
        (pa.date32(), [3, 1, 2], 2),
        (pa.timestamp("us", "UTC"), [30, 10, 20], 20),
        (pa.timestamp("us"), [30, 10, 20], 10),
        (pa.decimal128(9, 2), ["1.50", "-2.00", "0.25"], "-2.00"),
        (pa.binary(), [b"b", b"a", b""], b""),
        (pa.bool_(), [True, False, None], False),
        (pa.int32(), [3, None, 1], 3),
    ],
)
def test_keys_of_every_type_that_has_an_order(
    directory: Path, kind: pa.DataType, values: list[object], wanted: object
) -> None:
    from decimal import Decimal

    decimals = [Decimal(v) if pa.types.is_decimal(kind) else v for v in [*values, wanted]]
    keys = pa.array(decimals, kind)
    schema = pa.schema([("k", kind), ("n", pa.list_(pa.int64()))])
    with Archive.create(directory / "a", schema, Declaration.of("k", keep=100)) as archive:
        archive.update(0, pa.table({"k": keys[:-1], "n": [[1, 2]] * len(values)}, schema))
        found = archive.find(keys[-1].as_py(), columns=["k"])
        assert found.column_names == ["k"]
        assert found["k"].to_pylist() == [keys[-1].as_py()]
        assert archive.find(None).num_rows == 0


def test_only_row_groups_that_can_hold_the_key_are_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from windrow.archive import piece

    monkeypatch.setattr(piece, "ROWS_PER_GROUP", 10)
    opened: list[int] = []
    real = piece.Piece._read

    def spy(self: piece.Piece, groups: list[int], columns: list[str] | None) -> pa.Table:
        opened.append(len(list(groups)))
        return real(self, groups, columns)

    told = Declaration.of("k", keep=100, partitions=(1, 1), rebuild=True)
    with Archive.create(directory / "a", SCHEMA, told) as archive:
        archive.update(0, table([(k, "x", 50) for k in range(100)]))
        monkeypatch.setattr(piece.Piece, "_read", spy)
        assert archive.find(37).num_rows == 1
        assert archive.find_between(15, 34).num_rows == 20
        assert archive.find(1000).num_rows == 0
    assert opened == [1, 3, 0]


def test_a_reader_keeps_what_it_has_while_updates_come(directory: Path) -> None:
    told = Declaration.of("k", keep=100, partitions=(2, 2), period=10, rebuild=True)
    with Archive.create(directory / "a", SCHEMA, told, keep_commits=1) as archive:
        archive.update(0, table([(k, "x", 20 + k) for k in range(9)]))
        with archive.snapshot() as before:
            for now in range(10, 60, 10):
                archive.update(now, table([(7, "y", 100)]))
            assert before.now == 0
            assert before.scan().num_rows == 9
        assert archive.scan().num_rows == 5


def test_others_read_the_last_commit(directory: Path) -> None:
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100)) as archive:
        archive.update(3, table([(1, "x", 20)]))
        seen = read_archive(directory / "a")
        assert seen.now == 3
        assert rows_of(seen.find(1)) == Counter([(1, "x", 20)])
        with pytest.raises(StateError, match="in use"):
            Archive.open(directory / "a")


@pytest.mark.parametrize("at_once", [4_000_000, 7])
@pytest.mark.parametrize("rebuild", [True, False])
def test_an_archive_can_be_cut_anew(
    directory: Path, rebuild: bool, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_AT_ONCE", at_once)
    rows: list[Row] = [(k % 4, f"{k}", 10 + k) for k in range(40)]
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100, period=5)) as archive:
        archive.update(10, table(rows))
        live = rows_of(archive.scan())
        archive.rearrange(Declaration.of("k", keep=100, period=5, partitions=(3, 2), rebuild=rebuild))
        assert rows_of(archive.scan()) == live
        assert set(rows_on_disk(directory / "a")) == set(range(6))
        archive.update(30, table([(1, "new", 60)]))
        assert rows_of(archive.find(1, at=35)) == Counter(
            [(1, "new", 60), *(row for row in rows if row[0] == 1 and row[2] > 35)]
        )
    with Archive.open(directory / "a") as archive:
        assert archive.declaration.partitioning.count == 6


def test_parquet_that_anybody_reads(directory: Path) -> None:
    import polars as pl

    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100, period=10)) as archive:
        for now in range(0, 100, 10):
            archive.update(now, table([(k, "x", now + 9 * k) for k in range(6)]))
        frame = pl.scan_parquet(archive.files).filter(pl.col("valid_to") > archive.now).collect()
        assert rows_of(frame.to_arrow().cast(SCHEMA)) == rows_of(archive.scan())


def test_parquet_that_spark_reads(directory: Path, spark: SparkSession) -> None:
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100, period=10)) as archive:
        for now in range(0, 50, 10):
            archive.update(now, table([(k, "x", now + 9 * k) for k in range(6)]))
        frame = spark.read.parquet(*archive.files).where(f"valid_to > {archive.now} AND k = 3")
        assert rows_of(frame.toArrow().cast(SCHEMA)) == rows_of(archive.find(3))


# What is refused.


def test_updates_go_forward(directory: Path) -> None:
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100)) as archive:
        archive.update(10)
        with pytest.raises(DataError, match="an update at 9 after one at 10"):
            archive.update(9)
        with pytest.raises(DataError, match="is about 10 and later"):
            archive.scan(at=9)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"k": [1], "v": ["x"], "valid_to": pa.array([None], pa.int64())}), "NULL in 1 rows"),
        (pa.table({"k": [1], "valid_to": [20]}), "do not fit"),
        (pa.table({"k": ["one"], "v": ["x"], "valid_to": [20]}), "do not fit"),
    ],
)
def test_rows_that_do_not_fit_change_nothing(directory: Path, rows: pa.Table, message: str) -> None:
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100)) as archive:
        archive.update(0, table([(1, "x", 9)]))
        with pytest.raises(DataError, match=message):
            archive.update(1, rows)
        assert archive.now == 0
        assert archive.scan().num_rows == 1


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (pa.schema([("kk", pa.int64())]), "no column `k`"),
        (pa.schema([("k", pa.float64())]), "no good key"),
        (pa.schema([("k", pa.int64()), ("valid_to", pa.string())]), "`valid_to` is string"),
    ],
)
def test_schemas_that_make_no_archive(directory: Path, schema: pa.Schema, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        Archive.create(directory / "a", schema, Declaration.of("k", keep=100))
    assert not (directory / "a").exists()


def test_declarations_that_make_no_archive() -> None:
    for wrong in (
        lambda: Declaration.of("k", keep=0),
        lambda: Declaration.of("k", keep=9, partitions=(0, 4)),
        lambda: Declaration.of("k", keep=9, allocation="random"),
        lambda: Declaration.of("valid_to", keep=9),
        lambda: Upkeep(reclaim=1.0),
    ):
        with pytest.raises(QueryError):
            wrong()


def test_values_that_are_no_key(directory: Path) -> None:
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100)) as archive:
        archive.update(0, table([(1, "x", 9)]))
        with pytest.raises(DataError, match="'one' is no key"):
            archive.find("one")
        with pytest.raises(DataError, match="no column `w`"):
            archive.find(1, columns=["w"])


def test_there_has_to_be_an_archive(directory: Path) -> None:
    for opened in (Archive.open, read_archive):
        with pytest.raises(StateError):
            opened(directory / "nothing")
    with Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100)):
        pass
    with pytest.raises(StateError, match="already"):
        Archive.create(directory / "a", SCHEMA, Declaration.of("k", keep=100))
