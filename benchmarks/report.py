"""A run's results as one JSON document: what tables, plots and documents are made from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from benchmarks.chart import Chart, Point, Series
from benchmarks.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.benchmark import Findings


@dataclass(frozen=True)
class Report:
    """Everything about one run of a benchmark."""

    benchmark: str
    about: str
    is_quick: bool
    when: str
    rounds: int
    options: dict[str, Any]
    machine: dict[str, str]
    contestants: dict[str, dict[str, str]]
    measurements: list[dict[str, Any]]
    targets: list[dict[str, Any]]
    notes: list[str]
    tables: list[Table]
    charts: list[Chart]

    def save(self, path: Path) -> None:
        """Write it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` has written."""
        told = json.loads(path.read_text(encoding="utf-8"))
        told["tables"] = [_table(each) for each in told["tables"]]
        told["charts"] = [_chart(each) for each in told["charts"]]
        return cls(**told)


def measurements_of(findings: Findings) -> list[dict[str, Any]]:
    """All samples, not only what they come to."""
    return [
        {
            "contestant": each.contestant,
            **each.variant,
            "seconds": each.seconds,
            "answers": each.answers,
            **each.figures,
            **({"samples": each.samples} if each.samples else {}),
        }
        for each in findings.measurements
    ] + [
        {"contestant": each.contestant, **each.variant, "unfinished": str(each.unfinished)}
        for each in findings.unfinished
    ]


def targets_of(findings: Findings) -> list[dict[str, Any]]:
    """What was to be reached, and was or was not."""
    return [{**asdict(target), "reached": target.is_reached} for target in findings.targets]


def _table(told: dict[str, Any]) -> Table:
    return Table(told["title"], tuple(told["columns"]), tuple(tuple(row) for row in told["rows"]))


def _chart(told: dict[str, Any]) -> Chart:
    series = tuple(
        Series(each["name"], tuple(Point(**point) for point in each["points"])) for each in told["series"]
    )
    is_linear = told.get("is_linear", False)
    return Chart(told["name"], told["title"], told["x_label"], told["y_label"], series, is_linear)
