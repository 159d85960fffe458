"""γ: one row per group that has rows; a value stays until the next one replaces it.

Card: recomputed groups
    requirements  any aggregates, any signed pieces
    time          rows of the groups that something happens to, and events there, if rows go in the order in
                  which they came (`in_order`), else times log of the events (dyadic cells)
    space         the rows alive, and the value shown of each group
    source        Golab's thesis, 3.2.2 (group-by replaces values); Patroumpas and Sellis 2011, 4

A cell is a group while none of its rows comes or goes. Where rows go in the order in which they came, those
of a span of cells are neighbours: they lie between two places, neither of which goes back from one span to
the next within a group. Cuts are made so that every span reaches to a cut or across one: it is the rest of
what lies before the cut, and the beginning of what lies after it.

    rows     a   b   c | d   e   f | g        cuts after c and f
    span         [-----------)                rest(b) with beginning(e)

Card: spans in order
    requirements  associative combine; no row outlives one of its group that began later
    time          O(1) combinations per row and per span
    space         three cells per row, one per span
    source        two stacks (folklore; Tangwongsan, Hirzel and Schneider 2015), all flips known beforehand

In any other order, the range of spans that a row covers is cut into few aligned blocks of 2^l spans, as a
segment tree would; the rows of a block are combined once, and each span combines the blocks it lies in.

Card: dyadic cells
    requirements  associative and commutative combination (row order is part of the state where it matters)
    time          O((rows + spans) · log spans) combinations: one grouping for blocks, one for spans
    space         at most 2·log(spans) entries per row
    source        segment trees (Bentley 1977); rows × spans where that is not more

The variance of some doubles depends in its last digits on the order in which they were combined. Where
changes are told, that would be a row that leaves and another that comes, though nothing has changed. So a
value that lies within `CLOSE` of the one before it counts as that one; no answer is further than `FAR` from
the value computed, a tenth of what executors may differ by. Sums and means are exact where doubles are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl

from windrow.algebra import Aggregate, Expression
from windrow.kernels.aggregates import lowering, partials
from windrow.kernels.aggregates.measures import GROUPS, Measure, Measures
from windrow.kernels.columnar import combiners, expressions
from windrow.kernels.columnar.columns import picked, polars_type, without_negative_zero
from windrow.kernels.relational import expiry_layouts, operator, signed_rows as signed
from windrow.kernels.relational.signed_rows import FOREVER, INT, TS, TURN, VE, VS, Columns, N
from windrow.kernels.state import PANE, State, TableLayout
from windrow.windows.domain import Doubles, Flags, Ints
from windrow.windows.spec import covered

CELL = "#cell"


def lowered(measures: Measures, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """`#cell`, then the value of each aggregate, one row per cell; states come in as tables by `pane`."""
    states = tables[GROUPS]
    columns = [_value(measure, states, tables.get(measure.table)) for measure in measures.measures]
    return pl.DataFrame([states[PANE].alias(CELL), *columns])


def _value(measure: Measure, states: pl.DataFrame, counts: pl.DataFrame | None) -> pl.Series:
    dtype = polars_type(measure.kind)
    if measure.partial is not None:
        return lowering.lower(measure.aggregate, measure.partial, states).cast(dtype).alias(measure.name)
    nothing = pl.Series([lowering.of_nothing(measure.aggregate)], dtype=dtype).new_from_index(
        0, states.height
    )
    if counts is None or not counts.height:
        return nothing.alias(measure.name)
    keyless = counts.select(
        pl.col(PANE).alias("w"), pl.lit(0, pl.Int64).alias("g"), pl.exclude(PANE, "^k[0-9]+$")
    )
    found = lowering.of_counts(measure.aggregate, keyless).with_columns(pl.lit(True).alias("known"))
    joined = states.select(pl.col(PANE).alias("w")).join(found, on="w", how="left", maintain_order="left")
    value = joined["value"].cast(dtype).zip_with(joined["known"].fill_null(False), nothing)
    return value.alias(measure.name)


class GroupKeys:
    """What tells groups apart: `#k0` …, as grouping sees values."""

    def __init__(self, keys: Sequence[Expression]) -> None:
        self.evaluators = [expressions.compile_expression(key) for key in keys]
        self.columns: Columns = {f"#k{place}": polars_type(key.type) for place, key in enumerate(keys)}

    def of(self, rows: pl.DataFrame) -> list[pl.Series]:
        """The keys of each row."""
        return [
            without_negative_zero(evaluate(rows)).cast(dtype).alias(name)
            for evaluate, (name, dtype) in zip(self.evaluators, self.columns.items(), strict=True)
        ]


#: rows × spans is done directly if it is no more than this many times the rows and spans
DIRECT = 4


def blocks(low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """(row, level, block) of aligned blocks that make up each range.

    >>> [found.tolist() for found in blocks(np.array([1]), np.array([8]))]
    [[0, 0, 0], [0, 1, 2], [1, 1, 1]]
    """
    rows, levels, found = [], [], []
    row, level = np.arange(len(low)), 0
    inside = low < high
    row, low, high = row[inside], low[inside], high[inside]
    while len(row):
        left, right = (low & 1) == 1, (high & 1) == 1
        for some, block in ((left, low), (right, high - 1)):
            rows.append(row[some])
            levels.append(np.full(int(some.sum()), level))
            found.append(block[some])
        low, high, level = (low + left) >> 1, (high - right) >> 1, level + 1
        inside = low < high
        row, low, high = row[inside], low[inside], high[inside]
    empty = np.zeros(0, dtype=np.int64)
    parts = [np.concatenate(part) if part else empty for part in (rows, levels, found)]
    return parts[0], parts[1], parts[2]


def combines(layout: TableLayout) -> bool:
    """Whether states are numbers throughout, so that combining them is a matter of arrays."""
    return all(isinstance(combiner, combiners.Pointwise | combiners.Moments) for combiner in layout.combiners)


def order_of(low: Ints, high: Ints) -> Ints | None:
    """The rows that cover any span, as they come and go; None if these are two different orders.

    >>> order_of(np.array([3, 0, 1]), np.array([5, 2, 2])).tolist()
    [1, 2, 0]
    >>> order_of(np.array([0, 1]), np.array([5, 2])) is None
    True
    """
    some = np.flatnonzero(low < high)
    order = some[np.lexsort((high[some], low[some]))]
    ends = high[order]
    return order if bool((ends[1:] >= ends[:-1]).all()) else None


def spans(states: pl.DataFrame, layout: TableLayout, low: Ints, high: Ints) -> pl.DataFrame:
    """The states of all spans that have rows, by number; those of the rows are in the order of `order_of`."""
    cells = np.arange(int(high[-1]))
    first, stop = np.searchsorted(high, cells, side="right"), np.searchsorted(low, cells, side="right")
    cells = cells[first < stop]
    first, stop = first[cells], stop[cells]
    cuts = _cuts(first, stop)
    edge = cuts[np.searchsorted(cuts, first, side="right")]
    starts = np.append(0, cuts[cuts < len(low)])
    encoded = layout.encode(states)
    found = []
    for combiner, lanes in zip(layout.combiners, encoded.lanes, strict=True):
        rest = combiners.take(combiners.segmented(combiner, lanes, starts, True), first)
        beginning = combiners.take(combiners.segmented(combiner, lanes, starts), stop - 1)
        found.append(combiners.choose(stop > edge, combiner.combine(rest, beginning), rest))
    return pl.DataFrame([pl.Series(PANE, cells), *encoded.decode(found)])


def _cuts(first: Ints, stop: Ints) -> Ints:
    """Places such that each range [first, stop) ends at one or has one inside, but never two.

    >>> _cuts(np.array([0, 0, 1, 3, 4]), np.array([2, 3, 3, 5, 5])).tolist()
    [2, 5]
    """
    following = np.searchsorted(first, stop).tolist()
    found, place = [], 0
    while place < len(following):
        found.append(place)
        place = following[place]
    return stop[found]


def spread(table: pl.DataFrame, layout: TableLayout, source: Ints, target: Ints) -> pl.DataFrame:
    """States of panes combined for others, to each of which some of them go."""
    ways = pl.DataFrame({PANE: source, "#to": target})
    found = table.join(ways, on=PANE).drop(PANE).rename({"#to": PANE}).select(table.columns)
    return layout.merge(found, [name for name in (PANE, *layout.keys) if name in table.columns])


def cell_values(
    measures: Measures,
    low: Ints,
    high: Ints,
    lifted: Callable[[Ints, Ints], dict[str, pl.DataFrame]],
    in_order: Callable[[Ints], pl.DataFrame],
) -> pl.DataFrame:
    """`#cell` and the values of all cells that any row is in: each from `low` up to `high`.

    `lifted` gives the states of some rows combined by pane, `in_order` those of single rows in an order.
    """
    layouts = measures.layouts
    if not (low < high).any():
        return signed.blank({CELL: INT} | {m.name: polars_type(m.kind) for m in measures.measures})
    if int(np.maximum(high - low, 0).sum()) <= DIRECT * (len(low) + int(high.max())):
        return lowered(measures, lifted(*covered(low, high)))
    order = order_of(low, high) if set(layouts) == {GROUPS} and combines(layouts[GROUPS]) else None
    if order is not None:
        return lowered(measures, {GROUPS: spans(in_order(order), layouts[GROUPS], low[order], high[order])})
    row, level, block = blocks(low, high)
    width = int(high.max()) + 1
    cells, levels = np.arange(width), range(int(level.max()) + 1)
    nodes = np.concatenate([number * width + (cells >> number) for number in levels])
    tables = lifted(row, level * width + block)
    found = {n: spread(t, layouts[n], nodes, np.tile(cells, len(levels))) for n, t in tables.items()}
    return lowered(measures, found)


#: relative distances
CLOSE, FAR = 1e-11, 1e-10


def steadied(shown: Doubles, owners: Ints, values: Doubles, group: Ints) -> Doubles:
    """Values of groups, each group's in order of time, after what was last shown of some groups.

    NaN stands for no value, and is never close to anything.

    >>> flickering = np.array([2.0, 2.0 + 4e-16, 3.0, 2.0 - 4e-16])
    >>> steadied(np.array([2.0 + 8e-16]), np.array([7]), flickering, np.array([7, 7, 7, 7])).tolist()
    [2.000000000000001, 2.000000000000001, 3.0, 1.9999999999999996]
    """
    every = np.concatenate([shown, values])
    order = np.argsort(np.concatenate([owners, group]), kind="stable")
    code, sorted_ = np.concatenate([owners, group])[order], every[order]
    if not len(every):
        return values
    follows = np.append(False, (code[1:] == code[:-1]) & _within(sorted_[1:], sorted_[:-1], CLOSE))
    heads = _heads(follows)
    strays = follows & ~_within(sorted_, sorted_[heads], FAR)
    while strays.any():
        first = np.unique(heads[strays], return_index=True)[1]
        follows[np.flatnonzero(strays)[first]] = False
        heads = _heads(follows)
        strays = follows & ~_within(sorted_, sorted_[heads], FAR)
    found = np.empty(len(every))
    found[order] = sorted_[heads]
    return found[len(shown) :]


def _heads(follows: Flags) -> Ints:
    """The place at which each value's run begins."""
    return np.maximum.accumulate(np.where(follows, 0, np.arange(len(follows))))


def _within(values: Doubles, others: Doubles, distance: float) -> Flags:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values - others) <= distance * np.abs(others))


HELD, WAITING, SHOWN = "rows", "waiting", "shown"
#: which group a row or an event belongs to, by number; the instant of an event
GROUP, AT = "#group", "#at"


class Grouped(operator.Operator):
    """γ over any signed pieces.

    `source` is the key by whose values groups are final by themselves, for each column that can be so.
    """

    name = "γ"
    #: whether it takes states of pieces, which queries may have in common, and not their rows
    reads_states = False

    def __init__(
        self,
        plan: Aggregate,
        below: operator.Operator,
        choice: expiry_layouts.Choice,
        sources: dict[str, int] | None = None,
    ) -> None:
        self.plan = plan
        self.inputs = (below,)
        self.measures = Measures(plan)
        self.group_keys = GroupKeys([key for _, key in plan.keys])
        self.groups = self.group_keys.columns
        self.keys = list(self.groups)
        self.sources = {column: self.keys[place] for column, place in (sources or {}).items()}
        self.names = [name for name, _ in plan.keys]
        self.rows = self.groups | signed.without(below.columns, VS)
        self.pieces = self.rows | {VS: INT}
        self.columns = signed.columns_of(plan.schema)
        values = {name: polars_type(call.data_type) for name, call in plan.aggregates}
        self.shown = self.groups | values
        spreads = partials.FloatMoments | partials.Paired
        self.spreads = [each.name for each in self.measures.measures if isinstance(each.partial, spreads)]
        self.known = choice.known(below)
        self.layout: expiry_layouts.ExpiryLayout = (
            expiry_layouts.Calendar(choice.buckets) if self.known else choice.layout(below)
        )

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        new = expiry_layouts.frame_of(state.of(WAITING), self.pieces, self._taken(inputs[0], step))
        new, waiting = self._split(new, step, VS)
        chunks = state.of(HELD)
        over, kept = self.layout.due(chunks, step.slice.stop, self.rows)
        over, early = self._split(over, step, VE)
        if not new.height and not over.height:
            return State({**state.chunks, WAITING: expiry_layouts.chunks_of(waiting)}), signed.blank(
                self.columns
            )
        old = signed.begun(expiry_layouts.frame_of(chunks, self.rows))
        touched = signed.together([new, signed.begun(over)], self.pieces)
        mine = old.filter(self._in(old, touched))
        shown = expiry_layouts.frame_of(state.of(SHOWN), self.shown)
        same = self._in(shown, touched)
        found, after = self._replaced(signed.together([mine, new], self.pieces), shown.filter(same), step)
        _, lasting = self._split(new, step, VE)
        kept = self.layout.add(kept, signed.together([early, lasting], self.rows))
        left = signed.together([shown.filter(~same), after], self.shown)
        return State(
            {HELD: kept, WAITING: expiry_layouts.chunks_of(waiting), SHOWN: expiry_layouts.chunks_of(left)}
        ), found

    def _taken(self, pieces: pl.DataFrame, step: operator.Step) -> pl.DataFrame:
        """What comes, as it is worked on."""
        if not pieces.height:
            return signed.blank(self.pieces)
        return pieces.with_columns(self.group_keys.of(pieces)).select(list(self.pieces))

    def _stop(self, frame: pl.DataFrame, step: operator.Step) -> Ints | int:
        """Up to where each row's group is answered."""
        return step.stops(frame, self.sources)

    def _split(self, frame: pl.DataFrame, step: operator.Step, by: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows that begin (or end) in what is answered, and those that do so later."""
        return signed.parted(frame, frame[by].to_numpy() < self._stop(frame, step))

    def _in(self, frame: pl.DataFrame, touched: pl.DataFrame) -> pl.Series:
        if not self.keys:
            return pl.Series([True]).new_from_index(0, frame.height)
        return signed.found_in(frame, touched, self.keys)

    def _replaced(
        self, rows: pl.DataFrame, shown: pl.DataFrame, step: operator.Step
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What the values of touched groups become, event by event, and what they are in the end."""
        if N in rows.columns and bool((rows[N] != 1).any()):
            # a row may be taken back for a while that is known to end later: what begins then is not yet due
            rows, _ = self._split(signed.positive(rows), step, VS)
            rows = signed.copies(rows)
        before, mine = signed.codes_of([shown, rows], self.keys)
        cells, values = self._cells(rows, mine, self._stop(rows, step))
        return self._changes(shown, before, rows, cells, values)

    def _cells(self, rows: pl.DataFrame, group: Ints, stop: Ints | int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The spans between events: (pane, group, at), and the values of those that have rows."""
        vs, ve = rows[VS].to_numpy(), rows[VE].to_numpy()
        began, ended = vs > -FOREVER, ve < stop
        at = np.concatenate([vs[began], ve[ended]])
        owner = np.concatenate([group[began], group[ended]])
        order = np.lexsort((at, owner))
        owner, at = owner[order], at[order]
        new = signed.heads(owner, at)
        owner, at = owner[new], at[new]
        cells = pl.DataFrame({CELL: np.arange(len(at)), GROUP: owner, AT: at})
        # where the events of each row's group begin and end in the list, and its own are in it
        first, last = np.searchsorted(owner, group), np.searchsorted(owner, group, side="right")
        instants = np.sort(at)
        width = len(instants) + 1
        place = owner * width + np.searchsorted(instants, at)
        low = np.where(began, np.searchsorted(place, group * width + np.searchsorted(instants, vs)), first)
        high = np.where(ended, np.searchsorted(place, group * width + np.searchsorted(instants, ve)), last)
        return cells, self._values(rows, low, high)

    def _values(self, rows: pl.DataFrame, low: Ints, high: Ints) -> pl.DataFrame:
        def in_order(order: Ints) -> pl.DataFrame:
            return self._lifted(rows, order, np.arange(len(order)))[GROUPS].sort(PANE)

        return cell_values(self.measures, low, high, partial(self._lifted, rows), in_order)

    def _lifted(self, rows: pl.DataFrame, row: Ints, pane: Ints) -> dict[str, pl.DataFrame]:
        """States of rows, combined by pane. The rows' order is that of turn, instant, columns."""
        frame = picked(rows, row).with_columns(pl.Series("#pane", pane))
        order = pl.struct(TURN, TS).rank("dense").cast(pl.Int64) if TURN in frame.columns else pl.col(TS)
        return self.measures.tables(frame.with_columns(order.alias("#t")))

    def _changes(
        self, shown: pl.DataFrame, before: Ints, rows: pl.DataFrame, cells: pl.DataFrame, values: pl.DataFrame
    ) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Each value comes with its cell and goes with the next one of its group; what does not change
        cancels out."""
        names = [name for name, _ in self.plan.aggregates]
        spans = cells.join(values, on=CELL, how="left", maintain_order="left", coalesce=True)
        here = np.isin(cells[CELL].to_numpy(), values[CELL].to_numpy())
        owner = cells[GROUP].to_numpy()
        first, final = signed.heads(owner), signed.tails(owner)
        until = np.append(cells[AT].to_numpy()[1:], 0)[: len(owner)]
        old = pl.DataFrame({GROUP: pl.Series(before)}).with_columns(shown.select(names).get_columns())
        spans = spans.with_columns(self._steady(old, spans))
        gone = old.join(spans.filter(pl.Series(first)).select(GROUP, AT), on=GROUP, how="inner")
        left = spans.with_columns(pl.Series(AT, until)).filter(pl.Series(here & ~final))
        changed = ((spans.filter(pl.Series(here)), 1), (left, -1), (gone, -1))
        moves = [
            frame.select(GROUP, *names, pl.col(AT).alias(VS), pl.lit(sign, pl.Int64).alias(N))
            for frame, sign in changed
        ]
        last = spans.filter(pl.Series(here & final)).select(GROUP, *names)
        untouched = old.filter(~pl.Series(np.isin(before, owner), dtype=pl.Boolean)).select(GROUP, *names)
        keys = pl.concat([shown.select(self.keys), rows.select(self.keys)]) if self.keys else pl.DataFrame()
        after = self._keyed(pl.concat([last, untouched]), keys)
        found = self._keyed(signed.consolidated(pl.concat(moves)), keys).rename(
            dict(zip(self.keys, self.names, strict=True))
        )
        found = signed.pieces(found, self.columns, found[VS], n=found[N])
        return found, after.select(list(self.shown))

    def _steady(self, old: pl.DataFrame, spans: pl.DataFrame) -> list[pl.Series]:
        """The spreads of doubles, without what comes from the order of combining."""
        owners, group = old[GROUP].to_numpy(), spans[GROUP].to_numpy()
        found = []
        for name in self.spreads:
            lasting, new = (frame[name].fill_null(np.nan).to_numpy() for frame in (old, spans))
            column = pl.Series(name, steadied(lasting, owners, new, group))
            found.append(pl.select(pl.when(spans[name].is_not_null()).then(column)).to_series().alias(name))
        return found

    def _keyed(self, frame: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
        """With the keys of groups in place of their numbers."""
        if not self.keys:
            return frame.drop(GROUP)
        own = picked(keys, frame[GROUP]).get_columns()
        return frame.drop(GROUP).with_columns(own) if frame.width > 1 else pl.DataFrame(own)
