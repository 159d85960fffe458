"""Extents: pieces cut at their bounds, SESSION windows, and windows whose extents are reported by themselves.

Card: cut by extents
    requirements  windows with one common period, or extents that are reported by themselves
    time          one piece per extent a row is in
    space         the rows alive
    source        WID (Li et al. 2005), 5: rows tagged with window ids, where the id itself is asked for

Card: chains
    requirements  all rows below the clock are known
    time          sorting the new rows; rows of the sessions that end
    space         the rows of open sessions, rows not yet final, the last instant of each open session
    source        SESSION as defined: [t, last t + gap)

With SLIDE n ROWS, and of sessions that have ended, each report is evaluated on its own rows only. So reports
are numbered, and the number takes the place of the instant: a row is in the pieces [r, r+1) of the reports r
it belongs to. `at` and the bounds of each report are told to the root.

Card: rows by report
    requirements  one window, RSTREAM
    time          RANGE / SLIDE entries per row
    space         the rows of extents not yet reported
    source        WID (Li et al. 2005), 5 (rows tagged with window ids)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from windrow.algebra.plan import Window
from windrow.kernels.columnar.columns import picked
from windrow.kernels.relational import signed_rows as signed
from windrow.kernels.relational.emission import last_report
from windrow.kernels.relational.expiry_layouts import Hashed, chunks_of, frame_of
from windrow.kernels.relational.operator import Operator, Step
from windrow.kernels.relational.signed_rows import BOUNDS, FOREVER, INT, TS, VE, VS, Columns
from windrow.kernels.relational.windows import rows as row_windows
from windrow.kernels.relational.windows.leaf import PENDING, Leaf
from windrow.kernels.state import State
from windrow.windows.spec import covered

ROWS = "rows"


class Extents(Operator):
    """Each piece once for every extent it is in, with the extent's bounds."""

    name = "extents"

    def __init__(self, below: Operator, spec: Any, reported: bool) -> None:
        self.inputs = (below,)
        self.spec = spec
        self.reported = reported
        self.layout = Hashed()
        self.columns = below.columns | BOUNDS
        self.rows = signed.without(below.columns, VS)
        self.pieces = below.columns

    def advance(self, state: State, inputs: Sequence[pl.DataFrame], step: Step) -> tuple[State, pl.DataFrame]:
        new = inputs[0].select(list(self.pieces))
        rows = signed.together([signed.begun(frame_of(state.of(ROWS), self.rows)), new], self.pieces)
        chunks = self.layout.forget(state.of(ROWS), step.slice.floor)
        chunks = self.layout.add(chunks, new.select(list(self.rows)).filter(pl.col(VE) > step.slice.floor))
        found = signed.blank(self.columns)
        if rows.height:
            found = self._by_report(rows, step) if self.reported else self._by_grid(rows, step)
        return State({ROWS: chunks}), found

    def _by_report(self, rows: pl.DataFrame, step: Step) -> pl.DataFrame:
        """Every instant is a report of its own."""
        if step.reports is None or not step.reports.height:
            return signed.blank(self.columns)
        rows = signed.positive(rows)
        low = np.maximum(rows[VS].to_numpy(), step.slice.start)
        row, at = covered(low, np.minimum(rows[VE].to_numpy(), step.slice.stop))
        bounds = picked(step.reports.select("start", "end"), at - step.first_report)
        columns = [pl.Series(VS, at), pl.Series(VE, at + 1)]
        columns += [bounds["start"].alias("#window_start"), bounds["end"].alias("#window_end")]
        return picked(rows, row).with_columns(columns).select(list(self.columns))

    def _by_grid(self, rows: pl.DataFrame, step: Step) -> pl.DataFrame:
        """What was there gets pieces for the extents that begin now, what is new also for the current one."""
        grid = self.spec.grid
        stop = step.slice.stop
        if step.slice.ended:
            stop = min(stop, max(last_report([grid], step), step.until) + 1)
        vs, ve = rows[VS].to_numpy(), rows[VE].to_numpy()
        new = vs > -FOREVER
        begins, ends = np.where(new, vs, step.slice.start), np.minimum(ve, stop)
        begins, ends = (np.clip(each, -(FOREVER // 2), FOREVER // 2) for each in (begins, ends))
        # from the extent that is current when a new one begins: that of the last slide at or before it
        row, end = grid.within(np.where(new, grid.lasts(begins), begins), ends)
        start, stop_at = self.spec.bounds_of(end)
        columns = [
            pl.Series(VS, np.maximum(end, begins[row])),
            pl.Series(VE, np.minimum(grid.nexts(end), ve[row])),
            pl.Series("#window_start", [None] * len(end) if start is None else start, pl.Int64),
            pl.Series("#window_end", stop_at),
        ]
        found = picked(rows, row).with_columns(columns).select(list(self.columns))
        return found.filter(pl.col(VS) < pl.col(VE))


ENTERED = "#entered"


class Sessions(Leaf):
    """[SESSION gap [PARTITION BY k]]."""

    def __init__(self, window: Window, below: Operator, lag: int) -> None:
        super().__init__(window, below, lag)
        self.inside: Columns = self.rows | {ENTERED: pl.Boolean()}

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        inside, waiting = self.final(state, rows, step)
        if not inside.height:
            return State({PENDING: chunks_of(waiting)}), signed.blank(self.columns)
        found, stay = self.closed(chained(inside, self.keys, self.spec.reach), step)
        return State({PENDING: chunks_of(waiting), row_windows.INSIDE: chunks_of(stay)}), found

    def final(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows of open sessions with those that are final now, and those that are not."""
        waiting = self.waiting(state, rows, self.rows)
        new = waiting
        if waiting.height:
            new, waiting = signed.parted(waiting, waiting[TS].to_numpy() < self.known(waiting, step))
        fresh = new.with_columns(pl.lit(False).alias(ENTERED))
        return frame_of(state.of(row_windows.INSIDE), self.inside, fresh), waiting

    def closed(self, inside: pl.DataFrame, step: Step) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The pieces that begin and end, and the rows of sessions that go on."""
        stop = self.stop(inside, step)
        ends, entered = inside["#end"].to_numpy(), inside[ENTERED].to_numpy()
        over = ends < stop
        leaves = np.where(over, ends, FOREVER)
        found = self.turned(inside, ~entered, inside[TS].to_numpy(), entered & over, leaves)
        stay = inside.with_columns(pl.lit(True).alias(ENTERED)).filter(pl.Series(~over))
        return found, stay.select(list(self.inside))


def chained(rows: pl.DataFrame, keys: list[str], gap: int) -> pl.DataFrame:
    """Rows with their session: its number `#session`, and where it begins and would end.

    >>> chained(pl.DataFrame({TS: [13, 1, 3, 7]}), [], 5).sort(TS)["#end"].to_list()
    [12, 12, 12, 18]
    """
    part, t = signed.codes(rows, keys), rows[TS].to_numpy()
    order = np.lexsort((t, part))
    part, t = part[order], t[order]
    new = signed.heads(part) | np.append(True, t[1:] - t[:-1] >= gap)
    session = np.cumsum(new) - 1
    starts = np.flatnonzero(new)
    ends = t[np.append(starts[1:], len(t)) - 1] + gap
    place = np.empty_like(order)
    place[order] = session
    return rows.with_columns(
        pl.Series("#session", place), pl.Series("#start", t[starts][place]), pl.Series("#end", ends[place])
    )


NUMBER_OF_REPORTS = "reports"


class ReportedRows(row_windows.Numbering):
    """[ROWS n SLIDE m ROWS], an extent at a time."""

    def enter(self, state: State, rows: pl.DataFrame, step: Step) -> tuple[State, pl.DataFrame]:
        new, before, chunks = self.numbered_rows(state, rows, step)
        first = state.meta.get(NUMBER_OF_REPORTS, 0)
        if not new.height:
            begin_reports(step, first, _no_reports())
            chunks[row_windows.INSIDE] = state.of(row_windows.INSIDE)
            return State(chunks, {NUMBER_OF_REPORTS: first}), signed.blank(self.columns)
        inside = frame_of(state.of(row_windows.INSIDE), self.numbered, new)
        found, stay, reports = self._reported(inside, new.height, before, first)
        begin_reports(step, first, reports)
        meta = {NUMBER_OF_REPORTS: first + reports.height}
        return State({**chunks, row_windows.INSIDE: chunks_of(stay)}, meta), found

    def _reported(
        self, inside: pl.DataFrame, new: int, before: pl.DataFrame, first: int
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Members of the extents that new rows complete, the rows that stay, and the reports."""
        n, m = self.spec.rows, self.spec.slide_rows
        part, theirs = signed.codes_of([inside, before], self.keys)
        place, moments = inside[row_windows.POSITION].to_numpy(), inside[row_windows.MOMENT].to_numpy()
        done = np.zeros(len(part) + len(theirs) + 1, dtype=np.int64)
        done[theirs] = before["count"].to_numpy()
        reached = np.zeros_like(done)
        np.maximum.at(reached, part, place)
        low = -(-np.maximum(place, done[part] + 1) // m)
        high = np.minimum(reached[part], place + n - 1) // m + 1
        row, number = covered(low, high)
        end, owner = number * m, part[row]
        at = row_windows.ReachedPositions(part[-new:], place[-new:], moments[-new:]).moment(owner, end)
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
        inside, waiting = self.final(state, rows, step)
        first = state.meta.get(NUMBER_OF_REPORTS, 0)
        found, stay, reports = self._ended(inside, first, step)
        begin_reports(step, first, reports)
        chunks = {PENDING: chunks_of(waiting), row_windows.INSIDE: chunks_of(stay)}
        return State(chunks, {NUMBER_OF_REPORTS: first + reports.height}), found

    def _ended(
        self, inside: pl.DataFrame, first: int, step: Step
    ) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        if not inside.height:
            return signed.blank(self.columns), inside, _no_reports()
        rows = chained(inside, self.keys, self.spec.reach)
        if self.spec.inclusive:
            rows = rows.with_columns(pl.col("#end") - 1)
        stop = self.stop(rows, step)
        done, stay = signed.parted(rows, rows["#end"].to_numpy() < stop)
        reports = done.select("#session", "#start", "#end").unique().sort("#end", "#session")
        reports = reports.with_columns(pl.int_range(first, pl.len() + first, dtype=pl.Int64).alias("#r"))
        r = done.select("#session").join(reports, on="#session", how="left", maintain_order="left")["#r"]
        bounds = reports.select(at=pl.col("#end"), start=pl.col("#start"), end=pl.col("#end"))
        return self.pieces(done, r, r + 1), stay.select(list(self.inside)), bounds


def begin_reports(step: Step, first: int, reports: pl.DataFrame) -> None:
    """From here on, the instants of the step are the numbers of its reports."""
    step.reports, step.first_report = reports, first
    step.clock = step.clock.plain
    stop = first + reports.height
    step.slice = replace(step.slice, start=first, stop=stop, floor=stop)


def _no_reports() -> pl.DataFrame:
    return pl.DataFrame(schema={"at": INT, "start": INT, "end": INT})
