"""Frames straight into kernels: what a query costs by itself, without Spark or rows as Python values.

State is a value that goes into a step and comes out of it. So windows are filled once, and every round
takes the same steps from the same state. Only the steps are timed; answers are condensed between them. Time
is the processor's, of all threads, since nothing here waits for anything, and neighbours disturb it less.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.contestant import Outcome
from windrow.kernels.clock import Clock
from windrow.kernels.relational.program import News, RelationalProgram, States
from windrow.kernels.relational.signed_rows import FOREVER, KEPT, NEVER_LATE
from windrow.kernels.relational.windows.leaf import NUMBER

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.kernels.relational.expiry_layouts import Options

#: what the answers of one instant come to: how many, and the sums of two parts of their hashes
_HASHED = ("k", "m", "t", "n")
_MEBI = 1 << 20
_PART = 1 << 24


@dataclass(frozen=True)
class Batch:
    """New rows of some streams; afterwards no row below `clock` comes."""

    rows: Mapping[str, pl.DataFrame]
    clock: int

    @property
    def count(self) -> int:
        """Of all streams."""
        return sum(frame.height for frame in self.rows.values())


@dataclass
class Standing:
    """A query that has taken some steps."""

    program: RelationalProgram
    states: States = field(default_factory=dict)
    clock: int = -FOREVER
    taken: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, emit: Emit, options: Options | None = None) -> Standing:
        """At its beginning."""
        return cls(RelationalProgram(emit, options))

    def copy(self) -> Standing:
        """The same, to go another way from here."""
        return Standing(self.program, self.states, self.clock, dict(self.taken))

    def step(self, batch: Batch) -> tuple[float, pl.DataFrame]:
        """Processor seconds of the step, and its answers."""
        news = self._news(batch)
        began = time.process_time()
        self.states, answers, _ = self.program.advance(self.states, news)
        return time.process_time() - began, answers

    def filled(self, batches: Iterable[Batch]) -> Standing:
        """After these steps."""
        for batch in batches:
            self.step(batch)
        return self

    @property
    def state_rows(self) -> int:
        """How many rows all operators keep."""
        return sum(self.program.state_rows(self.states).values())

    @property
    def state_mebibytes(self) -> float:
        """How much memory they take."""
        chunks = (chunk for state in self.states.values() for each in state.chunks.values() for chunk in each)
        return float(sum(chunk.table.nbytes for chunk in chunks)) / _MEBI

    def _news(self, batch: Batch) -> News:
        moved = Clock(self.clock, batch.clock)
        rows = {}
        for name, frame in batch.rows.items():
            first = self.taken.get(name, 0) + 1
            self.taken[name] = first + frame.height - 1
            rows[name] = frame.with_columns(
                pl.int_range(first, first + frame.height, dtype=pl.Int64, eager=True).alias(NUMBER),
                pl.lit(0, pl.Int64).alias("#arrival_ts"),
                pl.lit(NEVER_LATE, pl.Int64).alias(KEPT),
            )
        self.clock = batch.clock
        return News(moved, rows, {})


def timed(standing: Standing, batches: Sequence[Batch]) -> Outcome:
    """Take these steps from where the query stands, which it keeps; seconds are those of 1000 rows."""
    here = standing.copy()
    seconds, rows, answered = 0.0, 0, [condensed(None)]
    for batch in batches:
        took, answers = here.step(batch)
        seconds += took
        rows += answers.height
        answered.append(condensed(answers))
    figures = {
        "changes": float(rows),
        "state rows": float(here.state_rows),
        "state MiB": here.state_mebibytes,
    }
    return Outcome(
        seconds * 1000 / sum(batch.count for batch in batches), pl.concat(answered).lazy(), figures
    )


def condensed(answers: pl.DataFrame | None) -> pl.DataFrame:
    """Answers of any columns in the few that are compared: by instant, how many and what they hash to.

    >>> one = pl.DataFrame({"v": [7, 8], "#at": [3, 3], "#op": ["+", "-"]})
    >>> condensed(one).equals(condensed(one.reverse())), condensed(one)["n"].to_list()
    (True, [2])
    >>> condensed(one)["k"][0] == condensed(one.with_columns(v=pl.Series([8, 7])))["k"][0]
    False
    """
    if answers is None or not answers.height:
        columns = {"at": pl.Int64(), **dict.fromkeys(_HASHED, pl.Int64())}
        return pl.DataFrame(schema=columns)
    hashed = answers.hash_rows(seed=1)
    frame = pl.DataFrame({"at": answers["#at"], "k": hashed // _PART, "m": hashed % _PART})
    return (
        frame.group_by("at")
        .agg(pl.col("k").sum(), pl.col("m").sum(), pl.lit(0).alias("t"), pl.len().alias("n"))
        .select(pl.all().cast(pl.Int64))
        .sort("at")
    )
