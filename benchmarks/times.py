"""Tables and charts that most benchmarks share: a row per variant, a column per contestant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.chart import Chart, Point, Series
from benchmarks.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.contestant import UnfinishedError
    from benchmarks.rounds import Measured, Variant

ABSENT = "–"


def times_table(
    title: str, measured: Measured, contestants: Sequence[str], variants: Sequence[Variant]
) -> Table:
    """Medians and spreads; the number of rounds is added where it is not everyone's."""
    most = max((len(each.seconds) for each in measured.measurements), default=0)
    names = list(variants[0])
    present = [
        name
        for name in contestants
        if any(measured.find(name, **each) or measured.failure(name, **each) for each in variants)
    ]
    rows = []
    for variant in variants:
        found = [measured.find(name, **variant) for name in present]
        answers = next((each.answers for each in found if each and each.answers is not None), None)
        cells = [
            _missing(measured.failure(name, **variant))
            if each is None
            else _cell(each.seconds, each.time.text(2, " s"), most)
            for name, each in zip(present, found, strict=True)
        ]
        counted = ABSENT if answers is None else f"{answers:,}"
        rows.append((*(_shown(variant[name]) for name in names), counted, *cells))
    return Table(title, (*names, "answers", *present), tuple(rows))


def _missing(failure: UnfinishedError | None) -> str:
    return ABSENT if failure is None else failure.message


def _shown(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def times_chart(
    name: str, title: str, measured: Measured, contestants: Sequence[str], across: str, **fixed: int
) -> Chart:
    """Seconds over one part of the variant; the others are fixed."""
    series = []
    for contestant in contestants:
        mine = [
            each
            for each in measured.measurements
            if each.contestant == contestant and fixed.items() <= dict(each.variant).items()
        ]
        points = [
            Point(float(each.variant[across]), each.time.median, each.time.least, each.time.greatest)
            for each in mine
        ]
        if points:
            series.append(Series(contestant, tuple(sorted(points, key=lambda point: point.x))))
    return Chart(name, title, across, "seconds", tuple(series))


def _cell(seconds: list[float], text: str, most: int) -> str:
    if len(seconds) == most:
        return text
    return f"{text} in {len(seconds)} of {most} rounds"
