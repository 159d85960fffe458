"""The scripts of examples/ run as they are: each query on the engine, over the rows that its streams name."""

from __future__ import annotations

import csv
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from windrow.algebra.catalog import Stream, Table
from windrow.algebra.expressions import Schema
from windrow.algebra.plan import Scan, TableScan
from windrow.algebra.types import Kind
from windrow.language.binder.bound_statements import RegisterQuery
from windrow.language.catalog import Catalog
from windrow.language.compile import compile_script
from windrow.spark.sources.fit import check_types
from windrow.spark.sources.generators import GENERATORS, Settings
from windrow.testing import Harness

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [file for file in sorted(EXAMPLES.glob("*.cql")) if file.stem != "typo"]
#: rows of a stream that is made up; few connections are of the kind that a query asks about
MADE_UP = {"auction": 100, "traffic": 200, "network": 1500}


def rows_of(declared: Stream | Table) -> list[tuple[Any, ...]]:
    """The rows that a source in the repository has."""
    kind, _, rest = str(declared.source).partition(":")
    place, _, options = rest.partition("?")
    if kind == "generator":
        seed = int(parse_qs(options).get("seed", ["1"])[0])
        check_types(from_arrow_schema(GENERATORS[place].schema), declared, str(declared.source))
        made = GENERATORS[place].rows(Settings(seed=seed), 0, MADE_UP[place])
        return _typed(made.to_pylist(), declared.schema)
    path = EXAMPLES.parent / place.removeprefix("//")
    with path.open(encoding="utf-8") as file:
        found = [*csv.DictReader(file)] if path.suffix == ".csv" else [json.loads(line) for line in file]
    return _typed(found, declared.schema)


def _typed(rows: list[dict[str, Any]], schema: Schema) -> list[tuple[Any, ...]]:
    return [tuple(_value(row[field.name], field.type.kind) for field in schema) for row in rows]


def _value(value: Any, kind: Kind) -> Any:
    match kind:
        case Kind.TIMESTAMP:
            when = datetime.fromisoformat(value) if isinstance(value, str) else value
            return when.replace(tzinfo=None)
        case Kind.DECIMAL:
            return Decimal(str(value)).quantize(Decimal("0.01"))
        case Kind.INT | Kind.BIGINT:
            return int(value)
        case Kind.DOUBLE:
            return float(value)
    return str(value)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_query_of_an_example_answers(file: Path) -> None:
    catalog = Catalog()
    statements = compile_script(file.read_text(encoding="utf-8"), catalog)
    rows = {name: rows_of(declared) for name, declared in [*catalog.streams.items(), *catalog.tables.items()]}
    for query in [each.query for each in statements if isinstance(each, RegisterQuery)]:
        harness = Harness(query.plan, executor="engine")
        read = [*harness.plan.walk()]
        for name in {node.table.name for node in read if isinstance(node, TableScan)}:
            harness.update(name, 0, insert=rows[name])
        for name in {node.stream.name for node in read if isinstance(node, Scan)}:
            harness.push(name, rows[name])
        harness.finish()
        assert harness.take(), f"{file.name}: {query.name} has no answer"
