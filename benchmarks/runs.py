"""From a benchmark and its options to a report, and from that to files."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.machine import machine
from benchmarks.plot import svg
from benchmarks.report import Report, measurements_of, targets_of
from benchmarks.table import Table
from benchmarks.targets import target_table
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from benchmarks.benchmark import Benchmark, Findings
    from benchmarks.setting import Setting

#: what follows the name of a study in reports of it on the engine
ON_ENGINE = "-engine"


def run(benchmark: Benchmark, options: Any, setting: Setting, *, is_quick: bool) -> Report:
    """Run it; a study of kernels on the engine, if that is asked for."""
    name, find = benchmark.name, benchmark.run
    if "engine" in setting.extras:
        name, find = f"{name}{ON_ENGINE}", partial(_on_engine, name)
    findings = find(setting, options)
    targets = [target_table(findings.targets)] if findings.targets else []
    return Report(
        benchmark=name,
        about=benchmark.about,
        is_quick=is_quick,
        when=datetime.now(UTC).isoformat(timespec="minutes"),
        rounds=setting.rounds,
        options={name: _plain(value) for name, value in asdict(options).items()},
        machine=machine(),
        contestants={name: dict(settings) for name, settings in findings.contestants.items()},
        measurements=measurements_of(findings),
        targets=targets_of(findings),
        notes=findings.notes,
        tables=[*findings.tables, *targets],
        charts=findings.charts,
    )


def _on_engine(benchmark: str, setting: Setting, options: Any) -> Findings:
    from benchmarks.studies.on_engine import STUDIES, on_engine

    if benchmark not in STUDIES:
        names = ", ".join(STUDIES)
        raise WindrowError(f"`{benchmark}` runs on the engine anyway", code="usage", hint=f"for {names}")
    return on_engine(benchmark, setting, options)


def settings_table(report: Report) -> Table:
    """Who ran with what."""
    rows = [
        (contestant, name, value)
        for contestant, settings in report.contestants.items()
        for name, value in settings.items()
    ]
    return Table("Settings", ("contestant", "setting", "value"), tuple(rows))


def publish(report: Report, out: Path) -> list[Path]:
    """Write the JSON and the plots; gives their paths."""
    written = [out / f"{report.benchmark}.json"]
    report.save(written[0])
    return written + draw(report, out)


def draw(report: Report, out: Path) -> list[Path]:
    """Write the plots of a report."""
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for chart in report.charts:
        path = out / f"{chart.name}.svg"
        path.write_text(svg(chart), encoding="utf-8")
        paths.append(path)
    return paths


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
