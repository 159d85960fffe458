"""How the time grows with the number of standing queries over one stream that group alike."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated

from windrow.bench.benchmark import Benchmark, Findings
from windrow.bench.field import SPARKS, WINDROW
from windrow.bench.job import SlidingJob
from windrow.bench.rounds import Case, Measured, measure
from windrow.bench.statistics import ratio
from windrow.bench.table import Table
from windrow.bench.targets import Target
from windrow.bench.times import times_chart, times_table
from windrow.bench.workload import Readings, readings

if TYPE_CHECKING:
    from windrow.bench.setting import Setting

_SPARK = SPARKS[0]
_SLIDES = (5, 10, 20, 30, 60)
_LONGEST = 30
_SEED = 3
_SPARK_NOTE = (
    "Spark runs the first of the queries only, for scale: each further one would be a query of its own,"
    " that reads the stream again."
)


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "How many rows."] = 2_000_000
    keys: Annotated[int, "How many keys."] = 200
    seconds: Annotated[int, "How much time passes in the rows."] = 4000
    rows_per_batch: Annotated[int, "Rows of a micro-batch."] = 200_000
    queries: Annotated[tuple[int, ...], "How many queries."] = (1, 10, 100)


QUICK = Options(rows=40_000, keys=20, seconds=400, rows_per_batch=20_000, queries=(1, 5))


def run(setting: Setting, options: Options) -> Findings:
    """Windrow with ever more queries; the first is always the same, and is checked against Spark."""
    from windrow.bench.contestants.spark_window import SparkWindow
    from windrow.bench.contestants.windrow_many import WindrowMany

    rows = readings(
        setting.data,
        rows=options.rows,
        keys=options.keys,
        seconds=options.seconds,
        rows_per_file=options.rows_per_batch,
    )
    jobs = random_jobs(rows, max(options.queries))
    ours, spark = WindrowMany(setting), SparkWindow(setting, "rocksdb")
    cases = [
        Case(WINDROW, {"queries": count}, partial(ours.run, jobs[:count]), question="first")
        for count in options.queries
    ]
    cases.append(Case(_SPARK, {"queries": 1}, partial(spark.run, jobs[0]), question="first"))
    measured = measure(cases, setting.rounds, setting.say)
    names, variants = (WINDROW, _SPARK), [{"queries": count} for count in options.queries]
    return Findings(
        {ours.name: ours.settings, spark.name: spark.settings},
        measured.measurements,
        [times_table("Time by number of queries", measured, names, variants), _answers(measured)],
        [times_chart("queries", "Time by number of standing queries", measured, names, "queries")],
        _targets(measured, options),
        [_SPARK_NOTE, "The answers counted beside the times are those of the first query."],
    )


def random_jobs(rows: Readings, count: int) -> list[SlidingJob]:
    """Windows at random, always the same ones: fewer of them are the first of more."""
    random = Random(_SEED)
    jobs = []
    for _ in range(count):
        slide = random.choice(_SLIDES)
        jobs.append(SlidingJob(rows, 1, slide * random.randint(1, _LONGEST), slide))
    return jobs


def _answers(measured: Measured) -> Table:
    ours = [each for each in measured.measurements if each.contestant == WINDROW]
    rows = tuple(
        (
            f"{each.variant['queries']:,}",
            f"{each.figures['answers of all']:,.0f}",
            f"{each.figures['answers of all'] / each.time.median:,.0f}",
            f"{each.figures['registering seconds']:.2f} s",
        )
        for each in ours
    )
    return Table("Windrow's answers", ("queries", "answers", "answers per second", "registering"), rows)


def _targets(measured: Measured, options: Options) -> list[Target]:
    least, most = min(options.queries), max(options.queries)
    one, many = measured.find(WINDROW, queries=least), measured.find(WINDROW, queries=most)
    found = ratio(many.seconds, one.seconds) if one and many and least == 1 < most else None
    return [Target(f"time of {most} queries of one grouping to that of 1", "≤", 3.0, found)]


BENCHMARK = Benchmark(
    "queries", "Many standing queries over one stream, with random RANGE and SLIDE.", Options, QUICK, run
)
