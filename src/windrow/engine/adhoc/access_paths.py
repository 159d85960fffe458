"""Where the rows of a stream can be had: the ways there are, and the cheapest of them.

A way is a list of parts, each read by itself: files that never change, or a search. What offers one, or
refuses, is a function: kept sub-windows, and archives (`windrow.engine.adhoc.from_archives`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from windrow.engine.adhoc.columns import read_columns
from windrow.engine.retention import of_stream
from windrow.execution.kept_rows import kept_bytes, span_of
from windrow.state.names import KEPT
from windrow.windows.domain import INFINITY

if TYPE_CHECKING:
    import polars as pl

    from windrow.algebra.expressions import Expression
    from windrow.algebra.plan import Window
    from windrow.engine.adhoc.columns import Columns
    from windrow.engine.adhoc.needs import Needs
    from windrow.engine.archives.manager import Archiving
    from windrow.engine.records import StreamRecord
    from windrow.state.manifest import Manifest
    from windrow.state.store import Store


@dataclass(frozen=True)
class Wanted:
    """Rows of a stream that a window needs, as of a commit.

    `window` is given where it is about one instant, `predicate` is what its rows must satisfy to matter.
    """

    record: StreamRecord
    needs: Needs
    manifest: Manifest
    store: Store
    window: Window | None = None
    predicate: Expression | None = None
    archives: Archiving | None = None
    #: the columns that are read; None: all
    columns: Columns | None = None


@dataclass(frozen=True)
class Part:
    """A sub-window: what it is called, its last instant, what it costs, and how it is read.

    `file` is where it lies, if that is a Parquet file of the stream's rows; `check` fails if that is damaged.
    """

    name: str
    ends: int
    bytes: int
    fetch: Callable[[], pl.DataFrame] = field(compare=False, repr=False)
    file: str | None = None
    check: Callable[[], object] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Way:
    """A way to get rows; `tells_size`: what is said of it says already how much is read."""

    what: str
    parts: tuple[Part, ...]
    tells_size: bool = False

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


OneWay: TypeAlias = Callable[[Wanted], Way | None]


def kept_sub_windows(wanted: Wanted) -> Way | None:
    """The rows the stream keeps, if they are all that is needed."""
    record, needs = wanted.record, wanted.needs
    if record.kept_from is None:
        return None
    refs = of_stream(wanted.manifest.chunks.get(KEPT, ()), record.stream.name)
    inside = [ref for ref in refs if span_of(ref)[0] <= needs.end]
    begin = needs.begin
    if needs.rows is not None:
        counted, begin = 0, INFINITY
        for ref in sorted(inside, key=lambda ref: -span_of(ref)[0]):
            if counted < needs.rows:
                begin = span_of(ref)[0]
                counted += ref.rows if span_of(ref)[1] <= needs.end else 0
        if counted < needs.rows:
            begin = -INFINITY
    if record.kept_from > begin:
        return None
    columns = wanted.columns
    of_columns = "" if columns is None else f" {', '.join(sorted(columns))}"
    parts = [
        Part(
            f"{ref.name}{of_columns}",
            span_of(ref)[1],
            ref.bytes,
            partial(read_columns, wanted.store, ref, record.stream, columns),
            wanted.store.place(ref.name),
            partial(kept_bytes, wanted.store, ref),
        )
        for ref in inside
        if span_of(ref)[1] >= begin
    ]
    return Way(f"kept sub-windows of `{record.stream.name}`", tuple(parts))


def cheapest(wanted: Wanted, offers: Sequence[OneWay]) -> Way | None:
    """The way that reads least, the first of those that read the same; None if there is none."""
    found = [way for offer in offers if (way := offer(wanted)) is not None]
    return min(found, key=lambda way: way.bytes, default=None)
