"""Six ways to schedule the refreshes of many queries that share synopses: how many per second, how late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.benchmark import Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Measurement
from benchmarks.scheduled_queries import RATES, measured_costs, random_groups
from benchmarks.statistics import ratio, summary
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.theory.scheduling.simulation import Played, simulate
from benchmarks.theory.scheduling.techniques import TECHNIQUES, StepScheduler
from windrow.sharing.schedule import by_period

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.setting import Setting
    from benchmarks.suite.scheduling import Options
    from windrow.sharing.schedule import Costs

_LOW, _HIGH = RATES
_NOTES = [
    "Time is simulated, costs are not: what a refresh takes was measured on a synopsis of counters with as"
    " many rows and different values per interval as the thesis has (1500 of 1000, 3000 of 2000).",
    "Updates come as often as the smallest workload without sharing can just bear at the low rate; the thesis"
    " has one per second, on a machine of its time.",
    "Tasks are also refreshed before they are due if there is time, as the thesis' algorithms do, but not"
    " twice between two updates, when nothing has changed. One-time queries are left out: they cost every"
    " technique the same.",
    "Unlike the thesis' system, this one reads intervals slowly and makes answers quickly, which is to the"
    " advantage of AS: its many refreshes that are not due cost little. The column `due` counts the others.",
    "Latency is in updates beyond the period, on the average of a query's refreshes and then of all queries.",
]
#: by rate, number of queries and technique
Found = dict[tuple[int, int, str], list[Played]]


def run(setting: Setting, options: Options) -> Findings:
    """All techniques on the same queries."""
    costs = {rate: measured_costs(rate, distinct) for rate, distinct in RATES.items()}
    found: Found = {}
    for trial in range(options.trials):
        every = _bearable(costs[_LOW], min(options.queries), trial)
        for queries in options.queries:
            setting.say(f"trial {trial + 1} of {options.trials}: {queries} queries")
            for rate, cost in costs.items():
                for name in TECHNIQUES:
                    played = _played(name, queries, trial, cost, options.updates, every)
                    found.setdefault((rate, queries, name), []).append(played)
    return Findings(
        {name: {"what": technique.about} for name, technique in TECHNIQUES.items()},
        [_measurement(*key, played) for key, played in found.items()],
        [_table(found, rate, options.queries) for rate in RATES],
        [chart for rate in RATES for chart in _charts(found, rate, options.queries)],
        _targets(found, max(options.queries)),
        [*_NOTES, *(_cost_note(rate, cost) for rate, cost in costs.items())],
    )


def _bearable(costs: Costs, queries: int, seed: int) -> float:
    """The time between updates in which the refreshes that are due, none of them shared, can just be done."""
    tasks = by_period(random_groups(queries, seed))
    return sum(costs.joint(task.queries) / task.period for task in tasks)


def _played(name: str, queries: int, seed: int, costs: Costs, updates: int, every: float) -> Played:
    technique = TECHNIQUES[name]
    tasks = technique.tasks(random_groups(queries, seed), costs)
    return simulate(StepScheduler(tasks, technique.together, early=True), costs.joint, updates, every=every)


def _measurement(rate: int, queries: int, name: str, played: Sequence[Played]) -> Measurement:
    figures = {
        "refreshes per second": summary([each.throughput for each in played]).median,
        "due refreshes per second": summary([each.due for each in played]).median,
        "latency": summary([each.latency for each in played]).median,
        "greatest latency": float(max(each.greatest_latency for each in played)),
    }
    return Measurement(name, {"rate": rate, "queries": queries}, figures=figures)


def _table(found: Found, rate: int, sizes: Sequence[int]) -> Table:
    rows = []
    for queries in sizes:
        for name in TECHNIQUES:
            played = found[rate, queries, name]
            throughput = summary([each.throughput for each in played]).text(0)
            due = summary([each.due for each in played]).text(0)
            latency = summary([each.latency for each in played]).text(2)
            worst = max(each.greatest_latency for each in played)
            rows.append((f"{queries}", name, throughput, due, latency, f"{worst}"))
    columns = ("queries", "technique", "refreshes per second", "due", "average latency", "greatest")
    return Table(f"{rate} rows per second", columns, tuple(rows))


def _charts(found: Found, rate: int, sizes: Sequence[int]) -> list[Chart]:
    def points(name: str, figure: str, least: float) -> tuple[Point, ...]:
        made = []
        for queries in sizes:
            values = summary([max(least, getattr(each, figure)) for each in found[rate, queries, name]])
            made.append(Point(float(queries), values.median, values.least, values.greatest))
        return tuple(made)

    shown = (("throughput", "refreshes per second", 1e-9), ("latency", "updates too late (0.01: none)", 0.01))
    return [
        Chart(
            f"scheduling_{figure}_{rate}",
            f"{figure.capitalize()} at {rate} rows per second",
            "queries",
            label,
            tuple(Series(name, points(name, figure, least)) for name in TECHNIQUES),
        )
        for figure, label, least in shown
    ]


def _targets(found: Found, most: int) -> list[Target]:
    """Under overload late-pending sharing is the best."""
    best = found[_HIGH, most, "H-LP"]
    where = f"{most} queries, {_HIGH} rows/s"
    targets = []
    for name in (name for name in TECHNIQUES if name != "H-LP"):
        other = found[_HIGH, most, name]
        rate = ratio([each.throughput for each in best], [each.throughput for each in other])
        late = ratio([1 + each.latency for each in other], [1 + each.latency for each in best])
        targets.append(Target(f"{where}: refreshes of H-LP to {name}'s", "≥", 1.0, rate))
        targets.append(Target(f"{where}: 1 + latency of {name} to H-LP's", "≥", 1.0, late))
    needless = found[_HIGH, most, "AS"]
    due = ratio([each.due for each in best], [each.due for each in needless])
    return [*targets, Target(f"{where}: refreshes of H-LP that were due to AS's", "≥", 1.0, due)]


def _cost_note(rate: int, costs: Costs) -> str:
    start, read, answer = (value * 1e6 for value in (costs.start, costs.read, costs.answer))
    return (
        f"Measured at {rate} rows per interval: {start:.0f} µs per probe, {read:.1f} µs per interval,"
        f" {answer:.0f} µs per answer."
    )
