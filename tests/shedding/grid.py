"""Steering in many situations at once: `python -m tests.shedding.grid` prints what became of each.

For each situation and some seeds: the greatest latency, the share of windows lost, how far p moved in sum,
and how long after a burst the last window ends that is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from tests.shedding.live import Live

CAPACITY = 1000
#: a burst begins and ends at these seconds
BEGIN, END = 60, 120
SECONDS = 300
#: 3 seconds, twice in a hundred
PAUSES = (0.02, 3.0)


@dataclass(frozen=True)
class Outcome:
    """What became of a run. `late` and `lost` are of the time of the burst, or of all where there is none."""

    late: float
    lost: float
    moved: float
    #: seconds after the burst until everything is exact again; None if nothing was missing
    exact: float | None
    suspended: bool


@dataclass(frozen=True)
class Shape:
    """An engine: its windows, its trigger and its costs."""

    name: str
    window: int = 500
    slide: int = 500
    max_gap: int = 9
    trigger: float = 0.0
    fixed: float = 0.35
    around: float = 0.25

    def live(
        self, rate: Callable[[float], float], seed: int, noise: float, pauses: tuple[float, float]
    ) -> Live:
        return Live(
            rate,
            self.window,
            self.slide,
            self.max_gap,
            self.fixed,
            self.around,
            noise=noise,
            pauses=pauses,
            trigger=self.trigger,
            seed=seed,
        )


SHAPES = (
    Shape("tumbling"),
    Shape("tumbling, cheap epochs", fixed=0.03, around=0.02),
    Shape("overlapping", window=1000, max_gap=12),
    Shape("overlapping, long", window=5000, slide=1000, max_gap=19),
    Shape("trigger 0.5 s", trigger=0.5, fixed=0.1, around=0.1),
    Shape("trigger 1 s", trigger=1.0, window=1000, slide=1000, fixed=0.1, around=0.1),
    Shape("trigger 10 s", trigger=10.0, window=10_000, slide=10_000),
)


def steady(load: float) -> Callable[[float], float]:
    """Rows at one rate."""
    return lambda _: CAPACITY * load


def burst(times: float, calm: float = 0.2) -> Callable[[float], float]:
    """So many times the capacity for a minute."""
    return lambda t: CAPACITY * (times if BEGIN <= t < END else calm)


def ramp(t: float) -> float:
    """Up to twice the capacity in a minute, and down again."""
    return CAPACITY * max(0.2, 2 - 1.8 * abs(t - (BEGIN + END) / 2) / 60)


def outcome(live: Live, begin: float, end: float, after: float | None) -> Outcome:
    """Of a run: latency and loss in a stretch of time, and the rest."""
    moved = sum(abs(b.p - a.p) for a, b in pairwise(live.epochs))
    late, lost = max(live.latencies(begin, end), default=0.0), live.lost(begin, end)
    ends = range(live.slide, SECONDS * 1000, live.slide)
    missing = [at / 1000 for at in ends if live.phases.drops(at)]
    exact = None if after is None or not missing else missing[-1] - after
    return Outcome(late, lost, moved, exact, any(epoch.suspended for epoch in live.epochs))


def without_overload(shape: Shape, load: float, seed: int, noise: float = 0.3) -> Outcome:
    """Rows never come too fast, but epochs vary and pause."""
    return outcome(shape.live(steady(load), seed, noise, PAUSES).run(SECONDS), 10, SECONDS - 20, None)


def in_a_burst(
    shape: Shape, times: float, seed: int, noise: float = 0.2, pauses: tuple[float, float] = (0.0, 0.0)
) -> Outcome:
    return outcome(shape.live(burst(times), seed, noise, pauses).run(SECONDS), BEGIN, END, END)


def on_a_ramp(shape: Shape, seed: int, noise: float = 0.2) -> Outcome:
    return outcome(shape.live(ramp, seed, noise, (0.0, 0.0)).run(SECONDS), BEGIN - 30, END + 30, 133)


SITUATIONS: dict[str, Callable[[Shape, int], Outcome]] = {
    **{
        f"load {load:.0%}, noise, pauses": lambda s, n, load=load: without_overload(s, load, n)
        for load in (0.4, 0.6, 0.75, 0.9)
    },
    "burst 1.3x": lambda s, n: in_a_burst(s, 1.3, n),
    "burst 3x": lambda s, n: in_a_burst(s, 3.0, n),
    "burst 3x, pauses": lambda s, n: in_a_burst(s, 3.0, n, 0.3, PAUSES),
    "ramp to 2x": on_a_ramp,
}


def table(seeds: int) -> Iterator[str]:
    """Each figure as its mean and, in brackets, its greatest over the seeds."""
    yield "| engine | load | latency | lost | p moved | exact after | suspended |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for shape in SHAPES:
        for name, run in SITUATIONS.items():
            found = [run(shape, seed) for seed in range(seeds)]
            figures = [
                [each.late for each in found],
                [100 * each.lost for each in found],
                [each.moved for each in found],
                [each.exact for each in found if each.exact is not None],
            ]
            cells = [f"{mean(each):.1f} ({max(each):.1f})" if each else "–" for each in figures]
            yield f"| {shape.name} | {name} | {' | '.join(cells)} | {sum(o.suspended for o in found)} |"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table(int(sys.argv[1]) if len(sys.argv) > 1 else 6))
