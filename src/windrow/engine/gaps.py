"""Gaps as users see them: tables of windows that were left out, by where they end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.engine.output.schema import published_schema
from windrow.shedding.agreement import final_grid

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.shedding.gaps import Gap

#: what SHOW GAPS gives; instants as text, since queries may differ in what an instant is
_ALL = pa.schema(
    [
        ("query", pa.string()),
        ("first", pa.string()),
        ("last", pa.string()),
        ("windows", pa.int64()),
        ("suspended", pa.bool_()),
    ]
)


def gap_table(emit: Emit, gaps: Sequence[Gap]) -> pa.Table:
    """The gaps of one query; `first` and `last` are of the type of its `at`."""
    instant = published_schema(emit).field("at").type
    columns = {
        "first": pa.array([gap.first for gap in gaps], pa.int64()).cast(instant),
        "last": pa.array([gap.last for gap in gaps], pa.int64()).cast(instant),
        "windows": pa.array([gap.windows for gap in gaps], pa.int64()),
        "suspended": pa.array([gap.suspended for gap in gaps], pa.bool_()),
    }
    return pa.table(columns)


def with_gaps(emit: Emit, answers: pa.Table, gaps: Sequence[Gap]) -> pa.Table:
    """The answers of a query, and a row of NULLs with `op` 'gap' for each window that is missing, by `at`."""
    if emit.emits_deletions:  # such a query loses nothing, and has an `op` already
        return answers
    names = ["op_" if name == "op" else name for name in answers.column_names]
    marked = answers.rename_columns(names).add_column(1, "op", pa.array(["+"] * len(answers), pa.string()))
    slide = final_grid(emit).period if gaps else 1
    ends = [end for gap in gaps for end in range(gap.first, gap.last + 1, slide)]
    at = pa.array(ends, pa.int64()).cast(marked.schema.field("at").type)
    missing = [at, pa.array(["gap"] * len(ends), pa.string())]
    missing += [pa.nulls(len(ends), field.type) for field in list(marked.schema)[2:]]
    found = pa.concat_tables([marked, pa.Table.from_arrays(missing, schema=marked.schema)])
    return found.sort_by("at")


def all_gaps(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The gaps of all queries by name.

    >>> all_gaps({}).num_rows
    0
    """
    parts = [_ALL.empty_table()]
    for name, table in tables.items():
        text = [table["first"].cast(pa.string()), table["last"].cast(pa.string())]
        names = pa.array([name] * table.num_rows, pa.string())
        parts.append(pa.table([names, *text, table["windows"], table["suspended"]], schema=_ALL))
    return pa.concat_tables(parts)
