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
from windrow.kernels.aggregates.partials import (
    CountPartial,
    Edge,
    ExactTotal,
    Extreme,
    FloatMoments,
    FloatTotal,
    Partial,
    PartialColumns,
)
from windrow.kernels.aggregates.user_states import UserState
from windrow.kernels.aggregates.value_tables import (
    Buckets,
    Cells,
    Counters,
    Listed,
    OrderedRows,
    Ranks,
    Values,
    layout_of,
)
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

    shape: Partial | Cells
    args: tuple[Expression, ...]
    order: tuple[Expression, ...] = ()
    sub_windows: SharedGrid | None = None

    @property
    def is_complex(self) -> bool:
        """Whether it holds counters or sketches, whose size is not constant."""
        return isinstance(self.shape, Cells)

    @property
    def adds_up(self) -> bool:
        """Whether states of the rows of two conditions are that of the rows of either."""
        return not isinstance(self.shape, Listed)

    @cached_property
    def is_subtractable(self) -> bool:
        """Is f(X − Y) = f(X) − f(Y), exactly? Not if merging leaves anything out."""
        layout = (
            TableLayout((), (self.shape,)) if isinstance(self.shape, Partial) else self._layout_of_cells()
        )
        return layout.prune is None and all(each.invertible for each in layout.combiners)

    def _layout_of_cells(self) -> TableLayout:
        assert isinstance(self.shape, Cells)
        width = len(self.args) + (1 + len(self.order) if isinstance(self.shape, OrderedRows) else 0)
        return layout_of(self.shape, (), width)

    @cached_property
    def text(self) -> str:
        """For people.

        >>> from windrow.algebra.expressions import ColumnRef
        >>> from windrow.algebra.types import BIGINT
        >>> [datum.text for datum in parts_of(ExactTotal("", BIGINT), (ColumnRef("v", BIGINT),))]
        ['count of v', 'total of v']
        """
        args = ", ".join(to_sql(arg, str) for arg in self.args) or "rows"
        return f"{_name(self.shape)} of {args}"

    @property
    def form(self) -> list[Any]:
        """What it is known by in a state directory, for its canonical text.

        >>> [datum.form[0] for datum in parts_of(CountPartial(""), ())]
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
    CountPartial: "count.1",
    ExactTotal: "exact-total.1",
    FloatTotal: "float-total.1",
    FloatMoments: "float-moments.1",
    PartialColumns: "part-of-state.1",
    Extreme: "extreme.1",
    Edge: "edge.1",
    Values: "values.1",
    Buckets: "buckets.1",
    Ranks: "ranks.1",
    Counters: "counters.1",
    OrderedRows: "rows-in-order.1",
    Listed: "lists.1",
}


def _form(shape: Partial | Cells) -> list[Any]:
    found: list[Any] = [_DURABLE[type(shape)]]
    for item in fields(shape):
        value = getattr(shape, item.name)
        if item.name != "label":
            found.append(_form(value) if isinstance(value, Partial | Cells) else value)
    return found


def _name(shape: Partial | Cells) -> str:
    match shape:
        case PartialColumns():
            return "total of squares" if shape.first > 1 else "total"
        case Extreme():
            return "greatest" if shape.greatest else "least"
        case Edge():
            return "last" if shape.greatest else "first"
    return _NAMES[type(shape)]


_NAMES: dict[type, str] = {
    CountPartial: "count",
    FloatMoments: "moments",
    UserState: "state",
    Values: "frequencies",
    Buckets: "buckets",
    Ranks: "ranks",
    Counters: "counters",
    OrderedRows: "rows in order",
    Listed: "lists of the most frequent",
}


def parts_of(
    partial: Partial, args: tuple[Expression, ...], order: tuple[Expression, ...] = ()
) -> Iterator[Datum]:
    """The data that a partial consists of, in the order of its columns."""
    match partial:
        case CountPartial():
            yield Datum(CountPartial(LABEL), args)
        case ExactTotal():
            total = ExactTotal(LABEL, partial.kind)
            yield Datum(CountPartial(LABEL), args)
            yield Datum(PartialColumns(LABEL, total, 1, len(total.combiners)), args)
            if partial.squared:
                squares = ExactTotal(LABEL, partial.kind, squared=True)
                yield Datum(
                    PartialColumns(LABEL, squares, len(total.combiners), len(squares.combiners)), args
                )
        case FloatTotal():
            yield Datum(CountPartial(LABEL), args)
            yield Datum(PartialColumns(LABEL, FloatTotal(LABEL), 1, 2), args)
        case _:
            yield Datum(_relabelled(partial), args, order)


def _relabelled(partial: Partial) -> Partial:
    return replace(partial, label=LABEL)


#: the states that do not depend on the windows they are of
_SHARED = (CountPartial, ExactTotal, FloatTotal, FloatMoments, Extreme, Edge, UserState)
_SHARED_CELLS = (Values, Buckets, Ranks, Counters, OrderedRows, Listed)


def can_be_shared(shape: Partial | Cells) -> bool:
    """Whether a state of an interval is the same for windows of all lengths."""
    return type(shape) in (*_SHARED, *_SHARED_CELLS)


#: how many rows a group has
ROW_COUNT = Datum(CountPartial(LABEL), ())
