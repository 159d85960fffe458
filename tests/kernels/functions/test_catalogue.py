"""Each function of the registry on columns, with every type it takes: what rows give, errors included."""

from __future__ import annotations

from random import Random

import pytest
from tests.kernels.functions.samples import (
    COLUMNS,
    JSON_TEXTS,
    NESTED,
    PARTS,
    SAMPLES,
    SCHEMA,
    TYPES,
    assert_columns_agree,
)

from windrow.algebra.expressions import Expression, Field, Literal, Schema
from windrow.algebra.functions import Function, call, catalogue
from windrow.algebra.functions.nested import FUNCTIONS as OF_PARTS
from windrow.algebra.types import BIGINT, INT, NULL, STRING
from windrow.errors import QueryError

CALLABLE = [function for function in catalogue() if function.category != "refused"]
#: so many expressions are drawn of each function, of which most have no meaning
DRAWN = 1500
#: so many of different types are tried, each on so many rows
TRIED, ROWS = 16, 30
#: what some functions want as literals: units, fields, patterns, digits
TEXTS = [
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "SECOND",
    "a%",
    "%b_",
    "_",
    "a+",
    "(a|é)(b)?",
    "[a-c]",
    "#",
]
NUMBERS = [-3, -1, 0, 1, 2, 5, 224, 256]


#: what functions of values with parts are tried on
WITH_PARTS = {each.name for each in OF_PARTS}
PARTS_SAMPLES = {**NESTED, STRING: JSON_TEXTS, BIGINT: [0, 1, -1, 2, 5]}
PARTS_SCHEMA = Schema(tuple(Field(f"p{place}", kind) for place, kind in enumerate(PARTS_SAMPLES)))


def drawn(random: Random, function: Function) -> Expression | None:
    least, most = function.arity
    count = random.randint(least, least + 2 if most is None else most)
    argument = _part if function.name in WITH_PARTS else _argument
    args = [argument(random) for _ in range(count)]
    if random.random() < 0.3:
        args = [args[0]] * count if count else []
    try:
        return call(function.name, args)
    except QueryError:
        return None


def _argument(random: Random) -> Expression:
    kind = random.choice(TYPES)
    choice = random.random()
    if choice < 0.6:
        return random.choice([column for column in COLUMNS if column.type == kind])
    if choice < 0.7:
        return Literal(random.choice(TEXTS), STRING)
    if choice < 0.8:
        return Literal(random.choice(NUMBERS), INT)
    if choice < 0.85:
        return Literal(None, NULL)
    return Literal(random.choice(SAMPLES[kind]), kind)


def _part(random: Random) -> Expression:
    choice = random.random()
    if choice < 0.6:
        return PARTS_SCHEMA.column(random.choice(PARTS_SCHEMA.names))
    if choice < 0.8:
        return Literal(random.choice(PARTS), STRING)
    return Literal(random.choice(NUMBERS), INT)


def agree(function: Function, expression: Expression, random: Random, count: int) -> None:
    """Columns and rows agree, on rows in which NULL is rarer than values; some values stand in many rows."""
    is_nested = function.name in WITH_PARTS
    schema, samples = (PARTS_SCHEMA, PARTS_SAMPLES) if is_nested else (SCHEMA, SAMPLES)
    rows = [tuple(random.choice([None, *samples[field.type] * 2]) for field in schema) for _ in range(count)]
    assert_columns_agree(expression, rows, schema)


@pytest.mark.part(12)
@pytest.mark.parametrize("function", CALLABLE, ids=lambda function: function.name)
def test_columns_give_what_rows_give(function: Function) -> None:
    random, tried = Random(function.name), {}
    for _ in range(DRAWN):
        expression = drawn(random, function)
        if expression is not None:
            tried.setdefault(tuple((type(arg), arg.type) for arg in expression.children), expression)
        if len(tried) == TRIED:
            break
    assert tried, "no expression with this function was drawn"
    for expression in tried.values():
        agree(function, expression, random, ROWS)


@pytest.mark.parametrize("function", CALLABLE, ids=lambda function: function.name)
def test_no_rows_are_no_values(function: Function) -> None:
    random = Random(function.name)
    expression = next(found for found in (drawn(random, function) for _ in range(DRAWN)) if found)
    agree(function, expression, random, 0)
