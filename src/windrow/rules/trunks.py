"""Trunks: the lower part of a plan, which all its rows come through, and the form of it that serves several.

The trunk of a query is the join of its windows, or its only window. Two queries with the same trunk compute
the same up to there. Where it is a join of windows, two things may differ and it can still serve both:

columns  what a query does not read is dropped before its windows, so that the same join carries other columns
         in each query; a join that carries the columns of all of them serves each
RANGE    a join over windows that are all longer by the same time has all results of the shorter ones, which
         only end sooner

>>> from windrow.algebra.catalog import Stream
>>> from windrow.algebra.functions import call
>>> from windrow.algebra.plan import Scan
>>> from windrow.algebra.schema import Field, Schema
>>> from windrow.algebra.types import BIGINT
>>> a, b = (Scan(Stream(n, Schema(tuple(Field(c, BIGINT) for c in ("k", "v", "ts"))), "ts"), n) for n in "ab")
>>> same = call("=", [a.schema.column("a.k"), b.schema.column("b.k")])
>>> def joined(length, *columns):
...     mine = [kept(s, tuple(c for c in columns if c.startswith(s.alias))) for s in (a, b)]
...     return Emit(Join(tuple(Window(each, RangeWindow(length, 10)) for each in mine), same))
>>> one, two = joined(90, "a.k", "b.k", "a.v"), joined(60, "a.k", "b.k", "b.v")
>>> likeness(one, shortens=True) == likeness(two, shortens=True)
True
>>> trunk = common_trunk([one, two])
>>> trunk
Trunk(columns=(('a.k', 'a.v'), ('b.k', 'b.v')), ranges=(90, 90))
>>> trunk_of(trunk.under(one)) == trunk_of(trunk.under(two))
True
>>> trunk.under(two).schema == two.schema, trunk.sooner(two)
(True, 30)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from windrow.algebra.operators import Join
from windrow.algebra.plan import Emit, Plan, Window
from windrow.rules.movable import can_fail
from windrow.rules.trees import kept, peeled
from windrow.windows.ranges import RangeWindow


def chain_of(emit: Emit) -> Iterator[Plan]:
    """The nodes that all rows of a query come through, from the top down to its trunk."""
    node = emit.input
    while len(node.children) == 1 and not isinstance(node, Window):
        yield node
        (node,) = node.children
    yield node


def trunk_of(emit: Emit) -> Plan:
    """The lowest node that all rows of a query come through."""
    return list(chain_of(emit))[-1]


def likeness(emit: Emit, *, shortens: bool) -> str:
    """What trunks must have in common for one form to serve their queries; `shortens`: RANGE may differ."""
    trunk = trunk_of(emit)
    if not _is_plain_join(trunk):
        return repr(trunk)
    whole = [replace(window, input=peeled(window.input)) for window in _windows(trunk)]
    ranges = _ranges(trunk) if shortens else None
    if ranges is None:
        return repr(trunk.with_children(tuple(whole)))
    least = min(ranges)
    phases = [least % (window.spec.slide or 1) for window in whole]
    equal = (replace(each, spec=replace(each.spec, range=1)) for each in whole)  # type: ignore[call-arg]
    return repr((trunk.with_children(tuple(equal)), [each - least for each in ranges], phases))


@dataclass(frozen=True)
class Trunk:
    """A join of windows in the form that serves several queries: of each window, its columns, and its RANGE
    where that is not each query's own."""

    columns: tuple[tuple[str, ...], ...]
    ranges: tuple[int, ...] | None = None

    def under(self, emit: Emit) -> Emit:
        """The query over this trunk; above it, only its own columns are left."""
        trunk = trunk_of(emit)
        if _carried(trunk) == self.columns and self.ranges in (None, _ranges(trunk)):
            return emit
        wide = [
            replace(window, input=kept(peeled(window.input), names))
            for window, names in zip(_windows(trunk), self.columns, strict=True)
        ]
        if self.ranges is not None:
            wide = [
                replace(window, spec=replace(window.spec, range=length))  # type: ignore[call-arg]
                for window, length in zip(wide, self.ranges, strict=True)
            ]
        above = kept(trunk.with_children(tuple(wide)), trunk.schema.names)
        for node in reversed([*chain_of(emit)][:-1]):
            above = node.with_children((above,))
        return replace(emit, input=above)

    def sooner(self, emit: Emit) -> int:
        """By how many ticks the windows of a query are shorter."""
        own = _ranges(trunk_of(emit))
        return 0 if self.ranges is None or own is None else min(self.ranges) - min(own)


def common_trunk(emits: Sequence[Emit]) -> Trunk | None:
    """The trunk for several queries whose likeness is the same; None if it is the same without more ado."""
    trunks = [trunk_of(emit) for emit in emits]
    if not all(map(_is_plain_join, trunks)):
        return None
    carried = list(zip(*map(_carried, trunks), strict=True))
    names = [peeled(window.input).schema.names for window in _windows(trunks[0])]
    columns = tuple(
        tuple(name for name in every if any(name in each for each in some))
        for every, some in zip(names, carried, strict=True)
    )
    ranges = [_ranges(trunk) for trunk in trunks]
    longest = max((each for each in ranges if each is not None), default=None)
    return Trunk(columns, longest if len(set(ranges)) > 1 else None)


def can_shorten(emit: Emit) -> bool:
    """Whether a query may take its rows from longer windows: it must not look at their bounds, nor may rows
    that meet only there make its join fail."""
    trunk = trunk_of(emit)
    safe = isinstance(trunk, Join) and not can_fail(trunk.predicate)
    return safe and _ranges(trunk) is not None and not emit.reads_window_bounds


def _ranges(trunk: Plan) -> tuple[int, ...] | None:
    """RANGE of each window of a join, if all have one."""
    specs = [window.spec for window in _windows(trunk)] if _is_plain_join(trunk) else []
    found = tuple(spec.range for spec in specs if isinstance(spec, RangeWindow) and not spec.internal)
    return found if specs and len(found) == len(specs) else None


def _is_plain_join(plan: Plan) -> bool:
    return isinstance(plan, Join) and all(isinstance(part, Window) for part in plan.inputs)


def _carried(trunk: Plan) -> tuple[tuple[str, ...], ...]:
    return tuple(window.schema.names for window in _windows(trunk))


def _windows(plan: Plan) -> list[Window]:
    return [part for part in plan.children if isinstance(part, Window)]
