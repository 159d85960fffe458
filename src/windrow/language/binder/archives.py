"""CREATE ARCHIVE: whether what is named is there, whether rows can be found by the key, and when they expire.

What lives in an archive, and until when:

    a stream                     its accepted rows, for KEEP
    a query that emits a stream  each row it emits, for KEEP: extents that are reported, ISTREAM, …
    a query that emits '+' and '-'    the rows of the answer, for as long as they are in it, and KEEP at most

The last has to be known when a row comes, so the answer must expire by time alone.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from windrow.algebra.catalog import Stream, Table
from windrow.algebra.patterns import Pattern
from windrow.algebra.types import BIGINT, TIMESTAMP, DataType, Kind
from windrow.errors import QueryError, nearest
from windrow.language.catalog import StandingArchive, StandingQuery
from windrow.windows.domain import Domain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windrow.errors import Span
    from windrow.language.archives import CreateArchive
    from windrow.language.catalog import Catalog

#: values of these are not in an order that files could be searched by
_NO_KEYS = frozenset({Kind.FLOAT, Kind.DOUBLE, Kind.NULL, Kind.INTERVAL, Kind.ARRAY, Kind.STRUCT})
#: the column of a query's answers that says when
AT = "at"


def bind_archive(statement: CreateArchive, catalog: Catalog) -> StandingArchive:
    """The archive a CREATE ARCHIVE declares."""
    with _about(statement.source_at):
        source = catalog.find(statement.source)
        if isinstance(source, Table):
            raise QueryError(
                f"`{source.name}` is a table: its rows do not expire",
                code="archive-source",
                hint="an archive is ON a stream or a query",
            )
        if isinstance(source, StandingQuery):
            check_lifetimes(source)
    with _about(statement.key_at):
        key = _key(statement.key, source)
    with _about(statement.keep_at):
        domain = source.domain if isinstance(source, Stream) else source.plan.leaves[0].domain
        told = statement.declaration(domain)
    return StandingArchive(
        statement.name, source.name, key, told.keep, statement.partitions, statement.rebuild
    )


def check_lifetimes(query: StandingQuery) -> None:
    """Whether it is known, when a row of the answer comes, until when it stays."""
    label = query.plan.label
    is_known = label.pattern is not Pattern.STR and not query.plan.is_internal
    if query.plan.emits_deletions and not is_known:
        reason = "results outlive INTERNAL windows" if query.plan.is_internal else label.reason
        raise QueryError(
            f"nobody knows how long rows stay in the answer of query `{query.name}`: {reason}",
            code="archive-source",
            hint="give its windows a SLIDE, or write SELECT ISTREAM(…), to keep what it emits",
        )


def _key(written: str, source: Stream | StandingQuery) -> str:
    """The key column, as it is spelled in the rows of the source."""
    columns = _columns(source)
    spelled = {name.lower(): name for name in columns}
    if written.lower() not in spelled:
        raise QueryError(
            f"`{source.name}` has no column `{written}`",
            code="unknown-column",
            hint=nearest(written, columns),
        )
    key = spelled[written.lower()]
    if columns[key].kind in _NO_KEYS:
        raise QueryError(
            f"`{key}` is {columns[key]}, which is no good key",
            code="key",
            hint="choose a column of whole numbers, decimals, text, dates or times",
        )
    return key


def _columns(source: Stream | StandingQuery) -> dict[str, DataType]:
    if isinstance(source, Stream):
        return {field.name: field.type for field in source.schema}
    at = TIMESTAMP if source.plan.leaves[0].domain is Domain.TIME else BIGINT
    return {AT: at} | {field.name + "_" * (field.name == AT): field.type for field in source.plan.schema}


@contextmanager
def _about(span: Span) -> Iterator[None]:
    """Errors raised inside are about this place."""
    try:
        yield
    except QueryError as error:
        error.span = error.span or span
        raise
