"""Spark's types and Windrow's: which stands for which."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as spark

from windrow.algebra import types as dt

_BOTH_WAYS: dict[dt.DataType, spark.DataType] = {
    dt.NULL: spark.NullType(),
    dt.BOOLEAN: spark.BooleanType(),
    dt.TINYINT: spark.ByteType(),
    dt.SMALLINT: spark.ShortType(),
    dt.INT: spark.IntegerType(),
    dt.BIGINT: spark.LongType(),
    dt.FLOAT: spark.FloatType(),
    dt.DOUBLE: spark.DoubleType(),
    dt.STRING: spark.StringType(),
    dt.BINARY: spark.BinaryType(),
    dt.DATE: spark.DateType(),
    dt.TIMESTAMP: spark.TimestampType(),
    dt.INTERVAL: spark.DayTimeIntervalType(),
}
_FROM_SPARK: dict[type[spark.DataType], dt.DataType] = {
    **{type(theirs): ours for ours, theirs in _BOTH_WAYS.items()},
    spark.TimestampNTZType: dt.TIMESTAMP,  # without a zone it is taken as UTC
    spark.CharType: dt.STRING,
    spark.VarcharType: dt.STRING,
}


def to_spark(kind: dt.DataType) -> spark.DataType:
    """The Spark type that holds the values of a Windrow type."""
    match kind.kind:
        case dt.Kind.DECIMAL:
            return spark.DecimalType(kind.precision, kind.scale)
        case dt.Kind.ARRAY:
            return spark.ArrayType(to_spark(kind.fields[0][1]))
        case dt.Kind.STRUCT:
            return spark.StructType([spark.StructField(name, to_spark(inner)) for name, inner in kind.fields])
        case _:
            return _BOTH_WAYS[kind]


def from_spark(kind: spark.DataType) -> dt.DataType | None:
    """The Windrow type for the values of a Spark type; None if there is none."""
    if isinstance(kind, spark.DecimalType):
        return dt.decimal(kind.precision, kind.scale) if 0 <= kind.scale <= kind.precision else None
    if isinstance(kind, spark.ArrayType):
        element = from_spark(kind.elementType)
        return None if element is None else dt.array(element)
    if isinstance(kind, spark.MapType):
        key, value = from_spark(kind.keyType), from_spark(kind.valueType)
        return None if key is None or value is None else dt.map_of(key, value)
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


def _from_struct(kind: spark.StructType) -> dt.DataType | None:
    fields = {field.name: from_spark(field.dataType) for field in kind.fields}
    known = {name: inner for name, inner in fields.items() if inner is not None}
    return dt.struct(**known) if len(known) == len(kind.fields) else None
