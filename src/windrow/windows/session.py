"""SESSION windows: rows of one key less than a gap apart; a session ends a gap after its last row.

gap 5               1  3  7        13          sessions [1, 12) and [13, 18)
gap 6               1  3  7        13          the same two
gap 6, inclusive    1  3  7        13          one session, reported at 19

An inclusive session joins rows at most a gap apart, as Flink and Spark do. It is there one tick longer, up
to and including the instant that is reported as its end.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.windows.domain import INFINITY, Element, Instant, Interval, Report, sort_key, visible
from windrow.windows.patterns import Label, Pattern
from windrow.windows.rows import number
from windrow.windows.spec import WindowId, WindowSpec, require_positive


@dataclass(frozen=True)
class SessionWindow(WindowSpec):
    """Runs of rows.

    >>> [(s.start, s.end) for s in SessionWindow(5).sessions([Element(t) for t in (13, 1, 3, 7)])]
    [(1, 12), (13, 18)]
    """

    never_internal = "a session ends by itself, and its rows with it"

    gap: int
    partition_by: tuple[str, ...] = ()
    inclusive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("the gap of SESSION", self.gap)

    has_bounds = True

    @property
    def typical_length(self) -> float:
        """A session lasts for as long as rows come within the gap: at least for one more gap."""
        return 2 * self.gap

    label = Label(Pattern.STR, "a session grows while rows arrive: its end is not known at birth")

    @property
    def _length(self) -> Hashable:
        return "SESSION", self.gap, self.partition_by, self.inclusive

    @property
    def reach(self) -> int:
        """How far from the last row the next one begins a session of its own."""
        return self.gap + self.inclusive

    needs_earlier = True

    def later_context(self, row: Element) -> tuple[Instant, Instant] | None:
        """A session has no greatest length: any later row may be the next link of the chain."""
        return row.t, INFINITY

    def sessions(self, rows: Sequence[Element]) -> list[Report]:
        """All sessions, by their end, then key."""
        found: list[Report] = []
        for part in number(rows, by_key=bool(self.partition_by)):
            runs = self._runs(rows[place] for place in part.places)
            found += [self._report(part.key, run) for run in runs]
        return sorted(found, key=lambda report: (report.end, sort_key(report.key)))

    def windows(self, rows: Sequence[Element]) -> Sequence[WindowId]:
        return [self._id(report.end, report.key) for report in self.sessions(rows)]

    def extent(self, w: Any, rows: Sequence[Element]) -> list[Element]:
        reports = (report for report in self.sessions(rows) if self._id(report.end, report.key) == w)
        return [row for report in reports for row in report.elements]

    def intervals(self, rows: Sequence[Element]) -> list[Interval | None]:
        ends = {
            (row.t, report.key): report.end + self.inclusive
            for report in self.sessions(rows)
            for row in report.elements
        }
        return [visible(row, row.t, ends[row.t, self._key(row)]) for row in rows]

    def _key(self, row: Element) -> tuple[Any, ...]:
        return row.key if self.partition_by else ()

    def _id(self, end: int, key: tuple[Any, ...]) -> tuple[Any, ...]:
        return (end, key) if self.partition_by else (end,)

    def _runs(self, rows: Iterable[Element]) -> list[list[Element]]:
        """Rows in order of time, cut where the gap is reached."""
        runs: list[list[Element]] = []
        for row in rows:
            if runs and row.t - runs[-1][-1].t < self.reach:
                runs[-1].append(row)
            else:
                runs.append([row])
        return runs

    def _report(self, key: tuple[Any, ...], run: list[Element]) -> Report:
        end = run[-1].t + self.gap
        return Report(end, run[0].t, end, key, tuple(run))
