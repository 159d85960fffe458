"""Answers: states of windows become rows of the query, block by block.

Each block holds some windows of some groups, from every table of states; it is lowered, filtered by HAVING
and projected, and leaves as an Arrow table with `at`, the end of the window, before the query's columns.

Windows that nobody asks for any more: they are not computed, and what follows them is the same as ever.

A long run of such windows is left out before anything is done for it. A short one is computed with its
neighbours, since many small blocks cost more than a few windows too many, and leaves before it is turned into
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import polars as pl
import pyarrow as pa

from windrow.kernels.aggregates.lowering import WINDOW, lower, of_counts, of_nothing
from windrow.kernels.aggregates.measures import GROUPS, Measure, Measures
from windrow.kernels.columnar.columns import picked, polars_type
from windrow.kernels.panes.query import SlidingQuery, run_stages
from windrow.kernels.panes.slide import units

Range = tuple[int, int]

#: a run of unwanted windows is left out if it has so many cells, windows × groups
WORTH = 1 << 12


def runs_of(windows: Range, unwanted: Collection[int], groups: int) -> list[Range]:
    """The windows from one up to the other, without the long runs of those that are unwanted.

    >>> runs_of((0, 10), {0, 1, 4, 5, 6, 9}, groups=WORTH // 2)
    [(2, 4), (7, 10)]
    >>> runs_of((0, 10), {0, 1, 4, 5, 6, 9}, groups=1)
    [(0, 10)]
    """
    found: list[Range] = []
    begin, gone = windows[0], 0
    for w in range(windows[0], windows[1] + 1):
        if w < windows[1] and w in unwanted:
            gone += 1
            continue
        if gone * groups >= WORTH:
            found.append((begin, w - gone))
            begin = w
        gone = 0
    found.append((begin, windows[1]))
    return [part for part in found if part[0] < part[1]]


def neighbours(ranges: Iterable[Range], groups: int) -> list[Range]:
    """Ranges of windows in order, those with a short stretch between them as one: what a range costs however
    few windows it has is more than what empty windows do.

    >>> neighbours([(0, 2), (5, 8), (5000, 5001)], groups=1)
    [(0, 8), (5000, 5001)]
    >>> neighbours([(0, 2), (5, 8)], groups=WORTH)
    [(0, 2), (5, 8)]
    """
    found: list[Range] = []
    for first, stop in ranges:
        if found and (first - found[-1][1]) * groups < WORTH:
            found[-1] = found[-1][0], stop
        else:
            found.append((first, stop))
    return found


class WindowStates(Protocol):
    """Where the states of windows come from."""

    def block(self, groups: Range, windows: Range) -> pl.DataFrame:
        """(w, g, perhaps a value, partials) of a range of groups and of windows; empty ones are left out."""


class PaneAnswers:
    """The answer rows of a query from the states of its windows.

    `drops` says which windows are left out, by where they end.
    """

    def __init__(
        self, query: SlidingQuery, measures: Measures, drops: Callable[[int], bool] | None = None
    ) -> None:
        self.query = query
        self.measures = measures
        self.drops = drops

    def without(self, drops: Callable[[int], bool]) -> PaneAnswers:
        """The same answers, but for windows that are left out."""
        return PaneAnswers(self.query, self.measures, drops)

    def is_left_out(self, w: int) -> bool:
        """Whether a window has no answer, whatever is in it."""
        return self.drops is not None and self.drops(int(self.query.cut.ends(w)))

    def blocks(
        self,
        groups: pl.DataFrame,
        states: Mapping[str, WindowStates],
        windows: Range,
        spans: pl.DataFrame | None = None,
    ) -> Iterator[pa.Table]:
        """The answers of the windows from one up to the other, in tables of bounded size.

        With `spans` each group is answered only from its `first` to its `last` window.
        """
        if GROUPS not in states or windows[0] >= windows[1]:
            return
        gone = {w for w in range(*windows) if self.is_left_out(w)} if self.drops is not None else set()
        for part in runs_of(windows, gone, groups.height):
            for group_range, window_range in units(groups.height, part, self.query.cut):
                blocks = {name: table.block(group_range, window_range) for name, table in states.items()}
                frames = {name: _left(_within(frame, spans), gone) for name, frame in blocks.items()}
                if frames[GROUPS].height:
                    yield self.table(groups, frames)

    def table(self, groups: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pa.Table:
        """One block of answers."""
        ends = self.query.cut.ends(frames[GROUPS]["w"])
        hidden = [ends.alias("#at"), *self._bounds(ends)]
        return self.rows(groups, frames, hidden).drop("#window_start", "#window_end").to_arrow()

    def rows(
        self, groups: pl.DataFrame, frames: Mapping[str, pl.DataFrame], hidden: Sequence[pl.Series]
    ) -> pl.DataFrame:
        """Answers with the hidden columns of their windows first; those that HAVING refuses are left out."""
        states = frames[GROUPS]
        keys = picked(groups.drop("g"), states["g"]) if self.measures.keys else pl.DataFrame()
        columns = [
            keys[name].cast(polars_type(key.type)).alias(column)
            for name, (column, key) in zip(self.measures.keys, self.query.aggregate.keys, strict=True)
        ]
        columns += [
            self._value(measure, states, frames.get(measure.table)) for measure in self.measures.measures
        ]
        _, _, above = self.query.stages
        rows = run_stages(above, pl.DataFrame([*columns, *hidden]))
        selected = [rows[field.name].cast(polars_type(field.type)) for field in self.query.emit.schema]
        return pl.DataFrame([*(rows[each.name] for each in hidden), *selected])

    def _bounds(self, ends: pl.Series) -> list[pl.Series]:
        cut = self.query.cut
        if cut.range is not None:
            start = ends - cut.range
        else:
            start = pl.Series([cut.start], dtype=pl.Int64).new_from_index(0, len(ends))
        return [start.alias("#window_start"), ends.alias("#window_end")]

    def _value(self, measure: Measure, states: pl.DataFrame, counts: pl.DataFrame | None) -> pl.Series:
        dtype = polars_type(measure.kind)
        if measure.partial is not None:
            return lower(measure.aggregate, measure.partial, states).cast(dtype).alias(measure.name)
        value = pl.Series([None], dtype=dtype).new_from_index(0, states.height)
        known = pl.Series([False]).new_from_index(0, states.height)
        if counts is not None and counts.height:
            found = of_counts(measure.aggregate, counts).with_columns(pl.lit(True).alias("known"))
            joined = states.select(WINDOW).join(found, on=WINDOW, how="left", maintain_order="left")
            value, known = joined["value"].cast(dtype), joined["known"].fill_null(False)
        if not known.all():
            nothing = pl.Series([of_nothing(measure.aggregate)], dtype=dtype)
            value = value.zip_with(known, nothing.new_from_index(0, states.height))
        return value.alias(measure.name)


def _left(states: pl.DataFrame, gone: set[int]) -> pl.DataFrame:
    return states.filter(~states["w"].is_in(list(gone))) if gone else states


def _within(states: pl.DataFrame, spans: pl.DataFrame | None) -> pl.DataFrame:
    if spans is None or not states.height:
        return states
    own = picked(spans, states["g"])
    return states.filter((states["w"] >= own["first"]) & (states["w"] <= own["last"]))
