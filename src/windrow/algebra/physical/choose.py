"""The choice for every operator: one function per family, found in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow.algebra.operators import (
    Aggregate,
    Distinct,
    Except,
    Exists,
    Filter,
    Join,
    Limit,
    Project,
    TableJoin,
    Union,
)
from windrow.algebra.patterns import Pattern
from windrow.algebra.physical.grouping import grouped
from windrow.algebra.physical.layouts import Implementation, Layout, Physical
from windrow.algebra.physical.matching import difference, join, match
from windrow.algebra.physical.reading import Around, kept
from windrow.algebra.plan import Emit, Plan, Scan, StreamWord, Subquery, TableScan, Window
from windrow.algebra.rank import Rank
from windrow.windows.rows import RowsWindow
from windrow.windows.session import SessionWindow
from windrow.windows.slide_by_tuple import SlideByTupleWindow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True)
class PhysicalPlan:
    """An operator with its choice, over its inputs with theirs."""

    node: Plan
    physical: Physical
    inputs: tuple[PhysicalPlan, ...] = ()

    def walk(self) -> Iterator[PhysicalPlan]:
        """This operator and all below it, parents first; nested queries included."""
        yield self
        for part in self.inputs:
            yield from part.walk()


def choose(emit: Emit) -> PhysicalPlan:
    """The physical plan of a query.

    >>> from windrow.algebra.catalog import Stream
    >>> from windrow.algebra.schema import Field, Schema
    >>> from windrow.algebra.types import BIGINT
    >>> from windrow.windows.ranges import RangeWindow
    >>> stream = Stream("s", Schema((Field("k", BIGINT), Field("ts", BIGINT))), "ts")
    >>> plan = choose(Emit(Distinct(Window(Scan(stream, "s"), RangeWindow(60)))))
    >>> [(type(part.node).__name__, part.physical.layout.name) for part in plan.walk()]
    [('Emit', 'NONE'), ('Distinct', 'YOUNGEST'), ('Window', 'NONE'), ('Scan', 'NONE')]
    """
    if emit.is_union:
        united = PhysicalPlan(emit.input, _UNITED, tuple(choose(branch) for branch in emit.branches))
        return PhysicalPlan(emit, _UNITED, (united,))
    below = _chosen(emit.input, Around(emit, (emit,)))
    return PhysicalPlan(emit, _emission(emit), (below,))


def _chosen(node: Plan, around: Around) -> PhysicalPlan:
    if isinstance(node, Subquery):
        return PhysicalPlan(node, _NESTED, (choose(node.query),))
    below = around.under(node)
    return PhysicalPlan(
        node, _FAMILIES[type(node)](node, around), tuple(_chosen(child, below) for child in node.children)
    )


def _emission(emit: Emit) -> Physical:
    if emit.meaning is StreamWord.ISTREAM and emit.label.pattern is Pattern.MON:
        return Physical(Implementation.APPEND, Layout.NONE, "answers are never withdrawn")
    if emit.meaning.restores:
        return Physical(Implementation.SNAPSHOTS, Layout.NONE, "read from the state below at each refresh")
    if emit.meaning is StreamWord.RSTREAM:
        return Physical(Implementation.SNAPSHOTS, Layout.NONE, "read from the state below at each report")
    return Physical(Implementation.CHANGES, Layout.NONE, "rows that come and go at one instant cancel out")


def _window(node: Window, around: Around) -> Physical:
    match node.spec:
        case RowsWindow():
            how = Implementation.NUMBERING
        case SlideByTupleWindow():
            how = Implementation.BINS
        case SessionWindow():
            how = Implementation.CHAINS
        case _:
            how = Implementation.INTERVALS
    return kept(how, node.label, around)


def _distinct(node: Distinct, around: Around) -> Physical:
    match node.input.label.pattern:
        case Pattern.MON:
            why = "nothing below expires: a value is new once"
            return Physical(Implementation.FIRST_SEEN, Layout.VALUES, why)
        case Pattern.STR:
            why = "rows below may expire early, so all copies are counted"
            return Physical(Implementation.COUNTING, Layout.COUNTS, why)
    why = "no row below expires early, so at most twice the output is kept"
    return Physical(Implementation.DELTA_STAR, Layout.YOUNGEST, why)


def _table_join(node: TableJoin, around: Around) -> Physical:
    if node.is_retroactive:
        why = "a change of the table withdraws or adds results of rows that came before"
        return Physical(Implementation.RELATION_JOIN, Layout.HASH, why)
    return kept(Implementation.LOOKUP, node.label, around, "in the table as of each row's WATTR")


def _limit(node: Limit | Rank, around: Around) -> Physical:
    return Physical(Implementation.RANK, Layout.NONE, "the input is ranked whenever an answer is due")


def _always(choice: Physical) -> Callable[[Any, Around], Physical]:
    return lambda node, around: choice


_NESTED = Physical(Implementation.NESTED, Layout.NONE, "its answers are rows of a stream")
_UNITED = Physical(Implementation.MERGE, Layout.NONE, "answers of one branch never meet those of another")
_ROW = Physical(Implementation.PER_ROW, Layout.NONE, "leaves expiry alone")
_MERGED = Physical(Implementation.MERGE, Layout.NONE, "rows keep their intervals")
_SOURCE = Physical(Implementation.SOURCE, Layout.NONE, "a stream only grows")
_TABLE = Physical(Implementation.VERSIONS, Layout.TABLE, "as of each instant that a row may ask for")

_FAMILIES: dict[type[Plan], Callable[[Any, Around], Physical]] = {
    Scan: _always(_SOURCE),
    TableScan: _always(_TABLE),
    Window: _window,
    Filter: _always(_ROW),
    Project: _always(_ROW),
    Union: _always(_MERGED),
    Distinct: _distinct,
    Aggregate: lambda node, around: grouped(node, around.emit),
    Join: join,
    Exists: match,
    Except: difference,
    TableJoin: _table_join,
    Limit: _limit,
    Rank: _limit,
}
