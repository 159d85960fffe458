"""A standing query, compiled to run anywhere its rows are: its levels, and the clock it goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from windrow.algebra.finality import is_final_by_group
from windrow.kernels.clock import Clock
from windrow.kernels.panes.level import Level
from windrow.kernels.panes.query import SlidingQuery
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.punctuation import NoPolicy

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.intake import Known


class Program:
    """The levels of a query, innermost first.

    Groups are answered one by one where the stream is punctuated PER a column of the grouping. `by_group`
    says that such promises may also come from outside, about a stream that does not declare them.
    """

    def __init__(self, emit: Emit, *, stacked: bool | None = None, by_group: bool | None = None) -> None:
        self.emit = emit
        self.query = SlidingQuery.of(emit)
        self.stream = self.query.scan.stream
        #: the columns by which groups may become final one by one
        self.candidates = [n for n in self.stream.schema.names if is_final_by_group(emit, self.stream, n)]
        rule = self.stream.progress
        expected = rule.per in self.candidates or (by_group is None and isinstance(rule.policy, NoPolicy))
        self.by_group = bool(self.candidates) and (by_group or expected)
        self.levels = [
            Level(query, stacked=stacked, by_group=self.by_group and query is self.query)
            for query in self.query.levels
        ]

    @property
    def bottom(self) -> Level:
        """The level that reads the stream."""
        return self.levels[0]

    def column(self, known: Known) -> str | None:
        """The column by whose values groups have clocks of their own."""
        on_wattr = self.query.attribute == self.stream.wattr
        return known.per if self.by_group and on_wattr and known.per in self.candidates else None

    def clock(self, before: Known, now: Known) -> Clock:
        """What is answered as the stream's progress goes from one to the other."""
        moved = self._progress(before), self._progress(now)
        column = self.column(now)
        if column is None:
            return Clock(*moved)
        sources = {s: (before.progress_of(s), now.progress_of(s)) for s in now.progress.sources}
        return Clock(*moved, self._key_of(column), sources)

    def reached(self, known: Known) -> int | None:
        """The last window of the bottom level that any group was answered for."""
        sources = known.progress.sources if self.column(known) is not None else ()
        furthest = max([self._progress(known), *(known.progress_of(source) for source in sources)])
        due = self.bottom.query.cut.due(furthest)
        return int(due) if abs(due) != INFINITY else None

    def _progress(self, known: Known) -> Instant:
        return known.progress_on(self.stream, self.query.attribute)

    def _key_of(self, column: str) -> str:
        """The column of pane tables that holds the source."""
        places = range(len(self.query.aggregate.keys))
        own = next(p for p in places if is_final_by_group(self.query.by_key(p), self.stream, column))
        return f"k{own}"

    def __reduce__(self) -> Any:
        """Compiled parts are functions; another process compiles the plan again."""
        return _again, (self.emit, {"by_group": self.by_group})


def _again(emit: Emit, options: dict[str, Any]) -> Program:
    return Program(emit, **options)
