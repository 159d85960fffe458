"""The papers' queries on the engine: whole epochs on Spark, beside the kernels by themselves.

Studies run kernels, so that what an algorithm costs is not hidden by Spark, files and commits. Here the same
queries are standing queries of an engine: a file of each stream per epoch, rows read by Spark, state and
answers committed to disk. Time is that of the clock, from the beginning of the first epoch after the windows
are full to the end of the last; that of kernels is of the same rows. Both have to give as many answers at
every instant. Where windows are dropped, every answer has to be one of those without. With `--with engine`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks.benchmark import Findings
from benchmarks.contestant import Outcome
from benchmarks.rounds import Case, Measured, measure
from benchmarks.statistics import Summary, ratio
from benchmarks.studies import connections, disorder, join_streams, patterns, windows
from benchmarks.studies.extents import Paned, batches_of, greatest_by_key, readings
from benchmarks.studies.joins import orders_tried
from benchmarks.studies.steps import Batch, Standing
from benchmarks.table import Table
from benchmarks.times import ABSENT
from windrow.engine.explain import declared
from windrow.errors import WindrowError
from windrow.language.compile import compile_query
from windrow.optimizer.optimizer import normalise

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.rounds import Measurement, Variant
    from benchmarks.setting import Setting
    from windrow.engine.statistics import EpochTimes

#: what asks for it
ENGINE = "engine"
KERNELS = "kernels"
_EPOCHS, _TIMED = 8, 4
_KEYED = "k BIGINT, v BIGINT, ts BIGINT"
_SHARES, _SEED = (0.0, 0.4, 0.8), 5
_SHED, _STATE = "rows dropped", "state"
#: with more groups there are more answers than rows
_MOST_KEYS = 1000
#: batches of the experiments with disorder, to those on kernels
_LARGER = 20
_PER_1000 = "milliseconds by the clock per 1000 rows"
_ABOUT = {
    ENGINE: "by the clock, from the beginning of an epoch to the end of the last, all answers on disk",
    KERNELS: "by the clock, the same rows in the same batches, in one process",
}


@dataclass(frozen=True)
class Asked:
    """Queries, and the rows that come, an epoch after the other. The last `timed` epochs are timed.

    `share` of the windows is to be dropped, if that is allowed; `exact` are then the answers without.
    """

    variant: Variant
    texts: tuple[str, ...]
    columns: str
    batches: Sequence[Batch]
    timed: int
    share: float | None = None
    exact: dict[int, pl.DataFrame] = field(default_factory=dict)
    #: what else runs it, if it is not the kernels for any plan
    kernels: Callable[[], Outcome] | None = None

    @property
    def streams(self) -> list[str]:
        """The streams that it reads."""
        read = " ".join(self.texts)
        return [name for name in self.batches[0].rows if f"{name} [" in read]

    @property
    def rows(self) -> int:
        """Of the epochs that are timed, in the streams that it reads."""
        late = self.batches[-self.timed :]
        return sum(batch.rows[name].height for batch in late for name in self.streams)

    @property
    def sure(self) -> int:
        """Answers below this instant are complete: the last row of the stream that ends first is here."""
        ends = {name: [0] for name in self.streams}
        for batch, name in product(self.batches, self.streams):
            ends[name] += batch.rows[name]["ts"].to_list()[-1:]
        return min(found[-1] for found in ends.values())


# ---------------------------------------------------------------- what is asked


def _patterns(options: Any) -> Iterator[Asked]:
    """Epochs as long as the window in the middle; joins with many results have no longer one."""
    *shorter, longest = sorted(options.windows)
    step = shorter[-1] if shorter else longest // 2
    few = {"1 join telnet", "4 negation and join"}
    for window in (step, longest):
        filling = -(-window // step)
        log = connections.links(patterns.LINKS, (filling + _TIMED) * step)
        batches = log.batches(0, step, filling + _TIMED)
        for name, text in patterns.QUERIES.items():
            if window == step or name not in few:
                variant = {"query": name, "window": window}
                yield Asked(variant, (text.format(w=window),), connections.COLUMNS, batches, _TIMED)


def _windows(options: Any) -> Iterator[Asked]:
    """Epochs of twenty waves; the middle of what is varied."""
    extent, rows = sorted(options.extents)[1], sorted(options.sizes)[1]
    step = 2 * extent
    log = connections.links(windows.LINKS, step * (1 + _TIMED), options.rate)
    batches = log.batches(0, step, 1 + _TIMED)
    shapes = (
        f"RANGE {extent} SLIDE 1",
        f"RANGE {extent} SLIDE {extent}",
        f"ROWS {rows}",
        "LANDMARK",
    )
    for shape, (name, text) in product(shapes, windows.QUERIES.items()):
        variant = {"window": shape, "operator": name}
        yield Asked(variant, (text.format(w=shape),), connections.COLUMNS, batches, _TIMED)


def _panes(options: Any) -> Iterator[Asked]:
    """Ten times as many rows as kernels have; by panes per window, and by groups."""
    width, many = sorted(options.rows_per_pane)[-2], max(options.panes_per_window)
    shapes = [(options.keys, count) for count in options.panes_per_window]
    shapes += [(keys, sorted(options.panes_per_window)[-2]) for keys in options.groups if keys <= _MOST_KEYS]
    for keys, count in dict.fromkeys(shapes):
        batches = batches_of(readings(10 * options.rows, keys), 10 * options.rows_per_batch)
        variant = {"groups": keys, "rows per pane": width, "panes per window": count}
        yield _greatest(variant, width * count, width, batches)
    wide = {"groups": options.keys, "rows per pane": 10 * width, "panes per window": many}
    yield _greatest(wide, 10 * width * many, 10 * width, batches)


def _disorder(options: Any) -> Iterator[Asked]:
    """Experiment 1 with ten times as many rows in a batch; SLIDE 1, with an answer per row, is left out."""
    batches = batches_of(readings(10 * options.rows, options.keys), 10 * options.rows_per_batch)
    for slide in sorted(options.slides)[1:]:
        yield _greatest({"slide": slide}, options.range_rows, slide, batches)


def _greatest(variant: Variant, length: int, slide: int, batches: Sequence[Batch]) -> Asked:
    window = f"RANGE {length} SLIDE {slide}"
    text = f"SELECT RSTREAM(k, MAX(v) AS m) FROM s [{window}] GROUP BY k"
    kernels = partial(Paned(greatest_by_key(window)).run, batches)
    return Asked(variant, (text,), _KEYED, batches, len(batches), kernels=kernels)


def _joins(options: Any) -> Iterator[Asked]:
    """Eager, lazy and restoring; and the best and the worst order, of which the engine makes one plan."""
    four = join_streams.streams(options.scale)
    best, *_, worst = orders_tried(four).values()
    length = int(four[0].length)
    step = max(1, length // _TIMED)
    batches = join_streams.rows(four, 2 * length).batches(0, step, _EPOCHS)
    asked = {"eager": join_streams.join(best), "eager, worst order": join_streams.join(worst)}
    for slide in options.intervals:
        asked[f"lazy, SLIDE {slide}"] = join_streams.join(best, slide=slide)
    restoring = join_streams.join(best, slide=max(options.intervals), word="ISTREAM_RESTORE")
    asked[f"lazy, restoring, SLIDE {max(options.intervals)}"] = restoring
    for name, text in asked.items():
        yield Asked({"join of four windows": name}, (text,), join_streams.COLUMNS, batches, _TIMED)


def _shedding(options: Any) -> Iterator[Asked]:
    """Windows that rows are dropped for, in plans of every kind; ten cycles of them in an epoch, or so."""
    gap, size = options.max_gap, options.overhead_rows // _EPOCHS
    unit = max(20, size // (10 * (gap + 1)) // 20 * 20)
    tumbling = f"[RANGE {unit} SLIDE {unit}]"
    overlapping = f"[RANGE {10 * unit} SLIDE {unit}]"
    median = f"SELECT k, MEDIAN(v) AS m FROM s {tumbling} GROUP BY k"
    total = f"SELECT k, SUM(v) AS m FROM s {tumbling} GROUP BY k"
    inner = f"[RANGE {unit // 10} SLIDE {unit // 10}]"
    below = f"(SELECT k, MEDIAN(v) AS m FROM s {inner} GROUP BY k)"
    nested = f"SELECT k, SUM(m) AS m FROM {below} {tumbling} GROUP BY k"
    longer = f"(SELECT k, MEDIAN(v) AS m FROM s [RANGE {10 * unit} SLIDE {unit // 2}] GROUP BY k)"
    middle = f"SELECT k, SUM(m) AS m FROM {longer} [RANGE {4 * unit} SLIDE {2 * unit}] GROUP BY k MAX GAP 4"
    every = f"SELECT k, MEDIAN(v) AS m FROM s [RANGE {2 * unit} SLIDE {2 * unit}] GROUP BY k"
    plans: dict[str, tuple[str, ...]] = {
        "SUM, tumbling": (f"{total} MAX GAP {gap}",),
        "MEDIAN, tumbling": (f"{median} MAX GAP {gap}",),
        f"MEDIAN, slide 10 of 100, MAX GAP {gap}": (
            f"SELECT k, MEDIAN(v) AS m FROM s {overlapping} GROUP BY k MAX GAP {gap}",
        ),
        f"MEDIAN, slide 10 of 100, MAX GAP {2 * gap}": (
            f"SELECT k, MEDIAN(v) AS m FROM s {overlapping} GROUP BY k MAX GAP {2 * gap}",
        ),
        "nested, at the input": (f"{nested} MAX GAP {gap}",),
        "nested, in the middle": (middle,),
        "shared, before the split": (f"{median} MAX GAP {gap}", f"{every} MAX GAP {gap}"),
        "shared, after the split": (f"{median} MAX GAP {gap}", every),
    }
    batches = batches_of(readings(options.overhead_rows, 10), size)
    for name, texts in plans.items():
        exact: dict[int, pl.DataFrame] = {}
        for share in _SHARES:
            variant = {"plan": name, "p": str(share)}
            yield Asked(variant, texts, _KEYED, batches, len(batches) - 2, share, exact)


#: by benchmark, what it asks on the engine
STUDIES: Mapping[str, Callable[[Any], Iterator[Asked]]] = {
    "patterns": _patterns,
    "disorder": _disorder,
    "panes": _panes,
    "joins": _joins,
    "windows": _windows,
    "shedding": _shedding,
}


# ---------------------------------------------------------------- how it runs


def on_engine(benchmark: str, setting: Setting, options: Any) -> Findings:
    """What the queries of a study take on the engine."""
    asked = list(STUDIES[benchmark](options))
    cases = []
    for each in asked:
        cases.append(Case(ENGINE, each.variant, partial(_on_spark, setting, each)))
        if each.share is None:
            cases.append(Case(KERNELS, each.variant, partial(_on_kernels, each)))
    measured = measure(cases, setting.rounds, setting.say)
    shed = benchmark == "shedding"
    tables = [_saved(measured, asked) if shed else _times(measured, asked)]
    found, notes = list(measured.measurements), []
    if benchmark == "disorder":
        trials = [_tried(setting, trial) for trial in disorder.trials(options)[::2]]
        tables += [table for table, _ in trials]
        found += [each for _, some in trials for each in some]
        notes.append("Experiments 2 and 3: the engine gave the same answers in the same batches as kernels.")
    about = {name: {"what": what} for name, what in _ABOUT.items() if name == ENGINE or not shed}
    return Findings(about, found, tables, [], notes=notes)


def _times(measured: Measured, asked: Sequence[Asked]) -> Table:
    rows = []
    for each in asked:
        found = [measured.find(who, **each.variant) for who in (ENGINE, KERNELS)]
        answers = found[0].answers if found[0] else None
        cells = [_milliseconds(one) for one in found]
        counted = ABSENT if answers is None else f"{answers:,}"
        values = (f"{value:,}" if isinstance(value, int) else value for value in each.variant.values())
        kept = f"{found[0].figures[_STATE] / 1024:,.0f} KiB" if found[0] else ABSENT
        rows.append((*values, f"{each.rows // each.timed:,}", counted, kept, *cells))
    columns = (*asked[0].variant, "rows per batch", "answers", _STATE, ENGINE, KERNELS)
    return Table(f"On the engine: {_PER_1000}", columns, tuple(rows))


def _saved(measured: Measured, asked: Sequence[Asked]) -> Table:
    rows = []
    for each in asked:
        found = measured.find(ENGINE, **each.variant)
        whole = measured.find(ENGINE, **{**each.variant, "p": "0.0"})
        if found is None or whole is None:
            continue
        lost = f"{100 * (1 - (found.answers or 0) / (whole.answers or 1)):.0f} %"
        dropped = f"{100 * found.figures[_SHED]:.0f} %"
        share = ratio(found.seconds, whole.seconds).text(2)
        rows.append((*map(str, each.variant.values()), lost, dropped, _milliseconds(found), share))
    columns = ("plan", "p", "answers missing", _SHED, _PER_1000, "of the time at p = 0")
    return Table("On the engine: work that is saved, timed", columns, tuple(rows))


def _milliseconds(found: Measurement | None) -> str:
    if found is None:
        return ABSENT
    took = found.time
    return Summary(1000 * took.median, 1000 * took.least, 1000 * took.greatest, took.count).text(2)


def _on_spark(setting: Setting, asked: Asked) -> Outcome:
    import windrow as wr

    rows, out, state = (setting.fresh(f"engine-{name}") for name in ("rows", "answers", "state"))
    for name in asked.streams:
        _written(rows / name, [batch.rows[name] for batch in asked.batches])
    spark = setting.awake()
    words = "ORDERED" if asked.share is None else "ORDERED SHEDDABLE"
    with wr.connect(spark, state=state) as engine:
        for name in asked.streams:
            source = f"files://{rows / name}/*.parquet?files_per_batch=1"
            engine.sql(f"CREATE STREAM {name} ({asked.columns}) WATTR ts {words} FROM '{source}'")
        for number, text in enumerate(asked.texts):
            engine.sql(f"CREATE QUERY q{number} AS {text} INTO 'files://{out / str(number)}'")
        if asked.share:
            core = engine._engine
            core.shedding = replace(core.shedding, seed=_SEED)  # the same windows in every round
            engine.shed(asked.share)
        engine.run(once=True)
        epochs = [each for each in engine.epochs if each.rows]
        kept = float(engine.footprint.state_bytes)
    late = _after(asked, epochs)
    took = (late[-1].began - late[0].began) / 1e6 + late[-1].seconds
    given = {n: _answers(out / str(n)) for n in range(len(asked.texts))}
    if asked.share is not None:
        _check_subset(asked, given)
    counted = [_counted(frame.lazy(), "at", asked.sure) for frame in given.values()]
    rows_read = sum(each.rows for each in late)
    shed = sum(each.shed for each in late) / rows_read
    return Outcome(1000 * took / rows_read, pl.concat(counted), {_SHED: shed, _STATE: kept})


def _after(asked: Asked, epochs: Sequence[EpochTimes]) -> list[EpochTimes]:
    """The epochs that are timed: those after the rows that fill the windows. Streams are read each in its own
    time, so that an epoch need not have a file of each."""
    left = sum(batch.rows[name].height for batch in asked.batches for name in asked.streams) - asked.rows
    for place, each in enumerate(epochs):
        if left <= 0:
            return list(epochs[place:])
        left -= each.rows
    raise WindrowError("no epoch is left to be timed", code="benchmark-failed", hint="more rows")


def _answers(folder: Path) -> pl.DataFrame:
    found = sorted(folder.glob("*.parquet"))
    return pl.read_parquet(found) if found else pl.DataFrame(schema={"at": pl.Int64()})


def _check_subset(asked: Asked, given: Mapping[int, pl.DataFrame]) -> None:
    """Every answer is one of those without shedding."""
    for number, answers in given.items():
        known = asked.exact.setdefault(number, answers)
        if answers.height and answers.join(known, on=answers.columns, how="anti", nulls_equal=True).height:
            raise WindrowError(
                f"{asked.variant}: an answer is not among the exact ones", code="answers-differ"
            )


def _on_kernels(asked: Asked) -> Outcome:
    if asked.kernels is not None:
        began = time.perf_counter()
        found = asked.kernels()
        assert found.answers is not None
        seconds = time.perf_counter() - began
        return Outcome(1000 * seconds / asked.rows, _counted(found.answers, "at", asked.sure), found.figures)
    catalog = declared(dict.fromkeys(asked.batches[0].rows, asked.columns), {})
    (text,) = asked.texts
    standing = Standing.of(normalise(compile_query(text, catalog)).plan)
    answers, took = [], []
    for batch in asked.batches:
        read = Batch({name: batch.rows[name] for name in asked.streams}, batch.clock)
        began = time.perf_counter()
        _, some = standing.step(read)
        took.append(time.perf_counter() - began)
        answers.append(_counted(some.lazy(), "#at", asked.sure))
    per_thousand = 1000 * sum(took[-asked.timed :]) / asked.rows
    return Outcome(per_thousand, pl.concat(answers), {"state rows": float(standing.state_rows)})


def _counted(answers: pl.LazyFrame, at: str, sure: int) -> pl.LazyFrame:
    """The instants of all answers up to where all is known; their values are compared by others."""
    found = answers.filter(pl.col(at) < sure).select(pl.col(at).cast(pl.Int64).alias("at"))
    return found.with_columns(k=pl.lit(0), m=pl.lit(0.0), t=pl.lit(0.0), n=pl.lit(1))


def _written(folder: Path, batches: Sequence[pl.DataFrame]) -> None:
    folder.mkdir(parents=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number:06}.parquet"
        rows.write_parquet(path)
        os.utime(path, (number + 1_000_000,) * 2)  # read by age, in the order of the names


# ---------------------------------------------------------------- disorder


def _tried(setting: Setting, trial: disorder.Trial) -> tuple[Table, list[Measurement]]:
    """Latency and error of an experiment with disorder on the engine, in twenty times as large batches.

    What is answered, and when, has to be what kernels say of the same batches.
    """
    from windrow.testing.spark_executor import SparkExecutor

    setting.say(f"experiment {trial.name} on the engine: {trial.about}")
    setting.awake()
    larger = replace(trial, size=_LARGER * trial.size, slacks=trial.slacks[::2])
    found = disorder.tried(larger, SparkExecutor)
    if found.measurements != disorder.tried(larger).measurements:
        raise WindrowError(
            f"experiment {trial.name}: engine and kernels differ in latency or error", code="answers-differ"
        )
    for each in found.measurements:
        each.variant = {**each.variant, "on": ENGINE}
    table = disorder.trade_table(larger, found)
    return replace(table, title=f"{table.title}, on the engine in batches of {larger.size} rows"), [
        *found.measurements
    ]
