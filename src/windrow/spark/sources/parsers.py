"""Text to columns, by Spark's own parsers: lines of JSON and CSV files, and the messages of Kafka.

A text that is not a row of the declared columns is an error or is left out, as the user says; it never
becomes NULLs. The whole row is looked at, whatever columns a query needs, so that all queries see
the same rows.

Left to themselves, Spark's parsers stop at the end of the first object of a text, take any number for seconds
since 1970, and put one and the same sign in the place of all bytes that are not UTF-8. So a JSON text is read
between others, times are read as text, and bytes are kept until they have been looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from secrets import token_hex
from typing import Any

from pyspark.sql import Column, DataFrame, functions as F, types as T

from windrow.algebra import DataType, Kind, Stream, Table
from windrow.algebra.functions.sql_text import backquoted
from windrow.errors import SourceError
from windrow.execution.malformed_rows import MALFORMED, TIME, RowShape
from windrow.spark.sources.fit import ZONES_OF_UTC, match_names, timed, to_spark, without_maps
from windrow.spark.sources.malformed_rows import telling

_ROW, _PARSED, _TEXT, _PLACE = "__row", "__parsed", "__text", "__place"
#: no column of anybody's is called that
_CORRUPT = "windrow: a line that is no row"
#: in which every byte is a character: nothing is lost, and text is made of it afterwards
_BYTES = "ISO-8859-1"
#: names that no text can have in it, since nobody knows them
_BEGIN, _END = (f"__{word}{token_hex(8)}" for word in ("begin", "end"))
#: escapes that are half a character, where `\\\\` has been taken away
_HALVES = (
    r"(?i)\\u(d[89ab][0-9a-f]{2})(?!\\ud[c-f][0-9a-f]{2})"
    r"|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}"
)


@dataclass(frozen=True)
class TextFormat:
    """How a text stands for a row: `json`, an object, or `csv`, the declared columns in order."""

    kind: str
    malformed: str = "fail"
    delimiter: str = ","


def hands_on(stream: Stream | Table, malformed: str) -> bool:
    """Whether texts that are no rows are handed on, told of in a column of their own."""
    return malformed != "fail" and isinstance(stream, Stream)


def parse(
    frame: DataFrame,
    text: Column,
    how: TextFormat,
    stream: Stream | Table,
    keys: Mapping[str, str] | None = None,
    order: Sequence[Column] = (),
    place: Column | None = None,
    *,
    in_files: bool = False,
) -> DataFrame:
    """The stream's columns out of `text`, and after them those of `order`.

    `text` has the bytes as they came, valid or not: Spark's format `text` has them, and a cast of binary.
    `keys` are the names of the columns in JSON objects, where they are not the declared ones. `place` says
    where a text is from: words, or, if texts are lines `in_files`, the path of the file.
    """
    names = {name: (keys or {}).get(name, name) for name in stream.schema.names}
    parsed, read, broken = (_json if how.kind == "json" else _csv)(text, stream, names, how)
    source = F.lit("") if place is None else place
    rows = frame.select(parsed.alias(_PARSED), text.alias(_TEXT), source.alias(_PLACE), *order)
    in_lines = place is not None and in_files
    shape = RowShape.of(stream, how.kind, names, delimiter=how.delimiter, in_lines=in_lines)
    told = partial(telling, shape, F.col(_PLACE), F.col(_TEXT))
    return _rows(rows, read, broken, how, stream, told, [F.col(name) for name in rows.columns[3:]])


def _json(
    text: Column, stream: Stream | Table, names: Mapping[str, str], how: TextFormat
) -> tuple[Column, list[Column], list[Column]]:
    """The text as the first of two elements of an array, its values, and the conditions under which it is no
    object.

    The other element, and what the array is called, are such as no text can have in it. That element is the
    second one, and the array ends with it, only if the text is one whole value.
    """
    fields = [T.StructField(names[field.name], reading_type(field.type)) for field in stream.schema]
    elements = T.ArrayType(T.StructType([*fields, T.StructField(_END, T.BooleanType())]))
    schema = T.StructType([T.StructField(_BEGIN, elements), T.StructField(_CORRUPT, T.StringType())])
    around = F.concat(F.lit(f'{{"{_BEGIN}":['), text, F.lit(f',{{"{_END}":true}}]}}'))
    parsed = F.from_json(around, schema, _options())
    read, raw = F.col(_PARSED).getField(_BEGIN), F.col(_TEXT)
    row = F.get(read, 0)
    whole = (
        F.col(_PARSED).getField(_CORRUPT).isNull()
        & (F.size(read) == 2)
        & row.isNotNull()
        & F.get(read, 1).getField(_END)
    )
    halves = raw.contains("\\u") & F.replace(raw, F.lit("\\\\"), F.lit("")).rlike(_HALVES)
    broken = [~F.coalesce(whole, F.lit(False)), ~F.is_valid_utf8(raw), halves]
    return parsed, [row.getField(name) for name in names.values()], broken


def _csv(
    text: Column, stream: Stream | Table, names: Mapping[str, str], how: TextFormat
) -> tuple[Column, list[Column], list[Column]]:
    """The same of CSV, whose columns go by position."""
    columns = [(f"c{place}", reading_type(field.type)) for place, field in enumerate(stream.schema)]
    schema = [f"{name} {kind.simpleString()}" for name, kind in columns]
    options = {**_options(), "delimiter": how.delimiter, "escape": '"'}
    parsed = F.from_csv(text, ", ".join([*schema, f"{backquoted(_CORRUPT)} string"]), options)
    row, raw = F.col(_PARSED), F.col(_TEXT)
    broken = [row.isNull() | row.getField(_CORRUPT).isNotNull(), raw.isNull() | ~F.is_valid_utf8(raw)]
    return parsed, [row.getField(name) for name, _ in columns], broken


def _options() -> dict[str, str]:
    """What both formats are read with. Quotes are those of JSON: all who read a line take it alike."""
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "timeZone": "UTC",
        "allowSingleQuotes": "false",
    }


# Files of CSV, read by Spark's own source: it knows which lines are headers.


def csv_options(*, header: bool, delimiter: str) -> dict[str, Any]:
    """How Spark reads a CSV file for `parse_csv`; with these alone, `columns` are the names in the header, as
    `csv_schema` takes them."""
    return {
        **_options(),
        "header": header,
        "delimiter": _as_bytes(delimiter),
        "escape": '"',
        "encoding": _BYTES,
        "enforceSchema": False,
        "columnPruning": False,
    }


def csv_schema(stream: Stream | Table, columns: Sequence[str] | None, where: str) -> T.StructType:
    """The columns to read a CSV file with: those in its header, or, without one, the declared ones."""
    declared = {field.name: reading_type(field.type) for field in stream.schema}
    if columns is None:
        fields = [T.StructField(_as_bytes(name), kind) for name, kind in declared.items()]
    else:
        names = match_names(stream, {_as_text(name, where): None for name in columns}, where)
        given: dict[str, T.DataType] = {theirs: declared[ours] for ours, theirs in names.items()}
        fields = [T.StructField(name, given.get(_as_text(name, where), T.StringType())) for name in columns]
    return T.StructType([*fields, T.StructField(_CORRUPT, T.StringType())])


def parse_csv(
    frame: DataFrame,
    how: TextFormat,
    stream: Stream | Table,
    order: Sequence[Column],
    place: Column,
    where: str,
) -> DataFrame:
    """The stream's columns out of a frame that was read with `csv_options` and `csv_schema`, and after them
    those of `order`."""
    given = {_as_text(name, where): name for name in frame.columns if name != _CORRUPT}
    names = match_names(stream, given, where)
    raw, broken = [], [F.col(_CORRUPT).isNotNull()]
    for field in stream.schema:
        column = F.col(backquoted(given[names[field.name]]))
        if isinstance(reading_type(field.type), T.StringType):
            column = F.encode(column, _BYTES).cast("string")
            broken.append(F.coalesce(~F.is_valid_utf8(column), F.lit(False)))
        raw.append(column)
    line = F.encode(F.col(_CORRUPT), _BYTES).cast("string")
    header = tuple(given)
    shape = RowShape.of(stream, "csv", names, delimiter=how.delimiter, in_lines=True, header=header)
    return _rows(frame, raw, broken, how, stream, partial(telling, shape, place, line, raw), order)


def _as_bytes(text: str) -> str:
    """A text as Spark sees it where every byte is a character."""
    return text.encode().decode(_BYTES)


def _as_text(name: str, where: str) -> str:
    """And back."""
    try:
        return name.encode(_BYTES).decode()
    except UnicodeError:
        raise SourceError(
            f"the name of a column of {where} is not valid UTF-8: {name!r}",
            code="bad-files",
            hint="write the file in UTF-8",
        ) from None


# Values.


def reading_type(kind: DataType) -> T.DataType:
    """The type that values of a declared type are read with: times as text, since a parser would take any
    number; and the least integers as wider ones, since the JSON parser takes 200 for -56."""
    match kind.kind:
        case Kind.TIMESTAMP:
            return T.StringType()
        case Kind.TINYINT:
            return T.ShortType()
        case Kind.ARRAY if kind.is_map:
            return T.MapType(reading_type(kind.key), reading_type(kind.value))
        case Kind.ARRAY:
            return T.ArrayType(reading_type(kind.element))
        case Kind.STRUCT:
            return T.StructType([T.StructField(name, reading_type(inner)) for name, inner in kind.fields])
        case _:
            return to_spark(kind)


def _converted(
    frame: DataFrame, stream: Stream | Table, read: Sequence[Column]
) -> tuple[list[Column], list[Column]]:
    """The declared values of what was read, and the conditions under which there are none."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    forms = dict(stream.forms)
    pairs: list[tuple[Column, Column | None]] = []
    for column, field in zip(read, stream.schema, strict=True):
        form = forms.get(field.name)
        if form is not None:
            value = timed(frame, stream, column, form)
            pairs.append((value, column.isNotNull() & value.isNull()))
        else:
            pairs.append(_value(column, field.type, is_utc=zone in ZONES_OF_UTC))
    return [value for value, _ in pairs], [fault for _, fault in pairs if fault is not None]


def _value(read: Column, kind: DataType, *, is_utc: bool) -> tuple[Column, Column | None]:
    given = reading_type(kind)
    if kind.is_map:
        read, given = without_maps(read, given), T.ArrayType(reading_type(kind.element))
    if given == to_spark(kind):
        return read, None
    if kind.kind is Kind.ARRAY:
        inner = kind.fields[0][1]
        values = F.transform(read, lambda each: _value(each, inner, is_utc=is_utc)[0])
        faulty = F.exists(read, lambda each: _fault(each, inner, is_utc=is_utc))
        return values, F.coalesce(faulty, F.lit(False))
    if kind.kind is Kind.STRUCT:
        parts = [(name, *_value(read.getField(name), inner, is_utc=is_utc)) for name, inner in kind.fields]
        fields = [value.alias(name) for name, value, _ in parts]
        faults = [fault for _, _, fault in parts if fault is not None]
        return F.when(read.isNotNull(), F.struct(*fields)), reduce(or_, faults)
    if kind.kind is Kind.TINYINT:
        value = read.try_cast("tinyint")
    else:
        value = _instant(read, is_utc=is_utc)
    return value, read.isNotNull() & value.isNull()


def _fault(read: Column, kind: DataType, *, is_utc: bool) -> Column:
    fault = _value(read, kind, is_utc=is_utc)[1]
    return F.lit(False) if fault is None else fault


def _instant(text: Column, *, is_utc: bool) -> Column:
    """The time that a text says, in UTC if it names no zone; NULL for one without a date, or a number.

    A cast takes the session's zone. Where that is another, a parser is asked, which can be told.
    """
    if is_utc:
        return F.when(text.rlike(TIME), text.try_cast("timestamp"))
    options = {**_options(), "delimiter": "\x01"}
    parsed = F.from_csv(text, f"t timestamp, {backquoted(_CORRUPT)} string", options)
    return F.when(text.rlike(TIME) & parsed.getField(_CORRUPT).isNull(), parsed.getField("t"))


def _rows(
    frame: DataFrame,
    read: Sequence[Column],
    broken: Sequence[Column],
    how: TextFormat,
    stream: Stream | Table,
    told: Callable[..., Column],
    order: Sequence[Column],
) -> DataFrame:
    """The declared columns out of what was read, and after them those of `order`. Under a fault there is an
    error, or, where such rows are left out, none, or, where they are handed on, one without values that tells
    of it.

    A row is one expression, so that no column can be had without the check. It looks as if it could change:
    otherwise Spark would parse a text once more for every condition that it moves below.
    """
    values, faults = _converted(frame, stream, read)
    faulty = reduce(or_, [*broken, *faults]) | (F.rand(0) < 0)
    fields = [f"c{place}" for place in range(len(values))]
    good = [value.alias(name) for name, value in zip(fields, values, strict=True)]
    last = [MALFORMED] if hands_on(stream, how.malformed) else []
    if last:
        kinds = zip(fields, stream.schema, strict=True)
        nothing = [F.lit(None).cast(to_spark(field.type)).alias(name) for name, field in kinds]
        text = told(most=None) if how.malformed == "to" else F.lit("")
        bad = F.struct(*nothing, text.alias(MALFORMED))
        row = F.when(faulty, bad).otherwise(F.struct(*good, F.lit(None).cast("string").alias(MALFORMED)))
    elif how.malformed == "drop":
        row = F.when(~faulty, F.struct(*good))
    else:
        row = F.when(faulty, F.raise_error(told())).otherwise(F.struct(*good))
    rows = frame.select(row.alias(_ROW), *order)
    parts = zip([*fields, *last], [*stream.schema.names, *last], strict=True)
    columns = [F.col(_ROW).getField(part).alias(name) for part, name in parts]
    return rows.where(F.col(_ROW).isNotNull()).select(*columns, *map(F.col, rows.columns[1:]))


def check_flat(stream: Stream | Table, where: str) -> None:
    """Refuse columns that a line of CSV cannot hold."""
    for field in stream.schema:
        if field.type.kind in (Kind.ARRAY, Kind.STRUCT, Kind.BINARY):
            raise SourceError(
                f"column `{field.name}` of {stream.title} is {field.type}, which {where} cannot hold",
                code="column-type",
                hint="read it as STRING, or use json or parquet",
            )
