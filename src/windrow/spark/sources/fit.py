"""The frame of a source, made to fit its stream: the declared columns, in order, of the declared types.

Columns are found by name, as SQL does, whatever their case. A type that holds every value of the source's is
a cast, done by Spark; any other type is refused, because values would change or turn into NULL unseen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, functions as F, types as T
from pyspark.sql.classic.column import _to_java_column, _to_seq
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.algebra import DataType, Field, Kind, as_decimal, types as dt
from windrow.algebra.catalog import EPOCHS, Stream, Table, form_text, split_form
from windrow.algebra.functions import sql_text, time_patterns
from windrow.errors import QueryError, SourceError, nearest
from windrow.execution.malformed_rows import TIME, RowShape
from windrow.spark.sources.malformed_rows import telling

_BOTH_WAYS: dict[DataType, T.DataType] = {
    dt.NULL: T.NullType(),
    dt.BOOLEAN: T.BooleanType(),
    dt.TINYINT: T.ByteType(),
    dt.SMALLINT: T.ShortType(),
    dt.INT: T.IntegerType(),
    dt.BIGINT: T.LongType(),
    dt.FLOAT: T.FloatType(),
    dt.DOUBLE: T.DoubleType(),
    dt.STRING: T.StringType(),
    dt.BINARY: T.BinaryType(),
    dt.DATE: T.DateType(),
    dt.TIMESTAMP: T.TimestampType(),
    dt.INTERVAL: T.DayTimeIntervalType(),
}
_FROM_SPARK: dict[type[T.DataType], DataType] = {
    **{type(theirs): ours for ours, theirs in _BOTH_WAYS.items()},
    T.TimestampNTZType: dt.TIMESTAMP,  # without a zone it is taken as UTC
    T.CharType: dt.STRING,
    T.VarcharType: dt.STRING,
}


def to_spark(kind: DataType) -> T.DataType:
    """The Spark type that holds the values of a Windrow type."""
    match kind.kind:
        case Kind.DECIMAL:
            return T.DecimalType(kind.precision, kind.scale)
        case Kind.ARRAY:
            return T.ArrayType(to_spark(kind.fields[0][1]))
        case Kind.STRUCT:
            return T.StructType([T.StructField(name, to_spark(inner)) for name, inner in kind.fields])
        case _:
            return _BOTH_WAYS[kind]


def from_spark(kind: T.DataType) -> DataType | None:
    """The Windrow type for the values of a Spark type; None if there is none."""
    if isinstance(kind, T.DecimalType):
        return dt.decimal(kind.precision, kind.scale) if 0 <= kind.scale <= kind.precision else None
    if isinstance(kind, T.ArrayType):
        element = from_spark(kind.elementType)
        return None if element is None else dt.array(element)
    if isinstance(kind, T.MapType):
        key, value = from_spark(kind.keyType), from_spark(kind.valueType)
        return None if key is None or value is None else dt.map_of(key, value)
    if isinstance(kind, T.StructType):
        fields = {field.name: from_spark(field.dataType) for field in kind.fields}
        return None if None in fields.values() else dt.struct(**fields)  # type: ignore[arg-type]
    return _FROM_SPARK.get(type(kind))


def spark_schema(schema: pa.Schema) -> T.StructType:
    """The columns of an Arrow table as Spark has them."""
    fields = []
    for field in schema:
        try:
            fields += from_arrow_schema(pa.schema([field])).fields
        except PySparkException:
            raise no_type(field.name, field.type) from None
    return T.StructType(fields)


def no_type(column: str, kind: object) -> SourceError:
    """A column of a type that there is not here."""
    return SourceError(
        f"column `{column}` is {kind}, for which Windrow has no type",
        code="column-type",
        hint=f"leave `{column}` out, or convert it first",
    )


def has_map(kind: T.DataType) -> bool:
    """Whether values of a Spark type have maps in them, which are arrays of entries here."""
    match kind:
        case T.MapType():
            return True
        case T.ArrayType():
            return has_map(kind.elementType)
        case T.StructType():
            return any(has_map(field.dataType) for field in kind.fields)
    return False


def without_maps(value: Column, kind: T.DataType) -> Column:
    """A value with its maps as arrays of entries, in the order of their keys."""
    if not has_map(kind):
        return value
    match kind:
        case T.MapType():
            inner = T.StructType([T.StructField("key", kind.keyType), T.StructField("value", kind.valueType)])
            entries = F.transform(F.map_entries(value), lambda each: without_maps(each, inner))
            return F.array_sort(entries)
        case T.ArrayType():
            return F.transform(value, lambda each: without_maps(each, kind.elementType))
    assert isinstance(kind, T.StructType)
    parts = [without_maps(value.getField(f.name), f.dataType).alias(f.name) for f in kind.fields]
    return F.when(value.isNotNull(), F.struct(*parts))


# ------------------------------------------------------------ wider types
#
# Which types hold every value of another, unchanged: what a source may give where a column is declared.


_INTEGERS = (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT)
#: the integers a floating-point type holds exactly
_EXACT_IN = {Kind.FLOAT: _INTEGERS[:2], Kind.DOUBLE: _INTEGERS[:3]}
_AS_TEXT = {*_INTEGERS, Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.STRING}


def holds(wide: DataType, narrow: DataType) -> bool:
    """Whether every value of `narrow` is a value of `wide`, with nothing lost.

    >>> from windrow.algebra.types import BIGINT, DOUBLE, INT
    >>> holds(BIGINT, INT), holds(DOUBLE, BIGINT)
    (True, False)
    """
    if wide == narrow or narrow.kind is Kind.NULL:
        return True
    if narrow.kind in (Kind.ARRAY, Kind.STRUCT):
        return _holds_nested(wide, narrow)
    if wide.kind is Kind.DECIMAL and (narrow.is_integer or narrow.kind is Kind.DECIMAL):
        narrow = as_decimal(narrow)
        return wide.scale >= narrow.scale and wide.precision - wide.scale >= narrow.precision - narrow.scale
    if wide.kind in _EXACT_IN:
        is_float = narrow.kind is Kind.FLOAT and wide.kind is Kind.DOUBLE
        return is_float or narrow.kind in _EXACT_IN[wide.kind]
    if wide.kind is Kind.STRING:
        return narrow.kind in _AS_TEXT
    if wide.kind is Kind.TIMESTAMP:
        return narrow.kind is Kind.DATE
    return wide.is_integer and narrow.is_integer and wide.bounds[1] >= narrow.bounds[1]


def _holds_nested(wide: DataType, narrow: DataType) -> bool:
    if wide.kind is not narrow.kind or len(wide.fields) != len(narrow.fields):
        return False
    pairs = zip(wide.fields, narrow.fields, strict=True)
    if wide.kind is Kind.ARRAY:  # a MAP may also be given as the array of its entries
        return (wide.is_map or not narrow.is_map) and holds(wide.element, narrow.element)
    return all(ours == theirs and holds(outer, inner) for (ours, outer), (theirs, inner) in pairs)


# ------------------------------------------------------------ fit


#: names of the zone in which times without a zone are taken
ZONES_OF_UTC = {"UTC", "Etc/UTC", "Z", "+00:00", "GMT"}


class Fitting:
    """How frames of one shape become rows of a stream. It is made once for all of them: each column is some
    calls of the JVM, and each frame only one or two."""

    def __init__(self, columns: Sequence[Column], sound: Column | None = None) -> None:
        self._columns, self._sound = in_jvm(columns), sound

    def of(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame."""
        known: Any = frame
        rows = known._jdf if self._sound is None else known._jdf.filter(self._sound._jc)
        return DataFrame(rows.select(self._columns), frame.sparkSession)


def in_jvm(columns: Sequence[Column | str]) -> Any:
    """Columns as the JVM takes several."""
    return _to_seq(SparkContext._active_spark_context, columns, _to_java_column)  # type: ignore[arg-type]


def fitting(
    frame: DataFrame,
    stream: Stream | Table,
    where: str,
    order: Sequence[Column] = (),
    place: Column | None = None,
) -> Fitting:
    """How `frame`, and all others of its shape, fit a stream: the declared columns, and after them those of
    `order`, which have names of their own.

    Text that is not valid UTF-8, and a number that is no time in the declared unit, is an error when it is
    read; `place` says where a row is from.
    """
    names = check_types(frame.schema, stream, where)
    _check_zone(frame, stream, names)
    forms = dict(stream.forms)
    chosen, faults = [], []
    for field in stream.schema:
        kind = frame.schema[names[field.name]].dataType
        given = without_maps(F.col(sql_text.backquoted(names[field.name])), kind)
        if field.type.is_map:
            given = F.array_sort(given)
        form, is_decimal = forms.get(field.name), _is_decimal_text(field.type, from_spark(kind))
        if form is not None:
            value = timed(frame, stream, given.cast("string"), form)
        elif is_decimal:
            value = _decimal(given, field.type)
        else:
            value = given.cast(to_spark(field.type))
        chosen.append(value.alias(field.name))
        is_read = form is not None or is_decimal
        fault = given.isNotNull() & value.isNull() if is_read else _invalid_text(given, kind)
        if fault is not None:
            faults.append(fault)
    if not faults:
        return Fitting([*chosen, *order])
    given_values = [F.col(sql_text.backquoted(name)) for name in names.values()]
    error = F.raise_error(telling(RowShape.of(stream, "values"), place, values=given_values))
    sound = F.when(reduce(or_, faults), error.cast("boolean")).otherwise(F.lit(True))
    return Fitting([*chosen, *order], sound)


def _invalid_text(value: Column, kind: T.DataType) -> Column | None:
    """Whether a value has text in it that is not valid UTF-8; None if it has no text."""
    if isinstance(kind, T.StringType):
        return F.coalesce(~F.is_valid_utf8(value), F.lit(False))
    if isinstance(kind, T.ArrayType):
        if _invalid_text(value, kind.elementType) is None:
            return None
        found = F.exists(value, lambda each: _invalid_text(each, kind.elementType))  # type: ignore[arg-type, return-value]
        return F.coalesce(found, F.lit(False))
    if isinstance(kind, T.StructType):
        parts = [_invalid_text(value.getField(field.name), field.dataType) for field in kind.fields]
        known = [part for part in parts if part is not None]
        return reduce(or_, known) if known else None
    return None


def timed(frame: DataFrame, stream: Stream | Table, text: Column, form: str) -> Column:
    """The time that a text stands for in a form; NULL if it does not fit."""
    if form in EPOCHS:
        return epoch(text, form)
    pattern, zone = split_form(form)
    own = bool(pattern) and time_patterns.reader(pattern).names_zone
    session = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    if session not in ZONES_OF_UTC and not own:
        raise SourceError(
            f"times of {stream.title} that name no zone are read as UTC, but the zone of the Spark session is"
            f" {session}",
            code="time-zone",
            hint='spark.conf.set("spark.sql.session.timeZone", "UTC")',
        )
    if pattern:
        local = F.try_to_timestamp(text, F.lit(pattern))
        return local if own or zone is None else F.to_utc_timestamp(local, zone)
    read = F.when(text.rlike(TIME), text.try_cast("timestamp"))
    return F.when(text.rlike(_NAMES_ZONE), read).otherwise(F.to_utc_timestamp(read, zone or "UTC"))


#: a time with its own offset or zone
_NAMES_ZONE = r"(?i)\d[^-]*(z|utc|gmt|[+-]\d{1,2}(:?\d{2})?|[a-z]+/[a-z_/]+)\s*$"


def epoch(text: Column, form: str) -> Column:
    """The time that a number stands for, written as text; NULL if it is no number, or none that a TIMESTAMP
    holds. What is smaller than a microsecond is cut off, as in a time that is written out."""
    unit = EPOCHS[form]
    whole = F.try_multiply(text.try_cast("bigint"), F.lit(unit).cast("bigint"))
    digits = text.try_cast("decimal(26,9)") * F.lit(unit).cast("decimal(7,0)")
    return F.timestamp_micros(F.coalesce(whole, F.floor(digits).try_cast("bigint")))


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


def check_types(schema: T.StructType, stream: Stream | Table, where: str) -> dict[str, str]:
    """For each declared column its name in the source; one whose values the declared type does not hold is
    refused."""
    names = match_names(stream, schema.names, where)
    forms = dict(stream.forms)
    for field in stream.schema:
        given = schema[names[field.name]].dataType
        ours = from_spark(given)
        if field.name in forms:
            _check_form(stream, field, ours, forms[field.name], where)
        elif not _is_decimal_text(field.type, ours) and (ours is None or not holds(field.type, ours)):
            kind = ours or given.simpleString().upper()
            raise SourceError(
                f"column `{field.name}` of {stream.title} is declared {field.type}, but {where} has {kind},"
                f" which {field.type} cannot hold without loss",
                code="column-type",
                hint=f"declare it `{field.name} {kind}` and write CAST({field.name} AS {field.type}) in the"
                " query",
            )
    return names


def _check_form(stream: Stream | Table, field: Field, given: DataType | None, form: str, where: str) -> None:
    is_number = given is not None and (given.is_integer or given.is_fractional or given.kind is Kind.DECIMAL)
    is_text = given is not None and given.kind is Kind.STRING
    wanted, fits = ("a number", is_number) if form in EPOCHS else ("a text", is_text)
    if not fits:
        raise SourceError(
            f"column `{field.name}` of {stream.title} is declared {form_text(form)}, {wanted}, but {where}"
            f" has {given or 'another type'}",
            code="column-type",
            hint="leave it out if it is a TIMESTAMP there",
        )


def _check_zone(frame: DataFrame, stream: Stream | Table, names: Mapping[str, str]) -> None:
    """Refuse to turn dates and times without a zone into instants of another zone than UTC."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    if zone in ZONES_OF_UTC:
        return
    for field in stream.schema:
        # a number with a unit needs no zone, and is no such type
        is_without = isinstance(frame.schema[names[field.name]].dataType, T.DateType | T.TimestampNTZType)
        if field.type.kind is Kind.TIMESTAMP and is_without:
            raise SourceError(
                f"the times of column `{field.name}` of {stream.title} have no zone and are taken as"
                f" UTC, but the Spark session's zone is {zone}",
                code="time-zone",
                hint='spark.conf.set("spark.sql.session.timeZone", "UTC")',
            )


def _is_decimal_text(declared: DataType, given: DataType | None) -> bool:
    """Whether exact numbers stand in the source as text, as they often do."""
    return declared.kind is Kind.DECIMAL and given is not None and given.kind is Kind.STRING


def _decimal(text: Column, kind: DataType) -> Column:
    """The number that a text says; NULL if it says none, or one with more digits than the type has."""
    digits = rf"^\s*[+-]?(\d+(\.\d{{0,{kind.scale}}}0*)?|\.\d{{1,{kind.scale or 1}}}0*)\s*$"
    return F.when(text.rlike(digits), F.trim(text).try_cast(to_spark(kind)))


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
