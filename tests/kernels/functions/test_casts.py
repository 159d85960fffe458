"""Every cast there is, on columns: what rows give, errors included."""

from __future__ import annotations

import pytest
from tests.kernels.functions.samples import SAMPLES, TYPES, assert_columns_agree

from windrow.algebra.expressions import ColumnRef, Field, Literal, Schema
from windrow.algebra.functions import castable, explicit_cast
from windrow.algebra.types import NULL, STRING, DataType, decimal

TARGETS = [*TYPES, decimal(38, 20), decimal(4, 4)]
CASTS = [(source, target) for source in TYPES for target in TARGETS if castable(source, target)]


@pytest.mark.part(5)
@pytest.mark.parametrize("safe", [False, True], ids=["CAST", "TRY_CAST"])
@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_every_cast(source: DataType, target: DataType, safe: bool) -> None:
    schema = Schema((Field("x", source),))
    expression = explicit_cast(ColumnRef("x", source), target, safe=safe)
    rows = [(value,) for value in [*SAMPLES[source], None, *SAMPLES[source][::-1]]]
    assert_columns_agree(expression, rows, schema)
    for row in rows:
        assert_columns_agree(expression, [row], schema)


@pytest.mark.parametrize("target", [target for target in TYPES if castable(STRING, target)], ids=str)
@pytest.mark.parametrize("texts", [["12", "-7"], ["127", "128"], ["0.25", "3"], ["1" * 18, None]], ids=str)
def test_text_in_plain_form(target: DataType, texts: list[str | None]) -> None:
    schema = Schema((Field("x", STRING),))
    for safe in (False, True):
        expression = explicit_cast(ColumnRef("x", STRING), target, safe=safe)
        assert_columns_agree(expression, [(text,) for text in texts], schema)


@pytest.mark.parametrize("target", TYPES, ids=str)
def test_null_is_null_of_every_type(target: DataType) -> None:
    schema = Schema((Field("x", STRING),))
    assert_columns_agree(explicit_cast(Literal(None, NULL), target), [("a",), (None,)], schema)
