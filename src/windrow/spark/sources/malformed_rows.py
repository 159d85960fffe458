"""A row that cannot be read: how a job tells of it, and what the user is told.

The job raises one error whose text carries the row as it stands in the source. What is wrong with it, and in
which line of the file it is, is found out afterwards, by the driver.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from windrow.algebra.catalog import EPOCHS, form_text, split_form
from windrow.algebra.functions.time_patterns import reader
from windrow.algebra.types import DataType, Kind, parse_type
from windrow.errors import DataError, WindrowError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from windrow.algebra.catalog import Stream, Table

#: begins the text of the error; Spark's own parsers have a name that is much the same
MARK = "WINDROW_MALFORMED_RECORD"
_TOLD = re.compile(MARK + r" ([0-9A-F]+):([0-9A-F]*):([0-9A-F]*|-):([0-9A-F,-]*)")
#: so many bytes of a row travel with the error, and so many characters of a value are shown
_MOST_BYTES, _SHOWN = 1 << 14, 80
#: so many lines that might be the one are looked at
_CANDIDATES = 1000
#: what a time begins with that is no number, and no mere time of some day
TIME = r"^\s*[+-]?[0-9]{4,}-"


@dataclass(frozen=True)
class Shape:
    """What a row should have been. `kind` is `json`, `csv`, or `values` where there is no text."""

    title: str
    kind: str
    #: name, name in the source, type and form of each column
    columns: tuple[tuple[str, str, str, str | None], ...]
    delimiter: str = ","
    #: whether rows are lines of files
    in_lines: bool = False
    #: the columns of a CSV text in its order, if it is not the declared one
    header: tuple[str, ...] | None = None

    @classmethod
    def of(cls, stream: Stream | Table, kind: str, names: dict[str, str] | None = None, **how: Any) -> Shape:
        """The shape of a stream's rows, whose columns may have other names in the source."""
        known, forms = names or {}, dict(stream.forms)
        columns = tuple(
            (f.name, known.get(f.name, f.name), str(f.type), forms.get(f.name)) for f in stream.schema
        )
        return cls(stream.title, kind, columns, **how)


def file_of(frame: DataFrame) -> Column:
    """The path of a row's file, whatever the columns of the files are called."""
    return frame.metadataColumn("_metadata").getField("file_path")


def row_of() -> Column:
    """The path of a row's Parquet file, and which of its rows it is: of any frame of files."""
    return F.expr("concat(_metadata.file_path, ', row ', _metadata.row_index + 1)")


def raised(
    shape: Shape, place: Column | None, text: Column | None = None, values: Sequence[Column] = ()
) -> Column:
    """Raises the error of a row: where it comes from, and its text or else its values."""
    constant = json.dumps(vars(shape)).encode().hex().upper()
    parts = [F.lit(f"{MARK} {constant}:"), _hex(place, ""), F.lit(":"), _hex(text, "-"), F.lit(":")]
    if values:
        parts.append(F.concat_ws(",", *(_hex(value, "-") for value in values)))
    return F.raise_error(F.concat(*parts))


def _hex(value: Column | None, without: str) -> Column:
    if value is None:
        return F.lit(without)
    return F.coalesce(F.hex(F.substring(value.cast("string").cast("binary"), 1, _MOST_BYTES)), F.lit(without))


def told(text: str, what: str) -> WindrowError | None:
    """The error of a row that could not be read, out of what Spark says of a failed job."""
    found = _TOLD.search(text)
    if found is None:
        return None
    known = json.loads(bytes.fromhex(found[1]))
    shape = Shape(**{**known, "columns": tuple(map(tuple, known["columns"]))})
    place = bytes.fromhex(found[2]).decode("utf-8", "backslashreplace")
    raw = None if found[3] == "-" else bytes.fromhex(found[3])
    values = [None if part == "-" else bytes.fromhex(part) for part in found[4].split(",")]
    fault = _fault_of_text(shape, raw) if raw is not None or not found[4] else _fault_of_values(shape, values)
    where = _shown_place(place)
    if shape.in_lines:
        line = _line(place, shape, raw, values)
        where += f", line {line:,}" if line else ""
    column = f"column `{fault.column}`" if fault.column else ""
    begun = ", ".join(part for part in (where, column) if part)
    hint = "mend it and start again, or leave such rows out with `malformed=drop`"
    return DataError(
        f"{what}: {begun}{': ' if begun else ''}{fault.text}",
        code="malformed-row",
        hint=f"{fault.hint}; or {hint}" if fault.hint else hint,
    )


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a row, and in which column."""

    text: str
    column: str | None = None
    hint: str | None = None


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _fault_of_text(shape: Shape, raw: bytes | None) -> _Fault:
    if raw is None or not raw.strip():
        return _Fault(f"an empty text is no row of {shape.title}")
    text = raw.decode("utf-8", "surrogateescape")
    return _fault_of_json(shape, text) if shape.kind == "json" else _fault_of_csv(shape, text)


def _fault_of_json(shape: Shape, text: str) -> _Fault:
    try:
        row = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            more = _shown(text[error.pos :])
            return _Fault(f"after the object there is more: {more}", hint="write one object in each line")
        return _Fault(f"{_shown(text)} is no JSON object: {error.msg} (character {error.pos + 1:,})")
    except RecursionError:
        return _Fault(f"{_shown(text)} is nested too deeply")
    if not isinstance(row, dict):
        return _Fault(f"{_shown(text)} is no JSON object", hint="write one object in each line")
    return _first_fault(shape, {name: row.get(key) for name, key, *_ in shape.columns}, text)


def _fault_of_csv(shape: Shape, text: str) -> _Fault:
    values = _csv_values(text, shape.delimiter)
    header = shape.header or [key for _, key, *_ in shape.columns]
    if len(values) != len(header):
        counts = f"{len(values)} value{'s' * (len(values) != 1)}, not {len(header)}"
        return _Fault(f"{_shown(text)} has {counts}")
    row = dict(zip(header, values, strict=True))
    return _first_fault(shape, {name: row.get(key) or None for name, key, *_ in shape.columns}, text)


def _fault_of_values(shape: Shape, values: Sequence[bytes | None]) -> _Fault:
    names = [name for name, *_ in shape.columns]
    texts = [None if value is None else value.decode("utf-8", "surrogateescape") for value in values]
    shown = shape.delimiter.join(text or "" for text in texts)
    return _first_fault(shape, dict(zip(names, texts, strict=False)), shown)


def _first_fault(shape: Shape, values: dict[str, Any], text: str) -> _Fault:
    for name, _, kind, form in shape.columns:
        fault = _misfit(values.get(name), kind, form, name)
        if fault is not None:
            return fault
    return _Fault(f"{_shown(text)} is no row of {shape.title}")


def _misfit(value: Any, kind: str, form: str | None, name: str) -> _Fault | None:
    """What is wrong with a value, if anything is."""
    if value is None:
        return None
    shown = _shown(value if isinstance(value, str) else json.dumps(value))
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        return _Fault(f"{shown} is not valid UTF-8", name, "write the text in UTF-8")
    try:
        known = parse_type(kind)
    except WindrowError:  # arrays and structs
        return None if isinstance(value, list | dict) else _Fault(f"{shown} is no {kind}", name)
    if form is not None:
        return None if _is_in(value, form) else _Fault(f"{shown} is no time in {form_text(form)}", name)
    if known.kind is Kind.TIMESTAMP and _is_number(value):
        forms = " or ".join(f"'{each}'" for each in EPOCHS)
        text = f"the number {shown} is no TIMESTAMP: seconds, milliseconds or microseconds?"
        return _Fault(text, name, f"declare `{name} TIMESTAMP FORMAT {forms}`")
    return None if _fits(value, known) else _Fault(f"{shown} is no {kind}", name)


def _fits(value: Any, kind: DataType) -> bool:
    """Whether a value of JSON, or a text, can be of a type; in doubt it can."""
    text = value if isinstance(value, str) else json.dumps(value)
    if kind.kind in (Kind.STRING, Kind.BINARY, Kind.INTERVAL, Kind.NULL):
        return True
    if kind.kind is Kind.BOOLEAN:
        return text.lower() in ("true", "false")
    if kind.is_time:
        return re.match(TIME, text) is not None and _is_moment(text)
    try:
        number = Decimal(text)
    except InvalidOperation:
        return False
    if kind.is_integer:
        low, high = kind.bounds
        return re.fullmatch(r"[+-]?\d+", text) is not None and low <= number <= high
    if kind.kind is Kind.DECIMAL:
        whole = number.is_finite() and abs(number) < 10 ** (kind.precision - kind.scale)
        return whole and (not isinstance(value, str) or round(number, kind.scale) == number)
    return True


def _is_moment(text: str) -> bool:
    """Whether Python reads a text as a time too; Spark reads some more."""
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _is_number(value: Any) -> bool:
    if isinstance(value, _Number):
        return True
    return (
        isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+(\.\d*)?([eE][+-]?\d+)?\s*", value) is not None
    )


def _is_in(value: Any, form: str) -> bool:
    """Whether a value is a time in a form."""
    pattern, _ = split_form(form)
    if form not in EPOCHS:
        return reader(pattern)(str(value)) is not None if pattern else _is_moment(str(value))
    try:
        return abs(Decimal(value) * EPOCHS[form]) < 1 << 63
    except (InvalidOperation, TypeError, ValueError):
        return False


def _csv_values(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except (csv.Error, TypeError):  # a delimiter of several characters
        return text.split(delimiter)


def _shown(text: str) -> str:
    """A value as it is shown: short, in one line, and bytes that are no text as such."""
    shown = text.encode("utf-8", "surrogateescape" if _is_escaped(text) else "backslashreplace")
    known = shown.decode("utf-8", "backslashreplace")
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in known)
    return f"`{plain[:_SHOWN]}{'…' if len(plain) > _SHOWN else ''}`"


def _is_escaped(text: str) -> bool:
    """Whether all surrogates in a text stand for bytes that are no UTF-8."""
    return all("\udc80" <= char <= "\udcff" for char in text if "\ud800" <= char <= "\udfff")


def _shown_place(place: str) -> str:
    """
    >>> _shown_place("file:///in/a%20b.json"), _shown_place("partition 0, offset 17")
    ('/in/a b.json', 'partition 0, offset 17')
    """
    found = re.fullmatch(r"file:(?://)?(/.*)", place)
    return unquote(found[1]) if found else place


# Which line it is.


def _line(place: str, shape: Shape, raw: bytes | None, values: Sequence[bytes | None]) -> int | None:
    """The number of the first line of a file that is this row; None if it cannot be found out."""
    # a thread other than the one that made the session has none that is active
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if spark is None or not place:
        return None
    try:
        return _searched(spark, place, shape, raw, values)
    except Exception:  # noqa: BLE001  it only adds to a message, which must not get lost for it
        return None


def _searched(
    spark: SparkSession, place: str, shape: Shape, raw: bytes | None, values: Sequence[bytes | None]
) -> int | None:
    needle = raw if raw is not None else max((value for value in values if value), key=len, default=b"")
    lines = spark.read.format("text").option("__globPaths__", "false").load(unquote(place))
    block = lines.metadataColumn("_metadata").getField("file_block_start")
    # the ids of a partition's lines are without gaps, and a block is in one partition
    numbered = lines.select(block.alias("b"), F.monotonically_increasing_id().alias("i"), "value")
    blocks = numbered.groupBy("b").agg(F.min("i"), F.count("i")).orderBy("b").collect()
    candidates = (
        numbered.where(F.col("value").contains(F.lit(bytearray(needle)).cast("string")))
        .select("b", "i", F.col("value").cast("binary"))
        .orderBy("b", "i")
        .limit(_CANDIDATES)
        .collect()
    )
    before, known = 0, {}
    for start, first, count in blocks:
        known[start] = before - first + 1
        before += count
    return next((known[b] + i for b, i, line in candidates if _is_it(bytes(line), shape, raw, values)), None)


def _is_it(line: bytes, shape: Shape, raw: bytes | None, values: Sequence[bytes | None]) -> bool:
    if raw is not None:
        return line[:_MOST_BYTES] == raw
    found = _csv_values(line.decode("utf-8", "surrogateescape"), shape.delimiter)
    wanted = [(value or b"").decode("utf-8", "surrogateescape") for value in values]
    return set(wanted) <= {*found, ""}
