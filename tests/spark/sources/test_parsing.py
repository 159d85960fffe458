"""Text to columns: what is no row is an error or left out, whichever columns are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812

from windrow.errors import SourceError
from windrow.spark.sources.java_errors import SPARK_ERRORS
from windrow.spark.sources.parsing import TextFormat, check_flat, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.spark.sources.conftest import Declare

GOOD = {"json": '{"ts": "2026-01-01", "item": 1, "note": null}', "csv": '1,"a,b",2026-01-01'}
BAD = {
    "json": [None, "", "null", "[]", "7", "{", '{"item": "x"}', '{"item": 1.5}', '{"item": 1, "ts": "noon"}'],
    "csv": [None, "x,a,2026-01-01", "1,a", "1,a,2026-01-01,4", "1,a,noon"],
}
CASES = [(kind, value) for kind, values in BAD.items() for value in values]


def parsed(spark: SparkSession, declare: Declare, how: TextFormat, *values: str | None) -> DataFrame:
    texts = spark.createDataFrame([(value,) for value in values], "value string")
    return parse(texts, F.col("value"), how, declare("item BIGINT, note STRING, ts TIMESTAMP"))


@pytest.mark.parametrize(("kind", "value"), CASES, ids=str)
def test_a_malformed_text_is_an_error(
    spark: SparkSession, declare: Declare, kind: str, value: str | None
) -> None:
    rows = parsed(spark, declare, TextFormat(kind), GOOD[kind], value)
    with pytest.raises(SPARK_ERRORS, match="MALFORMED_RECORD"):
        rows.select("note").collect()


@pytest.mark.parametrize("kind", BAD)
def test_malformed_texts_are_left_out_if_told(spark: SparkSession, declare: Declare, kind: str) -> None:
    rows = parsed(spark, declare, TextFormat(kind, malformed="drop"), GOOD[kind], *BAD[kind])
    assert [row.item for row in rows.collect()] == [1]
    assert rows.select("note").count() == 1


def test_csv_holds_no_nested_values(declare: Declare) -> None:
    with pytest.raises(SourceError, match="`raw` of stream `s` is BINARY, which a csv file cannot hold"):
        check_flat(declare("raw BINARY, ts TIMESTAMP"), "a csv file")
