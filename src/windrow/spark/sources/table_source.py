"""Where the content of a table comes from: files, a changelog, a function, or data given once.

A source always gives the whole content. The engine takes the difference to what it has for a change, and
keeps what the source says of itself (`read`), to know after a restart whether there is anything new.

A changelog is rows that come and rows that leave, in order: what they add up to is the content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow.algebra import Field, Schema, Table
from windrow.algebra.functions.sql_text import backquoted
from windrow.algebra.types import STRING, struct
from windrow.errors import DataError, QueryError, SourceError, WindrowError
from windrow.spark.failures import job_failed
from windrow.spark.sources import files_source, kafka_source, listing, urls
from windrow.spark.sources.source import Position
from windrow.spark.sources.tables import Values, arrow_rows, given_rows
from windrow.state.manifest import SourceFile, SourceState

#: files that change while they are read are read again, so many times, after so many seconds
_TRIES, _PAUSE = 5, 0.2


@dataclass(frozen=True)
class Content:
    """All rows of a table, and what they were read from."""

    rows: Sequence[Values]
    read: SourceState


class TableSource:
    """Something that has the whole content of a table."""

    #: whether the table is what the source says, and nobody else may change it
    is_master = True
    #: whether it may take time to answer: then a thread asks
    is_slow = True

    def news(self, before: SourceState) -> Content | None:
        """The content, unless it is surely the same as `before`."""
        raise NotImplementedError


class GivenContent(TableSource):
    """Data that was given once. After a restart the same data is no news, whatever was updated since."""

    is_master = is_slow = False

    def __init__(self, table: Table, data: Any) -> None:
        self._rows = given_rows(table, data)
        lines = sorted(map(repr, self._rows))
        self._fingerprint = f"given:{blake2b(repr(lines).encode(), digest_size=16).hexdigest()}"

    def news(self, before: SourceState) -> Content | None:
        if before.fingerprint == self._fingerprint:
            return None
        return Content(self._rows, SourceState(fingerprint=self._fingerprint))


class CalledContent(TableSource):
    """What a function gives, called again after every period."""

    is_slow = False

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


class FilesContent(TableSource):
    """The rows of files, or what the changes in them add up to; read whole whenever one of them changes or
    comes."""

    def __init__(self, spark: SparkSession, table: Table, wanted: urls.FilesUrl, form: str | None) -> None:
        self._spark, self._table, self._wanted, self._form = spark, table, wanted, form

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
        found = listing.opened_listing(self._spark, self._wanted.place, may_be_empty=False)
        files = tuple(sorted(found, key=lambda file: file.path))
        kind = self._wanted.format
        empty = next((f for f in files if not f.size and (kind or urls.format_of(f.path)) != "json"), None)
        if empty is not None:
            raise SourceError(
                f"{self._table.title}: {empty.path.removeprefix('file:')} is empty, without even a header",
                code="empty-file",
                hint="put files in place by renaming them; a table without rows has a file with a header",
            )
        return files

    def _read(self) -> list[Values]:
        table = self._table if self._form is None else changes_of(self._table, self._form)
        source = files_source.FilesSource(self._spark, table, self._wanted)
        if self._form is None:
            return _rows_in_order(table, source.all_rows(), ())
        folded = Folded(self._table, self._form)
        folded.add(_rows_in_order(table, source.all_rows(), source.order_key))
        return folded.rows


class KafkaChangelog(TableSource):
    """A topic of changes, read from its beginning when a process starts, and from then on as they come."""

    def __init__(self, spark: SparkSession, table: Table, wanted: urls.KafkaUrl, form: str) -> None:
        self._spark, self._wanted = spark, wanted
        self._changes, self._folded = changes_of(table, form), Folded(table, form)
        self._read: Position = {}

    def news(self, before: SourceState) -> Content | None:
        source = kafka_source.KafkaSource(self._spark, self._changes, self._wanted.resolved())
        try:
            end = source.upto(self._read, source.latest())
            if end is None:
                return None
            frame = source.frame(self._read, end)
            self._folded.add(_rows_in_order(self._changes, frame, source.order_key))
        finally:
            source.end()
        self._read = end.at
        return Content(self._folded.rows, SourceState(fingerprint=source.fingerprint, offsets=end.at))


def _rows_in_order(table: Table, frame: DataFrame, order: Sequence[str]) -> list[Values]:
    ordered = frame.orderBy(*map(backquoted, order)) if order else frame
    with job_failed(f"reading {table.title}"):
        return arrow_rows(table, ordered.select(*map(backquoted, table.schema.names)).toArrow())


#: the forms of a changelog: a column that says what happens to the row, or before, after and op of Debezium
CHANGELOGS = ("op", "debezium")
_CHANGELOG, _OP, _PAYLOAD = "changelog", "op", "payload"
#: what an `op` may say: of a row that comes, or replaces the one with its key, and of one that leaves
_COMES = frozenset(["+", "+I", "+U", "I", "C", "R", "U", "INSERT", "CREATE", "READ", "UPDATE", "UPSERT"])
_LEAVES = frozenset(["-", "-D", "-U", "D", "DELETE"])
_REPLACES = frozenset({"U", "UPDATE"})


def changes_of(table: Table, form: str) -> Table:
    """The columns of a changelog, as a table whose rows are the changes."""
    if form == "op":
        if _OP in {name.lower() for name in table.schema.names}:
            raise QueryError(
                f"{table.title} has a column `{_OP}`, where the changelog says what happens to a row",
                code="bad-source",
                hint=f"leave `{_OP}` out of the columns; it is read, and no part of the table",
            )
        return replace(table, schema=Schema((*table.schema, Field(_OP, STRING))), key=(), computed=())
    if table.forms:
        raise QueryError(
            f"`{table.forms[0][0]}` of {table.title} has a FORMAT, which rows of Debezium lack",
            code="bad-source",
            hint="declare it BIGINT or STRING, and convert it in the query",
        )
    row = struct(**{field.name: field.type for field in table.schema})
    parts = (Field("before", row), Field("after", row), Field(_OP, STRING))
    wrapped = Field(_PAYLOAD, struct(**{part.name: part.type for part in parts}))
    return replace(table, schema=Schema((*parts, wrapped)), key=(), forms=(), computed=())


class Folded:
    """What changes add up to: one row for each key, or, without a KEY, as many as have come and not left.

    >>> from windrow.algebra.types import BIGINT
    >>> from windrow.algebra.catalog import TableKind
    >>> columns = Schema((Field("k", BIGINT), Field("v", STRING)))
    >>> folded = Folded(Table("t", columns, TableKind.RELATION, ("k",)), "op")
    >>> folded.add([(1, "a", "I"), (2, "b", "+"), (1, "c", "U"), (2, None, "D")])
    >>> folded.rows
    [(1, 'c')]
    """

    def __init__(self, table: Table, form: str) -> None:
        self._table, self._form = table, form
        self._places = [table.schema.index(name) for name in table.key]
        self._rows: dict[Values, list[Values]] = {}

    @property
    def rows(self) -> list[Values]:
        return [row for rows in self._rows.values() for row in rows]

    def add(self, changes: Iterable[Values]) -> None:
        """More changes, in their order."""
        for change in changes:
            (self._marked if self._form == "op" else self._enveloped)(change)

    def _marked(self, change: Values) -> None:
        *row, op = change
        word = str(op or "").strip().upper()
        if word in _LEAVES:
            self._leave(tuple(row))
        elif word in _COMES and (self._places or word not in _REPLACES):
            self._come(tuple(row))
        elif word in _COMES:
            raise self._wrong(f"`{_OP}` is {op!r}, and no KEY says which row is replaced", "declare KEY (…)")
        else:
            hint = "it says I, U or D; INSERT, UPDATE or DELETE; + or -; c, r, u or d; or +I, -U, +U or -D"
            raise self._wrong(f"`{_OP}` is {op!r}", hint)

    def _enveloped(self, change: Values) -> None:
        before, after, op, payload = change
        if op is None and payload is not None:
            before, after, op = payload
        match op:
            case "c" | "r" | "u" | "d":
                if op == "u" and before is None and not self._places:
                    hint = "declare KEY (…), or have the database tell whole rows (REPLICA IDENTITY FULL)"
                    raise self._wrong(
                        "an update says nothing of the row before it, and there is no KEY", hint
                    )
                if before is not None and op in ("u", "d"):
                    self._leave(before)
                if after is not None:
                    self._come(after)
            case "t":
                self._rows.clear()
            case "m" | None:
                return
            case _:
                raise self._wrong(f"`{_OP}` is {op!r}", "Debezium writes c, r, u, d or t")

    def _key(self, row: Values) -> Values:
        return tuple(row[place] for place in self._places) if self._places else row

    def _come(self, row: Values) -> None:
        rows = self._rows.setdefault(self._key(row), [])
        if self._places:
            rows.clear()
        rows.append(row)

    def _leave(self, row: Values) -> None:
        key = self._key(row)
        rows = self._rows.get(key)
        if rows is None:
            if self._places:
                return  # it may have been compacted away
            raise self._wrong(f"{row!r} leaves and was not there", "give the whole row, as it came")
        rows.pop()
        if not rows:
            del self._rows[key]

    def _wrong(self, what: str, hint: str) -> DataError:
        return DataError(f"the changelog of {self._table.title}: {what}", code="bad-changelog", hint=hint)


def table_url(table: Table) -> tuple[urls.FilesUrl | urls.KafkaUrl, str | None]:
    """Where a table's declaration says its content is, and the form of the changelog, if it is one."""
    assert table.source is not None
    url = urls.parse_url(table.source)
    form = url.options.pop(_CHANGELOG, None)
    if form is not None:
        known = {_CHANGELOG: urls.choice(*CHANGELOGS)}
        form = urls.read_options({_CHANGELOG: form}, known, f"{url.scheme}:")[_CHANGELOG]
    if url.options.get("malformed") == "to":
        raise urls.bad_option(
            f"malformed rows of {table.title} cannot go to a sink: all of it is read at every change",
            "say `malformed=drop`, or mend them",
        )
    if form is not None:
        changes_of(table, form)
    wanted: urls.FilesUrl | urls.KafkaUrl | None = None
    try:
        if url.scheme == "files":
            wanted = replace(urls.read_files_url(url), bounded=True)
        elif url.scheme == "kafka" and form is not None:
            wanted = urls.read_kafka_url(url)
    except QueryError as error:
        if error.code == "unknown-option":  # a table has one more than a stream
            error.hint = f"{error.hint or ''}; of a table also `{_CHANGELOG}`".removeprefix("; ")
        raise
    if isinstance(wanted, urls.FilesUrl) and form == "debezium":
        if wanted.format not in (None, "json"):
            raise QueryError(
                f"{table.title}: changes of Debezium are JSON", code="bad-source", hint="say `?format=json`"
            )
        return replace(wanted, absent="null"), form
    if wanted is not None:
        return wanted, form
    raise QueryError(
        f"{table.title} cannot be read from `{url.scheme}:`: that never has the whole content of a table",
        code="bad-source",
        hint=f"name files, as in FROM 'files:///data/{table.name}.csv'; a topic of changes, as in FROM"
        f" 'kafka://host:9092/{table.name}?changelog=debezium'; or update it from Python: w.update(…)",
    )


def open_table(spark: SparkSession, table: Table) -> TableSource:
    """The source that a table's declaration names."""
    wanted, form = table_url(table)
    if isinstance(wanted, urls.KafkaUrl):
        return KafkaChangelog(spark, table, wanted, form or "op")
    return FilesContent(spark, table, wanted, form)
