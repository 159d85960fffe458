"""How far a stream has got: P, such that no more rows with WATTR < P will come.

A `Progress` is a value that never changes, so it can be stored with a commit and compared later.
P only grows. Where punctuation is per source, each source has a P of its own besides that of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import isinf, isnan, nan
from typing import Any, TypeAlias

from windrow.errors import StateError
from windrow.windows.domain import INFINITY, Instant

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
            [_write_source(s), _write_instant(seen.progress), seen.at] for s, seen in self.sources.items()
        ]
        return {
            "progress": _write_instant(self.progress),
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
        sources = {_read_source(s): SourceProgress(_read_instant(p), at) for s, p, at in stored["sources"]}
        return cls(_read_instant(stored["progress"]), sources, tuple(stored["largest"]))


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


def _write_instant(instant: Instant) -> int | str:
    return str(instant) if isinf(instant) else int(instant)


def _read_instant(stored: int | str) -> Instant:
    return float(stored) if isinstance(stored, str) else stored


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
