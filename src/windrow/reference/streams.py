"""From the changing relation to streams: when an answer is reported, and which changes it brings.

ISTREAM(i) = R(i) - R(i-1), DSTREAM(i) = R(i-1) - R(i) as multiset differences; RSTREAM is R at each
reporting instant. R is evaluated from scratch wherever it can have changed; between two endpoints of
validity intervals it cannot.

INTERNAL windows: results need their parts to meet, but outlive them (thesis, 3.3.2).

Inside the plan everything is as with external windows; only the final result stays, until the first
of its external windows lets go of it, or for ever.

Restore: periodic refreshes that lose nothing which came and went between two of them (thesis, 3.3.4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from windrow.algebra import Emit, Plan, StreamWord, TableJoin, Window
from windrow.algebra.values import Change
from windrow.errors import DataError
from windrow.reference import expressions, interval_rows, scopes
from windrow.reference.rows import LeafRows, RowsBelow, Values, World
from windrow.reference.snapshot import PlanSnapshot
from windrow.windows.domain import INFINITY, Instant, Report
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow


def results(
    emit: Emit, leaves: Mapping[Window, LeafRows], world: World, lag: int, extents: Iterable[int]
) -> list[interval_rows.IntervalRow]:
    """All results, with how long they stay.

    Every extent of a periodic aggregate is a result of its own, also when its value is the last one's; and
    only what is there at the end of some extent is a result of a periodic plan, from then on.
    """
    reports = sorted(extents)
    pieces = interval_rows.IntervalRows(leaves, world, lag=lag, breaks=reports, uniting=True).of(emit.input)
    if not emit.is_periodic:
        return pieces
    births = [(piece, next((at for at in reports if at in piece), None)) for piece in pieces]
    return [replace(piece, vs=birth) for piece, birth in births if birth is not None]


def staying(pieces: Iterable[interval_rows.IntervalRow], at: int) -> Counter[Values]:
    """The results produced so far that still stay; one made of the same rows again is the same one."""
    found = {(piece.origin, piece.fact.values) for piece in pieces if piece.vs <= at < piece.stays}
    return Counter(values for _, values in found)


def continuous(plan: Plan) -> Plan:
    """The plan with windows that move at every instant: SLIDE is only the refresh period."""
    return (
        _moving(plan)
        if isinstance(plan, Window)
        else plan.with_children(tuple(map(continuous, plan.children)))
    )


def _moving(leaf: Window) -> Window:
    return replace(leaf, spec=leaf.spec.moving())


def changes(
    emit: Emit, leaves: Mapping[Window, LeafRows], world: World, last: Callable[[int], int]
) -> Iterator[Change]:
    """What each refresh reports: results born since the last one; with RSTREAM also those alive before E.

    Results not made of certain rows, and those that negative rows take back, are told apart by their values.
    """
    moving = {_moving(leaf): rows for leaf, rows in leaves.items()}
    pieces = interval_rows.IntervalRows(moving, world, uniting=True).of(continuous(emit.input))
    ends = [end for leaf, rows in moving.items() for end in _finite_ends(leaf, rows)]
    until = last(max(ends)) if ends else 0
    for piece in interval_rows.counted(pieces) if emit.restores_by_value else pieces:
        for end in _refreshes(emit, piece, until):
            yield Change("+", piece.fact.values, end)


def _finite_ends(leaf: Window, rows: LeafRows) -> Iterator[int]:
    for interval in filter(None, leaf.spec.intervals(rows.elements)):
        yield from (int(end) for end in (interval.vs, interval.ve) if end != INFINITY)


def _refreshes(emit: Emit, piece: interval_rows.IntervalRow, until: int) -> Sequence[int]:
    """`until` is the last refresh of results that stay."""
    spec = emit.leaves[0].spec
    born = spec.first_after(int(piece.vs))
    if emit.word is StreamWord.ISTREAM_RESTORE:
        return [born]
    return spec.slide_instants(int(piece.vs), int(min(piece.ve, until))) or [born]


Relation = Counter["Values"]


@dataclass(eq=False)
class QueryEvaluation:
    """One query over one world, up to a clock: what is final is what `clock` says is final.

    `reached` is how far the clock had come before the input ended: what was reported by then stays.
    """

    emit: Emit
    world: World
    clock: Instant = INFINITY
    reached: Instant = -INFINITY

    def __post_init__(self) -> None:
        self.leaves: dict[Window, LeafRows] = {leaf: self._rows(leaf) for leaf in self.emit.leaves}

    def _rows(self, leaf: Window) -> LeafRows:
        return RowsBelow(leaf, self.world, lag_of(self.emit), self._emitted).collect()

    def _emitted(self, inner: Emit) -> list[tuple[Change, int]]:
        """What a nested query emits, with the instants of its rows: E-1 in a periodic one, else `at`."""
        before = int(inner.is_periodic and bool(lag_of(inner)))
        changes = QueryEvaluation(inner, self.world, self.clock, self.reached).changes()
        return [(change, change.at - before) for change in changes]

    def changes(self) -> list[Change]:
        """Every final change, in order of delivery."""
        if self.clock == -INFINITY:
            return []
        word = self.emit.meaning
        if word.restores:
            found: Iterable[Change] = changes(self.emit, self.leaves, self.world, self._last_refresh)
        elif word is StreamWord.RSTREAM and self._reported() is not None:
            found = self._each_report()
        else:
            found = self._differences(word)
        return sorted((change for change in found if self.is_final(change.at)), key=lambda c: c.place)

    def is_final(self, at: int, clock: Instant | None = None) -> bool:
        """An extent [.., E) is final when the clock reaches E, a change at an instant when it has passed."""
        known = self.clock if clock is None else clock
        return at <= known if lag_of(self.emit) else at < known

    # The relation.

    def relation(self, at: int) -> Relation:
        """R(at): the state of the answer at an instant."""
        if self.emit.reads_window_bounds and any(leaf.spec.grid is None for leaf in self.emit.leaves):
            raise DataError(
                "this query selects the bounds of each extent, so it has no relation at an instant",
                code="no-relation",
                hint="leave window_start and window_end out, or take its changes",
            )
        if self.emit.is_internal:
            return staying(self._internal_results, at)
        return self._snapshot(at).relation(self.emit.input)

    @cached_property
    def _internal_results(self) -> list[interval_rows.IntervalRow]:
        extents = self._slides() if self.emit.is_periodic else ()
        return results(self.emit, self.leaves, self.world, lag_of(self.emit), extents)

    def _snapshot(self, at: int) -> PlanSnapshot:
        lag = lag_of(self.emit)
        return PlanSnapshot(self.leaves, self.world, at, at - lag)

    # Reports of extents by themselves: counted rows and sessions.

    def _reported(self) -> list[Report] | None:
        leaf = self.emit.leaves[0]
        if len(self.emit.leaves) > 1 or self.emit.is_internal:
            return None
        if isinstance(leaf.spec, RowsWindow) and leaf.spec.reports_positions:
            return leaf.spec.reports(self.leaves[leaf].elements)
        if isinstance(leaf.spec, SessionWindow) and self.emit.reports_sessions:
            return leaf.spec.sessions(self.leaves[leaf].elements)
        return None

    def _each_report(self) -> Iterator[Change]:
        leaf = self.emit.leaves[0]
        elements = self.leaves[leaf].elements
        for report in self._reported() or ():
            inside = [next(p for p, e in enumerate(elements) if e is member) for member in report.elements]
            extent = expressions.WindowContext(report.start, report.end)
            snapshot = PlanSnapshot(self.leaves, self.world, report.at, report.at, extent, {leaf: inside})
            yield from _rows("+", snapshot.relation(self.emit.input), report.at)

    # Reports at instants.

    def _differences(self, word: StreamWord) -> Iterator[Change]:
        before: Relation = Counter()
        whole = word is StreamWord.RSTREAM
        for at in self._slides() if self.emit.is_periodic else self._endpoints():
            if not self.is_final(at):
                return
            now = self.relation(at)
            if whole and (self.emit.is_periodic or now != before):
                yield from _rows("+", now, at)
            if word in (StreamWord.ISTREAM, StreamWord.AUTO):
                yield from _rows("+", now - before, at)
            if word in (StreamWord.DSTREAM, StreamWord.AUTO):
                yield from _rows("-" if word is StreamWord.AUTO else "+", before - now, at)
            before = now

    def _endpoints(self) -> list[int]:
        """The instants at which R can change, in order."""
        found = {end for leaf, rows in self.leaves.items() for end in _finite_ends(leaf, rows)}
        for join in (node for node in self.emit.walk() if isinstance(node, TableJoin)):
            if join.is_retroactive:
                changes = self.world.tables.get(join.table.table.name, ())
                found |= {int(change.at) + lag_of(self.emit) for change in changes if change.at > -INFINITY}
        return sorted(found)

    def _slides(self) -> list[int]:
        """The reporting instants of a periodic plan at which some window has rows, or which are the first
        after one lost them or a table changed."""
        ends = self._endpoints()
        if not ends:
            return []
        found: set[int] = set()
        last = self._last_report(ends[-1])
        for start, stop in zip(ends, [*ends[1:], last + 1], strict=True):
            slides = [self._slides_of(leaf, start - 1, min(stop - 1, last)) for leaf in self.emit.leaves]
            snapshot = self._snapshot(start)
            if any(snapshot.facts(leaf) for leaf in self.emit.leaves):
                found.update(*slides)
            else:
                found.update(sorted(instants[0] for instants in slides if instants)[:1])
        return sorted(found)

    def _slides_of(self, leaf: Window, after: int, until: int) -> Sequence[int]:
        spec, rows = leaf.spec, self.leaves[leaf].elements
        if spec.grid is not None:
            return spec.slide_instants(after, until)
        if isinstance(spec, SlideByTupleWindow):
            return [w for w in scopes.moving_values(spec, rows) if after < w <= until]
        assert isinstance(spec, RowsWindow)
        return sorted(report.at for report in spec.reports(rows) if after < report.at <= until)

    def _last_refresh(self, last_end: int) -> int:
        """At the end of input, the first after the last endpoint."""
        tables = [join.table.table.name for join in self.emit.walk() if isinstance(join, TableJoin)]
        changed = [change.at for name in tables for change in self.world.tables.get(name, ())]
        ends = [last_end, *(int(at) + 1 for at in changed if at > -INFINITY)]
        return self._last(self.emit.leaves[0].spec.first_after(max(ends)))

    def _last_report(self, last_end: int) -> int:
        """At the end of input, the first reporting instant at or after the last endpoint."""
        grids = [leaf.spec for leaf in self.emit.leaves if leaf.spec.grid]
        return self._last(min((spec.first_after(last_end - 1) for spec in grids), default=last_end))

    def _last(self, first: int) -> int:
        """Up to the clock; at the end of input `first`, and no earlier than the clock had come before."""
        if self.clock != INFINITY:
            return int(self.clock)
        return first if self.reached == -INFINITY else max(first, int(self.reached))


def lag_of(emit: Emit) -> int:
    """1 where the answer at E is about the instant before E: half-open extents and ended sessions."""
    if emit.reports_sessions:
        return int(not getattr(emit.leaves[0].spec, "inclusive", False))
    if emit.word.restores:
        return 1
    return int(all(leaf.spec.grid is not None for leaf in emit.leaves))


def _rows(op: str, relation: Relation, at: int) -> Iterator[Change]:
    for row, copies in relation.items():
        for _ in range(copies):
            yield Change(op, row, at)
