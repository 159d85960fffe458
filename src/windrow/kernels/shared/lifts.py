"""Rows of a stream, as the sheets of a ledger keep them: one pass for all entries of a sheet.

Conditions are no filters here: a row is lifted for every entry, and counts in those whose condition holds.
Rows that count nowhere are left out.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.expressions import TRUE, Expression
from windrow.kernels.aggregates.partials import Rows
from windrow.kernels.columnar.columns import without_negative_zero
from windrow.kernels.columnar.expressions import compile_expression, holds
from windrow.kernels.layouts import PANE
from windrow.kernels.panes.pane_tables import merge_panes

if TYPE_CHECKING:
    from windrow.kernels.columnar.functions.base import Evaluator
    from windrow.kernels.shared.shared_state import Entry, Ledger, Sheet
    from windrow.kernels.shared.value_counts import Tally

#: so many states of rows are in memory at a time, of at least so many rows
MOST_STATES, LEAST_ROWS = 1 << 23, 1 << 12

_compiled = lru_cache(maxsize=4096)(compile_expression)


class Lifting:
    """The sheets of a ledger from rows."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._values: dict[Expression, pl.Series] = {}

    def tables(self, accepted: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """States by interval and group, for each sheet that has rows; rows without an instant are in none.

        With many entries, rows are taken in pieces, so that their states are not too many at a time.
        """
        width = max(len(sheet.nothing) for sheet in self.ledger.sheets)
        found: dict[str, list[pl.DataFrame]] = {}
        for piece in accepted.iter_slices(max(LEAST_ROWS, MOST_STATES // width)):
            for name, table in self._tables(piece).items():
                found.setdefault(name, []).append(table)
        layouts = {sheet.name: sheet.layout(len(self.ledger.keys)) for sheet in self.ledger.tables}
        return {name: merge_panes(tables, layouts[name]) for name, tables in found.items()}

    def _tables(self, accepted: pl.DataFrame) -> dict[str, pl.DataFrame]:
        moments = accepted[self.ledger.stream.wattr].cast(pl.Int64)
        rows = accepted.with_columns(moments.alias("#t")).filter(moments.is_not_null())
        found: dict[str, pl.DataFrame] = {}
        if not rows.height:
            return found
        self._values = {}
        masks = {each: self._mask(each, rows) for sheet in self.ledger.sheets for each in _wheres(sheet)}
        keys = [
            without_negative_zero(self._value(key, rows)).alias(name)
            for name, key in zip(self.ledger.key_types, self.ledger.keys, strict=True)
        ]
        for sheet in self.ledger.sheets:
            table = self._sheet(sheet, rows, keys, masks)
            if table.height:
                found[sheet.name] = table
        for tally in self.ledger.tallies:
            table = self._tally(tally, rows, keys)
            if table.height:
                found[tally.name] = table
        return found

    def _tally(self, tally: Tally, rows: pl.DataFrame, keys: list[pl.Series]) -> pl.DataFrame:
        panes = pl.Series(PANE, tally.panes_of(rows["#t"].to_numpy()))
        args = tuple(self._value(arg, rows) for arg in tally.args)
        return tally.lift([panes, *keys], args, self._mask(tally.where, rows))

    def _sheet(
        self,
        sheet: Sheet,
        rows: pl.DataFrame,
        keys: list[pl.Series],
        masks: dict[Expression, pl.Series],
    ) -> pl.DataFrame:
        counts = reduce(or_, [masks[where] for where in _wheres(sheet)])
        panes = pl.Series(PANE, sheet.panes_of(rows["#t"].to_numpy()))
        columns = [panes, *keys]
        for entry in sheet.entries:
            columns += entry.shape.lift(self._rows(entry, rows, masks[entry.where]))
        frame = pl.DataFrame(columns)
        layout = sheet.layout(len(keys))
        chosen = frame if counts.all() else frame.filter(counts)
        return layout.merge(chosen, [PANE, *layout.keys])

    def _rows(self, entry: Entry, rows: pl.DataFrame, chosen: pl.Series) -> Rows:
        order = pl.DataFrame()
        if entry.order:
            parts = [self._value(part, rows).alias(f"o{n}") for n, part in enumerate(entry.order)]
            order = pl.DataFrame([rows["#t"], *parts])
        return Rows(tuple(self._value(arg, rows) for arg in entry.args), chosen, order)

    def _value(self, expression: Expression, rows: pl.DataFrame) -> pl.Series:
        if expression not in self._values:
            self._values[expression] = _evaluator(expression)(rows)
        return self._values[expression]

    def _mask(self, where: Expression, rows: pl.DataFrame) -> pl.Series:
        if where == TRUE:
            return pl.Series([True]).new_from_index(0, rows.height)
        return holds(_evaluator(where), rows)


def _evaluator(expression: Expression) -> Evaluator:
    return _compiled(expression)


def _wheres(sheet: Sheet) -> tuple[Expression, ...]:
    return tuple(dict.fromkeys(entry.where for entry in sheet.entries))
