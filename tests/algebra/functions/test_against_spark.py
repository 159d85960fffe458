"""Oracle: the reference gives Spark's answers, types and errors, for every line of `cases/*.sql`.

A case file has blocks: columns with their interesting values, then expressions over every combination
of them (`>` exact, `~` up to the last digits of a double). The text as written and the text that the
printer makes of its tree both go to Spark. Where the reference fails, Spark must fail as well; this is
asked row by row, for a few rows of each expression.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from windrow.algebra.functions import catalogue, explicit_cast
from windrow.algebra.functions.sql_text import literal_text, to_sql, type_text
from windrow.algebra.types import DataType, Kind, parse_type
from windrow.errors import DataError
from windrow.reference.expressions import compile_expression, evaluate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from windrow.algebra.expressions import Expression

CASES = sorted((Path(__file__).parent / "cases").glob("*.sql"))
#: how many rows that fail are tried on Spark, per expression
FAILURES_TRIED = 2
#: how many differences a failing test lists
SHOWN = 40
FAILED = "an error"
SPARK_ERRORS = (PySparkException, Py4JJavaError)
_WRAPPERS = {Kind.TIMESTAMP: "unix_micros({})", Kind.DATE: "unix_date({})"}
_WRAPPED = {Kind.TIMESTAMP: "bigint", Kind.DATE: "int"}
_DAY = 86_400_000_000


@dataclass
class Block:
    """Columns with their values, and expressions over them."""

    columns: dict[str, DataType] = field(default_factory=dict)
    values: list[list[Any]] = field(default_factory=list)
    lines: list[tuple[str, bool]] = field(default_factory=list)

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        return list(product(*self.values))

    def table(self, numbers: range | list[int]) -> str:
        """Some of the rows as an inline table, with their numbers."""
        kinds = list(self.columns.values())
        texts = [", ".join([str(number), *map(_constant, self.rows[number], kinds)]) for number in numbers]
        return f"(SELECT * FROM VALUES ({'), ('.join(texts)}) AS t(row_id, {', '.join(self.columns)}))"


@dataclass
class Case:
    """One expression, with the reference's answer for every row."""

    text: str
    close: bool
    tree: Expression
    answers: list[Any]

    @property
    def good(self) -> list[int]:
        return [number for number, answer in enumerate(self.answers) if answer is not FAILED]

    @property
    def bad(self) -> list[int]:
        return [number for number, answer in enumerate(self.answers) if answer is FAILED]

    def guarded(self, sql: str) -> str:
        """The expression, computed only for the rows on which it should succeed."""
        wrapped = _WRAPPERS.get(self.tree.type.kind, "{}").format(sql)
        if not self.bad:
            return wrapped
        return f"CASE WHEN row_id IN ({', '.join(map(str, self.good or [-1]))}) THEN {wrapped} END"


def _constant(value: Any, kind: DataType) -> str:
    return f"CAST({literal_text(value, kind)} AS {type_text(kind)})"


def read_blocks(path: Path, parse: Any) -> Iterator[Block]:
    for part in path.read_text(encoding="utf-8").split("\n---\n"):
        block = Block()
        for line in part.splitlines():
            if line[:2] in ("> ", "~ "):
                block.lines.append((line[2:], line[0] == "~"))
            elif not line.startswith("--"):
                heading, _, values = line.partition(": ")
                name, kind_name = heading.split(" ", 1)
                block.columns[name] = kind = parse_type(kind_name)
                texts = split_values(values)
                block.values.append([evaluate(explicit_cast(parse(text), kind), {}) for text in texts])
        yield block


def split_values(text: str) -> list[str]:
    """Split at the commas that stand neither in quotes nor in parentheses."""
    parts, depth, quoted, start = [], 0, False, 0
    for index, character in enumerate(text):
        if character == "'" and text[index - 1] != "\\":
            quoted = not quoted
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
        elif not quoted and not depth and character == ",":
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in (*parts, text[start:])]


def reference(tree: Expression, block: Block) -> list[Any]:
    run = compile_expression(tree, list(block.columns))

    def answer(row: tuple[Any, ...]) -> Any:
        try:
            return run(row, None)
        except DataError:
            return FAILED

    return [answer(row) for row in block.rows]


def spark_type(kind: DataType) -> str:
    return type_text(kind).lower().replace(": ", ":").replace(", ", ",")


def normal(value: Any, kind: DataType) -> Any:
    """A collected value as the reference has it."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return value // timedelta(microseconds=1)
    if isinstance(value, bytearray):
        return bytes(value)
    if kind.kind is Kind.DATE:
        return value * _DAY
    if kind.kind is Kind.ARRAY:
        return tuple(normal(each, kind.element) for each in value)
    if kind.kind is Kind.STRUCT:
        return tuple(normal(each, inner) for each, (_, inner) in zip(value, kind.fields, strict=True))
    return value


def same(ours: Any, theirs: Any, close: bool) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        if math.isnan(ours) or math.isnan(theirs):
            return math.isnan(ours) and math.isnan(theirs)
        return math.isclose(ours, theirs, rel_tol=1e-12) if close else repr(ours) == repr(theirs)
    return type(ours) is type(theirs) and str(ours) == str(theirs)


def differences(spark: SparkSession, block: Block, cases: list[Case]) -> list[str]:
    """Two ways to Spark: the text as written by compiled code, the printed tree by its interpreter."""
    table = spark.sql(f"SELECT * FROM {block.table(range(len(block.rows)))}")
    written, printed = [case.text for case in cases], [to_sql(case.tree, str) for case in cases]
    return compared(table.repartition(1), block, cases, written) + compared(table, block, cases, printed)


def compared(table: DataFrame, block: Block, cases: list[Case], texts: list[str]) -> list[str]:
    columns = [
        f"{case.guarded(text)} AS e{index}"
        for index, (case, text) in enumerate(zip(cases, texts, strict=True))
    ]
    try:
        selected = table.selectExpr("row_id", *columns)
        collected = selected.collect()
    except SPARK_ERRORS as error:
        middle = len(cases) // 2
        if not middle:
            return [f"{texts[0]}: Spark fails with {str(error).splitlines()[0]}"]
        first = compared(table, block, cases[:middle], texts[:middle])
        return first + compared(table, block, cases[middle:], texts[middle:])
    kinds = [each.dataType.simpleString() for each in selected.schema][1:]
    found = [
        f"{text} is {theirs} in Spark, not {case.tree.type}"
        for case, text, theirs in zip(cases, texts, kinds, strict=True)
        if theirs != _WRAPPED.get(case.tree.type.kind, spark_type(case.tree.type))
        and not (theirs == "interval day" and text == case.text)
    ]
    for record in collected:
        for case, text, value in zip(cases, texts, record[1:], strict=True):
            ours = case.answers[record[0]]
            theirs = normal(value, case.tree.type)
            if ours is not FAILED and not same(ours, theirs, case.close):
                found.append(f"{text} for {block.rows[record[0]]}: {ours!r}, Spark {theirs!r}")
    return found


def missing_failures(spark: SparkSession, block: Block, case: Case) -> Iterator[str]:
    step = max(1, len(case.bad) // FAILURES_TRIED)
    for number in case.bad[::step][:FAILURES_TRIED]:
        wrapped = _WRAPPERS.get(case.tree.type.kind, "{}").format(case.text)
        try:
            answer = spark.sql(f"SELECT {wrapped} FROM {block.table([number])}").collect()[0][0]
        except SPARK_ERRORS:
            continue
        yield f"{case.text} for {block.rows[number]}: an error, Spark {answer!r}"


@pytest.mark.thorough
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_values_and_failures_are_those_of_spark(path, parse, spark):
    found = []
    for block in read_blocks(path, parse):
        trees = [(text, close, parse(text, block.columns)) for text, close in block.lines]
        cases = [Case(text, close, tree, reference(tree, block)) for text, close, tree in trees]
        found += differences(spark, block, cases)
        found += [failure for case in cases for failure in missing_failures(spark, block, case)]
    assert not found, "\n".join(found[:SHOWN])


#: of Flink
NOT_OF_SPARK = {"split_index"}


def test_examples_of_the_catalogue(spark):
    known = [each for each in catalogue() if each.deterministic and each.name not in NOT_OF_SPARK]
    examples = [each.example.split(" -> ") for each in known]
    columns = [f"({call}) <=> ({value})" for call, value in examples]
    answers = spark.sql(f"SELECT {', '.join(columns)}").collect()[0]
    assert not [example for example, holds in zip(examples, answers, strict=True) if not holds]
