"""Ranks and frames: what depends on the order of rows.

LIMIT: the first rows by some order, ties by the remaining columns, of equal rows the oldest; -0.0 is 0.0, as
in rows that are equal.
RANK and its like: all rows with their places in such an order, within partitions.

Card: rank at each change
    requirements  any signed pieces
    time          rows alive × instants at which any of them comes or goes, sorted
    space         the rows alive, and those shown
    source        LIMIT by definition

OVER: aggregates of the rows before each row.

A row's frame is a run of neighbours in its partition's order, and no frame begins or ends before that of the
row before it; so a row is in the frames of a run of rows, as a row is in a run of spans below γ, and both are
computed alike.

    rows      a   b   c   d   e            ROWS 2 PRECEDING
    frame of c   [a   b   c]
    b is in the frames of b, c and d

Rows become states when they come. Of these are kept those that frames of later rows reach; where frames have
no beginning, those that all later frames have are one state for each partition.

Card: frames
    requirements  rows come in order and never leave; frames end at their row or before it
    time          O(1) combinations per row for states of numbers, whatever the frame (spans in order); else
                  rows × frame, or (rows + frame) · log (dyadic cells); all partitions' states are read
    space         the states of the rows within a frame of the last; one per partition where it is unbounded
    source        spans in order: Tangwongsan, Hirzel and Schneider 2015; Leis et al. 2015 (frames as segment
                  trees)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from windrow.algebra import Expression, Plan
from windrow.algebra.operators import Aggregate, AggregateCall, Limit, Over, OverFrame, Rank
from windrow.kernels.aggregates import lowering, measures
from windrow.kernels.columnar.columns import picked, polars_type, row_order, value_order
from windrow.kernels.columnar.expressions import compile_expression
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.aggregate import group_by
from windrow.kernels.relational.expiry_layouts import Hashed, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step, composed, part
from windrow.kernels.relational.signed_rows import FOREVER, INT, TS, TURN, VE, VS, Columns, N
from windrow.kernels.state import PANE, State
from windrow.windows import Ints, covered

ROWS, SHOWN = "rows", "shown"


class Limited(Operator):
    """The first `count` rows."""

    name = "LIMIT"

    def __init__(self, plan: Limit, below: Operator) -> None:
        self.inputs = (below,)
        self.count = plan.count
        self.names = plan.schema.names
        self.order = [(compile_expression(expression), down) for expression, down in plan.order]
        self.taken = self.columns = signed.without(below.columns, TURN)
        self.rows = self.shown = signed.without(self.taken, VS)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.taken))
        layout = Hashed()
        over, alive = layout.due(state.of(ROWS), step.slice.stop, self.rows)
        if not new.height and not over.height:
            return state, signed.blank(self.columns)
        old = signed.begun(frame_of(state.of(ROWS), self.rows))
        runs = signed.positive(signed.together([old, new], self.taken)).filter(pl.col(VS) < step.slice.stop)
        shown = frame_of(state.of(SHOWN), self.shown)
        found, after = self._ranked(runs, shown, step.slice.stop)
        kept = layout.add(alive, new.select(list(self.rows)).filter(pl.col(VE) >= step.slice.stop))
        return State({ROWS: kept, SHOWN: chunks_of(after)}), found

    def _ranked(
        self, runs: pl.DataFrame, shown: pl.DataFrame, stop: int
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        vs, ve = runs[VS].to_numpy(), runs[VE].to_numpy()
        events = np.unique(np.concatenate([vs[vs > -FOREVER], ve[ve < stop]]))
        if not len(events):
            return signed.blank(self.columns), shown
        low = np.searchsorted(events, np.maximum(vs, events[0]))
        row, span = covered(low, np.where(ve < stop, np.searchsorted(events, ve), len(events)))
        first = self._first(picked(runs, row).with_columns(pl.Series("#span", span)))
        places = first["#span"].to_numpy()
        came = first.with_columns(pl.Series(VS, events[places]))
        ends = np.append(events, FOREVER)[places + 1]
        gone = signed.negated(first.with_columns(pl.Series(VS, ends))).filter(pl.Series(ends < FOREVER))
        before = signed.negated(signed.begun(shown, int(events[0])))
        never = pl.lit(FOREVER, pl.Int64).alias(VE)
        moves = [frame.with_columns(never).select(list(self.columns)) for frame in (came, gone, before)]
        after = first.filter(pl.Series(places == len(events) - 1)).with_columns(never)
        return signed.consolidated(pl.concat(moves)), after.select(list(self.shown))

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows of each span that stay, with as many copies as there is room for."""
        ranked = self._sorted(rows, [])
        room = self.count - (pl.col(N).cum_sum().over("#span") - pl.col(N))
        return ranked.with_columns(pl.min_horizontal(pl.col(N), room).alias(N)).filter(pl.col(N) > 0)

    def _sorted(self, rows: pl.DataFrame, parts: list[pl.Series]) -> pl.DataFrame:
        """By span and partition, in the given order (`#a…`), by the remaining columns, by instants."""
        given = [value_order(evaluate(rows)).alias(f"#a{i}") for i, (evaluate, _) in enumerate(self.order)]
        rest = [value_order(rows[name]).alias(f"#b{i}") for i, name in enumerate(self.names)]
        by = ["#span", *(column.name for column in (*parts, *given, *rest)), TS]
        down = [False] * (1 + len(parts)) + [down for _, down in self.order] + [False] * (len(rest) + 1)
        return rows.with_columns([*parts, *given, *rest]).sort(by, descending=down, nulls_last=down)


class Ranked(Limited):
    """All rows, with their numbers within partitions."""

    name = "RANK"

    def __init__(self, plan: Rank, below: Operator) -> None:
        super().__init__(Limit(plan.input, plan.order, 1), below)
        self.kind, self.number = plan.kind, plan.name
        self.partition = [compile_expression(part) for part in plan.partition]
        self.columns = self.taken | {plan.name: INT}
        self.shown = signed.without(self.columns, VS)

    def _first(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Each copy of a row by itself, with its number."""
        parts = [value_order(evaluate(rows)).alias(f"#p{i}") for i, evaluate in enumerate(self.partition)]
        ranked = signed.copies(self._sorted(rows, parts)).with_columns(pl.lit(1, pl.Int64).alias(N))
        by = ["#span", *(part.name for part in parts)]
        ranked = ranked.with_columns(pl.col(N).cum_sum().over(by).alias("#row"))
        if self.kind == "ROW_NUMBER":
            return ranked.rename({"#row": self.number})
        equal = [*by, *(f"#a{i}" for i in range(len(self.order)))]
        first = pl.col("#row").min().over(equal)
        if self.kind == "RANK":
            return ranked.with_columns(first.alias(self.number))
        new = (pl.col("#row") == first).cast(pl.Int64)
        dense = pl.col("#new").cum_sum().over(by).alias(self.number)
        return ranked.with_columns(new.alias("#new")).with_columns(dense)


TAIL = "tail"


class Framed(Operator):
    """All rows, with the values of their frames."""

    name = "frames"

    def __init__(self, plan: Over, below: Operator) -> None:
        self.inputs = (below,)
        self.order = plan.input.schema.names
        self.columns = signed.columns_of(plan.schema)
        self.rows: Columns = {n: d for n, d in below.columns.items() if n in self.columns}
        frames: dict[tuple[tuple[Expression, ...], OverFrame], list[tuple[str, AggregateCall]]] = {}
        for name, framed in plan.calls:
            frames.setdefault((framed.partition, framed.frame), []).append((name, framed.call))
        self.frames = [
            _Frames(plan.input, partition, frame, calls, self.rows)
            for (partition, frame), calls in frames.items()
        ]

    @property
    def is_bounded(self) -> bool:
        """Whether rows are forgotten."""
        return all(each.frame.start is not None for each in self.frames)

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        if not inputs[0].height:
            return state, signed.blank(self.columns)
        new = self._sorted(inputs[0])
        states, values = {}, []
        for number, frames in enumerate(self.frames):
            states[str(number)], found = frames.advance(part(state, str(number)), new, step)
            values += found
        return composed(states), new.with_columns(values).select(list(self.columns))

    def _sorted(self, pieces: pl.DataFrame) -> pl.DataFrame:
        """Rows as the stream has them in order, each copy by itself."""
        rows = signed.copies(pieces.select(list(self.rows))).with_columns(pl.lit(1, pl.Int64).alias(N))
        order = [row_order(rows[name]).alias(f"c{place}") for place, name in enumerate(self.order)]
        keys = pl.DataFrame([rows[TS].alias("t"), *order])
        return picked(rows, keys.select(pl.arg_sort_by(keys.columns)).to_series())


class _Frames:
    """The aggregates over one kind of frame."""

    def __init__(
        self,
        below: Plan,
        partition: Sequence[Expression],
        frame: OverFrame,
        calls: Sequence[tuple[str, AggregateCall]],
        rows: Columns,
    ) -> None:
        self.frame = frame
        self.kinds = {name: polars_type(call.data_type) for name, call in calls}
        self.measures = measures.Measures(Aggregate(below, (), tuple(calls)))
        self.group_keys = group_by.GroupKeys(partition)
        self.keys = list(self.group_keys.columns)
        nobody = self._lifted(signed.blank(rows), np.zeros(0, dtype=np.int64))
        self.tables = {name: dict(table.schema) for name, table in nobody.items()}
        self.tail = self.group_keys.columns | {TS: INT}

    def advance(self, state: State, new: pl.DataFrame, step: Step) -> tuple[State, list[pl.Series]]:
        """The next state, and the values of new rows in their order."""
        old = frame_of(state.of(TAIL), self.tail)
        elements = pl.concat([old, pl.DataFrame([*self.group_keys.of(new), new[TS]])])
        code = signed.codes(elements, self.keys)
        order = np.argsort(code, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        lifted = self._lifted(new, np.arange(new.height) + old.height)
        tables = {
            name: _moved(frame_of(state.of(name), kinds, lifted[name]), place)
            for name, kinds in self.tables.items()
        }
        elements, code = picked(elements, order), code[order]
        cells = np.sort(place[old.height :])
        values = self._values(tables, elements[TS].to_numpy(), code, cells)
        after = self._kept(elements, tables, code, step)
        return after, [picked(values, np.searchsorted(cells, place[old.height :]))[n] for n in self.kinds]

    def _lifted(self, rows: pl.DataFrame, pane: Ints) -> dict[str, pl.DataFrame]:
        """States of single rows."""
        frame = rows.with_columns(pl.Series("#pane", pane, dtype=pl.Int64), pl.col(TS).alias("#t"))
        return self.measures.tables(frame)

    # Values.

    def _values(
        self, tables: Mapping[str, pl.DataFrame], times: Ints, code: Ints, cells: Ints
    ) -> pl.DataFrame:
        """One row for each cell: of the elements, those that are new."""
        first, stop = self._bounds(times, code, cells)
        place = np.arange(len(times))
        low, high = np.searchsorted(stop, place, side="right"), np.searchsorted(first, place, side="right")
        layouts = self.measures.layouts

        def combined(row: Ints, pane: Ints) -> dict[str, pl.DataFrame]:
            return {name: group_by.spread(t, layouts[name], row, pane) for name, t in tables.items()}

        def in_order(order: Ints) -> pl.DataFrame:
            return picked(tables[measures.GROUPS].sort(PANE), order)

        found = group_by.cell_values(self.measures, low, high, combined, in_order)
        every = pl.DataFrame({group_by.CELL: np.arange(len(cells))})
        joined = every.join(found, on=group_by.CELL, how="left", maintain_order="left")
        known = pl.Series(np.isin(every[group_by.CELL].to_numpy(), found[group_by.CELL].to_numpy()))
        columns = []
        for each in self.measures.measures:
            nothing = pl.Series([lowering.of_nothing(each.aggregate)], dtype=self.kinds[each.name])
            columns.append(joined[each.name].zip_with(known, nothing.new_from_index(0, len(cells))))
        return joined.with_columns(columns)

    def _bounds(self, times: Ints, code: Ints, cells: Ints) -> tuple[Ints, Ints]:
        """The frame of each cell, as a range of elements."""
        start, stop = self.frame.start, self.frame.stop
        begin = np.searchsorted(code_rank(code), code_rank(code)[cells])
        if self.frame.by_rows:
            first = begin if start is None else np.maximum(begin, cells - start)
            return first, np.maximum(first, cells - stop + 1)
        known = np.unique(times)
        width = len(known) + 1
        placed = code_rank(code) * width + np.searchsorted(known, times)
        base, at = code_rank(code)[cells] * width, times[cells]
        last = np.searchsorted(placed, base + np.searchsorted(known, at - stop, side="right"))
        if start is None:
            return begin, np.maximum(begin, last)
        first = np.searchsorted(placed, base + np.searchsorted(known, at - start))
        return first, np.maximum(first, last)

    # What is kept.

    def _kept(
        self, elements: pl.DataFrame, tables: Mapping[str, pl.DataFrame], code: Ints, step: Step
    ) -> State:
        """The states that frames of later rows have in them; those that all of them have are made one."""
        start, stop = self.frame.start, self.frame.stop
        ends = np.searchsorted(code_rank(code), code_rank(code), side="right")
        if self.frame.by_rows:
            before = ends - np.arange(len(code))  # the last row is one before the next
            reached = np.full(len(code), True) if start is None else before <= start
            settled = before >= stop
        else:
            times, now = elements[TS].to_numpy(), step.clock.now
            reached = np.full(len(code), True) if start is None else times >= now - start
            settled = times <= now - stop
        first = np.searchsorted(code_rank(code), code_rank(code))
        own = np.where(settled, first, np.arange(len(code))) if start is None else np.arange(len(code))
        number = np.full(len(code), -1)
        numbers = np.unique(own[reached])
        number[reached] = np.searchsorted(numbers, own[reached])
        tail = pl.DataFrame([*(elements[name] for name in self.keys), elements[TS]])
        tail = tail.with_columns(pl.Series("#to", number)).filter(pl.col("#to") >= 0)
        if start is None:
            kept = [pl.col(name).first() for name in self.keys]
            tail = tail.group_by("#to", maintain_order=True).agg(*kept, pl.col(TS).max())
        chunks = {TAIL: chunks_of(tail.sort("#to").select(list(self.tail)))}
        for name, table in tables.items():
            moved = _moved(table, number).filter(pl.col(PANE) >= 0)
            layout = self.measures.layouts[name]
            merged = layout.merge(moved, [PANE, *layout.keys]) if start is None else moved
            chunks[name] = chunks_of(merged)
        return State(chunks)


def code_rank(code: Ints) -> Ints:
    """Numbers of runs, from 0 on.

    >>> code_rank(np.array([7, 7, 3])).tolist()
    [0, 0, 1]
    """
    return np.cumsum(signed.heads(code)) - 1


def _moved(table: pl.DataFrame, place: Ints) -> pl.DataFrame:
    """The table of other panes."""
    return table.with_columns(pl.Series(PANE, place[table[PANE].to_numpy()], dtype=pl.Int64))
