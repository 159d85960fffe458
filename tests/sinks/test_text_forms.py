"""Every type in JSON and in CSV: exactly as documented, and read back without loss."""

from __future__ import annotations

import csv
import io
import json
from base64 import b64decode
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.sinks.support import every_type

from windrow.errors import SinkError
from windrow.sinks.files import csv_header, csv_lines
from windrow.sinks.json_rows import json_line, json_rows

COMMON = {
    "at": "2024-05-01T12:00:00.000000Z",
    "op": "+",
    "flag": True,
    "tiny": 1,
    "small": 1,
    "whole": 1,
    "big": 1,
    "real": 0.1,
    "double": 0.1,
    "negative": -0.0,
    "money": "12.5000000000",
    "text": "plain",
    "empty": "",
    "bytes": "aGk=",
    "day": "2024-05-01T00:00:00.000000Z",
    "moment": "2024-05-01T12:00:00.000000Z",
    "date": "2024-05-01",
    "top": [{"value": 1.5, "count": 2}],
    "words": ["a", "b"],
    "pair": {"k": "a", "v": 0.1},
}
STRANGE = {
    **COMMON,
    "flag": False,
    "tiny": -128,
    "small": -32768,
    "whole": -(2**31),
    "big": -(2**63),
    "real": "Infinity",
    "double": "NaN",
    "negative": "-Infinity",
    "money": "-9999999999999999999999999999.9999999999",
    "text": 'a "quoted", line\nand\ttab, naïve Ω 🌾',
    "empty": "NULL",
    "bytes": "AP8K",
    "day": "0001-01-01T00:00:00.000000Z",
    "moment": "2024-05-01T12:00:00.000001Z",
    "date": "1969-12-31",
    "top": [{"value": "NaN", "count": None}, None],
    "words": [],
    "pair": {"k": None, "v": None},
}
NULLS = {**dict.fromkeys(COMMON), "at": COMMON["at"], "op": "-"}


def test_every_type_as_a_line_of_json() -> None:
    lines = [json_line(row) for row in json_rows(every_type())]
    assert all("\n" not in line for line in lines)
    assert [json.loads(line) for line in lines] == [COMMON, STRANGE, NULLS]


def test_what_text_stands_for_is_the_value() -> None:
    table = every_type().to_pylist()[1]
    assert Decimal(STRANGE["money"]) == table["money"]
    assert b64decode(STRANGE["bytes"]) == table["bytes"]
    assert float(STRANGE["real"]) == table["real"]


def test_every_type_as_a_line_of_csv() -> None:
    table = every_type()
    text = "\n".join([csv_header(table.schema), *csv_lines(table)])
    common, strange, nulls = csv.DictReader(io.StringIO(text, newline=""))
    assert common["flag"] == "true"
    assert common["real"] == "0.1"
    assert json.loads(common["top"]) == COMMON["top"]
    assert strange["text"] == STRANGE["text"]
    assert strange["double"] == "NaN"
    assert strange["money"] == STRANGE["money"]
    assert json.loads(strange["pair"]) == STRANGE["pair"]
    assert {name for name, value in nulls.items() if value} == {"at", "op"}


def test_csv_tells_null_from_the_empty_string() -> None:
    table = pa.table({"at": [1, 2], "k": ["", None]})
    assert list(csv_lines(table)) == ['1,""', "2,"]


def test_instants_beyond_the_calendar_of_python() -> None:
    table = pa.table({"at": pa.array([2**62, -(2**62)], pa.timestamp("us", "UTC"))})
    first, second = (row["at"] for row in json_rows(table))
    assert first.startswith("148108-")
    assert second.startswith("-144169-")


def test_intervals_are_microseconds_also_inside_arrays() -> None:
    table = pa.table({"i": pa.array([[5, None]], pa.list_(pa.duration("us")))})
    assert [row["i"] for row in json_rows(table)] == [[5, None]]


def test_a_type_without_a_text() -> None:
    table = pa.table({"x": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))})
    with pytest.raises(SinkError, match="cannot be written as text"):
        list(json_rows(table))
