"""What is said of a text that is no row: its column, its value as it was written, and the way out."""

from __future__ import annotations

import json

import pytest

from windrow.execution.malformed_rows import MARK, RowShape, Told

COLUMNS = (
    ("item", "item", "BIGINT", None),
    ("price", "price", "DOUBLE", None),
    ("paid", "paid", "BOOLEAN", None),
    ("seen", "seen", "TIMESTAMP", "epoch_ms"),
)
#: a text, the column that is told, and what is told of it
FAULTS = [
    ('{"item": "1"}', "item", "the text `1` is no BIGINT"),
    ('{"item": {"n": [1, 2.50, null]}}', "item", '`{"n": [1, 2.50, null]}` is no BIGINT'),
    ('{"price": "2.5"}', "price", "the text `2.5` is no DOUBLE"),
    ('{"paid": "true"}', "paid", "the text `true` is no BOOLEAN"),
    ('{"seen": true}', "seen", "`true` is no time in FORMAT 'epoch_ms'"),
    ('{"item": ' + "[" * 600 + "]" * 600 + "}", "item", "` is no BIGINT"),
    ('{"item": 1, "x": ' + "[" * 3000 + "]" * 3000 + "}", None, "is nested too deeply"),
    ("{'item': 1}", None, "is no JSON object"),
    ('{"item": 1, "\\ud800": 2}', None, r"\ud800"),
]


def told(text: str, kind: str) -> Told:
    shape = json.dumps(vars(RowShape("stream `s`", kind, COLUMNS)))
    parts = ":".join(part.encode().hex().upper() for part in (shape, "f", text))
    found = Told.find(f"{MARK} {parts}:")
    assert found is not None
    return found


@pytest.mark.parametrize(("text", "column", "expected"), FAULTS, ids=[text[:30] for text, *_ in FAULTS])
def test_a_malformed_object(text: str, column: str | None, expected: str) -> None:
    fault = told(text, "json").fault
    assert fault.column == column
    assert expected in fault.text
    assert len(fault.text) < 200
    assert f"{fault.text}{fault.hint}".encode()  # all of it can be printed


def test_values_of_csv_stand_without_quotes() -> None:
    fault = told("1,x,true,1767225600000", "csv").fault
    assert (fault.column, fault.text) == ("price", "`x` is no DOUBLE")
    assert told("1,2.5,true,1767225600000", "csv").fault.column is None
