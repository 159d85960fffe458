"""A row may be dropped iff every final window that depends on it, in every query, is dropped."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings, strategies as st
from tests.shedding.asked import Nested, Size, candidate, nested, sizes
from tests.shedding.test_reach import depends

from benchmarks.theory.shedding import drops_early
from windrow.shedding import agreement as rule
from windrow.shedding.agreement import DropRange, SheddingGroups, droppable, overlap, share
from windrow.shedding.phases import Phases

LAST = 90


@dataclass(frozen=True)
class Shared:
    """Queries over one stream, and what each of them drops."""

    queries: tuple[Nested, ...]
    sharing: SheddingGroups
    phases: dict[str, Phases]

    def rows(self) -> set[int]:
        """The instants whose rows are dropped, by the rule."""
        readers = [f"q{n}" for n in range(len(self.queries))]
        found = droppable("s", readers, self.sharing.agreed, self.phases, 0, LAST)
        return {t for interval in found for t in range(interval.begin, interval.end)}

    def dependents(self) -> dict[int, list[bool]]:
        """For each instant, which of the windows that depend on it are dropped."""
        found: dict[int, list[bool]] = {}
        for number, query in enumerate(self.queries):
            outer = query.levels[0]
            for end in range(-20, LAST + 150):
                if (end - outer.origin) % outer.slide == 0:
                    drops = self.phases[f"q{number}"].drops(end)
                    for t in depends(query.levels, end):
                        found.setdefault(t, []).append(drops)
        return found


@st.composite
def shared(draw: st.DrawFn, *, gaps: bool = True) -> Shared:
    grid = draw(sizes(gaps=False))
    queries = tuple(draw(st.lists(nested(gaps=gaps, depth=2, grid=grid), min_size=1, max_size=3)))
    batch = st.integers(1, 12)
    asked = [candidate(f"q{n}", query.sql, draw(batch)) for n, query in enumerate(queries)]
    sharing = share(asked)
    phases = {}
    for group in sharing.groups:
        for member in group.members:
            own = Phases().then(-40, group.cycles, draw(st.floats(0, 1)), seed=5)
            phases[member.name] = own.then(
                draw(st.integers(0, 60)), group.cycles, draw(st.floats(0, 1)), seed=5
            )
    return Shared(queries, sharing, phases)


@given(shared())
@settings(max_examples=40, deadline=None)
def test_no_kept_window_loses_a_row(world: Shared):
    dropped = world.rows()
    assert all(all(drops) for t, drops in world.dependents().items() if t in dropped)


@given(shared(gaps=False))
@settings(max_examples=40, deadline=None)
def test_every_row_that_nobody_needs_is_dropped(world: Shared):
    dropped = world.rows()
    needless = {t for t, drops in world.dependents().items() if 0 <= t < LAST and all(drops)}
    assert dropped == needless or len(_runs(dropped)) >= rule.MOST_INTERVALS


def _runs(instants: set[int]) -> set[int]:
    return {t for t in instants if t - 1 not in instants}


def test_the_rule_of_the_paper_for_early_drops():
    """(B+1)*slide - window ticks of rows per dropped batch, once B >= floor(window / slide)."""
    for batch in range(1, 8):
        query = Nested((Size(20, 5),))
        sharing = share([candidate("q0", query.sql, batch)])
        (group,) = sharing.groups
        world = Shared((query,), sharing, {"q0": Phases().then(-100, group.cycles, group.drop.most, seed=1)})
        assert drops_early(group.drop) == bool(world.rows())
        cycles = LAST // group.cycles.span
        full = [t for t in world.rows() if t < cycles * group.cycles.span]
        assert len(full) == cycles * group.drop.early_ticks


def test_who_did_not_agree_needs_all_its_rows():
    sharing = share([candidate("q0", "SELECT COUNT(*) AS n FROM s [RANGE 5 SLIDE 5]", 9)])
    phases = {"q0": Phases().then(0, sharing.groups[0].cycles, 0.9, seed=1)}
    assert droppable("s", ["q0"], sharing.agreed, phases, 0, 500)
    assert droppable("s", ["q0", "other"], sharing.agreed, phases, 0, 500) == []
    assert droppable("s", [], sharing.agreed, phases, 0, 500) == []


def test_a_stream_that_is_not_sheddable_keeps_its_rows():
    text = "SELECT a.v FROM s [RANGE 5 SLIDE 5] AS a, kept [RANGE 5 SLIDE 5] AS b WHERE a.k = b.k"
    sharing = share([candidate("q0", text, 9)])
    phases = {"q0": Phases().then(0, sharing.groups[0].cycles, 0.9, seed=1)}
    assert droppable("s", ["q0"], sharing.agreed, phases, 0, 500)
    assert droppable("kept", ["q0"], sharing.agreed, phases, 0, 500) == []


def test_a_suspended_query_needs_nothing():
    sharing = share([candidate("q0", "SELECT COUNT(*) AS n FROM s [RANGE 20 SLIDE 5]", 1)])
    phases = {"q0": Phases().then(100, sharing.groups[0].cycles, 0.0, seed=1, suspended=True)}
    assert droppable("s", ["q0"], sharing.agreed, phases, 0, 500) == [DropRange(100, 500)]


intervals = st.lists(st.integers(0, 60), unique=True, max_size=12).map(
    lambda points: [
        DropRange(a, b) for a, b in zip(sorted(points)[::2], sorted(points)[1::2], strict=False) if a < b
    ]
)


@given(intervals, intervals)
def test_overlap_is_what_both_ranges_hold(left: list[DropRange], right: list[DropRange]):
    both = overlap(left, right)
    inside = {t for t in range(61) if any(t in i for i in left) and any(t in i for i in right)}
    assert {t for t in range(61) if any(t in i for i in both)} == inside
    assert both == sorted(both)
