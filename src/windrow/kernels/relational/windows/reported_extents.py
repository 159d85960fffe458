"""Windows whose extents are reported by themselves: SLIDE n ROWS, and sessions that have ended.

Each report is evaluated on its own rows only, so reports are numbered, and the number takes the place of the
instant: a row is in the pieces [r, r+1) of the reports r it belongs to. `at` and the bounds of each report
are told to the root.

Card: rows by report
    requirements  one window, RSTREAM
    time          RANGE / SLIDE entries per row
    space         the rows of extents not yet reported
    source        WID (Li et al. 2005), 5 (rows tagged with window ids)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational.clock import moved
from windrow.kernels.relational.expiry_layouts import chunks_of, frame_of
from windrow.kernels.relational.operator import Step
from windrow.kernels.relational.signed_rows import TS, blank, together
from windrow.kernels.relational.windows.leaf import PENDING
from windrow.kernels.relational.windows.rows import (
    COUNTS,
    INSIDE,
    MOMENT,
    POSITION,
    Numbering,
    ReachedPositions,
)
from windrow.kernels.relational.windows.session import ENTERED, Sessions, chained
from windrow.kernels.state import State
from windrow.windows.grid import covered

NUMBER_OF_REPORTS = "reports"


class ReportedRows(Numbering):
    """[ROWS n SLIDE m ROWS], an extent at a time."""

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        waiting = together([frame_of(state.of(PENDING), self.rows), rows], self.rows)
        counts = frame_of(state.of(COUNTS), self.counted)
        new = blank(self.numbered)
        before = counts
        if waiting.height:
            new, waiting, counts = self.number(waiting, counts, step)
        first = state.meta.get(NUMBER_OF_REPORTS, 0)
        chunks = {PENDING: chunks_of(waiting), COUNTS: chunks_of(counts)}
        if not new.height:
            begin_reports(step, first, _no_reports())
            return State({**chunks, INSIDE: state.of(INSIDE)}, {NUMBER_OF_REPORTS: first}), blank(
                self.columns
            )
        inside = together([frame_of(state.of(INSIDE), self.numbered), new], self.numbered)
        found, stay, reports = self._reported(inside, new.height, before, first)
        begin_reports(step, first, reports)
        meta = {NUMBER_OF_REPORTS: first + reports.height}
        return State({**chunks, INSIDE: chunks_of(stay)}, meta), found

    def _reported(
        self, inside: pl.DataFrame, new: int, before: pl.DataFrame, first: int
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Members of the extents that new rows complete, the rows that stay, and the reports."""
        n, m = self.spec.rows, self.spec.slide_rows
        both = self.parts([inside, before])
        part, theirs = both[: inside.height], both[inside.height :]
        place, moments = inside[POSITION].to_numpy(), inside[MOMENT].to_numpy()
        done = np.zeros(len(both) + 1, dtype=np.int64)
        done[theirs] = before["count"].to_numpy()
        reached = np.zeros(len(both) + 1, dtype=np.int64)
        np.maximum.at(reached, part, place)
        low = -(-np.maximum(place, done[part] + 1) // m)
        high = np.minimum(reached[part], place + n - 1) // m + 1
        row, number = covered(low, high)
        end, owner = number * m, part[row]
        at = ReachedPositions(part[-new:], place[-new:], moments[-new:]).moment(owner, end)
        reports = pl.DataFrame({"at": at, "end": end, "part": owner}).unique().sort("at", "end", "part")
        numbered = reports.with_columns(pl.Series("r", np.arange(reports.height) + first))
        members = pl.DataFrame({"at": at, "end": end, "part": owner}).join(
            numbered, on=["at", "end", "part"], how="left", maintain_order="left"
        )
        found = self.pieces(picked(inside, row), members["r"], members["r"] + 1)
        stay = inside.filter(pl.Series(place + n > reached[part]))
        return found, stay, reports.select("at", (pl.col("end") - n).alias("start"), "end")


class ReportedSessions(Sessions):
    """[SESSION gap], a session at a time, when it has ended."""

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        waiting = together([frame_of(state.of(PENDING), self.rows), rows], self.rows)
        new = waiting
        if waiting.height:
            final = pl.Series(waiting[TS].to_numpy() < self.known(waiting, step))
            new, waiting = waiting.filter(final), waiting.filter(~final)
        fresh = new.with_columns(pl.lit(False).alias(ENTERED))
        inside = together([frame_of(state.of(INSIDE), self.inside), fresh], self.inside)
        first = state.meta.get(NUMBER_OF_REPORTS, 0)
        found, stay, reports = self._ended(inside, first, step)
        begin_reports(step, first, reports)
        chunks = {PENDING: chunks_of(waiting), INSIDE: chunks_of(stay)}
        return State(chunks, {NUMBER_OF_REPORTS: first + reports.height}), found

    def _ended(
        self, inside: pl.DataFrame, first: int, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        if not inside.height:
            return blank(self.columns), inside, _no_reports()
        rows = chained(inside, self.keys, self.spec.reach)
        if self.spec.inclusive:
            rows = rows.with_columns(pl.col("#end") - 1)
        known = self.known(rows, step)
        stop = moved(known, self.lag) if isinstance(known, int) else known + self.lag
        over = pl.Series(rows["#end"].to_numpy() < stop)
        done, stay = rows.filter(over), rows.filter(~over)
        if not done.height:
            return blank(self.columns), stay.select(list(self.inside)), _no_reports()
        reports = done.select("#session", "#start", "#end").unique().sort("#end", "#session")
        numbers = dict(zip(reports["#session"].to_list(), range(first, first + reports.height), strict=True))
        r = done["#session"].replace_strict(numbers, return_dtype=pl.Int64)
        found = self.pieces(done, r, r + 1)
        bounds = reports.select(
            pl.col("#end").alias("at"), pl.col("#start").alias("start"), pl.col("#end").alias("end")
        )
        return found, stay.select(list(self.inside)), bounds


def begin_reports(step: Step, first: int, reports: pl.DataFrame) -> None:
    """From here on, the instants of the step are the numbers of its reports."""
    step.reports, step.first_report = reports, first
    step.clock = step.clock.plain
    stop = first + reports.height
    step.slice = replace(step.slice, start=first, stop=stop, floor=stop)


def _no_reports() -> pl.DataFrame:
    return pl.DataFrame(schema={"at": pl.Int64(), "start": pl.Int64(), "end": pl.Int64()})
