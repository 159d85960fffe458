"""Documents with figures nobody types: what stands between two markers is made from the report of a run.

<!-- bench overlap -->
... replaced ...
<!-- end bench -->
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING

from benchmarks.registry import all_benchmarks
from benchmarks.runs import ON_ENGINE, draw, settings_table
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.report import Report


def write_docs(report: Report, page: Path) -> list[Path]:
    """Put a report into its place on a page, its plots beside it; gives what was written."""
    if report.is_quick:
        raise WindrowError(
            "the figures of a --quick run mean nothing",
            code="quick",
            hint="run the benchmark without --quick",
        )
    text = filled(page.read_text(encoding="utf-8"), report.benchmark, section(report))
    pictures = draw(report, page.parent)
    page.write_text(text, encoding="utf-8")
    return [page, *pictures]


def filled(text: str, name: str, content: str) -> str:
    """The text with new content between the markers of a benchmark.

    >>> filled("a\\n<!-- bench x -->\\nold\\n<!-- end bench -->\\nb\\n", "x", "new")
    'a\\n<!-- bench x -->\\n\\nnew\\n\\n<!-- end bench -->\\nb\\n'
    """
    begin, end = f"<!-- bench {name} -->", "<!-- end bench -->"
    places = re.compile(f"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if len(places.findall(text)) != 1:
        raise WindrowError(
            f"the page has no place for the benchmark {name}",
            code="no-marker",
            hint=f"put these two lines where the tables belong: {begin} and {end}",
        )
    return places.sub(lambda _: f"{begin}\n\n{content}\n\n{end}", text)


def _chosen(report: Report) -> str:
    """The options of a benchmark that are not as by default."""
    known = all_benchmarks().get(report.benchmark.removesuffix(ON_ENGINE))
    usual = {} if known is None else asdict(known.options())
    told = [
        f"--{name.replace('_', '-')} {','.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in report.options.items()
        if name in usual and value != (list(usual[name]) if isinstance(value, list) else usual[name])
    ]
    return " ".join(told)


def section(report: Report) -> str:
    """The report as Markdown."""
    machine = report.machine
    where = f"{machine.get('cores')} cores, {machine.get('memory')}, {machine.get('system')}"
    versions = ", ".join(
        f"{name} {machine[name]}" for name in ("windrow", "pyspark", "java") if name in machine
    )
    chosen = _chosen(report)
    parts = [f"Run on {report.when[:10]}, {report.rounds} rounds, {where}; {versions}."]
    parts += [f"Run with `{chosen}`; all else is as by default."] if chosen else []
    parts += [f"![{chart.title}]({chart.name}.svg)" for chart in report.charts]
    for table in report.tables:
        parts += [f"**{table.title}**", table.markdown()]
    parts += ["\n".join(f"- {note}" for note in report.notes)] if report.notes else []
    parts += ["**Settings**", settings_table(report).markdown()]
    return "\n\n".join(parts)
