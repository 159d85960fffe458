"""Plans with delay operators, under every way to shed: what they cost, and what they still answer.

A delay operator stands for a part of a plan that costs so much for each row that passes it. Aggregates run on
the kernels; between them rows pass delays, and what those come to is the work of a run. Every answer that is
given under shedding is held against the exact ones.

    nested    delay, SUM of 10 ticks, delay, SUM of 100 ticks, delay     all three delays cost the same
    shared    delay, then twice: delay, SUM of 10 or 20 ticks, delay     the first costs as much as each pair
    single    delay, SUM of some ticks, delay                            the same for each row that passes
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from benchmarks.studies.extents import Paned
from benchmarks.studies.steps import Batch
from windrow.engine.explain import declared
from windrow.errors import WindrowError
from windrow.language.compile import compile_query
from windrow.shedding.agreement import DropRange, SheddableQuery, needless, overlap, share
from windrow.shedding.phases import Phases, chance

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit

_STREAM = ("k BIGINT, v BIGINT, ts BIGINT", "WATTR ts ORDERED SHEDDABLE")
_SEED, _BATCH = 7, 50_000
_SUM = "SELECT RSTREAM(k, SUM(v) AS {}) FROM {} [RANGE {} SLIDE {}] GROUP BY k"


@dataclass(frozen=True)
class Ran:
    """What the delays of a run come to, and the answers of each query."""

    work: float
    answers: Mapping[str, pl.DataFrame]

    @property
    def count(self) -> int:
        """The answers of all queries."""
        return sum(frame.height for frame in self.answers.values())


@dataclass(frozen=True)
class Sum:
    """A sum over windows of `range` ticks, one every `slide`."""

    range: int
    slide: int

    def emit(self) -> Emit:
        """As a query over the stream `s`."""
        return _compiled(_SUM.format("m", "s", self.range, self.slide))

    def over(self, rows: pl.DataFrame, until: int) -> pl.DataFrame:
        """Its answers up to an instant, on the kernels: where windows end, and what is in them."""
        ends = np.arange(_BATCH, until + _BATCH, _BATCH).clip(max=until)
        cuts = [0, *rows["ts"].search_sorted(ends, side="left").to_list()]
        batches = [
            Batch({"s": rows.slice(first, last - first)}, int(end))
            for first, last, end in zip(cuts, cuts[1:], ends, strict=False)
        ]
        found = Paned(self.emit()).run(batches).answers
        assert found is not None
        return found.select("at", "k", "m").collect()


class Drop:
    """A WinDrop before queries that read the stream `s`, with the rows and answers that it lets through."""

    def __init__(self, queries: Mapping[str, Emit], max_gap: int, until: int) -> None:
        sharing = share([SheddableQuery(name, emit, max_gap) for name, emit in queries.items()])
        (self.group,) = sharing.groups
        self.until = until

    @classmethod
    def before(cls, until: int, max_gap: int, **sums: Sum) -> Drop:
        """One before sums of the stream."""
        return cls({name: each.emit() for name, each in sums.items()}, max_gap, until)

    @property
    def most(self) -> float:
        """The greatest share of windows that may be dropped."""
        return self.group.cycles.most

    def rows(self, rows: pl.DataFrame, p: float) -> pl.DataFrame:
        """Those that somebody needs."""
        lost: list[DropRange] | None = None
        for member in self.group.members:
            own = needless(member, "s", self._phases(p), 0, self.until)
            lost = list(own) if lost is None else overlap(lost, own)
        kept = ~_inside(rows["ts"].to_numpy(), [(each.begin, each.end) for each in lost or []])
        return rows if kept.all() else rows.filter(kept)

    def answers(self, answers: pl.DataFrame, p: float) -> pl.DataFrame:
        """Those of windows that are kept."""
        runs = self._phases(p).runs(0, self.until)
        # windows that end in (after, until]
        gone = _inside(answers["at"].to_numpy(), [(run.after + 1, run.until + 1) for run in runs])
        return answers.filter(~gone)

    def _phases(self, p: float) -> Phases:
        return Phases().then(0, self.group.cycles, p, _SEED)


def one_row_per_tick(count: int) -> pl.DataFrame:
    """Rows of one group, at the instants 0, 1, …"""
    values = np.random.default_rng(1).integers(1, 1000, count)
    return pl.DataFrame({"k": np.zeros(count, np.int64), "v": values, "ts": np.arange(count)})


@dataclass(frozen=True)
class Nested:
    """Two tumbling sums, one over the other."""

    rows: pl.DataFrame
    max_gap: int
    inner: Sum = Sum(10, 10)
    outer: Sum = Sum(100, 100)
    #: per row in, per answer of the inner sum, per answer of the outer one
    delays: tuple[float, float, float] = (1.0, 10.0, 100.0)

    def exact(self) -> Ran:
        """Without shedding."""
        return self._ran(self.rows, self._inner, self._outer)

    def rdrop(self, p: float) -> Ran:
        """Answers are dropped at random, before the last delay."""
        return self._ran(self.rows, self._inner, at_random(self._outer, p))

    def nested1(self, p: float) -> Ran:
        """Windows are dropped in the middle: after the inner sum, before the delay that follows."""
        drop = self._middle
        inner = drop.rows(self._inner, p)
        return self._ran(self.rows, inner, drop.answers(self.outer.over(inner, self._until), p))

    def nested2(self, p: float) -> Ran:
        """Windows are dropped at the input."""
        drop = self._first
        rows = drop.rows(self.rows, p)
        inner = _as_rows(self.inner.over(rows, self._until))
        return self._ran(rows, inner, drop.answers(self.outer.over(inner, self._until), p))

    def row_drop(self, p: float) -> Ran:
        """Rows are dropped at random at the input: what is answered may be wrong."""
        rows = at_random(self.rows, p)
        inner = _as_rows(self.inner.over(rows, self._until))
        return self._ran(rows, inner, self.outer.over(inner, self._until))

    @property
    def most(self) -> float:
        """The greatest share of windows that may be dropped."""
        return self._first.most

    def _ran(self, rows: pl.DataFrame, inner: pl.DataFrame, outer: pl.DataFrame) -> Ran:
        first, second, third = self.delays
        return Ran(first * rows.height + second * inner.height + third * outer.height, {"outer": outer})

    @property
    def _until(self) -> int:
        return self.rows.height

    @cached_property
    def _inner(self) -> pl.DataFrame:
        return _as_rows(self.inner.over(self.rows, self._until))

    @cached_property
    def _outer(self) -> pl.DataFrame:
        return self.outer.over(self._inner, self._until)

    @cached_property
    def _middle(self) -> Drop:
        return Drop.before(self._until, self.max_gap, outer=self.outer)

    @cached_property
    def _first(self) -> Drop:
        below = _SUM.format("v", "s", self.inner.range, self.inner.slide)
        whole = _SUM.format("m", f"({below})", self.outer.range, self.outer.slide)
        return Drop({"outer": _compiled(whole)}, self.max_gap, self._until)


@dataclass(frozen=True)
class Shared:
    """Two tumbling sums of the same rows."""

    rows: pl.DataFrame
    max_gap: int
    sums: Mapping[str, Sum] = field(default_factory=lambda: {"a": Sum(10, 10), "b": Sum(20, 20)})
    #: per row before the split; for each sum per row before it, and per row after it
    delays: tuple[float, float, float] = (1.0, 0.5, 0.5)

    def exact(self) -> Ran:
        """Without shedding."""
        return self._ran(self.rows, dict.fromkeys(self.sums, self.rows), self._answers)

    def split_rdrop(self, p: float) -> Ran:
        """Answers of each sum are dropped at random."""
        kept = {name: at_random(answers, p) for name, answers in self._answers.items()}
        return self._ran(self.rows, dict.fromkeys(self.sums, self.rows), kept)

    def split_windrop(self, p: float) -> Ran:
        """Each sum has a WinDrop of its own, after the split."""
        rows = {name: drop.rows(self.rows, p) for name, drop in self._own.items()}
        kept = {name: drop.answers(self._over(name, rows[name]), p) for name, drop in self._own.items()}
        return self._ran(self.rows, rows, kept)

    def shared_windrop(self, p: float) -> Ran:
        """One WinDrop before the split."""
        rows = self._common.rows(self.rows, p)
        kept = {name: self._common.answers(self._over(name, rows), p) for name in self.sums}
        return self._ran(rows, dict.fromkeys(self.sums, rows), kept)

    @property
    def most(self) -> float:
        """The greatest share of windows that may be dropped where both are dropped together."""
        return self._common.most

    @property
    def most_apart(self) -> float:
        """The same where each of them is dropped by itself."""
        return min(drop.most for drop in self._own.values())

    def _ran(
        self, rows: pl.DataFrame, each: Mapping[str, pl.DataFrame], answers: Mapping[str, pl.DataFrame]
    ) -> Ran:
        first, before, after = self.delays
        work = first * rows.height
        for name, size in self.sums.items():
            work += before * each[name].height + after * size.slide * answers[name].height
        return Ran(work, answers)

    def _over(self, name: str, rows: pl.DataFrame) -> pl.DataFrame:
        return self.sums[name].over(rows, self.rows.height)

    @cached_property
    def _answers(self) -> dict[str, pl.DataFrame]:
        return {name: self._over(name, self.rows) for name in self.sums}

    @cached_property
    def _own(self) -> dict[str, Drop]:
        until = self.rows.height
        return {name: Drop.before(until, self.max_gap, **{name: each}) for name, each in self.sums.items()}

    @cached_property
    def _common(self) -> Drop:
        return Drop.before(self.rows.height, self.max_gap, **self.sums)


@dataclass(frozen=True)
class Single:
    """One sum, with a delay before and one after it."""

    rows: pl.DataFrame
    max_gap: int
    size: Sum
    delay: float = 5.0

    def exact(self) -> Ran:
        """Without shedding."""
        return self._ran(self.rows, self._answers)

    def windrop(self, p: float) -> Ran:
        """Windows are dropped at the input."""
        rows = self._drop.rows(self.rows, p)
        answers = self._answers if rows is self.rows else self.size.over(rows, self.rows.height)
        return self._ran(rows, self._drop.answers(answers, p))

    @property
    def most(self) -> float:
        """The greatest share of windows that may be dropped."""
        return self._drop.most

    def _ran(self, rows: pl.DataFrame, answers: pl.DataFrame) -> Ran:
        return Ran(self.delay * (rows.height + answers.height), {"sum": answers})

    @cached_property
    def _answers(self) -> pl.DataFrame:
        return self.size.over(self.rows, self.rows.height)

    @cached_property
    def _drop(self) -> Drop:
        return Drop.before(self.rows.height, self.max_gap, sum=self.size)


def wrong(given: Ran, exact: Ran) -> int:
    """How many answers are no answers of the exact run."""
    return sum(
        answers.height - answers.join(exact.answers[name], on=["at", "k", "m"], how="semi").height
        for name, answers in given.answers.items()
    )


def check_subset(who: str, given: Ran, exact: Ran) -> None:
    """Raise an error unless every answer that is given is one of the exact ones, and given once."""
    twice = any(answers.is_duplicated().any() for answers in given.answers.values())
    if twice or wrong(given, exact):
        raise WindrowError(
            f"{who} gave an answer that is not among the exact ones",
            code="answers-differ",
            hint="this is a fault of Windrow: please report it",
        )


def longest_gap(given: Ran, exact: Ran) -> int:
    """The most windows in a row without an answer, of all queries."""
    found = 0
    for name, answers in exact.answers.items():
        there = answers["at"].is_in(given.answers[name]["at"].implode())
        runs = there.rle().struct.unnest()
        found = max([found, *runs.filter(~pl.col("value"))["len"].to_list()])
    return found


def at_random(frame: pl.DataFrame, p: float) -> pl.DataFrame:
    """Rows dropped with probability p, each by its place."""
    return frame.filter(_chances(frame.height) >= p)


@cache
def _chances(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([chance(_SEED, place) for place in range(count)])


def _as_rows(answers: pl.DataFrame) -> pl.DataFrame:
    """Answers about windows that end at E are rows of the instant E-1."""
    return answers.select("k", v=pl.col("m").cast(pl.Int64), ts=pl.col("at") - 1)


def _inside(
    places: np.ndarray[tuple[int], np.dtype[np.int64]], intervals: Iterable[tuple[int, int]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which places are in one of some intervals [begin, end), in order and apart."""
    bounds = np.array([bound for pair in intervals for bound in pair], np.int64)
    found: np.ndarray[tuple[int], np.dtype[np.bool_]] = np.searchsorted(bounds, places, side="right") % 2 == 1
    return found


def _compiled(text: str) -> Emit:
    return compile_query(text, declared({"s": _STREAM}, {}))
