"""Opens `files://…` as a source: Spark's file source, told to be strict.

Left to itself Spark would match CSV columns by position, give NULL for a column a file does not have, and
ignore files older than a week when newer ones have been seen. So the first file is looked at before anything
is read, and the options below say what is wanted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from windrow.errors import SourceError, nearest
from windrow.spark.sources.files_url import FilesUrl, format_of, read_files_url
from windrow.spark.sources.fit import check_order_names, check_types, fit, match_names
from windrow.spark.sources.found_files import FoundFiles, find_files
from windrow.spark.sources.java_errors import SPARK_ERRORS, reason
from windrow.spark.sources.malformed import file_of, row_of
from windrow.spark.sources.parsing import TextFormat, check_flat, csv_options, csv_schema, parse, parse_csv
from windrow.spark.sources.source import Source
from windrow.spark.sources.spark_types import from_spark, to_spark

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType as SparkType

    from windrow.algebra.catalog import Stream, Table
    from windrow.algebra.types import DataType
    from windrow.spark.sources.url import SourceUrl

_SAMPLE_LINES = 1000
#: the columns of an order key
_FILE, _ROW_INDEX, _BLOCK, _LINE = "__file", "__row_index", "__block", "__line"


def open_files(spark: SparkSession, stream: Stream, url: SourceUrl) -> Source:
    """The rows of the files there are, and, unless bounded, of those to come."""
    return open_wanted(spark, stream, read_files_url(url))


def open_wanted(spark: SparkSession, stream: Stream | Table, wanted: FilesUrl) -> Source:
    """The same, of files as an address means them; a table has its columns from them too."""
    found = find_files(spark, wanted.place, may_be_empty=not wanted.bounded)
    kind = wanted.format or _common_format(found, wanted)
    open_format = {"parquet": _open_parquet, "csv": _open_csv, "json": _open_json}[kind]
    order = _order_key(kind, wanted)
    check_order_names(stream, order)
    reading = Reading(spark, stream, wanted, found)
    try:
        frame = open_format(reading, list(order.values()))
    except SPARK_ERRORS as error:
        raise _unreadable(wanted, error) from None
    return Source(frame, wanted.bounded, wanted.fingerprint(kind), tuple(order), is_files=True)


class Reading:
    """One opening of files: what is wanted, what is there, and how Spark is asked for it."""

    def __init__(
        self, spark: SparkSession, stream: Stream | Table, wanted: FilesUrl, found: FoundFiles
    ) -> None:
        self.spark = spark
        self.stream = stream
        self.wanted = wanted
        self.sample = found.files[0] if found.files else None
        self.where = f"`{self.sample or wanted.place}`".replace("`file:", "`")
        self._path = _as_pattern(wanted.place) if found.is_one_file and not wanted.bounded else wanted.place

    def load(self, kind: str, schema: StructType, **options: Any) -> DataFrame:
        """The files as Spark gives them."""
        if self.wanted.bounded:
            return self.spark.read.format(kind).schema(schema).options(**options).load(self._path)
        options["maxFileAge"] = "36500d"  # a file that comes late is read, however old
        if self.wanted.files_per_batch:
            options["maxFilesPerTrigger"] = self.wanted.files_per_batch
        return self.spark.readStream.format(kind).schema(schema).options(**options).load(self._path)


def _as_pattern(place: str) -> str:
    """One file's name as a pattern: Spark's streams read directories and patterns only."""
    folder, slash, name = place.rpartition("/")
    return f"{folder}{slash}[{name[0]}]{name[1:]}"


def _common_format(found: FoundFiles, wanted: FilesUrl) -> str:
    kinds = {format_of(file) for file in found.files}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind is None:
        raise SourceError(
            f"what format the files of `{wanted.place}` have is not to be seen from their names",
            code="no-format",
            hint="say `?format=parquet`, `?format=csv` or `?format=json`",
        )
    return kind


def _order_key(kind: str, wanted: FilesUrl) -> dict[str, Column]:
    """What rows are ordered by. Only Parquet numbers its rows; in a bounded read Spark can count lines."""
    file = F.col("_metadata.file_path").alias(_FILE)
    if kind == "parquet":
        return {_FILE: file, _ROW_INDEX: F.col("_metadata.row_index").alias(_ROW_INDEX)}
    if not wanted.bounded:
        return {}
    block = F.col("_metadata.file_block_start").alias(_BLOCK)
    return {_FILE: file, _BLOCK: block, _LINE: F.monotonically_increasing_id().alias(_LINE)}


def _open_parquet(reading: Reading, order: list[Column]) -> DataFrame:
    stream = reading.stream
    if reading.sample is None:
        schema = StructType([StructField(field.name, to_spark(field.type)) for field in stream.schema])
    else:
        given = reading.spark.read.parquet(reading.sample).schema
        check_types(given, stream, reading.where)
        names = match_names(stream, given.names, reading.where)
        schema = StructType(
            [
                StructField(names[f.name], _read_as(f.type, given[names[f.name]].dataType))
                for f in stream.schema
            ]
        )
    frame = reading.load("parquet", schema)
    return fit(frame, stream, order, reading.where, row_of(frame))


def _read_as(declared: DataType, given: SparkType) -> SparkType:
    """Spark reads wider numbers from narrower ones itself, so that files may have either."""
    ours = from_spark(given)
    widens = ours is not None and (
        (ours.is_integer and declared.is_integer) or (ours.is_fractional and declared.is_fractional)
    )
    return to_spark(declared) if widens else given


def _open_csv(reading: Reading, order: list[Column]) -> DataFrame:
    stream, wanted = reading.stream, reading.wanted
    check_flat(stream, "a csv file")
    options = csv_options(header=wanted.header, delimiter=wanted.delimiter)
    columns = None
    if wanted.header and reading.sample is not None:
        columns = reading.spark.read.options(**options).csv(reading.sample).columns
    frame = reading.load("csv", csv_schema(stream, columns, reading.where), **options)
    how = TextFormat("csv", wanted.malformed, wanted.delimiter)
    return parse_csv(frame, how, stream, order, file_of(frame), reading.where)


def _open_json(reading: Reading, order: list[Column]) -> DataFrame:
    lines = reading.load("text", StructType([StructField("value", StringType())]))
    how = TextFormat("json", reading.wanted.malformed)
    rows = lines.where(F.trim("value") != "")
    return parse(
        rows, F.col("value"), how, reading.stream, _json_keys(reading), order, file_of(lines), in_files=True
    )


def _json_keys(reading: Reading) -> dict[str, str]:
    """What the declared columns are called in the first file: JSON minds the case of names, SQL does not."""
    if reading.sample is None:
        return {}
    raw = reading.spark.read.text(reading.sample).limit(_SAMPLE_LINES).select(F.col("value").cast("binary"))
    lines = raw.toArrow()["value"].to_pylist()
    keys = [key for line in lines for key in _keys_of(line)]
    found = {**{key.lower(): key for key in keys}, **{key: key for key in keys}}
    names = {name: found.get(name) or found.get(name.lower()) for name in reading.stream.schema.names}
    absent = next((name for name, key in names.items() if key is None), None)
    if keys and absent is not None and reading.wanted.absent == "fail":
        raise SourceError(
            f"{reading.stream.title} declares a column `{absent}`, which the first {len(lines):,}"
            f" lines of {reading.where} do not have",
            code="missing-column",
            hint=f"{nearest(absent, keys) or 'check the name'}; if it may be left out, say `?absent=null`",
        )
    return {name: key for name, key in names.items() if key is not None}


def _keys_of(line: bytes) -> list[str]:
    try:
        row = json.loads(line)
    except ValueError:
        return []  # what is malformed is dealt with when it is read
    return list(row) if isinstance(row, dict) else []


def _unreadable(wanted: FilesUrl, error: BaseException) -> SourceError:
    text = reason(error)
    hint = "check that the files are what `format` says"
    if "NANOS" in text:
        hint = (
            "Spark reads no nanoseconds: write the file with microseconds, in pyarrow coerce_timestamps='us'"
        )
    return SourceError(f"`{wanted.place}` cannot be read: {text}", code="bad-files", hint=hint)
