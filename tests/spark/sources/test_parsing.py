"""Text to columns: what is no row is an error or left out, whichever columns are asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812
from tests.spark.sources.conftest import on_spark

from windrow.algebra.catalog import Stream
from windrow.algebra.expressions import Field, Schema
from windrow.algebra.types import TIMESTAMP, TINYINT, array, struct
from windrow.errors import DataError, SourceError
from windrow.language.compile import declare_stream
from windrow.spark.failures import job_failed
from windrow.spark.sources.parsers import TextFormat, check_flat, parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession
    from tests.spark.sources.conftest import Declare

COLUMNS = "item BIGINT, note STRING, ts TIMESTAMP, few TINYINT"
GOOD = {
    "json": [
        '{"ts": "2026-01-01", "item": 1, "note": null}',
        ' {"item": 1, "note": "\\ud83d\\ude00 \\\\ud800"} ',
    ],
    "csv": ['1,"a,b",2026-01-01,2', "1,,,"],
}
BAD = {
    "json": {
        None: "an empty text",
        "": "an empty text",
        "null": "no JSON object",
        "[]": "no JSON object",
        "7": "no JSON object",
        "{": "no JSON object",
        '{"item": 1} {"item": 2}': 'there is more: `{"item": 2}`',
        '{"item": 1}, {"item": 2}': "there is more",
        '{"item": 1} x': "there is more: `x`",
        '{"item": 1}]}': "there is more",
        '{"item": 1}],"v":[{"item": 2}': "there is more",
        '{"item": 1},{"__end": true}]} ': "there is more",
        '{"item": "x"}': "column `item`: `x` is no BIGINT",
        "{'item': 1}": "is no JSON object",
        '{"item": "1"}': "column `item`: the text `1` is no BIGINT",
        '{"item": {"n": [1, null]}}': 'column `item`: `{"n": [1, null]}` is no BIGINT',
        '{"item": 1, "x": ' + "[" * 3000 + "]" * 3000 + "}": "is nested too deeply",
        '{"item": 1.5}': "column `item`: `1.5` is no BIGINT",
        '{"item": 9223372036854775808}': "`9223372036854775808` is no BIGINT",
        '{"few": 200}': "column `few`: `200` is no TINYINT",
        '{"item": 1, "ts": "noon"}': "column `ts`: `noon` is no TIMESTAMP",
        '{"item": 1, "ts": "12:30:00"}': "column `ts`: `12:30:00` is no TIMESTAMP",
        '{"ts": 1767225600000}': "column `ts`: the number `1767225600000` is no TIMESTAMP",
        '{"ts": 2026}': "the number `2026` is no TIMESTAMP",
        '{"ts": "1767225600"}': "the number `1767225600` is no TIMESTAMP",
        b'{"note": "caf\xe9"}': r"column `note`: `caf\xe9` is not valid UTF-8",
        b'{"other": "\xff"}': "is no row",
        '{"note": "\\ud800"}': r"column `note`: `\ud800` is not valid UTF-8",
        '{"note": "\\uDC00\\ud83d"}': "is not valid UTF-8",
    },
    "csv": {
        None: "an empty text",
        "x,a,2026-01-01,1": "column `item`: `x` is no BIGINT",
        "1,a": "`1,a` has 2 values, not 4",
        "1,a,2026-01-01,4,5": "has 5 values, not 4",
        "1,a,noon,1": "column `ts`: `noon` is no TIMESTAMP",
        "1,a,1767225600,1": "the number `1767225600` is no TIMESTAMP",
        b"1,caf\xe9,2026-01-01,1": r"column `note`: `caf\xe9` is not valid UTF-8",
        "1,a,2026-01-01,200": "column `few`: `200` is no TINYINT",
    },
}
CASES = [(kind, value) for kind, values in BAD.items() for value in values]


def texts(spark: SparkSession, values: Sequence[str | bytes | None]) -> DataFrame:
    raw = [(value.encode() if isinstance(value, str) else value,) for value in values]
    return spark.createDataFrame(raw, "value binary").select(F.col("value").cast("string"))


def parsed(spark: SparkSession, how: TextFormat, *values: str | bytes | None) -> DataFrame:
    stream = declare_stream("s", COLUMNS, "WATTR ts")
    return parse(texts(spark, values), F.col("value"), how, stream, place=F.lit("message 7"))


@pytest.mark.part(12)
@pytest.mark.parametrize(("kind", "value"), CASES, ids=lambda value: str(value)[:40])
def test_a_malformed_text_is_an_error(spark: SparkSession, kind: str, value: str | bytes | None) -> None:
    rows = parsed(spark, TextFormat(kind), *GOOD[kind], value)
    with pytest.raises(DataError) as caught, job_failed("reading"):
        rows.select("few").collect()
    assert caught.value.code == "malformed-row"
    assert caught.value.message.startswith("reading: message 7")
    assert BAD[kind][value] in caught.value.message  # type: ignore[index]
    assert "malformed=drop" in str(caught.value.hint)


@pytest.mark.parametrize("kind", BAD)
def test_malformed_texts_are_left_out_if_told(spark: SparkSession, kind: str) -> None:
    rows = on_spark(parsed(spark, TextFormat(kind, malformed="drop"), *GOOD[kind], *BAD[kind]))
    assert [row.item for row in rows.collect()] == [1, 1]
    assert rows.select("note").count() == 2
    assert rows.count() == 2


def test_a_text_is_parsed_once(spark: SparkSession) -> None:
    """A condition that Spark moves below the parser would have every text parsed again for it."""
    rows = parsed(spark, TextFormat("json"), *GOOD["json"]).where("item > 0 AND few IS NULL")
    plan = rows._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json(") == 1


FORMS = [
    ("epoch_s", "1767225600", datetime(2026, 1, 1)),
    ("epoch_s", "1767225600.25", datetime(2026, 1, 1, microsecond=250_000)),
    ("epoch_s", "1.7672256001234567E9", datetime(2026, 1, 1, microsecond=123_456)),
    ("epoch_ms", "1767225600001", datetime(2026, 1, 1, microsecond=1000)),
    ("epoch_ms", '"1767225600001"', datetime(2026, 1, 1, microsecond=1000)),
    ("epoch_us", "-1", datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ("epoch_us", "null", None),
]


@pytest.mark.thorough
def test_numbers_with_a_unit_are_times(spark: SparkSession) -> None:
    for kind in ("json", "csv"):
        for form in ("epoch_s", "epoch_ms", "epoch_us"):
            known = [(text, moment) for each, text, moment in FORMS if each == form]
            lines = [
                f'{{"ts": {text}}}' if kind == "json" else text.replace("null", '""') for text, _ in known
            ]
            stream = declare_stream("s", f"ts TIMESTAMP FORMAT '{form}'", "WATTR ts")
            rows = parse(texts(spark, lines), F.col("value"), TextFormat(kind), stream).toArrow()
            found = [moment and moment.replace(tzinfo=None) for moment in rows["ts"].to_pylist()]
            assert found == [moment for _, moment in known]
            for bad in (
                ("2026-01-01", "1e40", "NaN", "x", "true")
                if (kind, form) == ("json", "epoch_s")
                else ("1e40",)
            ):
                line = f'{{"ts": "{bad}"}}' if kind == "json" else bad
                with pytest.raises(DataError, match="column `ts`"), job_failed("reading"):
                    parse(texts(spark, [line]), F.col("value"), TextFormat(kind), stream).toArrow()


PATTERNS = [
    ("FORMAT 'dd/MMM/yyyy:HH:mm:ss Z'", "31/Dec/2025:23:00:00 -0100", "31-12-2025 23:00"),
    ("FORMAT 'yyyy-MM-dd HH:mm' ZONE 'Europe/Berlin'", "2026-01-01 01:00", "2026-01-01T01:00:00"),
    ("ZONE 'Europe/Berlin'", "2026-01-01T01:00:00", "31/Dec/2025"),
    ("ZONE 'Europe/Berlin'", "2025-12-31 22:00:00-02:00", "soon"),
]


@pytest.mark.part(2)
@pytest.mark.parametrize(("form", "good", "bad"), PATTERNS)
def test_texts_in_a_pattern_or_of_a_zone_are_times(
    spark: SparkSession, form: str, good: str, bad: str
) -> None:
    stream = declare_stream("s", f"ts TIMESTAMP {form}", "WATTR ts")
    rows = parse(texts(spark, [good]), F.col("value"), TextFormat("csv"), stream).toArrow()
    assert [moment.replace(tzinfo=None) for moment in rows["ts"].to_pylist()] == [datetime(2026, 1, 1)]
    with pytest.raises(DataError, match="column `ts`"), job_failed("reading"):
        parse(texts(spark, [bad]), F.col("value"), TextFormat("csv"), stream).toArrow()


@pytest.mark.thorough
def test_times_inside_of_values_are_read_alike(spark: SparkSession) -> None:
    kinds = {"at": array(TIMESTAMP), "of": struct(t=TIMESTAMP, n=TINYINT), "ts": TIMESTAMP}
    stream = Stream("s", Schema(tuple(Field(name, kind) for name, kind in kinds.items())), "ts")
    good = '{"at": ["2026-01-01", null], "of": {"t": "2026-01-01T00:00:00+01:00", "n": 1}}'
    rows = parse(texts(spark, [good, "{}"]), F.col("value"), TextFormat("json"), stream).toArrow().to_pylist()
    new_year = datetime(2026, 1, 1, tzinfo=UTC)
    assert rows[0]["at"] == [new_year, None]
    assert rows[0]["of"] == {"t": datetime(2025, 12, 31, 23, tzinfo=UTC), "n": 1}
    assert rows[1] == {"at": None, "of": None, "ts": None}
    for bad in ('{"at": [1767225600]}', '{"of": {"t": 1767225600}}', '{"of": {"n": 200}}'):
        with pytest.raises(DataError), job_failed("reading"):
            parse(texts(spark, [good, bad]), F.col("value"), TextFormat("json"), stream).toArrow()


def test_times_without_a_zone_are_utc_in_any_session(spark: SparkSession) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "America/New_York")
    stream = declare_stream("s", "ts TIMESTAMP", "WATTR ts")
    given = ["2026-07-01T12:00:00", "2026-07-01T12:00:00Z", "2026-07-01 14:00:00+02:00"]
    lines = texts(elsewhere, [f'{{"ts": "{text}"}}' for text in given])
    rows = parse(lines, F.col("value"), TextFormat("json"), stream).select(F.unix_micros("ts")).collect()
    assert {row[0] for row in rows} == {int(datetime(2026, 7, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000}
    with pytest.raises(DataError, match="`noon` is no TIMESTAMP"), job_failed("reading"):
        parse(texts(elsewhere, ['{"ts": "noon"}']), F.col("value"), TextFormat("json"), stream).collect()


def test_csv_holds_no_nested_values(declare: Declare) -> None:
    with pytest.raises(SourceError, match="`raw` of stream `s` is BINARY, which a csv file cannot hold"):
        check_flat(declare("raw BINARY, ts TIMESTAMP"), "a csv file")
