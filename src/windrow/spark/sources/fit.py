"""Makes the frame of a source fit its stream: the declared columns, in order, of the declared types.

Columns are found by name, as SQL does, whatever their case. A type that holds every value of the source's is
a cast, done by Spark; any other type is refused, because values would change or turn into NULL unseen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DateType, TimestampNTZType

from windrow.algebra.types import Kind
from windrow.errors import QueryError, SourceError, nearest
from windrow.spark.sources.spark_types import from_spark, to_spark
from windrow.spark.sources.widening import holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from windrow.algebra.catalog import Stream, Table
    from windrow.algebra.schema import Field


_UTC = {"UTC", "Etc/UTC", "Z", "+00:00", "GMT"}
_WITHOUT_ZONE = (DateType, TimestampNTZType)


def fit(
    frame: DataFrame, stream: Stream | Table, order: Sequence[Column] = (), where: str = "the data"
) -> DataFrame:
    """The stream's columns out of `frame`, and after them those of `order`, which have names of their own."""
    check_types(frame.schema, stream, where)
    names = match_names(stream, frame.columns, where)
    _check_zone(frame, stream, names)
    chosen = [
        F.col(quoted(names[field.name])).cast(to_spark(field.type)).alias(field.name)
        for field in stream.schema
    ]
    return frame.select(*chosen, *order)


def match_names(stream: Stream | Table, available: Iterable[str], where: str) -> dict[str, str]:
    """For each declared column its name in the source. An exact match goes before one in another case."""
    found = {**{name.lower(): name for name in available}, **{name: name for name in available}}
    names: dict[str, str] = {}
    for field in stream.schema:
        match = found.get(field.name) or found.get(field.name.lower())
        if match is None:
            raise SourceError(
                f"{stream.title} declares a column `{field.name}`, which {where} does not have",
                code="missing-column",
                hint=nearest(field.name, available) or "declare only columns that are there",
            )
        names[field.name] = match
    return names


def check_types(schema: StructType, stream: Stream | Table, where: str) -> None:
    """Refuse a column whose values the declared type does not hold."""
    names = match_names(stream, schema.names, where)
    for field in stream.schema:
        given = schema[names[field.name]].dataType
        ours = from_spark(given)
        if ours is None or not holds(field.type, ours):
            _refuse_type(stream, field, ours or given.simpleString().upper(), where)


def _check_zone(frame: DataFrame, stream: Stream | Table, names: Mapping[str, str]) -> None:
    """Refuse to turn dates and times without a zone into instants of another zone than UTC."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    for field in stream.schema:
        given = frame.schema[names[field.name]].dataType
        if zone not in _UTC and field.type.kind is Kind.TIMESTAMP and isinstance(given, _WITHOUT_ZONE):
            raise SourceError(
                f"the times of column `{field.name}` of {stream.title} have no zone and are taken as"
                f" UTC, but the Spark session's zone is {zone}",
                code="time-zone",
                hint='spark.conf.set("spark.sql.session.timeZone", "UTC")',
            )


def _refuse_type(stream: Stream | Table, field: Field, given: object, where: str) -> None:
    raise SourceError(
        f"column `{field.name}` of {stream.title} is declared {field.type}, but {where} has {given},"
        f" which {field.type} cannot hold without loss",
        code="column-type",
        hint=f"declare it `{field.name} {given}` and write CAST({field.name} AS {field.type}) in the query",
    )


def check_order_names(stream: Stream | Table, order_key: Iterable[str]) -> None:
    """Refuse a declared column with a name that the source needs for itself."""
    declared = {name.lower() for name in stream.schema.names}
    for name in order_key:
        if name.lower() in declared:
            raise QueryError(
                f"{stream.title} cannot have a column `{name}`: the source keeps the order of rows in it",
                code="reserved-column",
                hint="rename the column",
            )


def quoted(name: str) -> str:
    """A column's name as Spark reads it literally, dots and all."""
    return "`" + name.replace("`", "``") + "`"
