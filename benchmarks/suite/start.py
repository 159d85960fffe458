"""How long a new process takes to its first answer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.contestant import Outcome
from benchmarks.contestants import first_answer
from benchmarks.contestants.first_answer import ANSWERED, IMPORTED, STARTED, WAYS
from benchmarks.rounds import Case, Measured, measure
from benchmarks.table import Table
from benchmarks.workload import readings
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from benchmarks.setting import Setting

#: from where `python -m benchmarks…` finds its modules
_REPOSITORY = Path(__file__).parents[2]
_STAGES = (IMPORTED, STARTED, ANSWERED)
_X_LABEL = ", ".join(f"{number} {stage}" for number, stage in enumerate(_STAGES, 1))
_ABOUT = {
    "windrow": "over files, one micro-batch",
    "windrow demo": "over a stream by the clock, answers every minute of the stream, which takes two seconds",
    "spark rocksdb": "window() over the same files, one micro-batch",
}
_NOTES = [
    "Each run is a process of its own, with a JVM of its own. The one that is discarded brings the files"
    " of all packages into the system's cache.",
]


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    rows: Annotated[int, "How many rows the files have."] = 20_000


QUICK = Options(rows=4000)


def run(setting: Setting, options: Options) -> Findings:
    """Every way in turn."""
    rows = readings(setting.data, rows=options.rows, keys=20, seconds=100, rows_per_file=options.rows)
    cases = [Case(way, {"rows": options.rows}, partial(_start, way, rows.folder)) for way in WAYS]
    measured = measure(cases, setting.rounds, setting.say)
    return Findings(
        {way: {"what": about} for way, about in _ABOUT.items()},
        measured.measurements,
        [_table(measured)],
        [_chart(measured)],
        notes=_NOTES,
    )


def _start(way: str, folder: Path) -> Outcome:
    command = [sys.executable, "-m", first_answer.__name__, way, str(folder)]
    began = time.time()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_REPOSITORY)
    if done.returncode:
        raise WindrowError(f"{way} failed: {done.stderr.strip()[-500:]}", code="contestant")
    stages = json.loads(done.stdout.strip().splitlines()[-1])
    if ANSWERED not in stages:
        raise WindrowError(f"{way} ended without an answer", code="contestant")
    return Outcome(stages[ANSWERED] - began, None, {stage: stages[stage] - began for stage in _STAGES})


def _table(measured: Measured) -> Table:
    rows = tuple(
        (
            each.contestant,
            *(f"{each.figures[stage]:.2f} s" for stage in _STAGES[:-1]),
            each.time.text(2, " s"),
        )
        for each in measured.measurements
    )
    return Table(
        "Seconds since the process began (stages: the slowest round)", ("contestant", *_STAGES), rows
    )


def _chart(measured: Measured) -> Chart:
    series = tuple(
        Series(each.contestant, tuple(_points(each.figures, each.time.median)))
        for each in measured.measurements
    )
    return Chart("start", "From the start of a process to its first answer", _X_LABEL, "seconds", series)


def _points(figures: dict[str, float], answered: float) -> list[Point]:
    values = [figures[IMPORTED], figures[STARTED], answered]
    return [Point(float(number), value, value, value) for number, value in enumerate(values, 1)]


BENCHMARK = Benchmark("start", "From the start of a process to its first answer.", Options, QUICK, run)
