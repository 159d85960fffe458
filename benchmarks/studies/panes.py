"""Panes on and off: a sliding MAX, by rows per pane and panes per window (No Pane, No Gain, Figure 3).

The same query four ways: rewritten to panes and as it stands, both on the kernels for any plan; on the
kernels for sliding aggregates, which have panes built in; and from a buffer of rows, which is looked
through for every extent. What counts is the ratio of times with panes to times without.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.benchmark import Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.contestant import Outcome
from benchmarks.rounds import Case, Measured, measure
from benchmarks.studies.costs import compared
from benchmarks.studies.extents import Buffered, Paned, answered, batches_of, greatest_by_key, readings
from benchmarks.studies.steps import Standing
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.theory.pane_costs import SlidingWork
from benchmarks.times import ABSENT, times_table
from windrow.optimizer.trees import as_query
from windrow.optimizer.use_panes import use_panes
from windrow.windows.panes import Panes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.setting import Setting
    from benchmarks.statistics import Summary
    from benchmarks.studies.steps import Batch
    from benchmarks.suite.panes import Options
    from windrow.algebra.plan import Emit

PANED, WINDOWED, KERNELS, BUFFERING = "paned plan", "windowed plan", "pane kernels", "buffering"
WHO = (PANED, WINDOWED, KERNELS, BUFFERING)
ROWS_PER_PANE, PANES_PER_WINDOW, GROUPS = "rows per pane", "panes per window", "groups"
_ABOUT = {
    PANED: "the plan after the rule `use_panes`, on the kernels for any plan",
    WINDOWED: "the plan as it was written, on the kernels for any plan: rows come and go one by one",
    KERNELS: "the kernels for sliding aggregates: live panes up to 32 in a window, above that two stacks, or"
    " panes at once in steps of many extents",
    BUFFERING: "polars: the rows of the window are kept, and grouped for every extent",
}


def run(setting: Setting, options: Options) -> Findings:
    """Every way at every shape of the window."""
    batches = batches_of(readings(options.rows, options.keys), options.rows_per_batch)
    cases = [
        case
        for width, count in product(options.rows_per_pane, options.panes_per_window)
        for case in _cases(width, count, batches)
    ]
    measured = measure(cases, setting.rounds, setting.say)
    by_groups = measure(list(_by_groups(options)), setting.rounds, setting.say)
    settings = {name: {"what": about} for name, about in _ABOUT.items()}
    settings["all"] = {
        "query": "MAX by key over [RANGE r SLIDE s]",
        "rows": f"{options.rows:,}, {options.rows_per_batch:,} at once, {options.keys} keys",
    }
    variants = [dict(case.variant) for case in cases if case.contestant == PANED]
    pairs = ((PANED, WINDOWED), (KERNELS, WINDOWED), (KERNELS, BUFFERING))
    return Findings(
        settings,
        [*measured.measurements, *by_groups.measurements],
        [
            times_table("Processor time of all rows", measured, WHO, variants),
            *(_ratios(of, to, measured, options) for of, to in pairs),
            _groups_table(by_groups, options),
            _predicted(options),
        ],
        [_chart(of, to, measured, options) for of, to in pairs],
        shapes(measured, options),
    )


def _cases(width: int, count: int, batches: Sequence[Batch]) -> list[Case]:
    emit = greatest_by_key(f"RANGE {width * count} SLIDE {width}")
    (paned,) = map(as_query, use_panes(emit))
    ways = {
        PANED: partial(_general, paned, batches),
        WINDOWED: partial(_general, emit, batches),
        KERNELS: partial(Paned(emit).run, batches),
        BUFFERING: partial(Buffered(width * count, width).run, batches),
    }
    variant = {ROWS_PER_PANE: width, PANES_PER_WINDOW: count}
    return [Case(name, variant, way) for name, way in ways.items()]


def _middle(options: Options) -> tuple[int, int]:
    width, count = sorted(options.rows_per_pane), sorted(options.panes_per_window)
    return width[len(width) // 2], count[len(count) // 2]


def _by_groups(options: Options) -> Iterator[Case]:
    """The plan with panes and the one without, by the number of keys: the more there are, the less a pane
    makes of its rows (No Pane, No Gain, 3.3.1)."""
    width, count = _middle(options)
    for keys in options.groups:
        batches = batches_of(readings(options.rows, keys), options.rows_per_batch)
        yield from (replace(case, variant={GROUPS: keys}) for case in _cases(width, count, batches))


def _groups_table(measured: Measured, options: Options) -> Table:
    width, count = _middle(options)
    rows = []
    for keys in options.groups:
        pairs = ((PANED, WINDOWED), (KERNELS, WINDOWED), (KERNELS, BUFFERING))
        found = (compared(measured, of, to, **{GROUPS: keys}) for of, to in pairs)
        model = _modelled(width, count, min(width, keys))
        cells = (ABSENT if each is None else each.text(2) for each in found)
        rows.append((f"{keys:,}", *cells, f"{model:.2f}"))
    columns = (
        GROUPS,
        f"{PANED} / {WINDOWED}",
        f"{KERNELS} / {WINDOWED}",
        f"{KERNELS} / {BUFFERING}",
        "model",
    )
    return Table(
        f"By number of groups, {width:,} rows per pane, {count} panes per window", columns, tuple(rows)
    )


def _general(emit: Emit, batches: Sequence[Batch]) -> Outcome:
    standing = Standing.of(emit)
    steps = [standing.step(batch) for batch in batches]
    tables: list[pl.DataFrame] = [answers for _, answers in steps]
    return Outcome(sum(seconds for seconds, _ in steps), answered(tables))


def _ratios(of: str, to: str, measured: Measured, options: Options) -> Table:
    rows = []
    for width in options.rows_per_pane:
        found = (_ratio(measured, of, to, width, count) for count in options.panes_per_window)
        rows.append((f"{width:,}", *(ABSENT if each is None else each.text(2) for each in found)))
    columns = (ROWS_PER_PANE, *(f"{count} panes" for count in options.panes_per_window))
    return Table(f"Time of {of} / time of {to}", columns, tuple(rows))


def _modelled(width: int, count: int, groups: int) -> float:
    """(3.1) / (3.3) of the paper, for `count` panes of `width` rows, one pane per slide."""
    work = SlidingWork(Panes(range=width * count, slide=width), rows=width * count, groups=groups)
    return work.paned(differential=False) / work.windowed(differential=False)


def _predicted(options: Options) -> Table:
    rows = []
    for width in options.rows_per_pane:
        groups = min(width, options.keys)
        cells = (f"{_modelled(width, count, groups):.2f}" for count in options.panes_per_window)
        rows.append((f"{width:,}", *cells))
    columns = (ROWS_PER_PANE, *(f"{count} panes" for count in options.panes_per_window))
    return Table("The same by the cost model (3.1) / (3.3), all unit costs 1", columns, tuple(rows))


def _chart(of: str, to: str, measured: Measured, options: Options) -> Chart:
    lines = []
    for count in options.panes_per_window:
        points = []
        for width in options.rows_per_pane:
            found = _ratio(measured, of, to, width, count)
            if found:
                points.append(Point(float(width), found.median, found.least, found.greatest))
        lines.append(Series(f"{count} panes per window", tuple(points)))
    name = f"panes-{of}-{to}".replace(" ", "-")
    return Chart(name, f"{of} / {to}: below 1, panes pay", ROWS_PER_PANE, "ratio of times", tuple(lines))


def shapes(measured: Measured, options: Options) -> list[Target]:
    """Panes gain with the rows of a pane and the panes of a window."""
    wide, many = max(options.rows_per_pane), max(options.panes_per_window)
    where = f"{wide} rows per pane, {many} panes per window"
    return [
        Target(f"{where}: {of}'s time to {to}'s", "≤", 1.0, _ratio(measured, of, to, wide, many))
        for of, to in ((PANED, WINDOWED), (KERNELS, WINDOWED), (KERNELS, BUFFERING))
    ]


def _ratio(measured: Measured, of: str, to: str, width: int, count: int) -> Summary | None:
    return compared(measured, of, to, **{ROWS_PER_PANE: width, PANES_PER_WINDOW: count})
