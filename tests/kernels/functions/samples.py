"""Values of every type that functions stumble over, and the comparison of columns with rows."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from windrow.algebra.expressions import Expression, Field, Schema
from windrow.algebra.functions.calendar import MOST_DAYS
from windrow.algebra.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TINYINT,
    DataType,
    array,
    decimal,
    map_of,
    struct,
)
from windrow.errors import DataError
from windrow.kernels.columnar.columns import frame_of, values_of
from windrow.kernels.columnar.expressions import compile_expression
from windrow.reference.expressions import compile_expression as compile_row

DAY = 86_400_000_000
LONGEST = (1 << 63) - 1
NARROW, WIDE, WHOLE = decimal(10, 2), decimal(30, 5), decimal(38, 0)
_INT_MAX = (1 << 31) - 1
_SINGLE = 0.10000000149011612

SAMPLES: dict[DataType, list[Any]] = {
    BOOLEAN: [True, False],
    TINYINT: [0, 1, -1, 127, -128, 5],
    SMALLINT: [0, 1, -1, 7, 32767, -32768],
    INT: [0, 1, -1, 3, 7, 12, 31, 2024, -1000, _INT_MAX, -_INT_MAX - 1],
    BIGINT: [0, 1, -2, 10, 255, 1_700_000_000, 3_037_000_500, LONGEST, -LONGEST - 1, -LONGEST],
    FLOAT: [0.0, -0.0, 0.5, -2.0, 2.5, _SINGLE, 3.4028234663852886e38, math.inf, -math.inf, math.nan],
    DOUBLE: [
        *(0.0, -0.0, 0.5, 2.5, -2.5, -1.1, 1.005, 2.675, 0.1, 1e-3, 12345678.9, 1e7, 1e22, 1e300, -1e300),
        *(
            5e-324,
            9.3e18,
            2.0**63,
            -(2.0**63),
            2147483647.5,
            1.0,
            -1.0,
            math.pi,
            math.inf,
            -math.inf,
            math.nan,
        ),
    ],
    NARROW: [Decimal(text) for text in ("0.00", "1.25", "-1.25", "99999999.99", "-0.01", "2.50", "-7.00")],
    WIDE: [Decimal(text) for text in ("0.00000", "3.00001", "-7.50000", "12345678901234567890.12345")],
    WHOLE: [Decimal(text) for text in ("0", "-1", "7", "9" * 38, "-" + "9" * 38, "9223372036854775808")],
    STRING: [
        *(
            "",
            "a",
            "b",
            "ab",
            "abcabd",
            "é",
            "Straße",
            "ΑΣ",
            "İx",
            "😀b",
            "  k ",
            "iBIS fly",
            "50%",
            "a_b",
            "a\nb",
        ),
        *(
            "12",
            " -7 ",
            "+3",
            "99999999999999999999",
            "1e3",
            "0.5",
            "NaN",
            "-inf",
            "0x1p3",
            "yes",
            "false",
            "$1.b",
        ),
        *("2024-02-29", "2024-2-9 13:14:15.5", "2024-02-29T13:14:15+01:30", "2023-02-29", "1 02:03:04.5"),
    ],
    BINARY: [b"", b"a", b"\xff\x00", "é".encode()],
    TIMESTAMP: [0, 1_500_000, -1, 17 * DAY + 5, 1_709_212_455_500_000, -62_135_596_800_000_000, LONGEST],
    DATE: [0, DAY, -3 * DAY, 19_782 * DAY, 19_783 * DAY, 20_088 * DAY, -719_529 * DAY, MOST_DAYS * DAY],
    INTERVAL: [0, 1_000_000, -DAY, 93_784_500_000, -93_784_500_001, LONGEST, -LONGEST - 1],
}
TYPES = list(SAMPLES)
SCHEMA = Schema(tuple(Field(f"c{place}", kind) for place, kind in enumerate(TYPES * 2)))
#: two columns of each type
COLUMNS = [SCHEMA.column(name) for name in SCHEMA.names]

#: values with parts, for the functions that take them
NESTED: dict[DataType, list[Any]] = {
    array(BIGINT): [(), (1,), (1, None, 3), (None,), (255, 255)],
    array(STRING): [(), ("a", "b"), (None, "a"), ("",)],
    map_of(STRING, BIGINT): [(), (("a", 1),), (("a", None), ("b", 2)), (("", 0), ("a", 1), ("é", 2))],
    struct(n=BIGINT, s=STRING): [(1, "a"), (None, None), (2, None), (None, "é")],
}
#: texts that name parts of them, and JSON
PARTS = ["n", "s", "a", "$.a", "$[0]", "$.a[1].b"]
PARTS += ["n BIGINT, s STRING", "ARRAY<BIGINT>", "MAP<STRING, BIGINT>"]
JSON_TEXTS = [
    '{"a": [1, {"b": "x"}], "n": 2}',
    "[1, 2.50, null]",
    '{"s": "é", "n": "x"}',
    "{",
    "null",
    '"a"',
    # what a parser could stumble over: half a character, more levels than it has room for, huge numbers
    '{"s": "\\ud800", "\\udc00": {"a": "\\ud83d"}, "a": "\\ud83d\\ude00"}',
    '["\\udfff"]',
    '{"a": ' + "[" * 300 + "]" * 300 + "}",
    "[" * 100_000 + "]" * 100_000,
    '{"n": 1e999, "a": 123456789012345678901234567890}',
]

Row = tuple[Any, ...]


def assert_columns_agree(expression: Expression, rows: list[Row], schema: Schema = SCHEMA) -> None:
    """Columns give what rows give; with failing rows among them, the error of the first."""
    rows = [row for row in rows if not needs_distant_dates(expression, row, schema)]
    values, errors, sound = _by_rows(expression, rows, schema)
    evaluate = compile_expression(expression)
    if errors:
        with pytest.raises(DataError) as raised:
            evaluate(frame_of(schema, rows))
        assert (str(raised.value), raised.value.code) == (str(errors[0]), errors[0].code), expression
    found = values_of(evaluate(frame_of(schema, sound)), expression.type)
    for mine, theirs, row in zip(found, values, sound, strict=True):
        assert exactly(mine) == exactly(theirs), (expression, row)


def _by_rows(
    expression: Expression, rows: list[Row], schema: Schema
) -> tuple[list[Any], list[DataError], list[Row]]:
    compiled = compile_row(expression, schema.names)
    values, errors, sound = [], [], []
    for row in rows:
        try:
            values.append(compiled(row, None))
            sound.append(row)
        except DataError as error:
            errors.append(error)
    return values, errors, sound


def needs_distant_dates(expression: Expression, row: Row, schema: Schema) -> bool:
    """Whether a date on the way is one that rows can hold and columns cannot: the one difference there is."""
    dates = [part for part in expression.walk() if part.type == DATE]
    values = [value for part in dates for value in _by_rows(part, [row], schema)[0]]
    return any(value is not None and abs(value) > MOST_DAYS * DAY for value in values)


def exactly(value: Any) -> tuple[str, str]:
    """What tells 1 from 1.0, 0.0 from -0.0 and 1.0 from 1.00, and takes NaN for NaN."""
    return type(value).__name__, repr(value)
