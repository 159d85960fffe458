"""The paper's marking and decoding on its own model, and Windrow's rule, mirrored in time, beside it.

A window [T, T+length) of the paper is the extent that ends at E = 1 - T, with time running the other way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import given, settings, strategies as st
from tests.support.shedding_marks import Tuple, Windows, decode, decode_as_printed, mark, select

from benchmarks.theory.shedding import pipeline
from windrow.shedding.agreement import Reach, ReachLevel
from windrow.shedding.rules import WinDrop
from windrow.windows.spec import SlideGrid

FIRST, LAST = 1, 90
STREAM = [Tuple(t, (t * 7) % 5) for t in range(FIRST, LAST + 1)]


@dataclass(frozen=True)
class Pipeline:
    """Aggregates from the input to the output, and the numbers of the final windows that are dropped."""

    levels: tuple[Windows, ...]
    dropped: frozenset[int]
    filtered: bool

    @property
    def windrop(self) -> WinDrop:
        return pipeline(*(WinDrop(level.length, level.slide) for level in self.levels))

    @property
    def complete(self) -> list[int]:
        """The beginnings of final windows all of whose tuples exist."""
        last = self.levels[-1]
        begins = range(last.first, LAST + 1, last.slide)
        return [begin for begin in begins if begin + self.windrop.window <= LAST]

    def kept(self, begin: int) -> bool:
        return self.levels[-1].number(begin) not in self.dropped

    def passes(self, each: Tuple) -> bool:
        return not self.filtered or each.value % 2 == 0


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    sizes = st.tuples(st.integers(1, 5), st.integers(0, 5))
    drawn = draw(st.lists(sizes, min_size=1, max_size=3))
    if len(drawn) == 3:  # a window opens with a tuple: those in the middle must find one where they begin
        (bottom, _), (middle, more) = drawn[:2]
        drawn[1] = bottom * (1 + middle // bottom), more
    levels = tuple(Windows(slide + more, slide, FIRST) for slide, more in drawn)
    dropped = draw(st.frozensets(st.integers(0, 90), max_size=90) | st.just(frozenset(range(3, 60))))
    return Pipeline(levels, dropped, len(levels) < 3 and draw(st.booleans()))


def exact(pipe: Pipeline) -> dict[int, int]:
    """The answers without shedding, by definition."""
    stream = STREAM
    for place, level in enumerate(pipe.levels):
        answers = []
        for begin in range(level.first, LAST + 1, level.slide):
            inside = [each.value for each in stream if begin <= each.t < begin + level.length]
            answers += [Tuple(begin, sum(inside))] if inside else []
        is_last = place == len(pipe.levels) - 1
        stream = answers if is_last else [each for each in answers if pipe.passes(each)]
    return {each.t: each.value for each in stream}


def under_marks(pipe: Pipeline) -> dict[int, int]:
    """The answers after WinDrop, through aggregates that decode."""
    size = pipe.windrop
    stream = mark(STREAM, Windows(size.window, size.slide, FIRST), lambda number: number in pipe.dropped)
    for place, level in enumerate(pipe.levels):
        stream = decode(stream, level, sum)
        if place < len(pipe.levels) - 1:
            stream = select(stream, pipe.passes)
    return {each.t: each.value for each in stream if not each.fake}


@given(pipelines())
@settings(max_examples=60)
def test_what_is_delivered_are_the_kept_windows_of_the_exact_answer(pipe: Pipeline):
    answers, given_under_load = exact(pipe), under_marks(pipe)
    for begin in pipe.complete:
        expected = answers.get(begin) if pipe.kept(begin) else None
        assert given_under_load.get(begin) == expected


def mirrored(pipe: Pipeline) -> Reach:
    """The same plan with windows that end where the paper's begin."""
    grids = [SlideGrid(level.slide, 1 - FIRST) for level in pipe.levels]
    inner = [ReachLevel(level.length, grid, (grid,)) for level, grid in zip(pipe.levels, grids, strict=True)]
    return Reach("s", pipe.levels[-1].length, tuple(reversed(inner[:-1])))


def needed(pipe: Pipeline, first: Callable[[int], int], end: Callable[[int], int]) -> set[int]:
    """The tuples that kept windows need, where a rule says which ones each needs."""
    found: set[int] = set()
    for begin in pipe.complete:
        if pipe.kept(begin):
            ending = 1 - begin
            found |= {-t for t in range(first(ending), end(ending))}
    return found


@given(pipelines())
@settings(max_examples=60)
def test_windrows_rule_keeps_no_more_than_the_papers(pipe: Pipeline):
    size, reach = pipe.windrop, mirrored(pipe)
    drops = lambda number: number in pipe.dropped or FIRST + number * size.slide not in pipe.complete  # noqa: E731
    marked = mark(STREAM, Windows(size.window, size.slide, FIRST), drops)
    kept = {each.t for each in marked if not each.fake}
    assert (reach.width, pipe.levels[-1].slide) == (size.window, size.slide)
    assert kept == needed(pipe, lambda end: end - reach.width, lambda end: end)
    mine = needed(pipe, reach.first, reach.end)
    assert mine <= kept
    if all(level.slide == 1 for level in pipe.levels[:-1]):
        assert mine == kept


@given(pipelines())
@settings(max_examples=40)
def test_the_tuples_that_windrow_keeps_are_enough(pipe: Pipeline):
    kept = needed(pipe, mirrored(pipe).first, mirrored(pipe).end)
    stream = [each for each in STREAM if each.t in kept]
    for place, level in enumerate(pipe.levels):
        answers = []
        for begin in range(level.first, LAST + 1, level.slide):
            inside = [each.value for each in stream if begin <= each.t < begin + level.length]
            answers += [Tuple(begin, sum(inside))] if inside else []
        stream = answers if place == len(pipe.levels) - 1 else [e for e in answers if pipe.passes(e)]
    found, wanted = {each.t: each.value for each in stream}, exact(pipe)
    assert all(found.get(b) == wanted.get(b) for b in pipe.complete if pipe.kept(b))


def test_the_papers_example_keeps_the_rows_of_one_answer():
    """A1(3, 2) and A2(3, 3): the answer of time 1 is made of the tuples in [1, 6)."""
    pipe = Pipeline((Windows(3, 2), Windows(3, 3)), frozenset(range(1, 99)), filtered=False)
    marked = mark(STREAM, Windows(5, 3), lambda number: number in pipe.dropped)
    assert [each.t for each in marked if not each.fake] == [1, 2, 3, 4, 5]
    assert under_marks(pipe) == {1: exact(pipe)[1]}


def test_as_printed_one_kept_window_opens_all_that_follow():
    windows = Windows(4, 2)
    marked = [Tuple(1, 1, spec=9), *(Tuple(t, 1, 0 if windows.begins(t) else -1) for t in range(2, 60))]
    assert decode_as_printed(marked, windows) == list(range(1, 60, 2))
    assert [each.t for each in decode(marked, windows, sum) if not each.fake] == [1, 3, 5]
