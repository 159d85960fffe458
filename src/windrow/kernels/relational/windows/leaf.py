"""Windows: rows of a stream become pieces. This file has what all windows share, and those in which a row's
own values say when it is valid.

Card: intervals
    requirements  the interval follows from the row (RANGE, NOW, LANDMARK, UNBOUNDED, LIFETIME)
    time          O(1) per row
    space         the rows that are not valid before the clock
    source        SEMANTICS of windows as validity intervals; WID's context-free windows (Li et al. 2005, 4)

Hidden columns tell what windows go by: `#ts` is the windowing attribute, `#row_num` the arrival position,
`#kept` how far answers were given when a late row was kept, `#o0 …` the row as it was declared, which settles
the order of equal instants, `#per.c` the source column c.

Card: negative rows
    requirements  pieces with a known expiry
    time          twice the rows for everything above
    space         the rows of the window, besides what operators above keep
    source        Golab's thesis, 2.3.3 (the negative tuple approach)

Where a row that leaves takes results with it (catalogues), and where results over INTERNAL windows outlive
their rows, rows are told apart, equal ones too. `row_num` does not do that: it counts arrivals where a query
asks for that, and elsewhere begins anew in every partition of a micro-batch. So rows are counted where they
enter the window. The count is part of the state: a step that is repeated gives the same numbers. They say who
a row is and nothing else: no answer depends on which row has which.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.plan import Scan, Subquery, Window
from windrow.kernels import clock, intake
from windrow.kernels.columnar.columns import polars_type
from windrow.kernels.columnar.expressions import compile_expression
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.expiry_layouts import ExpiryLayout, Fifo, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import FOREVER, INT, KEPT, TS, TURN, VE, VS, Columns, N, Numbers
from windrow.kernels.state import State
from windrow.windows.domain import ARRIVAL_TS, FARTHEST, ROW_NUM, Flags, Ints, too_far
from windrow.windows.lifetime import LifetimeWindow
from windrow.windows.spec import OwnInterval

NUMBER, ORDER, PER = "#row_num", "#o", "#per."
COUNT = "count"
#: what windows go by, besides columns of their own
HIDDEN = {TS: INT, NUMBER: INT, KEPT: INT}


class Scanned(Operator):
    """The accepted rows of a stream under an alias; one whose attribute is NULL is in no window."""

    name = "scan"

    def __init__(self, scan: Scan, window: Window, ordered: bool, sources: Sequence[str]) -> None:
        self.scan = scan
        self.attribute = window.attribute_of(scan)
        self.sources = tuple(sources)
        stream = scan.stream.schema
        fields = list(stream) if ordered else []
        self.order = tuple((f"{ORDER}{i}", field.name) for i, field in enumerate(fields))
        order = {f"{ORDER}{i}": polars_type(field.type) for i, field in enumerate(fields)}
        per = {PER + name: polars_type(stream.column(name).type) for name in self.sources}
        self.columns = signed.columns_of(scan.schema, HIDDEN | order | per)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        rows = step.rows.get(self.scan.stream.name)
        if rows is None or not rows.height:
            return state, signed.blank(self.columns)
        names = self.scan.stream.schema.names
        known = {name: rows[name] for name in names}
        known |= {name: rows[f"#{name}"] for name in (ROW_NUM, ARRIVAL_TS)}
        read = (*names, *(name for name in (ROW_NUM, ARRIVAL_TS) if name in self.scan.pseudo))
        columns = [known[name].alias(f"{self.scan.alias}.{name}") for name in read]
        instants = intake.moments_of(rows, self.attribute).alias(TS)
        intake.check_instants(instants, f"`{self.attribute}` of stream `{self.scan.stream.name}`")
        columns += [instants, known[ROW_NUM].alias(NUMBER), rows[KEPT]]
        columns += [known[name].alias(hidden) for hidden, name in self.order]
        columns += [known[name].alias(PER + name) for name in self.sources]
        found = signed.fitted(pl.DataFrame(columns), self.columns)
        return state, found.filter(pl.col(TS).is_not_null())


class NestedRows(Operator):
    """What a nested query emits: rows of E-1 in a periodic one, else of their `at`."""

    name = "nested query"

    def __init__(self, subquery: Subquery, below: Operator, before: int, ordered: bool) -> None:
        self.subquery = subquery
        self.inputs = (below,)
        self.before = before
        fields = list(subquery.query.schema) if ordered else []
        self.order = tuple((f"{ORDER}{i}", field.name) for i, field in enumerate(fields))
        order = {f"{ORDER}{i}": polars_type(field.type) for i, field in enumerate(fields)}
        self.columns = signed.columns_of(subquery.schema, HIDDEN | order)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (answers,) = inputs
        if not answers.height:
            return state, signed.blank(self.columns)
        inner, outer = self.subquery.query.schema.names, self.subquery.schema.names
        columns = [answers[a].alias(b) for a, b in zip(inner, outer, strict=True)]
        columns += [answers[name].alias(hidden) for hidden, name in self.order]
        instants = (answers["#at"] - self.before).alias(TS)
        intake.check_instants(instants, f"the instant of a row of nested query `{self.subquery.alias}`")
        numbers, last = _numbers(state, answers.height)
        frame = pl.DataFrame([*columns, instants, numbers.alias(NUMBER)])
        frame = frame.with_columns(pl.lit(signed.NEVER_LATE, pl.Int64).alias(KEPT))
        return State({}, {COUNT: last}), signed.fitted(frame, self.columns)


def _numbers(state: State, size: int) -> tuple[pl.Series, int]:
    """Numbers of so many new rows, from 1 on over all steps, and the last one."""
    first = state.meta.get(COUNT, 0) + 1
    return pl.int_range(first, first + size, dtype=pl.Int64, eager=True), first + size - 1


ROWS = "rows"


class NegativeRows(Operator):
    """Open pieces, each taken back when it ends."""

    name = "negative rows"

    def __init__(self, below: Operator, layout: ExpiryLayout | None = None) -> None:
        self.inputs = (below,)
        self.columns = below.columns
        self.layout = layout or Fifo()
        self.kept = signed.without(self.columns, VS)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (new,) = inputs
        expired, chunks = self.layout.ended(state.of(ROWS), new, step.slice.stop, self.kept)
        forever = pl.lit(FOREVER, pl.Int64).alias(VE)
        taken = expired.with_columns(pl.col(VE).alias(VS), forever, -pl.col(N))
        return State({ROWS: chunks}), signed.together([new.with_columns(forever), taken], self.columns)


PENDING = "pending"


class Leaf(Operator):
    """A window. `lag` is 1 where the answer at E is about the instant before E."""

    name = "window"

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        self.window = window
        self.spec: Any = window.spec
        self.lag = lag
        #: how much later than the clock a row that is kept late may show
        self.late_lag = lag
        #: whether rows are passed on when they come, before they begin
        self.ahead = False
        #: columns of rows that pieces carry under another name
        self.extra: dict[str, str] = {}
        self.inputs = (below,)
        self.columns = signed.columns_of(window.schema)
        self.rows: Columns = below.columns
        if window.spec.counts_arrivals:
            self.carry(TURN, NUMBER)

    def carry(self, name: str, source: str) -> None:
        """Let pieces carry a column of whole numbers of their rows, under this name."""
        self.extra = {**self.extra, name: source}
        self.columns = self.columns | {name: INT}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        state, found = self.enter(state, inputs[0], step)
        step.last_end = max(step.last_end, signed.greatest_end(found))
        step.entered.append(found.select(VS, VE, N))
        return state, found

    @abstractmethod
    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        """The pieces that begin, or are cut short, in the step."""

    @property
    def keys(self) -> list[str]:
        """The columns of PARTITION BY."""
        alias = self.window.origins[0].alias
        return [f"{alias}.{name}" for name in getattr(self.spec, "partition_by", ())]

    @property
    def order(self) -> list[str]:
        """The columns that settle the order of equal instants."""
        declared = [name for name in self.rows if name.startswith(ORDER)]
        return declared or list(self.window.schema.names)

    def known(self, frame: pl.DataFrame, step: Step) -> Ints | int:
        """Up to which instant all rows are known: of each row's source, if sources have their own clocks."""
        column = None if step.clock.column is None else PER + step.clock.column
        if column is None or column not in frame.columns:
            return step.clock.now
        return step.clock.of(frame[column])[1]

    def stop(self, frame: pl.DataFrame, step: Step) -> Ints | int:
        """Up to which instant all is told: one for all rows, or that of each row's source."""
        known = self.known(frame, step)
        return clock.moved(known, self.lag) if isinstance(known, int) else known + self.lag

    def pieces(self, rows: pl.DataFrame, vs: Numbers, ve: Numbers, n: int = 1) -> pl.DataFrame:
        """Rows as pieces; empty ones vanish."""
        if not rows.height:
            return signed.blank(self.columns)
        frame = signed.spanning(rows, vs, ve, n)
        frame = frame.with_columns(pl.col(source).alias(name) for name, source in self.extra.items())
        return frame.select(list(self.columns)).filter(pl.col(VS) < pl.col(VE))

    def turned(
        self, rows: pl.DataFrame, born: Flags, enters: Ints, over: Flags, leaves: Ints
    ) -> pl.DataFrame:
        """Rows that enter, with their ends as far as these are known, and rows that were there and leave."""
        came = self.pieces(rows.filter(pl.Series(born)), enters[born], leaves[born])
        gone = self.pieces(rows.filter(pl.Series(over)), leaves[over], FOREVER, -1)
        return signed.together([came, gone], self.columns)

    def waiting(self, state: State, rows: pl.DataFrame, columns: Columns) -> pl.DataFrame:
        """The rows that were not final, with those that come."""
        return frame_of(state.of(PENDING), columns, rows)


class Intervals(Leaf):
    """A window in which the interval of a row is known when it comes."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.begins = self.rows | {VS: INT, VE: INT}
        spec = window.spec
        self.lifetime = compile_expression(spec.expression) if isinstance(spec, LifetimeWindow) else None

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        new = self._stamped(rows) if rows.height else signed.blank(self.begins)
        frame = self.waiting(state, new, self.begins)
        if not frame.height:
            return state, signed.blank(self.columns)
        if self.ahead:
            return state, self.pieces(frame, frame[VS], frame[VE])
        ready, pending = signed.parted(frame, frame[VS].to_numpy() < self.stop(frame, step))
        return State({PENDING: chunks_of(pending)}), self.pieces(ready, ready[VS], ready[VE])

    def _stamped(self, rows: pl.DataFrame) -> pl.DataFrame:
        """With intervals; a late row shows in what is not yet answered only."""
        spec: OwnInterval = self.spec
        lives = None if self.lifetime is None else self._lifetimes(self.lifetime(rows))
        vs, ve = spec.spans(rows[TS].to_numpy(), lives)
        kept = rows[KEPT].to_numpy()
        vs = np.maximum(vs, np.where(kept > -FOREVER, kept + self.late_lag, -FOREVER))
        frame = rows.with_columns(pl.Series(VS, vs), pl.Series(VE, ve))
        return frame.filter(pl.col(VS) < pl.col(VE)).select(list(self.begins))

    def _lifetimes(self, found: pl.Series) -> Ints:
        lives, most = found.cast(pl.Int64).fill_null(0), FARTHEST // self.spec.scale
        outside = lives.filter((lives > most) | (lives < -most))
        if len(outside):
            raise too_far(int(outside[0]) * self.spec.scale, "a LIFETIME")
        return lives.to_numpy()


#: the number of a row among all that ever entered its window
WHO = "#who"


class NumberedRows(Operator):
    """The rows that enter a window, of all streams below it, each with a number that no other has."""

    name = "rows"

    def __init__(self, below: Operator) -> None:
        self.inputs = (below,)
        self.columns = below.columns | {WHO: INT}

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        (rows,) = inputs
        numbers, last = _numbers(state, rows.height)
        return State({}, {COUNT: last}), rows.with_columns(numbers.alias(WHO))


def tell_apart(leaf: Leaf, place: int) -> None:
    """Let the pieces of a window whose rows are `NumberedRows` carry `#id.` of their row."""
    leaf.carry(f"{signed.ID}{place}", WHO)


class Identified(Operator):
    """A window whose pieces carry `#id.` of their row and, if external, `#stays.`, when it leaves."""

    name = "window"

    def __init__(self, leaf: Leaf, place: int, *, external: bool) -> None:
        self.leaf = leaf
        self.inputs = leaf.inputs
        self.stays = f"{signed.STAYS}{place}"
        self.external = external
        tell_apart(leaf, place)
        self.columns = leaf.columns | ({self.stays: INT} if external else {})

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        state, found = self.leaf.advance(state, inputs, step)
        if self.external:
            found = found.with_columns(pl.col(VE).alias(self.stays))
        return state, found.select(list(self.columns))
