"""One aggregate of a query, compiled: rows go in, become states of panes, and windows come out.

A nested query has several levels; the answers of one are the rows of the next. Answers about the extent that
ends at E are rows of the instant E-1, the last one of that extent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.plan import Scan, Subquery
from windrow.kernels.aggregates.measures import GROUPS, Measures
from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.intake import check_instants
from windrow.kernels.panes.answers import Answers
from windrow.kernels.panes.landmark import RunningTotals
from windrow.kernels.panes.live_panes import LivePanes
from windrow.kernels.panes.pane_tables import assign_panes, pane_table
from windrow.kernels.panes.query import run_stages
from windrow.kernels.panes.subtract_on_evict import Differences, subtracts
from windrow.kernels.panes.two_stacks import TwoStacks
from windrow.kernels.state import Kernel
from windrow.windows.domain import ARRIVAL_TS, ROW_NUM

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.kernels.clock import Clock
    from windrow.kernels.panes.query import SlidingQuery

#: windows of at most this many panes are answered from their live panes, longer ones from persisted stacks
SHORT_WINDOW = 32


class Level:
    """An aggregate over a window. `stacked` chooses the kernel of RANGE windows; by default it is what their
    aggregates keep, and their length."""

    def __init__(self, query: SlidingQuery, *, stacked: bool | None = None, by_group: bool = False) -> None:
        self.query = query
        self.answers = Answers(query, Measures(query.aggregate))
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
        columns.append(known[attribute].cast(pl.Int64).alias("#t"))
        check_instants(columns[-1], f"`{attribute}` of stream `{scan.stream.name}`")
        columns += [known[source].alias("#source")] if source else []
        return self._entered(pl.DataFrame(columns).filter(pl.col("#t").is_not_null()))

    def nested(self, answers: pa.Table) -> pl.DataFrame:
        """Answers of the level below, as rows of this one."""
        origin = self.query.origin
        assert isinstance(origin, Subquery)
        frame = to_frame(answers)
        columns = [frame[name].alias(f"{origin.alias}.{name}") for name in origin.query.schema.names]
        instants = (frame["#at"] - 1).alias("#t")
        check_instants(instants, f"the instant of a row of nested query `{origin.alias}`")
        return self._entered(pl.DataFrame([*columns, instants]))

    def _entered(self, rows: pl.DataFrame) -> pl.DataFrame:
        below, _, _ = self.query.stages
        return assign_panes(run_stages(below, rows), self.query)

    def tables(self, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
        """Rows that entered the window, as states of panes."""
        return pane_table(rows, self.query, self.answers.measures)

    def latest(self, rows: pl.DataFrame, clock: Clock) -> int | None:
        """The last window in which any of the rows is first seen; a late one is in the next one to come."""
        if not rows.height:
            return None
        cut = self.query.cut
        sources = rows.select(pl.col("#source").alias(clock.key)) if clock.key else rows
        first = pl.DataFrame([rows["#pane"] // cut.per_slide, clock.windows(sources, cut)["first"]])
        return int(first.select(pl.max_horizontal(pl.all()).max()).item())


def _counts_values(measures: Measures, long: bool) -> bool:
    """Whether there are tables of values, and the rest is subtracted too or of few panes."""
    if not measures.counts_values:
        return False
    return not long or subtracts(measures.layouts[GROUPS])


def kernel_of(answers: Answers, stacked: bool | None = None, by_group: bool = False) -> Kernel:
    """The kernel that fits the aggregates and the length of their window."""
    cut = answers.query.cut
    if cut.range is None:
        return RunningTotals(answers)
    long = cut.per_window > SHORT_WINDOW if stacked is None else stacked
    if stacked is None and not by_group and _counts_values(answers.measures, long):
        return Differences(answers)
    return TwoStacks(answers) if long and not by_group else LivePanes(answers)
