"""Four ways to read a window that slides meanwhile: how fresh, how quick, how much work is lost.

Mostly in simulated time, so that one processor and long windows can be watched; and, for shorter ones, for
real: over sub-windows that an engine keeps on disk.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from benchmarks.benchmark import Benchmark, Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.live_windows import Workload, simulate
from benchmarks.rounds import Measurement
from benchmarks.statistics import Summary, ratio, summary
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.theory.isolation.attempt import Query
from benchmarks.theory.isolation.policies import FIXED_ORDER, SERIAL, TIME_TO_UPDATE
from benchmarks.theory.isolation.scheduler import Scheduler
from benchmarks.times import ABSENT
from windrow.archive.snapshot import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.setting import Setting

_POLICIES = {policy.name: policy for policy in (SERIAL, SNAPSHOT, FIXED_ORDER, TIME_TO_UPDATE)}
_ABOUT = {
    "Serial": "a query keeps updates and other queries out until it has answered",
    "WS": "a query reads the window as it was when it began, oldest sub-window first",
    "LWS": "a query reads the latest window in the order of the ring, and begins anew when it must",
    "TTU": "a query reads the latest window by time to update, and begins anew when it must",
}
_MIXED = "one-time queries too"
_PERIODIC = "periodic queries only"
_NOTES = [
    "Time is simulated: one processor, and the times per row that are given as options. A figure is the"
    " median of the averages of runs as long as the window; in brackets the least and the greatest of them.",
    "The times per row are assumed, not measured: ten microseconds were chosen so that a fixed order loses"
    " about half of its attempts at 100 sub-windows of a second, as the literature reports. So that share is"
    " no finding. Who is fresher and who loses nothing does not depend on it; how much fresher, and what the"
    " decisions cost in answers per second, does: try --row-us 2 --decision-us 150.",
    "For real: threads of one Python process ask an engine without Spark, which commits a sub-window every"
    " half second; each reads its sub-windows from their files. What is slow there is Python, which runs one"
    " thread at a time: compare the schedulers, not the seconds.",
    "Staleness is the age of the last update that an answer shows, counted from when the update was due.",
]
#: name, title, unit, digits
_FIGURES = (
    ("aborted", "Share of attempts that had to begin anew", "", 3),
    ("staleness", "Staleness of periodic queries", " s", 2),
    ("between", "Time between two answers of a periodic query", " s", 2),
    ("per_second", "Answers per second", "", 2),
    ("response", "Response time of one-time queries", " s", 2),
    ("one_time_staleness", "Staleness of one-time queries", " s", 2),
)


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    subwindows: Annotated[tuple[int, ...], "Sub-windows of the window."] = (10, 20, 50, 100)
    trials: Annotated[int, "Runs of each case, with other rows and queries."] = 5
    rows_per_second: Annotated[int, "Rows of the stream."] = 1000
    row_us: Annotated[int, "Microseconds a periodic query takes for a row."] = 10
    one_time_row_us: Annotated[int, "Microseconds a one-time query takes for a row."] = 1
    decision_us: Annotated[int, "Microseconds of the scheduler, but for Serial, per query and operation."] = (
        20
    )
    real: Annotated[tuple[int, ...], "Sub-windows of the window that is read for real."] = (10, 20, 40)
    real_seconds: Annotated[float, "How long each case is watched for real."] = 10.0
    real_rows: Annotated[int, "Rows of a sub-window that is read for real."] = 2000


QUICK = Options(subwindows=(10, 20), trials=2, real=(5,), real_seconds=2.0, real_rows=500)


@dataclass(frozen=True)
class _Experiment:
    """How long a sub-window is, and who asks."""

    seconds: float
    periodic: int
    per_second: float
    is_real: bool = False

    @property
    def asking(self) -> str:
        return _MIXED if self.per_second else _PERIODIC

    @property
    def title(self) -> str:
        how = ", on disk and for real" if self.is_real else ""
        return f"{self.periodic} periodic queries, a slide every {self.seconds:g} s, {self.asking}{how}"


_EXPERIMENTS = (_Experiment(1, 40, 0.0), _Experiment(5, 100, 0.0), _Experiment(5, 100, 1.0))
_FOR_REAL, _REAL_TRIALS = _Experiment(0.5, 4, 1.0, is_real=True), 3

Samples = dict[str, list[float]]
#: by experiment, number of sub-windows and policy
Found = dict[tuple[_Experiment, int, str], Samples]


def run(setting: Setting, options: Options) -> Findings:
    """All policies on the same rows and queries."""
    found: Found = {}
    for experiment in _EXPERIMENTS:
        for subwindows in options.subwindows:
            setting.say(f"{experiment.title}: {subwindows} sub-windows")
            for name in _POLICIES:
                found[experiment, subwindows, name] = _trials(experiment, subwindows, name, options)
    real = _measured(setting, options)
    everything = {**found, **real}
    return Findings(
        {name: {"what": about} for name, about in _ABOUT.items()},
        [_measurement(*key, samples) for key, samples in everything.items()],
        [
            *(_table(found, experiment, options.subwindows) for experiment in _EXPERIMENTS),
            *([_table(real, _FOR_REAL, options.real)] if real else []),
        ],
        [
            *_charts(found, options.subwindows),
            *(_chart(real, name, _FOR_REAL, options.real) for name, *_ in _FIGURES if real),
        ],
        _targets(found, options.subwindows),
        [*_NOTES, _decision_note(max(options.subwindows))],
    )


def _trials(experiment: _Experiment, subwindows: int, policy: str, options: Options) -> Samples:
    samples: Samples = {}
    for seed in range(options.trials):
        workload = Workload(
            subwindows,
            int(experiment.seconds),
            experiment.periodic,
            experiment.per_second,
            options.rows_per_second,
            options.row_us,
            options.one_time_row_us,
            update_row_us=0.5,
            decision_us=options.decision_us,
            seed=seed,
        )
        for name, value in asdict(simulate(_POLICIES[policy], workload)).items():
            if value is not None:
                samples.setdefault(name, []).append(value)
    return samples


def _measured(setting: Setting, options: Options) -> Found:
    """The same, over kept sub-windows: each policy in turn, as often as there are trials."""
    from benchmarks.kept_windows import RealWork, measure

    found: Found = {}
    for subwindows in options.real:
        work = RealWork(
            subwindows,
            _FOR_REAL.seconds,
            _FOR_REAL.periodic,
            _FOR_REAL.per_second,
            options.real_rows,
            options.real_seconds,
        )
        for trial in range(min(options.trials, _REAL_TRIALS)):
            setting.say(f"{_FOR_REAL.title}: {subwindows} sub-windows, trial {trial + 1}")
            for name, policy in _POLICIES.items():
                samples = found.setdefault((_FOR_REAL, subwindows, name), {})
                for figure, value in asdict(measure(policy, work)).items():
                    if value is not None:
                        samples.setdefault(figure, []).append(value)
    return found


def _measurement(experiment: _Experiment, subwindows: int, policy: str, samples: Samples) -> Measurement:
    variant: dict[str, int | str] = {
        "subwindows": subwindows,
        "slide": f"{experiment.seconds:g} s",
        "asking": experiment.asking,
    }
    figures = {name: summary(values).median for name, values in samples.items()}
    return Measurement(policy, variant, figures=figures, samples=samples["staleness"])


def _table(found: Found, experiment: _Experiment, sizes: Sequence[int]) -> Table:
    shown = [each for each in _FIGURES if experiment.per_second or each[0] not in _of_one_time()]
    rows = []
    for subwindows in sizes:
        for policy in _POLICIES:
            samples = found[experiment, subwindows, policy]
            cells = [_cell(samples, name, unit, digits) for name, _, unit, digits in shown]
            rows.append((f"{subwindows}", policy, *cells))
    names = [title for _, title, _, _ in shown]
    return Table(experiment.title, ("sub-windows", "scheduler", *names), tuple(rows))


def _of_one_time() -> frozenset[str]:
    return frozenset({"response", "one_time_staleness"})


def _cell(samples: Mapping[str, list[float]], name: str, unit: str, digits: int) -> str:
    return summary(samples[name]).text(digits, unit) if name in samples else ABSENT


def _charts(found: Found, sizes: Sequence[int]) -> list[Chart]:
    short, long, mixed = _EXPERIMENTS
    wanted = [
        ("aborted", short),
        ("staleness", short),
        ("staleness", long),
        ("between", short),
        ("per_second", short),
        ("response", mixed),
        ("one_time_staleness", mixed),
    ]
    return [_chart(found, name, experiment, sizes) for name, experiment in wanted]


def _chart(found: Found, name: str, experiment: _Experiment, sizes: Sequence[int]) -> Chart:
    title = next(title for each, title, _, _ in _FIGURES if each == name)
    series = []
    for policy in _POLICIES:
        spread = [(size, found[experiment, size, policy].get(name)) for size in sizes]
        points = [_point(size, summary(values)) for size, values in spread if values]
        series.append(Series(policy, tuple(points)))
    tail = f"{name.replace('_', '-')}-{'real' if experiment.is_real else f'{experiment.seconds:g}s'}"
    unit = next(unit for each, _, unit, _ in _FIGURES if each == name)
    label = "seconds" if unit else title.lower()
    return Chart(
        f"isolation-{tail}",
        f"{title} ({'for real, ' * experiment.is_real}{experiment.seconds:g} s)",
        "sub-windows",
        label,
        tuple(series),
    )


def _point(size: int, found: Summary) -> Point:
    return Point(float(size), found.median, found.least, found.greatest)


def _targets(found: Found, sizes: Sequence[int]) -> list[Target]:
    longest = max(sizes)
    targets = []
    for experiment in _EXPERIMENTS:
        mine, serial = (found[experiment, longest, name] for name in ("TTU", "Serial"))
        where = f"{longest} sub-windows of {experiment.seconds:g} s, {experiment.asking}"
        stale = ratio(serial["staleness"], mine["staleness"])
        rate = ratio(mine["per_second"], serial["per_second"])
        targets.append(Target(f"{where}: Serial's staleness to TTU's", "≥", 1.0, stale))
        targets.append(Target(f"{where}: TTU's answers per second to Serial's", "≥", 0.96, rate))
        if experiment.per_second:
            waits = ratio(serial["response"], mine["response"])
            targets.append(Target(f"{where}: Serial's response time to TTU's", "≥", 1.0, waits))
    return targets


def _decision_note(subwindows: int) -> str:
    """What a decision really takes here, to hold against the option."""
    scheduler = Scheduler(subwindows)
    for number in range(20):
        scheduler.submit(Query(f"Q{number}", subwindows))
    began, operations = perf_counter(), 0
    while scheduler.running and operations < 20_000:
        operations += len(scheduler.step())
        if operations % 10 == 0:
            operations += len(scheduler.slide())
    each = (perf_counter() - began) / max(1, operations) * 1e6
    return f"A decision of the scheduler took {each:.0f} µs on this machine, with {subwindows} sub-windows."


BENCHMARK = Benchmark(
    "isolation", "Queries over a window that slides meanwhile, simulated and for real.", Options, QUICK, run
)
