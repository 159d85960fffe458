"""How long from a row to the answer it completes, at fixed rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.live import LiveContestant, LiveJob, run_live
from benchmarks.rounds import Case, Measured, measure
from benchmarks.statistics import percentile
from benchmarks.table import Table
from benchmarks.times import ABSENT
from benchmarks.workload import readings

if TYPE_CHECKING:
    from benchmarks.rounds import Measurement
    from benchmarks.setting import Setting

_RATE = "rows per second"
_FILES_PER_SECOND = 10
#: until the engine has started and taken the first file
_SETTLE_SECONDS = 3.0
_NOTES = [
    "Latency is the time from the file with the first row at or after a window's end being in place, to the"
    " window's answers being handed to a function.",
    "Windows that end in the first seconds are left out; answers that a micro-batch gives together are not"
    " independent samples.",
]


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rates: Annotated[tuple[int, ...], "Rows per second."] = (10_000, 50_000, 100_000)
    keys: Annotated[int, "How many keys."] = 200
    seconds: Annotated[int, "How long rows come."] = 40
    left_out: Annotated[int, "Seconds at the beginning that do not count."] = 10
    range_ms: Annotated[int, "RANGE in milliseconds."] = 5000
    slide_ms: Annotated[int, "SLIDE in milliseconds."] = 500
    trigger: Annotated[str, "How often both take new rows."] = "0 seconds"


QUICK = Options(rates=(1000,), keys=10, seconds=8, left_out=2, range_ms=2000)


def run(setting: Setting, options: Options) -> Findings:
    """Both at every rate."""
    from benchmarks.contestants.spark_live import SparkLive
    from benchmarks.contestants.windrow_live import WindrowLive

    contestants: list[LiveContestant] = [WindrowLive(setting), SparkLive(setting)]
    cases = [
        Case(
            contestant.name,
            {_RATE: rate},
            partial(run_live, setting, contestant, _job(setting, options, rate), _SETTLE_SECONDS),
        )
        for rate in options.rates
        for contestant in contestants
    ]
    measured = measure(cases, setting.rounds, setting.say)
    names = [each.name for each in contestants]
    return Findings(
        {each.name: {**each.settings, "trigger": options.trigger} for each in contestants},
        measured.measurements,
        [_table(measured, options)],
        [_chart(measured, names)],
        notes=_NOTES,
    )


def _job(setting: Setting, options: Options, rate: int) -> LiveJob:
    rows = readings(
        setting.data,
        rows=rate * options.seconds,
        keys=options.keys,
        seconds=options.seconds,
        rows_per_file=rate // _FILES_PER_SECOND,
    )
    return LiveJob(rows, options.range_ms, options.slide_ms, options.trigger, options.left_out)


def _table(measured: Measured, options: Options) -> Table:
    columns = (_RATE, "contestant", "p50", "p99", "most", "samples", "unanswered")
    rows = [_row(each) for each in measured.measurements]
    title = f"Latency, RANGE {options.range_ms} ms, SLIDE {options.slide_ms} ms, trigger {options.trigger}"
    return Table(title, columns, tuple(rows))


def _row(each: Measurement) -> tuple[str, ...]:
    figures = [percentile(each.samples, percent) if each.samples else None for percent in (50, 99, 100)]
    return (
        f"{each.variant[_RATE]:,}",
        each.contestant,
        *(ABSENT if figure is None else f"{figure * 1000:,.0f} ms" for figure in figures),
        f"{len(each.samples)}",
        f"{each.figures['unanswered']:.0f}",
    )


def _chart(measured: Measured, names: list[str]) -> Chart:
    series = tuple(
        _series(name, [each for each in measured.measurements if each.contestant == name]) for name in names
    )
    return Chart("latency", "Latency: median, and from there to p99", _RATE, "milliseconds", series)


def _series(name: str, mine: list[Measurement]) -> Series:
    points = []
    for each in mine:
        if each.samples:
            middle, high = (1000 * percentile(each.samples, percent) for percent in (50, 99))
            points.append(Point(float(each.variant[_RATE]), middle, middle, high))
    return Series(name, tuple(points))


BENCHMARK = Benchmark(
    "latency", "From a row to the answer it completes, at fixed rates, against Spark.", Options, QUICK, run
)
