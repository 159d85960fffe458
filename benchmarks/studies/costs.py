"""Tables and charts of what a query costs by itself: processor time per 1000 rows, and what it keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Measured
from benchmarks.statistics import Summary, ratio
from benchmarks.table import Table
from benchmarks.times import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.rounds import Measurement, Variant

PER_1000 = "processor milliseconds per 1000 rows"
STATE_ROWS, STATE_SIZE, CHANGES = "state rows", "state MiB", "changes"


def cost_table(
    title: str, measured: Measured, contestants: Sequence[str], variants: Sequence[Variant]
) -> Table:
    """A row per variant, a column per contestant: medians with their spread."""
    rows = []
    for variant in variants:
        cells = (_cell(measured.find(name, **variant)) for name in contestants)
        rows.append((*map(_named, variant.values()), *cells))
    return Table(f"{title}: {PER_1000}", (*variants[0], *contestants), tuple(rows))


def state_table(
    title: str, measured: Measured, contestants: Sequence[str], variants: Sequence[Variant], figure: str
) -> Table:
    """The same for what is kept at the end of a run."""
    rows = []
    for variant in variants:
        found = (measured.find(name, **variant) for name in contestants)
        cells = (ABSENT if each is None else _figure(each.figures[figure]) for each in found)
        rows.append((*map(_named, variant.values()), *cells))
    return Table(f"{title}: {figure}", (*variants[0], *contestants), tuple(rows))


def cost_chart(
    name: str, title: str, measured: Measured, contestants: Sequence[str], across: str, **fixed: int | str
) -> Chart:
    """Milliseconds over one part of the variant; the others are fixed."""
    lines = []
    for contestant in contestants:
        mine = [
            each
            for each in measured.measurements
            if each.contestant == contestant and fixed.items() <= dict(each.variant).items()
        ]
        if mine:
            lines.append(
                Series(contestant, tuple(sorted((_point(each, across) for each in mine), key=_place)))
            )
    return Chart(name, title, across, PER_1000, tuple(lines))


def state_chart(
    name: str, title: str, measured: Measured, contestants: Sequence[str], across: str, figure: str
) -> Chart:
    """The same for what is kept at the end of a run."""
    lines = []
    for contestant in contestants:
        mine = [each for each in measured.measurements if each.contestant == contestant]
        points = [Point(float(each.variant[across]), *(3 * (each.figures[figure],))) for each in mine]
        lines.append(Series(contestant, tuple(sorted(points, key=_place))))
    return Chart(name, title, across, figure, tuple(lines))


def compared(measured: Measured, of: str, to: str, **variant: int | str) -> Summary | None:
    """How many times longer one contestant takes than another."""
    one, other = measured.find(of, **variant), measured.find(to, **variant)
    return ratio(one.seconds, other.seconds) if one and other else None


def merged(parts: Sequence[Measured]) -> Measured:
    """What was measured one after the other, as one."""
    return Measured([each for part in parts for each in part.measurements])


def _cell(found: Measurement | None) -> str:
    if found is None:
        return ABSENT
    time = found.time
    return Summary(time.median * 1000, time.least * 1000, time.greatest * 1000, time.count).text(2)


def _point(found: Measurement, across: str) -> Point:
    time = found.time
    return Point(float(found.variant[across]), time.median * 1000, time.least * 1000, time.greatest * 1000)


def _place(point: Point) -> float:
    return point.x


def _named(value: int | str) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}".rstrip("0").rstrip(".")
