"""What shedding costs while nothing is shed: a filtered sum with a WinDrop of p = 0, against none at all.

Per batch, the first asks which rows nobody needs, and decides anew: what the engine does in every epoch for
queries that have agreed to lose windows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.contestant import Outcome
from benchmarks.rounds import Case, Measured, Measurement, measure
from benchmarks.statistics import ratio
from benchmarks.studies.delays import one_row_per_tick
from benchmarks.studies.extents import Paned, batches_of
from benchmarks.studies.steps import Batch
from benchmarks.table import Table
from benchmarks.targets import Target
from windrow.engine.explain import declared
from windrow.execution.ingest import without
from windrow.language.compile import compile_query
from windrow.shedding.agreement import SheddableQuery, droppable, share
from windrow.shedding.phases import Phase, Phases

if TYPE_CHECKING:
    from benchmarks.setting import Setting
    from benchmarks.suite.shedding import Options
    from windrow.algebra.plan import Emit

WITH, WITHOUT = "WinDrop, p = 0", "no WinDrop"
WINDOW, SELECTIVITY = "window", "selectivity in percent"
_STREAM = ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts ORDERED SHEDDABLE")
#: values are 1 to 999
_VALUES, _LEAST = 1000, 0.98
_SELECTIVITIES = (100, 50)
_OWN = "share of the WinDrop itself"


@dataclass(frozen=True)
class Idle:
    """What was measured."""

    measurements: list[Measurement]
    table: Table
    targets: list[Target]


def overhead(setting: Setting, options: Options) -> Idle:
    """Both at every window and selectivity, in alternating rounds."""
    batches = batches_of(one_row_per_tick(options.overhead_rows), options.rows_per_batch)
    variants = [{WINDOW: window, SELECTIVITY: part} for window in options.sizes for part in _SELECTIVITIES]
    cases = []
    for variant in variants:
        emit = _filtered(variant[WINDOW], variant[SELECTIVITY])
        cases += [
            Case(WITHOUT, variant, partial(Paned(emit).run, batches)),
            Case(WITH, variant, partial(_guarded, emit, options.max_gap, batches)),
        ]
    measured = measure(cases, max(setting.rounds, options.overhead_rounds), setting.say)
    rows = []
    for window in options.sizes:
        pairs = [_pair(measured, {WINDOW: window, SELECTIVITY: part}) for part in _SELECTIVITIES]
        ratios = [ratio(one.seconds, other.seconds).text(3) for one, other in pairs]
        own = [f"{100 * other.figures[_OWN]:.2f} %" for _, other in pairs]
        rows.append((str(window), *ratios, *own))
    columns = (
        WINDOW,
        *(f"selectivity {part} %" for part in _SELECTIVITIES),
        *(f"WinDrop's own time at most, {part} %" for part in _SELECTIVITIES),
    )
    title = f"Throughput with a WinDrop of p = 0 to throughput without, {_rounds(measured)} rounds"
    return Idle(measured.measurements, Table(title, columns, tuple(rows)), [_target(measured)])


def _rounds(measured: Measured) -> int:
    """In how many rounds each of them ran."""
    return min(len(each.seconds) for each in measured.measurements)


def _target(measured: Measured) -> Target:
    """Over all windows: the processor time of each round, with and without."""
    both = [
        [
            sum(times)
            for times in zip(*(m.seconds for m in measured.measurements if m.contestant == name), strict=True)
        ]
        for name in (WITHOUT, WITH)
    ]
    return Target("throughput with a WinDrop of p = 0 to throughput without", "≥", _LEAST, ratio(*both))


def _pair(measured: Measured, variant: dict[str, int]) -> tuple[Measurement, Measurement]:
    one, other = measured.find(WITHOUT, **variant), measured.find(WITH, **variant)
    assert one is not None
    assert other is not None
    return one, other


def _filtered(window: int, percent: int) -> Emit:
    where = f"WHERE v <= {_VALUES * percent // 100}"
    text = f"SELECT RSTREAM(k, SUM(v) AS m) FROM s [RANGE {window} SLIDE {window}] {where} GROUP BY k"
    return compile_query(text, declared({"s": _STREAM}, {}))


def _guarded(emit: Emit, max_gap: int, batches: Sequence[Batch]) -> Outcome:
    """The same behind a WinDrop: which rows are needless is asked for every batch, and p decided after it."""
    (group,) = share([SheddableQuery("q", emit, max_gap)]).groups
    agreed = {member.name: member for member in group.members}
    began = time.process_time()
    phases, kept = Phases((Phase(-1, group.cycles, 0.0, seed=1),)), []
    for batch in batches:
        rows = batch.rows["s"]
        shed = droppable("s", ["q"], agreed, {"q": phases}, batch.clock - rows.height, batch.clock)
        remaining = without(rows, "ts", [(each.begin, each.end) for each in shed])
        kept.append(Batch({"s": remaining}, batch.clock))
        phases = phases.then(batch.clock + group.drop.window, group.cycles, 0.0, seed=1)
    seconds = time.process_time() - began
    outcome = Paned(emit).run(kept)
    whole = seconds + outcome.seconds
    return Outcome(whole, outcome.answers, {_OWN: seconds / whole})
