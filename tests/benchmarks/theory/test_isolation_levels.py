"""Which histories are on which level: the thesis' own, and Theorems 7.1, 7.2 and 7.5 on random ones."""

from __future__ import annotations

import pytest
from hypothesis import event, given, strategies as st

from benchmarks.theory.isolation.graph import SerialisationGraph
from benchmarks.theory.isolation.history import History
from benchmarks.theory.isolation.levels import COMMIT_ORDER, SERIALISABLE, Serialisability, levels
from benchmarks.theory.isolation.operations import Commit, Operation, Read, Write
from windrow.archive.snapshot import LATEST, WINDOW, IsolationLevel

#: of sections 7.3.1, 7.4.2 and 7.6; five sub-windows, the zeroth the oldest
HISTORIES = {
    "a": "rQ1[0] w5[0] c5 w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1",
    "b": "rQ1[0] w5[0] c5 rQ1[1] w6[1] c6 rQ1[2] rQ1[3] rQ1[4] cQ1",
    "c": "w5[0] c5 rQ1[0] rQ1[1] rQ1[2] rQ1[3] w6[1] c6 rQ1[4] cQ1",
    "d": "w5[0] c5 rQ1[0] w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1",
    "e": "rQ1[4] w5[0] c5 rQ1[0] rQ1[3] rQ1[2] w6[1] c6 rQ1[1] cQ1",
    "f": "rQ1[0] w5[0] c5 rQ1[1] rQ1[2] rQ1[3] w6[1] c6 rQ1[4] cQ1",
    "g": "rQ1[0] w5[0] w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1 c5",
    "h": "rQ1[0] rQ1[1] rQ1[2] rQ1[3] w9[4] rQ1[4] cQ1 c9",
}
ON = {
    "a": {SERIALISABLE},
    "b": {SERIALISABLE, WINDOW},
    "c": {SERIALISABLE, WINDOW},
    "d": {SERIALISABLE, WINDOW, LATEST, COMMIT_ORDER},
    "e": {SERIALISABLE, WINDOW, LATEST, COMMIT_ORDER},
    "f": {SERIALISABLE, WINDOW},
    "g": {SERIALISABLE, COMMIT_ORDER},
    "h": {SERIALISABLE, WINDOW, LATEST},
}


@st.composite
def histories(draw: st.DrawFn, *, commits_at_once: bool = False) -> History:
    """Queries of whole windows in any order, interleaved in any way with updates."""
    subwindows = draw(st.integers(1, 4))
    slots = st.permutations(range(subwindows))
    queries: list[list[Operation]] = [
        [*(Read(f"Q{number}", slot) for slot in draw(slots)), Commit(f"Q{number}")]
        for number in range(draw(st.integers(1, 3)))
    ]
    last = subwindows + draw(st.integers(0, 2 * subwindows))
    updates: list[list[Operation]] = [
        [Write(each, each % subwindows), Commit(each)] for each in range(subwindows, last)
    ]
    lanes: list[list[list[Operation]]] = [[[each] for each in lane] for lane in queries]
    if commits_at_once:
        lanes.append(updates)
    else:  # updates happen in order, and each commits whenever it likes after that
        lanes.append([[write] for write, _ in updates])
    done: list[Operation] = []
    while any(lanes):
        lane = draw(st.sampled_from([each for each in lanes if each]))
        taken = lane.pop(0)
        done += taken
        if isinstance(taken[-1], Write):
            lanes.append([[Commit(taken[-1].update)]])
    return History(tuple(done), subwindows)


@pytest.mark.parametrize("name", HISTORIES)
def test_the_histories_of_the_thesis(name: str) -> None:
    text = HISTORIES[name]
    if name == "h":  # sub-windows 0 to 3 were updated before: T9 is the next, so 0 to 3 hold 5 to 8
        text = "w5[0] c5 w6[1] c6 w7[2] c7 w8[3] c8 " + text
    history = History.parse(text, 5)
    assert str(history) == text
    assert levels(history) == ON[name]


@pytest.mark.parametrize(
    ("name", "versions"),
    [("a", {0, 6, 2, 3, 4}), ("b", {0, 1, 2, 3, 4}), ("c", {1, 2, 3, 4, 5}), ("d", {2, 3, 4, 5, 6})],
)
def test_what_the_query_of_figure_7_5_has_read(name: str, versions: set[int]) -> None:
    (answer,) = History.parse(HISTORIES[name], 5).answers
    assert set(answer.versions) == versions


def states(history: History) -> list[dict[int, int]]:
    """The window after each operation, by the plainest of means; the first is before them all."""
    found = [{slot: slot for slot in range(history.subwindows)}]
    for each in history.operations:
        change = {each.slot: each.update} if isinstance(each, Write) else {}
        found.append({**found[-1], **change})
    return found


def read_by_hand(history: History, query: str) -> dict[int, int]:
    before = states(history)
    return {
        each.slot: before[at][each.slot]
        for at, each in enumerate(history.operations)
        if isinstance(each, Read) and each.query == query
    }


@given(histories())
def test_levels_are_what_the_definitions_say(history: History) -> None:
    seen = states(history)
    is_window = is_latest = True
    for answer in history.answers:
        window = read_by_hand(history, answer.query)
        is_window &= window in seen[: answer.end + 1]
        is_latest &= window == seen[answer.end]
    found = levels(history)
    event(f"{sorted(level.name for level in found)}")
    assert (WINDOW in found, LATEST in found) == (is_window, is_latest)


@given(histories())
def test_theorems_7_1_and_7_2(history: History) -> None:
    graph, found = SerialisationGraph.of(history), levels(history)
    assert graph.keeps_windows_whole == (WINDOW in found)
    assert graph.shows_all_updates == (LATEST in found)


@given(histories(commits_at_once=True))
def test_latest_is_commit_order_by_theorem_7_5(history: History) -> None:
    found = levels(history)
    assert (LATEST in found) == (COMMIT_ORDER in found)


@given(histories())
def test_whole_windows_can_be_put_in_order(history: History) -> None:
    """Answers about whole windows are always serialisable; the converse is what history a is for."""
    found = levels(history)
    assert SERIALISABLE in found or WINDOW not in found


def test_two_queries_that_see_two_updates_in_opposite_orders() -> None:
    text = "rQ1[0] rQ2[1] w2[0] c2 w3[1] c3 rQ1[1] cQ1 rQ2[0] cQ2"
    assert levels(History.parse(text, 2)) == set()


def test_a_shorter_window_can_miss_an_update_without_a_conflict() -> None:
    """Theorem 7.5 is about whole windows: here the query is stale, and no graph tells."""
    history = History.parse("rQ1[2] w3[0] c3 rQ1[1] cQ1", 3)
    assert levels(history) == {SERIALISABLE, WINDOW, COMMIT_ORDER}


def test_what_was_aborted_or_taken_back_was_never_read() -> None:
    aborted = History.parse("rQ1[0] w2[0] c2 aQ1 rQ1[0] rQ1[1] cQ1", 2)
    undone = History.parse("rQ1[0] w2[0] c2 uQ1[0] rQ1[0] rQ1[1] cQ1", 2)
    assert levels(aborted) == levels(undone) == {*IsolationLevel, *Serialisability}


def test_a_word_that_is_no_operation_is_refused() -> None:
    with pytest.raises(ValueError, match="`x1` is no operation"):
        History.parse("x1", 2)
