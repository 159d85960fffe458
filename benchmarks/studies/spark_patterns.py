"""Query 1 of the update patterns on Spark: Windrow's join, and Spark's own join of two streams."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.rounds import Case, measure
from benchmarks.statistics import ratio
from benchmarks.studies.links_on_disk import links_on_disk
from benchmarks.targets import Target
from benchmarks.times import times_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.benchmark import Findings
    from benchmarks.rounds import Variant
    from benchmarks.setting import Setting

#: who asks for it, and the note if nobody does
SPARK = "spark"
WITHOUT_SPARK = "Spark's own join was left out: it takes part in Query 1 with `--with spark`."
WINDROW, JOIN = "windrow on spark", "spark's join"
#: rows of so many windows pass
_WINDOWS = 3
#: with few results and with many, which Spark is asked for at the shortest window only
_FEW, _MANY = "ftp", "telnet"


def with_spark(found: Findings, setting: Setting, windows: Sequence[int]) -> Findings:
    """Whole runs of both, over files of the same links: seconds by the clock, not of steps on kernels."""
    from benchmarks.contestants.link_joins import SparkLinks, WindrowLinks

    ours, spark = WindrowLinks(setting), SparkLinks(setting, "rocksdb")
    logs = {window: links_on_disk(setting.fresh(f"links-{window}"), _WINDOWS * window) for window in windows}
    cases = []
    for protocol, window in (*((_FEW, window) for window in windows), (_MANY, min(windows))):
        for name, join in ((WINDROW, ours.join), (JOIN, spark.join)):
            run = partial(join, logs[window], window, protocol)
            cases.append(Case(name, {"protocol": protocol, "window": window}, run))
    measured = measure(cases, setting.rounds, setting.say)
    variants: list[Variant] = [dict(case.variant) for case in cases if case.contestant == WINDROW]
    title = f"Query 1 on Spark: whole runs over the rows of {_WINDOWS} windows"
    table = times_table(title, measured, (WINDROW, JOIN), variants)
    targets = []
    for variant in variants:
        mine, theirs = measured.find(WINDROW, **variant), measured.find(JOIN, **variant)
        if mine and theirs:
            where = f"{variant['protocol']}, window {variant['window']:,}"
            claim = f"Query 1 on Spark, {where}: time of Spark's join to Windrow's"
            targets.append(Target(claim, "≥", 1.0, ratio(theirs.seconds, mine.seconds)))
    return replace(
        found,
        contestants={**found.contestants, WINDROW: ours.settings, JOIN: spark.settings},
        measurements=[*found.measurements, *measured.measurements],
        tables=[*found.tables, table],
        targets=[*found.targets, *targets],
    )
