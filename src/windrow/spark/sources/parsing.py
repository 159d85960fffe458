"""Text to columns, by Spark's own parsers: lines of JSON files, and the messages of Kafka.

A text that is not a row of the declared columns is an error or is left out, as the user says; it never
becomes NULLs. The whole row is looked at, whatever columns a query needs, so that all queries see
the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from windrow.algebra.types import Kind
from windrow.errors import SourceError
from windrow.spark.sources.fit import quoted
from windrow.spark.sources.spark_types import to_spark

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from windrow.algebra.catalog import Stream, Table

_PARSED, _CORRUPT = "__parsed", "__corrupt"
#: Spark's parsers give NULL for an empty text; the name is the one they have for any other malformed row
_EMPTY = "[MALFORMED_RECORD_IN_PARSING] an empty text is no row of {}"


@dataclass(frozen=True)
class TextFormat:
    """How a text stands for a row: `json`, an object, or `csv`, the declared columns in order."""

    kind: str
    malformed: str = "fail"
    delimiter: str = ","


def parse(
    frame: DataFrame,
    text: Column,
    how: TextFormat,
    stream: Stream | Table,
    keys: Mapping[str, str] | None = None,
    order: Sequence[Column] = (),
) -> DataFrame:
    """The stream's columns out of `text`, and after them those of `order`.

    `keys` are the names of the columns in JSON objects, where they are not the declared ones.
    """
    names = {name: (keys or {}).get(name, name) for name in stream.schema.names}
    schema = StructType([StructField(names[field.name], to_spark(field.type)) for field in stream.schema])
    is_dropping = how.malformed == "drop"
    if is_dropping:
        schema = schema.add(_CORRUPT, StringType())
    parsed = _parsed(text, schema, how)
    if not is_dropping:
        parsed = F.coalesce(parsed, F.raise_error(F.lit(_EMPTY.format(stream.title))))
    rows = frame.select(parsed.alias(_PARSED), *order)
    if is_dropping:
        rows = rows.where(F.col(_PARSED).isNotNull() & F.col(f"{_PARSED}.{_CORRUPT}").isNull())
    chosen = [F.col(f"{_PARSED}.{quoted(key)}").alias(name) for name, key in names.items()]
    return rows.select(*chosen, *rows.columns[1:])


def _parsed(text: Column, schema: StructType, how: TextFormat) -> Column:
    options = {
        "mode": "PERMISSIVE" if how.malformed == "drop" else "FAILFAST",
        "columnNameOfCorruptRecord": _CORRUPT,
        "timeZone": "UTC",
    }
    if how.kind == "json":
        return F.from_json(text, schema, options)
    return F.from_csv(text, schema_text(schema), {**options, "delimiter": how.delimiter, "escape": '"'})


def schema_text(schema: StructType) -> str:
    """The schema as Spark SQL writes it."""
    return ", ".join(f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema.fields)


def check_flat(stream: Stream | Table, where: str) -> None:
    """Refuse columns that a line of CSV cannot hold."""
    for field in stream.schema:
        if field.type.kind in (Kind.ARRAY, Kind.STRUCT, Kind.BINARY):
            raise SourceError(
                f"column `{field.name}` of {stream.title} is {field.type}, which {where} cannot hold",
                code="column-type",
                hint="read it as STRING, or use json or parquet",
            )
