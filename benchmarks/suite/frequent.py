"""FREQUENT as chapter 6 of Golab's thesis measures it: accuracy and space over k and the size of sub-windows.

There are no seconds to compare here: each trial is a window from a random start, of which the answer of
FREQUENT is held against counting everything.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Measurement
from benchmarks.table import Table

if TYPE_CHECKING:
    from benchmarks.frequent_items import Trial
    from benchmarks.setting import Setting

    Found = dict[tuple[str, int, int], list[Trial]]

_TRACE_ROWS = 100_000_000
_NOTES = [
    "Rows of the generator `network` with sources by Zipf's law, numbered at random. The thesis measured a"
    " recorded trace of packets, which come in trains; of independent rows, the last places of a short list"
    " are taken by chance, so that short sub-windows lose more.",
    "Over δ: sources that occur more often than the threshold. Found: the share of these that is reported, on"
    " average over the trials in which there are any. Error: by how much what the lists say of them is too"
    " low, reported or not, relative to the true count. Pairs: values with counts in all lists, and the"
    " counters of the window.",
    "In every trial, each reported source was over δ, and no count above the true one; otherwise there would"
    " be no table here.",
]


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    window: Annotated[int, "Rows per window."] = 100_000
    sub_windows: Annotated[tuple[int, ...], "Rows per sub-window."] = (20, 100, 500)
    lists: Annotated[tuple[int, ...], "Values per list, k."] = tuple(range(1, 11))
    sources: Annotated[int, "How many sources there are."] = 1650
    train: Annotated[int, "Rows per train, on average."] = 5
    starts: Annotated[int, "How many windows, each from a random start."] = 100


QUICK = Options(window=4000, sub_windows=(20, 100), lists=(1, 3, 7), starts=2)


def run(setting: Setting, options: Options) -> Findings:
    """All windows of both kinds of traffic."""
    from benchmarks.frequent_items import traffic, trials
    from windrow.spark.sources.generators import Settings

    settings = Settings(keys=options.sources)
    kinds = {"trains": options.train, "independent": 1}
    chance = random.Random(settings.seed)
    found: Found = {}
    seconds: dict[tuple[str, int], float] = {}
    for number in range(options.starts):
        start = chance.randrange(_TRACE_ROWS)
        for kind, train in kinds.items():
            values = traffic(settings, start, options.window, train)
            for b in options.sub_windows:
                began = time.perf_counter()
                for k, trial in trials(values, b, options.lists):
                    found.setdefault((kind, b, k), []).append(trial)
                seconds[kind, b] = seconds.get((kind, b), 0.0) + time.perf_counter() - began
        setting.say(f"start {number + 1} of {options.starts}")
    return Findings(
        {
            "trains": {"rows": f"each begins a new train with probability 1/{options.train}"},
            "independent": {"rows": "each is of any source, by Zipf's law"},
        },
        [_measurement(key, each, seconds[key[:2]] / len(options.lists)) for key, each in found.items()],
        [*(_table(kind, found) for kind in kinds), _statements(found, list(kinds))],
        [_chart(name, title, unit, figure, found) for name, title, unit, figure in _FIGURES],
        notes=_NOTES,
    )


def _mean(figure: Callable[[Trial], float | None], trials: Iterable[Trial]) -> float | None:
    known = [value for value in map(figure, trials) if value is not None]
    return fmean(known) if known else None


_FIGURES: tuple[tuple[str, str, str, Callable[[Trial], float | None]], ...] = (
    ("frequent-threshold", "(a) The threshold δ", "percent of the window", lambda t: 100 * t.threshold),
    ("frequent-over", "(b) Sources over the threshold", "sources", lambda t: t.over),
    ("frequent-reported", "(c) Sources reported", "sources", lambda t: t.reported),
    (
        "frequent-found",
        "(d) Reported of those over the threshold",
        "percent",
        lambda t: None if t.found is None else 100 * t.found,
    ),
    ("frequent-space", "(e) Space", "pairs of value and count", lambda t: t.pairs),
    (
        "frequent-error",
        "(f) Relative error of the counts of those over the threshold",
        "percent",
        lambda t: None if t.error is None else 100 * t.error,
    ),
)


def _measurement(key: tuple[str, int, int], trials: Sequence[Trial], seconds: float) -> Measurement:
    kind, b, k = key
    figures = {name: mean for name, _, _, figure in _FIGURES if (mean := _mean(figure, trials)) is not None}
    return Measurement(kind, {"b": b, "k": k}, [seconds], None, figures)


def _table(kind: str, found: Found) -> Table:
    rows = []
    for (own, b, k), trials in found.items():
        if own == kind:
            means = [_mean(figure, trials) for _, _, _, figure in _FIGURES]
            digits = (2, 1, 1, 1, 0, 2)
            cells = ["–" if m is None else f"{m:,.{d}f}" for m, d in zip(means, digits, strict=True)]
            rows.append((str(b), str(k), *cells))
    columns = ("b", "k", "δ, % of rows", "over δ", "reported", "found, %", "pairs", "error, %")
    return Table(f"Rows in {kind}" if kind == "trains" else f"Rows {kind}", columns, tuple(rows))


def _chart(name: str, title: str, unit: str, figure: Callable[[Trial], float | None], found: Found) -> Chart:
    lines: dict[str, list[Point]] = {}
    for (kind, b, k), trials in found.items():
        mean = _mean(figure, trials)
        if mean is not None:
            lines.setdefault(f"{kind}, b = {b}", []).append(Point(float(k), mean, mean, mean))
    series = tuple(Series(line, tuple(sorted(points, key=lambda p: p.x))) for line, points in lines.items())
    return Chart(name, title, "k", unit, series)


def _statements(found: Found, kinds: Sequence[str]) -> Table:
    """What the thesis says of its trace, and whether it holds here."""
    rows = []
    for kind in kinds:
        sizes = sorted({b for own, b, _ in found if own == kind})
        for b in sizes:
            shares = _over_k(found, kind, b, 3, lambda trial: trial.found)
            rows.append((kind, f"b = {b}, k ≥ 3: at least 80 % found", *_verdict(shares, min, 0.8)))
        errors = _over_k(found, kind, sizes[0], 7, lambda trial: trial.error)
        rows.append((kind, f"b = {sizes[0]}, k ≥ 7: error below 2 %", *_verdict(errors, max, 0.02)))
    columns = ("rows", "statement", "worst, and average", "holds for every k")
    return Table("What the thesis states of its trace", columns, tuple(rows))


def _over_k(
    found: Found, kind: str, b: int, least: int, figure: Callable[[Trial], float | None]
) -> dict[int, float]:
    means = {k: _mean(figure, trials) for (own, size, k), trials in found.items() if (own, size) == (kind, b)}
    return {k: mean for k, mean in means.items() if k >= least and mean is not None}


def _verdict(
    means: dict[int, float], worst: Callable[[Iterable[float]], float], limit: float
) -> tuple[str, str]:
    """The worst k, and whether it is on the right side of the limit."""
    if not means:
        return "nothing over δ", "–"
    seen = worst(means.values())
    k = next(k for k, mean in means.items() if mean == seen)
    holds = seen >= limit if worst is min else seen < limit
    where = f"{100 * seen:.1f} % at k = {k}, {100 * fmean(means.values()):.1f} % on average over k"
    return where, "yes" if holds else "no"


BENCHMARK = Benchmark(
    "frequent", "FREQUENT over k and the size of sub-windows: accuracy and space.", Options, QUICK, run
)
