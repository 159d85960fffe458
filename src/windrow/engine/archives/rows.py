"""From what was filed for an archive to the rows it keeps: with the instant at which each expires.

A row of an answer ends when it leaves the answer, or when it was kept for long enough; any other row when it
was kept for long enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from windrow.algebra.catalog import Stream
from windrow.archive.declaration import Declaration
from windrow.engine.output.outbox import stored_as
from windrow.engine.output.schema import INSTANT, published, published_schema, rows_schema
from windrow.execution.archive_rows import AT, UNTIL, archived_section, stream_source
from windrow.kernels.columnar.columns import to_frame
from windrow.state.reader import open_chunk
from windrow.windows.domain import Domain

if TYPE_CHECKING:
    from windrow.algebra.plan import Emit
    from windrow.language.catalog import StandingArchive
    from windrow.state.manifest import OutboxEntry
    from windrow.state.store import Store

_EXPIRES = "valid_to"


@dataclass(frozen=True)
class Shape:
    """The rows of an archive: their columns, and where they are filed."""

    section: str
    #: the section they are read from: that of the answers, where these are not filed twice
    read_from: str
    schema: pa.Schema
    declaration: Declaration
    #: whether rows say at which instant they came, as answers do
    has_at: bool = False
    #: whether they come and go, as the rows of an answer do
    is_relation: bool = False

    @classmethod
    def of_stream(cls, archive: StandingArchive, stream: Stream) -> Shape:
        """The accepted rows of a stream."""
        section = archived_section(stream_source(stream.name))
        return cls(section, section, *_schema(archive, rows_schema(stream.schema), stream.domain))

    @classmethod
    def of_query(cls, archive: StandingArchive, query: str, emit: Emit) -> Shape:
        """The answers of the query with this id."""
        section, columns = archived_section(query), published_schema(emit)
        if emit.emits_deletions:
            columns = columns.remove(columns.get_field_index("op"))
        read_from = section if emit.emits_deletions else query
        schema, told = _schema(archive, columns, emit.leaves[0].domain)
        return cls(section, read_from, schema, told, has_at=True, is_relation=emit.emits_deletions)

    @property
    def is_of_stream(self) -> bool:
        """Whether the rows are those of a stream."""
        return not self.has_at

    @property
    def expires(self) -> str:
        """The column that says until when a row is valid."""
        return self.declaration.expires

    def rows(self, store: Store, entries: Iterable[OutboxEntry]) -> pa.Table:
        """What was filed in some outbox files."""
        places = [(each.ref, stored_as(each.ref, self.read_from)) for each in entries]
        frames = [to_frame(place.read(open_chunk(store, ref))) for ref, place in places if place is not None]
        parts = [published(self._ending(frame).to_arrow(), self.schema) for frame in frames]
        return pa.concat_tables([self.schema.empty_table(), *parts])

    def _ending(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The columns of the schema, in kernels' types."""
        kept = pl.col(AT) + self.declaration.keep
        ends = pl.min_horizontal(kept, UNTIL) if UNTIL in rows.columns else kept
        own = [name for name in rows.columns if name not in (AT, UNTIL)]
        return rows.select(*([AT] if self.has_at else []), *own, ends.alias(f"#{self.expires}"))


def _schema(archive: StandingArchive, columns: pa.Schema, domain: Domain) -> tuple[pa.Schema, Declaration]:
    """The columns and what the archive is told; the expiry gets a name that no column has."""
    name = _EXPIRES
    while name in columns.names:
        name += "_"
    schema = columns.append(pa.field(name, INSTANT if domain is Domain.TIME else pa.int64()))
    told = Declaration.of(
        archive.key, archive.keep, partitions=archive.partitions, rebuild=archive.rebuild, expires=name
    )
    return schema, told
