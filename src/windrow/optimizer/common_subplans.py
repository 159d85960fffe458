"""Common subplans: the lower part of a plan, which all its rows come through, and the form of it that serves
several.

The common subplan of a query is the join of its windows, or its only window. Two queries with the same common
subplan compute the same up to there. Where it is a join of windows, two things may differ and it can still
serve both:

columns  what a query does not read is dropped before its windows, so that the same join carries other columns
         in each query; a join that carries the columns of all of them serves each
RANGE    a join over longer windows has all results of one over shorter windows, which only end sooner. If all
         are longer by the same time, by that time; else each result ends when its first row does, so that the
         join has to carry the instants of its rows

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.expressions import Field, Schema
>>> a, b = (Scan(Stream(n, Schema(tuple(Field(c, BIGINT) for c in ("k", "v", "ts"))), "ts"), n) for n in "ab")
>>> same = call("=", [a.schema.column("a.k"), b.schema.column("b.k")])
>>> def joined(length, *columns):
...     mine = [kept(s, tuple(c for c in columns if c.startswith(s.alias))) for s in (a, b)]
...     return Emit(Join(tuple(Window(each, RangeWindow(length, 10)) for each in mine), same))
>>> one, two = joined(90, "a.k", "b.k", "a.v"), joined(60, "a.k", "b.k", "b.v")
>>> likeness(one, shortens=True) == likeness(two, shortens=True)
True
>>> subplan = common_subplan([one, two])
>>> subplan
CommonSubplan(columns=(('a.k', 'a.v'), ('b.k', 'b.v')), ranges=(90, 90))
>>> subplan_of(subplan.under(one)) == subplan_of(subplan.under(two))
True
>>> subplan.under(two).schema == two.schema, subplan.sooner(one), subplan.sooner(two)
(True, (), (30,))

Windows of 80 and 90 beside windows of 60 each:

>>> three = Emit(replace(one.input, inputs=(replace(one.input.inputs[0], spec=RangeWindow(80, 10)),
...     one.input.inputs[1])))
>>> uneven = common_subplan([three, two])
>>> uneven
CommonSubplan(columns=(('a.k', 'a.v', 'a.ts'), ('b.k', 'b.v', 'b.ts')), ranges=(80, 90))
>>> uneven.sooner(two)
(20, 30)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.algebra import Emit, Join, Plan, Scan, Window
from windrow.algebra.types import BIGINT, TIMESTAMP
from windrow.optimizer.trees import can_ever_fail, kept, peeled
from windrow.windows.ranges import RangeWindow


def chain_of(emit: Emit) -> Iterator[Plan]:
    """The nodes that all rows of a query come through, from the top down to its common subplan."""
    node = emit.input
    while len(node.children) == 1 and not isinstance(node, Window):
        yield node
        (node,) = node.children
    yield node


def subplan_of(emit: Emit) -> Plan:
    """The lowest node that all rows of a query come through."""
    return list(chain_of(emit))[-1]


def likeness(emit: Emit, *, shortens: bool) -> str:
    """What common subplans must have in common for one form to serve their queries; `shortens`: RANGE may
    differ."""
    subplan = subplan_of(emit)
    if not _is_plain_join(subplan):
        return repr(subplan)
    whole = [replace(window, input=peeled(window.input)) for window in _windows(subplan)]
    ranges = ranges_of(subplan) if shortens else None
    if ranges is None:
        return repr(subplan.with_children(tuple(whole)))
    phases = [each % (window.spec.slide or 1) for each, window in zip(ranges, whole, strict=True)]
    equal = (replace(each, spec=replace(each.spec, range=1)) for each in whole)  # type: ignore[call-arg]
    apart = None if _instants(subplan) else [each - min(ranges) for each in ranges]
    return repr((subplan.with_children(tuple(equal)), apart, phases))


def clustered(emits: Sequence[Emit]) -> list[list[int]]:
    """Of queries whose likeness is the same, those that one common subplan is to serve, by their places.

    Queries whose windows are all shorter by one time go together in any case. Where times differ a common
    subplan has results that nobody asks for, so that no window of it may be more than twice as long as a
    query's.

    >>> near([(60, 60), (80, 90), (50, 50), (10, 90)]), near([(60, 60), (80, 90), (10, 10)])
    ([[1, 0, 2], [3]], [[1], [0, 2]])
    """
    ranges = [ranges_of(subplan_of(emit)) for emit in emits]
    if any(each is None for each in ranges):
        return [[*range(len(emits))]]
    return near([each for each in ranges if each is not None])


def near(ranges: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Lengths of windows that go together, the longest first."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for place, each in enumerate(ranges):
        alike.setdefault(tuple(length - min(each) for length in each), []).append(place)
    found: list[list[int]] = []
    for some in sorted(alike.values(), key=lambda places: -max(sum(ranges[each]) for each in places)):
        for others in found:
            if _fit([ranges[each] for each in (*others, *some)]):
                others += some
                break
        else:
            found.append(some)
    return found


def _fit(ranges: Sequence[tuple[int, ...]]) -> bool:
    longest = tuple(map(max, zip(*ranges, strict=True)))
    return all(
        len(set(_shorter(longest, each))) == 1
        or all(whole <= 2 * own for whole, own in zip(longest, each, strict=True))
        for each in ranges
    )


def _shorter(longest: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(whole - part for whole, part in zip(longest, own, strict=True))


@dataclass(frozen=True)
class CommonSubplan:
    """A join of windows in the form that serves several queries: of each window, its columns, and its RANGE
    where that is not each query's own."""

    columns: tuple[tuple[str, ...], ...]
    ranges: tuple[int, ...] | None = None

    @classmethod
    def of(cls, emit: Emit) -> CommonSubplan:
        """The join of windows that a query has."""
        return cls(_carried(subplan_of(emit)), ranges_of(subplan_of(emit)))

    def serves(self, emit: Emit) -> bool:
        """Whether a query can be over this common subplan, which stays as it is."""
        subplan, shorter = subplan_of(emit), self.sooner(emit)
        needed = list(_carried(subplan))
        if len(shorter) > 1:
            needed = [
                (*names, instant) for names, instant in zip(needed, _instants(subplan) or (), strict=True)
            ]
        carried = all(set(names) <= set(mine) for names, mine in zip(needed, self.columns, strict=True))
        own = ranges_of(subplan)
        fits = (
            own is None
            or self.ranges is None
            or (min(_shorter(self.ranges, own)) >= 0 and _fit([self.ranges, own]))
        )
        return carried and fits

    def under(self, emit: Emit) -> Emit:
        """The query over this common subplan; above it, only its own columns are left."""
        subplan = subplan_of(emit)
        if _carried(subplan) == self.columns and self.ranges in (None, ranges_of(subplan)):
            return emit
        wide = [
            replace(window, input=kept(peeled(window.input), names))
            for window, names in zip(_windows(subplan), self.columns, strict=True)
        ]
        if self.ranges is not None:
            wide = [
                replace(window, spec=replace(window.spec, range=length))  # type: ignore[call-arg]
                for window, length in zip(wide, self.ranges, strict=True)
            ]
        above = kept(subplan.with_children(tuple(wide)), subplan.schema.names)
        for node in reversed([*chain_of(emit)][:-1]):
            above = node.with_children((above,))
        return replace(emit, input=above)

    def sooner(self, emit: Emit) -> tuple[int, ...]:
        """By how many ticks the windows of a query are shorter: by none, all alike, or each."""
        own = ranges_of(subplan_of(emit))
        if self.ranges is None or own is None or self.ranges == own:
            return ()
        by = _shorter(self.ranges, own)
        return by[:1] if len(set(by)) == 1 else by


def common_subplan(emits: Sequence[Emit]) -> CommonSubplan | None:
    """The common subplan for several queries whose likeness is the same; None if it is the same without more
    ado."""
    common_subplans = [subplan_of(emit) for emit in emits]
    if not all(map(_is_plain_join, common_subplans)):
        return None
    ranges = [each for each in map(ranges_of, common_subplans) if each is not None]
    longest = tuple(map(max, zip(*ranges, strict=True)))
    instants = _instants(common_subplans[0]) or ()
    uneven = any(len(set(_shorter(longest, each))) > 1 for each in ranges)
    carried = [*zip(*map(_carried, common_subplans), strict=True)]
    carried = [(*some, instants) for some in carried] if uneven else carried
    names = [peeled(window.input).schema.names for window in _windows(common_subplans[0])]
    columns = tuple(
        tuple(name for name in every if any(name in each for each in some))
        for every, some in zip(names, carried, strict=True)
    )
    return CommonSubplan(columns, longest if len(set(ranges)) > 1 else None)


def can_shorten(emit: Emit) -> bool:
    """Whether a query may take its rows from longer windows: it must not look at their bounds."""
    return can_meet_more(emit) and ranges_of(subplan_of(emit)) is not None and not emit.reads_window_bounds


def can_meet_more(emit: Emit) -> bool:
    """Whether a query is over a join of windows that rows which meet for other queries cannot make fail."""
    subplan = subplan_of(emit)
    return isinstance(subplan, Join) and _is_plain_join(subplan) and not can_ever_fail(subplan.predicate)


def ranges_of(subplan: Plan) -> tuple[int, ...] | None:
    """RANGE of each window of a join, if all have one."""
    specs = [window.spec for window in _windows(subplan)] if _is_plain_join(subplan) else []
    found = tuple(spec.range for spec in specs if isinstance(spec, RangeWindow) and not spec.internal)
    return found if specs and len(found) == len(specs) else None


def _instants(subplan: Plan) -> tuple[str, ...] | None:
    """The columns with the instants of the rows of each window; None if one of them has none."""
    found = []
    for window in _windows(subplan):
        (origin,) = window.origins if len(window.origins) == 1 else (None,)
        if not isinstance(origin, Scan):
            return None
        found.append(window.instants)
        schema = peeled(window.input).schema
        if found[-1] not in schema.names or schema.column(found[-1]).type not in (BIGINT, TIMESTAMP):
            return None
    return tuple(found)


def _is_plain_join(plan: Plan) -> bool:
    return isinstance(plan, Join) and all(isinstance(part, Window) for part in plan.inputs)


def _carried(subplan: Plan) -> tuple[tuple[str, ...], ...]:
    return tuple(window.schema.names for window in _windows(subplan))


def _windows(plan: Plan) -> list[Window]:
    return [part for part in plan.children if isinstance(part, Window)]
