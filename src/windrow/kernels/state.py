"""What a kernel keeps between epochs: chunks of Arrow tables, and a few numbers.

A chunk is never changed; it knows the panes its rows are about, so that a kernel opens only what an epoch
needs, and an engine that keeps chunks as files passes the others through unread. `kernel.advance(state,
delta, clock)` gives the next state and the answers of the windows whose ends the clock passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import polars as pl
import pyarrow as pa

from windrow.kernels.columnar.columns import to_frame
from windrow.kernels.layouts import PANE

if TYPE_CHECKING:
    from windrow.kernels.clock import PaneClock
    from windrow.kernels.panes.answers import Answers


@dataclass(frozen=True)
class Chunk:
    """An immutable table of states whose panes lie between `first` and `last`."""

    first: int
    last: int
    table: pa.Table

    @property
    def frame(self) -> pl.DataFrame:
        return to_frame(self.table)


@dataclass(frozen=True)
class State:
    """Chunks by name, and numbers that JSON can hold."""

    chunks: Mapping[str, tuple[Chunk, ...]] = field(default_factory=dict)
    meta: Mapping[str, int] = field(default_factory=dict)

    def of(self, name: str) -> tuple[Chunk, ...]:
        """The chunks of one name."""
        return self.chunks.get(name, ())


@dataclass(frozen=True)
class Delta:
    """What an epoch brings: a table of pane states for each table of the query, and the last pane in which
    any row of the window is first seen, whether or not it passes WHERE."""

    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    latest: int | None = None


class Kernel(Protocol):
    """A stateful operator as a pure function."""

    @property
    def answers(self) -> Answers: ...

    def advance(self, state: State, delta: Delta, clock: PaneClock) -> tuple[State, Iterator[pa.Table]]:
        """The next state, and the answers that became final as the clock moved."""


def without(kernel: Kernel, drops: Callable[[int], bool]) -> Kernel:
    """The same kernel with the same state, which does not answer windows that end where `drops` says."""
    left: Kernel = replace(kernel, answers=kernel.answers.without(drops))  # type: ignore[type-var]
    return left


def chunked(frames: Iterable[pl.DataFrame]) -> tuple[Chunk, ...]:
    """Frames as chunks; empty ones vanish.

    >>> [(chunk.first, chunk.last) for chunk in chunked([pl.DataFrame({"pane": [4, 2]}), pl.DataFrame()])]
    [(2, 4)]
    """
    return tuple(_chunk(frame) for frame in frames if frame.height)


def _chunk(frame: pl.DataFrame) -> Chunk:
    least, greatest = frame[PANE].min(), frame[PANE].max()
    assert isinstance(least, int)
    assert isinstance(greatest, int)
    return Chunk(least, greatest, frame.to_arrow())


def split_at(chunks: Iterable[Chunk], pane: int) -> tuple[list[pl.DataFrame], list[Chunk]]:
    """The rows before a pane, and the chunks of the rest; chunks all of which comes later are not opened."""
    before: list[pl.DataFrame] = []
    after: list[Chunk] = []
    for chunk in chunks:
        if chunk.first >= pane:
            after.append(chunk)
        elif chunk.last < pane:
            before.append(chunk.frame)
        else:
            frame = chunk.frame
            before.append(frame.filter(pl.col(PANE) < pane))
            after += chunked([frame.filter(pl.col(PANE) >= pane)])
    return before, after
