"""The last answer of a standing query that answers window by window: what it says of now.

Commits name the files of the newest answers until newer ones are there, delivered or not. An answer without
rows leaves no file, so the clock says which answer is the last one: rows about an earlier instant are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from windrow.algebra.plan import Emit, StreamWord
from windrow.engine.adhoc.access_paths import AccessPath, SubWindow
from windrow.engine.adhoc.instant import present_of
from windrow.engine.output.outbox import stored_as
from windrow.errors import QueryError
from windrow.kernels.columnar.columns import polars_type, to_frame
from windrow.language.printer import print_query
from windrow.state.names import ANSWERS
from windrow.state.reader import open_chunk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from windrow.algebra.catalog import Stream
    from windrow.engine.output.outbox import Stored
    from windrow.engine.records import StreamRecord
    from windrow.language.catalog import StandingQuery
    from windrow.state.manifest import ChunkRef, Manifest
    from windrow.state.store import Store


def way_to_answer(manifest: Manifest, store: Store, query: str) -> AccessPath:
    """The files with the newest answers of a query."""
    state = manifest.queries.get(query)
    if state is None:
        raise QueryError(f"query `{query}` has not begun yet", code="no-answer", hint="commit it first: run")
    section = state.options["id"]
    places = [(ref, stored_as(ref, section)) for ref in manifest.chunks.get(ANSWERS, ())]
    parts = [_part(store, ref, place) for ref, place in places if place is not None]
    return AccessPath(f"the last answer of query `{query}`", tuple(parts))


def _part(store: Store, ref: ChunkRef, place: Stored) -> SubWindow:
    def fetch() -> pl.DataFrame:
        return to_frame(place.read(open_chunk(store, ref)))

    own = "" if place.follower is None else f" {place.follower.query}"
    return SubWindow(f"{ref.name} {place.section}{own}", 0, ref.operators[place.section].bytes, fetch)


def last_answer(
    query: StandingQuery,
    streams: Mapping[str, StreamRecord],
    found: Sequence[pl.DataFrame],
    as_stream: Stream,
) -> pl.DataFrame:
    """The rows of the last answer, as a stream of answers has them."""
    names = as_stream.schema.names
    kinds = {field.name: polars_type(field.type) for field in as_stream.schema}
    frames = [frame.rename(dict(zip(frame.columns, names, strict=True))) for frame in found]
    rows = pl.concat(frames) if frames else pl.DataFrame(schema=kinds)
    at = _instant(query, streams, rows)
    rows = rows.filter(pl.col("at") == at) if at is not None else rows.clear()
    return rows.with_columns(pl.lit(0, pl.Int64).alias("#arrival_ts"))


def _instant(query: StandingQuery, streams: Mapping[str, StreamRecord], rows: pl.DataFrame) -> int | None:
    """Which answer is the last: the one about the windows that ended last; after the end of all streams, or
    where windows may be left out, the last that was given."""
    greatest = rows["at"].max()
    if query.max_gap is not None or all(record.known.sealed for record in streams.values()):
        return greatest if isinstance(greatest, int) else None
    if any(record.known.per is not None for record in streams.values()):
        raise QueryError(
            f"query `{query.name}` answers each group for itself: there is no answer about one instant",
            code="no-answer",
            hint="ask about the windows of its streams",
        )
    present = present_of(query.plan, streams)
    return None if present is None else present.shown


def texts_of(asked: Emit) -> tuple[str, ...]:
    """What a standing query that answers just what is asked would be called; none can be, without windows."""
    if not asked.is_by_extent:
        return ()
    try:
        return print_query(Emit(asked.input, StreamWord.AUTO)), print_query(asked)
    except QueryError:
        return ()


def same_query(manifest: Manifest, queries: Mapping[str, StandingQuery], texts: Sequence[str]) -> str | None:
    """A standing query of one of these texts that runs."""
    for name, query in queries.items() if texts else ():
        state = manifest.queries.get(name)
        if (
            state is not None
            and state.status == "running"
            and state.text in texts
            and query.plan.is_by_extent
        ):
            return name
    return None
