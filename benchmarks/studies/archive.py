"""Windows on disk, cut in different ways: what an update, a search and a scan take."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from benchmarks.archives import Layout, Rows, Times, layouts, run_archive, wave
from benchmarks.benchmark import Findings
from benchmarks.chart import Chart, Point, Series
from benchmarks.rounds import Measurement
from benchmarks.statistics import Summary, ratio, summary
from benchmarks.table import Table
from benchmarks.targets import Target
from windrow.errors import WindrowError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.setting import Setting
    from benchmarks.suite.archive import Options

_SPAN, _KEYS, _WIDTH = 36, 100, 100
_SMALL, _LARGE, _FLUCTUATING, _EQUAL = "small", "large", "fluctuating", "equal lives"
#: grids from here on can be twice as fast
_LEAST_SIDE = 4
#: searches between two updates, for which the best layout is named
_SEARCHES = (1, 10, 100, 1000)
#: what Golab's thesis advises (4.4.6), by size and number of searches between two updates
_ADVISED = {
    (_SMALL, 1): "NoRebuild4x4",
    (_SMALL, 1000): "Rebuild2x2",
    (_LARGE, 1): "NoRebuild3x3",
    (_LARGE, 1000): "NoRebuild2x2",
}
#: advice that costs no more than this much of the best is good advice
_GOOD = 1.25
_FAMILIES = ("R-ins", "Rebuild", "D-ins", "NoRebuild")
_ABOUT = {
    "R-ins": "cut by insertion; a sub-index that changes is written anew",
    "R-exp": "cut by expiry; a sub-index that changes is written anew",
    "D-ins": "cut by insertion; pieces, and those with expired rows are written anew",
    "Rebuild": "cut by insertion and expiry, by turns; a sub-index that changes is written anew",
    "NoRebuild": "cut by both, by turns; pieces, and those with expired rows are written anew",
    "-chr": "cut by insertion and expiry, one piece of time after the other",
    "-lazy": "expired rows stay on the disk, unseen, until they are half of their piece",
    "Wave": "cut by insertion, for rows that live equally long; written anew",
}
_NOTES = [
    f"Rows have a key, one of {_KEYS}, {_WIDTH} bytes of contents, and live up to {_SPAN} periods; an update"
    " comes every period. Everything is in the cache of the system; files and directories are synced.",
    "After every update come the searches and one scan. All layouts find the same rows.",
    "Rows per update are those that are written, new or again: they do not depend on the machine. A grid of"
    " n sub-indices writes (2√n-1)/n of what an index by insertion writes, so twice as fast is out of reach"
    " below 16; the ratio of the best is that of the two quickest of any size.",
    f"Advice holds if an update and its searches take no more than {_GOOD} times what the best layout takes;"
    " layouts that leave expired rows on the disk are not among them, since the thesis has none.",
]


#: by workload and name of the layout: one for each round
Found = dict[tuple[str, str], list[Times]]


@dataclass(frozen=True)
class _Workload:
    name: str
    rows: Callable[[int], Rows]
    updates: int
    layouts: list[Layout]


def run(setting: Setting, options: Options) -> Findings:
    """All layouts on the same rows, round by round."""
    found: Found = {}
    workloads = _workloads(options)
    main = [workload for workload in workloads if workload.name in (_SMALL, _LARGE)]
    for number in range(setting.rounds):
        for workload in workloads:
            order = workload.layouts if number % 2 == 0 else workload.layouts[::-1]
            for layout in order:
                rows = workload.rows(number)
                folder = setting.fresh("archive")
                times = run_archive(folder, layout, rows, workload.updates, options.probes)
                found.setdefault((workload.name, layout.name), []).append(times)
                setting.say(
                    f"{workload.name}, round {number + 1}: {layout.name}: {times.update:.3f} s per update"
                )
            _check(found, workload)
    return Findings(
        {name: {"what": about} for name, about in _ABOUT.items()},
        [_measurement(*key, times) for key, times in found.items()],
        [
            *(_table(found, workload) for workload in workloads),
            _advice(found, main),
            _checked_advice(found, main),
        ],
        [_chart(found, workload, what) for workload in main for what in ("update", "probe", "scan")],
        list(chain.from_iterable(_targets(found, workload, options.sides) for workload in main)),
        _NOTES,
    )


def _workloads(options: Options) -> list[_Workload]:
    every = [layout for side in options.sides for layout in layouts(side)]
    main = [each for each in every if each.family not in ("R-exp", "Rebuild-chr")]
    turned = [each for each in main if each.family in _FAMILIES]
    one_life = [
        *(wave(side * side) for side in options.sides),
        *(each for each in main if each.family == "Rebuild"),
    ]
    made = [_Workload(_SMALL, _maker(options.small), options.updates, every)]
    if options.large:
        made.append(_Workload(_LARGE, _maker(options.large), options.large_updates, main))
    made.append(_Workload(_FLUCTUATING, _maker(options.small, changes=True), options.updates, turned))
    made.append(_Workload(_EQUAL, _maker(options.small, equal=True), options.updates, one_life))
    return made


def _maker(count: int, *, changes: bool = False, equal: bool = False) -> Callable[[int], Rows]:
    return lambda seed: Rows(count, _SPAN, _KEYS, _WIDTH, seed, equal, changes)


def _check(found: Found, workload: _Workload) -> None:
    """Whether all layouts have found the same in the last round."""
    answers = {layout.name: found[workload.name, layout.name][-1].found for layout in workload.layouts}
    if len(set(answers.values())) > 1:
        raise WindrowError(f"layouts find different rows: {answers}", code="answers-differ")


def _summary(found: Found, workload: str, layout: str, what: str) -> Summary:
    return summary([getattr(times, what) for times in found[workload, layout]])


def _measurement(workload: str, layout: str, times: list[Times]) -> Measurement:
    names = ("processor", "probe", "scan", "rows_written", "files_written", "bytes")
    figures = {name: summary([getattr(each, name) for each in times]).median for name in names}
    return Measurement(layout, {"workload": workload}, [each.update for each in times], figures=figures)


def _table(found: Found, workload: _Workload) -> Table:
    rows = []
    for layout in workload.layouts:
        figures = {what: _summary(found, workload.name, layout.name, what) for what in Times.__slots__[:-1]}
        rows.append(
            (
                layout.name,
                f"{layout.sub_indices}",
                _milliseconds(figures["update"]),
                _milliseconds(figures["processor"]),
                _milliseconds(figures["probe"]),
                _milliseconds(figures["scan"]),
                f"{figures['rows_written'].median:,.0f}",
                f"{figures['files_written'].median:.1f}",
                f"{figures['bytes'].median / 1e6:.1f} MB",
            )
        )
    columns = (
        "layout",
        "sub-indices",
        "update",
        "of it processor",
        "search",
        "scan",
        "rows per update",
        "files per update",
        "on disk",
    )
    return Table(f"Times of an archive: {workload.name}", columns, tuple(rows))


def _milliseconds(found: Summary) -> str:
    scaled = Summary(found.median * 1e3, found.least * 1e3, found.greatest * 1e3, found.count)
    return scaled.text(1, " ms")


def _advice(found: Found, workloads: Sequence[_Workload]) -> Table:
    """The layout with the least time for an update and the searches until the next."""
    rows = []
    for workload in workloads:
        for removes, chosen in (("at once", False), ("late, too", True)):
            names = [each.name for each in workload.layouts if chosen or "-lazy" not in each.family]
            best = [_best(found, workload.name, names, searches) for searches in _SEARCHES]
            rows.append((workload.name, removes, *best))
    columns = ("archive", "expired rows go", *(f"{searches} searches" for searches in _SEARCHES))
    return Table("The best layout, by searches per update", columns, tuple(rows))


def _checked_advice(found: Found, workloads: Sequence[_Workload]) -> Table:
    """What the literature advises, where it was measured, against the best."""
    rows = []
    for workload in workloads:
        names = [each.name for each in workload.layouts if "-lazy" not in each.family]
        for (size, searches), advised in _ADVISED.items():
            if size == workload.name and advised in names:
                best = _best(found, workload.name, names, searches)
                spent = [_spent(found, workload.name, name, searches) for name in (advised, best)]
                holds = "yes" if spent[0] <= _GOOD * spent[1] else "no"
                times = [f"{each * 1e3:,.0f} ms" for each in spent]
                rows.append((size, f"{searches}", advised, times[0], best, times[1], holds))
    columns = ("archive", "searches", "advised", "takes", "best here", "takes", "holds")
    return Table("What Golab's thesis advises, measured here", columns, tuple(rows))


def _best(found: Found, workload: str, names: Sequence[str], searches: int) -> str:
    return min(names, key=lambda name: _spent(found, workload, name, searches))


def _spent(found: Found, workload: str, layout: str, searches: int) -> float:
    update, probe = (_summary(found, workload, layout, what).median for what in ("update", "probe"))
    return update + searches * probe


def _chart(found: Found, workload: _Workload, what: str) -> Chart:
    series = []
    for family in dict.fromkeys(layout.family for layout in workload.layouts):
        points = []
        for layout in workload.layouts:
            if layout.family == family:
                figure = _summary(found, workload.name, layout.name, what)
                points.append(Point(float(layout.sub_indices), figure.median, figure.least, figure.greatest))
        series.append(Series(family, tuple(points)))
    title = {"update": "an update", "probe": "a search", "scan": "a scan"}[what]
    name = f"archive-{workload.name}-{what}"
    return Chart(
        name, f"Seconds of {title}, {workload.name} archive", "sub-indices", "seconds", tuple(series)
    )


def _targets(found: Found, workload: _Workload, sides: Sequence[int]) -> list[Target]:
    targets = []
    for old, new in (("R-ins", "Rebuild"), ("D-ins", "NoRebuild")):
        pairs = [(f"{old}{side * side}", f"{new}{side}x{side}") for side in sides if side >= _LEAST_SIDE]
        for what, word in (("update", "time"), ("processor", "processor time")):
            for theirs, ours in pairs:
                claim = f"{workload.name}: {theirs}'s {word} of an update to {ours}'s"
                targets.append(Target(claim, "≥", 2.0, _times(found, workload.name, what, theirs, ours)))
            quickest = [_quickest(found, workload, family, what) for family in (old, new)]
            claim = f"{workload.name}: the best {old}'s {word} of an update to the best {new}'s"
            targets.append(Target(claim, "≥", 2.0, _times(found, workload.name, what, *quickest)))
    return targets


def _times(found: Found, workload: str, what: str, theirs: str, ours: str) -> Summary:
    return ratio(*([getattr(each, what) for each in found[workload, name]] for name in (theirs, ours)))


def _quickest(found: Found, workload: _Workload, family: str, what: str) -> str:
    names = [layout.name for layout in workload.layouts if layout.family == family]
    return min(names, key=lambda name: _summary(found, workload.name, name, what).median)
