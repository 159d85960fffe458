"""Policies that make punctuation out of rows (WID 5.1, 7.2).

All knowledge of disorder is here; everything downstream only sees P. A policy looks at whole batches,
and what counts as late was settled before the batch, so the order of rows inside it does not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

from windrow.errors import QueryError
from windrow.windows.domain import INFINITY, Instant
from windrow.windows.progress import Batch, Progress, SourceProgress, is_late
from windrow.windows.spec import require_positive

__all__ = [
    "Batch",
    "NoPolicy",
    "Ordered",
    "OrderedPer",
    "Policy",
    "Progress",
    "Punctuated",
    "Slack",
    "SlackRows",
    "SourceProgress",
    "is_late",
]


class Policy(ABC):
    """What may be concluded from the rows seen so far."""

    def start(self) -> Progress:
        """Nothing is known yet."""
        return Progress()

    @abstractmethod
    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        """What is known after a batch that was read at wall-clock time `now`."""


@dataclass(frozen=True)
class NoPolicy(Policy):
    """Nothing is ever concluded; only the end of the input is."""

    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        return state


@dataclass(frozen=True)
class Slack(Policy):
    """SLACK d: no row is more than `ticks` behind the greatest seen.

    >>> policy = Slack(5)
    >>> policy.observe(policy.start(), Batch([20, 17])).progress
    15
    """

    ticks: int = 0

    def __post_init__(self) -> None:
        _require_slack(self.ticks)

    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        greatest = max((t for _, t in batch.values), default=-INFINITY)
        return state.with_progress(greatest - self.ticks)


@dataclass(frozen=True)
class Ordered(Policy):
    """ORDERED: rows come in order, so P is the greatest value seen."""

    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        return Slack(0).observe(state, batch, now)


@dataclass(frozen=True)
class SlackRows(Policy):
    """SLACK n ROWS: no row is more than n places out of order, so P is the (n+1)-th greatest accepted value.

    >>> policy = SlackRows(2)
    >>> policy.observe(policy.start(), Batch([20, 17, 30, 18])).progress
    18
    """

    rows: int

    def __post_init__(self) -> None:
        _require_slack(self.rows)

    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        accepted = [t for source, t in batch.values if not is_late(state, t, source)]
        largest = tuple(sorted([*state.largest, *accepted])[-(self.rows + 1) :])
        known = largest[0] if len(largest) > self.rows else -INFINITY
        return replace(state.with_progress(known), largest=largest)


@dataclass(frozen=True)
class OrderedPer(Policy):
    """ORDERED PER c [IDLE t]: each source is in order, so P is the least of their maxima.

    A source without a row for `idle` ticks of the wall clock does not hold P back until it is heard of again.
    When all are idle, P stays where it is.

    >>> policy = OrderedPer(idle=60)
    >>> state = policy.observe(policy.start(), Batch([10, 7], sources=["a", "b"]), now=1000)
    >>> state.progress, policy.observe(state, Batch([30], sources=["a"]), now=1060).progress
    (7, 30)
    """

    idle: int | None = None

    def __post_init__(self) -> None:
        require_positive("IDLE", self.idle)

    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        state = state.with_sources(batch.values, now)
        awake = (seen for seen in state.sources.values() if not self._is_idle(seen, now))
        return state.with_progress(_least(awake))

    def _is_idle(self, seen: SourceProgress, now: int | None) -> bool:
        if self.idle is None or now is None or seen.at is None:
            return False
        return now - seen.at >= self.idle


@dataclass(frozen=True)
class Punctuated(Policy):
    """PUNCTUATED BY expr [PER c]: the source says itself how far it is.

    Per source, P is the least over all sources heard of; one that has sent rows but no mark holds P back.

    >>> policy = Punctuated(per=True)
    >>> state = policy.observe(policy.start(), Batch([5, 6], ["s6", "s7"], marks=[660, None]))
    >>> state.progress, state.progress_of("s6")
    (-inf, 660)
    """

    per: bool = False

    def observe(self, state: Progress, batch: Batch, now: int | None = None) -> Progress:
        marks = batch.marks if batch.marks is not None else [None] * len(batch.wattr)
        known = [-INFINITY if mark is None else mark for mark in marks]
        if not self.per:
            return state.with_progress(max(known, default=-INFINITY))
        sources = batch.sources if batch.sources is not None else ()
        state = state.with_sources(zip(sources, known, strict=True), now)
        return state.with_progress(_least(state.sources.values()))


def _least(sources: Iterable[SourceProgress]) -> Instant:
    return min((seen.progress for seen in sources), default=-INFINITY)


def _require_slack(amount: int) -> None:
    if amount < 0:
        raise QueryError(
            f"SLACK must not be negative, but is {amount}", code="bad-slack", hint="0 is the same as ORDERED"
        )
