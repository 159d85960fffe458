"""The first visit's third step: windows of the demonstration go when the rate is tripled, and come back.

Time is imagined: an epoch takes so long, and more for each row that it works on. What is decided is decided
as the engine does, for the demonstration's queries and the guide's.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from importlib.resources import files

import pytest
from tests.server.world import Here

from windrow.cli.demo import SPEED, DemoSource, script, servable
from windrow.engine.load_shedding import Effort, Overload
from windrow.shedding.agreement import MOST_INTERVALS, SheddingGroup, SheddingGroups, droppable
from windrow.shedding.controller import next_cycles, shortest, steady
from windrow.shedding.phases import Phases
from windrow.shedding.rules import early_share

RATE = 3000
MICROS = 1_000_000


def _asked() -> list[str]:
    """The guide's statements, as the page has them."""
    text = (files("windrow.server") / "page" / "guide.js").read_text(encoding="utf-8")
    return [json.loads(f'"{found}"') for found in re.findall(r'sql: "((?:[^"\\]|\\.)*)"', text)]


@pytest.fixture(scope="module")
def sharing() -> SheddingGroups:
    windrow = Here(None)
    demo = re.sub(r"\s+FROM 'generator:[^']*'", "", servable(script(DemoSource.traffic, RATE)))
    windrow.sql(demo + ";\n".join(_asked()))
    assert {query.keeps_all for query in windrow.queries.values()} == {None}
    found = windrow._engine.shedding._shared(windrow._engine.queries.values()).sharing
    windrow.close()
    return found


def test_all_queries_leave_out_the_same_time_and_most_of_its_rows(sharing: SheddingGroups) -> None:
    (group,) = sharing.groups
    assert len(group.members) == 6
    assert early_share(group.drop, 1.0) > 0.8


@dataclass
class Visit:
    """Epochs over a stream that is quickened; `most` is how many rows in a second can be worked on."""

    sharing: SheddingGroups
    most: int
    fixed: float = 0.6
    times: float = 1.0
    now: float = 0.0
    began: float | None = None
    #: how far the stream is, in its own time
    at: float = 0.0
    shed: int = 0
    phases: Phases = field(default_factory=Phases)
    overload: Overload = field(default_factory=Overload)

    @property
    def group(self) -> SheddingGroup:
        return self.sharing.groups[0]

    @property
    def losing(self) -> float:
        last = self.phases.last
        return 0.0 if last is None else 1.0 if last.suspended else last.p

    def run(self, seconds: float) -> list[float]:
        """What the epochs of so many seconds take; one begins every second at most, with all that came."""
        ends, took = self.now + seconds, []
        while self.now < ends:
            since = self.now - self.began if self.began is not None else 1.0
            took.append(self._epoch(since))
            self.began, self.now = self.now, self.now + max(1.0, took[-1])
        return took

    def _epoch(self, since: float) -> float:
        before, self.at = int(self.at), self.at + since * SPEED * self.times * MICROS
        phases = dict.fromkeys(self.sharing.agreed, self.phases)
        gone = droppable("traffic", phases, self.sharing.agreed, phases, before, int(self.at))
        share = sum(each.end - each.begin for each in gone) / max(1, int(self.at) - before)
        rows = round(RATE * self.times * since)
        shed = round(rows * share)
        took = self.fixed + (rows - shed) / self.most
        self.shed += shed
        self.overload = self.overload.after(Effort(rows, shed, took, 0.0, 0, since), 1.0, self.sharing, ())
        self._decide(int(self.at) - before)
        return took

    def _decide(self, moved: int) -> None:
        losses, group = self.overload.losses or {}, self.group
        free = int(self.at) + max(member.drop.window for member in group.members)
        ended = max(member.grid.end(member.grid.last_ending(free)) for member in group.members)
        p = max(losses.values(), default=0.0)
        slots = replace(group.cycles, batch=shortest(group.drop, p, moved * 2 // MOST_INTERVALS))
        begin, cycles = next_cycles([self.phases], slots, ended, p)
        away = bool(self.overload.admission.suspended)
        p = 0.0 if away else steady(p, cycles.batch)
        self.phases = self.phases.then(begin, cycles, p, 1, suspended=away).since(int(self.at))


@pytest.mark.parametrize("most", [6_000, 20_000, 50_000, 100_000])
def test_a_few_presses_and_windows_go_until_the_rate_is_the_first_again(
    sharing: SheddingGroups, most: int
) -> None:
    visit = Visit(sharing, most)
    assert max(visit.run(20)) < 2
    presses = 0
    while not visit.shed:
        presses, visit.times = presses + 1, visit.times * 3
        assert presses <= 4
        assert max(visit.run(12)) < 60
    assert 0 < visit.losing < 1
    visit.run(20)
    assert max(visit.run(20)) < 20, "too little is left out"

    visit.times = 1.0
    visit.run(60)
    assert visit.losing == 0
    assert not visit.overload.admission.suspended
    visit.shed = 0
    assert max(visit.run(20)) < 2
    assert not visit.shed
