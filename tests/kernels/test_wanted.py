"""Windows that are left out: the others are answered as ever, from the same state, whatever kernel it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from windrow.engine.explain import declared
from windrow.kernels.executor import KernelExecutor
from windrow.kernels.panes import pane_tables
from windrow.kernels.panes.pane_tables import neighbours
from windrow.kernels.state import Chunk, State
from windrow.language.compile import compile_query

STREAMS = {"s": ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts SLACK 2")}
QUERIES = {
    "live panes": (
        "SELECT k, SUM(v) AS n, MAX(v) AS m FROM s [RANGE 6 SLIDE 2] GROUP BY k HAVING n > 0",
        False,
    ),
    "two stacks": ("SELECT k, SUM(v) AS n, MAX(v) AS m FROM s [RANGE 6 SLIDE 2] GROUP BY k", True),
    "differences": ("SELECT k, MEDIAN(v) AS n, COUNT(*) AS m FROM s [RANGE 6 SLIDE 2] GROUP BY k", None),
    "running totals": ("SELECT k, SUM(v) AS n FROM s [LANDMARK SLIDE 2] GROUP BY k", None),
    "tumbling": ("SELECT COUNT(DISTINCT v) AS n, SUM(v) AS m FROM s [RANGE 3 SLIDE 3]", None),
    "nested": (
        "SELECT MAX(n) AS n FROM (SELECT k, SUM(v) AS n FROM s [RANGE 4 SLIDE 2] GROUP BY k)"
        " [RANGE 8 SLIDE 4]",
        None,
    ),
}
rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=40)


def executor(name: str) -> KernelExecutor:
    text, stacked = QUERIES[name]
    return KernelExecutor(compile_query(text, declared(STREAMS, {})), stacked=stacked)


def lacking(name: str, drops: Callable[[int], bool]) -> KernelExecutor:
    found = executor(name)
    last = found.program.levels[-1]
    last.kernel = last.kernel.without(drops)
    return found


def held(states: list[State]) -> list[object]:
    """What the states hold, in no particular order."""
    return [
        (state.meta, {name: sorted(map(repr, _rows(each))) for name, each in state.chunks.items()})
        for state in states
    ]


def _rows(chunks: tuple[Chunk, ...]) -> list[tuple[Any, ...]]:
    return [row for chunk in chunks for row in chunk.frame.rows()]


@pytest.mark.part(5)
@pytest.mark.parametrize("worth", [1, 4, pane_tables.WORTH])
@pytest.mark.parametrize("name", QUERIES)
@given(steps=rows, cut=st.integers(1, 12), pattern=st.integers(0, 255))
@settings(max_examples=8)
def test_the_others_are_answered_as_ever(
    name: str, worth: int, steps: list[tuple[int, int, int]], cut: int, pattern: int
):
    def drops(end: int) -> bool:
        return bool(pattern >> end % 8 & 1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pane_tables, "WORTH", worth)
        whole, part, now = executor(name), lacking(name, drops), 0
        given_rows = [(k, v, now := now + step) for k, v, step in steps]
        for place in range(0, len(given_rows), cut):
            for each in (whole, part):
                each.push("s", given_rows[place : place + cut])
            assert held(part._states) == held(whole._states)
        for each in (whole, part):
            each.finish()
        expected = [change for change in whole.take() if not drops(change.at)]
        assert Counter(part.take()) == Counter(expected)


@given(
    st.integers(-5, 5), st.integers(0, 30), st.sets(st.integers(-10, 40)), st.integers(1, pane_tables.WORTH)
)
def test_runs_hold_every_wanted_window_once(first: int, count: int, unwanted: set[int], groups: int):
    wanted = ((w, w + 1) for w in range(first, first + count) if w not in unwanted)
    found = [w for part in neighbours(wanted, groups) for w in range(*part)]
    assert sorted(set(found)) == found
    assert {w for w in range(first, first + count) if w not in unwanted} <= set(found)
    if groups == pane_tables.WORTH:
        assert not unwanted & set(found)


@pytest.mark.parametrize("name", ["live panes", "two stacks", "tumbling"])
def test_nothing_is_computed_for_a_long_run(name: str, monkeypatch: pytest.MonkeyPatch):
    """States of windows are asked for only where one is wanted."""
    monkeypatch.setattr(pane_tables, "WORTH", 1)
    found = lacking(name, lambda end: end > 12)
    asked: list[int] = []
    table = type(found.program.levels[-1].answers).table

    def counted(self: object, groups: object, frames: dict[str, object]) -> object:
        asked.extend(frames["groups"]["w"].unique().to_list())
        return table(self, groups, frames)

    monkeypatch.setattr(type(found.program.levels[-1].answers), "table", counted)
    found.push("s", [(1, 1, t) for t in range(100)])
    found.finish()
    ends = {int(found.program.query.cut.ends(w)) for w in asked}
    assert ends
    assert max(ends) <= 12
