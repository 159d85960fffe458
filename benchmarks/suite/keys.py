"""How time, state and memory grow with the number of keys, at RANGE / SLIDE = 60."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.field import DUCKDB, FLINK, SCAN, SPARKS, WINDROW, Field, gathered
from benchmarks.job import SlidingJob
from benchmarks.memory import shown, watched
from benchmarks.rounds import Case, Measured, measure
from benchmarks.statistics import at_least, ratio
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.times import ABSENT, times_chart, times_table
from benchmarks.workload import Readings, readings

if TYPE_CHECKING:
    from benchmarks.rounds import Measurement
    from benchmarks.setting import Setting

_SLIDE = 10
#: those that keep state, and are slow where there is much of it
_OTHERS = (*SPARKS, FLINK)
#: its state is in Java's heap; if that is full, Java ends, and everyone's run with it
_IN_HEAP = SPARKS[1]
_HEAP_NOTE = (
    "Spark's HDFS-backed store has all state in Java's heap. It was not asked for more than {most:,} keys: at"
    " 100,000, a heap of 4 GB is full before the end, and Java ends."
)
_MEBI = 2**20
_MEMORY_NOTE = (
    "Memory is the most that was held at once. All that run on Spark share one JVM, whose heap grows to what"
    " it is given and stays: compare the memory of Python, not of Java."
)
_STATE_NOTE = (
    "State is what is on disk at the end, all versions that are kept of it. A (pane, key) is one that the"
    " last window needs."
)


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "How many rows."] = 2_000_000
    keys: Annotated[tuple[int, ...], "How many keys."] = (10, 1000, 100_000, 1_000_000)
    others_keys: Annotated[tuple[int, ...], "Those that other streams are asked for."] = (10, 1000, 100_000)
    heap_keys: Annotated[tuple[int, ...], "Of these, those for a state in Java's heap."] = (10, 1000)
    seconds: Annotated[int, "How much time passes in the rows."] = 4000
    rows_per_batch: Annotated[int, "Rows of a micro-batch."] = 200_000
    overlap: Annotated[int, "RANGE / SLIDE; SLIDE is 10 seconds."] = 60
    slow_from: Annotated[int, "From this many keys on, all of it is slow."] = 100_000
    slow_rounds: Annotated[int, "Rounds of what is slow."] = 1


QUICK = Options(
    rows=40_000,
    keys=(10, 1000),
    others_keys=(10,),
    seconds=400,
    rows_per_batch=20_000,
    overlap=6,
    slow_from=1000,
)


def run(setting: Setting, options: Options) -> Findings:
    """Windrow at every number of keys, the others as far as they are asked."""
    inputs = {
        keys: readings(
            setting.data,
            rows=options.rows,
            keys=keys,
            seconds=options.seconds,
            rows_per_file=options.rows_per_batch,
        )
        for keys in options.keys
    }
    with gathered(setting, (WINDROW, *SPARKS, FLINK, DUCKDB, SCAN)) as field:
        measured = measure(_cases(options, field, inputs), setting.rounds, setting.say)
        settings = field.settings
    notes = [*field.notes, _STATE_NOTE, _MEMORY_NOTE]
    if set(options.others_keys) - set(options.heap_keys):
        notes.append(_HEAP_NOTE.format(most=max(options.heap_keys)))
    if setting.rounds > options.slow_rounds and max(options.keys) >= options.slow_from:
        notes.append(
            f"From {options.slow_from:,} keys on, {options.slow_rounds} of {setting.rounds} rounds were run."
        )
    variants = [{"keys": keys} for keys in options.keys]
    return Findings(
        settings,
        measured.measurements,
        [
            times_table(
                f"Time by number of keys, overlap {options.overlap}", measured, field.names, variants
            ),
            _held(measured, options, inputs),
        ],
        [times_chart("keys", "Time by number of keys", measured, field.names, "keys")],
        [
            _ahead(measured, other, keys)
            for keys in options.keys
            for other in _OTHERS
            if keys in _asked(options, other)
        ],
        notes,
        measured.unfinished,
    )


def _cases(options: Options, field: Field, inputs: dict[int, Readings]) -> list[Case]:
    cases = []
    for keys, rows in inputs.items():
        job = SlidingJob(rows, 1, options.overlap * _SLIDE, _SLIDE)
        for contestant in field.contestants:
            if contestant.name not in _OTHERS or keys in _asked(options, contestant.name):
                rounds = options.slow_rounds if keys >= options.slow_from else None
                work = partial(watched, partial(contestant.run, job))
                cases.append(Case(contestant.name, {"keys": keys}, work, rounds))
    return cases


def _asked(options: Options, other: str) -> tuple[int, ...]:
    in_heap = set(options.heap_keys)
    return tuple(keys for keys in options.others_keys if other != _IN_HEAP or keys in in_heap)


def _held(measured: Measured, options: Options, inputs: dict[int, Readings]) -> Table:
    rows = [
        _held_row(each, live_pairs(inputs[int(each.variant["keys"])], options.overlap * _SLIDE, _SLIDE))
        for each in measured.measurements
    ]
    columns = ("contestant", "keys", "state", "(pane, key)", "bytes per (pane, key)", "Python", "Java")
    return Table("State and memory", columns, tuple(rows))


def _held_row(each: Measurement, pairs: int) -> tuple[str, ...]:
    state = each.figures.get("state bytes")
    return (
        each.contestant,
        f"{each.variant['keys']:,}",
        ABSENT if state is None else f"{state / _MEBI:.1f} MB",
        f"{pairs:,}",
        ABSENT if state is None else f"{state / pairs:.0f}",
        *shown(each.figures),
    )


def live_pairs(rows: Readings, range_seconds: int, slide_seconds: int) -> int:
    """How many pairs of a pane and a key with rows in it the last window needs."""
    import polars as pl

    pane = pl.col("ts").dt.epoch("us") // (slide_seconds * 1_000_000)
    since = rows.end - range_seconds * 1_000_000
    scanned = pl.scan_parquet(rows.folder / "*.parquet").filter(pl.col("ts").dt.epoch("us") >= since)
    return int(scanned.select(pane.alias("pane"), "k").unique().select(pl.len()).collect().item())


def _ahead(measured: Measured, other: str, keys: int) -> Target:
    claim = f"{keys:,} keys: {other}'s time to Windrow's"
    one, mine = measured.find(other, keys=keys), measured.find(WINDROW, keys=keys)
    stopped = measured.failure(other, keys=keys)
    if mine and stopped and stopped.stopped_after:
        return Target(claim, "≥", 1.0, at_least(stopped.stopped_after, mine.seconds), is_bound=True)
    return Target(claim, "≥", 1.0, ratio(one.seconds, mine.seconds) if one and mine else None)


BENCHMARK = Benchmark("keys", "Sliding aggregates as the number of keys grows.", Options, QUICK, run)
