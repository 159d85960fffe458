"""Which rows a window depends on: against all windows below it, and against the paper's worst case."""

from __future__ import annotations

from hypothesis import given, settings, strategies as st
from tests.shedding.asked import Nested, Size, candidate, nested

from benchmarks.theory.shedding import pipeline
from windrow.shedding.agreement import Reach, agree
from windrow.shedding.rules import WinDrop


def depends(levels: tuple[Size, ...], end: int) -> set[int]:
    """The rows of a stream that the window ending at `end` depends on, by definition."""
    outer, *inner = levels
    extent = set(range(end - outer.range, end))
    if not inner:
        return extent
    below = inner[0]
    ends = [e + 1 for e in extent if (e + 1 - below.origin) % below.slide == 0]
    return set().union(*(depends(tuple(inner), e) for e in ends))


def reach_of(query: Nested) -> Reach:
    (reach,) = agree(candidate("q", query.sql)).reach
    return reach


@given(nested(), st.integers(-20, 20))
@settings(max_examples=80)
def test_against_every_window_below(query: Nested, place: int):
    outer = query.levels[0]
    end = outer.origin + place * outer.slide
    rows = depends(query.levels, end)
    reach = reach_of(query)
    if not rows:
        return
    assert reach.first(end) <= min(rows)
    assert reach.end(end) > max(rows)
    if len(query.levels) < 3 or all(size.range >= size.slide for size in query.levels):
        # windows with rows between them that are in none may leave out what lies further below
        assert (reach.first(end), reach.end(end)) == (min(rows), max(rows) + 1)


@given(nested(), st.integers(-20, 20))
def test_never_wider_than_the_papers_rule(query: Nested, place: int):
    reach, outer = reach_of(query), query.levels[0]
    end = outer.origin + place * outer.slide
    assert reach.first(end) >= end - reach.width
    assert reach.end(end) <= end
    literal = pipeline(*(WinDrop(size.range, size.slide) for size in reversed(query.levels)))
    assert (literal.window, literal.slide) == (reach.width, outer.slide)


def test_the_papers_worst_case_occurs():
    """An inner window that slides by one tick opens with the last tick of the outer one."""
    query = Nested((Size(3, 3), Size(4, 1)))
    assert reach_of(query).first(12) == 12 - reach_of(query).width


@given(nested(), st.integers(-20, 20))
def test_grows_with_the_end(query: Nested, place: int):
    reach, outer = reach_of(query), query.levels[0]
    end = outer.origin + place * outer.slide
    later = end + outer.slide
    assert reach.first(end) <= reach.first(later)
    assert reach.end(end) <= reach.end(later)
