"""Order and disorder: what window ids save, and how slack trades latency for error (WID, section 8).

Experiment 1 has rows in order: MAX over 4000 rows, by panes and from a buffer, as SLIDE grows. Experiments
2 and 3 have none: AVG over 64 seconds where rows come a few seconds late, COUNT over ten minutes where
blocks of 490 seconds come sorted by another attribute. A stream with SLACK has late rows dropped
(consistent slack) or counted in what is not yet final (generous slack); or its source says itself how far
it is (punctuation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.benchmark import Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Case, Measured, Measurement, measure
from benchmarks.statistics import summary
from benchmarks.studies.arrivals import (
    Arrivals,
    Extent,
    Told,
    block_sorted,
    delayed,
    on_kernels,
    stalling,
    told,
    truth,
)
from benchmarks.studies.costs import STATE_ROWS, compared, state_table
from benchmarks.studies.extents import Buffered, Paned, batches_of, greatest_by_key, readings, scanned
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.times import times_chart, times_table
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from benchmarks.rounds import Variant
    from benchmarks.setting import Setting
    from benchmarks.suite.disorder import Options
    from windrow.algebra.plan import Emit
    from windrow.testing.harness import Executor

PANED, BUFFERING, SCAN = "panes", "buffering", "scan"
PUNCTUATION, CONSISTENT, GENEROUS = "punctuation", "consistent slack", "generous slack"
LATENCY, ERROR = "latency", "error"
_ABOUT = {
    PANED: "the kernels for sliding aggregates",
    BUFFERING: "polars: the rows of the window are kept, and grouped for every extent",
    SCAN: "polars: the sum of a column, batch by batch",
    PUNCTUATION: "after each micro-batch the source promises the least `ts` that is still to come",
    CONSISTENT: "SLACK d LATE DROP",
    GENEROUS: "SLACK d LATE KEEP",
}


_BLOCK = 490_000


@dataclass(frozen=True)
class Trial:
    """One data set with the question that is asked about it."""

    name: str
    about: str
    make: Callable[[], Arrivals]
    extent: Extent
    size: int
    #: in milliseconds
    slacks: tuple[int, ...]
    modes: Mapping[str, str]
    metric: Callable[[Told, Mapping[tuple[int, int], float], int], float]
    error: str


def trials(options: Options) -> list[Trial]:
    """Experiment 2 on two kinds of bounded disorder, and experiment 3."""
    both = {CONSISTENT: "LATE DROP", GENEROUS: "LATE KEEP"}
    average, count = Extent("AVG(speed)", 64_000, 6400), Extent("COUNT(*)", 600_000, 60_000)
    seconds, small = options.seconds, options.small_batch
    mean = "mean error in %"
    stalls = partial(stalling, seconds, 100, 20_000, 3200)
    delays = partial(delayed, seconds, 100, 3200)
    blocks = partial(block_sorted, options.blocks, 10, _BLOCK)
    in_seconds = tuple(slack * 1000 for slack in options.block_slacks)
    only = {CONSISTENT: "LATE DROP"}
    return [
        Trial(
            "2 stalls",
            "one of 20 segments stalls for up to 3.2 s, every 20 s",
            stalls,
            average,
            small,
            options.slacks,
            both,
            Told.error,
            mean,
        ),
        Trial(
            "2 delays",
            "every row is delayed by up to 3.2 s",
            delays,
            average,
            small,
            options.slacks,
            both,
            Told.error,
            mean,
        ),
        Trial(
            "3 blocks",
            "blocks of 490 s sorted by segment",
            blocks,
            count,
            options.block_batch,
            in_seconds,
            only,
            Told.incorrect,
            "incorrect answers in %",
        ),
    ]


def run(setting: Setting, options: Options) -> Findings:
    """The first experiment in rounds; the others once, since nothing of the machine is in them."""
    first, tables, charts, targets = _in_order(setting, options)
    found = list(first.measurements)
    settings = {name: {"what": about} for name, about in _ABOUT.items()}
    settings["1"] = {
        "window": f"RANGE {options.range_rows} rows",
        "micro-batch": f"{options.rows_per_batch} rows",
    }
    for trial in trials(options):
        setting.say(f"experiment {trial.name}: {trial.about}")
        measured = tried(trial)
        found += measured.measurements
        tables.append(trade_table(trial, measured))
        charts.append(_trade_chart(trial, measured))
        targets.append(dominance(trial, measured))
        settings[trial.name] = {
            "rows": trial.about,
            "window": f"{trial.extent.aggregate} over RANGE {trial.extent.range / 1000:g} s"
            f" SLIDE {trial.extent.slide / 1000:g} s, by segment",
            "micro-batch": f"{trial.size} rows",
        }
    return Findings(settings, found, tables, charts, targets, _NOTES)


_NOTES = [
    "Latency is time of the stream from the end of an extent to its answer; it can be below zero where an"
    " answer is given before its rows have come, which only a wrong answer can be.",
    "Experiments 2 and 3 ran once: arrivals are made up, and the machine has no part in the result.",
]


def _in_order(setting: Setting, options: Options) -> tuple[Measured, list[Table], list[Chart], list[Target]]:
    batches = batches_of(readings(options.rows, options.keys), options.rows_per_batch)
    cases = []
    for slide in options.slides:
        emit = greatest_by_key(f"RANGE {options.range_rows} SLIDE {slide}")
        buffered = Buffered(options.range_rows, slide)
        variant = {"slide": slide}
        cases += [
            Case(PANED, variant, partial(Paned(emit).run, batches)),
            Case(BUFFERING, variant, partial(buffered.run, batches)),
        ]
    cases.append(Case(SCAN, {"slide": options.slides[0]}, partial(scanned, batches)))
    measured = measure(cases, setting.rounds, setting.say)
    who = (PANED, BUFFERING, SCAN)
    title = f"Experiment 1: processor time of MAX over {options.range_rows:,} rows as SLIDE grows"
    table = times_table(title, measured, who, [{"slide": slide} for slide in options.slides])
    chart = times_chart("disorder-1", title, measured, (PANED, BUFFERING), "slide")
    claims = [
        Target(
            f"Experiment 1, SLIDE {slide:,}: buffering's time to panes'",
            "≥",
            1.0,
            compared(measured, BUFFERING, PANED, slide=slide),
        )
        for slide in options.slides
    ]
    kept = state_table(
        f"Experiment 1, memory: what is kept for MAX over {options.range_rows:,} rows",
        measured,
        (PANED, BUFFERING),
        [{"slide": slide} for slide in options.slides],
        STATE_ROWS,
    )
    return measured, [table, kept], [chart], claims


def tried(trial: Trial, executor: Callable[[Emit], Executor] = on_kernels) -> Measured:
    """Latency and error of punctuation and of every slack. Punctuation has to be right."""
    arrivals = trial.make()
    right = truth(arrivals, trial.extent)
    ask = partial(told, arrivals, trial.extent, trial.size, executor=executor)
    runs = {(PUNCTUATION, 0): ask("")}
    for mode, late in trial.modes.items():
        for slack in trial.slacks:
            runs[mode, slack] = ask(f"SLACK {slack} {late}")
    until = min(max(run.moments, default=0) for run in runs.values())
    if runs[PUNCTUATION, 0].incorrect(right, until):
        raise WindrowError(
            f"experiment {trial.name}: answers by punctuation are not right",
            code="answers-differ",
            hint="latency and error are compared only where punctuation answers what all rows say",
        )
    found = []
    for (who, slack), run in runs.items():
        figures = {LATENCY: run.latency(until), ERROR: trial.metric(run, right, until)}
        variant: Variant = {"experiment": trial.name, "slack": slack}
        found.append(Measurement(who, variant, answers=len(run.values), figures=figures))
    return Measured(found)


def dominance(trial: Trial, measured: Measured) -> Target:
    """Among those who make no error, nobody is earlier than punctuation."""
    best, *others = measured.measurements
    exact = [each.figures[LATENCY] for each in others if each.figures[ERROR] == 0]
    found = summary([min(exact) / best.figures[LATENCY]]) if exact else None
    claim = f"Experiment {trial.name}: the least latency of a slack without error to that of punctuation"
    return Target(claim, "≥", 1.0, found)


def trade_table(trial: Trial, measured: Measured) -> Table:
    """Latency and error of each way to know that an extent is complete."""
    best = measured.measurements[0].figures
    rows = []
    for each in measured.measurements:
        latency, error = each.figures[LATENCY], each.figures[ERROR]
        is_behind = latency >= best[LATENCY] and error >= best[ERROR]
        slack = "–" if each.contestant == PUNCTUATION else f"{each.variant['slack']:,}"
        verdict = "–" if each.contestant == PUNCTUATION else ("yes" if is_behind else "no")
        rows.append((each.contestant, slack, f"{latency:.2f}", f"{error:.3f}", verdict))
    columns = (
        "progress by",
        "slack in ms",
        "mean latency in s",
        trial.error,
        "punctuation is as good in both",
    )
    return Table(f"Experiment {trial.name}", columns, tuple(rows))


def _trade_chart(trial: Trial, measured: Measured) -> Chart:
    lines = []
    for who in (PUNCTUATION, *trial.modes):
        points = [
            Point(each.figures[LATENCY], *(3 * (each.figures[ERROR],)))
            for each in measured.measurements
            if each.contestant == who
        ]
        lines.append(Series(who, tuple(points)))
    name = f"disorder-{trial.name.replace(' ', '-')}"
    title = f"Experiment {trial.name}: what is 0 or less is at the edge"
    return Chart(name, title, "mean latency in seconds", trial.error, tuple(lines))
