"""How the time grows with RANGE / SLIDE: the same number of answers each, ever longer windows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product
from math import gcd
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.field import DUCKDB, FLINK, FLINK_SCAN, SCAN, SPARKS, WINDROW, Field, gathered
from benchmarks.job import SlidingJob
from benchmarks.rounds import Case, Measured, measure
from benchmarks.statistics import Summary, ratio
from benchmarks.targets import Target
from benchmarks.times import times_chart, times_table
from benchmarks.workload import readings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.chart import Chart
    from benchmarks.rounds import Measurement
    from benchmarks.setting import Setting
    from benchmarks.table import Table

_SLIDE = 10
_WITHOUT_BATCHES = (FLINK, FLINK_SCAN, DUCKDB)
#: rows per micro-batch; Spark's time to Windrow's at least, by overlap; Windrow's time to the scan's at most
_TO_REACH: tuple[tuple[int, dict[int, float], float], ...] = (
    (200_000, {1: 2.5, 60: 10.0, 360: 80.0}, 1.1),
    (1_000_000, {1: 2.0, 60: 20.0, 360: 150.0}, 1.4),
)


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "How many rows."] = 2_000_000
    keys: Annotated[int, "How many keys."] = 200
    seconds: Annotated[int, "How much time passes in the rows."] = 4000
    rows_per_batch: Annotated[tuple[int, ...], "Rows of a micro-batch."] = (200_000, 1_000_000)
    overlaps: Annotated[tuple[int, ...], "RANGE / SLIDE; SLIDE is 10 seconds."] = (1, 5, 30, 60, 360, 3600)
    spark_overlaps: Annotated[tuple[int, ...], "Those that Spark's window() is asked for."] = (
        1,
        5,
        30,
        60,
        360,
    )
    slow_from: Annotated[int, "From this overlap on, Spark and PyFlink are slow."] = 360
    slow_rounds: Annotated[int, "Rounds of what is slow."] = 1


QUICK = Options(
    rows=40_000,
    keys=20,
    seconds=400,
    rows_per_batch=(20_000,),
    overlaps=(1, 6, 60),
    spark_overlaps=(6,),
    slow_from=6,
)


def run(setting: Setting, options: Options) -> Findings:
    """Everyone who is there, at every overlap, in every size of micro-batches."""
    with gathered(setting) as field:
        cases = _cases(setting, options, field)
        measured = measure(cases, setting.rounds, setting.say)
        settings = field.settings
    slow = dict.fromkeys(case.contestant for case in cases if case.rounds is not None)
    if slow and setting.rounds > options.slow_rounds:
        field.notes.append(
            f"From overlap {options.slow_from} on, there are {options.slow_rounds} of {setting.rounds} rounds"
            f" of {', '.join(slow)}, since they take minutes."
        )
    if FLINK in field.names and len(options.rows_per_batch) > 1:
        field.notes.append("PyFlink has no micro-batches: it ran once for all sizes of them.")
    return Findings(
        settings,
        measured.measurements,
        [_table(measured, field, options, size) for size in options.rows_per_batch],
        [_chart(measured, field, size) for size in options.rows_per_batch],
        targets(measured, options.overlaps),
        field.notes,
        measured.unfinished,
    )


def _cases(setting: Setting, options: Options, field: Field) -> list[Case]:
    rows_per_file = gcd(*options.rows_per_batch)
    rows = readings(
        setting.data,
        rows=options.rows,
        keys=options.keys,
        seconds=options.seconds,
        rows_per_file=rows_per_file,
    )
    cases = []
    for size, overlap in product(options.rows_per_batch, options.overlaps):
        job = SlidingJob(rows, size // rows_per_file, overlap * _SLIDE, _SLIDE)
        for contestant in field.contestants:
            if overlap in _overlaps(contestant.name, options, size):
                slow = contestant.name in (*SPARKS, FLINK) and overlap >= options.slow_from
                cases.append(
                    Case(
                        contestant.name,
                        {"rows per batch": size, "overlap": overlap},
                        partial(contestant.run, job),
                        rounds=options.slow_rounds if slow else None,
                        question=overlap,
                    )
                )
    return cases


def _overlaps(contestant: str, options: Options, size: int) -> tuple[int, ...]:
    """A scan does not depend on the window: it runs once per round, and stands beside the least overlap.
    Whoever has no micro-batches stands beside the first size of them."""
    if contestant in _WITHOUT_BATCHES and size != options.rows_per_batch[0]:
        return ()
    if contestant in (SCAN, FLINK_SCAN):
        return options.overlaps[:1]
    if contestant in SPARKS:
        return tuple(overlap for overlap in options.overlaps if overlap in options.spark_overlaps)
    return options.overlaps


def _table(measured: Measured, field: Field, options: Options, size: int) -> Table:
    variants = [{"rows per batch": size, "overlap": overlap} for overlap in options.overlaps]
    return times_table(f"{size:,} rows per micro-batch", measured, field.names, variants)


def _chart(measured: Measured, field: Field, size: int) -> Chart:
    lines = [name for name in field.names if name not in (SCAN, FLINK_SCAN)]
    return times_chart(
        f"overlap-{size}",
        f"Time by overlap, {size:,} rows per micro-batch",
        measured,
        lines,
        "overlap",
        **{"rows per batch": size},
    )


def targets(measured: Measured, overlaps: Sequence[int]) -> list[Target]:
    """The ratios that are to be reached; those this run did not measure are said to be so."""
    found = []
    for size, ratios, to_scan in _TO_REACH:
        found += [
            Target(
                f"{size:,} rows per batch, overlap {overlap}: Spark's time (the faster store) to Windrow's",
                "≥",
                least,
                _to_spark(measured, size, overlap),
            )
            for overlap, least in ratios.items()
        ]
        claim = f"{size:,} rows per batch: Windrow's time to the scan's, the worst of all overlaps"
        found.append(Target(claim, "≤", to_scan, _to_scan(measured, size, overlaps)))
        claim = f"{size:,} rows per batch: Windrow's time at overlap 3600 to that at 1"
        found.append(Target(claim, "≤", 1.2, _growth(measured, size)))
        claim = f"{size:,} rows per batch: PyFlink's time to Windrow's, the least of all overlaps"
        found.append(Target(claim, "≥", 2.0, _to_flink(measured, size, overlaps)))
    return found


def _to_spark(measured: Measured, size: int, overlap: int) -> Summary | None:
    return min(
        (
            each
            for store in SPARKS
            if (each := _compared(measured, size, (store, overlap), (WINDROW, overlap)))
        ),
        key=_median,
        default=None,
    )


def _to_scan(measured: Measured, size: int, overlaps: Sequence[int]) -> Summary | None:
    all_of_them = (_compared(measured, size, (WINDROW, each), (SCAN, overlaps[0])) for each in overlaps)
    return max((each for each in all_of_them if each), key=_median, default=None)


def _to_flink(measured: Measured, size: int, overlaps: Sequence[int]) -> Summary | None:
    all_of_them = (_compared(measured, size, (FLINK, each), (WINDROW, each)) for each in overlaps)
    return min((each for each in all_of_them if each), key=_median, default=None)


def _growth(measured: Measured, size: int) -> Summary | None:
    return _compared(measured, size, (WINDROW, 3600), (WINDROW, 1))


def _compared(measured: Measured, size: int, of: tuple[str, int], to: tuple[str, int]) -> Summary | None:
    one, other = _found(measured, size, *of), _found(measured, size, *to)
    return ratio(one.seconds, other.seconds) if one and other else None


def _found(measured: Measured, size: int, contestant: str, overlap: int) -> Measurement | None:
    alike = [
        each
        for each in measured.measurements
        if each.contestant == contestant and each.variant["overlap"] == overlap
    ]
    ours = [each for each in alike if each.variant["rows per batch"] == size]
    return next(iter(alike if contestant in _WITHOUT_BATCHES else ours), None)


def _median(found: Summary) -> float:
    return found.median


BENCHMARK = Benchmark(
    "overlap",
    "Sliding aggregates as RANGE grows and SLIDE stays, against Spark and Flink.",
    Options,
    QUICK,
    run,
)
