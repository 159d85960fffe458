"""Plans: the one that the planner chose against every alternative, each run on the engine.

Query 4 of Golab's thesis (3.6), a negation and a join in either order, and joins of three windows; over
streams whose rates and numbers of values make one plan or another the better one. The engine runs in this
process: files, commits and jobs, without Spark, whose share is the same for all plans. Time is that of epochs
after the windows are full. All plans of a query have to answer the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import permutations
from typing import TYPE_CHECKING, Annotated, Any

from benchmarks.benchmark import Benchmark, Findings

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from benchmarks.rounds import Case, Measured
    from benchmarks.setting import Setting
    from benchmarks.table import Table
    from benchmarks.targets import Target
    from windrow.algebra.plan import Emit, Plan
    from windrow.optimizer.flows import Statistics
    from windrow.optimizer.optimizer import Candidate

COLUMNS, OPTIONS = "k BIGINT, v BIGINT, ts BIGINT", "WATTR ts ORDERED"
QUERY_4 = (
    "SELECT a.k, a.v, c.v AS w FROM a [RANGE {w}], c [RANGE {w}] WHERE a.k = c.k AND c.v = 3"
    " AND NOT EXISTS (SELECT * FROM b [RANGE {w}] WHERE b.k = a.k)"
)
JOIN = (
    "SELECT a.v, b.v AS w, c.v AS x FROM a [RANGE {w}], b [RANGE {w}], c [RANGE {w}]"
    " WHERE a.k = b.k AND b.k = c.k"
)
_VALUES = 10


@dataclass(frozen=True)
class Workload:
    """A query over streams `a`, `b` and `c`, with rows per unit of time and different keys of each."""

    text: str
    rates: tuple[float, float, float]
    keys: tuple[int, int, int]

    def statistics(self) -> Statistics:
        """What the planner knows."""
        from windrow.optimizer.flows import Statistics

        rates, keys = (dict(zip("abc", each, strict=True)) for each in (self.rates, self.keys))
        values = {f"{name}.v": float(_VALUES) for name in "abc"}
        return Statistics(rates=rates, distinct=values | {f"{name}.k": n for name, n in keys.items()})

    def plan(self, window: int) -> Emit:
        """The query, as it is written."""
        from windrow.engine.explain import declared
        from windrow.language.compile import compile_query

        return compile_query(
            self.text.format(w=window), declared(dict.fromkeys("abc", (COLUMNS, OPTIONS)), {})
        )


WORKLOADS: Mapping[str, Workload] = {
    "Query 4, the thesis' keys": Workload(QUERY_4, (1, 1, 1), (1650, 1650, 1650)),
    "Query 4, few are dropped": Workload(QUERY_4, (1, 0.01, 1), (50_000, 50_000, 50_000)),
    "Query 4, many results": Workload(QUERY_4, (1, 0.01, 1), (1650, 1650, 1650)),
    "join, all alike": Workload(JOIN, (1, 1, 1), (200_000, 200_000, 200_000)),
    "join, one is slow": Workload(JOIN, (2, 0.05, 1), (200_000, 50_000, 200_000)),
}


@dataclass(frozen=True)
class Options:
    """What can be varied."""

    windows: Annotated[tuple[int, ...], "Lengths of the windows, in units of time."] = (20_000, 200_000)
    steps: Annotated[int, "How many epochs are timed in a round."] = 4
    units: Annotated[int, "Units of time in an epoch."] = 1000


QUICK = Options(windows=(2_000,), steps=1, units=200)


def run(setting: Setting, options: Options) -> Findings:
    """Query by query and window by window, all plans in turn."""
    from benchmarks.rounds import measure
    from benchmarks.studies.costs import merged

    parts, chosen = [], {}
    for name, workload in WORKLOADS.items():
        for window in options.windows:
            lives, best = _lives(setting, options, name, workload, window)
            chosen[name, window] = best
            parts.append(measure([_case(each, name, window) for each in lives], setting.rounds, setting.say))
            for each in lives:
                each.close()
    measured = merged(parts)
    about = {"all": {"epochs": f"{options.steps} of {options.units} units, after the windows are full"}}
    return Findings(about, measured.measurements, [_table(measured, chosen)], [], _targets(measured, chosen))


def _case(life: Life, name: str, window: int) -> Case:
    from benchmarks.rounds import Case

    return Case(life.plan.name, {"query": name, "window": window}, life.round)


def _lives(
    setting: Setting, options: Options, name: str, workload: Workload, window: int
) -> tuple[list[Life], str]:
    """One engine for each plan, its windows full; and the plan that is chosen."""
    from windrow.optimizer.optimizer import candidates
    from windrow.physical import plan_query

    emit, known = workload.plan(window), workload.statistics()
    best = plan_query(emit, known).chosen
    agreed: dict[int, bytes] = {}
    lives = []
    found = candidates(emit, known)
    plans = {each.plan: each for each in [*found, *_orders(found[0], known)]}
    for number, plan in enumerate({**plans, **{each.plan: each for each in found}}.values()):
        folder = setting.fresh(f"plans-{len(name)}-{window}-{number}")
        lives.append(Life(plan, emit, workload, window, options, str(folder), agreed))
        lives[-1].begin()
    return lives, best.name if best is not None else lives[0].plan.name


def _orders(plan: Candidate, known: Statistics) -> list[Candidate]:
    """The same with the inputs of its join of three windows in every order."""
    from windrow.algebra.operators import Join
    from windrow.optimizer.costs import total_cost
    from windrow.optimizer.optimizer import Candidate, normalise
    from windrow.optimizer.trees import as_query, kept

    found = []
    joins = [node for node in plan.plan.walk() if isinstance(node, Join) and len(node.inputs) > 2]
    for join in joins:
        for inputs in permutations(join.inputs):
            other = kept(replace(join, inputs=inputs), join.schema.names)
            better = normalise(as_query(_replaced(plan.plan, join, other))).plan
            order = ", ".join(each.leaves[0].origins[0].alias for each in inputs)
            found.append(Candidate(f"order {order}", better, total_cost(better, known)))
    return found


def _replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    return plan.rewrite(lambda node: new if node == old else node)


@dataclass
class Life:
    """An engine that runs one query by one plan."""

    plan: Candidate
    emit: Emit
    workload: Workload
    window: int
    options: Options
    folder: str
    #: what all plans have answered in each round
    agreed: dict[int, bytes]
    at: int = 0
    rounds: int = 0
    seen: int = 0
    engine: Any = field(default=None)

    def begin(self) -> None:
        """The windows are filled, and some epochs pass."""
        from pathlib import Path

        from windrow.algebra.plan import Scan
        from windrow.engine.engine import Engine
        from windrow.execution.local import HereJobs
        from windrow.language.catalog import StandingQuery
        from windrow.physical import PhysicalPlan
        from windrow.sinks import MemorySink
        from windrow.state.log import CommitLog
        from windrow.state.store import LocalStore

        def planner(plan: Emit, statistics: Any = None, *, by_group: bool | None = None) -> PhysicalPlan:
            return PhysicalPlan(plan, self.plan.plan, by_group=by_group)

        log = CommitLog.open(LocalStore(Path(self.folder)))
        self.engine = Engine(HereJobs(), log, shards=2, planner=planner)
        for node in self.emit.walk():
            if isinstance(node, Scan) and node.stream.name not in self.engine.streams:
                self.engine.add_stream(node.stream)
        self.sink = MemorySink()
        self.engine.add_query(StandingQuery("q", self.emit), self.sink)
        self._epoch(self.window)
        for _ in range(2):
            self._epoch(self.options.units)
        self.seen = self.sink.table().num_rows

    def round(self) -> Any:
        """Some epochs, timed; seconds are those of one."""
        from benchmarks.contestant import Outcome

        seconds = [self._epoch(self.options.units) for _ in range(self.options.steps)]
        self._agree()
        return Outcome(sum(seconds) / len(seconds), None, {"cost": self.plan.cost})

    def _epoch(self, units: int) -> float:
        """Processor seconds of an epoch with new rows of all streams."""
        from windrow.engine.engine import Arrival

        first, self.at = self.at, self.at + units
        arrivals = [Arrival(name, self._rows(name, first)) for name in "abc"]
        began = time.process_time()
        self.engine.epoch(arrivals)
        return time.process_time() - began

    def _rows(self, name: str, first: int) -> pa.Table:
        import numpy as np
        import pyarrow as pa

        place = "abc".index(name)
        draw = np.random.default_rng([place, first])
        count = int((self.at - first) * self.workload.rates[place])
        instants: np.ndarray[Any, Any] = np.sort(draw.integers(first, self.at, count))
        keys, values = (draw.integers(0, n, count) for n in (self.workload.keys[place], _VALUES))
        return pa.table({"k": keys, "v": values, "ts": instants})

    def _agree(self) -> None:
        """All plans have to answer the same in each round."""
        from windrow.errors import WindrowError

        table = self.sink.table()
        rows = sorted(map(repr, table.slice(self.seen).to_pylist()))
        self.seen, self.rounds = table.num_rows, self.rounds + 1
        digest = blake2b("\n".join(rows).encode()).digest()
        if self.agreed.setdefault(self.rounds, digest) != digest:
            raise WindrowError(f"the plan `{self.plan.name}` answers differently", code="answers-differ")

    def close(self) -> None:
        """Let go of it."""
        self.engine.close()


def _table(measured: Measured, chosen: Mapping[tuple[str, int], str]) -> Table:
    from benchmarks.table import Table

    rows = []
    for each in measured.measurements:
        name, window = str(each.variant["query"]), int(each.variant["window"])
        mark = "chosen" if chosen[name, window] == each.contestant else ""
        cost = f"{each.figures['cost']:,.1f}"
        time = f"{each.time.median * 1000:.0f} ({each.time.least * 1000:.0f}–{each.time.greatest * 1000:.0f})"
        rows.append((name, f"{window:,}", each.contestant, mark, cost, time))
    columns = ("query", "window", "plan", "", "cost", "ms per epoch")
    return Table("Processor milliseconds per epoch", columns, tuple(rows))


def _targets(measured: Measured, chosen: Mapping[tuple[str, int], str]) -> list[Target]:
    from benchmarks.statistics import ratio
    from benchmarks.targets import Target

    found = []
    for (name, window), plan in chosen.items():
        alike = [each for each in measured.measurements if each.variant == {"query": name, "window": window}]
        best = min(alike, key=lambda each: each.time.median)
        mine = next(each for each in alike if each.contestant == plan)
        claim = f"{name}, windows of {window:,}: the plan chosen to the best of {len(alike)}"
        found.append(Target(claim, "≤", 1.2, ratio(mine.seconds, best.seconds)))
    return found


BENCHMARK = Benchmark(
    "plans", "The plan that was chosen against every alternative, on the engine.", Options, QUICK, run
)
