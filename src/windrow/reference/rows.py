"""The rows below a window: of streams, of nested queries, and of stateless operators on them.

In which sub-window of its window each row is, by the definition: pieces of gcd(RANGE, SLIDE), counted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from math import gcd
from typing import Any, TypeAlias

from windrow.algebra import PSEUDO_COLUMNS, Emit, Filter, Plan, Project, Scan, Subquery, Union, Window
from windrow.algebra.values import Change
from windrow.reference import expressions, scopes
from windrow.windows import RangeWindow, RowsWindow, WindowSpec
from windrow.windows.domain import ARRIVAL_TS, INFINITY, ROW_NUM, Element, Instant, check_instant, sort_key
from windrow.windows.landmark import LandmarkWindow
from windrow.windows.lifetime import LifetimeWindow

Values: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class AcceptedRow:
    """An accepted row. `clock` is what the clock was when a late row was kept."""

    values: Values
    row_num: int
    arrival_ts: int = 0
    clock: Instant = -INFINITY
    #: the attributes of ALSO on which it is late
    late_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableChange:
    """Rows that a table gains and loses at an instant."""

    at: Instant
    insert: tuple[Values, ...] = ()
    delete: tuple[Values, ...] = ()


@dataclass(frozen=True)
class World:
    """What an evaluation from scratch starts from."""

    streams: dict[str, tuple[AcceptedRow, ...]] = field(default_factory=dict)
    tables: dict[str, tuple[TableChange, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Fact:
    """A row of a relation: its values, the greatest windowing attribute of the rows it is made of, where the
    window counts arrivals, its turn, and where the window is cut into sub-windows, which one it is in."""

    values: Values
    ts: Instant
    turn: int = 0
    sub_window: int | None = None

    def showing(self, values: Values) -> Fact:
        """The same row with other values."""
        return replace(self, values=values)


# ------------------------------------------------------------ rows


def sub_windows(spec: WindowSpec, rows: Sequence[Element]) -> list[int | None]:
    """The number of each row's sub-window; None where the window is not cut."""
    if isinstance(spec, RangeWindow) and spec.slide is not None:
        width = gcd(spec.range, spec.slide)
        return [(row.t - spec.origin) // width for row in rows]
    if isinstance(spec, LandmarkWindow) and spec.grid is not None:
        return [(row.t - spec.grid.origin) // spec.grid.period for row in rows]
    numbers: list[int | None] = [None] * len(rows)
    if isinstance(spec, RowsWindow) and spec.slide_rows is not None and not spec.partition_by:
        width = gcd(spec.rows, spec.slide_rows)
        for before, place in enumerate(scopes.counting_order(spec, rows, range(len(rows)))):
            numbers[place] = before // width
    return numbers


@dataclass(frozen=True)
class LeafRows:
    """The rows below one window, as facts and, place by place, as the window sees them."""

    facts: tuple[Fact, ...]
    elements: tuple[Element, ...]


@dataclass(frozen=True)
class StreamRow:
    """A row on its way to a window. `order` is the row as it was declared: dropping columns does not
    change in which order equal instants are counted."""

    fact: Fact
    order: Values
    row_num: int
    not_before: Instant = -INFINITY


@dataclass(eq=False)
class RowsBelow:
    """Collects the rows that enter a window. `emitted` gives a nested query's changes and their instants;
    `lag` is 1 where answers up to the clock are out: a late row is in time only for later ones."""

    window: Window
    world: World
    lag: int
    emitted: Callable[[Emit], Sequence[tuple[Change, int]]]

    def collect(self) -> LeafRows:
        """All of them."""
        rows = self.of(self.window.input)
        elements = tuple(self._element(row) for row in rows)
        numbers = sub_windows(self.window.spec, elements)
        facts = (replace(row.fact, sub_window=n) for row, n in zip(rows, numbers, strict=True))
        return LeafRows(tuple(facts), elements)

    @singledispatchmethod
    def of(self, plan: Plan) -> list[StreamRow]:
        """The rows of a stream."""
        raise TypeError(f"{type(plan).__name__} is not a stream")

    @of.register
    def _(self, plan: Scan) -> list[StreamRow]:
        """Accepted rows; one whose windowing attribute is NULL is never in the window."""
        attribute = self.window.attribute_of(plan)
        found = []
        for arrival in self.world.streams.get(plan.stream.name, ()):
            known: dict[str, Any] = dict(zip(plan.stream.schema.names, arrival.values, strict=True))
            known |= {ROW_NUM: arrival.row_num, ARRIVAL_TS: arrival.arrival_ts}
            values = arrival.values + tuple(known[name] for name in PSEUDO_COLUMNS if name in plan.pseudo)
            domain = plan.stream.attributes[attribute]
            moment = None if known[attribute] is None else domain.tick(known[attribute])
            check_instant(moment, f"`{attribute}` of stream `{plan.stream.name}`")
            if moment is not None and attribute not in arrival.late_on:
                turn = arrival.row_num if self.window.spec.counts_arrivals else 0
                fact = Fact(values, moment, turn)
                found.append(StreamRow(fact, arrival.values, arrival.row_num, arrival.clock + self.lag))
        return found

    @of.register
    def _(self, plan: Subquery) -> list[StreamRow]:
        emitted = self.emitted(plan.query)
        for _, t in emitted:
            check_instant(t, f"the instant of a row of nested query `{plan.alias}`")
        return [StreamRow(Fact(change.row, t), change.row, 0) for change, t in emitted]

    @of.register
    def _(self, plan: Filter) -> list[StreamRow]:
        holds = expressions.compile_expression(plan.predicate, plan.input.schema.names)
        return [row for row in self.of(plan.input) if holds(row.fact.values, None) is True]

    @of.register
    def _(self, plan: Project) -> list[StreamRow]:
        columns = [
            expressions.compile_expression(expression, plan.input.schema.names)
            for _, expression in plan.outputs
        ]
        return [
            replace(row, fact=row.fact.showing(tuple(column(row.fact.values, None) for column in columns)))
            for row in self.of(plan.input)
        ]

    @of.register
    def _(self, plan: Union) -> list[StreamRow]:
        return [row for part in plan.inputs for row in self.of(part)]

    def _element(self, row: StreamRow) -> Element:
        spec, schema = self.window.spec, self.window.schema
        partition = getattr(spec, "partition_by", ())
        alias, lifetime = self.window.origins[0].alias, None
        if isinstance(spec, LifetimeWindow):
            lifetime = expressions.compile_expression(spec.expression, schema.names)(row.fact.values, None)
            check_instant(None if lifetime is None else lifetime * spec.scale, "a LIFETIME")
        return Element(
            t=int(row.fact.ts),
            row_num=row.row_num,
            key=tuple(row.fact.values[schema.index(f"{alias}.{name}")] for name in partition),
            order=sort_key(row.order),
            lifetime=lifetime,
            not_before=row.not_before,
        )
