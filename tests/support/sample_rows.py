"""A few rows of any schema, the same every time: enough to see that a query runs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from windrow.algebra.expressions import Schema
from windrow.algebra.plan import Emit, Scan, TableScan
from windrow.algebra.types import DataType, Kind
from windrow.testing.harness import EXECUTORS, Executor

SECOND = 1_000_000
_DAY = 86_400 * SECOND


def sample(schema: Schema, count: int = 6) -> list[tuple[Any, ...]]:
    """Rows in which neighbours often share values, and times are some seconds apart."""
    return [tuple(_value(field.type, n) for field in schema) for n in range(1, count + 1)]


def _value(kind: DataType, n: int) -> Any:
    match kind.kind:
        case Kind.ARRAY:
            elements = (_value(kind.element, place) for place in range(n, n + n % 3))
            return tuple(sorted(elements) if kind.is_map else elements)
        case Kind.STRUCT:
            return tuple(_value(inner, n) for _, inner in kind.fields)
        case Kind.BOOLEAN:
            return n % 2 == 0
        case Kind.STRING:
            return f"k{n % 3}"
        case Kind.FLOAT | Kind.DOUBLE:
            return 1.5 * n
        case Kind.DECIMAL:
            return Decimal(n).scaleb(-kind.scale)
        case Kind.TIMESTAMP:
            return n * 7 * SECOND
        case Kind.DATE:
            return n * _DAY
        case Kind.BINARY:
            return bytes([n])
        case _:
            return 1 + n // 2


def run_on_samples(plan: Emit, executor_name: str = "reference") -> Executor:
    """The query, run to the end over sample rows of its streams and tables."""
    executor = EXECUTORS[executor_name](plan)
    tables = {node.table.name: node.table for node in plan.walk() if isinstance(node, TableScan)}
    streams = {node.stream.name: node.stream for node in plan.walk() if isinstance(node, Scan)}
    for name, table in tables.items():
        executor.update(name, 0, sample(table.schema, count=2), [])
    for name, stream in streams.items():
        executor.push(name, sample(stream.schema))
    executor.finish()
    return executor
