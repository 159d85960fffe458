"""A standing query, compiled to run anywhere its rows are: its levels, and the clock it goes by.

A level is one aggregate: rows go in, become states of panes, and windows come out. A nested query has
several; the answers of one are the rows of the next. Answers about the extent that ends at E are rows of the
instant E-1, the last one of that extent.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from windrow.algebra.finality import is_final_by_group
from windrow.algebra.plan import Emit, Scan, Subquery
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.intake import Known, check_instants, moments_of
from windrow.kernels.panes import live_panes, pane_tables, subtract_on_evict, two_stacks
from windrow.kernels.panes.query import SlidingQuery, run_stages
from windrow.windows import ARRIVAL_TS, INFINITY, ROW_NUM, Instant, NoPolicy

#: windows of at most this many panes are answered from their live panes, longer ones from persisted stacks
SHORT_WINDOW = 32


class Level:
    """An aggregate over a window. `stacked` chooses the kernel of RANGE windows; by default it is what their
    aggregates keep, and their length."""

    def __init__(self, query: SlidingQuery, *, stacked: bool | None = None, by_group: bool = False) -> None:
        self.query = query
        self.answers = pane_tables.PaneAnswers(query, Measures(query.aggregate))
        self.kernel = kernel_of(self.answers, stacked, by_group)

    def scanned(self, accepted: pl.DataFrame, source: str | None = None) -> pl.DataFrame:
        """Accepted rows of the stream as the scan names them, with their instants as `#t`.

        `source` is the column by whose values groups have clocks of their own; it is `#source` then.
        """
        scan, attribute = self.query.origin, self.query.attribute
        assert isinstance(scan, Scan)
        names = scan.stream.schema.names
        known = {name: accepted[name] for name in names}
        known |= {name: accepted[f"#{name}"] for name in (ROW_NUM, ARRIVAL_TS)}
        read = (*names, *(name for name in (ROW_NUM, ARRIVAL_TS) if name in scan.pseudo))
        columns = [known[name].alias(f"{scan.alias}.{name}") for name in read]
        columns.append(moments_of(accepted, attribute).alias("#t"))
        check_instants(columns[-1], f"`{attribute}` of stream `{scan.stream.name}`")
        columns += [known[source].alias("#source")] if source else []
        return self.entered(pl.DataFrame(columns).filter(pl.col("#t").is_not_null()))

    def nested(self, answers: pa.Table) -> pl.DataFrame:
        """Answers of the level below, as rows of this one."""
        origin = self.query.origin
        assert isinstance(origin, Subquery)
        frame = to_frame(answers)
        columns = [frame[name].alias(f"{origin.alias}.{name}") for name in origin.query.schema.names]
        instants = (frame["#at"] - 1).alias("#t")
        check_instants(instants, f"the instant of a row of nested query `{origin.alias}`")
        return self.entered(pl.DataFrame([*columns, instants]))

    def entered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that lie in some extent, with the pane of each as `#pane`."""
        below, _, _ = self.query.stages
        frame, cut = run_stages(below, rows), self.query.cut
        instants = frame["#t"].to_numpy()
        inside = cut.holds(instants)
        frame = frame.with_columns(pl.Series("#pane", cut.panes_of(instants)))
        return frame if inside.all() else frame.filter(pl.Series(inside))

    def tables(self, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows that entered the window, as states of panes: WHERE, projections, then γ by pane."""
        _, between, _ = self.query.stages
        return self.answers.measures.tables(run_stages(between, rows))

    def latest(self, rows: pl.DataFrame, clock: PaneClock) -> int | None:
        """The last window in which any of the rows is first seen; a late one is in the next one to come."""
        if not rows.height:
            return None
        cut = self.query.cut
        sources = rows.select(pl.col("#source").alias(clock.key)) if clock.key else rows
        first = pl.DataFrame([rows["#pane"] // cut.per_slide, clock.windows(sources, cut)["first"]])
        return int(first.select(pl.max_horizontal(pl.all()).max()).item())


def kernel_of(
    answers: pane_tables.PaneAnswers, stacked: bool | None = None, by_group: bool = False
) -> pane_tables.Kernel:
    """The kernel that fits the aggregates and the length of their window."""
    cut, measures = answers.query.cut, answers.measures
    if cut.range is None:
        return live_panes.RunningTotals(answers)
    long = cut.per_window > SHORT_WINDOW if stacked is None else stacked
    subtracts = measures.counts_values and (not long or measures.layouts[GROUPS].subtracts)
    if stacked is None and not by_group and subtracts:
        return subtract_on_evict.Differences(answers)
    return two_stacks.TwoStacks(answers) if long and not by_group else live_panes.LivePanes(answers)


class PaneProgram:
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

    def clock(self, before: Known, now: Known) -> PaneClock:
        """What is answered as the stream's progress goes from one to the other."""
        moved = self._progress(before), self._progress(now)
        column = self.column(now)
        if column is None:
            return PaneClock(*moved)
        sources = {s: (before.progress_of(s), now.progress_of(s)) for s in now.progress.sources}
        places = range(len(self.query.aggregate.keys))
        own = next(p for p in places if is_final_by_group(self.query.by_key(p), self.stream, column))
        return PaneClock(*moved, f"k{own}", sources)

    def reached(self, known: Known) -> int | None:
        """The last window of the bottom level that any group was answered for."""
        sources = known.progress.sources if self.column(known) is not None else ()
        furthest = max([self._progress(known), *(known.progress_of(source) for source in sources)])
        due = self.bottom.query.cut.due(furthest)
        return int(due) if abs(due) != INFINITY else None

    def _progress(self, known: Known) -> Instant:
        return known.progress_on(self.stream, self.query.attribute)
