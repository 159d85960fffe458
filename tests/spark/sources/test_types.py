"""Types: every type of Windrow has one of Spark, and only what holds all values may be declared."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import types as spark

from windrow.algebra.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    Kind,
    array,
    decimal,
    map_of,
    struct,
)
from windrow.spark.sources.fit import from_spark, holds, to_spark

ATOMS = [
    NULL,
    BOOLEAN,
    TINYINT,
    SMALLINT,
    INT,
    BIGINT,
    FLOAT,
    DOUBLE,
    STRING,
    BINARY,
    DATE,
    TIMESTAMP,
    INTERVAL,
]
TYPES = [*ATOMS, decimal(10, 2), array(INT), struct(a=INT, b=array(struct(c=STRING)))]


def test_every_kind_is_here() -> None:
    assert {kind.kind for kind in TYPES} == set(Kind)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_types_go_to_spark_and_back(kind: DataType) -> None:
    assert from_spark(to_spark(kind)) == kind


def test_types_of_spark_without_a_counterpart_of_their_own() -> None:
    assert from_spark(spark.TimestampNTZType()) == TIMESTAMP
    assert from_spark(spark.VarcharType(5)) == STRING
    assert from_spark(spark.MapType(spark.StringType(), spark.StringType())) == map_of(STRING, STRING)
    assert from_spark(spark.ArrayType(spark.VariantType())) is None
    assert from_spark(spark.YearMonthIntervalType()) is None


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (BIGINT, TINYINT),
        (DOUBLE, INT),
        (DOUBLE, FLOAT),
        (FLOAT, SMALLINT),
        (decimal(12, 2), INT),
        (decimal(20, 0), BIGINT),
        (decimal(12, 3), decimal(10, 2)),
        (STRING, BIGINT),
        (TIMESTAMP, DATE),
        (BINARY, NULL),
        (array(BIGINT), array(INT)),
        (struct(a=DOUBLE), struct(a=FLOAT)),
    ],
    ids=str,
)
def test_a_wider_type_holds_a_narrower_one(wide: DataType, narrow: DataType) -> None:
    assert holds(wide, narrow)
    assert not holds(narrow, wide)


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (DOUBLE, BIGINT),
        (FLOAT, INT),
        (decimal(10, 2), BIGINT),
        (decimal(10, 2), decimal(10, 3)),
        (decimal(10, 2), DOUBLE),
        (TIMESTAMP, BIGINT),
        (TIMESTAMP, STRING),
        (STRING, BINARY),
        (STRING, array(STRING)),
        (BOOLEAN, INT),
        (struct(a=INT), struct(b=INT)),
    ],
    ids=str,
)
def test_what_would_lose_something(declared: DataType, given: DataType) -> None:
    assert not holds(declared, given)


def test_two_types_hold_each_other_only_if_they_are_one() -> None:
    for wide, narrow in itertools.permutations(ATOMS, 2):
        assert not (holds(wide, narrow) and holds(narrow, wide))
