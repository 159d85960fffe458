"""n-way ⋈: new rows of each input meet the rows of all others; no intermediate result is kept.

Card: semi-naive join
    requirements  pieces; any predicate, equalities are hashed unless nested loops are asked for
    time          for each input with news: its new rows probe the others' states, in the global order, where
                  what an equality links comes first (`probing`)
    space         the pieces of each input that are alive, and those not yet purged (`expiry`)
    source        Golab's thesis, 5.2 (Algorithms 2 and 3: eager multi-way join); pairs of intervals intersect

With Δ for what is new, the step adds Δ1 ⋈ R2 ⋈ … ∪ (R1 + Δ1) ⋈ Δ2 ⋈ R3 … ∪ …: every combination with
something new, once. What is kept has no beginning: it lies before everything new. Only where rows come before
their time (`ahead`) are beginnings kept. Where the operator tells of ends itself (`ends`), rows that expire
are new as well: negative ones.

Expired rows match nothing any more, so when they leave is a matter of cost alone: at every step, now and then
(thesis, 5.2.1: Algorithm 2 against 3), or chunk by chunk, unopened, when all rows of one have expired.

There is one global order; the arrivals of an input follow it, their own input left out (thesis, Table 5.2),
except that an input which an equality links to what is there goes before one that is not linked. Rates, sizes
and numbers of values are observed as rows come, and looked at again after as many arrivals as half the rows
kept. The order changes only for one that is clearly cheaper by the model of `join.order`: two orders that
cost about the same do not take turns.

Over count-based windows, which part of a result leaves first cannot be told. So a result carries the number
of each of its rows: every window has a catalogue of results by the numbers of its rows, in whose order these
expire. A row that leaves looks up its results there, instead of finding its partners anew.

Card: catalogues of results
    requirements  inputs are windows, through σ and π at most; each row that expires unpredictably is numbered
    time          new rows as in ⋈; expired rows: a search by number in the results
    space         the pieces of each input, and the results alive
    source        Patroumpas and Sellis 2011, 4.2 (joins over physical windows); Golab's thesis, 5.2.2 (a row
                  that is taken away gets its end, and is dropped after the step)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from windrow.algebra.expressions import Expression
from windrow.kernels.relational import (
    expiry_layouts,
    expiry_layouts as layouts,
    operator,
    signed_rows as signed,
)
from windrow.kernels.relational.join import partners
from windrow.kernels.relational.join.order import WindowStats, augmented_order, order_cost
from windrow.kernels.relational.signed_rows import FOREVER, ID, SIGNED, TURN, VE, VS, Columns, N
from windrow.kernels.state import Chunk, State

#: the instant up to which expired rows were last purged
PURGED = "purged"


@dataclass(frozen=True)
class Expiry:
    """`every` as in `Options.expire_every`."""

    every: int | None = None

    def after(
        self,
        state: State,
        layouts: Sequence[expiry_layouts.ExpiryLayout],
        sides: Sequence[Columns],
        new: Sequence[pl.DataFrame],
        floor: int,
    ) -> State:
        """The rows of each input without those over at `floor`, if these leave now, and with new ones."""
        purged = state.meta.get(PURGED, -FOREVER)
        is_due = not self.every or floor >= FOREVER or floor - purged >= self.every
        chunks = {}
        for place, (layout, side, frame) in enumerate(zip(layouts, sides, new, strict=True)):
            kept = state.of(str(place))
            if self.every is None:
                kept = layout.forget(kept, floor)
            elif is_due:
                _, kept = layout.due(kept, floor + 1, side)
            chunks[str(place)] = layout.add(kept, frame.select(list(side)).filter(pl.col(VE) > floor))
        return State(chunks, {PURGED: floor if is_due else purged} if self.every else {})

    @property
    def text(self) -> str:
        """What people read."""
        if self.every is None:
            return "expired rows leave by chunks"
        return f"expired rows leave {f'every {self.every} instants' if self.every else 'at once'}"


Order = tuple[int, ...]

#: a join of two has one order only
FEWEST_INPUTS = 3
#: nothing is concluded from fewer arrivals
FEWEST_ROWS = 32
#: an order is changed for one that costs less than this share of it
CLEARLY_CHEAPER = 0.8
SINCE = "since"


def order_of(meta: Mapping[str, int], size: int) -> Order:
    """The global order that a state remembers; as written before anything was observed.

    >>> order_of({"order.0": 2, "order.1": 0, "order.2": 1}, 3), order_of({}, 2)
    ((2, 0, 1), (0, 1))
    """
    return tuple(meta.get(f"order.{place}", place) for place in range(size))


def cheaper(
    order: Order, arrived: Sequence[int], rows: Sequence[int], values: Sequence[int], span: int
) -> Order:
    """A clearly cheaper order, if there is one: by arrivals in a span of time, rows kept, and their values.

    >>> cheaper((0, 1, 2), arrived=[10, 10, 10], rows=[1000, 10, 10], values=[5, 5, 5], span=10)
    (1, 2, 0)
    >>> cheaper((1, 2, 0), arrived=[10, 10, 10], rows=[1000, 11, 10], values=[5, 5, 5], span=10)
    (1, 2, 0)
    """
    rates = [max(1, number) / span for number in arrived]
    windows = [
        WindowStats(str(place), rate, max(1, size) / rate, max(1, different))
        for place, (rate, size, different) in enumerate(zip(rates, rows, values, strict=True))
    ]
    best = augmented_order(windows)
    if order_cost(best) < CLEARLY_CHEAPER * order_cost([windows[place] for place in order]):
        return tuple(int(window.name) for window in best)
    return order


def observed(
    meta: Mapping[str, int],
    arrived: Sequence[int],
    rows: Sequence[int],
    values: Callable[[], Sequence[int]],
    now: int,
) -> dict[str, int]:
    """What to remember after a step; `values` counts the different keys of each input, when that is asked."""
    size = len(arrived)
    order, since = order_of(meta, size), meta.get(SINCE, now)
    total = [meta.get(f"arrived.{place}", 0) + number for place, number in enumerate(arrived)]
    enough = sum(total) >= max(FEWEST_ROWS, sum(rows) // 2)
    if enough and abs(since) < FOREVER and since < now < FOREVER:
        order = cheaper(order, total, rows, values(), now - since)
        total, since = [0] * size, now
    elif abs(since) >= FOREVER:
        since = now
    found = {f"order.{place}": input_ for place, input_ in enumerate(order)}
    found |= {f"arrived.{place}": number for place, number in enumerate(total)}
    return {**found, SINCE: since}


class Joined(operator.Operator):
    """⋈ of any number of inputs; with `ahead`, of rows that may begin later than now; with `by_source`, of
    rows that each come by the clock of their source, and may begin earlier than others that came before."""

    name = "⋈"

    def __init__(
        self,
        below: Sequence[operator.Operator],
        predicate: Expression,
        names: Sequence[Sequence[str]],
        choice: layouts.Choice,
        *,
        ahead: bool = False,
        tells: bool = False,
        by_source: bool = False,
    ) -> None:
        self.inputs = tuple(below)
        #: of which inputs it is remembered when rows began: rows that come may have begun before them
        self.remembers = [ahead or (by_source and choice.known(part)) for part in below]
        self.layouts: list[layouts.ExpiryLayout] = [choice.layout(part) for part in below]
        self.condition = partners.Condition(predicate, names)
        self.loops = choice.options.tables is layouts.Tables.LOOPS
        #: whether results end by negative rows, although rows below carry their ends
        self.tells = tells and self.hashes and any(map(choice.ends, below))
        self.expiry = Expiry(choice.options.expire_every)
        self.reorders = choice.options.reorder and len(self.inputs) >= FEWEST_INPUTS
        self.sides = [
            signed.without(part.columns, TURN, *(() if remembers else (VS,)))
            for part, remembers in zip(below, self.remembers, strict=True)
        ]
        columns = [signed.values_of(part.columns) for part in below]
        #: the columns of results as they are found
        self.made: Columns = {name: dtype for part in columns for name, dtype in part.items()} | SIGNED
        assert len(self.made) == sum(map(len, columns)) + len(SIGNED), "inputs have a column in common"
        self.columns = self.made

    @property
    def hashes(self) -> bool:
        """Whether partners are found by hash tables."""
        return bool(self.condition.equalities) and not self.loops

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        old = [layouts.frame_of(state.of(str(i)), side) for i, side in enumerate(self.sides)]
        found = self.found(*self._with_ends(inputs, old, step), order_of(state.meta, len(old)))
        # rows that end right now are kept by all, so that another plan can be started from them
        after = self.expiry.after(state, self.layouts, self.sides, inputs, partners.last_kept(step.slice))
        return State(after.chunks, {**after.meta, **self.watched(state, inputs, old, step)}), found

    def _with_ends(
        self, inputs: Sequence[pl.DataFrame], old: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[Sequence[pl.DataFrame], Sequence[pl.DataFrame]]:
        """What is new and what is old, to the one who has to tell of ends."""
        if not self.tells:
            return inputs, old
        new = [
            partners.with_negative_rows(rows, _without_turn(frame), step.slice)
            for rows, frame in zip(old, inputs, strict=True)
        ]
        return new, [partners.still_there(rows, step.slice) for rows in old]

    def found(
        self, inputs: Sequence[pl.DataFrame], old: Sequence[pl.DataFrame], order: Order
    ) -> pl.DataFrame:
        """All results with something new."""
        parts = [self._probed(i, inputs, old, order) for i, new in enumerate(inputs) if new.height]
        return signed.together(parts, self.made)

    def watched(
        self, state: State, inputs: Sequence[pl.DataFrame], old: Sequence[pl.DataFrame], step: operator.Step
    ) -> dict[str, int]:
        """What is remembered of rates and values, where the order may change."""
        if not self.reorders:
            return {}
        arrived = [frame.height for frame in inputs]
        rows = [frame.height + new for frame, new in zip(old, arrived, strict=True)]

        def values() -> list[int]:
            return [self._values(place, frame) for place, frame in enumerate(old)]

        return observed(state.meta, arrived, rows, values, step.slice.now)

    def _values(self, place: int, frame: pl.DataFrame) -> int:
        """How many different keys an input has."""
        sides = {equality.side(place) for equality in self.condition.equalities if place in equality.homes}
        if not sides or not frame.height:
            return 1
        return partners.keyed(frame, list(sides)).select(f"#key{i}" for i in range(len(sides))).n_unique()

    def _probed(
        self, origin: int, inputs: Sequence[pl.DataFrame], old: Sequence[pl.DataFrame], order: Order
    ) -> pl.DataFrame:
        """Results with new rows of one input: with all rows of those before it, old ones of those after."""
        found = _without_turn(inputs[origin])
        done = {origin}
        for test in self._tests(done, set()):
            found = partners.satisfying(found, test)
        for place in self.probing(origin, order):
            other = old[place] if self.remembers[place] else signed.begun(old[place])
            if place < origin and inputs[place].height:
                other = signed.together([other, inputs[place]], dict(other.schema))
            if not found.height or not other.height:
                return signed.blank(self.made)
            found = self._paired(found, other, done, place)
            done.add(place)
        if self.condition.late is not None:
            found = partners.satisfying(found, self.condition.late)
        return found.select(list(self.made))

    def probing(self, origin: int, order: Order) -> list[int]:
        """The other inputs, in the order in which new rows of `origin` look through them."""
        left, done = [place for place in order if place != origin], {origin}
        found: list[int] = []
        while left:
            linked = [place for place in left if self._links(done, place)]
            found.append((linked or left)[0])
            done.add(found[-1])
            left.remove(found[-1])
        return found

    def _links(self, done: set[int], place: int) -> list[tuple[Expression, Expression]]:
        """(what is there, the input's) of each equality between the two."""
        found = []
        for equality in self.condition.equalities:
            a, b = equality.homes
            if place in (a, b) and (a if b == place else b) in done:
                found.append((equality.side(a if b == place else b), equality.side(place)))
        return found

    def _paired(self, found: pl.DataFrame, other: pl.DataFrame, done: set[int], place: int) -> pl.DataFrame:
        links = self._links(done, place)
        keys = [f"#key{i}" for i in range(len(links))]
        left = partners.keyed(found, [mine for mine, _ in links])
        right = partners.keyed(other, [theirs for _, theirs in links])
        tests = self._tests(done | {place}, done)
        return partners.meet(left, right, keys, loops=self.loops, tests=tests).drop(keys)

    def _tests(self, done: set[int], before: set[int]) -> list[Expression]:
        """The tests that could not be made before, and cannot raise an error."""
        early = [(test, self.condition.homes(test)) for test in self.condition.early]
        return [test for test, homes in early if homes <= done and (not homes <= before or not before)]


def _without_turn(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(TURN) if TURN in frame.columns else frame


RESULTS, END = "results", "#end"


class Catalogued(Joined):
    """⋈ whose results are kept until a row of theirs leaves."""

    name = "⋈, catalogued"

    def __init__(
        self,
        below: Sequence[operator.Operator],
        predicate: Expression,
        names: Sequence[Sequence[str]],
        choice: layouts.Choice,
    ) -> None:
        super().__init__(below, predicate, names, choice)
        #: the column that numbers the rows of each input; None if they say when they leave
        self.ids = [next((n for n in part.columns if n.startswith(ID)), None) for part in below]
        self.layouts = [
            layout if id_ is None else layouts.Fifo()
            for layout, id_ in zip(self.layouts, self.ids, strict=True)
        ]
        self.columns = signed.without(self.made, *filter(None, self.ids))
        self.kept = signed.without(self.made, VS)

    def advance(
        self, state: State, inputs: Sequence[pl.DataFrame], step: operator.Step
    ) -> tuple[State, pl.DataFrame]:
        came, left = zip(*(self._split(i, frame) for i, frame in enumerate(inputs)), strict=True)
        old = [
            self._closed(i, layouts.frame_of(state.of(str(i)), side), left[i])
            for i, side in enumerate(self.sides)
        ]
        found = self.found(came, old, order_of(state.meta, len(old)))
        results, over = self._looked_up(state.of(RESULTS), left)
        floor = step.slice.floor
        lasting = found.filter(pl.col(VE) > floor).select(list(self.kept))
        results = layouts.Fifo().add(layouts.Fifo().forget(results, floor), lasting)
        held = {
            str(i): layouts.chunks_of(rows.filter(pl.col(VE) > floor)) if left[i].height else state.of(str(i))
            for i, rows in enumerate(old)
        }
        after = self.expiry.after(State(held, state.meta), self.layouts, self.sides, came, floor)
        meta = {**after.meta, **self.watched(state, came, old, step)}
        return State({RESULTS: results, **after.chunks}, meta), signed.together([found, over], self.columns)

    def _split(self, place: int, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """New rows, and the numbers of those that leave, with when they do."""
        id_ = self.ids[place]
        if id_ is None:
            return frame, pl.DataFrame()
        came, gone = signed.parted(frame, frame[N] > 0)
        return came, gone.select(id_, pl.col(VS).alias(END))

    def _closed(self, place: int, old: pl.DataFrame, left: pl.DataFrame) -> pl.DataFrame:
        """The rows of an input as they are in this step: those that leave have an end."""
        id_ = self.ids[place]
        if id_ is None or not left.height or not old.height:
            return old
        ends = pl.min_horizontal(VE, END).alias(VE)
        return self._ending(old, id_, left).with_columns(ends).drop(END)

    @staticmethod
    def _ending(rows: pl.DataFrame, id_: str, left: pl.DataFrame) -> pl.DataFrame:
        found = rows.join(left, on=id_, how="left", maintain_order="left")
        return found.with_columns(pl.col(END).fill_null(FOREVER))

    def _looked_up(
        self, chunks: layouts.Chunks, left: Sequence[pl.DataFrame]
    ) -> tuple[layouts.Chunks, pl.DataFrame]:
        """The results that stay, and negative rows for those of which a part leaves."""
        leaving = {id_: gone for id_, gone in zip(self.ids, left, strict=True) if id_ and gone.height}
        if not leaving:
            return chunks, signed.blank(self.made)
        spans = [pl.col(id_).is_between(gone[id_].min(), gone[id_].max()) for id_, gone in leaving.items()]
        stay: list[Chunk] = []
        over: list[pl.DataFrame] = []
        for chunk in chunks:
            frame = chunk.frame
            near = frame.select(pl.any_horizontal(spans)).to_series()
            if not near.any():
                stay.append(chunk)
                continue
            ended = self._first_end(frame.filter(near), leaving)
            touched, others = signed.parted(ended, ended[END] < ended[VE])
            over.append(touched.with_columns(pl.col(END).alias(VS)))
            stay += layouts.chunks_of(pl.concat([frame.filter(~near), others.select(frame.columns)]))
        return tuple(stay), signed.negated(signed.together(over, self.made))

    def _first_end(self, frame: pl.DataFrame, leaving: dict[str, pl.DataFrame]) -> pl.DataFrame:
        """Results with the instant at which the first of their parts leaves."""
        ends = [self._ending(frame.select(id_), id_, gone)[END] for id_, gone in leaving.items()]
        first = pl.DataFrame([end.alias(str(place)) for place, end in enumerate(ends)]).min_horizontal()
        return frame.with_columns(first.alias(END))
