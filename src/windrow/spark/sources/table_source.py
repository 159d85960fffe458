"""Where the content of a table comes from: files, a function, or data given once.

A source always gives the whole content. The engine takes the difference to what it has for a change, and
keeps what the source says of itself (`read`), to know after a restart whether there is anything new.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from windrow.errors import QueryError, SourceError, WindrowError
from windrow.spark.sources.tables import Values, given_rows
from windrow.spark.sources.urls import FilesUrl, format_of, parse_url, read_files_url
from windrow.state.manifest import SourceFile, SourceState

if TYPE_CHECKING:
    from windrow.algebra.catalog import Table
    from windrow.spark.frames import SparkSession

#: files that change while they are read are read again, so many times, after so many seconds
_TRIES, _PAUSE = 5, 0.2


@dataclass(frozen=True)
class Content:
    """All rows of a table, and what they were read from."""

    rows: Sequence[Values]
    read: SourceState


class TableSource(Protocol):
    """Something that has the whole content of a table."""

    #: whether the table is what the source says, and nobody else may change it
    is_master: bool

    def news(self, before: SourceState) -> Content | None:
        """The content, unless it is surely the same as `before`."""


class GivenContent:
    """Data that was given once. After a restart the same data is no news, whatever was updated since."""

    is_master = False

    def __init__(self, table: Table, data: Any) -> None:
        self._rows = given_rows(table, data)
        lines = sorted(map(repr, self._rows))
        self._fingerprint = f"given:{blake2b(repr(lines).encode(), digest_size=16).hexdigest()}"

    def news(self, before: SourceState) -> Content | None:
        if before.fingerprint == self._fingerprint:
            return None
        return Content(self._rows, SourceState(fingerprint=self._fingerprint))


class CalledContent:
    """What a function gives, called again after every period."""

    is_master = True

    def __init__(self, table: Table, function: Callable[[], Any], period: float) -> None:
        self._table, self._function, self._period = table, function, period
        self._called = -float("inf")

    def news(self, before: SourceState) -> Content | None:
        if time.monotonic() - self._called < self._period:
            return None
        try:
            data = self._function()
        except Exception as error:
            raise SourceError(
                f"the function that gives {self._table.title} failed: {type(error).__name__}: {error}",
                code="table-function",
                hint="nothing that was committed is lost; mend it and start again",
            ) from error
        rows = given_rows(self._table, data)
        self._called = time.monotonic()
        return Content(rows, SourceState(fingerprint="called"))


class FilesContent:
    """The rows of files, read whole whenever one of them changes."""

    is_master = True

    def __init__(self, spark: SparkSession, table: Table, wanted: FilesUrl) -> None:
        self._spark, self._table, self._wanted = spark, table, wanted

    def news(self, before: SourceState) -> Content | None:
        name = self._wanted.fingerprint(self._wanted.format or "")
        for _ in range(_TRIES):
            files = self._look()
            if before.fingerprint == name and before.files == files:
                return None
            try:
                rows = self._read()
            except WindrowError:
                if self._look() == files:
                    raise
            else:
                if self._look() == files:
                    return Content(rows, SourceState(fingerprint=name, files=files))
            time.sleep(_PAUSE)
        raise SourceError(
            f"{self._table.title}: `{self._wanted.place}` changes all the time while it is read",
            code="file-changing",
            hint="write a new file beside it, and put that in place by renaming it",
        )

    def _look(self) -> tuple[SourceFile, ...]:
        from windrow.spark.sources.listing import opened_listing

        found = opened_listing(self._spark, self._wanted.place, may_be_empty=False)
        files = tuple(sorted(found, key=lambda file: file.path))
        kind = self._wanted.format
        empty = next((f for f in files if not f.size and (kind or format_of(f.path)) != "json"), None)
        if empty is not None:
            raise SourceError(
                f"{self._table.title}: {empty.path.removeprefix('file:')} is empty, without even a header",
                code="empty-file",
                hint="put files in place by renaming them; a table without rows has a file with a header",
            )
        return files

    def _read(self) -> list[Values]:
        from windrow.spark.failures import job_failed
        from windrow.spark.sources.files_source import FilesSource
        from windrow.spark.sources.tables import arrow_rows

        frame = FilesSource(self._spark, self._table, self._wanted).all_rows()
        with job_failed(f"reading {self._table.title}"):
            return arrow_rows(self._table, frame.select(*map(_quoted, self._table.schema.names)).toArrow())


def files_of(table: Table) -> FilesUrl:
    """The files that a table's declaration names."""
    assert table.source is not None
    url = parse_url(table.source)
    if url.scheme != "files":
        raise QueryError(
            f"{table.title} cannot be read from `{url.scheme}:`: that never has the whole content of a table",
            code="bad-source",
            hint="name files, as in FROM 'files:///data/items.csv', or update it from Python: w.update(…)",
        )
    return replace(read_files_url(url), bounded=True)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
