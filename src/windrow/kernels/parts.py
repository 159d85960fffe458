"""Parts of a query's state that have clocks of their own: one for all rows, or one for each source.

Punctuation per source may begin with the first promise about one (`punctuate(…, where=…)`); what was one
part until then is divided.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from windrow.algebra.finality import is_final_by_group
from windrow.kernels.columns import plain
from windrow.kernels.state import State
from windrow.windows.domain import INFINITY, Instant

if TYPE_CHECKING:
    from windrow.kernels.intake import Known
    from windrow.kernels.query import SlidingQuery

Values: TypeAlias = tuple[Any, ...]
#: stands for all sources together; a source may be any value, NULL included
ALL = object()


@dataclass
class Part:
    """The state of one source, or of all; windows that end by `clock` are answered."""

    source: Any
    clock: Instant = -INFINITY
    state: State = field(default_factory=State)
    answered: dict[int, list[Values]] = field(default_factory=dict)


class Parts:
    """The parts of one query."""

    def __init__(self, query: SlidingQuery) -> None:
        self.query = query
        stream = query.scan.stream
        names = stream.schema.names
        #: the columns by which groups may become final one by one
        self.candidates = [name for name in names if is_final_by_group(query.emit, stream, name)]
        self.column: str | None = None
        self._parts: dict[Any, Part] = {ALL: Part(ALL)}
        self._divide(stream.progress.per)

    def __iter__(self) -> Iterator[Part]:
        return iter(list(self._parts.values()))

    def know(self, known: Known) -> None:
        """Sources may have got clocks of their own."""
        if self.column is None:
            self._divide(known.per)

    def clock_of(self, part: Part, known: Known) -> Instant:
        """How far a part is."""
        stream, attribute = self.query.scan.stream, self.query.attribute
        if part.source is ALL or attribute != stream.wattr:
            return known.progress_on(stream, attribute)
        return known.progress_of(part.source)

    def furthest(self, known: Known) -> Instant:
        """How far any answer is given."""
        sources = known.progress.sources if self.column is not None else ()
        return max(self.clock_of(Part(source), known) for source in (ALL, *sources))

    def split(self, rows: pl.DataFrame, before: Known) -> Iterator[tuple[Part, pl.DataFrame]]:
        """New rows by the part they belong to; a source heard of first begins where the stream was before."""
        if not rows.height:
            return
        if self.column is None:
            yield self._parts[ALL], rows
            return
        for (value,), mine in rows.group_by(f"#by.{self.column}", maintain_order=True):
            source = plain(value)
            if source not in self._parts:
                part = self._parts[source] = Part(source)
                part.clock = self.clock_of(part, before)
            yield self._parts[source], mine

    def _divide(self, column: str | None) -> None:
        if column not in self.candidates or column is None:
            return
        self.column = column
        whole = self._parts.pop(ALL)
        key = self._key_of(column)
        for source in _sources(whole.state, key):
            self._parts[source] = Part(source, whole.clock, whole.state.where(**{key: source}))
        if whole.answered:
            self._parts[ALL] = replace(whole, state=State(), clock=INFINITY)

    def _key_of(self, column: str) -> str:
        places = range(len(self.query.aggregate.keys))
        stream = self.query.scan.stream
        own = next(place for place in places if is_final_by_group(self.query.by_key(place), stream, column))
        return f"k{own}"


def _sources(state: State, key: str) -> list[Any]:
    """The sources that have any state."""
    found: dict[Any, None] = {}
    for chunks in state.chunks.values():
        for chunk in chunks:
            found |= {plain(value): None for value in chunk.frame[key].unique().to_list()}
    return list(found)
