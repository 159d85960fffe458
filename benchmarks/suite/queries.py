"""How the time grows with the number of standing queries over one stream, of few groupings and of many."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Annotated, Protocol

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.field import FLINK, WINDROW, WITHOUT_FLINK
from benchmarks.job import GroupedJob
from benchmarks.memory import shown, watched
from benchmarks.rounds import Case, Measured, Measurement, measure
from benchmarks.statistics import ratio
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.times import ABSENT, times_chart, times_table
from benchmarks.workload import Readings, readings
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.chart import Chart
    from benchmarks.contestant import Outcome
    from benchmarks.rounds import Variant
    from benchmarks.setting import Setting

_SLIDES = (20, 30, 60, 100, 120)
_LONGEST = 30
_SEED = 3
#: the first groupings: by key, all rows together, and two coarser ones
_HANDFUL = ("k", "k % 1", "k % 5", "k % 2")
_NOTES = (
    "Queries have the same aggregates (MAX, SUM, COUNT), a SLIDE of 20 to 120 seconds and a RANGE of 1 to 30"
    " times that, at random; they take turns at the groupings, the first of which are"
    f" {', '.join(_HANDFUL)}. Fewer queries are the first of more.",
    "Answers are those of all queries, and all are compared with the others'. A refresh is one window of one"
    " query, answered.",
    "Registering comes before the time that is measured, since a standing query is registered once.",
    "Memory is the most that was held at once. All that run on Spark share one JVM, whose heap grows to what"
    " it is given and stays; PyFlink's JVM, once it is started, is counted with it.",
)


class Many(Protocol):
    """Someone who answers many queries at once."""

    @property
    def name(self) -> str:
        """How tables and plots call it."""

    @property
    def settings(self) -> Mapping[str, str]:
        """How it is set up."""

    def run(self, jobs: Sequence[GroupedJob]) -> Outcome:
        """Answer all of them, over the whole input."""


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "How many rows."] = 2_000_000
    keys: Annotated[int, "How many keys."] = 20
    seconds: Annotated[int, "How much time passes in the rows."] = 4000
    rows_per_batch: Annotated[int, "Rows of a micro-batch."] = 200_000
    queries: Annotated[tuple[int, ...], "How many queries over few groupings."] = (1, 10, 100, 1000)
    groupings: Annotated[int, "How many groupings are few."] = 4
    more_queries: Annotated[tuple[int, ...], "How many queries over many groupings."] = (10, 50, 100, 500)
    more_groupings: Annotated[int, "How many groupings are many."] = 50
    spark_queries: Annotated[tuple[int, ...], "Those that Spark is asked for."] = (1, 10, 100)
    flink_queries: Annotated[tuple[int, ...], "Those that PyFlink is asked for."] = (1, 10, 100)
    slow_from: Annotated[int, "From so many queries on, Spark and PyFlink are slow."] = 100
    slow_rounds: Annotated[int, "Rounds of what is slow."] = 1


QUICK = Options(
    rows=40_000,
    seconds=400,
    rows_per_batch=20_000,
    queries=(1, 5),
    more_queries=(6,),
    more_groupings=6,
    spark_queries=(1,),
    flink_queries=(1, 5),
)


@dataclass
class _Field:
    """Who takes part, for which numbers of queries, and a sentence about who does not."""

    everyone: list[tuple[Many, tuple[int, ...]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        return [each.name for each, _ in self.everyone]


def run(setting: Setting, options: Options) -> Findings:
    """Ever more queries, over few groupings and over many."""
    rows = readings(
        setting.data,
        rows=options.rows,
        keys=options.keys,
        seconds=options.seconds,
        rows_per_file=options.rows_per_batch,
    )
    few = random_jobs(rows, max(options.queries), options.groupings)
    many = random_jobs(rows, max(options.more_queries), options.more_groupings)
    with _gathered(setting, options) as taking_part:
        cases = [
            *_cases(taking_part, few, options.groupings, options.queries, options),
            *_cases(taking_part, many, options.more_groupings, options.more_queries, options),
        ]
        measured = measure(cases, setting.rounds, setting.say)
        settings = {each.name: dict(each.settings) for each, _ in taking_part.everyone}
    refreshes = {
        (groupings, count): sum(job.refreshes for job in jobs[:count])
        for groupings, jobs in ((options.groupings, few), (options.more_groupings, many))
        for count in range(1, len(jobs) + 1)
    }
    names = taking_part.names
    return Findings(
        settings,
        measured.measurements,
        [
            _times(measured, names, options.groupings, options.queries),
            _times(measured, names, options.more_groupings, options.more_queries),
            _answers(measured, refreshes),
        ],
        [
            _chart("queries", measured, names, options.groupings),
            _chart("queries-groupings", measured, names, options.more_groupings),
        ],
        _targets(measured, options),
        [*taking_part.notes, *_slow(setting, options), *_NOTES],
        measured.unfinished,
    )


def _slow(setting: Setting, options: Options) -> list[str]:
    asked = (*options.spark_queries, *options.flink_queries)
    if setting.rounds <= options.slow_rounds or max(asked, default=0) < options.slow_from:
        return []
    return [
        f"With {options.slow_from:,} queries and more, Spark and PyFlink ran in {options.slow_rounds} of"
        f" {setting.rounds} rounds, since they take minutes, and over few groupings only."
    ]


def random_jobs(rows: Readings, count: int, groupings: int) -> list[GroupedJob]:
    """Windows at random, always the same ones: fewer of them are the first of more."""
    random = Random(_SEED)
    jobs = []
    for number in range(count):
        slide = random.choice(_SLIDES)
        length = slide * random.randint(1, _LONGEST)
        jobs.append(GroupedJob(rows, 1, length, slide, grouping(number % groupings)))
    return jobs


def grouping(number: int) -> str:
    """Different integers of the key, which no row can make fail: no two numbers give the same expression.

    >>> [grouping(number) for number in (0, 1, 4, 5, 49)]
    ['k', 'k % 1', '(k % 19) % 2', '(k % 19) % 3', '(k % 17) % 14']
    """
    if number < len(_HANDFUL):
        return _HANDFUL[number]
    coarser = [(first, second) for first in range(19, 2, -1) for second in range(2, first)]
    return "(k % {}) % {}".format(*coarser[number - len(_HANDFUL)])


@contextmanager
def _gathered(setting: Setting, options: Options) -> Iterator[_Field]:
    from benchmarks.contestants.spark_many import SparkMany
    from benchmarks.contestants.windrow_many import WindrowMany

    everything = (*options.queries, *options.more_queries)
    found = _Field([(WindrowMany(setting), everything), (SparkMany(setting), options.spark_queries)])
    if FLINK not in setting.extras:
        found.notes.append(WITHOUT_FLINK)
        yield found
        return
    from benchmarks.contestants.pyflink import Flink, PyFlinkMany

    try:
        flink = Flink(setting)
    except WindrowError as error:
        found.notes.append(f"PyFlink was left out: {error.message}.")
        yield found
        return
    found.everyone.append((PyFlinkMany(flink, setting), options.flink_queries))
    try:
        yield found
    finally:
        flink.close()


def _cases(
    taking_part: _Field, jobs: Sequence[GroupedJob], groupings: int, counts: Sequence[int], options: Options
) -> list[Case]:
    """The others are asked for many queries over few groupings only, where it takes them minutes already."""
    cases = []
    for count in counts:
        for each, asked in taking_part.everyone:
            slow = each.name != WINDROW and count >= options.slow_from
            if count in asked and not (slow and groupings > options.groupings):
                work = partial(watched, partial(each.run, jobs[:count]))
                variant = {"groupings": groupings, "queries": count}
                cases.append(Case(each.name, variant, work, options.slow_rounds if slow else None))
    return cases


def _times(measured: Measured, names: Sequence[str], groupings: int, counts: Sequence[int]) -> Table:
    variants: list[Variant] = [{"groupings": groupings, "queries": count} for count in counts]
    return times_table(f"Time by number of queries, {groupings} groupings", measured, names, variants)


def _chart(name: str, measured: Measured, names: Sequence[str], groupings: int) -> Chart:
    title = f"Time by number of standing queries, {groupings} groupings"
    return times_chart(name, title, measured, names, "queries", groupings=groupings)


def _answers(measured: Measured, refreshes: Mapping[tuple[int, int], int]) -> Table:
    rows = tuple(
        _answered(each, refreshes[int(each.variant["groupings"]), int(each.variant["queries"])])
        for each in measured.measurements
    )
    columns = (
        "contestant",
        "groupings",
        "queries",
        "answers",
        "refreshes",
        "refreshes per second",
        "registering",
        "Python",
        "Java",
    )
    return Table("Answers, refreshes and memory", columns, rows)


def _answered(each: Measurement, refreshes: int) -> tuple[str, ...]:
    registering = each.figures.get("registering seconds")
    return (
        each.contestant,
        f"{each.variant['groupings']:,}",
        f"{each.variant['queries']:,}",
        f"{each.answers or 0:,}",
        f"{refreshes:,}",
        f"{refreshes / each.time.median:,.0f}",
        ABSENT if registering is None else f"{registering:.2f} s",
        *shown(each.figures),
    )


def _targets(measured: Measured, options: Options) -> list[Target]:
    least, most = min(options.queries), max(options.queries)
    one = measured.find("windrow", groupings=options.groupings, queries=least)
    many = measured.find("windrow", groupings=options.groupings, queries=most)
    found = ratio(many.seconds, one.seconds) if one and many and least == 1 < most else None
    return [
        Target(f"time of {most:,} queries of {options.groupings} groupings to that of 1", "≤", 3.0, found)
    ]


BENCHMARK = Benchmark(
    "queries", "Many standing queries over one stream, with random RANGE and SLIDE.", Options, QUICK, run
)
