"""Steering: a queue that is fed too much, in bursts, ramps and noise, must drain without p swinging."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.shedding.controller import Controller, Settings
from windrow.shedding.load import Monitor, Sample, Work

MOST = 0.9


@dataclass
class Plant:
    """An engine that does one unit of work per epoch; what it saves follows some epochs later."""

    arrivals: Callable[[int], float]
    delay: int = 3
    noise: float = 0.0
    backlog: float = 0.0
    savings: list[float] = field(default_factory=list)
    waiting: list[float] = field(default_factory=list)

    def run(self, epochs: int) -> Plant:
        chance, monitor, controller = Random(7), Monitor(), Controller()
        for epoch in range(epochs):
            effective = self.savings[-self.delay] if len(self.savings) >= self.delay else 0.0
            new = self.arrivals(epoch) * (1 + self.noise * chance.uniform(-1, 1))
            work = new * (1 - effective)
            self.backlog = max(0.0, self.backlog + work - 1.0)
            rows = 1 + round(1000 * new)
            sample = Sample(rows, max(work, 1e-3), 1.0, round(1000 * self.backlog), effective)
            monitor = monitor.after(sample)
            controller = controller.after(monitor.offered, MOST)
            self.savings.append(controller.saving)
            self.waiting.append(self.backlog)
        return self

    @property
    def turns(self) -> int:
        """How often the saving went up after it went down, or down after up."""
        steps = [b - a for a, b in pairwise(self.savings) if abs(b - a) > 1e-12]
        return sum(a * b < 0 for a, b in pairwise(steps))


def test_nothing_is_shed_without_overload():
    plant = Plant(lambda _: 0.75).run(200)
    assert max(plant.savings) == 0.0


@pytest.mark.parametrize("offered", [1.2, 2.0, 4.0, 8.0])
def test_constant_overload_is_brought_to_the_target(offered: float):
    plant = Plant(lambda _: offered).run(200)
    assert plant.waiting[-1] == 0.0
    load = offered * (1 - plant.savings[-1])
    assert load <= 0.8 + 0.05 * offered + 1e-9
    assert plant.turns <= 1


def test_more_than_can_be_saved_saves_all_that_can():
    assert Plant(lambda _: 30.0).run(60).savings[-1] == MOST


def test_a_burst_is_survived_and_forgotten():
    plant = Plant(lambda epoch: 3.0 if 50 <= epoch < 80 else 0.5).run(300)
    assert plant.savings[49] == 0.0
    assert plant.savings[75] >= 0.7
    assert max(plant.waiting) < 15
    assert plant.waiting[150] == 0.0
    assert plant.savings[-1] == 0.0
    assert plant.turns <= 2


def test_a_ramp_is_followed():
    plant = Plant(lambda epoch: 0.5 + epoch / 100).run(250)
    assert max(plant.waiting[-100:]) == 0.0
    assert plant.turns <= 1


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_noise_does_not_make_it_swing(noise: float):
    plant = Plant(lambda _: 1.6, noise=noise).run(400)
    settled = plant.savings[50:]
    assert max(settled) - min(settled) <= 0.25
    assert plant.turns <= 40
    assert plant.waiting[-1] < 1.0


def test_short_calm_does_not_end_shedding():
    """A pause of two epochs within a burst changes nothing."""
    plant = Plant(lambda epoch: 0.2 if epoch in (60, 61) else 2.0).run(62)
    assert plant.savings[-1] >= plant.savings[59] - 1e-9


@given(st.floats(0, 20), st.floats(0, 0.95), st.floats(0, 0.95))
def test_steps_are_bounded(offered: float, now: float, most: float):
    settings = Settings()
    after = Controller(saving=now, calm=99).after(offered, most)
    assert 0 <= after.saving <= most
    if now <= most:
        assert -settings.fall - 1e-9 <= after.saving - now <= settings.rise + 1e-9


def test_without_rows_to_learn_from_the_load_is_forgotten():
    """A query that is suspended gets another try, though nothing is known of what it would cost now."""
    monitor = Monitor()
    for _ in range(20):
        monitor = monitor.after(Sample(100, 5.0, 1.0))
    known = monitor.offered
    for _ in range(250):
        monitor = monitor.after(Sample(100, 0.01, 1.0, saved=1.0))
    assert known > 4.5
    assert monitor.offered < 0.5


def test_costs_of_operators():
    work = Work(seconds=2.0, rows_in=100, rows_out=25)
    assert (work.cost, work.selectivity) == (0.02, 0.25)
    assert (Work().cost, Work().selectivity) == (0.0, 0.0)


def test_a_backlog_counts_as_load():
    idle = Monitor(offered=0.5).after(Sample(100, 0.5, 1.0))
    behind = Monitor(offered=0.5).after(Sample(100, 0.5, 1.0, backlog=1000))
    assert behind.offered > idle.offered == 0.5


def test_fixed_costs_are_told_from_the_costs_of_rows():
    chance, monitor = Random(2), Monitor()
    for _ in range(60):
        rows = chance.randint(500, 1500)
        monitor = monitor.after(Sample(rows, 0.7 + 0.0004 * rows + chance.uniform(0, 0.02), 1.0))
    assert monitor.fixed == pytest.approx(0.71, abs=0.03)
    assert monitor.cost == pytest.approx(0.0004, rel=0.1)


def test_unless_rows_vary_all_costs_seem_to_be_theirs():
    monitor = Monitor()
    for _ in range(30):
        monitor = monitor.after(Sample(1000, 1.5, 1.0))
    assert (monitor.fixed, monitor.cost) == (pytest.approx(0.0, abs=1e-9), pytest.approx(0.0015))
