"""Files: found by pattern, matched by name, and never a malformed row that turns into NULLs."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.sources.conftest import all_rows, on_spark

from windrow.engine.loop import PASSING
from windrow.errors import DataError, QueryError, SourceError
from windrow.execution.bundle import Few
from windrow.language.compile import declare_stream
from windrow.spark.failures import job_failed
from windrow.spark.frames import row_count, rows_between
from windrow.spark.sources import listing, open_url, parquet_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession
    from tests.spark.sources.conftest import Declare, Drain

COLUMNS = "ts TIMESTAMP, price DOUBLE, item BIGINT"
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def write_parquet(path: Path, items: list[int]) -> None:
    """Narrower types than declared, other case, other order, a column too many, and times without a zone."""
    table = {
        "Item": pa.array(items, pa.int32()),
        "note": pa.array(["x"] * len(items)),
        "Price": pa.array([item / 2 for item in items], pa.float32()),
        "ts": pa.array([datetime(2026, 1, 1)] * len(items), pa.timestamp("us")),
    }
    pq.write_table(pa.table(table), path)


def test_a_store_that_does_not_answer_may_answer_later(spark: SparkSession, declare: Declare) -> None:
    """That there is no such store is a fact."""
    known: Any = spark.sparkContext._jsc
    known.hadoopConfiguration().set("ipc.client.connect.max.retries", "0")
    for place, passes in (("hdfs://127.0.0.1:1/in/*.csv", True), ("nowhere://in/*.csv", False)):
        with pytest.raises(SourceError) as told:
            open_url(spark, declare(COLUMNS, f"files://{place}"))
        assert (told.value.code in PASSING) is passes


def test_a_folder_that_may_not_be_read_is_a_fact(
    declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a file system that is broken may be mended."""
    spark: Any = None
    for error, passes in ((PermissionError(13, "Permission denied"), False), (OSError(5, "I/O error"), True)):

        def fail(*_: Any, error: OSError = error) -> Any:
            raise error

        monkeypatch.setattr(listing, "list_files", fail)
        with pytest.raises(SourceError, match="cannot be listed") as told:
            open_url(spark, declare(COLUMNS, f"files://{tmp_path}/*.csv"))
        assert (told.value.code in PASSING) is passes


@pytest.mark.parametrize("name", ["in.json", "in.json.gz", "in.csv", "in.csv?header=false", "in.parquet"])
def test_rows_of_a_file_are_those_of_its_lines(
    spark: SparkSession, declare: Declare, tmp_path: Path, name: str
) -> None:
    """Also if several tasks would read it, and there are lines that are no rows."""
    path = tmp_path / name.partition("?")[0]
    texts = [f'{{"ts": {n}}}' if "json" in name else f"{n}" for n in range(200)]
    head = ["", "ts", "  "] if name == "in.csv" else [""]
    lines = [*head, *(line for text in texts for line in (text, "  "))]
    if path.suffix == ".parquet":
        pq.write_table(pa.table({"ts": range(200)}), path, row_group_size=20, use_dictionary=False)
    else:
        written = "\r\n".join(lines).encode()
        path.write_bytes(gzip.compress(written) if path.suffix == ".gz" else written)
    known = {"spark.sql.files.maxPartitionBytes": "400", "spark.sql.files.openCostInBytes": "1"}
    before = {option: spark.conf.get(option) for option in known}
    try:
        for option, value in known.items():
            spark.conf.set(option, value)
        source = open_url(spark, declare("ts BIGINT", f"files://{tmp_path}/{name}"))
        end = source.upto({}, source.whole())
        assert end is not None
        rows = source.frame({}, end)
        assert row_count(rows) == 200
        assert (
            path.suffix in (".gz", ".parquet")
            or (rows.frame() if isinstance(rows, Few) else rows).rdd.getNumPartitions() > 3
        )
        for number in (0, 57, 199):
            (row,) = rows_between(rows, number, number + 1).toArrow()["ts"].to_pylist()
            assert row == number
            place = source.row(end, number).split()
            if path.suffix == ".parquet":
                assert place == ["row", f"{number + 1}"]
            else:
                assert place[0] == "line"
                assert lines[int(place[1]) - 1] == texts[number]
    finally:
        for option, value in before.items():
            spark.conf.set(option, value)


def test_parquet_in_micro_batches(
    spark: SparkSession, declare: Declare, drain: Drain, tmp_path: Path
) -> None:
    for name, items in (("a", [1, 2]), ("b", [3])):
        write_parquet(tmp_path / f"{name}.parquet", items)
    source = open_url(spark, declare(COLUMNS, f"files://{tmp_path}/*.parquet?files_per_batch=1"))
    assert not source.is_bounded
    assert source.fingerprint == f"files:{tmp_path}/*.parquet parquet"
    batches = drain(source)
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert batches[0].column_names == ["ts", "price", "item", *source.order_key]
    assert batches[0].to_pylist()[1] == {
        "ts": MIDNIGHT,
        "price": 1.0,
        "item": 2,
        "__time": batches[0]["__time"][1].as_py(),
        "__file": f"file:{tmp_path}/a.parquet",
        "__row_index": 1,
    }
    assert batches[0].schema.types[:3] == [pa.timestamp("us", "UTC"), pa.float64(), pa.int64()]
    write_parquet(tmp_path / "c.parquet", [4])
    assert [batch["item"].to_pylist() for batch in drain(source)] == [[4]]


def test_one_file_can_be_named(spark: SparkSession, declare: Declare, drain: Drain, tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", [1])
    write_parquet(tmp_path / "b.parquet", [2])
    (batch,) = drain(open_url(spark, declare(COLUMNS, f"{tmp_path}/a.parquet")))
    assert batch["item"].to_pylist() == [1]


COLUMNS_OF_LATER_FILES = {
    "as they are": ({"ts": 1, "price": 2.5, "item": 3, "note": "x"}, None),
    "in another case": ({"TS": 1, "Price": 2.5, "item": 3}, None),
    "with names like types": (
        {"ts": 1, "price": 2.5, "item": 3, "int64 (x) {": 1, "a;b = 2": 2, "": 3},
        None,
    ),
    "one absent": ({"ts": 1, "price": 2.5}, "item"),
    "one absent, but in a struct": ({"ts": 1, "price": 2.5, "s": {"item": 3}}, "item"),
    "one in the path": ({"ts": 1, "price": 2.5}, None),
    "one absent, but in a folder above": ({"ts": 1, "item": 3}, "price"),
}


@pytest.mark.parametrize("where", ["", "file://"])
@pytest.mark.parametrize("case", COLUMNS_OF_LATER_FILES)
def test_a_later_parquet_file_without_a_column_is_refused(
    spark: SparkSession, declare: Declare, tmp_path: Path, case: str, where: str
) -> None:
    """Wherever it is: its footer is looked at before it is read."""
    row, lacking = COLUMNS_OF_LATER_FILES[case]
    into = tmp_path / "price=1" / ("item=3" if "in the path" in case else "day=1")
    into.mkdir(parents=True)
    stream = declare("ts BIGINT, price DOUBLE, item BIGINT", f"files://{where}{tmp_path}/price=1/*")
    pq.write_table(pa.table({"ts": [1], "price": [0.5], "item": [1]}), tmp_path / "price=1/0.parquet")
    source = open_url(spark, stream)
    pq.write_table(pa.Table.from_pylist([row]), into / "1.parquet")
    if lacking is None:
        end = source.upto({}, source.latest())
        assert end is not None
        assert len(end.items) == 2
    else:
        with pytest.raises(SourceError, match=f"1.parquet has no column `{lacking}`, which files") as told:
            source.upto({}, source.latest())
        assert told.value.code == "missing-column"
        lenient = replace(stream, source=f"{stream.source}?absent=null")
        assert open_url(spark, lenient).upto({}, source.latest()) is not None


def test_what_is_no_parquet_file_elsewhere_is_told_when_it_is_read(
    spark: SparkSession, declare: Declare, tmp_path: Path
) -> None:
    write_parquet(tmp_path / "a.parquet", [1])
    source = open_url(spark, declare(COLUMNS, f"files://file://{tmp_path}/*.parquet"))
    (tmp_path / "b.parquet").write_text("no Parquet file, but as long as one might well be")
    end = source.upto({}, source.latest())
    assert end is not None
    with pytest.raises(SourceError, match=r"b\.parquet"), job_failed("reading stream `s`"):
        on_spark(source.frame({}, end)).count()


def test_a_store_that_is_gone_when_footers_are_read_may_come_back(
    spark: SparkSession, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(tmp_path / "a.parquet", [1])
    source = open_url(spark, declare(COLUMNS, f"files://file://{tmp_path}/*.parquet"))
    latest = source.latest()
    spark.sparkContext._jsc.hadoopConfiguration().set("ipc.client.connect.max.retries", "0")
    read = parquet_files.unread

    def asked(spark: SparkSession, paths: Sequence[str]) -> Any:
        return read(spark, ["hdfs://127.0.0.1:1/in/a.parquet" for _ in paths])

    monkeypatch.setattr(parquet_files, "unread", asked)
    with pytest.raises(SourceError, match="cannot be read") as told:
        source.upto({}, latest)
    assert told.value.code in PASSING


@pytest.mark.parametrize("where", ["", "file://"])
@pytest.mark.parametrize("name", ["1.json", "1.json.gz"])
@pytest.mark.parametrize("rows", [1, 1500])
def test_a_later_json_file_without_a_key_is_refused(
    spark: SparkSession, declare: Declare, tmp_path: Path, where: str, name: str, rows: int
) -> None:
    """It is enough that one of its objects has it; a file without objects lacks nothing."""
    stream = declare("ts BIGINT, item BIGINT", f"files://{where}{tmp_path}/*.json*")
    (tmp_path / "0.json").write_text('{"ts": 1, "item": 2}\n')
    source = open_url(spark, stream)

    def later(*lines: str) -> Any:
        text = "\n".join(lines).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
        return source.upto({}, source.latest())

    without = ['{"ts": 1, "x": {"item": 3}}'] * rows
    for lines in (["[1]", "{"], [*without, '{"item": null, "ts": 2}'], ['{"item": 1}', *without]):
        assert len(later(*lines).items) == 2
    with pytest.raises(
        SourceError, match=f"/{name} has no column `item`, which files before it have"
    ) as told:
        later(*without, "{", '["item"]')
    assert told.value.code == "missing-column"
    lenient = replace(stream, source=f"{stream.source}?absent=null")
    assert open_url(spark, lenient).upto({}, source.latest()) is not None


@pytest.mark.parametrize("where", ["{}", "file://{}"])
def test_names_are_names_and_folders_are_columns(
    spark: SparkSession, declare: Declare, drain: Drain, tmp_path: Path, where: str
) -> None:
    """Signs that stand for others in a pattern stand for themselves in the names that it has found."""
    names = ["day=1/a[1].parquet", "day=1/a1.parquet", "day=2/{b,c}.parquet", "day=2/x?y %41.parquet"]
    for number, name in enumerate(names):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        write_parquet(tmp_path / "in" / name, [number])
        os.utime(tmp_path / "in" / name, (1_700_000_000 + number,) * 2)
    place = where.format(f"{tmp_path}/in/day=*/*.parquet")
    stream = declare(f"{COLUMNS}, day INT", f"files://{place}?files_per_batch=1")
    source = open_url(spark, stream)
    found = [(row["item"], row["day"]) for batch in drain(source) for row in batch.to_pylist()]
    assert found == [(0, 1), (1, 1), (2, 2), (3, 2)]
    (one,) = drain(open_url(spark, declare(COLUMNS, f"{tmp_path}/in/{names[0]}")))
    assert one["item"].to_pylist() == [0]


def test_files_elsewhere_are_looked_at_before_a_commit(
    spark: SparkSession, declare: Declare, tmp_path: Path
) -> None:
    """As `file:` is to Spark: what is listed, read and asked again goes through it."""
    for name in ("a[1]", "b %20"):
        write_parquet(tmp_path / f"{name}.parquet", [1])
    source = open_url(spark, declare(COLUMNS, f"files://file://{tmp_path}/*.parquet"))
    end = source.upto({}, source.latest())
    assert end is not None
    assert len(end.items) == 2
    assert source.check(end)
    write_parquet(tmp_path / "b %20.parquet", [1, 2, 3])
    assert not source.check(end)
    again = source.upto({}, source.latest())
    assert [file.path for file in again.items] == [f"file:{tmp_path}/a[1].parquet"]  # type: ignore[union-attr]
    (tmp_path / "a[1].parquet").unlink()
    assert not source.check(end)


def test_calls_of_the_jvm_do_not_grow_with_the_files(
    spark: SparkSession, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call takes a millisecond, and there may be a hundred thousand files."""
    client, calls = spark._jvm._gateway_client, list[str]()  # type: ignore[union-attr]
    send = client.send_command
    monkeypatch.setattr(client, "send_command", lambda *a, **how: (calls.append(a[0]), send(*a, **how))[1])

    def counted(where: str, number: int) -> int:
        source = open_url(spark, declare(COLUMNS, f"files://{where}{tmp_path}/{number}/*.parquet"))
        before = len(calls)
        end = source.upto({}, source.latest())
        assert end is not None
        assert len(end.items) == number
        frame = source.frame({}, end)
        made = frame.frame() if isinstance(frame, Few) else frame
        assert made.count() == number
        assert source.check(end)
        return len([call for call in calls[before:] if not call.startswith("m\n")])  # not what lets go

    for number in (2, 40):
        (tmp_path / str(number)).mkdir()
        for each in range(number):
            write_parquet(tmp_path / str(number) / f"{each}.parquet", [each])
    for where in ("", "file://"):
        few, many = counted(where, 2), counted(where, 40)
        assert few > 5
        assert many < few + 10


def test_csv_columns_go_by_name(spark: SparkSession, declare: Declare, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write('note,ITEM,ts,price\n"say ""hi"", twice",7,2026-01-01T00:00:00Z,\n,8,2026-01-01,2.5\n')
    columns = "ts TIMESTAMP, price DOUBLE, item BIGINT, note STRING"
    source = open_url(spark, declare(columns, f"{tmp_path}?bounded=true"))
    assert source.is_bounded
    rows = all_rows(source).orderBy(*source.order_key).select("ts", "price", "item", "note").collect()
    assert [tuple(row) for row in rows] == [
        (MIDNIGHT.replace(tzinfo=None), None, 7, 'say "hi", twice'),
        (MIDNIGHT.replace(tzinfo=None), 2.5, 8, None),
    ]


def test_csv_without_a_header_goes_by_position(spark: SparkSession, declare: Declare, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("7;2026-01-01\n")
    source = open_url(
        spark, declare("item BIGINT, ts TIMESTAMP", f"{tmp_path}/a.csv?bounded=true&header=false&delimiter=;")
    )
    assert all_rows(source).select("item").toArrow()["item"].to_pylist() == [7]


NEW_YEAR = "2026-01-01"
MALFORMED = {
    "csv": (f"item,ts\n1,{NEW_YEAR}\nx,{NEW_YEAR}\n", "line 3, column `item`: `x` is no BIGINT"),
    "csv short": (f"item,ts\n1,{NEW_YEAR}\n2\n", "line 3: `2` has 1 value, not 2"),
    "csv long": (f"item,ts\n1,{NEW_YEAR}\n2,{NEW_YEAR},3\n", "line 3: `2,2026-01-01,3` has 3 values, not 2"),
    "csv time": (f"item,ts\n1,{NEW_YEAR}\n2,noon\n", "line 3, column `ts`: `noon` is no TIMESTAMP"),
    "csv number": (
        f"ts,item\n{NEW_YEAR},1\n\n1767225600,2\n",
        "line 4, column `ts`: the number `1767225600`",
    ),
    "csv bytes": (
        f"item,ts,note\n1,{NEW_YEAR},café\n2,{NEW_YEAR},caf\udce9\n",
        "line 3, column `note`: `caf\\xe9` is not valid UTF-8",
    ),
    "json": (
        '{"item": 1, "ts": "2026-01-01"}\n\n{"item": "x", "ts": "2026-01-01"}\n',
        "line 3, column `item`: `x` is no BIGINT",
    ),
    "json two": (
        '{"item": 1, "ts": "2026-01-01"}\n{"item": 2, "ts": null} {"item": 3, "ts": null}\n',
        'line 2: after the object there is more: `{"item": 3, "ts": null}`',
    ),
    "json bytes": (
        '{"item": 1, "ts": "2026-01-01", "note": "é"}\n{"item": 2, "note": "\udcff"}\n',
        "line 2, column `note`: `\\xff` is not valid UTF-8",
    ),
}


@pytest.mark.part(3)
@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_row_is_an_error_or_left_out(
    spark: SparkSession, declare: Declare, tmp_path: Path, name: str
) -> None:
    path = tmp_path / f"a %20b.{name.split()[0]}"
    text, message = MALFORMED[name]
    path.write_text(text, errors="surrogateescape")
    stream = "item BIGINT, ts TIMESTAMP" + ", note STRING" * ("bytes" in name)
    place = f"{tmp_path}?bounded=true&format={name.split()[0]}"
    frame = all_rows(open_url(spark, declare(stream, place)))
    with pytest.raises(DataError) as caught, job_failed("reading stream `s`"):
        frame.select("item").toArrow()
    assert caught.value.message.startswith(f"reading stream `s`: {path}, {message}")
    rest = all_rows(open_url(spark, declare(stream, f"{place}&malformed=drop")))
    assert rest.select("item", "ts").toArrow()["item"].to_pylist() == [1]
    for column in ("item", "ts"):
        assert rest.select(column).toArrow().num_rows == 1


def test_text_of_a_parquet_file_that_is_no_text(
    spark: SparkSession, declare: Declare, tmp_path: Path
) -> None:
    raw = pa.array([b"caf\xc3\xa9", b"caf\xe9"])
    # a column of bytes that says it is text: pyarrow would not write it
    texts = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    pq.write_table(
        pa.table({"note": texts, "ts": pa.array([0, 1], pa.timestamp("us"))}), tmp_path / "a.parquet"
    )
    source = open_url(spark, declare("note STRING, ts TIMESTAMP", f"{tmp_path}/a.parquet?bounded=true"))
    with pytest.raises(DataError) as caught, job_failed("reading stream `s`"):
        all_rows(source).select("ts").toArrow()
    told = f"{tmp_path}/a.parquet, row 2, column `note`: `caf\\xe9` is not valid UTF-8"
    assert caught.value.message == f"reading stream `s`: {told}"


def test_numbers_of_a_parquet_file_are_times_in_their_unit(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1767225600000, None], "d": [0.5, 1e300]}), tmp_path / "a.parquet")
    place = f"{tmp_path}/a.parquet?bounded=true"
    stream = declare_stream("s", "ts TIMESTAMP FORMAT 'epoch_ms'", f"WATTR ts FROM '{place}'")
    assert all_rows(open_url(spark, stream)).select("ts").toArrow()["ts"].to_pylist() == [MIDNIGHT, None]
    stream = declare_stream("s", "d TIMESTAMP FORMAT 'epoch_s'", f"FROM '{place}'")
    with (
        pytest.raises(DataError, match=r"column `d`: `1.0E300` is no time in FORMAT 'epoch_s'"),
        job_failed("it"),
    ):
        all_rows(open_url(spark, stream)).select("d").toArrow()
    with pytest.raises(SourceError, match=r"declared TIMESTAMP, but .* has BIGINT"):
        open_url(spark, declare_stream("s", "ts TIMESTAMP", f"FROM '{place}'"))


def test_lines_of_json_are_read_by_names_of_any_case(
    spark: SparkSession, declare: Declare, drain: Drain, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"Item": 7, "ts": "2026-01-01T00:00:00", "more": [1]}\n\n{"Item": 8}\n'
    )
    (batch,) = drain(open_url(spark, declare("ts TIMESTAMP, item BIGINT", f"{tmp_path}/*.jsonl")))
    assert batch.to_pylist() == [{"ts": MIDNIGHT, "item": 7}, {"ts": None, "item": 8}]


def test_exact_numbers_that_stand_as_text(spark: SparkSession, tmp_path: Path) -> None:
    """They are read as they are written; what has more digits than the type is refused."""
    texts = ["12.30", " -0.5", None, "7", "99999999.990"]
    pq.write_table(pa.table({"d": texts, "ts": list(range(5))}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"d": ["1.239"], "ts": [9]}), tmp_path / "b.parquet")
    stream = declare_stream("s", "d DECIMAL(10, 2), ts BIGINT", f"WATTR ts FROM '{tmp_path}/a.parquet'")
    found = all_rows(open_url(spark, stream)).select("d").toArrow()["d"].to_pylist()
    assert found == [Decimal("12.30"), Decimal("-0.50"), None, Decimal("7.00"), Decimal("99999999.99")]
    stream = declare_stream("s", "d DECIMAL(10, 2), ts BIGINT", f"WATTR ts FROM '{tmp_path}/b.parquet'")
    with pytest.raises(DataError, match=r"column `d`: `1.239` is no DECIMAL"), job_failed("reading"):
        all_rows(open_url(spark, stream)).select("d").toArrow()
    (tmp_path / "a.jsonl").write_text('{"d": "12.30", "ts": 1}\n')
    stream = declare_stream("s", "d DECIMAL(10, 2), ts BIGINT", f"WATTR ts FROM '{tmp_path}/a.jsonl'")
    rows = all_rows(open_url(spark, stream)).select("d").toArrow()
    assert rows["d"].to_pylist() == [Decimal("12.30")]


def test_nested_values_of_files(spark: SparkSession, drain: Drain, tmp_path: Path) -> None:
    """Maps are arrays of entries, in the order of their keys."""
    columns = "p STRUCT<a: INT, t: TIMESTAMP>, l ARRAY<STRUCT<i: INT>>, m MAP<STRING, INT>, ts BIGINT"
    row = '{"p": {"a": 1, "t": "2026-01-01"}, "l": [{"i": 2}], "m": {"z": 1, "b": null}, "ts": 3}'
    (tmp_path / "a.jsonl").write_text(row + "\n")
    entries = [{"key": "b", "value": None}, {"key": "z", "value": 1}]
    wanted = {"p": {"a": 1, "t": MIDNIGHT}, "l": [{"i": 2}], "m": entries, "ts": 3}
    stream = declare_stream("s", columns, f"WATTR ts FROM '{tmp_path}/*.jsonl?bounded=true'")
    assert all_rows(open_url(spark, stream)).select(*wanted).toArrow().to_pylist() == [wanted]
    kinds = {"m": pa.map_(pa.string(), pa.int32())}
    pq.write_table(
        pa.table({"m": pa.array([[("z", 1), ("b", None)]], kinds["m"]), "ts": [3]}), tmp_path / "a.parquet"
    )
    stream = declare_stream("s", "m MAP<STRING, INT>, ts BIGINT", f"WATTR ts FROM '{tmp_path}/a.parquet'")
    assert all_rows(open_url(spark, stream)).select("m").toArrow().to_pylist() == [{"m": entries}]


def test_a_json_column_that_may_be_absent(spark: SparkSession, declare: Declare, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"item": 7, "ts": "2026-01-01"}\n')
    columns, place = "item BIGINT, note STRING, ts TIMESTAMP", f"{tmp_path}/a.json?bounded=true"
    with pytest.raises(
        SourceError, match=r"`note`, which the first 1 lines of .* do not have .*`\?absent=null`"
    ):
        open_url(spark, declare(columns, place))
    source = open_url(spark, declare(columns, place + "&absent=null"))
    rows = all_rows(source).select("item", "note").toArrow()
    assert rows.to_pylist() == [{"item": 7, "note": None}]


def test_a_later_csv_file_with_another_header_is_an_error(
    spark: SparkSession, declare: Declare, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("item,ts\n1,2026-01-01\n")
    (tmp_path / "b.csv").write_text("other,ts\n1,2026-01-01\n")
    source = open_url(spark, declare("item BIGINT, ts TIMESTAMP", f"{tmp_path}/*.csv?bounded=true"))
    with pytest.raises(SourceError, match="header") as caught, job_failed("reading stream `s`"):
        all_rows(source).toArrow()
    assert f"{tmp_path}/b.csv" in caught.value.message
    assert caught.value.code == "other-header"


@pytest.mark.parametrize(
    ("columns", "place", "message"),
    [
        ("item BIGINT, ts TIMESTAMP", "nowhere/*.parquet", "there is no directory `{}/nowhere`"),
        ("item BIGINT, ts TIMESTAMP", "*.csv", "no file matches `{}/*.csv` (`{}` has `a.parquet`, `empty`)"),
        ("item BIGINT, ts TIMESTAMP", "empty/*.csv?bounded=true", "no file matches `{}/empty/*.csv`"),
        ("item BIGINT, ts TIMESTAMP", "empty?bounded=true", "there are no files in `{}/empty`"),
        ("item BIGINT, ts TIMESTAMP", "empty", "what format the files of `{}/empty` have is not to be seen"),
        ("item SMALLINT, ts TIMESTAMP", "a.parquet", "declared SMALLINT, but `{}/a.parquet` has INT"),
        (
            "itm BIGINT, ts TIMESTAMP",
            "a.parquet",
            "`itm`, which `{}/a.parquet` does not have (did you mean `Item`?)",
        ),
        (
            "item BIGINT, ts TIMESTAMP",
            "a.parquet?format=csv&header=true",
            "`item`, which `{}/a.parquet` does not",
        ),
    ],
)
def test_what_cannot_be_read(
    spark: SparkSession, declare: Declare, tmp_path: Path, columns: str, place: str, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    write_parquet(tmp_path / "a.parquet", [1])
    with pytest.raises((SourceError, QueryError)) as caught:
        open_url(spark, declare(columns, f"{tmp_path}/{place}"))
    assert message.replace("{}", str(tmp_path)) in str(caught.value)


def test_an_empty_directory_may_wait_for_its_first_file(
    spark: SparkSession, declare: Declare, drain: Drain, tmp_path: Path
) -> None:
    place = tmp_path / "in"
    place.mkdir()
    source = open_url(spark, declare(COLUMNS, f"{place}/*.csv"))
    (place / "a.csv").write_text("ts,price,item\n2026-01-01,1.5,7\n")
    assert [batch["item"].to_pylist() for batch in drain(source)] == [[7]]


def test_a_file_that_is_not_what_it_says(spark: SparkSession, declare: Declare, tmp_path: Path) -> None:
    for name, message in (("a.parquet", "is not a Parquet file"), ("a.csv.gz", "not a gzip file")):
        (tmp_path / name).write_text("this is neither")
        with pytest.raises(SourceError, match=f"{name}` cannot be read: .*{message}"):
            open_url(spark, declare("ts TIMESTAMP", f"{tmp_path}/{name}"))


def test_nanoseconds_are_named_as_the_reason(spark: SparkSession, declare: Declare, tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": pa.array([0], pa.timestamp("ns"))}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"coerce_timestamps='us'"):
        open_url(spark, declare("ts TIMESTAMP", f"{tmp_path}/a.parquet"))
