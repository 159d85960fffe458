"""How many rows a second joins, DISTINCT, NOT EXISTS and GROUP BY take over long continuous windows.

And whether they stay as small as they are: state on disk and memory, while a hundred windows pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.field import WITHOUT_FLINK
from benchmarks.memory import memory_now
from benchmarks.rounds import Case, Measured, measure
from benchmarks.statistics import at_least, ratio, summary
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.times import times_table
from benchmarks.workload import Readings, readings

if TYPE_CHECKING:
    from benchmarks.contestants.windrow_operators import WindrowOperators
    from benchmarks.rounds import Measurement
    from benchmarks.setting import Setting

WINDROW, SPARK, FLINK = "windrow", "spark rocksdb", "pyflink"
_STEADY = "rows per second, steady"
_LEAST_RATE = 50_000
_SEEDS = (1, 2)
_MEBI = 1 << 20
_NOTES = (
    "The first half of the batches fills the windows; the steady rate is that of the second half.",
    "Skewed: one key has half of all rows of the first stream.",
    "Spark and PyFlink have no NOT EXISTS, no DISTINCT that forgets and no GROUP BY over a window that moves"
    " with every row. Their outer joins tell a row without a partner only when none can come any more;"
    " Windrow tells it at once, and takes it back. Compared are the pairs and the rows that never had a"
    " partner. `not exists, in the end` asks of all three which rows never had one, once that is certain:"
    " of the others by an outer join and IS NULL, of Windrow by a window with a LAG.",
    "PyFlink's joins are interval joins; `join of all rows` has no windows, and is its regular join.",
    "The outer join is held against join and NOT EXISTS as well, of which it is made.",
)


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "How many rows of each stream."] = 2_000_000
    keys: Annotated[int, "How many keys."] = 1_000_000
    rows_per_batch: Annotated[int, "Rows of a micro-batch of each stream."] = 200_000
    window_rows: Annotated[int, "How many rows of a stream are in a window."] = 1_000_000
    windows: Annotated[
        int, "How many windows pass while state and memory are watched; 0 to leave it out."
    ] = 100
    small_window_rows: Annotated[int, "The rows of such a window."] = 40_000
    others_rounds: Annotated[int, "In how many rounds other systems take part."] = 3


QUICK = Options(
    rows=40_000, keys=2000, rows_per_batch=10_000, window_rows=10_000, windows=10, small_window_rows=2000
)
#: rows come at this rate
_ROWS_PER_SECOND = 1000


def run(setting: Setting, options: Options) -> Findings:
    """Each operator by itself for speed; then all of them at once for size."""
    from benchmarks.contestants.spark_join import SparkJoin
    from benchmarks.contestants.windrow_operators import (
        ASKED_OF_OTHERS,
        COMMON,
        QUERIES,
        SKEWED,
        WindrowOperators,
    )

    ours, others = WindrowOperators(setting), {SPARK: SparkJoin(setting, "rocksdb")}
    streams = _streams(setting, options.rows, options.keys, options.rows_per_batch)
    seconds = options.window_rows // _ROWS_PER_SECOND
    names = (*QUERIES, *COMMON, *SKEWED)
    with ExitStack() as leaving:
        notes = _join_flink(others, setting, leaving)
        cases = [
            Case(WINDROW, {"operator": name}, partial(ours.answer, [name], streams, seconds))
            for name in names
        ]
        cases += [
            Case(
                who,
                {"operator": name},
                partial(other.join, name, streams, seconds),
                options.others_rounds,
            )
            for name in ASKED_OF_OTHERS
            for who, other in others.items()
        ]
        measured = measure(cases, setting.rounds, setting.say)
        settings = {WINDROW: ours.settings, **{who: other.settings for who, other in others.items()}}
    variants = [{"operator": name} for name in names]
    found = Findings(
        settings,
        measured.measurements,
        [
            times_table("Time by operator", measured, (WINDROW, SPARK, FLINK), variants),
            _rates(measured, options),
        ],
        [],
        _targets(measured),
        [*notes, *_NOTES],
        measured.unfinished,
    )
    if options.windows:
        _watch_size(setting, options, ours, found)
    return found


def _join_flink(others: dict[str, Any], setting: Setting, leaving: ExitStack) -> list[str]:
    """PyFlink takes part if it was asked for; says so if it does not."""
    if FLINK not in setting.extras:
        return [WITHOUT_FLINK]
    from benchmarks.contestants.pyflink import Flink, PyFlinkJoin

    flink = Flink(setting)
    leaving.callback(flink.close)
    others[FLINK] = PyFlinkJoin(flink, setting)
    return []


def _streams(setting: Setting, rows: int, keys: int, rows_per_batch: int) -> list[Readings]:
    return [
        readings(
            setting.data,
            rows=rows,
            keys=keys,
            seconds=rows // _ROWS_PER_SECOND,
            rows_per_file=rows_per_batch,
            seed=seed,
        )
        for seed in _SEEDS
    ]


def _rates(measured: Measured, options: Options) -> Table:
    from benchmarks.contestants.windrow_operators import streams_read

    rows = []
    for each in measured.measurements:
        if each.contestant == WINDROW:
            name, steady = str(each.variant["operator"]), each.figures[_STEADY]
            taken = options.rows * streams_read([name])
            rows.append((name, f"{taken / each.time.median:,.0f}", f"{steady:,.0f}"))
    return Table("Windrow's rows per second", ("operator", "whole run", "steady, best round"), tuple(rows))


def _targets(measured: Measured) -> list[Target]:
    found = [
        Target(
            f"steady rate of {each.variant['operator']} to {_LEAST_RATE:,} rows per second",
            "≥",
            1.0,
            summary([each.figures[_STEADY] / _LEAST_RATE]),
        )
        for each in measured.measurements
        if each.contestant == WINDROW
    ]
    join = measured.find(WINDROW, operator="join")
    outer, alone = (measured.find(WINDROW, operator=name) for name in ("outer join", "not exists"))
    if join and outer and alone:
        both = [one + two for one, two in zip(join.seconds, alone.seconds, strict=True)]
        found.append(
            Target(
                "time of join and NOT EXISTS to that of the outer join", "≥", 1.0, ratio(both, outer.seconds)
            )
        )
    return found + [
        target
        for each in measured.measurements
        for who in (SPARK, FLINK)
        for target in _ahead(measured, each, who)
    ]


def _ahead(measured: Measured, mine: Measurement, who: str) -> Iterator[Target]:
    """Another system's time to that of Windrow, if it was asked."""
    if mine.contestant != WINDROW:
        return
    other, left = measured.find(who, **mine.variant), measured.failure(who, **mine.variant)
    claim = f"time of {who} to Windrow's, {mine.variant['operator']}"
    if other is not None:
        yield Target(claim, "≥", 1.0, ratio(other.seconds, mine.seconds))
    elif left is not None and left.stopped_after is not None:
        yield Target(claim, "≥", 1.0, at_least(left.stopped_after, mine.seconds), is_bound=True)


def _watch_size(setting: Setting, options: Options, ours: WindrowOperators, found: Findings) -> None:
    """All operators at once, over small windows, for as long as many of them."""
    from benchmarks.contestants.windrow_operators import QUERIES

    length, batch = options.small_window_rows, 2 * options.small_window_rows
    streams = _streams(setting, options.windows * length, max(1, length // 4), batch)
    seen: list[tuple[float, float, float]] = []
    setting.say(f"watching state and memory while {options.windows} windows pass")

    def watch(state: int) -> None:
        seen.append((state / _MEBI, *memory_now()))

    ours.watched(list(QUERIES), streams, max(1, length // _ROWS_PER_SECOND), watch)
    quarter = max(1, len(seen) // 4)
    names = ("state on disk", "memory of Java", "memory of Python")
    early, late = seen[quarter : 2 * quarter] or seen, seen[-quarter:]
    rows = []
    for place, name in enumerate(names):
        second, last = (max(each[place] for each in part) for part in (early, late))
        rows.append((name, f"{second:,.1f} MB", f"{last:,.1f} MB"))
    columns = ("size, all operators at once", "most in the second quarter", "most in the last quarter")
    found.tables.append(Table(f"Size while {options.windows} windows pass", columns, tuple(rows)))
    series = tuple(
        Series(name, tuple(_point(number + 1, each[place]) for number, each in enumerate(seen)))
        for place, name in enumerate(names)
    )
    title = f"Size while {options.windows} windows pass"
    found.charts.append(Chart("operators-size", title, "commits", "MB", series))
    growth = summary([max(each[0] for each in late) / max(each[0] for each in early)])
    found.targets.append(Target("state in the last quarter to that in the second", "≤", 1.1, growth))


def _point(x: float, y: float) -> Point:
    return Point(x, y, y, y)


BENCHMARK = Benchmark(
    "operators", "Joins, DISTINCT, NOT EXISTS and GROUP BY over continuous windows.", Options, QUICK, run
)
