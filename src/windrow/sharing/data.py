"""The data of a synopsis: what is kept of each interval and group, in the smallest parts that can be shared.

SUM keeps a count and a total, AVG the same, COUNT the count alone; VAR also the total of squares. Each of
these is a datum with a synopsis of its own, so that AVG finds both where SUM and COUNT have left them.
MEDIAN, MODE, TOP_K and COUNT(DISTINCT) keep how often each value occurs, sketches their cells, FREQUENT a
list for each sub-window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from windrow.algebra.expressions import Expression
from windrow.algebra.functions.sql_text import to_sql
from windrow.kernels.aggregates import partials, value_tables
from windrow.kernels.aggregates.partials import UserState
from windrow.kernels.state import TableLayout
from windrow.sharing.synopses import SharedGrid

#: what the columns of a datum are called, before the number
LABEL = "d"


@dataclass(frozen=True)
class Datum:
    """A state, and the expressions over the stream's columns that it is made of.

    `order` is what rows of one instant are ordered by, where that matters. Which rows count is up to the
    synopsis. Lists are of sub-windows, which are the intervals of their synopsis.
    """

    shape: partials.Partial | value_tables.Cells
    args: tuple[Expression, ...]
    order: tuple[Expression, ...] = ()
    sub_windows: SharedGrid | None = None

    @property
    def is_complex(self) -> bool:
        """Whether it holds counters or sketches, whose size is not constant."""
        return isinstance(self.shape, value_tables.Cells)

    @property
    def adds_up(self) -> bool:
        """Whether states of the rows of two conditions are that of the rows of either."""
        return not isinstance(self.shape, value_tables.Listed)

    @cached_property
    def is_subtractable(self) -> bool:
        """Is f(X − Y) = f(X) − f(Y), exactly? Not if merging leaves anything out."""
        layout = (
            TableLayout((), (self.shape,))
            if isinstance(self.shape, partials.Partial)
            else self._layout_of_cells()
        )
        return layout.prune is None and all(each.invertible for each in layout.combiners)

    def _layout_of_cells(self) -> TableLayout:
        assert isinstance(self.shape, value_tables.Cells)
        width = len(self.args) + (
            1 + len(self.order) if isinstance(self.shape, value_tables.OrderedRows) else 0
        )
        return value_tables.layout_of(self.shape, (), width)

    @cached_property
    def text(self) -> str:
        """For people.

        >>> from windrow.algebra.expressions import ColumnRef
        >>> from windrow.algebra.types import BIGINT
        >>> [datum.text for datum in parts_of(partials.ExactTotal("", BIGINT), (ColumnRef("v", BIGINT),))]
        ['count of v', 'total of v']
        """
        args = ", ".join(to_sql(arg, str) for arg in self.args) or "rows"
        return f"{_name(self.shape)} of {args}"

    @property
    def form(self) -> list[Any]:
        """What it is known by in a state directory, for its canonical text.

        >>> [datum.form[0] for datum in parts_of(partials.CountPartial(""), ())]
        [['count.1']]
        """
        cut = self.sub_windows
        return [
            _form(self.shape),
            self.args,
            self.order,
            None if cut is None else [cut.width, cut.phase],
        ]


#: of states that are shared; a number is raised when the columns of a state, or what they mean, change
_DURABLE: dict[type, str] = {
    partials.CountPartial: "count.1",
    partials.ExactTotal: "exact-total.1",
    partials.FloatTotal: "float-total.1",
    partials.FloatMoments: "float-moments.1",
    partials.PartialColumns: "part-of-state.1",
    partials.Extreme: "extreme.1",
    partials.Edge: "edge.1",
    value_tables.Values: "values.1",
    value_tables.Buckets: "buckets.1",
    value_tables.Ranks: "ranks.1",
    value_tables.Counters: "counters.1",
    value_tables.OrderedRows: "rows-in-order.1",
    value_tables.Listed: "lists.1",
}


def _form(shape: partials.Partial | value_tables.Cells) -> list[Any]:
    found: list[Any] = [_DURABLE[type(shape)]]
    for item in fields(shape):
        value = getattr(shape, item.name)
        if item.name != "label":
            found.append(_form(value) if isinstance(value, partials.Partial | value_tables.Cells) else value)
    return found


def _name(shape: partials.Partial | value_tables.Cells) -> str:
    match shape:
        case partials.PartialColumns():
            return "total of squares" if shape.first > 1 else "total"
        case partials.Extreme():
            return "greatest" if shape.greatest else "least"
        case partials.Edge():
            return "last" if shape.greatest else "first"
    return _NAMES[type(shape)]


_NAMES: dict[type, str] = {
    partials.CountPartial: "count",
    partials.FloatMoments: "moments",
    UserState: "state",
    value_tables.Values: "frequencies",
    value_tables.Buckets: "buckets",
    value_tables.Ranks: "ranks",
    value_tables.Counters: "counters",
    value_tables.OrderedRows: "rows in order",
    value_tables.Listed: "lists of the most frequent",
}


def parts_of(
    partial: partials.Partial, args: tuple[Expression, ...], order: tuple[Expression, ...] = ()
) -> Iterator[Datum]:
    """The data that a partial consists of, in the order of its columns."""
    match partial:
        case partials.CountPartial():
            yield Datum(partials.CountPartial(LABEL), args)
        case partials.ExactTotal():
            total = partials.ExactTotal(LABEL, partial.kind)
            yield Datum(partials.CountPartial(LABEL), args)
            yield Datum(partials.PartialColumns(LABEL, total, 1, len(total.combiners)), args)
            if partial.squared:
                squares = partials.ExactTotal(LABEL, partial.kind, squared=True)
                yield Datum(
                    partials.PartialColumns(LABEL, squares, len(total.combiners), len(squares.combiners)),
                    args,
                )
        case partials.FloatTotal():
            yield Datum(partials.CountPartial(LABEL), args)
            yield Datum(partials.PartialColumns(LABEL, partials.FloatTotal(LABEL), 1, 2), args)
        case _:
            yield Datum(_relabelled(partial), args, order)


def _relabelled(partial: partials.Partial) -> partials.Partial:
    return replace(partial, label=LABEL)


#: the states that do not depend on the windows they are of
_SHARED = (
    partials.CountPartial,
    partials.ExactTotal,
    partials.FloatTotal,
    partials.FloatMoments,
    partials.Extreme,
    partials.Edge,
    UserState,
)
_SHARED_CELLS = (
    value_tables.Values,
    value_tables.Buckets,
    value_tables.Ranks,
    value_tables.Counters,
    value_tables.OrderedRows,
    value_tables.Listed,
)


def can_be_shared(shape: partials.Partial | value_tables.Cells) -> bool:
    """Whether a state of an interval is the same for windows of all lengths."""
    return type(shape) in (*_SHARED, *_SHARED_CELLS)


#: how many rows a group has
ROW_COUNT = Datum(partials.CountPartial(LABEL), ())
