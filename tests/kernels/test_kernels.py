"""Differential tests: the two kernels for sliding windows agree, on states that went through files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from tests.kernels.agreement import alike
from tests.kernels.queries import COLUMNS, Measured

from windrow.algebra.catalog import Stream
from windrow.algebra.operators import Aggregate
from windrow.algebra.plan import Emit, Scan, Window
from windrow.kernels.aggregates.measures import Measures
from windrow.kernels.clock import PaneClock
from windrow.kernels.columnar.columns import frame_from_arrow, frame_of, rows_of, to_frame
from windrow.kernels.panes.live_panes import LivePanes
from windrow.kernels.panes.pane_tables import Kernel, PaneAnswers
from windrow.kernels.panes.program import Level
from windrow.kernels.panes.query import SlidingQuery
from windrow.kernels.panes.two_stacks import TwoStacks
from windrow.kernels.state import Chunk, Delta, State
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.ranges import RangeWindow
from windrow.windows.spec import WindowSpec

STREAM = Stream("s", COLUMNS, "ts")
MEASURES = [
    Measured("sum", ("d",)),
    Measured("sum", ("x",)),
    Measured("max", ("s",)),
    Measured("last", ("v",)),
    Measured("stddev_pop", ("ts",)),
    Measured("median", ("v",)),
]


def answers_of(spec: WindowSpec, measured: list[Measured], *keys: str) -> PaneAnswers:
    rows = Window(Scan(STREAM, "s"), spec)
    by = tuple((key, rows.schema.column(f"s.{key}")) for key in keys)
    plan = Aggregate(rows, by, tuple((f"a{n}", m.call(rows)) for n, m in enumerate(measured)))
    return PaneAnswers(SlidingQuery.of(Emit(plan)), Measures(plan))


def delta_of(answers: PaneAnswers, rows: list[tuple[Any, ...]]) -> Delta:
    frame = frame_of(STREAM.schema.prefixed("s"), rows)
    level = Level(answers.query)
    tables = level.tables(level.entered(frame.with_columns(frame["s.ts"].alias("#t"))))
    return Delta({name: table.to_arrow() for name, table in tables.items()})


def stored(state: State) -> State:
    """The state after it was written to files and read again."""
    chunks = {name: tuple(_read(_written(chunk)) for chunk in part) for name, part in state.chunks.items()}
    return State(chunks, json.loads(json.dumps(dict(state.meta))))


def _written(chunk: Chunk) -> tuple[int, int, pa.Buffer]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, chunk.table.schema) as writer:
        writer.write_table(chunk.table)
    return chunk.first, chunk.last, sink.getvalue()


def _read(written: tuple[int, int, pa.Buffer]) -> Chunk:
    return Chunk(written[0], written[1], pa.ipc.open_file(written[2]).read_all())


def rows_at(t: int, number: int) -> tuple[Any, ...]:
    values = [None, 0.5, 2.0, float("nan"), float("inf")]
    return (number % 3, number % 5, values[number % 5], None, None, "abc"[number % 3], None, t)


@st.composite
def epochs(draw: st.DrawFn) -> list[tuple[list[tuple[Any, ...]], int]]:
    """Batches of rows in order of their clocks, with late rows; the clock after each."""
    found, clock = [], 0
    for _ in range(draw(st.integers(1, 6))):
        moments = draw(st.lists(st.integers(max(0, clock - 4), clock + 12), max_size=6))
        clock += draw(st.sampled_from([0, 1, 3, 8, 25]))
        found.append(([rows_at(t, t + n) for n, t in enumerate(moments)], clock))
    return found


SPECS = st.sampled_from([RangeWindow(*sizes) for sizes in ((6, 2), (7, 3), (2, 5), (4, 4), (40, 1))])


@settings(max_examples=40)
@given(
    SPECS,
    epochs(),
    st.sampled_from([(), ("k",), ("x", "k")]),
    st.lists(st.sampled_from([0, 1, 4]), min_size=7, max_size=7),
)
def test_the_two_kernels_agree(
    spec: WindowSpec,
    batches: list[tuple[list[tuple[Any, ...]], int]],
    keys: tuple[str, ...],
    leaps: list[int],
) -> None:
    """Whichever epochs leap over full blocks (0: none does), the state serves those that do not."""
    answers = answers_of(spec, MEASURES, *keys)
    schema = answers.query.emit.schema
    states, before = {LivePanes: State(), TwoStacks: State()}, -INFINITY
    ends: list[tuple[list[Any], Instant]] = [*batches, ([], INFINITY)]
    for (rows, now), leap in zip(ends, leaps, strict=False):
        taken = []
        for make in (LivePanes, TwoStacks):
            kernel: Kernel = make(answers)
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("windrow.kernels.panes.two_stacks.LEAP", leap)
                state, output = kernel.advance(states[make], delta_of(answers, rows), PaneClock(before, now))
                frames = [to_frame(table) for table in output]
            states[make] = stored(state)
            taken.append(sorted(_listed(frames, schema), key=repr))
        assert len(taken[0]) == len(taken[1])
        assert all(map(alike, *taken)), taken
        before = now


def _listed(frames: list[pl.DataFrame], schema: Any) -> Iterator[tuple[Any, ...]]:
    for frame in frames:
        yield from (
            (at, *row) for at, row in zip(frame["#at"].to_list(), rows_of(frame, schema), strict=True)
        )


@dataclass(frozen=True)
class Watched(Chunk):
    """A chunk that counts how many rows are read."""

    name: str
    read: Counter[str]

    @property
    def frame(self) -> pl.DataFrame:
        self.read[self.name] += self.table.num_rows
        return to_frame(self.table)


def watched(state: State, read: Counter[str]) -> State:
    chunks = {
        name: tuple(Watched(chunk.first, chunk.last, chunk.table, name, read) for chunk in part)
        for name, part in state.chunks.items()
    }
    return State(chunks, state.meta)


@pytest.mark.parametrize("panes", [10, 80])
def test_an_epoch_reads_what_it_answers_whatever_the_window_holds(panes: int, monkeypatch: Any) -> None:
    """With 3 groups and a new pane per epoch, rows read do not grow with RANGE/SLIDE; flips are amortised."""
    monkeypatch.setattr("windrow.kernels.panes.two_stacks.STEP_ROWS", 8)
    answers = answers_of(RangeWindow(panes, 1), [Measured("max", ("v",))], "k")
    kernel, state, read = TwoStacks(answers), State(), Counter[str]()
    epochs = 3 * panes
    for t in range(epochs):
        batch = [(k, t % 7, None, None, None, None, None, t) for k in range(3)]
        state, output = kernel.advance(watched(state, read), delta_of(answers, batch), PaneClock(t, t + 1))
        assert sum(table.num_rows for table in output) == 3
    per_epoch = {name.split(".")[1]: rows / epochs for name, rows in read.items()}
    assert per_epoch["panes"] <= 3
    assert per_epoch["front"] + per_epoch["back"] <= 6
    assert per_epoch["steps"] <= 16
    assert sum(per_epoch.values()) <= 30


@pytest.mark.parametrize("panes", [10, 80])
def test_an_epoch_of_many_windows_reads_each_pane_once(panes: int) -> None:
    """If each epoch closes ten windows' worth of panes, it reads one window of old panes, and writes one."""
    answers = answers_of(RangeWindow(panes, 1), [Measured("max", ("v",))], "k")
    kernel, state, read = TwoStacks(answers), State(), Counter[str]()
    for epoch in range(4):
        begin, end = epoch * 10 * panes, (epoch + 1) * 10 * panes
        batch = [(k, t % 7, None, None, None, None, None, t) for t in range(begin, end) for k in range(3)]
        state, output = kernel.advance(watched(state, read), delta_of(answers, batch), PaneClock(begin, end))
        assert sum(table.num_rows for table in output) == 3 * (end - begin)
        assert {name.split(".")[1] for name in state.chunks} == {"panes"}
        assert sum(chunk.table.num_rows for chunk in state.of("groups.panes")) == 3 * panes
    assert sum(read.values()) == 3 * (3 * panes)


def test_long_gaps_cost_nothing() -> None:
    answers = answers_of(RangeWindow(10, 2), MEASURES, "k")
    rows = [rows_at(t, t) for t in (0, 10**15, 2 * 10**15)]
    for make in (LivePanes, TwoStacks):
        state, output = make(answers).advance(
            State(), delta_of(answers, rows), PaneClock(-INFINITY, INFINITY)
        )
        assert sum(table.num_rows for table in output) == 15
        assert not state.chunks


def test_output_comes_in_bounded_blocks(monkeypatch: Any) -> None:
    monkeypatch.setattr("windrow.kernels.panes.pane_tables.CELLS", 64)
    answers = answers_of(RangeWindow(8, 2), [Measured("count", ())], "v")
    rows = [(None, n, None, None, None, None, None, n % 50) for n in range(200)]
    sizes = {}
    for make in (LivePanes, TwoStacks):
        _, output = make(answers).advance(State(), delta_of(answers, rows), PaneClock(-INFINITY, INFINITY))
        sizes[make] = [table.num_rows for table in output]
    assert {sum(each) for each in sizes.values()} == {800}
    assert all(max(each) <= 64 for each in sizes.values())


def test_arrow_times_become_integers() -> None:
    moment = np.datetime64("1970-01-02T00:00:01", "us")
    table = pa.table({name: pa.nulls(1) for name in COLUMNS.names} | {"ts": pa.array([moment])})
    assert frame_from_arrow(table, COLUMNS)["ts"].to_list() == [86_401_000_000]
