"""Malformed rows: what is wrong with a text that is no row of its stream, said by column and value.

Whoever reads texts hands on those that are no rows, each as one line: what it should have been, where it is
from, and its text or its values. Under `malformed=fail` the line is the error of the job; otherwise it stands
in a column beside the declared ones, is counted by a task, and goes to a sink if there is one.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import unquote

import polars as pl
import pyarrow as pa

from windrow.algebra.catalog import EPOCHS, Stream, Table, form_text, split_form
from windrow.algebra.functions.time_patterns import reader
from windrow.algebra.types import DataType, Kind, parse_type
from windrow.errors import WindrowError
from windrow.kernels.intake import off_grid
from windrow.state.names import RESERVED

#: the column that tells of rows that are none: NULL in all others, empty where nobody asks what is wrong
MALFORMED = f"{RESERVED}malformed"
#: begins the text that tells of a row; Spark's own parsers have a name that is much the same
MARK = "WINDROW_MALFORMED_RECORD"
_TOLD = re.compile(MARK + r" ([0-9A-F]+):([0-9A-F]*):([0-9A-F]*|-):([0-9A-F,-]*)")
#: so many characters of a value are shown
_SHOWN = 80
#: what a time begins with that is no number, and no mere time of some day
TIME = r"^\s*[+-]?[0-9]{4,}-"
#: what a sink of malformed rows gets
LETTERS = pa.schema([(name, pa.string()) for name in ("source", "column", "reason", "text")])


def malformed_section(stream: str) -> str:
    """What malformed rows of a stream are filed under in outbox files; no query can be called that."""
    return f"{RESERVED}malformed rows of {stream}"


@dataclass(frozen=True)
class RowShape:
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
    def of(
        cls, stream: Stream | Table, kind: str, names: dict[str, str] | None = None, **how: Any
    ) -> RowShape:
        """The shape of a stream's rows, whose columns may have other names in the source."""
        known, forms = names or {}, dict(stream.forms)
        columns = tuple(
            (f.name, known.get(f.name, f.name), str(f.type), forms.get(f.name)) for f in stream.schema
        )
        return cls(stream.title, kind, columns, **how)


@dataclass(frozen=True)
class Told:
    """A row that is none, as it was told: its text, or else its values."""

    shape: RowShape
    place: str
    raw: bytes | None
    values: list[bytes | None]

    @classmethod
    def find(cls, text: str) -> Told | None:
        """The first one that a text tells of."""
        found = _TOLD.search(text)
        if found is None:
            return None
        known = json.loads(bytes.fromhex(found[1]))
        shape = RowShape(**{**known, "columns": tuple(map(tuple, known["columns"]))})
        place = bytes.fromhex(found[2]).decode("utf-8", "backslashreplace")
        raw = None if found[3] == "-" else bytes.fromhex(found[3])
        values = (
            [None if part == "-" else bytes.fromhex(part) for part in found[4].split(",")] if found[4] else []
        )
        return cls(shape, place, raw, values)

    @property
    def fault(self) -> RowFault:
        """What is wrong with it."""
        if self.raw is None and self.values:
            texts = [
                None if value is None else value.decode("utf-8", "surrogateescape") for value in self.values
            ]
            row = dict(zip((name for name, *_ in self.shape.columns), texts, strict=False))
            return _first_fault(self.shape, row, self.shape.delimiter.join(text or "" for text in texts))
        if not (raw := self.raw or b"").strip():
            return RowFault(f"an empty text is no row of {self.shape.title}")
        text = raw.decode("utf-8", "surrogateescape")
        return (
            _fault_of_json(self.shape, text) if self.shape.kind == "json" else _fault_of_csv(self.shape, text)
        )

    @property
    def where(self) -> str:
        """Where it is from, for people: a file by its path."""
        found = re.fullmatch(r"file:(?://)?(/.*)", self.place)
        return unquote(found[1]) if found else self.place

    @property
    def text(self) -> str:
        """The row as it stands in the source, as far as it is text; values of CSV are put together again."""
        if self.raw is not None or not self.values:
            return (self.raw or b"").decode("utf-8", "backslashreplace")
        texts = ["" if value is None else value.decode("utf-8", "backslashreplace") for value in self.values]
        written = io.StringIO()
        csv.writer(written, delimiter=self.shape.delimiter, lineterminator="").writerow(texts)
        return written.getvalue()


def letters(told: Iterable[str | None]) -> pa.Table:
    """Malformed rows as a sink gets them: where each is from, in which column what is wrong, and its text."""
    known = [found for text in told if text and (found := Told.find(text)) is not None]
    return _letters((each.where, (fault := each.fault).column, fault.text, each.text) for each in known)


def stray_letters(stream: Stream, rows: pl.DataFrame) -> pa.Table:
    """The same of rows whose windowing attribute is no multiple of its RESOLUTION."""
    texts = (",".join("" if value is None else str(value) for value in row) for row in rows.rows())
    reasons = (off_grid(stream, value).message for value in rows[stream.wattr])
    return _letters(("", stream.wattr, *each) for each in zip(reasons, texts, strict=True))


def _letters(rows: Iterable[tuple[str | None, ...]]) -> pa.Table:
    named = [dict(zip(LETTERS.names, row, strict=True)) for row in rows]
    return pa.Table.from_pylist(named, schema=LETTERS)


@dataclass(frozen=True)
class RowFault:
    """What is wrong with a row, and in which column."""

    text: str
    column: str | None = None
    hint: str | None = None


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _fault_of_json(shape: RowShape, text: str) -> RowFault:
    try:
        row = json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            more = _shown(text[error.pos :])
            return RowFault(f"after the object there is more: {more}", hint="write one object in each line")
        return RowFault(f"{_shown(text)} is no JSON object: {error.msg} (character {error.pos + 1:,})")
    except RecursionError:
        return RowFault(f"{_shown(text)} is nested too deeply")
    if not isinstance(row, dict):
        return RowFault(f"{_shown(text)} is no JSON object", hint="write one object in each line")
    return _first_fault(shape, {name: row.get(key) for name, key, *_ in shape.columns}, text)


def _fault_of_csv(shape: RowShape, text: str) -> RowFault:
    values = csv_values(text, shape.delimiter)
    header = shape.header or [key for _, key, *_ in shape.columns]
    if len(values) != len(header):
        counts = f"{len(values)} value{'s' * (len(values) != 1)}, not {len(header)}"
        return RowFault(f"{_shown(text)} has {counts}")
    row = dict(zip(header, values, strict=True))
    return _first_fault(shape, {name: row.get(key) or None for name, key, *_ in shape.columns}, text)


def _first_fault(shape: RowShape, values: dict[str, Any], text: str) -> RowFault:
    for name, _, kind, form in shape.columns:
        fault = _misfit(values.get(name), kind, form, name, is_json=shape.kind == "json")
        if fault is not None:
            return fault
    return RowFault(f"{_shown(text)} is no row of {shape.title}")


def _misfit(value: Any, kind: str, form: str | None, name: str, *, is_json: bool) -> RowFault | None:
    """What is wrong with a value, if anything is."""
    if value is None:
        return None
    shown = _shown(value if isinstance(value, str) else _written(value))
    if isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value):
        return RowFault(f"{shown} is not valid UTF-8", name, "write the text in UTF-8")
    try:
        known = parse_type(kind)
    except WindrowError:  # arrays and structs
        return None if isinstance(value, list | dict) else RowFault(f"{shown} is no {kind}", name)
    if form is not None:
        return None if _is_in(value, form) else RowFault(f"{shown} is no time in {form_text(form)}", name)
    if known.kind is Kind.TIMESTAMP and _is_number(value):
        forms = " or ".join(f"'{each}'" for each in EPOCHS)
        text = f"the number {shown} is no TIMESTAMP: seconds, milliseconds or microseconds?"
        return RowFault(text, name, f"declare `{name} TIMESTAMP FORMAT {forms}`")
    if not _fits(value, known):
        return RowFault(f"{shown} is no {kind}", name)
    if is_json and _is_quoted(value) and known.kind in _UNQUOTED:
        hint = f"write it without quotes, or declare `{name} STRING`"
        return RowFault(f"the text {shown} is no {kind}", name, hint)
    return None


#: what JSON has words of its own for
_UNQUOTED = (Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT, Kind.FLOAT, Kind.DOUBLE)


def _is_quoted(value: Any) -> bool:
    """Whether a value of JSON is a text, and none of those that stand for numbers without digits."""
    is_text = isinstance(value, str) and not isinstance(value, _Number)
    return is_text and value not in ("NaN", "Infinity", "-Infinity", "+Infinity", "INF", "-INF", "+INF")


def _written(value: Any, levels: int = 20) -> str:
    """A value of JSON as JSON again, its numbers as they were, as far as anybody looks."""
    if isinstance(value, dict | list) and not levels:
        return "…"
    match value:
        case _Number():
            return str(value)
        case dict():
            parts = (f"{json.dumps(key)}: {_written(each, levels - 1)}" for key, each in value.items())
            return "{" + ", ".join(parts) + "}"
        case list():
            return "[" + ", ".join(_written(each, levels - 1) for each in value) + "]"
    return json.dumps(value)


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
        return not isinstance(value, bool) and abs(Decimal(value) * EPOCHS[form]) < 1 << 63
    except (InvalidOperation, TypeError, ValueError):
        return False


def csv_values(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except (csv.Error, TypeError):  # a delimiter of several characters
        return text.split(delimiter)


def _shown(text: str) -> str:
    """A value as it is shown: short, in one line, and bytes that are no text as such."""
    # whether all surrogates stand for bytes that are no UTF-8
    is_escaped = all("\udc80" <= char <= "\udcff" for char in text if "\ud800" <= char <= "\udfff")
    shown = text.encode("utf-8", "surrogateescape" if is_escaped else "backslashreplace")
    known = shown.decode("utf-8", "backslashreplace")
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in known)
    return f"`{plain[:_SHOWN]}{'…' if len(plain) > _SHOWN else ''}`"
