"""The same algebra on validity intervals: every operator takes and gives rows valid in [vs, ve).

Selection and projection keep the interval, join intersects, DISTINCT unites, aggregation and
difference sweep the endpoints. The snapshot of the result at any instant equals the relational
operator on the snapshots (tests hold it to that). Interval rows also show what snapshots cannot: which copy
of a distinct value is the current one, and how long a result of INTERNAL windows stays.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial, singledispatchmethod
from itertools import pairwise, product
from typing import Any

from windrow.algebra import Expression, Plan, Window, operators as ops
from windrow.reference import expressions, snapshot
from windrow.reference.rows import Fact, LeafRows, Values, World
from windrow.windows.domain import INFINITY, Instant, sort_key


@dataclass(frozen=True)
class IntervalRow:
    """A row valid in [vs, ve). `stays` is the least ve of its external windows: with INTERNAL windows a
    result stays until then, although its parts have left their windows. `origin` says what it is made of."""

    fact: Fact
    vs: Instant
    ve: Instant
    stays: Instant
    origin: tuple[Any, ...] = ()

    def __contains__(self, instant: Instant) -> bool:
        return self.vs <= instant < self.ve

    def showing(self, values: Values) -> IntervalRow:
        """The same row with other values."""
        return replace(self, fact=self.fact.showing(values))


@dataclass(eq=False)
class IntervalRows:
    """A plan evaluated as pieces. `lag` is 1 where RELATION tables are read one instant earlier.

    `breaks` are instants at which an aggregate's value counts as a new result although it is the same
    (the extents of a periodic plan over INTERNAL windows).
    """

    leaves: Mapping[Window, LeafRows]
    world: World
    lag: int = 0
    breaks: Collection[int] = frozenset()
    uniting: bool = False

    def __post_init__(self) -> None:
        #: aggregates and ranks over the rows of one instant are the snapshot's own definitions
        self.moment = snapshot.PlanSnapshot(self.leaves, self.world, 0, 0)

    @singledispatchmethod
    def of(self, plan: Plan) -> list[IntervalRow]:
        """The pieces of the plan."""
        raise TypeError(f"no interval algebra is defined for {type(plan).__name__}")

    @of.register
    def _(self, plan: Window) -> list[IntervalRow]:
        rows = self.leaves[plan]
        return [
            IntervalRow(
                fact, interval.vs, interval.ve, INFINITY if plan.spec.internal else interval.ve, (place,)
            )
            for place, (fact, interval) in enumerate(
                zip(rows.facts, plan.spec.intervals(rows.elements), strict=True)
            )
            if interval
        ]

    @of.register
    def _(self, plan: ops.Filter) -> list[IntervalRow]:
        return [
            piece
            for piece in self.of(plan.input)
            if self._holds(plan.predicate, plan.input, piece.fact.values)
        ]

    @of.register
    def _(self, plan: ops.Project) -> list[IntervalRow]:
        columns = [
            expressions.compile_expression(expression, plan.input.schema.names)
            for _, expression in plan.outputs
        ]
        return [
            piece.showing(tuple(column(piece.fact.values, None) for column in columns))
            for piece in self.of(plan.input)
        ]

    @of.register
    def _(self, plan: ops.Union) -> list[IntervalRow]:
        return [
            replace(piece, origin=(branch, *piece.origin))
            for branch, part in enumerate(plan.inputs)
            for piece in self.of(part)
        ]

    @of.register
    def _(self, plan: ops.Join) -> list[IntervalRow]:
        return [
            met
            for parts in product(*(self.of(part) for part in plan.inputs))
            if (met := intersection(parts)) and self._holds(plan.predicate, plan, met.fact.values)
        ]

    @of.register
    def _(self, plan: ops.TableJoin) -> list[IntervalRow]:
        found = []
        for piece in self.of(plan.input):
            parts = [
                part
                for part in self._table_pieces(plan, piece)
                if self._holds(plan.predicate, plan, part.fact.values)
            ]
            if plan.outer and not parts:
                padded = piece.showing(piece.fact.values + (None,) * len(plan.table.schema))
                parts = [replace(padded, origin=(*piece.origin, -1))]
            found += parts
        return found

    def _table_pieces(self, plan: ops.TableJoin, piece: IntervalRow) -> Iterator[IntervalRow]:
        if not plan.is_retroactive:
            rows = sorted(snapshot.table_rows(self.world, plan.table, piece.fact.ts), key=sort_key)
            for place, row in enumerate(rows):
                yield replace(piece.showing(piece.fact.values + row), origin=(*piece.origin, place))
            return
        copies: Counter[tuple[Values, Instant]] = Counter()
        for row, start, stop in snapshot.lives(self.world, plan.table):
            end = stop + self.lag
            copies[row, start] += 1
            origin = (sort_key(row), start, copies[row, start])
            table = IntervalRow(Fact(row, -INFINITY), start + self.lag, end, end, origin)
            if met := intersection((piece, table)):
                yield met

    @of.register
    def _(self, plan: ops.Distinct) -> list[IntervalRow]:
        """δ*: the current row stays until it expires, then the youngest duplicate takes over."""
        found = [
            piece
            for value, copies in self._by_value(plan.input).items()
            for piece in _replaced(copies, Fact(value, -INFINITY), (sort_key(value),))
        ]
        return united(found) if self.uniting else found

    @of.register
    def _(self, plan: ops.Except) -> list[IntervalRow]:
        left, right = self._by_value(plan.left), self._by_value(plan.right)
        found = []
        for value, copies in left.items():
            taken = right.get(value, [])
            for start, stop in elementary(copies + taken):
                count = sum(start in piece for piece in copies) - sum(start in piece for piece in taken)
                found += [IntervalRow(Fact(copies[0].fact.values, -INFINITY), start, stop, stop)] * max(
                    0, count
                )
        return levelled(found)

    def _by_value(self, plan: Plan) -> dict[Values, list[IntervalRow]]:
        found: dict[Values, list[IntervalRow]] = defaultdict(list)
        for piece in self.of(plan):
            found[snapshot.grouped(piece.fact.values)].append(piece)
        return found

    @of.register
    def _(self, plan: ops.Exists) -> list[IntervalRow]:
        right = self.of(plan.right)
        test = expressions.compile_expression(
            plan.predicate, plan.left.schema.names + plan.right.schema.names
        )
        found: list[IntervalRow] = []
        for piece in self.of(plan.left):
            matches = [other for other in right if test(piece.fact.values + other.fact.values, None) is True]
            met = [part for other in matches if (part := intersection((piece, other)))]
            if plan.is_internal:
                found += _witnessed(piece, met)
                continue
            # whatever it meets, it has its own place in the order of rows
            met = [replace(part, fact=piece.fact) for part in met]
            parts = list(_without(piece, met) if plan.negated else _replaced(met, piece.fact, piece.origin))
            found += united(parts) if self.uniting else parts
        return found

    @of.register
    def _(self, plan: ops.Aggregate) -> list[IntervalRow]:
        keys = [expressions.compile_expression(key, plan.input.schema.names) for _, key in plan.keys]
        groups: dict[Values, list[IntervalRow]] = defaultdict(list)
        for piece in self.of(plan.input):
            groups[snapshot.grouped(tuple(key(piece.fact.values, None) for key in keys))].append(piece)
        return [piece for group, rows in groups.items() for piece in self._values(plan, group, rows)]

    def _values(self, plan: ops.Aggregate, group: Values, rows: list[IntervalRow]) -> Iterator[IntervalRow]:
        """One piece for as long as the group's value stays the same."""
        current: IntervalRow | None = None
        breaks = self.breaks if plan.is_internal else ()
        for start, stop in elementary(rows, breaks):
            alive = [piece for piece in rows if start in piece]
            if not alive:
                continue
            so_far = [piece.fact for piece in rows if piece.vs <= start]
            value = group + self.moment.aggregate_row(plan, [piece.fact for piece in alive], so_far, start)
            stays = max(stop, min(piece.stays for piece in alive)) if plan.is_internal else stop
            goes_on = current is not None and current.ve == start and start not in breaks
            if current is not None and goes_on and current.fact.values == value:
                current = replace(current, ve=stop, stays=max(current.stays, stays))
                continue
            if current is not None:
                yield current
            current = IntervalRow(Fact(value, -INFINITY), start, stop, stays, (sort_key(group), start))
        if current is not None:
            yield current

    @of.register
    def _(self, plan: ops.Limit) -> list[IntervalRow]:
        """A row of higher rank pushes another out, also over INTERNAL windows."""
        return self._at_each_moment(plan.input, partial(self.moment.first_rows, plan))

    @of.register
    def _(self, plan: ops.Rank) -> list[IntervalRow]:
        return self._at_each_moment(plan.input, partial(self.moment.numbered, plan))

    def _at_each_moment(self, source: Plan, shown: Callable[[list[Fact]], list[Fact]]) -> list[IntervalRow]:
        """What is shown of the rows of each instant."""
        rows = self.of(source)
        found = []
        for start, stop in elementary(rows):
            alive = [piece.fact for piece in rows if start in piece]
            found += [IntervalRow(fact, start, stop, stop) for fact in shown(alive)]
        return levelled(found)

    @of.register
    def _(self, plan: ops.Unnest) -> list[IntervalRow]:
        array = expressions.compile_expression(plan.array, plan.input.schema.names)
        return [
            replace(piece.showing(piece.fact.values + more), origin=(*piece.origin, place))
            for piece in self.of(plan.input)
            for place, more in enumerate(snapshot.elements(plan, array(piece.fact.values, None)))
        ]

    @of.register
    def _(self, plan: ops.Over) -> list[IntervalRow]:
        rows = sorted(self.of(plan.input), key=lambda piece: snapshot.in_order(piece.fact))
        more = self.moment.framed(plan, [piece.fact for piece in rows])
        pairs = zip(rows, more, strict=True)
        return [piece.showing(piece.fact.values + values) for piece, values in pairs]

    def _holds(self, predicate: Expression, source: Plan, values: Values) -> bool:
        return expressions.compile_expression(predicate, source.schema.names)(values, None) is True


def intersection(parts: Iterable[IntervalRow]) -> IntervalRow | None:
    """The join of pieces that are all valid at some instant."""
    chosen = tuple(parts)
    vs, ve = max(part.vs for part in chosen), min(part.ve for part in chosen)
    if vs >= ve:
        return None
    origin = tuple(part.origin for part in chosen)
    return IntervalRow(
        snapshot.together(part.fact for part in chosen), vs, ve, min(part.stays for part in chosen), origin
    )


def elementary(pieces: Iterable[IntervalRow], also: Iterable[int] = ()) -> list[tuple[Instant, Instant]]:
    """The intervals between neighbouring endpoints: nothing changes inside one."""
    chosen = list(pieces)
    ends = {end for piece in chosen for end in (piece.vs, piece.ve)}
    ends |= {at for at in also if any(at in piece for piece in chosen)}
    return list(pairwise(sorted(ends)))


def _replaced(copies: list[IntervalRow], shown: Fact, origin: tuple[Any, ...] = ()) -> Iterator[IntervalRow]:
    """One of the copies at a time: the current one until it expires, then the one that lives longest."""
    now: Instant = min((piece.vs for piece in copies), default=INFINITY)
    while now < INFINITY:
        alive = [piece for piece in copies if now in piece]
        if alive:
            youngest = max(alive, key=lambda piece: (piece.ve, piece.fact.ts))
            yield IntervalRow(shown, now, youngest.ve, max(youngest.ve, youngest.stays), origin)
            now = youngest.ve
        else:
            now = min((piece.vs for piece in copies if piece.vs > now), default=INFINITY)


def _witnessed(piece: IntervalRow, matches: list[IntervalRow]) -> Iterator[IntervalRow]:
    """A row while it has a match over INTERNAL windows: it stays as long as it would with any one of them."""
    for start, stop in elementary(matches):
        if alive := [match for match in matches if start in match]:
            yield replace(piece, vs=start, ve=stop, stays=max(match.stays for match in alive))


def _without(piece: IntervalRow, matches: list[IntervalRow]) -> Iterator[IntervalRow]:
    """The parts of a piece in which it has no match, as long as may be."""
    ends = {end for other in matches for end in (other.vs, other.ve)}
    free = [
        replace(piece, vs=start, ve=stop, stays=stop)
        for start, stop in pairwise(sorted(ends | {piece.vs, piece.ve}))
        if not any(start in other for other in matches)
    ]
    yield from united(free)


def united(pieces: Iterable[IntervalRow]) -> list[IntervalRow]:
    """Adjacent pieces of one value as one: being replaced by a duplicate is no change."""
    found: list[IntervalRow] = []
    for piece in sorted(pieces, key=lambda piece: (repr(piece.fact.values), piece.vs)):
        last = found[-1] if found else None
        if last and last.fact.values == piece.fact.values and last.ve == piece.vs:
            found[-1] = replace(last, ve=piece.ve, stays=piece.stays)
        else:
            found.append(piece)
    return found


def levelled(pieces: Iterable[IntervalRow]) -> list[IntervalRow]:
    """Elementary copies joined into as few pieces as possible: the i-th copy goes on as the i-th."""
    at: dict[Fact, Counter[tuple[Instant, Instant]]] = defaultdict(Counter)
    for piece in pieces:
        at[piece.fact][piece.vs, piece.ve] += 1
    found = []
    for fact, spans in at.items():
        for level in range(max(spans.values())):
            origin = (fact.ts, sort_key(fact.values), level)
            run = [IntervalRow(fact, vs, ve, ve, origin) for (vs, ve), n in spans.items() if n > level]
            found += united(run)
    return found


def counted(pieces: Iterable[IntervalRow]) -> list[IntervalRow]:
    """Rows told apart by nothing but their values: the i-th copy of a row is one as long as there are i."""
    copies: dict[Values, list[IntervalRow]] = defaultdict(list)
    for piece in pieces:
        copies[piece.fact.values].append(piece)
    cut = [
        replace(piece, fact=Fact(piece.fact.values, -INFINITY), vs=start, ve=stop)
        for group in copies.values()
        for start, stop in elementary(group)
        for piece in group
        if start in piece
    ]
    return levelled(cut)
