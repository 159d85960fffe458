"""The papers' queries on the engine: whole epochs on Spark, beside the kernels by themselves.

Studies run kernels, so that what an algorithm costs is not hidden by Spark, files and commits. Here the same
queries, over the same rows, are standing queries of an engine: a file of each stream per epoch, rows read by
Spark, state and answers committed to disk. Seconds of the engine are those of the clock, from opening to
closing it; those of kernels are of the processor, from the first row on. Both have to give as many answers at
every instant. With `--with engine`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks.contestant import Outcome
from benchmarks.disk import size
from benchmarks.rounds import Case, measure
from benchmarks.studies import connections, join_streams, patterns, windows
from benchmarks.studies.extents import batches_of, readings
from benchmarks.studies.steps import Batch, Standing
from benchmarks.times import times_table
from windrow.engine import declared
from windrow.kernels.relational.join.order import augmented_order
from windrow.language.compile import compile_query
from windrow.optimizer.optimizer import normalise

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.benchmark import Findings
    from benchmarks.rounds import Variant
    from benchmarks.setting import Setting

#: what asks for it
ENGINE = "engine"
KERNELS = "kernels"
_SHED = (0.0, 0.25, 0.5, 0.75)
_EPOCHS = 8
_KEYED = "k BIGINT, v BIGINT, ts BIGINT"


@dataclass(frozen=True)
class Asked:
    """A query, and the rows that come, an epoch after the other; `share` of its windows is to be dropped."""

    name: str
    text: str
    columns: str
    batches: Sequence[Batch]
    share: float | None = None

    @property
    def streams(self) -> list[str]:
        """The streams it is about."""
        return list(self.batches[0].rows)

    @property
    def sure(self) -> int:
        """Answers below this instant are complete: the last row of the stream that ends first is here."""
        ends = {name: [0] for name in self.streams}
        for batch in self.batches:
            for name, rows in batch.rows.items():
                ends[name] += rows["ts"].to_list()[-1:]
        return min(found[-1] for found in ends.values())


def _patterns(options: Any) -> Iterator[Asked]:
    window = min(options.windows)
    log = connections.links(patterns.LINKS, 2 * window)
    batches = log.batches(0, max(1, 2 * window // _EPOCHS), _EPOCHS)
    for name, text in patterns.QUERIES.items():
        yield Asked(name, text.format(w=window), connections.COLUMNS, batches)


def _windows(options: Any) -> Iterator[Asked]:
    extent, rows = min(options.extents), min(options.sizes)
    log = connections.links(windows.LINKS, 2 * extent, options.rate)
    batches = log.batches(0, 1, 2 * extent)
    for shape in (f"RANGE {extent} SLIDE 1", f"ROWS {rows}", "LANDMARK"):
        for name, text in windows.QUERIES.items():
            yield Asked(f"{name} [{shape}]", text.format(w=shape), connections.COLUMNS, batches)


def _panes(options: Any) -> Iterator[Asked]:
    batches = batches_of(readings(options.rows, options.keys), options.rows_per_batch)
    width = max(options.rows_per_pane)
    for count in (min(options.panes_per_window), max(options.panes_per_window)):
        yield _greatest(f"RANGE {width * count} SLIDE {width}", batches)


def _disorder(options: Any) -> Iterator[Asked]:
    batches = batches_of(readings(options.rows, options.keys), options.rows_per_batch)
    for slide in options.slides[1:]:
        yield _greatest(f"RANGE {options.range_rows} SLIDE {slide}", batches)


def _greatest(window: str, batches: Sequence[Batch]) -> Asked:
    return Asked(window, f"SELECT RSTREAM(k, MAX(v) AS m) FROM s [{window}] GROUP BY k", _KEYED, batches)


def _joins(options: Any) -> Iterator[Asked]:
    four = join_streams.streams(options.scale)
    best, length = augmented_order(four).order, int(four[0].length)
    batches = join_streams.rows(four, 2 * length).batches(0, max(1, 2 * length // _EPOCHS), _EPOCHS)
    for slide in options.intervals:
        text = join_streams.join(best, slide=slide)
        yield Asked(f"four windows, SLIDE {slide}", text, join_streams.COLUMNS, batches)


def _shedding(options: Any) -> Iterator[Asked]:
    batches = batches_of(readings(options.overhead_rows, 10), options.overhead_rows // _EPOCHS)
    text = f"SELECT k, SUM(v) AS total FROM s [RANGE 100 SLIDE 10] GROUP BY k MAX GAP {options.max_gap}"
    for share in _SHED:
        yield Asked(f"w.shed({share})", text, _KEYED, batches, share)


#: by benchmark, what it asks on the engine
STUDIES: Mapping[str, Callable[[Any], Iterator[Asked]]] = {
    "patterns": _patterns,
    "disorder": _disorder,
    "panes": _panes,
    "joins": _joins,
    "windows": _windows,
    "shedding": _shedding,
}


def on_engine(benchmark: str, found: Findings, setting: Setting, options: Any) -> Findings:
    """The findings of a study, and what its queries take on the engine."""
    cases, variants = [], []
    for asked in STUDIES[benchmark](options):
        variant: Variant = {"query": asked.name, "rows": sum(batch.count for batch in asked.batches)}
        variants.append(variant)
        cases.append(Case(ENGINE, variant, partial(_on_spark, setting, asked)))
        if asked.share is None:
            cases.append(Case(KERNELS, variant, partial(_on_kernels, asked)))
    measured = measure(cases, setting.rounds, setting.say)
    table = times_table("On the engine: whole epochs on Spark", measured, (ENGINE, KERNELS), variants)
    about = {
        ENGINE: {"what": "seconds by the clock, from opening the engine to closing it, all answers on disk"},
        KERNELS: {"what": "seconds of the processor, the same rows from the first on"},
    }
    return replace(
        found,
        contestants={**found.contestants, **about},
        measurements=[*found.measurements, *measured.measurements],
        tables=[*found.tables, table],
    )


def _on_spark(setting: Setting, asked: Asked) -> Outcome:
    import windrow as wr

    rows, out, state = (setting.fresh(f"engine-{name}") for name in ("rows", "answers", "state"))
    for name in asked.streams:
        _written(rows / name, [batch.rows[name] for batch in asked.batches])
    spark = setting.awake()
    began = time.perf_counter()
    with wr.connect(spark, state=state) as engine:
        for name in asked.streams:
            source = f"files://{rows / name}/*.parquet?files_per_batch=1"
            words = "ORDERED SHEDDABLE" if asked.share is not None else "ORDERED"
            engine.sql(f"CREATE STREAM {name} ({asked.columns}) WATTR ts {words} FROM '{source}'")
        engine.sql(f"CREATE QUERY q AS {asked.text} INTO 'files://{out}'")
        if asked.share is not None:
            engine.shed(asked.share)
        engine.run(once=True)
    took = time.perf_counter() - began
    answers = pl.scan_parquet(out / "*.parquet") if any(out.glob("*.parquet")) else None
    kept = {"state bytes": float(size(state, without=("checkpoints", "outbox")))}
    return Outcome(took, _counted(answers, "at", asked.sure), kept)


def _on_kernels(asked: Asked) -> Outcome:
    catalog = declared(dict.fromkeys(asked.streams, asked.columns), {})
    standing = Standing.of(normalise(compile_query(asked.text, catalog)).plan)
    steps = [standing.step(batch) for batch in asked.batches]
    found = [answers.select("#at").lazy() for _, answers in steps if answers.height]
    figures = {"state rows": float(standing.state_rows)}
    answers = pl.concat(found) if found else None
    return Outcome(sum(seconds for seconds, _ in steps), _counted(answers, "#at", asked.sure), figures)


def _counted(answers: pl.LazyFrame | None, at: str, sure: int) -> pl.LazyFrame:
    """The instants of all answers up to where all is known; their values are compared by others."""
    if answers is None:
        answers = pl.LazyFrame(schema={at: pl.Int64()})
    found = answers.filter(pl.col(at) < sure).select(pl.col(at).alias("at"))
    return found.with_columns(k=pl.lit(0), m=pl.lit(0.0), t=pl.lit(0.0), n=pl.lit(1))


def _written(folder: Path, batches: Sequence[pl.DataFrame]) -> None:
    folder.mkdir(parents=True)
    for number, rows in enumerate(batches):
        path = folder / f"{number:06}.parquet"
        rows.write_parquet(path)
        os.utime(path, (number + 1_000_000,) * 2)  # read by age, in the order of the names
