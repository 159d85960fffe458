"""From the rows in the windows to the relation, on kernels: one step from nothing to now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.engine.output.outbox import in_order
from windrow.kernels.columnar.codes import value_order
from windrow.kernels.relational.clock import Clock
from windrow.kernels.relational.program import News, RelationalProgram
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, NEVER_LATE, VE, VS, N
from windrow.kernels.relational.windows.leaf import NUMBER

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit


def relation(
    plan: Emit, rows: Mapping[str, pl.DataFrame], changes: Mapping[str, pl.DataFrame], clock: int, at: int
) -> pl.DataFrame:
    """The relation at an instant, given all rows below the clock."""
    program = RelationalProgram(plan, as_relation=True)
    news = News(Clock(-FOREVER, clock), {name: _arrived(frame) for name, frame in rows.items()}, changes)
    _, _, pieces = program.advance({}, news)
    inside = pieces.filter((pl.col(VS) <= at) & (pl.col(VE) > at))
    return _copies(inside, list(plan.schema.names))


def in_row_order(frame: pl.DataFrame, order: Sequence[tuple[str, bool]]) -> pl.DataFrame:
    """Sorted by the columns that were asked for, then by all: NULL first, NaN last."""
    if frame.height < 2:
        return frame
    frame = pl.concat(list(in_order([frame.to_arrow()])))
    if not order:
        return frame
    keys = [value_order(frame[name]).alias(str(place)) for place, (name, _) in enumerate(order)]
    down = [descending for _, descending in order]
    by = [pl.col(str(place)) for place in range(len(keys))]
    places = pl.DataFrame(keys).select(
        pl.arg_sort_by(by, descending=down, nulls_last=down, maintain_order=True)
    )
    return frame.select(pl.all().gather(places.to_series()))


def _arrived(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows as an intake would have given them; nobody asks for their numbers."""
    return frame.with_columns(
        pl.int_range(1, frame.height + 1, dtype=pl.Int64, eager=True).alias(NUMBER),
        pl.lit(NEVER_LATE, pl.Int64).alias(KEPT),
    )


def _copies(pieces: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Each row as often as it is there."""
    rows = pieces.select(*names, N)
    if (rows[N] != 1).any():
        columns = [rows[name] for name in names]
        if any(column.dtype.is_nested() for column in columns):
            rows = _counted_by_value(rows, names)
        else:
            rows = rows.group_by(names).agg(pl.col(N).sum())
        rows = rows.filter(pl.col(N) > 0)
        places = pl.int_range(rows.height, eager=True).repeat_by(rows[N]).explode().drop_nulls()
        rows = rows.select(pl.all().gather(places))
    return rows.select(names)


def _counted_by_value(rows: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Lists cannot be grouped by: their text can."""
    texts = [
        rows[name].map_elements(repr, pl.String, skip_nulls=True).alias(f"#{name}")
        if rows[name].dtype.is_nested()
        else rows[name].alias(f"#{name}")
        for name in names
    ]
    keyed = rows.with_columns(texts)
    by = [f"#{name}" for name in names]
    return keyed.group_by(by).agg(*(pl.col(name).first() for name in names), pl.col(N).sum()).drop(by)
