"""Rows in and out: JSON, CSV and Arrow, chosen by `Accept` and `Content-Type`."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64decode
from binascii import Error as NoBase64
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from windrow.algebra import DataType, Kind, Stream
from windrow.algebra.values import canonical_row
from windrow.errors import DataError, nearest
from windrow.kernels.columnar.columns import frame_of, published, rows_schema
from windrow.sinks.files import csv_header, csv_lines
from windrow.sinks.json_rows import json_line, json_rows

JSON, CSV, ARROW = "application/json", "text/csv", "application/vnd.apache.arrow.stream"
LINES = "application/x-ndjson"
#: what is written, the first where anything will do
WRITTEN = (JSON, CSV, ARROW)
#: how bodies of rows may be called
READ: Mapping[str, str] = {
    LINES: LINES,
    "application/jsonl": LINES,
    "application/jsonlines": LINES,
    JSON: JSON,
    CSV: CSV,
    ARROW: ARROW,
}


def chosen(accept: str | None) -> str | None:
    """The form that a client likes best; None if it takes none of them.

    >>> chosen("text/csv;q=0.5, application/vnd.apache.arrow.stream"), chosen("*/*"), chosen("image/png")
    ('application/vnd.apache.arrow.stream', 'application/json', None)
    """
    wishes: list[tuple[float, int, str]] = []
    for place, wish in enumerate((accept or "*/*").split(",")):
        name, *parameters = (part.strip().lower() for part in wish.split(";"))
        wishes.append((-_quality(parameters), place, name))
    for quality, _, name in sorted(wishes):
        if quality == 0:
            continue
        for form in WRITTEN:
            if name in (form, "*/*", f"{form.partition('/')[0]}/*"):
                return form
    return None


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": str(field.type)} for field in schema]


def as_json_rows(table: pa.Table) -> list[dict[str, Any]]:
    return list(json_rows(table))


def as_csv(table: pa.Table) -> bytes:
    return "\n".join([csv_header(table.schema), *csv_lines(table), ""]).encode()


def as_arrow(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def as_json(value: Any) -> bytes:
    return json_line(value).encode()


# ------------------------------------------------------------ rows that come in


def read_rows(stream: Stream, form: str, body: bytes) -> pa.Table:
    """The rows of a body as a table with just the columns of the stream; an error names line and column."""
    if form == ARROW:
        return _from_arrow(stream, body)
    lines = {CSV: _csv_rows, LINES: _json_lines, JSON: _json_array}[form](stream, body)
    names = {name.lower(): name for name in stream.schema.names}
    rows = [_row(stream, names, number, found, from_text=form == CSV) for number, found in lines]
    return published(frame_of(stream.schema, rows).to_arrow(), rows_schema(stream.schema))


def _row(
    stream: Stream, names: Mapping[str, str], number: int, found: Any, *, from_text: bool
) -> tuple[Any, ...]:
    where = f"row {number} for stream `{stream.name}`"
    if not isinstance(found, dict):
        raise _malformed(f"{where} is no object", 'a row is written {"column": value, …}')
    given: dict[str, Any] = {}
    for name, value in found.items():
        known = names.get(str(name).lower())
        if known is None:
            hint = nearest(str(name), stream.schema.names)
            raise DataError(
                f"{where}: there is no column `{str(name)[:80]}`", code="unknown-column", hint=hint
            )
        given[known] = value
    values = [
        _value(given.get(field.name), field.type, f"{where}: `{field.name}`", from_text=from_text)
        for field in stream.schema
    ]
    if stream.wattr in stream.schema.names and given.get(stream.wattr) is None:
        raise DataError(
            f"{where} has no `{stream.wattr}`, which says when it is",
            code="null-wattr",
            hint="every row needs it",
        )
    return canonical_row(stream.schema, values, where)


def _value(value: Any, kind: DataType, where: str, *, from_text: bool) -> Any:
    if value is None or (from_text and value == "" and kind.kind is not Kind.STRING):
        return None
    try:
        return _read(value, kind, from_text=from_text)
    except (ValueError, InvalidOperation, OverflowError, NoBase64, TypeError):
        raise _malformed(
            f"{where} is {kind}, but the value is {str(value)[:60]!r}",
            "times are written 2026-03-02T09:15:00Z or in microseconds since 1970",
        ) from None


def _malformed(message: str, hint: str) -> DataError:
    return DataError(message, code="malformed-row", hint=hint)


def _read(value: Any, kind: DataType, *, from_text: bool) -> Any:
    match kind.kind:
        case Kind.TIMESTAMP if isinstance(value, str):
            return _moment(value)
        case Kind.DATE if isinstance(value, str):
            return date.fromisoformat(value)
        case Kind.DECIMAL if isinstance(value, str | int | float) and not isinstance(value, bool):
            return Decimal(str(value))
        case Kind.BINARY if isinstance(value, str):
            return b64decode(value, validate=True)
        case Kind.FLOAT | Kind.DOUBLE if isinstance(value, str):
            if not from_text and value not in ("NaN", "Infinity", "-Infinity"):
                raise ValueError(value)
            return float(value)
        case Kind.BOOLEAN if from_text:
            return {"true": True, "false": False}.get(value.lower(), value)
        case Kind.STRING:
            return value
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT if from_text:
            return int(value)
        case Kind.ARRAY | Kind.STRUCT if from_text:
            return json.loads(value)
    return value


def _moment(text: str) -> datetime | int:
    if text.lstrip("-").isdigit():
        return int(text)
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _json_lines(stream: Stream, body: bytes) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(body.split(b"\n"), start=1):
        if line.strip():
            yield number, _parsed(stream, line, f"line {number}")


def _json_array(stream: Stream, body: bytes) -> Iterator[tuple[int, Any]]:
    found = _parsed(stream, body, "the body")
    rows = found.get("rows", [found]) if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise _malformed(
            f"the body for stream `{stream.name}` is no list of rows", 'send [{"column": value, …}, …]'
        )
    yield from enumerate(rows, start=1)


def _parsed(stream: Stream, text: bytes, where: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise _malformed(
            f"{where} for stream `{stream.name}` is no JSON: {str(error)[:120]}",
            f'send rows as {{"{stream.wattr}": …}}, one on each line',
        ) from None


def _no_constant(name: str) -> Any:
    raise ValueError(f'{name} is no JSON; write it as a text: "{name}"')


def _csv_rows(stream: Stream, body: bytes) -> Iterator[tuple[int, Any]]:
    try:
        reader = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        header = next(reader, None)
        if header is None:
            return
        for number, cells in enumerate(reader, start=2):
            if not cells:
                continue
            if len(cells) != len(header):
                raise _malformed(
                    f"line {number} has {len(cells)} values, the header {len(header)}",
                    "the first line names the columns",
                )
            yield number, dict(zip(header, cells, strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise _malformed(f"the body for stream `{stream.name}` is no CSV: {error}", "send UTF-8") from None


def _from_arrow(stream: Stream, body: bytes) -> pa.Table:
    wanted = rows_schema(stream.schema)
    try:
        with pa.ipc.open_stream(body) as reader:
            found = reader.read_all()
        found.validate(full=True)
        names = {name.lower(): name for name in found.column_names}
        missing = [each.name for each in wanted if each.name.lower() not in names]
        if missing or len(names) != len(wanted):
            raise DataError(
                f"the columns for stream `{stream.name}` are {', '.join(wanted.names)}",
                code="unknown-column",
                hint=f"the table has {', '.join(found.column_names)[:200]}",
            )
        columns = [found[names[each.name.lower()]].cast(each.type) for each in wanted]
    except (pa.ArrowException, OSError) as error:
        raise _malformed(
            f"the body for stream `{stream.name}` is no Arrow stream of its rows: {str(error)[:200]}",
            "send an IPC stream with the columns of the stream",
        ) from None
    table = pa.Table.from_arrays(columns, schema=wanted)
    if stream.wattr in wanted.names and table[stream.wattr].null_count:
        raise DataError(f"a row for stream `{stream.name}` has no `{stream.wattr}`", code="null-wattr")
    return table
