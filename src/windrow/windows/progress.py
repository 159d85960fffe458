"""How far a stream has got, and the policies that tell it from rows (WID 5.1, 7.2).

P is such that no more rows with WATTR < P will come. A `Progress` is a value that never changes, so it can be
stored with a commit and compared later. P only grows. Where punctuation is per source, each source has a P of
its own besides that of the stream.

Policies make punctuation out of rows. All knowledge of disorder is here; everything downstream only sees P. A
policy looks at whole batches, and what counts as late was settled before the batch, so the order of rows
inside it does not matter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isnan, nan
from typing import Any, TypeAlias

from windrow.errors import QueryError, StateError
from windrow.windows.domain import INFINITY, Instant, read_instant, write_instant
from windrow.windows.spec import require_positive

#: a value of the PER column
Source: TypeAlias = Hashable


@dataclass(frozen=True)
class SourceProgress:
    """What is known of one source: its own P, and when (wall clock) its last row came."""

    progress: Instant = -INFINITY
    at: int | None = None


@dataclass(frozen=True)
class Progress:
    """P of a stream, and of its sources.

    >>> traffic = Progress().with_progress(660).with_progress_of("s6", 720)
    >>> traffic.progress, traffic.progress_of("s6"), traffic.progress_of("s7")
    (660, 720, 660)
    >>> traffic.with_progress(600).progress
    660
    """

    progress: Instant = -INFINITY
    sources: Mapping[Source, SourceProgress] = field(default_factory=dict)
    #: the greatest accepted values, least first, as many as SLACK n ROWS asks for
    largest: tuple[int, ...] = ()

    def progress_of(self, source: Source) -> Instant:
        """P of one source: its own, or that of the stream if that is further."""
        seen = self.sources.get(source)
        return max(seen.progress, self.progress) if seen else self.progress

    def with_progress(self, progress: Instant) -> Progress:
        """The same, at least this far. The end of the input is P = infinity."""
        return replace(self, progress=max(self.progress, progress))

    def with_progress_of(self, source: Source, progress: Instant, at: int | None = None) -> Progress:
        """The same, with one source at least this far; `at` is when it was heard of, if that is known."""
        return self.with_sources([(source, progress)], at)

    def with_sources(self, news: Iterable[tuple[Source, Instant]], at: int | None = None) -> Progress:
        """The same, with each source at least as far as the news says."""
        sources = dict(self.sources)
        for source, progress in news:
            old = sources.get(source, SourceProgress())
            heard = old.at if at is None else at if old.at is None else max(at, old.at)
            sources[source] = SourceProgress(max(old.progress, progress), heard)
        return replace(self, sources=sources)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; equal states are written alike."""
        sources = [
            [_write_source(s), write_instant(seen.progress), seen.at] for s, seen in self.sources.items()
        ]
        return {
            "progress": write_instant(self.progress),
            "sources": sorted(sources, key=repr),
            "largest": list(self.largest),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Progress:
        """What `to_json` wrote.

        >>> state = Progress(5, {"s6": SourceProgress(-INFINITY, 17)})
        >>> Progress.from_json(state.to_json()) == state
        True
        """
        sources = {_read_source(s): SourceProgress(read_instant(p), at) for s, p, at in stored["sources"]}
        return cls(read_instant(stored["progress"]), sources, tuple(stored["largest"]))


@dataclass(frozen=True)
class Batch:
    """The columns of a micro-batch that punctuation looks at, evaluated; all of one length.

    `wattr` may be None only in rows that are punctuation only. `sources` is the PER column, `marks` the
    PUNCTUATED BY expression (None where NULL), `only_mark` the WHEN condition.
    """

    wattr: Sequence[int | None] = ()
    sources: Sequence[Source] | None = None
    marks: Sequence[int | None] | None = None
    only_mark: Sequence[bool] | None = None

    def __post_init__(self) -> None:
        for column in (self.sources, self.marks, self.only_mark):
            if column is not None and len(column) != len(self.wattr):
                raise ValueError(f"a column of {len(column)} rows in a batch of {len(self.wattr)}")

    @property
    def values(self) -> list[tuple[Source, int]]:
        """(source, WATTR) of the rows that are data."""
        sources = self.sources if self.sources is not None else [None] * len(self.wattr)
        marks_only = self.only_mark if self.only_mark is not None else [False] * len(self.wattr)
        rows = zip(sources, self.wattr, marks_only, strict=True)
        return [(source, t) for source, t, only in rows if t is not None and not only]


def is_late(before: Progress, wattr: int, source: Source = None) -> bool:
    """Whether a row comes too late, by what was committed before its batch.

    >>> is_late(Progress(10), 9), is_late(Progress(10), 10)
    (True, False)
    """
    return wattr < before.progress_of(source)


def _write_source(source: Source) -> Any:
    """Values JSON has no word for are written as {type: text}."""
    match source:
        case None | bool() | int() | str():
            return source
        case float():
            return {"float": "nan" if isnan(source) else repr(source)}
        case Decimal():
            return {"decimal": str(source)}
        case bytes():
            return {"bytes": source.hex()}
    raise StateError(f"a source cannot be a {type(source).__name__}", hint="use PER with an atomic column")


def _read_source(stored: Any) -> Source:
    if isinstance(stored, dict):
        ((kind, text),) = stored.items()
        return _READERS[kind](text)
    source: Source = stored
    return source


def _read_float(text: str) -> float:
    """NaN is the one object `math.nan`, so that it equals itself as a source."""
    return nan if text == "nan" else float(text)


_READERS: dict[str, Callable[[str], Source]] = {
    "float": _read_float,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
}


# ------------------------------------------------------------ policies


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
