"""Joins of four windows: the order of joining, and when it is done (Golab's thesis, 5.4).

Orders: four global orders, of which the cost model says how much they differ, each run with and without
hash tables. Algorithms: eager evaluation with expiry at intervals, lazy evaluation, and lazy evaluation
that restores results which came and went in between, as the interval grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations
from typing import TYPE_CHECKING

from benchmarks.benchmark import Findings
from benchmarks.rounds import Case, Measured, measure
from benchmarks.statistics import ratio
from benchmarks.studies.costs import CHANGES, compared, cost_chart, cost_table, merged, state_table
from benchmarks.studies.join_streams import COLUMNS, join, rows, streams
from benchmarks.studies.steps import Standing, timed
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.times import ABSENT
from windrow.engine.explain import declared
from windrow.kernels.relational.expiry_layouts import Evaluation, Options as Physical, Tables
from windrow.kernels.relational.join.order import WindowStats, augmented_order, order_cost, selectivity_order
from windrow.language.compile import compile_query
from windrow.optimizer.optimizer import normalise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.setting import Setting
    from benchmarks.suite.joins import Options
    from windrow.algebra.plan import Emit

HASHED, LOOPS, FREE = "hash tables", "nested loops", "hash tables, free order"
EAGER, LAZY, RESTORE = "eager", "lazy", "lazy, restoring"
ORDER_WAYS = {
    LOOPS: Physical(tables=Tables.LOOPS, reorder=False),
    HASHED: Physical(tables=Tables.HASH, reorder=False),
    FREE: Physical(tables=Tables.HASH),
}
_ABOUT = {
    HASHED: "rows are found by hashing, in the order of the plan",
    LOOPS: "all rows are compared, in the order of the plan",
    FREE: "rows are found by hashing, in an order that follows observed rates and values",
    EAGER: "every step is evaluated; expired rows are purged at the interval",
    LAZY: "evaluated when a report is due, for all rows since the last",
    RESTORE: "the same, with results that came and went in between",
}


def run(setting: Setting, options: Options) -> Findings:
    """First the orders, then the algorithms."""
    orders = measure(list(_order_cases(options)), setting.rounds, setting.say)
    parts = [
        measure(list(_algorithm_cases(options, interval)), setting.rounds, setting.say)
        for interval in options.intervals
    ]
    timings = merged(parts)
    settings = {name: {"what": about} for name, about in _ABOUT.items()}
    settings["all"] = {
        "rows": f"rates 10, 1, 1, 1; RANGE {100 * options.scale} units; values "
        + ", ".join(f"{each.distinct}" for each in streams(options.scale)),
        "orders": f"{options.order_steps} steps of {options.order_batch} units",
        "algorithms": f"{options.units} steps of one unit, after the windows are full",
    }
    who = list(algorithms(streams(options.scale), options.intervals[0]))
    variants = [{"interval": interval} for interval in options.intervals]
    return Findings(
        settings,
        [*orders.measurements, *timings.measurements],
        [
            _order_table(options, orders),
            cost_table("Algorithms", timings, who, variants),
            state_table("Algorithms", timings, who, variants, CHANGES),
        ],
        [cost_chart("joins-algorithms", "By interval of re-evaluation", timings, who, "interval")],
        shapes(options, orders, timings),
    )


def orders_tried(windows: tuple[WindowStats, ...]) -> dict[str, tuple[WindowStats, ...]]:
    """The order that is chosen, others that the heuristics look at, and the worst, by their names."""
    found = [augmented_order(windows), windows, selectivity_order(windows), _worst(windows)]
    return {" ".join(each.name for each in order): order for order in found}


def _worst(windows: Sequence[WindowStats]) -> tuple[WindowStats, ...]:
    return max(permutations(windows), key=order_cost)


def plan(text: str) -> Emit:
    """A join, with its inputs in the order of the text."""
    names = [each.name for each in streams()]
    return normalise(compile_query(text, declared(dict.fromkeys(names, COLUMNS), {}))).plan


def algorithms(windows: Sequence[WindowStats], interval: int) -> dict[str, tuple[str, Physical]]:
    """The query and the options of each algorithm, in the order that is chosen."""
    best = augmented_order(windows)
    plain, restoring = (join(best, slide=interval, word=word) for word in ("ISTREAM", "ISTREAM_RESTORE"))
    found = {}
    for name, kind in ((LOOPS, Tables.LOOPS), (HASHED, Tables.HASH)):
        eager = Physical(evaluation=Evaluation.EAGER, expire_every=interval, tables=kind, reorder=False)
        lazy = Physical(evaluation=Evaluation.LAZY, tables=kind, reorder=False)
        found[f"{EAGER}, {name}"] = plain, eager
        found[f"{LAZY}, {name}"] = plain, lazy
        found[f"{RESTORE}, {name}"] = restoring, lazy
    return found


def _order_cases(options: Options) -> Iterator[Case]:
    windows = streams(options.scale)
    length, size, steps = int(windows[0].length), options.order_batch, options.order_steps
    log = rows(windows, length + (steps + 2) * size)
    batches = log.batches(length + 2 * size, size, steps)
    for name, order in orders_tried(windows).items():
        for way, how in ORDER_WAYS.items():
            standing = Standing.of(plan(join(order)), how)
            standing.filled(log.filling(length)).filled(log.batches(length, size, 2))
            yield Case(way, {"order": name}, partial(timed, standing, batches), question="order")


def _algorithm_cases(options: Options, interval: int) -> Iterator[Case]:
    windows = streams(options.scale)
    begin = -(-int(windows[0].length) // interval) * interval
    units = -(-options.units // interval) * interval
    log = rows(windows, begin + interval + units)
    batches = log.batches(begin + interval, 1, units)
    for name, (text, how) in algorithms(windows, interval).items():
        standing = Standing.of(plan(text), how)
        standing.filled(log.filling(begin)).filled(log.batches(begin, 1, interval))
        run_it = partial(timed, standing, batches)
        yield Case(name, {"interval": interval}, run_it, question=(interval, text))


def _order_table(options: Options, measured: Measured) -> Table:
    tried = orders_tried(streams(options.scale))
    best, *_ = tried
    least = order_cost(tried[best])
    found = []
    for name, order in tried.items():
        cells = []
        for way in (LOOPS, HASHED, FREE):
            one, other = measured.find(way, order=name), measured.find(way, order=best)
            cells.append(ABSENT if not one or not other else ratio(one.seconds, other.seconds).text(2))
        found.append((name, f"{order_cost(order) / least:.2f}", *cells))
    columns = ("order", "predicted", LOOPS, HASHED, FREE)
    return Table("Orders: cost and time, of the best order's", columns, tuple(found))


def shapes(options: Options, orders: Measured, timings: Measured) -> list[Target]:
    """What the thesis found, as ratios of times."""
    tried = list(orders_tried(streams(options.scale)))
    best, worst = tried[0], tried[-1]
    found = []
    for way in (LOOPS, HASHED):
        one, other = orders.find(way, order=worst), orders.find(way, order=best)
        claim = f"{way}: the worst order's time to the best order's"
        found.append(Target(claim, "≥", 1.0, ratio(one.seconds, other.seconds) if one and other else None))
    most = max(options.intervals)
    pairs = (
        (f"{EAGER}, {LOOPS}", f"{LAZY}, {LOOPS}"),
        (f"{RESTORE}, {LOOPS}", f"{LAZY}, {LOOPS}"),
        (f"{EAGER}, {LOOPS}", f"{RESTORE}, {LOOPS}"),
        (f"{LAZY}, {LOOPS}", f"{LAZY}, {HASHED}"),
        (f"{EAGER}, {LOOPS}", f"{EAGER}, {HASHED}"),
    )
    for of, to in pairs:
        found.append(
            Target(
                f"interval {most}: time of {of} to {to}",
                "≥",
                1.0,
                compared(timings, of, to, interval=most),
            )
        )
    return found
