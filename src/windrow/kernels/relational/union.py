"""UNION ALL of streams: branches that run beside each other, each with its own states and its own clock.

Rows are filed once for all branches. What differs is how far answers were given when a late row was kept: of
each branch that is a column of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from windrow.kernels.relational.clock import Clock
from windrow.kernels.relational.signed_rows import KEPT
from windrow.kernels.state import State
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.intake import Known
    from windrow.kernels.relational.clock import Timing
    from windrow.kernels.relational.operator import Operator
    from windrow.kernels.relational.program import News, RelationalProgram, States
    from windrow.windows.domain import Instant

    Knowns = Mapping[str, Known]
    #: how far each table is
    Held = Mapping[str, Instant]
    #: how far the clock of each branch had come before the input ended
    Reached = Sequence[int | None]


class UnionProgram:
    """The programs of the branches. States have the number of their branch before their place."""

    def __init__(self, emit: Emit, branches: Sequence[RelationalProgram]) -> None:
        self.emit = emit
        self.branches = tuple(branches)

    def advance(self, states: States, news: News) -> tuple[States, pl.DataFrame, pl.DataFrame]:
        """The next states, and the answers of all branches that became final."""
        after: dict[str, State] = {}
        found: list[tuple[pl.DataFrame, pl.DataFrame]] = []
        for number, (program, clock) in enumerate(zip(self.branches, news.clock.branches, strict=True)):
            mine = {place: state for of, place, state in _parted(states) if of == number}
            own = replace(news, clock=clock, rows=_rows_of(number, news.rows))
            moved, answers, pieces = program.advance(mine, own)
            after |= {f"{number}:{place}": state for place, state in moved.items()}
            names = program.emit.schema.names, self.emit.schema.names
            found.append((_renamed(answers, *names), _renamed(pieces.select(names[0]), *names)))
        answers, pieces = (pl.concat(frames) for frames in zip(*found, strict=True))
        return after, answers, pieces

    def operators(self) -> Iterator[tuple[str, Operator]]:
        """Every operator with its branch and its place there."""
        for number, program in enumerate(self.branches):
            yield from ((f"{number}:{place}", operator) for place, operator in program.operators())

    def state_rows(self, states: States) -> dict[str, int]:
        """How many rows each operator keeps, by its branch, its place and its name."""
        found: dict[str, int] = {}
        for number, program in enumerate(self.branches):
            mine = {place: state for of, place, state in _parted(states) if of == number}
            found |= {f"{number}:{name}": rows for name, rows in program.state_rows(mine).items()}
        return found


class UnionTiming:
    """The clocks of the branches."""

    def __init__(self, branches: Sequence[Timing]) -> None:
        self.branches = tuple(branches)
        self.windows = [window for branch in branches for window in branch.windows]
        self.streams = {name: stream for branch in branches for name, stream in branch.streams.items()}

    def moved(self, before: Knowns, held: Held, now: Knowns, now_held: Held, reached: Reached) -> Clock:
        """How each clock moves; the whole is as far as the slowest."""
        clocks = tuple(
            branch.moved(before, held, now, now_held, -INFINITY if last is None else last)
            for branch, last in zip(self.branches, reached, strict=True)
        )
        return Clock(min(c.before for c in clocks), min(c.now for c in clocks), branches=clocks)

    def reached(self, known: Knowns, held: Held) -> list[Instant]:
        """How far any answer of each branch is given."""
        return [branch.furthest(known, held) for branch in self.branches]

    def furthest(self, known: Knowns, held: Held) -> Instant:
        """How far any answer is given."""
        return max(self.reached(known, held))

    def clock(self, known: Knowns, held: Held) -> Instant:
        """How far all answers are given."""
        return min(branch.clock(known, held) for branch in self.branches)

    def kept(self, name: str, known: Knowns, held: Held, rows: pl.DataFrame) -> list[pl.Series]:
        """For each branch that reads a stream: how far its answers were given for each row that is late."""
        reading = ((n, branch) for n, branch in enumerate(self.branches) if name in branch.streams)
        return [branch.kept(name, known, held, rows)[0].alias(_kept(number)) for number, branch in reading]


def _renamed(frame: pl.DataFrame, own: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Columns as the first branch calls them, in the same order."""
    hidden = [name for name in frame.columns if name not in own]
    return frame.select(*(pl.col(a).alias(b) for a, b in zip(own, names, strict=True)), *hidden)


def _kept(branch: int) -> str:
    return f"{KEPT}.{branch}"


def _rows_of(branch: int, rows: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The rows of the streams that a branch reads, as if it were by itself."""
    mine, found = _kept(branch), dict[str, pl.DataFrame]()
    for stream, frame in rows.items():
        if mine in frame.columns:
            others = [name for name in frame.columns if name.startswith(f"{KEPT}.") and name != mine]
            found[stream] = frame.drop(others).rename({mine: KEPT})
    return found


def _parted(states: States) -> Iterator[tuple[int, str, State]]:
    for name, state in states.items():
        number, _, place = name.partition(":")
        yield int(number), place, state
