"""Inference: the columns of a source whose declaration names none, told from its first rows.

Parquet files and generators have types of their own. A CSV value is what its text looks like, a JSON value
what it is, times are recognised in both. Where rows disagree the wider type is taken, and STRING if there is
none.

>>> widest(["1", "2.5", ""]), widest(["2024-01-31", "2024-01-31 07:00:00"]), widest(["007", "8"])
(DOUBLE, TIMESTAMP, STRING)
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.algebra import types as dt
from windrow.errors import QueryError
from windrow.spark.sources import data, listing, urls

#: so many rows, of so many files, are looked at
_ROWS, _FILES = 10_000, 3
_DATE = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
#: what a text looks like, the first that fits; a number with a leading zero is a code, not a number
_LOOKS = {
    re.compile(look): kind
    for look, kind in {
        "": dt.NULL,
        r"(?i)true|false": dt.BOOLEAN,
        r"[+-]?(0|[1-9]\d{0,17})": dt.BIGINT,
        r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?": dt.DOUBLE,
        _DATE: dt.DATE,
        _DATE + r"[T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?": dt.TIMESTAMP,
    }.items()
}


def infer_columns(kind: str, name: str, source: str) -> list[tuple[str, str]]:
    """The columns of what stands after FROM: names, and types as they are written."""
    url = urls.parse_url(source)
    changelog = url.options.pop("changelog", None) if kind == "TABLE" else None
    if url.scheme == "generator":
        found = _of_arrow(urls.read_generator_url(url).generator.schema)
    elif url.scheme == "files":
        found = _of_files(kind, name, urls.read_files_url(url))
    else:
        raise _cannot(kind, name, f"`{url.scheme}:` has no rows to look at before it runs")
    if changelog == "debezium":
        wrapped = found.get("payload")
        envelope = found if wrapped is None or wrapped.kind is not dt.Kind.STRUCT else dict(wrapped.fields)
        found = dict(envelope["after"].fields) if "after" in envelope else {}
        if not found:
            raise _cannot(kind, name, "no change has an `after`")
    elif changelog is not None:
        found.pop("op", None)
    return [(column, str(each)) for column, each in found.items()]


def widest(texts: Iterable[str]) -> dt.DataType:
    """The type that all of these texts are values of; an empty one is NULL."""
    return _known(reduce(_common, map(_looks, texts), dt.NULL))


def _of_files(declared: str, name: str, wanted: urls.FilesUrl) -> dict[str, dt.DataType]:
    if not listing.is_local(wanted.place):
        raise _cannot(declared, name, "files elsewhere are not looked at before it runs")
    paths = [Path(file.path) for file in islice(listing.local_files(wanted.place), _FILES)]
    if not paths:
        raise _cannot(declared, name, f"there is no file `{wanted.place}` yet")
    kind = wanted.format or urls.format_of(paths[0].name)
    if kind == "parquet":
        return _of_arrow(pq.read_schema(paths[0]))
    if kind is None:
        raise _cannot(declared, name, f"nothing says how `{paths[0]}` is written: say `?format=csv`")
    found = _of_csv(paths, wanted) if kind == "csv" else _of_json(paths)
    if not found:
        raise _cannot(declared, name, f"`{paths[0]}` has no rows yet")
    return found


def _of_arrow(schema: pa.Schema) -> dict[str, dt.DataType]:
    return {field.name: field.type for field in data.infer_schema(schema.empty_table())}


def _of_csv(paths: list[Path], wanted: urls.FilesUrl) -> dict[str, dt.DataType]:
    texts: dict[str, list[str]] = {}
    for path in paths:
        rows = csv.reader(_lines(path), delimiter=wanted.delimiter)
        names = next(rows, []) if wanted.header else None
        for row in islice(rows, _ROWS):
            names = names or [f"_c{place}" for place in range(len(row))]
            for column, text in zip(names, row, strict=False):
                texts.setdefault(column, []).append(text)
        texts = {name: [] for name in names or ()} | texts
    return {column: widest(found) for column, found in texts.items()}


def _of_json(paths: list[Path]) -> dict[str, dt.DataType]:
    row = dt.NULL
    for line in chain.from_iterable(islice(filter(str.strip, _lines(path)), _ROWS) for path in paths):
        try:
            row = _common(row, _of_value(json.loads(line)))
        except (ValueError, RecursionError):
            continue  # whoever reads the row says what is wrong with it
    return {} if row.kind is not dt.Kind.STRUCT else dict(_known(row).fields)


def _lines(path: Path) -> Iterator[str]:
    with pa.input_stream(str(path), compression="detect") as stream:
        yield from io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")


def _looks(text: str) -> dt.DataType:
    return next((kind for look, kind in _LOOKS.items() if look.fullmatch(text)), dt.STRING)


def _of_value(value: Any) -> dt.DataType:
    match value:
        case None:
            return dt.NULL
        case bool():
            return dt.BOOLEAN
        case int():
            return dt.BIGINT if abs(value) < 1 << 63 else dt.DOUBLE
        case float():
            return dt.DOUBLE
        case str():
            kind = _looks(value)
            return kind if kind.is_time else dt.STRING
        case list():
            return dt.array(reduce(_common, map(_of_value, value), dt.NULL))
    return dt.struct(**{name: _of_value(each) for name, each in value.items()}) if value else dt.NULL


def _common(left: dt.DataType, right: dt.DataType) -> dt.DataType:
    """The type of values of both."""
    if left.kind is right.kind is dt.Kind.ARRAY:
        return dt.array(_common(left.element, right.element))
    if left.kind is right.kind is dt.Kind.STRUCT:
        some, more = dict(left.fields), dict(right.fields)
        pairs = {name: (some.get(name, dt.NULL), more.get(name, dt.NULL)) for name in some | more}
        return dt.struct(**{name: _common(*pair) for name, pair in pairs.items()})
    return dt.common_type(left, right) or dt.STRING


def _known(kind: dt.DataType) -> dt.DataType:
    """A type of values, also where all that were seen are NULL."""
    if kind == dt.NULL:
        return dt.STRING
    if kind.kind is dt.Kind.ARRAY:
        return dt.array(_known(kind.element))
    if kind.kind is dt.Kind.STRUCT:
        return dt.struct(**{name: _known(inner) for name, inner in kind.fields})
    return kind


def _cannot(kind: str, name: str, why: str) -> QueryError:
    return QueryError(
        f"the columns of `{name}` cannot be told: {why}",
        code="no-columns",
        hint=f"declare them: CREATE {kind} {name} (column TYPE, …)",
    )
