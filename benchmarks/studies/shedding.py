"""Window-aware load shedding: what must be given up for a given excess of load.

After section 4 of Tatbul and Zdonik. For each excess the least share p is looked for that brings the work of
the delays down to what a plan without shedding does at full capacity. The drop rate is the share of answers
that is then missing. All answers given are checked to be among the exact ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.benchmark import Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Measurement
from benchmarks.statistics import summary
from benchmarks.studies.delays import (
    Nested,
    Ran,
    Shared,
    Single,
    Sum,
    check_subset,
    longest_gap,
    one_row_per_tick,
    wrong,
)
from benchmarks.studies.shedding_overhead import overhead
from benchmarks.table import Table
from benchmarks.targets import Target
from benchmarks.theory.shedding import Plan
from benchmarks.times import ABSENT
from windrow.shedding.rules import RDROP, ROW_DROP, WINDROP, Guarantee, WinDrop

if TYPE_CHECKING:
    from benchmarks.setting import Setting
    from benchmarks.suite.shedding import Options

RDROPS, NESTED1, NESTED2 = "RDrop", "Nested1", "Nested2"
SPLIT_R, SPLIT_W, SHARED_W = "Split_RDrop", "Split_WinDrop", "Shared_WinDrop"
TUMBLING, SLIDING = "tumbling", "slides by 1"
EXCESS, DROP_RATE = "excess load in percent", "drop rate"
_STEP = 0.0025
_ABOUT = {
    RDROPS: ("answers are dropped at random, after both sums", RDROP),
    NESTED1: ("windows are dropped between the two sums", WINDROP),
    NESTED2: ("windows are dropped at the input, by the pipeline rule", WINDROP),
    SPLIT_R: ("answers are dropped at random, after each sum", RDROP),
    SPLIT_W: ("windows are dropped after the split, for each sum by itself", WINDROP),
    SHARED_W: ("windows are dropped before the split, by the fan-out rule", WINDROP),
    "RowDrop": ("rows are dropped at random at the input, for comparison only", ROW_DROP),
}
_NOTES = [
    "A drop rate of 1 with `!` means that even without any answer there is too much work; – means that MAX"
    " GAP does not allow windows enough to be dropped. `0.909: +20 %` means the same, and what can be borne"
    " where as many are dropped as it allows.",
    "Work is counted, not timed: what the delay operators come to for the rows that pass them. The overhead"
    " is timed.",
    "Every answer under RDrop and WinDrop was found among the exact answers; otherwise the run had failed.",
]

Way = Callable[[float], Ran]


@dataclass(frozen=True)
class Found:
    """What a way of shedding had to give up; `is_enough` is False if there is too much work all the same."""

    p: float
    drop_rate: float
    seconds: float
    is_enough: bool = True

    @property
    def text(self) -> str:
        """For a cell."""
        return f"{self.drop_rate:.3f}" + ("" if self.is_enough else " !")


@dataclass(frozen=True)
class Borne:
    """The greatest excess of load that can be shed, and what is missing then."""

    drop_rate: float
    excess: float

    @property
    def text(self) -> str:
        """For a cell."""
        return f"{self.drop_rate:.3f}: +{100 * self.excess:.0f} %"


class Search:
    """The least p for every excess, of one way to shed in one plan."""

    def __init__(self, name: str, way: Way, exact: Ran, most: float) -> None:
        self.name, self._way, self._exact, self._most = name, way, exact, most
        self._known: dict[int, Ran] = {}

    @property
    def borne(self) -> Borne:
        """What can be borne where as many windows are dropped as may be."""
        given = self._ran(int(self._most / _STEP))
        return Borne(1 - given.count / self._exact.count, self._exact.work / given.work - 1)

    def at(self, excess: int) -> Found | None:
        """None if as much as that may not be dropped."""
        capacity = self._exact.work / (1 + excess / 100)
        began = time.process_time()
        low, high = 0, int(self._most / _STEP)
        if self._ran(high).work > capacity:
            return Found(1.0, 1.0, 0.0, is_enough=False) if self._most == 1.0 else None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._ran(middle).work <= capacity else (middle + 1, high)
        given = self._ran(low)
        seconds = time.process_time() - began
        return Found(low * _STEP, 1 - given.count / self._exact.count, seconds)

    def _ran(self, step: int) -> Ran:
        if step not in self._known:
            ran = self._way(step * _STEP)
            check_subset(self.name, ran, self._exact)
            self._known[step] = ran
        return self._known[step]


Results = Mapping[tuple[str, int], Found | None]


def run(setting: Setting, options: Options) -> Findings:
    """Nested and shared plans, window parameters, and what it costs when nothing is dropped."""
    gap, span = options.max_gap, (options.max_gap + 1) * 100
    nested = Nested(one_row_per_tick(options.cycles * span), gap)
    setting.say("nested plan")
    by_nesting = _searched(
        nested.exact(),
        options.excess,
        {
            RDROPS: (nested.rdrop, 1.0),
            NESTED1: (nested.nested1, nested.most),
            NESTED2: (nested.nested2, nested.most),
        },
    )
    shared = Shared(one_row_per_tick(options.cycles * span // 5), gap)
    setting.say("shared plan")
    by_sharing = _searched(
        shared.exact(),
        options.excess,
        {
            SPLIT_R: (shared.split_rdrop, 1.0),
            SPLIT_W: (shared.split_windrop, shared.most_apart),
            SHARED_W: (shared.shared_windrop, shared.most),
        },
    )
    sizes, slides = _sizes(setting, options), _slides(setting, options)
    idle = overhead(setting, options)
    nested_ways, shared_ways = (RDROPS, NESTED1, NESTED2), (SPLIT_R, SPLIT_W, SHARED_W)
    return Findings(
        {name: {"what": what, "promise": promise.text()} for name, (what, promise) in _ABOUT.items()},
        [*_measurements("nested", by_nesting), *_measurements("shared", by_sharing), *idle.measurements],
        [
            _rates("Nested sums: drop rate by excess load", by_nesting, nested_ways, options.excess),
            _rates("Shared rows: drop rate by excess load", by_sharing, shared_ways, options.excess),
            _promises(nested, options),
            sizes.table("Effect of the window's size, excess 25 %: drop rate"),
            slides.table("Effect of the slide, windows of 100: drop rate"),
            idle.table,
        ],
        [
            _chart("shedding-nested", "Nested sums", by_nesting, nested_ways),
            _chart("shedding-shared", "Shared rows", by_sharing, shared_ways),
            slides.chart("shedding-slide", "Effect of the slide, windows of 100 ticks"),
        ],
        [
            *_ordered(by_nesting, nested_ways, options.excess),
            *_ordered(by_sharing, shared_ways, options.excess),
            *idle.targets,
        ],
        _NOTES,
    )


def _searched(exact: Ran, excess: Sequence[int], ways: Mapping[str, tuple[Way, float]]) -> Results:
    found: dict[tuple[str, int], Found | None] = {}
    for name, (way, most) in ways.items():
        search = Search(name, way, exact, most)
        found |= {(name, each): search.at(each) for each in excess}
    return found


def _measurements(plan: str, results: Results) -> list[Measurement]:
    return [
        Measurement(
            name,
            {"plan": plan, EXCESS: excess},
            [found.seconds],
            figures={"p": found.p, DROP_RATE: found.drop_rate},
        )
        for (name, excess), found in results.items()
        if found is not None
    ]


def _rates(title: str, results: Results, ways: Sequence[str], excess: Sequence[int]) -> Table:
    rows = [
        (f"{each} %", *(ABSENT if (found := results[name, each]) is None else found.text for name in ways))
        for each in excess
    ]
    return Table(title, ("excess load", *ways), tuple(rows))


def _chart(name: str, title: str, results: Results, ways: Sequence[str]) -> Chart:
    lines = []
    for way in ways:
        known = [(excess, found) for (who, excess), found in results.items() if who == way and found]
        lines.append(Series(way, tuple(_point(excess, found.drop_rate) for excess, found in known)))
    return Chart(name, f"{title}: answers missing", EXCESS, DROP_RATE, tuple(lines), is_linear=True)


def _ordered(results: Results, ways: Sequence[str], excess: Sequence[int]) -> list[Target]:
    """The earlier windows are dropped, the fewer are: in the worst case over all loads."""
    targets = []
    for late, early in pairwise(ways):
        pairs = [(results[early, each], results[late, each]) for each in excess]
        ratios = [one.drop_rate / two.drop_rate for one, two in pairs if one and two and two.drop_rate]
        worst = summary([max(ratios)]) if ratios else None
        targets.append(Target(f"drop rate of {early} to {late}, greatest of all loads", "≤", 1.0, worst))
    return targets


def _promises(plan: Nested, options: Options) -> Table:
    """Half of the windows, answers or rows are dropped: what is kept of what was promised."""
    small = Nested(plan.rows.head(options.cycles // 4 * 100 * (plan.max_gap + 1)), plan.max_gap)
    exact = small.exact()
    ways: list[tuple[str, Way, Guarantee]] = [
        (NESTED2, small.nested2, WINDROP),
        (RDROPS, small.rdrop, RDROP),
        ("RowDrop", small.row_drop, ROW_DROP),
    ]
    rows = []
    for name, way, promise in ways:
        given = way(0.5)
        share = f"{100 * wrong(given, exact) / max(1, given.count):.0f} %"
        saved = f"{100 * (1 - given.work / exact.work):.0f} %"
        rows.append((name, promise.text(plan.max_gap), share, str(longest_gap(given, exact)), saved))
    columns = ("way, p = 0.5", "promise", "wrong answers", "longest gap", "work saved")
    return Table("What is promised, and what is seen", columns, tuple(rows))


# ---------------------------------------------------------------- window parameters


@dataclass(frozen=True)
class Compared:
    """Drop rates as measured, and by the model, by a name of the row and of the column."""

    first: str
    measured: Mapping[tuple[int, str], float | Borne]
    modelled: Mapping[tuple[int, str], float | Borne]

    def table(self, title: str) -> Table:
        """Measured and modelled side by side."""
        across = list(dict.fromkeys(column for _, column in self.measured))
        rows = []
        for place in dict.fromkeys(row for row, _ in self.measured):
            cells = [
                _share(kind[place, column]) for column in across for kind in (self.measured, self.modelled)
            ]
            rows.append((str(place), *cells))
        names = [f"{column}{what}" for column in across for what in ("", ", model")]
        return Table(title, (self.first, *names), tuple(rows))

    def chart(self, name: str, title: str) -> Chart:
        """A line for each column; the model's beside it."""
        lines = []
        for kind, what in ((self.measured, ""), (self.modelled, ", model")):
            for column in dict.fromkeys(column for _, column in kind):
                known = [(row, rate) for (row, other), rate in kind.items() if other == column]
                points = tuple(_point(row, rate) for row, rate in known if not isinstance(rate, Borne))
                lines.append(Series(f"{column}{what}", points))
        return Chart(name, title, self.first, DROP_RATE, tuple(lines), is_linear=True)


def _sizes(setting: Setting, options: Options) -> Compared:
    wanted = {
        (size, name): (Sum(size, size if name == TUMBLING else 1), 25)
        for size in options.sizes
        for name in (TUMBLING, SLIDING)
    }
    return _compared("window", setting, options, wanted)


def _slides(setting: Setting, options: Options) -> Compared:
    wanted = {
        (slide, f"+{excess} %"): (Sum(100, slide), excess)
        for slide in options.slides
        for excess in options.slide_excess
    }
    return _compared("slide", setting, options, wanted)


def _compared(
    first: str, setting: Setting, options: Options, wanted: Mapping[tuple[int, str], tuple[Sum, int]]
) -> Compared:
    measured: dict[tuple[int, str], float | Borne] = {}
    modelled: dict[tuple[int, str], float | Borne] = {}
    searches: dict[Sum, Search] = {}
    for place, (size, excess) in wanted.items():
        setting.say(f"windows of {size.range} ticks, slide {size.slide}, excess {excess} %")
        if size not in searches:
            # whole cycles, and at least as many rows as several windows have
            rows = max(options.cycles * (options.max_gap + 1) * size.slide, 20 * size.range)
            plan = Single(one_row_per_tick(rows), options.max_gap, size)
            searches[size] = Search("WinDrop", plan.windrop, plan.exact(), plan.most)
        found = searches[size].at(excess)
        measured[place] = found.drop_rate if found else searches[size].borne
        modelled[place] = _by_the_model(size, excess, options.max_gap)
    return Compared(first, measured, modelled)


def _by_the_model(size: Sum, excess: int, max_gap: int) -> float | Borne:
    plan = Plan(cost1=5.0, sel1=1.0, cost2=0.0, sel2=1 / size.slide, cost3=5.0)
    drop = WinDrop(size.range, size.slide, max_gap)
    needed = plan.needed(1 + excess / 100, drop, plan.load(1.0))
    if needed is not None:
        return needed
    return Borne(drop.most, plan.load(1.0) / plan.with_windrop(1.0, drop, drop.most) - 1)


def _share(rate: float | Borne) -> str:
    return rate.text if isinstance(rate, Borne) else f"{rate:.3f}"


def _point(x: float, y: float) -> Point:
    return Point(float(x), y, y, y)
