"""The words of physical plans: implementations of operators, layouts of state.

An operator keeps its own result, for as long as something above must see it again; what it reads of its
inputs is kept by the operators below. So a layout follows from the label of the operator's own edge:

>>> from windrow.algebra.patterns import Label
>>> for fact in (Label(Pattern.WKS, "", fifo=True), Label(Pattern.WK, ""), Label(Pattern.STR, "", fifo=True)):
...     print(fact.pattern, stored(fact).value)
WKS FIFO buffer
WK calendar
STR FIFO by position, negative rows
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from windrow.algebra.patterns import Pattern

if TYPE_CHECKING:
    from windrow.algebra.patterns import Label


class Layout(Enum):
    """How a result is kept until it expires."""

    NONE = "none"
    APPEND = "append-only"
    FIFO = "FIFO buffer"
    CALENDAR = "calendar"
    POSITIONS = "FIFO by position, negative rows"
    HASH = "hash, negative rows"
    CATALOGUES = "hash, an expiry catalogue per input"
    CALENDAR_NEGATIVE = "calendar, negative rows for early expiry"
    YOUNGEST = "each value with its youngest duplicate"
    VALUES = "set of values"
    COUNTS = "count per value, negative rows"
    PANES = "state per pane and group"
    GROUPS = "state per group"
    CANDIDATES = "candidates per group"
    SESSIONS = "state per open session"
    TABLE = "table, hash by key"


class Implementation(Enum):
    """How an operator works."""

    SOURCE = "source"
    VERSIONS = "versions by instant"
    NESTED = "rows of the nested query"
    INTERVALS = "interval of each row, known when it arrives"
    NUMBERING = "rows numbered in order"
    BINS = "bins between the rows that slide the window"
    CHAINS = "chains of rows"
    PER_ROW = "row by row"
    MERGE = "merge"
    DELTA_STAR = "δ*"
    FIRST_SEEN = "δ of first occurrences"
    COUNTING = "counting δ"
    PANES = "panes (PLQ, WLQ)"
    RUNNING = "running value per group"
    REPLACED = "value per group, replaced"
    SESSIONS = "value per session"
    HASH_JOIN = "hash join"
    LOOP_JOIN = "nested loops"
    HASH_MATCH = "hash match"
    LOOP_MATCH = "match by nested loops"
    DIFFERENCE = "difference of counts per value"
    LOOKUP = "lookup on arrival"
    RELATION_JOIN = "join with withdrawals"
    RANK = "rank at each report"
    APPEND = "pass on"
    SNAPSHOTS = "snapshots"
    CHANGES = "differences between instants"


_PASSING = frozenset(
    {
        Implementation.SOURCE,
        Implementation.NESTED,
        Implementation.PER_ROW,
        Implementation.MERGE,
        Implementation.RANK,
        Implementation.APPEND,
        Implementation.SNAPSHOTS,
        Implementation.CHANGES,
    }
)


@dataclass(frozen=True)
class Physical:
    """The choice for one operator, why its state is kept so, and, where it needs saying, what it works on."""

    implementation: Implementation
    layout: Layout
    reason: str
    detail: str = ""

    @property
    def keeps_state(self) -> bool:
        return self.layout is not Layout.NONE

    @property
    def passes_on(self) -> bool:
        """Rows go through one by one: there is nothing to know about this operator but its pattern."""
        return self.implementation in _PASSING


#: what each layout of `stored` rests on
WHY = {
    Layout.APPEND: "nothing ever leaves",
    Layout.FIFO: "rows leave in the order they came",
    Layout.CALENDAR: "rows leave at known instants, in another order than they came",
    Layout.POSITIONS: "the oldest row leaves when another comes",
    Layout.HASH: "which row leaves is known only when it does: a negative row finds it by key",
}


def stored(label: Label) -> Layout:
    """The layout for rows that expire in this way."""
    match label.pattern:
        case Pattern.MON:
            return Layout.APPEND
        case Pattern.STR:
            return Layout.POSITIONS if label.fifo else Layout.HASH
    return Layout.FIFO if label.fifo else Layout.CALENDAR
