"""What operators cost over each kind of window (Patroumpas and Sellis 2011, Figures 6 to 13).

δ, SUM, MAX and ⋈ over the connections of a link, or two: over windows of time by slide and extent, over
count-based and partitioned ones by size, over landmark windows as they grow. Rows come in waves, all rows
of a wave at one instant; a step is a wave. Windows are full before anything is timed, except for landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.benchmark import Findings
from benchmarks.rounds import Case, Measured, measure
from benchmarks.studies.connections import links, query
from benchmarks.studies.costs import (
    STATE_ROWS,
    compared,
    cost_chart,
    cost_table,
    merged,
    state_chart,
    state_table,
)
from benchmarks.studies.steps import Standing, timed
from benchmarks.targets import Target
from windrow.kernels.relational.expiry_layouts import Counted, Options as Physical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chart import Chart
    from benchmarks.rounds import Variant
    from benchmarks.setting import Setting
    from benchmarks.suite.windows import Options
    from benchmarks.table import Table

LINKS = ("a", "b")
DISTINCT, SUM, MAX, JOIN = "δ", "SUM", "MAX", "⋈"
BY_ORDER, NEGATIVE = "⋈ by order of expiry", "⋈ negative rows"
_OPERATORS = (DISTINCT, SUM, MAX, JOIN)
QUERIES = {
    DISTINCT: "SELECT DISTINCT protocol, src, dst FROM a [{w}]",
    SUM: "SELECT src, SUM(bytes) AS v FROM a [{w}] GROUP BY src",
    MAX: "SELECT src, MAX(bytes) AS v FROM a [{w}] GROUP BY src",
    JOIN: "SELECT * FROM a [{w}], b [{w}] WHERE a.src = b.dst",
}
HOW = {BY_ORDER: Physical(counted=Counted.CATALOGUES), NEGATIVE: Physical(counted=Counted.NEGATIVE)}
_ABOUT = {
    DISTINCT: "distinct protocol, source and destination",
    SUM: "SUM(bytes) by source",
    MAX: "MAX(bytes) by source",
    JOIN: "two links, source of one = destination of the other",
    BY_ORDER: "the same over count-based windows: results are kept by the order in which they expire",
    NEGATIVE: "the same: rows that leave look for their partners again",
}


@dataclass(frozen=True)
class Figure:
    """One of the paper's: who runs, what grows, and the window that it makes."""

    name: str
    title: str
    across: str
    who: tuple[str, ...]
    places: tuple[int, ...]
    #: with {x} for what grows
    window: str
    by_rate: bool = False


def figures(options: Options) -> list[Figure]:
    """All of them; 12 and 13 are time and state of the same runs."""
    middle = sorted(options.sizes)[len(options.sizes) // 2]
    partitioned = tuple(size // 5 for size in options.sizes)
    return [
        Figure(
            "6", "Time windows, RANGE 10 waves", "slide", _OPERATORS, options.slides, "RANGE 10 SLIDE {x}"
        ),
        Figure("7", "Time windows, SLIDE 1 wave", "extent", _OPERATORS, options.extents, "RANGE {x} SLIDE 1"),
        Figure("8", "Joins of count-based windows", "rows", (BY_ORDER, NEGATIVE), options.sizes, "ROWS {x}"),
        Figure("9", "Count-based windows", "rows", _OPERATORS, options.sizes, "ROWS {x}"),
        Figure(
            "10",
            f"δ over ROWS {middle:,}",
            "rows of a wave",
            (DISTINCT,),
            options.rates,
            f"ROWS {middle}",
            by_rate=True,
        ),
        Figure(
            "11",
            "Windows partitioned by protocol",
            "rows of a partition",
            _OPERATORS,
            partitioned,
            "ROWS {x} PARTITION BY protocol",
        ),
        Figure("12", "Landmark windows", "waves so far", _OPERATORS, options.landmarks, "LANDMARK"),
    ]


def run(setting: Setting, options: Options) -> Findings:
    """Figure by figure and place by place, all operators in turn."""
    found = {each.name: _measured(setting, options, each) for each in figures(options)}
    settings = {name: {"what": about} for name, about in _ABOUT.items()}
    settings["all"] = {
        "rows": f"`network`, waves of {options.rate:,} rows on each link",
        "steps": f"{options.steps} waves, one at a time, after the window is full",
        "kernels": "those for any plan; answers are what changes",
    }
    return Findings(
        settings,
        [each for measured in found.values() for each in measured.measurements],
        [table for each in figures(options) for table in _tables(each, found[each.name])],
        [chart for each in figures(options) for chart in _charts(each, found[each.name])],
        shapes(options, found),
    )


def _measured(setting: Setting, options: Options, figure: Figure) -> Measured:
    parts = []
    for place in figure.places:
        cases = list(_cases(options, figure, place))
        parts.append(measure(cases, setting.rounds, setting.say))
    return merged(parts)


def _cases(options: Options, figure: Figure, place: int) -> Iterator[Case]:
    rate = place if figure.by_rate else options.rate
    window = figure.window.format(x=place)
    full = waves(window, rate, place)
    steps = -(-options.steps // place) * place if figure.across == "slide" else options.steps
    log = links(LINKS, full + steps + 1, rate)
    batches = log.batches(full + 1, 1, steps)
    for who in figure.who:
        operator = JOIN if who in HOW else who
        emit = query(QUERIES[operator].format(w=window), LINKS)
        standing = Standing.of(emit, HOW.get(who)).filled(log.filling(full)).filled(log.batches(full, 1, 1))
        yield Case(
            who,
            {"figure": figure.name, figure.across: place},
            partial(timed, standing, batches),
            question=(figure.name, operator, place),
        )


def waves(window: str, rate: int, place: int) -> int:
    """How many waves fill a window; partitions are unequal, so that the larger ones are full by then.

    >>> waves("RANGE 10 SLIDE 2", 100, 2), waves("ROWS 500", 100, 500), waves("LANDMARK", 100, 7)
    (10, 6, 7)
    """
    kind, *rest = window.split()
    if kind == "LANDMARK":
        return place
    size = int(rest[0])
    return size if kind == "RANGE" else -(-size * (5 if "PARTITION" in rest else 1) // rate) + 1


def _tables(figure: Figure, measured: Measured) -> list[Table]:
    variants: list[Variant] = [{"figure": figure.name, figure.across: place} for place in figure.places]
    tables = [cost_table(figure.title, measured, figure.who, variants)]
    if figure.name in ("8", "12"):
        tables.append(state_table(figure.title, measured, figure.who, variants, STATE_ROWS))
    return tables


def _charts(figure: Figure, measured: Measured) -> list[Chart]:
    who, across, title = figure.who, figure.across, figure.title
    found = [cost_chart(f"windows-{figure.name}", title, measured, who, across, figure=figure.name)]
    if figure.name == "12":
        found.append(state_chart("windows-13", title, measured, who, across, STATE_ROWS))
    return found


def shapes(options: Options, found: dict[str, Measured]) -> list[Target]:
    """What the paper found, as ratios of times."""
    size = max(options.sizes)
    claims = [
        Target(
            f"ROWS {size:,}: {NEGATIVE}' time to {BY_ORDER}'s",
            "≥",
            1.0,
            compared(found["8"], NEGATIVE, BY_ORDER, figure="8", rows=size),
        )
    ]
    for name, across, place in (("7", "extent", max(options.extents)), ("9", "rows", size)):
        for cheaper in (SUM, DISTINCT):
            claims.append(
                Target(
                    f"{across} {place:,}: {JOIN}'s time to {cheaper}'s",
                    "≥",
                    1.0,
                    compared(found[name], JOIN, cheaper, figure=name, **{across: place}),
                )
            )
    return claims
