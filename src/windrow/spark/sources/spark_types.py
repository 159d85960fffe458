"""Spark's types and Windrow's: which stands for which."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
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

_BOTH_WAYS: dict[DataType, spark.DataType] = {
    NULL: spark.NullType(),
    BOOLEAN: spark.BooleanType(),
    TINYINT: spark.ByteType(),
    SMALLINT: spark.ShortType(),
    INT: spark.IntegerType(),
    BIGINT: spark.LongType(),
    FLOAT: spark.FloatType(),
    DOUBLE: spark.DoubleType(),
    STRING: spark.StringType(),
    BINARY: spark.BinaryType(),
    DATE: spark.DateType(),
    TIMESTAMP: spark.TimestampType(),
    INTERVAL: spark.DayTimeIntervalType(),
}
_FROM_SPARK: dict[type[spark.DataType], DataType] = {
    **{type(theirs): ours for ours, theirs in _BOTH_WAYS.items()},
    spark.TimestampNTZType: TIMESTAMP,  # without a zone it is taken as UTC
    spark.CharType: STRING,
    spark.VarcharType: STRING,
}


def to_spark(kind: DataType) -> spark.DataType:
    """The Spark type that holds the values of a Windrow type."""
    match kind.kind:
        case Kind.DECIMAL:
            return spark.DecimalType(kind.precision, kind.scale)
        case Kind.ARRAY:
            return spark.ArrayType(to_spark(kind.fields[0][1]))
        case Kind.STRUCT:
            return spark.StructType([spark.StructField(name, to_spark(inner)) for name, inner in kind.fields])
        case _:
            return _BOTH_WAYS[kind]


def from_spark(kind: spark.DataType) -> DataType | None:
    """The Windrow type for the values of a Spark type; None if there is none."""
    if isinstance(kind, spark.DecimalType):
        return decimal(kind.precision, kind.scale) if 0 <= kind.scale <= kind.precision else None
    if isinstance(kind, spark.ArrayType):
        element = from_spark(kind.elementType)
        return None if element is None else array(element)
    if isinstance(kind, spark.MapType):
        key, value = from_spark(kind.keyType), from_spark(kind.valueType)
        return None if key is None or value is None else map_of(key, value)
    if isinstance(kind, spark.StructType):
        return _from_struct(kind)
    return _FROM_SPARK.get(type(kind))


def has_map(kind: spark.DataType) -> bool:
    """Whether values of a Spark type have maps in them, which are arrays of entries here."""
    match kind:
        case spark.MapType():
            return True
        case spark.ArrayType():
            return has_map(kind.elementType)
        case spark.StructType():
            return any(has_map(field.dataType) for field in kind.fields)
    return False


def without_maps(value: Column, kind: spark.DataType) -> Column:
    """A value with its maps as arrays of entries, in the order of their keys."""
    if not has_map(kind):
        return value
    match kind:
        case spark.MapType():
            inner = spark.StructType(
                [spark.StructField("key", kind.keyType), spark.StructField("value", kind.valueType)]
            )
            entries = F.transform(F.map_entries(value), lambda each: without_maps(each, inner))
            return F.array_sort(entries)
        case spark.ArrayType():
            return F.transform(value, lambda each: without_maps(each, kind.elementType))
    assert isinstance(kind, spark.StructType)
    parts = [without_maps(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
    return F.when(value.isNotNull(), F.struct(*parts))


def _from_struct(kind: spark.StructType) -> DataType | None:
    fields = {field.name: from_spark(field.dataType) for field in kind.fields}
    known = {name: inner for name, inner in fields.items() if inner is not None}
    return struct(**known) if len(known) == len(kind.fields) else None
