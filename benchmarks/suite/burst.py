"""A real burst on Spark: what becomes of latency, memory and answers, with shedding and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Measurement
from benchmarks.statistics import percentile, summary
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.times import ABSENT
from windrow.errors import WindrowError

if TYPE_CHECKING:
    import polars as pl

    from benchmarks.burst_runs import Seen
    from benchmarks.setting import Setting

SHEDDING, KEEPING = "with shedding", "without"
#: rows per second against capacity, before and after the burst and in it
_CALM, _BURST = 0.2, 3.0
_NOTES = [
    "Latency is the time from the file that completes a window being in place, to its answers being handed to"
    " a function. Windows that are left out have none.",
    "Answers are compared with those of a run over the same rows that takes its time. Without shedding they"
    " have to be the same; with it, a subset.",
    "It runs once, whatever `--rounds` says.",
]


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    calm: Annotated[int, "Seconds before the burst, at a fifth of capacity."] = 15
    burst: Annotated[int, "Seconds at three times capacity."] = 60
    after: Annotated[int, "Seconds after the burst, at a fifth of capacity."] = 45
    window_ms: Annotated[int, "RANGE and SLIDE in milliseconds, a multiple of 250."] = 500
    max_gap: Annotated[int, "MAX GAP with shedding."] = 9
    busy_us: Annotated[int, "Microseconds that each row keeps a processor busy."] = 200
    probe: Annotated[int, "Rows that capacity is measured with."] = 20_000


QUICK = Options(calm=2, burst=4, after=3, busy_us=100, probe=4000)


def run(setting: Setting, options: Options) -> Findings:
    """Capacity first; then the burst twice; then the same rows without hurry."""
    from benchmarks.burst_runs import Part, Query, capacity, exact, live, rows_of

    plain = Query(options.window_ms, options.busy_us)
    rate = capacity(setting, plain, options.probe)
    setting.say(f"capacity: {rate:,.0f} rows per second")
    calm, much = int(_CALM * rate), int(_BURST * rate)
    parts = [Part(options.calm, calm), Part(options.burst, much), Part(options.after, calm)]
    readings = rows_of(setting.fresh("burst-made"), parts)
    expected = exact(setting, plain, readings)
    runs: dict[str, Seen] = {}
    for name, gap in ((SHEDDING, options.max_gap), (KEEPING, None)):
        setting.say(f"{name}: {options.burst} seconds at {much:,} rows per second")
        runs[name] = live(setting, Query(options.window_ms, options.busy_us, gap), readings)
        _check(name, runs[name], expected)
    return Findings(
        _settings(setting, options, rate),
        [_measurement(name, seen) for name, seen in runs.items()],
        [_table(runs, expected, options, readings.rows)],
        [_latency_chart(runs), _memory_chart(runs)],
        _targets(runs, options),
        [*_NOTES, *_suspended(runs)],
    )


def _settings(setting: Setting, options: Options, rate: float) -> dict[str, dict[str, str]]:
    window = f"[RANGE {options.window_ms} MILLISECONDS SLIDE {options.window_ms} MILLISECONDS]"
    return {
        "both": {
            "master": str(setting.spark.sparkContext.master),
            "query": f"SELECT k, busy_sum(v), COUNT(*) FROM s {window} GROUP BY k",
            "busy_sum": f"a user-defined SUM that is busy for {options.busy_us} microseconds per row",
            "capacity": f"{rate:,.0f} rows per second",
            "rows": f"{options.calm} s at {_CALM:g}, {options.burst} s at {_BURST:g}, {options.after} s at"
            f" {_CALM:g} times capacity",
        },
        SHEDDING: {"stream": "ORDERED SHEDDABLE", "query": f"MAX GAP {options.max_gap}"},
        KEEPING: {"stream": "ORDERED"},
    }


def _check(name: str, seen: Seen, expected: pl.DataFrame) -> None:
    """Every answer is an exact one; without shedding all of them are there."""
    keys = expected.columns
    wrong = seen.answers.join(expected, on=keys, how="anti").height + seen.answers.is_duplicated().sum()
    missing = expected.height - seen.answers.height
    if wrong or (name == KEEPING and missing):
        raise WindrowError(
            f"{name}: {wrong} answers are not exact, {missing} are missing",
            code="answers-differ",
            hint="this is a fault of Windrow: please report it",
        )


def _measurement(name: str, seen: Seen) -> Measurement:
    figures = {"shed": float(seen.shed), "memory": max((held for _, held in seen.memory), default=0.0)}
    samples = [late for _, late in seen.latencies()]
    return Measurement(name, {}, [seen.seconds], seen.answers.height, figures, samples)


def _table(runs: dict[str, Seen], expected: pl.DataFrame, options: Options, rows: int) -> Table:
    begin, end = options.calm, options.calm + options.burst
    spans = {
        "p50 latency, before": (0.0, begin),
        "p50 latency, in the burst": (begin, end),
        "greatest latency": (0.0, float("inf")),
        "p50 latency, last ten seconds": (end + options.after - 10, float("inf")),
    }
    lines = []
    for label, (low, high) in spans.items():
        percent = 100 if label.startswith("greatest") else 50
        lines.append((label, *(_late(seen, low, high, percent) for seen in runs.values())))
    lines += [
        ("rows dropped", *(f"{100 * seen.shed / rows:.0f} %" for seen in runs.values())),
        (
            "answers given",
            *(f"{100 * seen.answers.height / expected.height:.0f} %" for seen in runs.values()),
        ),
        ("answers that are wrong", *("0 %" for _ in runs)),
        (
            "last answer missing, after the burst",
            *(_exact_again(seen, expected, end) for seen in runs.values()),
        ),
        ("all rows done, after the last came", *(_done(seen, end + options.after) for seen in runs.values())),
        ("memory before the burst, Java and Python", *(_most(seen, 0, begin) for seen in runs.values())),
        ("most memory in it", *(_most(seen, begin, end) for seen in runs.values())),
        ("most memory after it", *(_most(seen, end, float("inf")) for seen in runs.values())),
    ]
    title = f"{options.burst} seconds at three times capacity"
    return Table(title, ("figure", *runs), tuple(lines))


def _late(seen: Seen, low: float, high: float, percent: int) -> str:
    found = [late for when, late in seen.latencies() if low <= when < high]
    return f"{percentile(found, percent):.1f} s" if found else ABSENT


def _exact_again(seen: Seen, expected: pl.DataFrame, end: int) -> str:
    """How long after the burst the last window ends that is missing."""
    seconds = _last_missing(seen, expected)
    return ABSENT if seconds is None else f"{seconds - end:.1f} s"


def _last_missing(seen: Seen, expected: pl.DataFrame) -> float | None:
    from benchmarks.workload import BEGIN, SECOND

    missing = expected.join(seen.answers, on=expected.columns, how="anti")
    if not missing.height:
        return None
    last = missing["at"].dt.timestamp("us").max()
    assert isinstance(last, int)
    return (last - BEGIN) / SECOND


def _done(seen: Seen, planned: int) -> str:
    return f"{max(0.0, seen.seconds - planned):.1f} s"


def _most(seen: Seen, low: float, high: float) -> str:
    found = [held for when, held in seen.memory if low <= when < high]
    return f"{max(found):,.0f} MB" if found else ABSENT


def _latency_chart(runs: dict[str, Seen]) -> Chart:
    lines = [Series(name, tuple(_point(*each) for each in seen.latencies())) for name, seen in runs.items()]
    title = "Latency by when a window was complete"
    return Chart("burst-latency", title, "seconds", "seconds to the answer", tuple(lines), is_linear=True)


def _memory_chart(runs: dict[str, Seen]) -> Chart:
    lines = [Series(name, tuple(_point(*each) for each in seen.memory)) for name, seen in runs.items()]
    return Chart("burst-memory", "Memory of Java and Python", "seconds", "MB", tuple(lines), is_linear=True)


def _targets(runs: dict[str, Seen], options: Options) -> list[Target]:
    low, high = options.calm, options.calm + options.burst
    worst = {}
    for name, seen in runs.items():
        worst[name] = max((late for when, late in seen.latencies() if low <= when < high), default=None)
    with_it, without = worst[SHEDDING], worst[KEEPING]
    found = summary([without / with_it]) if with_it and without else None
    return [Target("greatest latency in the burst, without shedding to with it", "≥", 2.0, found)]


def _suspended(runs: dict[str, Seen]) -> list[str]:
    if not runs[SHEDDING].suspended:
        return []
    return ["For a while the query was suspended: even the longest gaps did not help enough."]


def _point(x: float, y: float) -> Point:
    return Point(x, y, y, y)


BENCHMARK = Benchmark(
    "burst", "Three times too much for a minute, with shedding and without, on Spark.", Options, QUICK, run
)
