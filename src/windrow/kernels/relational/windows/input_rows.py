"""The rows that enter a window: of streams, through stateless operators, or of a nested query.

Hidden columns tell what windows go by: `#ts` is the windowing attribute, `#row_num` the arrival position,
`#kept` how far answers were given when a late row was kept, `#o0 …` the row as it was declared, which settles
the order of equal instants, `#per.c` the source column c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.plan import Scan, Subquery
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.intake import check_instants
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import TS, blank, columns_of, fitted
from windrow.kernels.state import State
from windrow.windows.domain import ARRIVAL_TS, ROW_NUM

if TYPE_CHECKING:
    from windrow.algebra.plan import Window

NUMBER, KEPT, ORDER, PER = "#row_num", "#kept", "#o", "#per."
#: `#kept` of rows that came in time
NEVER_LATE = -(1 << 62)
COUNT = "count"


class Scanned(Operator):
    """The accepted rows of a stream under an alias; one whose attribute is NULL is in no window."""

    name = "scan"

    def __init__(self, scan: Scan, window: Window, ordered: bool, sources: Sequence[str]) -> None:
        self.scan = scan
        self.attribute = window.attribute_of(scan)
        self.sources = tuple(sources)
        stream = scan.stream.schema
        order = {f"{ORDER}{i}": polars_type(field.type) for i, field in enumerate(stream)} if ordered else {}
        hidden = {TS: pl.Int64(), NUMBER: pl.Int64(), KEPT: pl.Int64()}
        per = {PER + name: polars_type(stream.column(name).type) for name in self.sources}
        self.order = tuple(zip(order, stream.names, strict=True)) if ordered else ()
        self.columns = columns_of(scan.schema, hidden | order | per)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        rows = step.rows.get(self.scan.stream.name)
        if rows is None or not rows.height:
            return state, blank(self.columns)
        names = self.scan.stream.schema.names
        known = {name: rows[name] for name in names}
        known |= {name: rows[f"#{name}"] for name in (ROW_NUM, ARRIVAL_TS)}
        read = (*names, *(name for name in (ROW_NUM, ARRIVAL_TS) if name in self.scan.pseudo))
        columns = [known[name].alias(f"{self.scan.alias}.{name}") for name in read]
        instants = known[self.attribute].cast(pl.Int64).alias(TS)
        check_instants(instants, f"`{self.attribute}` of stream `{self.scan.stream.name}`")
        columns += [instants, known[ROW_NUM].alias(NUMBER), rows[KEPT]]
        columns += [known[name].alias(hidden) for hidden, name in self.order]
        columns += [known[name].alias(PER + name) for name in self.sources]
        found = fitted(pl.DataFrame(columns), self.columns)
        return state, found.filter(pl.col(TS).is_not_null())


class NestedRows(Operator):
    """What a nested query emits: rows of E-1 in a periodic one, else of their `at`."""

    name = "nested query"

    def __init__(self, subquery: Subquery, below: Operator, before: int, ordered: bool) -> None:
        self.subquery = subquery
        self.inputs = (below,)
        self.before = before
        fields = list(subquery.query.schema)
        self.order = tuple((f"{ORDER}{i}", f.name) for i, f in enumerate(fields)) if ordered else ()
        order = {hidden: polars_type(f.type) for (hidden, _), f in zip(self.order, fields, strict=False)}
        hidden_columns = {TS: pl.Int64(), NUMBER: pl.Int64(), KEPT: pl.Int64()}
        self.columns = columns_of(subquery.schema, hidden_columns | order)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (answers,) = inputs
        if not answers.height:
            return state, blank(self.columns)
        inner, outer = self.subquery.query.schema.names, self.subquery.schema.names
        columns = [answers[a].alias(b) for a, b in zip(inner, outer, strict=True)]
        columns += [answers[name].alias(hidden) for hidden, name in self.order]
        instants = (answers["#at"] - self.before).alias(TS)
        check_instants(instants, f"the instant of a row of nested query `{self.subquery.alias}`")
        frame = pl.DataFrame([*columns, instants])
        first = state.meta.get(COUNT, 0) + 1
        numbers = pl.int_range(first, first + frame.height, dtype=pl.Int64, eager=True).alias(NUMBER)
        frame = frame.with_columns(numbers, pl.lit(NEVER_LATE, pl.Int64).alias(KEPT))
        return State({}, {COUNT: first + frame.height - 1}), fitted(frame, self.columns)
