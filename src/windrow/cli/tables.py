"""What SHOW and EXPLAIN give, printed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from windrow.cli.formats import value
from windrow.cli.plain import aligned


def print_shown(shown: list[Any]) -> None:
    """Print what statements gave, in order.

    >>> print_shown([pa.table({"name": ["top"], "rows": [3]})])
    name  rows
    top   3
    """
    for each in shown:
        print("\n".join(table_lines(each)) if isinstance(each, pa.Table) else each)


def table_lines(table: pa.Table) -> list[str]:
    """A small table as lines."""
    if table.num_rows == 0:
        return ["(none)"]
    rows = [[_cell(cell) for cell in row.values()] for row in table.to_pylist()]
    return [line.removeprefix("  ") for line in aligned([list(table.column_names), *rows])]


def _cell(cell: Any) -> str:
    """Queries are written on several lines, and shown on one."""
    return " ".join(cell.split()) if isinstance(cell, str) else value(cell)
